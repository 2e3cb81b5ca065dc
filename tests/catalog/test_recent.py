"""Results that are found again and again: without a look-up, and never longer than the catalog stays as it is."""

import os
import sqlite3
import threading

import pytest
from tests.catalog.making import key, opened, value

import nectar
from nectar import session
from nectar.catalog.recent import _MOST_BYTES, _MOST_KEYS
from nectar.errors import CatalogUnavailableError
from nectar.store.read import Result

PROGRAM = key(0)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def catalog(home):
    catalog = opened(home)
    yield catalog
    catalog.close()


def keep(catalog, number, size=200):
    return catalog.keep(key(number), PROGRAM, value(number, size)).entry


def asked(catalog, number):
    """Whether a result was remembered; whoever asks looks it up otherwise."""
    recent = catalog.recent
    state = recent.state(key(number))
    known = None if state is None else recent.find(key(number), state)
    if known is not None:
        assert known.result.to_object() == value(number)[: len(known.result.to_object())]
        return True
    entry = catalog.lookup([key(number)], [PROGRAM])[0].entry
    if entry is not None:
        result = catalog.open(entry)
        assert isinstance(result, Result)
        recent.found(key(number), state, entry, result)
    return False


def test_what_is_asked_for_a_third_time_is_not_looked_up(catalog):
    keep(catalog, 1)
    catalog.flush()
    assert [asked(catalog, 1) for _ in range(5)] == [False, False, True, True, True]


@pytest.mark.parametrize("write", ["another result", "its own eviction", "a name", "uses"])
def test_whatever_this_process_writes_it_is_looked_up_again(catalog, write):
    entry = keep(catalog, 1)
    assert [asked(catalog, 1) for _ in range(3)] == [False, False, True]
    {
        "another result": lambda: keep(catalog, 2),
        "its own eviction": lambda: catalog.discard([entry]),
        "a name": lambda: catalog.index.bind("a/name", key(1), "who", 0.0, ""),
        "uses": catalog.flush,
    }[write]()
    assert not asked(catalog, 1)
    assert asked(catalog, 1) == (write != "its own eviction")


def test_what_another_process_evicts_is_gone(home, catalog):
    entry = keep(catalog, 1)
    catalog.flush()
    assert [asked(catalog, 1) for _ in range(3)] == [False, False, True]
    child = os.fork()
    if not child:
        other = opened(home)
        os._exit(0 if other.discard([entry]) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not asked(catalog, 1)
    assert catalog.lookup([key(1)], [PROGRAM])[0].entry is None


def test_a_row_that_others_write_between_is_never_missed(home, catalog):
    """The state is that before the look-up: what is written after it makes the next one another."""
    entry = keep(catalog, 1)
    catalog.flush()
    recent = catalog.recent
    assert recent.state(key(1)) is None
    state = recent.state(key(1))
    found = catalog.open(catalog.lookup([key(1)], [PROGRAM])[0].entry)
    with sqlite3.connect(home / "catalog.db") as other:
        other.execute("DELETE FROM entries WHERE key = ?", (key(1),))
    recent.found(key(1), state, entry, found)
    assert recent.find(key(1), recent.state(key(1))) is None


def test_it_is_read_by_the_second_connection_while_a_thread_writes(catalog):
    keep(catalog, 1)
    catalog.flush()
    assert [asked(catalog, 1) for _ in range(3)] == [False, False, True]
    index = catalog.index
    before = index.version()
    assert index.version() == before
    with index._lock:
        seen = []
        thread = threading.Thread(target=lambda: seen.extend([index.version(), index.version()]))
        thread.start()
        thread.join()
    assert seen[0] == seen[1]
    assert seen[0] != before, "another connection counts for itself"


class Interrupted:
    """A connection whose transactions end in an interrupt, right after they were committed."""

    def __init__(self, connection):
        self._connection = connection

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def execute(self, statement, *values):
        found = self._connection.execute(statement, *values)
        if statement == "COMMIT":
            raise KeyboardInterrupt
        return found


def test_what_was_written_when_an_interrupt_came_is_noticed(catalog):
    entry = keep(catalog, 1)
    catalog.flush()
    assert [asked(catalog, 1) for _ in range(3)] == [False, False, True]
    index = catalog.index
    connection = index._connection
    index._connection = Interrupted(connection)
    with pytest.raises(KeyboardInterrupt):
        index.evict([entry.key], 0.0)
    index._connection = connection
    assert not asked(catalog, 1)
    assert catalog.lookup([key(1)], [PROGRAM])[0].entry is None


def test_in_a_child_it_is_looked_up(catalog):
    keep(catalog, 1)
    catalog.flush()
    assert [asked(catalog, 1) for _ in range(3)] == [False, False, True]
    child = os.fork()
    if not child:
        os._exit(1 if asked(catalog, 1) else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert asked(catalog, 1)


def test_nothing_is_remembered_while_the_catalog_cannot_be_asked(catalog, monkeypatch):
    keep(catalog, 1)
    catalog.flush()
    assert [asked(catalog, 1) for _ in range(3)] == [False, False, True]

    def unavailable():
        raise CatalogUnavailableError("it does not answer")

    monkeypatch.setattr(catalog.recent._index, "version", unavailable)
    assert catalog.recent.state(key(1)) is None
    assert not asked(catalog, 1)


def test_large_results_are_looked_up_and_memory_is_bounded(catalog):
    keep(catalog, 1, size=200_000)
    catalog.flush()
    assert [asked(catalog, 1) for _ in range(4)] == [False] * 4
    entry = keep(catalog, 2)
    recent = catalog.recent
    result = catalog.open(entry)
    for number in range(3 * _MOST_KEYS):
        recent.state(key(number))
        recent.found(key(number), "state", entry, result)
    assert len(recent._asked) <= _MOST_KEYS
    assert sum(each.entry.size for each in recent._known.values()) <= _MOST_BYTES


# through a memoised function


@nectar.memo
def doubled(text):
    return [text, text]


def test_a_result_that_is_forgotten_is_computed_again(home):
    with nectar.reuse(home=home, reserve=0, overhead="unlimited") as run:
        assert [doubled("a") for _ in range(5)] == [["a", "a"]] * 5
        session.current().settle()
        assert [doubled("a") for _ in range(5)] == [["a", "a"]] * 5
        with sqlite3.connect(home / "catalog.db") as other:  # as `nectar forget` does, in another process
            assert other.execute("DELETE FROM entries").rowcount == 1
        assert doubled("a") == ["a", "a"]
    assert [part.outcome for part in run.parts][:1] == ["computed"]
    assert [part.outcome for part in run.parts][-2:] == ["reused", "computed"]


def test_each_hit_gives_a_list_of_its_own_and_counts(home):
    with nectar.reuse(home=home, reserve=0, overhead="unlimited"):
        doubled("b")
        current = session.current()
        current.settle()
        for _ in range(10):
            found = doubled("b")
            found.append("changed")
        assert doubled("b") == ["b", "b"]
        current.catalog.flush()
        (entry,) = current.catalog.index.entries()
        assert entry.hits == 11


def test_a_result_that_has_become_too_old_is_computed_again(home):
    clock = nectar.clock.ManualClock(nectar.clock.SystemClock().now())
    brief = nectar.memo(doubled.func, ttl=100.0)
    current = session.Session(session._settings({"home": home, "reserve": 0, "overhead": "unlimited"}), clock)
    token = session._block.set(current)
    try:
        brief("c")
        current.settle()
        for _ in range(4):
            brief("c")
            assert nectar.last_run().parts[0].outcome == "reused"
        clock.move(101.0)
        brief("c")
        assert nectar.last_run().parts[0].outcome == "computed"
    finally:
        session._block.reset(token)
        current.close()
