"""Forks, and threads that are inside SQLite or wait for it."""

import os
import sqlite3
import threading

import pytest
from tests.catalog.making import entry, key

from nectar.catalog.index import inside as gate
from nectar.catalog.index import locks
from nectar.catalog.index.inside import inside
from nectar.catalog.index.sqlite import SqliteIndex
from nectar.errors import CatalogUnavailableError

LONG = 60.0
NOW = 1_000_000.0

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")


@pytest.fixture
def index(tmp_path):
    index = SqliteIndex(tmp_path / "catalog.db")
    index.add(entry(1), "", 0.0, NOW)
    yield index
    index.close()


@pytest.fixture
def someone_writes(index):
    """Another process has the lock of writers."""
    other = sqlite3.connect(index.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


@pytest.fixture
def started():
    """Starts threads; they have ended when the test has."""
    threads = []

    def start(work):
        threads.append(threading.Thread(target=work))
        threads[-1].start()
        return threads[-1]

    yield start
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()


def code_of_child(work):
    """What the work gives in a child that is forked now."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_two_threads_that_fork_at_once_leave_nothing_behind(index, started, monkeypatch):
    """One begins first and ends last."""
    begun, ended, waits = threading.Event(), threading.Event(), threading.Event()
    sleep = gate.sleep
    monkeypatch.setattr(gate, "sleep", lambda seconds: (waits.set(), sleep(seconds)))

    def first():
        gate._close()
        begun.set()
        ended.wait(LONG)
        gate._open()

    thread = started(first)
    assert begun.wait(LONG)
    gate._close()
    assert not gate._stuck, "neither is in the way of the other"
    gate._open()
    writer = started(lambda: index.touch({key(1): (1, NOW)}))
    assert waits.wait(LONG), "nobody comes in while the first has not forked"
    assert not gate._inside
    ended.set()
    thread.join(LONG)
    writer.join(LONG)
    assert index.lookup([key(1)])[key(1)].hits == 1
    assert not gate._inside
    assert not gate._forking


def test_threads_that_fork_at_once_while_one_writes(index, started):
    stop, failures = threading.Event(), []

    def write():
        while not stop.is_set():
            index.touch({key(1): (1, NOW)})

    def fork():
        failures.extend(code for _ in range(10) if (code := code_of_child(lambda: len(index.lookup([key(1)])) - 1)))

    started(write)
    for thread in [started(fork) for _ in range(3)]:
        thread.join(LONG)
    stop.set()
    assert not failures
    assert not gate._forking


def test_a_thread_that_waits_for_others_to_write_is_not_waited_for(index, someone_writes, started, monkeypatch):
    waits, go_on = threading.Event(), threading.Event()

    def sleep(_):
        waits.set()
        go_on.wait(LONG)

    with monkeypatch.context() as patched:
        patched.setattr(gate, "sleep", sleep)
        writer = started(lambda: index.touch({key(1): (1, NOW)}))
        assert waits.wait(LONG)
        assert not gate._inside
        assert code_of_child(lambda: 0 if not gate.is_cut_off() and index.lookup([key(1)]) else 1) == 0
        someone_writes.execute("ROLLBACK")
        go_on.set()
        writer.join(LONG)
    assert index.lookup([key(1)])[key(1)].hits == 1


def test_a_thread_that_waits_while_it_opens_a_catalog_is_not_waited_for(tmp_path, index, started, monkeypatch):
    index.close()
    other = sqlite3.connect(index.path, isolation_level=None)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    waits, go_on, opened = threading.Event(), threading.Event(), []

    def sleep(_):
        waits.set()
        go_on.wait(LONG)

    with monkeypatch.context() as patched:
        patched.setattr(gate, "sleep", sleep)
        opener = started(lambda: opened.append(SqliteIndex(index.path)))
        assert waits.wait(LONG)
        assert code_of_child(lambda: int(gate.is_cut_off())) == 0
        other.close()
        go_on.set()
        opener.join(LONG)
    assert opened[0].lookup([key(1)])
    opened[0].close()


def test_a_child_that_is_born_while_a_thread_is_inside_never_uses_sqlite(index, started, monkeypatch):
    monkeypatch.setattr(gate, "_PATIENCE", 0.0)
    entered, leave = threading.Event(), threading.Event()

    def stay():
        with inside:
            entered.set()
            leave.wait(LONG)

    started(stay)
    assert entered.wait(LONG)

    def refused():
        count = 0
        for _ in range(3):  # not the first time alone
            try:
                index.lookup([key(1)])
            except CatalogUnavailableError:
                count += 1
        index.close()  # nobody waits for a lock of the parent
        return count

    assert code_of_child(refused) == 3
    assert code_of_child(lambda: code_of_child(refused)) == 3, "nor do its children"
    leave.set()
    assert index.lookup([key(1)]), "the parent goes on"


def test_who_waits_within_a_block_is_inside_afterwards():
    with inside, inside:
        gate.wait_outside(0.0)
        assert gate._inside == {threading.get_ident(): 2}
    assert not gate._inside


def test_what_waits_is_said_by_those_who_wait(index, someone_writes, monkeypatch):
    """Whatever waits for SQLite does so outside of it."""
    waited = []
    monkeypatch.setattr(locks, "wait_outside", lambda _: (waited.append(1), someone_writes.execute("ROLLBACK")))
    index.touch({key(1): (1, NOW)})
    assert waited == [1]
