"""What is only told, and not applied, changes nothing: no file, no row, whatever is found to be wrong."""

import os
import sqlite3
import time

import pytest
from click.testing import CliRunner
from tests.catalog.making import folder_of, key, opened, value

from nectar.cli.app import main
from nectar.model.entry import Lease
from nectar.model.lineage import FileRead, Sources
from nectar.store.layout import MANIFEST

TEXT, FILE = "Ada Lovelace 1815", "/data/ada.csv"
OLD = time.time() - 40 * 86400.0
LEFT = [
    f"programs/{1:032x}.json", f"programs/{2:032x}.json.{3:032x}", f"rebuilds/{key(1).hex()}", f"shared.json.{4:032x}",
    "verified-01234567-89ab-cdef-0123-456789abcdef", "notes.txt", "results/trash/notes.txt",
]  # fmt: skip


@pytest.fixture
def home(tmp_path):
    """A home in which everything is wrong that can be."""
    home = tmp_path / "home"
    catalog = opened(home)
    sources = Sources((FileRead(FILE, key(1), 10),), (), site=f"etl.py:3 ({TEXT})")
    for number in range(6):
        content = f"{TEXT} {number}".encode() + value(number)
        catalog.keep(key(number), key(0), content, seconds=9.0, about=f"f({TEXT})", sources=lambda: sources)
    catalog.keep(key(6), key(0), value(6), seconds=9.0, made_from=[catalog.index.lookup([key(0)])[key(0)]])
    catalog.bind("team/x", key(2), TEXT)
    folders = [folder_of(catalog, catalog.index.lookup([key(number)])[key(number)]) for number in range(6)]
    for path in folders[0].iterdir():
        if path.name != MANIFEST:
            path.write_bytes(path.read_bytes()[:-1])  # too short
    for path in folders[1].iterdir():
        if path.name != MANIFEST:
            path.write_bytes(b"x" + path.read_bytes()[1:])  # a wrong byte
    for path in folders[3].iterdir():
        path.unlink()
    folders[3].rmdir()
    orphan = f"{key(80).hex()[:2]}/{key(80).hex()}-{1:016x}"
    (home / "results" / "data" / orphan).mkdir(parents=True)
    (home / "results" / "data" / orphan / "0.arrow").write_bytes(b"x")
    assert catalog.index.announce(Lease("gone", orphan, catalog.presence.name, OLD, 10), None, OLD)
    catalog.close()
    for name in LEFT:
        path = home / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'{{"sites": {{"{TEXT}": 1}}}}')
    for folder, _, names in os.walk(home):
        for name in names:
            os.utime(os.path.join(folder, name), (OLD, OLD))
    return home


def state_of(home):
    """Every file with its content and its stamps, and every row."""
    files = {}
    for folder, folders, names in os.walk(home):
        files.update(dict.fromkeys(os.path.join(folder, name) for name in folders))
        for name in names:
            path = os.path.join(folder, name)
            status = os.stat(path)
            with open(path, "rb") as file:
                content = file.read()
            files[path] = (content, status.st_mode, status.st_mtime_ns, status.st_ino)
    connection = sqlite3.connect(f"file:{home / 'catalog.db'}?mode=ro&immutable=1", uri=True)
    rows = list(connection.iterdump())
    connection.close()
    return files, rows


@pytest.mark.parametrize(
    "command",
    ["forget --text TEXT", "forget --file /data", "forget --person PERSON", "forget --text TEXT --json", "gc",
     "gc --all", "gc --json", "check", "check --thorough", "check --json"],
)  # fmt: skip
def test_nothing_is_changed(home, command, monkeypatch):
    monkeypatch.setenv("NECTAR_BUDGET", "4000")
    monkeypatch.setenv("NECTAR_RESERVE", "0")
    from nectar.catalog.person import person

    words = [{"TEXT": TEXT, "PERSON": person()}.get(word, word) for word in command.split()]
    before = state_of(home)
    told = CliRunner().invoke(main, [*words, "--home", str(home)])
    assert told.exit_code == (command.startswith("check") and 1), told.output
    time.sleep(0.1)  # so long a verifier in the background would have had
    files, rows = state_of(home)
    assert rows == before[1]
    assert {path: found for path, found in files.items() if before[0].get(path) != found} == {}
    assert set(files) == set(before[0])
    applied = "--repair" if command.startswith("check") else "--apply"
    CliRunner().invoke(main, [*words, applied, "--home", str(home)])
    assert state_of(home)[1] != before[1], "there was something to do"
