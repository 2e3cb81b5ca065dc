"""Programs hold credentials wherever they can; none is found in any byte of the home, or in what is printed."""

import os
import re
import sqlite3
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

CANARY = "hunter2canary"
PROGRAM = Path(__file__).with_name("canaries.py")


def found_in(content):
    return {each.decode() for each in re.findall(CANARY.encode() + rb"\d\dx", content)}


def unpacked(home):
    """What the rows of the catalog hold, unpacked, by table and column."""
    connection = sqlite3.connect(home / "catalog.db")
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for column, kind in connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall():
            for (value,) in connection.execute(f"SELECT {column} FROM {table}").fetchall():
                content = value if isinstance(value, bytes) else str(value).encode()
                yield f"{table}.{column}", content
                if kind == "BLOB" and isinstance(value, bytes):
                    try:
                        yield f"{table}.{column} unpacked", zlib.decompress(content)
                    except zlib.error:
                        pass
    connection.close()


def places_of(home):
    """Where canaries are found in a home, and which."""
    found = {}
    for folder, _, names in os.walk(home):
        for name in names:
            found.setdefault(name, set()).update(found_in(Path(folder, name).read_bytes()))
    for place, content in unpacked(home):
        found.setdefault(place, set()).update(found_in(content))
    return {place: sorted(each) for place, each in found.items() if each}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The program has run, changed, and run again; what it printed, the commands included."""
    folder = tmp_path_factory.mktemp("canaries")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NECTAR_")}
    environment |= {"NECTAR_HOME": str(folder / "home"), "NECTAR_RESERVE": "0", "NECTAR_OVERHEAD": "unlimited"}
    (folder / "etl.py").write_text(PROGRAM.read_text())
    printed = []
    commands = [["etl.py", "first", CANARY], ["etl.py", "again", CANARY]]
    commands += [
        ["-m", "nectar.cli", *each]
        for each in (
            ["ls"],
            ["ls", "--names"],
            ["stats"],
            ["lineage", "team/a", "--sources"],
            ["lineage", "team/a", "--json"],
        )
    ]
    for command in commands:
        done = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout + done.stderr)
    return folder / "home", printed


def test_no_credential_is_in_any_byte_of_the_home(ran):
    assert places_of(ran[0]) == {}


def test_no_credential_is_in_what_is_printed_or_logged(ran):
    assert [sorted(found_in(each.encode())) for each in ran[1]] == [[]] * len(ran[1])


def test_what_ran_was_kept_and_can_be_told_apart(ran):
    """Otherwise nothing would have been tested."""
    contents = list(unpacked(ran[0]))
    abouts = [content.decode() for place, content in contents if place == "entries.about"]
    assert sum("by_name(n=1, password=..." in each for each in abouts) == 1
    assert any("postgresql://...@" in each or "password=..." in each for each in abouts)
    tables = {place.partition(".")[0] for place, content in contents if content}
    assert {
        "entries",
        "results",
        "names",
        "versions",
        "recipes",
        "recipe_parts",
        "functions",
        "function_texts",
        "files",
    } <= tables
    notes = {content for place, content in contents if place == "names.note"}
    assert notes == {b"from postgresql://...@db/x with password=..."}


def test_results_that_hold_a_credential_in_their_code_cannot_be_rebuilt_and_say_why(ran):
    parts = [content for place, content in unpacked(ran[0]) if place == "recipe_parts.content unpacked"]
    assert [each for each in parts if b"what may be a credential, and recipes hold none" in each]


INNOCENT = """
import nectar, time
nectar.enable()
@nectar.memo
def f(x):
    time.sleep(0.02)
    return 1
f("hunter2canary99x")
nectar.disable()
"""


def test_what_cannot_be_known_to_be_a_credential_is_recorded(tmp_path):
    """Said in SECURITY.md, and so that this test would find a canary that is there."""
    environment = {**os.environ, "NECTAR_HOME": str(tmp_path / "home"), "NECTAR_RESERVE": "0"}
    (tmp_path / "etl.py").write_text(INNOCENT)
    subprocess.run([sys.executable, "etl.py"], cwd=tmp_path, env=environment, check=True)
    assert places_of(tmp_path / "home")["entries.about"] == ["hunter2canary99x"]
