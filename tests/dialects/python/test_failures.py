"""Whatever is wrong with the store, the function runs and gives the same answer, and the log has a line about it."""

import errno
import functools
import json
import logging
import os
import sqlite3
import stat
import sys
import time

import pytest
from tests.dialects.python.programs import OUTCOMES, ended

import nectar
from nectar import session
from nectar.catalog import embedded
from nectar.catalog.embedded import INDEX
from nectar.errors import StoreFailure
from nectar.store.sources import LocalSource

SCRIPT = f"""
import json, logging, sys
logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
import nectar

@nectar.memo
def f(x):
    return [x] * 1000
{OUTCOMES}
print(json.dumps([outcomes(f, n)[1] for n in (1, 2, 1)]))
"""


@nectar.pure
def worth_keeping():
    time.sleep(0.003)


@nectar.memo
def numbers(n):
    worth_keeping()
    return list(range(n))


def right(count=3):
    for n in range(count):
        assert numbers(n) == list(range(n))
        assert numbers(n + 2000) == list(range(n + 2000))


def lines(caplog):
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_home_that_cannot_be_made(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    with nectar.reuse(home=tmp_path / "file" / "home", reserve=0) as report:
        right()
    assert {part.outcome for part in report.parts} == {"uncacheable"}
    assert len(lines(caplog)) == 1
    assert "nothing is reused or kept" in lines(caplog)[0]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_without_rights(tmp_path, caplog):
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(stat.S_IREAD | stat.S_IEXEC)
    with nectar.reuse(home=home, reserve=0):
        right()
    assert len(lines(caplog)) == 1


def test_a_result_that_cannot_be_mapped_is_computed_again_and_stays(home, caplog, monkeypatch):
    with nectar.reuse(home=home, reserve=0, inline=0):
        assert numbers(3000) == list(range(3000))
    entry = embedded.open_catalog(nectar.settings.load_settings({"home": home})).index.entries()
    before = [(each.key, each.location) for each in entry]

    def refuse(*_, **__):
        raise StoreFailure(errno.ENOMEM, os.strerror(errno.ENOMEM))

    with monkeypatch.context() as patch, nectar.reuse(home=home, reserve=0, inline=0) as report:
        patch.setattr(LocalSource, "_map", refuse)
        assert numbers(3000) == list(range(3000))
    assert [part.outcome for part in report.parts] == ["computed"]
    assert "lost" not in caplog.text
    assert all("is kept" in line for line in lines(caplog))
    after = embedded.open_catalog(nectar.settings.load_settings({"home": home})).index.entries()
    assert [(each.key, each.location) for each in after] == before
    with nectar.reuse(home=home, reserve=0, inline=0) as report:
        assert numbers(3000) == list(range(3000))
    assert [part.outcome for part in report.parts] == ["reused"]


@pytest.mark.parametrize("damage", [b"this is no database", b"", b"SQLite format 3\0" + bytes(2000)])
def test_a_damaged_catalog(home, caplog, damage):
    with nectar.reuse(home=home, reserve=0):
        right()
    for path in home.glob(f"{INDEX}*"):
        path.unlink()
    (home / INDEX).write_bytes(damage)
    with nectar.reuse(home=home, reserve=0):
        right()
    assert len(lines(caplog)) <= 1


def test_a_catalog_damaged_in_the_middle_of_a_session(home, caplog):
    with nectar.reuse(home=home, reserve=0):
        right()
        with open(home / INDEX, "r+b") as file:
            file.write(b"\xff" * 4096)
        right()
    with nectar.reuse(home=home, reserve=0):
        right()


def test_results_deleted_or_damaged_under_a_session(home, caplog):
    with nectar.reuse(home=home, reserve=0, inline=0):
        right()
    for path in (home / "results").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-3] + b"xyz") if path.stat().st_size > 3000 else path.unlink()
    with nectar.reuse(home=home, reserve=0, inline=0, verify="before"):
        right()
    with nectar.reuse(home=home, reserve=0, inline=0) as report:
        right()
    assert {part.outcome for part in report.parts} == {"reused"}, "computed anew, and kept"


def test_the_home_is_removed_under_a_session(home, caplog):
    import shutil

    with nectar.reuse(home=home, reserve=0):
        right()
        session.current().settle()
        shutil.rmtree(home, ignore_errors=True)
        right()
    right_after = nectar.last_run()
    assert len(right_after.parts) == 12


def test_a_disk_that_is_full(home, caplog, monkeypatch):
    """Every step that writes a file fails, then every statement that changes the index does."""
    opened = embedded.open_catalog
    failing = (
        (("make", "create", "write", "fsync", "rename"), OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))),
        (("sql",), sqlite3.OperationalError("database or disk is full")),
    )
    for steps, error in failing:

        def reach(step, steps=steps, error=error):
            if step.split()[0] in steps:
                raise error

        monkeypatch.setattr(embedded, "open_catalog", functools.partial(opened, reach=reach))
        with nectar.reuse(home=home, reserve=0, inline=0) as report:
            right()
        assert {part.outcome for part in report.parts} <= {"computed", "uncacheable"}
        assert not any(part.kept for part in report.parts)
        assert not any(part.keeping == "being kept" for part in report.parts), "it says what became of it"
        monkeypatch.undo()
    with nectar.reuse(home=home, reserve=0, inline=0) as report:
        right()
    assert {part.keeping for part in report.parts} == {"kept"}


def test_a_reserve_of_the_disk_that_is_larger_than_the_disk(home, caplog):
    with nectar.reuse(home=home, reserve="1000000 TB") as report:
        assert numbers(5000) == list(range(5000))
    assert report.parts[0].keeping.startswith("not kept: ")
    assert "reserve" in report.parts[0].keeping


def test_a_store_that_may_only_be_read(home, caplog):
    with nectar.reuse(home=home, reserve=0):
        assert numbers(3) == [0, 1, 2]
    before = sorted(str(path) for path in home.rglob("*"))
    with nectar.reuse(home=home, reserve=0, read_only=True) as report:
        assert numbers(3) == [0, 1, 2]
        assert numbers(4) == [0, 1, 2, 3]
        assert numbers(4) == [0, 1, 2, 3]
    assert [part.outcome for part in report.parts] == ["reused", "computed", "computed"]
    assert "only be read" in report.parts[1].keeping
    files = sorted(str(path) for path in home.rglob("*") if not path.name.startswith(INDEX))
    assert files == [path for path in before if not os.path.basename(path).startswith(INDEX)]
    with nectar.reuse(home=home / "none", reserve=0, read_only=True):
        assert numbers(3) == [0, 1, 2]
    assert len(lines(caplog)) <= 1


def test_a_locked_index(home, caplog):
    """Somebody holds the write lock of the index for as long as the call lasts."""
    with nectar.reuse(home=home, reserve=0):
        numbers(1)
    other = sqlite3.connect(home / INDEX, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with nectar.reuse(home=home, reserve=0) as report:
            assert numbers(1) == [0]
            assert report.parts[0].outcome == "reused", "reading needs no lock"
            other.execute("ROLLBACK")
    finally:
        other.close()


def test_programs_with_warnings_as_errors_and_one_line_in_the_log(program):
    program.write(script=SCRIPT)
    assert program.told("script", PYTHONWARNINGS="error") == ["f computed", "f computed", "f reused"]
    assert program.told("script", PYTHONWARNINGS="error", PYTHONDEVMODE="1") == ["f reused"] * 3
    (program.folder / "file").write_text("")
    out, errors = ended(program.started("script", NECTAR_HOME=str(program.folder / "file" / "home")))
    assert json.loads(out) == ["f uncacheable"] * 3
    assert len([line for line in errors.splitlines() if line.startswith("nectar")]) == 1
    program.write(script=SCRIPT.partition("print(")[0] + "print(json.dumps([len(f(1)), len(f(1))]))\n")
    out, errors = ended(program.started("script", NECTAR_BUDGET="a lot"))
    assert json.loads(out) == [1000, 1000]
    assert len([line for line in errors.splitlines() if "budget" in line]) == 1
