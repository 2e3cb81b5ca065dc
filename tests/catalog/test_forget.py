"""What is forgotten is gone for good: no byte of it is left in any file of the home; the rest is whole."""

import errno
import json
import os
import sqlite3
import subprocess
import sys
import zlib
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner
from tests.catalog.making import entry, folder_of, key, opened, read

from nectar.catalog import forget as forgetting
from nectar.catalog.check import check
from nectar.catalog.forget import forget
from nectar.cli.app import main
from nectar.model.entry import RECIPE_LABEL, Job, JobPart, Version
from nectar.model.forgetting import Asked
from nectar.model.lineage import FileRead, FunctionUsed, Sources
from nectar.model.wanted import Wanted
from nectar.store.layout import MANIFEST
from nectar.trust.held import is_held

TEXT = "Ada Lovelace 1815"
FILE = "/data/people/ada-lovelace.parquet"
OTHER = "/data/orders.parquet"
ONE, TWO = f"{1:032x}.json", f"{2:032x}.json"  # what is known of programs


def holding(home, *texts):
    """Files of a home that hold one of the texts: as they lie, and in the rows of the catalog unpacked."""
    forms = [text.encode(encoding) for text in texts for encoding in ("utf-8", "utf-32-le")]
    found = []
    for folder, _, names in os.walk(home):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            found += [name for form in forms if form in content]
    connection = sqlite3.connect(home / "catalog.db")
    for table, column in (("recipe_parts", "content"), ("function_texts", "content"), ("jobs", "content")):
        for (packed,) in connection.execute(f"SELECT {column} FROM {table}"):
            found += [table for form in forms if form in zlib.decompress(packed)]
    connection.close()
    return sorted(set(found))


def fill(catalog):
    """Everything that a catalog holds, about what is to be forgotten (1 to 5) and about something else (11 to 15)."""
    index, now = catalog.index, catalog.clock.now()
    words = pl.DataFrame({"a": [f"{number} {TEXT}" for number in range(3000)]})
    others = pl.DataFrame({"a": [f"{number} of others" for number in range(3000)]})
    for first, text, file, frame in ((1, TEXT, FILE, words), (11, "somebody else", OTHER, others)):
        function = FunctionUsed(key(first + 50), f"etl.f{first}", "etl.py:1", f"def f():\n    return {text!r}\n")
        from_file = Sources((FileRead(file, key(first + 60), 10),), (function,), site=f"etl.py:3 ({text})")
        catalog.keep(key(first), key(1), frame, table=True, seconds=9.0)  # in its columns
        catalog.keep(key(first + 1), key(1), [text] * 10, seconds=9.0)  # in a pickle, within the row
        catalog.keep(key(first + 2), key(1), b"1" * 3000, seconds=9.0, about=f"f(name={text!r})")
        recipe = catalog.put_recipe([b"recipe", text.encode(), f"plan {first}".encode()])
        made = catalog.keep(
            key(first + 3), key(1), b"2" * 3000, seconds=9.0, sources=lambda it=from_file: it, recipe=recipe
        )
        catalog.keep(key(first + 4), key(1), b"3" * 3000, seconds=9.0, made_from=[made.entry])  # from the file as well
        index.add_version(Version(f"{RECIPE_LABEL}{key(first + 3).hex()}", key(1), recipe, now))
        catalog.add_version("etl.f", key(first), f'{{"text": "{text}"}}'.encode())
        catalog.bind(f"team/x{first}", key(first + 20), "first")
        catalog.bind(f"team/x{first}", key(first + 21), f"about {text}")
        catalog.bind(f"team/y{first}", key(first + 3), "of the file")
        index.add_observed(key(first), f"reads {text}", now)
        index.log(Job(now, key(1), key(1), 0.0, (JobPart(key(1), key(1), "hit", 0.0, 0, {"x": text}),)), 100)


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "home"
    catalog = opened(home)
    fill(catalog)
    catalog.close()
    (home / "programs").mkdir(exist_ok=True)
    (home / "programs" / ONE).write_text(json.dumps({"sites": {f"/home/{TEXT}/etl.py:3": [1, 1, 1, 1]}}))
    (home / "programs" / TWO).write_text(json.dumps({"sites": {"/home/etl.py:3": [1, 1, 1, 1]}}))
    return home


def forgotten(home, asked, *, apply=True):
    catalog = opened(home)
    try:
        return forget(catalog, home, asked, apply=apply)
    finally:
        catalog.close()


def test_no_byte_of_a_text_is_left(home):
    assert {"catalog.db", ONE, "recipe_parts", "function_texts", "jobs"} <= set(holding(home, TEXT))
    done = forgotten(home, Asked(texts=(TEXT,)))
    assert done.left == ()
    assert holding(home, TEXT) == []
    assert {key(1), key(2), key(3), key(4)} <= set(done.keys)
    assert [os.path.basename(path) for path in done.files] == [ONE]


def test_no_byte_is_left_of_a_file_and_of_what_was_made_from_it(home):
    assert holding(home, FILE)
    done = forgotten(home, Asked(files=(FILE,)))
    assert done.left == ()
    assert holding(home, FILE) == []
    assert set(done.keys) == {key(4), key(5)}
    assert done.names == ("team/y1",)


def test_a_folder_is_all_files_in_it(home):
    assert set(forgotten(home, Asked(files=("/data",))).keys) == {key(4), key(5), key(14), key(15)}
    assert holding(home, "/data/") == []


def test_the_rest_stays_and_is_whole(home):
    forgotten(home, Asked(texts=(TEXT,), files=(FILE,)))
    catalog = opened(home)
    assert [read(catalog, number, 1) is not None for number in (2, 3, 4, 5, 12, 13, 14, 15)] == [False] * 4 + [True] * 4
    with catalog.open(catalog.index.lookup([key(11)])[key(11)]) as result:
        assert result.to_polars().height == 3000
    assert check(catalog) == []
    assert catalog.index.broken_rows() == []
    assert catalog.index.broken_recipes() == []
    assert not catalog.index.recount(apply=False)
    assert catalog.index.sound() == []
    assert [name.name for name in catalog.index.names()] == ["team/x11", "team/y11"]
    assert catalog.index.resolve("team/x1") is None, (
        "its newest version is gone, and the one before does not take its place"
    )
    assert catalog.index.history("team/x1")[-1].key == key(21)
    assert [each.name for each in catalog.index.trace_results([key(14)], "upstream").functions.values()] == ["etl.f11"]
    catalog.close()


def test_a_dry_run_tells_the_same_and_changes_nothing(home):
    asked = Asked(texts=(TEXT,), files=(FILE,), people=("bob",))
    before = dump(home)
    told = forgotten(home, asked, apply=False)
    assert dump(home) == before
    assert (home / "programs" / ONE).exists()
    done = forgotten(home, asked)
    assert (told.rows, told.keys, told.names, told.files) == (done.rows, done.keys, done.names, done.files)
    assert dump(home) != before
    again = forgotten(home, asked)
    assert not again, "a second time there is nothing left to forget"


def dump(home):
    connection = sqlite3.connect(home / "catalog.db")
    lines = list(connection.iterdump())
    connection.close()
    return lines


def test_of_a_person_the_name_goes_and_what_they_made_stays(home):
    catalog = opened(home)
    catalog.index.add(entry(90, producer="bob@desk"), "", 0.0, catalog.clock.now())
    catalog.index.bind("team/b", key(90), "bob@desk", catalog.clock.now(), "first")
    catalog.index.bind("team/b", key(91), "bob@desk", catalog.clock.now(), "second")
    catalog.index.bind("team/b", key(92), "bobby@desk", catalog.clock.now(), "third")
    catalog.close()
    done = forgotten(home, Asked(people=("bob",)))
    assert holding(home, "bob@desk") == []
    assert done.rows == {"entries": 1, "names": 2}
    catalog = opened(home)
    assert [each.by for each in catalog.index.history("team/b")] == ["bobby@desk", "", ""]
    assert catalog.index.lookup([key(90)])[key(90)].producer == ""
    assert catalog.index.broken_rows() == []
    catalog.close()


def test_a_result_that_somebody_is_reading_is_told_of(home):
    catalog = opened(home)
    kept = catalog.index.lookup([key(1)])[key(1)]
    leases = catalog.lease([kept], 3600)
    done = forget(catalog, home, Asked(texts=(TEXT,)), apply=True)
    assert ["somebody is reading" in each for each in done.left][0]
    catalog = opened(home)
    catalog.end(leases)
    catalog.close()
    assert forgotten(home, Asked(texts=(TEXT,))).left == ()
    assert not [folder for folder, _, names in os.walk(home) if MANIFEST in names and key(1).hex() in folder]


def test_a_reader_of_the_catalog_is_told_of_as_long_as_it_reads(home):
    reader = sqlite3.connect(home / "catalog.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT COUNT(*) FROM entries").fetchone()
    done = forgotten(home, Asked(texts=(TEXT,)))
    assert [each for each in done.left if "another process is reading it" in each]
    reader.close()
    assert forgotten(home, Asked(texts=(TEXT,))).left == ()
    assert holding(home, TEXT) == []


ABC = "/data/people/ada-lovelace.parquet.bak"  # begins like the file
MOUNTED = f"/mnt{FILE}"  # and ends like it


@pytest.fixture
def alike(home):
    """What is on record of files whose names only begin or end like that of the file."""
    catalog = opened(home)
    for number, file in ((30, ABC), (40, MOUNTED), (50, FILE)):
        sources = Sources((FileRead(file, key(number), 10),), (), site=f"etl.py:{number} reads '{file}'")
        recipe = catalog.put_recipe([b"\x80recipe" + file.encode() + b"abc", json.dumps({"path": file}).encode()])
        catalog.keep(key(number), key(2), b"4" * 3000, seconds=9.0, sources=lambda it=sources: it, recipe=recipe,
                     about=f"scan of {file}")  # fmt: skip
        frame = pl.DataFrame({"path": [file, "abc"] * 1000, "same": [file] * 2000})
        catalog.keep(key(number + 1), key(2), frame, table=True, seconds=9.0)
        catalog.keep(key(number + 2), key(2), [file, "abc"], seconds=9.0)
        catalog.index.add_version(Version(f"{RECIPE_LABEL}{key(number).hex()}", key(2), recipe, 0.0))
        catalog.add_version(f"script of {file}", key(number), b"{}")
        catalog.bind(f"alike/{number}", key(number), f"about {file}.")
    catalog.close()
    (home / "programs" / f"{3:032x}.json").write_text(json.dumps({"sites": {f"{ABC}:3": [1, 1, 1, 1]}}))
    return home


def test_a_file_is_not_another_whose_name_begins_or_ends_like_it(alike):
    before = forgotten(alike, Asked(files=(FILE,)), apply=False)
    done = forgotten(alike, Asked(files=(FILE,)))
    assert done.left == ()
    assert done.keys == before.keys
    assert set(done.keys) == {key(4), key(5), key(50), key(51), key(52)}
    assert done.files == ()
    catalog = opened(alike)
    for number in (30, 40):
        assert read(catalog, number, 2) == b"4" * 3000
        assert read(catalog, number + 2, 2) == [ABC if number == 30 else MOUNTED, "abc"]
        assert catalog.index.resolve(f"alike/{number}").key == key(number)
        assert catalog.index.lookup([key(number)])[key(number)].recipe
        assert catalog.index.trace_results([key(number)], "upstream").files
    assert check(catalog, thorough=True) == []
    catalog.close()
    assert not forgotten(alike, Asked(files=(FILE,)))


def test_a_folder_is_not_another_whose_name_begins_like_it(alike):
    done = forgotten(alike, Asked(files=("/data/peo",)))
    assert not done
    assert done.left == ()
    assert {key(4), key(5), key(30), key(31), key(32)} <= set(forgotten(alike, Asked(files=("/data/people",))).keys)
    catalog = opened(alike)
    assert read(catalog, 40, 2) == b"4" * 3000
    catalog.close()


def test_of_a_person_only_the_whole_name_counts(home):
    catalog = opened(home)
    for number, person in enumerate(("ann@desk", "joanna@desk", "anna@desk", "ann.lee@desk", "desk@ann")):
        catalog.index.add(entry(90 + number, producer=person), "", 0.0, catalog.clock.now())
    catalog.close()
    assert forgotten(home, Asked(people=("ann",))).rows == {"entries": 1}
    catalog = opened(home)
    left = [catalog.index.lookup([key(90 + number)])[key(90 + number)].producer for number in range(5)]
    assert left == ["", "joanna@desk", "anna@desk", "ann.lee@desk", "desk@ann"]
    catalog.close()


@pytest.mark.parametrize("apply", [False, True])
def test_a_damaged_result_goes_when_it_is_applied(home, apply):
    catalog = opened(home)
    catalog.keep(key(70), key(1), b"5" * 5000, seconds=9.0, made_from=[catalog.index.lookup([key(11)])[key(11)]])
    folder = folder_of(catalog, catalog.index.lookup([key(11)])[key(11)])
    part = next(path for path in folder.iterdir() if path.name != MANIFEST)
    part.write_bytes(part.read_bytes()[:-100])
    catalog.close()
    done = forgotten(home, Asked(texts=(TEXT,)), apply=apply)
    assert done.damaged == (key(11),)
    catalog = opened(home)
    assert (key(11) in catalog.index.lookup([key(11)])) is not apply
    assert (key(70) in catalog.index.lookup([key(70)])) is not apply, "it was made from it"
    assert folder.exists() is not apply
    catalog.close()


def test_results_are_read_once_and_by_nobody_else(home):
    catalog = opened(home)
    catalog.store._verifier.submit = lambda entry: pytest.fail("it is read again in the background")
    forget(catalog, home, Asked(texts=(TEXT,)), apply=False)
    catalog.close()


def test_the_bytes_of_a_home_are_looked_at_by_a_process_that_holds_no_locks_there(home):
    """It would lose all of them as soon as it closes one of these files."""
    catalog, seen = opened(home), []
    assert catalog.presence.name
    asked = Asked(texts=(TEXT,))
    look = forgetting._names
    try:
        forgetting._names = lambda path, wanted: seen.append((path.name, is_held(path))) or look(path, wanted)
        assert forget(catalog, home, asked, apply=True).left == ()
    finally:
        forgetting._names = look
    assert {"catalog.db", "holders"} <= {name for name, _ in seen}
    assert not [name for name, held in seen if held]


def test_files_that_this_process_uses_are_not_looked_at_but_told_of(home):
    others = opened(home)
    others.presence.name  # noqa: B018 - asked for, so that the file is there
    before = locks(home)
    done = forgotten(home, Asked(texts=(TEXT,)))
    told = [each for each in done.left if "this process uses it" in each]
    assert {os.path.basename(each.partition(":")[0]) for each in told} == {"catalog.db", "catalog.db-shm", "holders"}
    assert locks(home) == before
    others.close()
    assert forgotten(home, Asked(texts=(TEXT,))).left == ()


def locks(home):
    """Files of a home on which this process holds locks, as Linux tells it."""
    if not os.path.exists("/proc/locks"):
        pytest.skip("the system does not tell")
    numbers = {os.stat(home / name).st_ino: name for name in os.listdir(home)}
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    found = {numbers.get(int(line[5].split(":")[2])) for line in lines if line[4] == str(os.getpid())} - {None}
    assert {"catalog.db", "catalog.db-shm", "holders"} <= found
    return found


def test_pipes_do_not_hold_it_up_and_what_cannot_be_read_is_told_of(home, monkeypatch):
    os.mkfifo(home / "pipe")
    (home / "link").symlink_to("nowhere")
    (home / "secret").write_text("x")
    look = forgetting.opened

    def opened_or_not(path, **options):
        if path.name in ("secret", ONE):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return look(path, **options)

    monkeypatch.setattr(forgetting, "opened", opened_or_not)
    done = forgotten(home, Asked(texts=(TEXT,)))
    assert [each.partition(" (")[0] for each in done.left] == [
        f"{path}: it cannot be looked at" for path in (home / "secret", home / "programs" / ONE)
    ]
    assert done.files == ()
    assert (home / "programs" / ONE).exists()


@pytest.mark.parametrize("place", range(0, 1 << 16, 4099))
def test_it_is_found_wherever_a_long_file_is_cut_into_pieces(tmp_path, monkeypatch, place):
    monkeypatch.setattr(forgetting, "_PIECE", 1 << 10)
    path = tmp_path / "file"
    wanted = Wanted(("/d/a",), (TEXT,), ("/d/abc.csv", "/mnt/d/a"))
    rest = (1 << 16) - place
    for content, found in (
        (TEXT, True),
        ("/d/a", True),
        ("/d/abc.csv", False),
        ("/mnt/d/a", False),
        ("/d/abd.csv", True),
    ):
        path.write_bytes(b"\0" * place + content.encode() + b"\0" * rest)
        assert forgetting._names(path, wanted) is found


# the command


def run(home, *arguments):
    return CliRunner().invoke(main, ["forget", *arguments, "--home", str(home)])


def test_the_command_tells_and_then_does_it(home):
    told = run(home, "--text", TEXT)
    assert told.exit_code == 0
    assert "--apply does it" in told.output
    assert "also within a longer word" in told.output
    assert holding(home, TEXT)
    done = run(home, "--text", TEXT, "--apply", "--json")
    assert done.exit_code == 0
    record = json.loads(done.output)
    assert set(record) == {"home", "applied", "rows", "results", "damaged", "names", "files", "left"}
    assert record["applied"]
    assert record["left"] == []
    assert holding(home, TEXT) == []
    assert "Nothing is known of it" in run(home, "--text", TEXT, "--apply").output


def test_the_command_fails_while_something_is_left(home):
    (home / "notes.txt").write_text(f"about {TEXT}")
    done = run(home, "--text", TEXT, "--apply")
    assert done.exit_code == 1
    assert "notes.txt: it holds it" in done.output


@pytest.mark.parametrize("arguments", [(), ("--text", "abc"), ("--apply",), ("--text", "")])
def test_wrong_usage(home, arguments):
    assert run(home, *arguments).exit_code == 2


def test_a_home_without_a_catalog_is_left_alone(tmp_path):
    done = run(tmp_path / "none", "--text", TEXT, "--apply")
    assert done.exit_code == 0
    assert not (tmp_path / "none").exists()


PROGRAM = """
import nectar, numpy, polars as pl, sys, time
PERSON = "Ada Lovelace 1815"
nectar.enable()
@nectar.memo
def f(name):
    time.sleep(0.05)
    return numpy.array([name] * 5)
def upper(name):
    time.sleep(0.001)
    return name.upper() + PERSON
f("Ada Lovelace 1815")
frame = pl.scan_parquet("ada-lovelace.parquet").with_columns(pl.col("name").map_elements(upper, return_dtype=pl.String))
frame.filter(pl.col("name") != "Ada Lovelace 1815").collect()
nectar.save(frame, "team/people", note="with Ada Lovelace 1815")
nectar.disable()
"""


def test_all_that_programs_leave_behind(tmp_path):
    """Memoised calls, queries, names, recipes, traces, histories and sites, as the programs themselves write them."""
    home = tmp_path / "home"
    pl.DataFrame({"name": [TEXT, "x"] * 100}).write_parquet(tmp_path / "ada-lovelace.parquet")
    (tmp_path / "etl.py").write_text(PROGRAM)
    environment = {**os.environ, "NECTAR_HOME": str(home), "NECTAR_RESERVE": "0"}
    subprocess.run([sys.executable, "etl.py"], cwd=tmp_path, env=environment, check=True)
    assert holding(home, TEXT)
    assert holding(home, "ada-lovelace")
    done = run(home, "--text", TEXT, "--file", str(tmp_path / "ada-lovelace.parquet"), "--apply")
    assert done.exit_code == 0, done.output
    assert holding(home, TEXT, "ada-lovelace.parquet") == []
    assert run(home, "--text", str(tmp_path), "--apply").exit_code == 0
    assert holding(home, str(tmp_path)) == []


def test_a_result_that_cannot_be_opened_now_is_told_of_and_the_rest_goes(home):
    failing = []

    def reach(step):
        if failing and step == "open part":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    catalog = opened(home, reach=reach)
    catalog.keep(key(30), key(1), b"4" * 3000)
    catalog.log(Job(0.0, key(1), key(1), 0.0, (JobPart(key(1), key(1), "hit", 0.0, 0, {"x": TEXT}),)))
    failing.append(True)
    done = forget(catalog, home, Asked(texts=(TEXT,)), apply=True)
    assert done.rows["jobs"]
    assert any(key(30).hex()[:12] in each and os.strerror(errno.EMFILE) in each for each in done.left)
    catalog = opened(home)  # forgetting closes it
    assert read(catalog, 30) == b"4" * 3000
    catalog.close()
