"""Programs whose catalog is sick: answers are right, one warning says so, and what was pending is kept afterwards."""

import errno
import logging
import sqlite3
import threading
from contextvars import ContextVar

import polars as pl
import pytest

import nectar
from nectar import session
from nectar.catalog.answers import NotKept
from nectar.catalog.index.transactions import Transactions
from nectar.clock import ManualClock, SystemClock
from nectar.errors import StoreFailure

LIMIT = 60.0


@nectar.memo
def tripled(number):
    return [number] * 3


@nectar.memo
def large(number):
    return bytes([number]) * 50_000


@pytest.fixture
def sick(home, monkeypatch):
    """Nectar is on, and waits a hundredth of a second for an answer. Tests move what else moves by itself."""
    monkeypatch.setattr("nectar.waiting.answering.crowding", lambda: 1.0)
    monkeypatch.setattr("nectar.waiting.health.crowding", lambda: 1.0)
    monkeypatch.setattr("nectar.waiting.health._SHARE", float("inf"))  # the functions of a test take no time
    monkeypatch.setenv("NECTAR_HOME", str(home))
    monkeypatch.setattr(session, "_chosen", None)
    monkeypatch.setattr(session, "_disabled", False)
    nectar.enable(home=home, reserve=0, patience=LIMIT)
    yield session.current()
    nectar.disable()


@pytest.fixture
def gate():
    gate = threading.Event()
    yield gate
    gate.set()


def warnings_of(caplog):
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def outcomes(report):
    return [part.outcome for part in report.parts]


def kept(home):
    with sqlite3.connect(home / "catalog.db") as catalog:
        return catalog.execute("SELECT COUNT(*) FROM entries").fetchone()[0]


def impatient(sick, seconds=0.01):
    """From now on so short a time is as long as the program waits, and it waits for everything."""
    sick.health.is_remote = True
    sick.health._allowance.each = seconds


def test_a_lock_that_somebody_holds(sick, home, caplog):
    assert tripled(0) == [0] * 3
    assert sick.settle(LIMIT)
    impatient(sick, 1.0)  # what reads has to answer in time, however busy the machine is
    other = sqlite3.connect(home / "catalog.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert [tripled(number) for number in range(1, 101)] == [[number] * 3 for number in range(1, 101)]
    assert tripled(0) == [0] * 3
    assert outcomes(nectar.last_run()) == ["reused"], "results are still found"
    assert tripled(7) == [7] * 3
    assert outcomes(nectar.last_run()) == ["reused"], "so is what waits to be written"
    assert not sick.settle()
    assert kept(home) == 1
    assert len(warnings_of(caplog)) == 1
    assert "locked" in warnings_of(caplog)[0]
    other.execute("ROLLBACK")
    other.close()
    assert sick.settle(LIMIT)
    assert kept(home) == 101
    assert sick.health.is_well
    assert len(warnings_of(caplog)) == 1


def test_a_catalog_that_answers_slowly_is_written_to_beside_the_program(sick, home, caplog, monkeypatch):
    """Colleagues are busy, or somebody holds the lock again and again: what the program may lose by that is lost."""
    assert tripled(0) == [0] * 3
    assert sick.settle(LIMIT)
    asked = []
    reserve = sick.catalog.index.reserve
    monkeypatch.setattr(sick.catalog.index, "reserve", lambda *given: asked.append(reserve(*given)))
    assert sick.health.writing.cost(sick.clock.elapsed(), 10 * LIMIT)
    monkeypatch.setattr(sick.clock, "elapsed", lambda: 0.0)  # the minute does not pass
    assert [tripled(number) for number in range(1, 101)] == [[number] * 3 for number in range(1, 101)]
    assert asked == [], "nobody else is asked who computes what"
    assert tripled(0) == [0] * 3
    assert outcomes(nectar.last_run()) == ["reused"], "results are found"
    assert sick.settle(LIMIT)
    assert kept(home) == 101, "and kept"
    assert warnings_of(caplog) == []


def test_a_disk_that_does_not_answer(sick, home, caplog, monkeypatch, gate):
    assert tripled(0) == [0] * 3
    assert sick.settle(LIMIT)
    impatient(sick)
    asked = []
    for name in ("_read", "_write"):
        original = getattr(Transactions, name)

        def hanging(*given, original=original):
            asked.append(threading.current_thread())
            gate.wait(LIMIT)
            return original(*given)

        monkeypatch.setattr(Transactions, name, hanging)
    assert [tripled(number) for number in range(101)] == [[number] * 3 for number in range(101)]
    assert threading.main_thread() not in asked, "the program itself asks for nothing that may hang"
    assert len([each for each in asked if each.name == "nectar-answers"]) <= 8, "and others do not do so for each call"
    sick.health.tell_at_end()
    assert len(warnings_of(caplog)) == 1
    gate.set()
    assert sick.settle(LIMIT)
    assert kept(home) == 101
    assert len(warnings_of(caplog)) == 1


def test_opening_a_catalog_that_does_not_answer_is_waited_for_once(home, monkeypatch, gate, caplog):
    monkeypatch.setattr("nectar.waiting.answering.crowding", lambda: 1.0)
    monkeypatch.setattr("nectar.waiting.health.crowding", lambda: 1.0)
    opened = []
    original = Transactions._open

    def hanging(index):
        opened.append(threading.current_thread())
        gate.wait(LIMIT)
        original(index)

    monkeypatch.setattr(Transactions, "_open", hanging)
    with nectar.reuse(home=home, patience=0.01, reserve=0) as report:
        current = session.current()
        assert [tripled(number) for number in range(100)] == [[number] * 3 for number in range(100)]
        assert len(opened) <= 1
        assert threading.main_thread() not in opened
        impatient(current, LIMIT)
        gate.set()
        for _ in range(1000):
            tripled(1)
            if current.catalog is not None and current.health.is_well:
                break
            threading.Event().wait(0.01)
        tripled(1)
        assert current.settle(LIMIT)
        tripled(1)
        assert outcomes(report)[-1] == "reused", "it is used once it answers"
    assert len(opened) == 1
    assert len(warnings_of(caplog)) <= 1


def failing(monkeypatch, message):
    """Whatever writes to the index fails; returns what makes it well again."""
    original = Transactions._writing

    def fails(index, what):
        raise sqlite3.OperationalError(message)

    monkeypatch.setattr(Transactions, "_writing", fails)
    return lambda: monkeypatch.setattr(Transactions, "_writing", original)


@pytest.mark.parametrize("message", ["database or disk is full", "attempt to write a readonly database"])
def test_a_disk_that_cannot_be_written_to(sick, home, caplog, monkeypatch, message):
    assert large(0) == bytes(50_000)
    assert sick.settle(LIMIT)
    well = failing(monkeypatch, message)
    assert [large(number) for number in range(50)] == [bytes([number]) * 50_000 for number in range(50)]
    assert not sick.settle()
    assert len(warnings_of(caplog)) == 1
    well()
    assert sick.settle(LIMIT)
    assert kept(home) == 50
    assert len(warnings_of(caplog)) == 1


def test_files_that_cannot_be_written(sick, home, caplog, monkeypatch):
    def full(sink, data):
        raise StoreFailure(errno.ENOSPC, "there is no space left")

    with monkeypatch.context() as patched:
        patched.setattr("nectar.store.sinks.LocalSink.write", full)
        assert [large(number) for number in range(20)] == [bytes([number]) * 50_000 for number in range(20)]
        assert not sick.settle()
    assert len(warnings_of(caplog)) == 1
    assert sick.settle(LIMIT)
    assert kept(home) == 20


def test_queries_over_a_sick_catalog(sick, home, caplog, monkeypatch, tmp_path):
    pl.DataFrame({"a": range(1000)}).write_parquet(tmp_path / "a.parquet")
    assert sick.catalog is not None
    well = failing(monkeypatch, "database or disk is full")
    expected = [[number * 499500] for number in range(10)]
    found = [
        pl.scan_parquet(tmp_path / "a.parquet").select(pl.col("a").sum() * number).collect()["a"].to_list()
        for number in range(10)
    ]
    assert found == expected
    assert not sick.settle()
    assert len(warnings_of(caplog)) == 1
    well()
    assert sick.settle(LIMIT)
    assert kept(home) == 10


@pytest.mark.parametrize("jump", [3600.0, -300.0])
def test_a_clock_that_is_set(home, jump, caplog, monkeypatch):
    clock = ManualClock(SystemClock().now())
    current = session.Session(session._settings({"home": home, "reserve": 0}), clock)
    monkeypatch.setattr(session, "_chosen", current)
    monkeypatch.setattr(session, "_disabled", False)
    assert [tripled(number) for number in range(50)] == [[number] * 3 for number in range(50)]
    clock.set(jump)
    assert [tripled(number) for number in range(100)] == [[number] * 3 for number in range(100)]
    assert current.settle(LIMIT)
    assert kept(home) == 100
    assert current.totals.cached >= 50
    assert warnings_of(caplog) == []
    current.close()


class Threads:
    """Which threads have asked the index for something, and what it was."""

    def __init__(self, monkeypatch):
        self.found = []
        for name in ("_read", "_write"):
            monkeypatch.setattr(Transactions, name, self._noting(getattr(Transactions, name)))

    def _noting(self, original):
        def noting(*given):
            self.found.append(threading.current_thread())
            return original(*given)

        return noting


def test_a_function_that_is_new_while_somebody_holds_the_lock(sick, home, monkeypatch):
    """A trace of it goes on record as well."""
    assert sick.catalog is not None
    impatient(sick, 1.0)
    asked = Threads(monkeypatch)
    other = sqlite3.connect(home / "catalog.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    @nectar.memo
    def doubled(number):
        return [number] * 2

    assert [doubled(number) for number in range(10)] == [[number] * 2 for number in range(10)]
    assert not sick.catalog.index.versions(doubled.label)
    assert threading.main_thread() not in asked.found
    other.execute("ROLLBACK")
    other.close()
    assert sick.settle(LIMIT)
    assert len(sick.catalog.index.versions(doubled.label)) == 1
    assert threading.main_thread() not in asked.found


def test_a_place_for_an_engine_is_made_by_a_thread_that_may_hang(home, monkeypatch, caplog):
    """Whatever that takes: results that have to go for it, their files, and what was left behind."""
    monkeypatch.setattr("nectar.waiting.answering.crowding", lambda: 1.0)
    with nectar.reuse(home=home, reserve=0, patience=LIMIT, budget=1_000_000, protect=0):
        current = session.current()
        assert [large(number) for number in range(10)] == [bytes([number]) * 50_000 for number in range(10)]
        assert current.settle(LIMIT)
        impatient(current, LIMIT)
        asked, before = Threads(monkeypatch), kept(home)
        removed = []
        delete = type(current.catalog.store).delete
        monkeypatch.setattr(
            type(current.catalog.store), "delete",
            lambda store, location: (removed.append(threading.current_thread()), delete(store, location))[1],
        )  # fmt: skip
        with current.catalog.handover(bytes(32), 800_000) as place:
            assert place.lease.size == 800_000
        assert kept(home) < before
        assert removed
        assert threading.main_thread() not in [*asked.found, *removed]
        impatient(current)
        other = sqlite3.connect(home / "catalog.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert isinstance(current.catalog.handover(bytes(32), 900_000), NotKept)
        assert threading.main_thread() not in asked.found
        other.execute("ROLLBACK")
        other.close()


def test_why_a_call_was_computed_is_not_waited_for(sick, home, monkeypatch):
    assert tripled(0) == [0] * 3
    assert sick.settle(LIMIT)
    impatient(sick, LIMIT)
    asked = Threads(monkeypatch)
    assert tripled.explain(0) == "its result is known"
    assert tripled.explain(1)
    sick.health.failed(sick.health.reading, StoreFailure(errno.EIO, "it does not answer"))
    assert "cannot be told" in tripled.explain(2)
    assert threading.main_thread() not in asked.found


def test_results_that_somebody_discards_are_gone_when_that_returns(sick, home, monkeypatch):
    """A deletion is waited for, however sick the catalog is."""
    assert tripled(0) == [0] * 3
    assert sick.settle(LIMIT)
    entries = list(sick.catalog.index.entries())
    sick.health.failed(sick.health.writing, StoreFailure(errno.ENOSPC, "there is no space left"))
    assert sick.catalog.discard(entries) == 1
    assert kept(home) == 0


@pytest.mark.parametrize("dialect", ["polars", "memo"])
def test_a_catalog_that_is_locked_when_a_program_begins(home, monkeypatch, tmp_path, dialect):
    monkeypatch.setattr("nectar.waiting.answering.crowding", lambda: 1.0)
    monkeypatch.setattr("nectar.waiting.health.crowding", lambda: 1.0)
    monkeypatch.setattr("nectar.waiting.health._SHARE", float("inf"))  # the functions of a test take no time
    pl.DataFrame({"a": range(1000)}).write_parquet(tmp_path / "a.parquet")
    with nectar.reuse(home=home, reserve=0):
        assert session.current().catalog is not None
    clock = ManualClock(SystemClock().now())
    current = session.Session(session._settings({"home": home, "reserve": 0, "patience": 0.01}), clock)
    monkeypatch.setattr(session, "_block", ContextVar("session", default=current))

    def run():
        if dialect == "memo":
            return tripled(5)
        lazy = pl.scan_parquet(tmp_path / "a.parquet").select(pl.col("a").sum())
        return lazy.collect(engine=nectar.PolarsEngine()).item()

    right = [5] * 3 if dialect == "memo" else 499500
    other = sqlite3.connect(home / "catalog.db", isolation_level=None)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    assert [run() for _ in range(3)] == [right] * 3
    assert current._catalog is None
    other.close()
    impatient(current, LIMIT)

    def is_reused():
        clock.move(100.0)  # whoever asks the catalog meanwhile takes it for slow
        assert run() == right
        return outcomes(nectar.last_run()) == ["reused"]

    assert tried(is_reused), "it is opened, well again, and has what was pending"
    assert current.settle(LIMIT)
    assert tried(is_reused), "so it is once all is written"
    current.close()


def tried(what):
    """Whether it comes true within a while."""
    for _ in range(1000):
        if what():
            return True
        threading.Event().wait(0.01)
    return False
