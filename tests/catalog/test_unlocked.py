"""A file that is read without locks while others write: rows of one state, or none."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from nectar.catalog.index import unlocked
from nectar.catalog.index.connection import _checked
from nectar.catalog.index.sqlite import SqliteIndex
from nectar.catalog.index.unlocked import AS_IT_LIES, Unlocked


def written(path, *numbers):
    """A writer who comes, writes and goes."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE IF NOT EXISTS t (key INTEGER PRIMARY KEY, value TEXT)")
    for number in numbers:
        connection.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", (number % 1000, f"{number} " * 300))
    connection.close()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "catalog.db"
    written(path, *range(50))
    return path


def as_it_lies(path):
    """As where nobody lets this user make the files that hold locks."""

    def connect(mode):
        if mode != AS_IT_LIES:
            raise sqlite3.OperationalError("unable to open database file")
        return _checked(path, mode)

    return connect


@pytest.fixture
def reader(path):
    reader = Unlocked(path, as_it_lies(path))
    yield reader
    reader.close()


def values(reader):
    return [value.split()[0] for (value,) in reader.execute("SELECT value FROM t ORDER BY key")]


def test_what_others_write_is_seen(path, reader):
    assert values(reader) == [str(number) for number in range(50)]
    written(path, *range(1000, 1050))
    assert values(reader) == [str(number) for number in range(1000, 1050)]
    assert reader.execute("SELECT COUNT(*) FROM t WHERE key < ?", (10,)).fetchone() == (10,)
    assert reader.execute("SELECT 1 WHERE 0").fetchone() is None
    assert len(reader.execute("SELECT key FROM t").fetchall()) == 50


def test_rows_that_were_read_while_somebody_wrote_are_read_again(path, monkeypatch):
    writers = [range(1000, 1050), range(2000, 2050)]

    class Interrupted(sqlite3.Connection):
        def execute(self, statement, *values):
            rows = super().execute(statement, *values)
            if "ORDER" in statement and writers:
                written(path, *writers.pop(0))
            return rows

    def connect(mode):
        as_it_lies(path)(mode).close()
        return sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True, isolation_level=None, factory=Interrupted)

    reader = Unlocked(path, connect)
    assert values(reader) == [str(number) for number in range(2000, 2050)]
    assert writers == []
    reader.close()


def test_locks_are_used_once_others_have_made_the_files_for_them(path):
    reader = Unlocked(path, lambda mode: _checked(path, mode))
    assert not reader._locks
    written(path, *range(60))
    assert len(values(reader)) == 60
    assert reader._locks
    written(path, *range(70))
    assert len(values(reader)) == 70
    reader.close()


def test_a_file_that_never_stands_still_is_locked(path, reader, monkeypatch):
    monkeypatch.setattr(unlocked, "_PAUSE", 0.0)
    changes = iter(range(1000))
    monkeypatch.setattr(unlocked, "_state_of", lambda path: (next(changes),))
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        values(reader)


def test_statements_that_belong_together_are_not_answered_from_two_states(path, reader):
    reader.execute("BEGIN")
    assert len(values(reader)) == 50
    written(path, *range(100))
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        values(reader)
    assert reader.in_transaction
    reader._connection.execute("ROLLBACK")
    assert len(values(reader)) == 100


def test_nothing_is_written(path, reader):
    for action in (
        lambda: reader.execute("DELETE FROM t"),
        lambda: reader.executemany("DELETE FROM t WHERE key = ?", [(1,)]),
    ):
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            action()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that write beside this one")
def test_readers_beside_writers_see_no_row_under_another_key(path, reader):
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from pathlib import Path
from tests.catalog.test_unlocked import written
for turn in range(1, 15):
    written(Path({str(path)!r}), *range(turn * 1000, turn * 1000 + 50))
"""
    writer = subprocess.Popen([sys.executable, "-c", code])
    read = refused = 0
    while writer.poll() is None:
        try:
            rows = reader.execute("SELECT key, value FROM t").fetchall()
        except sqlite3.OperationalError:
            refused += 1
            continue
        read += 1
        assert all(int(value.split()[0]) % 1000 == key and len(set(value.split())) == 1 for key, value in rows)
    assert writer.returncode == 0
    assert values(reader)[0] == "14000"
    assert read + refused > 0


def test_what_it_is_at_changes_whenever_the_file_does(path, tmp_path):
    """Each connection to a file as it lies counts from one: whoever goes by that would never hear of a change."""
    index = SqliteIndex(tmp_path / "index.db")
    index.close()
    index = SqliteIndex(tmp_path / "index.db", read_only=True)
    index._connection.close()
    index._connection = Unlocked(path, as_it_lies(path))
    seen = [index.version()]
    assert index.version() == seen[0]
    for number in range(3):
        written(path, 1000 + number)
        assert index.version() not in seen
        seen.append(index.version())
        assert index.version() == seen[-1]
