"""The index as a running program asks it: it waits for a moment at most, whatever it asks."""

import threading

import pytest
from tests.catalog.making import key

from nectar.catalog.guarded import LATER, READS, WAITED_FOR, WRITES, GuardedIndex
from nectar.catalog.index.base import Index
from nectar.catalog.state import Granted
from nectar.clock import ManualClock
from nectar.errors import CatalogUnavailableError
from nectar.model.entry import Lease, Reservation
from nectar.waiting import answering
from nectar.waiting.answering import asked_for, patience_here, unhurried
from nectar.waiting.health import Health

LONG = 60.0
METHODS = frozenset(name for name in vars(Index) if not name.startswith("_"))
LEASE = Lease("token", "aa/place", "somebody", 10.0, 100)


@pytest.fixture(autouse=True)
def _quiet_machine(monkeypatch):
    monkeypatch.setattr(answering, "crowding", lambda: 1.0)
    monkeypatch.setattr("nectar.waiting.health.crowding", lambda: 1.0)


@pytest.fixture
def gate():
    gate = threading.Event()
    yield gate
    gate.set()


class Asked:
    """An index that notes what it is asked, and by which thread. answers: what methods give; each is called."""

    def __init__(self, **answers):
        self.answers, self.calls = answers, []

    def __getattr__(self, name):
        def method(*arguments, **options):
            self.calls.append((name, arguments, threading.current_thread()))
            answer = self.answers.get(name)
            return answer() if callable(answer) else answer

        return method

    @property
    def asked(self):
        return [name for name, _, _ in self.calls]


def guarded(patience=LONG, **answers):
    health, index = Health("the catalog", patience, ManualClock()), Asked(**answers)
    return GuardedIndex(index, health), index, health


def fallen_sick(health):
    """From now on nothing is asked."""
    for breaker in (health.reading, health.writing):
        breaker.fail(0.0)
    health._probes = {}


def test_it_is_known_of_each_method_whether_a_program_waits_for_it():
    """A new one goes into one of the lists: what only reads, what writes, or what is waited for, with the reason."""
    assert READS | WRITES | set(WAITED_FOR) == METHODS
    assert len(READS) + len(WRITES) + len(WAITED_FOR) == len(METHODS)
    assert all(len(reason) > 20 for reason in WAITED_FOR.values())


@pytest.mark.parametrize("name", sorted(METHODS - set(WAITED_FOR)))
def test_nobody_asks_a_sick_catalog_in_the_name_of_a_program(name):
    index, asked, health = guarded()
    fallen_sick(health)
    with pytest.raises(CatalogUnavailableError):
        list(getattr(index, name)(key(1)))
    assert set(asked.asked) <= {name}
    assert name in ("candidates", "entries") or not asked.calls, "of rows, the first is asked for when it is wanted"


@pytest.mark.parametrize("name", sorted(LATER))
def test_what_nobody_needs_an_answer_to_is_left_to_be_done_beside_the_program(name):
    index, asked, health = guarded(**{name: lambda: None})
    left = []
    health.later = lambda work, size: left.append((work, size))
    fallen_sick(health)
    getattr(index, name)(key(1))
    assert not asked.calls
    ((work, size),) = left
    assert size > 0, "what waits in memory is bounded"
    with unhurried():
        work()
    assert [(called, arguments) for called, arguments, _ in asked.calls] == [(name, (key(1),))]
    health.writing.state = "closed"
    getattr(index, name)(key(2))
    assert len(left) == 1


def test_what_nobody_has_thought_of_goes_through_the_health():
    index, asked, health = guarded()
    fallen_sick(health)
    with pytest.raises(CatalogUnavailableError):
        index.something_new(key(1))
    assert not asked.calls


@pytest.mark.parametrize("name", sorted(WAITED_FOR))
def test_what_somebody_waits_for_is_done(name):
    index, asked, health = guarded(**{name: lambda: 7})
    fallen_sick(health)
    assert getattr(index, name)() == 7
    assert [thread for _, _, thread in asked.calls] == [threading.current_thread()]


def test_whoever_works_beside_the_program_or_is_waited_for_asks_a_sick_catalog():
    index, asked, health = guarded(evict=lambda: 7)
    fallen_sick(health)
    for waiting in (unhurried, asked_for):
        with waiting():
            assert index.evict([]) == 7
    assert asked.asked == ["evict"] * 2


def test_rows_are_read_by_a_thread_that_may_hang_some_at_a_time():
    threads = []

    def rows():
        for number in range(1200):
            threads.append(threading.current_thread())
            yield number

    index, _, health = guarded(candidates=rows)
    found = index.candidates()
    assert next(found) == 0
    assert len(threads) == 500
    assert [0, *found] == list(range(1200))
    assert threading.main_thread() not in threads
    assert health.is_well


def test_what_was_granted_when_nobody_waited_any_more_is_given_back(gate):
    reservation = Reservation(key(1), "mine", "me", 10.0)

    def granted(answer):
        gate.wait(LONG)
        return answer

    given_back = threading.Semaphore(0)
    index, asked, health = guarded(
        0.01,
        reserve=lambda: granted(Granted(reservation)), announce=lambda: granted(True),
        release_reservation=given_back.release, drop_leases=given_back.release,
    )  # fmt: skip
    for ask in (lambda: index.reserve(reservation, 0.0), lambda: index.announce(LEASE, None, 0.0)):
        health.writing.state, health._allowance.lost = "closed", 0.0  # however long the machine took before
        with pytest.raises(CatalogUnavailableError):
            ask()
    gate.set()
    assert all(given_back.acquire(timeout=LONG) for _ in range(2))
    told = {name: arguments for name, arguments, _ in asked.calls}
    assert told["release_reservation"] == ("mine",)
    assert told["drop_leases"] == (["token"],)


def test_what_is_read_directly_waits_for_locks_no_longer_than_what_another_thread_reads():
    index, asked, health = guarded(0.5, lookup=lambda: patience_here(30.0))
    health.is_remote = False
    assert index.lookup([]) == 0.5
    assert index.lookup([]) == 0.5
    first, second = (thread for _, _, thread in asked.calls)
    assert (first is threading.current_thread(), second is threading.current_thread()) == (False, True)
    assert patience_here(30.0) == 30.0
