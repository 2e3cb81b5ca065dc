"""Work that nobody waits for: done in order, bounded in memory, waited for at the end, and never in the way."""

import logging
import threading
import time

import pytest

from nectar.catalog.keeper import Keeper
from nectar.clock import ManualClock
from nectar.errors import CatalogUnavailableError
from nectar.waiting.answering import step
from nectar.waiting.health import Health

LIMIT = 10.0


@pytest.fixture
def gate():
    gate = threading.Event()
    yield gate
    gate.set()


def test_work_is_done_in_order_in_a_thread_of_its_own():
    keeper, done = Keeper(), []
    for number in range(50):
        keeper.submit(lambda number=number: done.append((number, threading.current_thread().name)))
    assert keeper.wait(LIMIT)
    assert done == [(number, "nectar-keeper") for number in range(50)]


HOURS = 10_000.0


@pytest.mark.parametrize("hurry", [lambda keeper: keeper.wait(LIMIT), Keeper.drain, lambda keeper: keeper.close(LIMIT)])
def test_the_program_has_a_moment_for_itself_unless_somebody_waits(hurry):
    keeper, done = Keeper(pause=HOURS), []
    for number in range(3):
        keeper.submit(lambda number=number: done.append(number))
    threading.Event().wait(0.05)
    assert done == []
    hurry(keeper)
    assert done == [0, 1, 2]


def test_after_that_moment_the_work_is_done_though_nobody_waits():
    keeper, done = Keeper(pause=0.01), threading.Event()
    keeper.submit(done.set)
    assert done.wait(LIMIT)


def test_what_is_brought_while_somebody_waits_is_not_put_off(gate):
    keeper, done = Keeper(pause=HOURS), threading.Event()
    keeper.submit(lambda: gate.wait(LIMIT))
    waiting = threading.Thread(target=keeper.wait, args=(LIMIT,))
    waiting.start()
    keeper.submit(done.set)
    gate.set()
    assert done.wait(LIMIT)
    waiting.join(LIMIT)


def test_a_waiter_whose_time_is_up_hurries_nobody_any_more(gate):
    keeper, done = Keeper(pause=HOURS), []
    keeper.submit(lambda: gate.wait(LIMIT))
    assert not keeper.wait(0.01)
    keeper.submit(lambda: done.append(1))
    gate.set()
    threading.Event().wait(0.05)
    assert done == []
    assert keeper.wait(LIMIT)


def test_nothing_is_put_off_while_much_of_the_memory_is_taken():
    keeper, done = Keeper(most_bytes=100, pause=HOURS), threading.Event()
    keeper.submit(done.set, 26)
    assert done.wait(LIMIT)


def test_nothing_to_do_needs_no_thread():
    before = set(threading.enumerate())
    keeper = Keeper()
    assert keeper.wait(0)
    assert keeper.close(0)
    assert set(threading.enumerate()) <= before  # one of somebody else's may have ended meanwhile


def test_waiting_ends_when_the_time_is_up(gate):
    keeper = Keeper()
    keeper.submit(lambda: gate.wait(LIMIT))
    assert not keeper.wait(0.01)
    gate.set()
    assert keeper.wait(LIMIT)


def test_whoever_brings_too_much_does_its_work_first(gate):
    keeper, threads = Keeper(most_bytes=100), []
    keeper.submit(lambda: gate.wait(LIMIT), 60)
    keeper.submit(lambda: threads.append("queued"), 40)
    keeper.submit(lambda: threads.append(threading.current_thread()), 1)
    assert threads == [threading.current_thread()], "done at once, by the one who brought it"
    gate.set()
    assert keeper.wait(LIMIT)
    assert threads[1:] == ["queued"]


def test_one_piece_may_be_larger_than_the_limit(gate):
    keeper, threads = Keeper(most_bytes=10), []
    keeper.submit(lambda: threads.append(threading.current_thread()), 1000)
    assert keeper.wait(LIMIT)
    assert threads != [threading.current_thread()]
    keeper.submit(lambda: threads.append("again"), 1000)
    assert keeper.wait(LIMIT)
    assert threads[1] == "again", "its bytes are given back"


def test_work_that_fails_stops_nothing(caplog):
    keeper, done = Keeper(), []
    keeper.submit(lambda: 1 / 0, 5)
    keeper.submit(lambda: done.append(1), 5)
    assert keeper.wait(LIMIT)
    assert done == [1]
    assert len(caplog.records) == 1
    assert keeper._held == 0


class Panic(BaseException):
    """As libraries written in Rust raise it: no Exception."""


@pytest.mark.parametrize("raised", [Panic, KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("health", [None, "healthy"])
def test_whatever_work_raises_others_are_done_and_who_waits_goes_on(caplog, raised, health):
    keeper, done, over = Keeper(pause=0.0, health=health and sick_one()), [], []

    def bad():
        raise raised

    keeper.submit(bad, 5, lambda: over.append(1))
    keeper.submit(lambda: done.append(threading.current_thread().name), 5, bad)
    keeper.submit(lambda: done.append(2), 5)
    waiting = threading.Thread(target=keeper.drain, daemon=True)
    waiting.start()
    waiting.join(LIMIT)
    assert not waiting.is_alive()
    assert keeper.wait(LIMIT)
    assert done == ["nectar-keeper", 2]
    assert over == [1]
    assert keeper._held == 0
    assert len(caplog.records) == 2, "of work, and of who was to hear that it was over"
    assert keeper.close(LIMIT)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_work_that_is_interrupted_is_done_once_more(raised):
    keeper, attempts = Keeper(pause=0.0), []

    def interrupted():
        attempts.append(1)
        if len(attempts) == 1:
            raise raised

    keeper.submit(interrupted)
    assert keeper.wait(LIMIT)
    assert len(attempts) == 2


def test_nobody_waits_for_ever_if_the_thread_fails_beside_the_work(monkeypatch):
    keeper, done = Keeper(pause=0.0), []
    monkeypatch.setattr(keeper._ledger, "spend", lambda *_: [][0])
    for number in range(3):
        keeper.submit(lambda number=number: done.append(number))
    assert keeper.wait(LIMIT)
    assert done == [0, 1, 2]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_of_the_program_is_the_programs(raised):
    keeper, over = Keeper(), []
    assert keeper.close(0)

    def interrupted():
        raise raised

    with pytest.raises(raised):  # no other thread does it any more
        keeper.submit(interrupted, 0, lambda: over.append(1))
    assert over == [1]


def test_bringing_work_raises_nothing_though_nobody_can_be_told_that_it_was_dropped():
    keeper = Keeper(most_bytes=100, pause=0.0, health=sick_one())
    keeper.submit(Failing(), 90)
    keeper.wait()

    def over():
        raise CatalogUnavailableError("it is locked")

    keeper.submit(Failing(), 90, over)


def test_the_end_waits_but_not_for_ever(gate, caplog):
    keeper, done = Keeper(), []
    keeper.submit(lambda: gate.wait(LIMIT))
    for number in range(3):
        keeper.submit(lambda number=number: done.append(number))
    with caplog.at_level(logging.WARNING):
        assert not keeper.close(0.05)
    assert "not written" in caplog.text
    assert "linger" in caplog.text
    gate.set()
    assert keeper.wait(LIMIT)
    assert done == []


def test_work_brought_after_the_end_is_done_at_once():
    keeper, threads = Keeper(), []
    assert keeper.close(0)
    keeper.submit(lambda: threads.append(threading.current_thread()))
    assert threads == [threading.current_thread()]


def test_work_may_bring_more_work():
    keeper, done = Keeper(), []
    keeper.submit(lambda: keeper.submit(lambda: done.append(1)))
    assert keeper.close(LIMIT)
    assert done == [1]


def test_many_threads_bring_work():
    keeper, done = Keeper(most_bytes=10), []
    threads = [
        threading.Thread(target=lambda: [keeper.submit(lambda: done.append(1), 3) for _ in range(100)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert keeper.close(LIMIT)
    assert len(done) == 800
    assert keeper._held == 0


def test_the_thread_ends_with_the_keeper():
    keeper = Keeper()
    keeper.submit(lambda: None)
    assert keeper.close(LIMIT)
    keeper._thread.join(LIMIT)
    assert not keeper._thread.is_alive()


def test_draining_waits_for_what_came_before_and_for_nothing_else():
    keeper = Keeper()
    done, more = [], []

    def again():
        more.append(1)
        if len(more) < 10_000:
            keeper.submit(again)

    keeper.submit(again)
    keeper.submit(lambda: done.append("mine"))
    keeper.drain()
    assert done == ["mine"]
    assert len(more) < 10_000
    keeper.close(10)
    keeper.drain()


def test_draining_waits_for_a_piece_that_is_larger_than_the_limit(gate):
    keeper = Keeper(most_bytes=10)
    done = []
    keeper.submit(lambda: (gate.wait(), done.append("large")), size=100)
    threading.Timer(0.1, gate.set).start()
    keeper.drain()
    assert done == ["large"]
    keeper.close(10)


# while the catalog cannot be used


def sick_one():
    return Health("the catalog", HOURS, ManualClock())


class Failing:
    """Work that fails until it is well, and counts its attempts."""

    def __init__(self):
        self.well, self.attempts, self.over = False, 0, 0

    def __call__(self):
        self.attempts += 1
        if not self.well:
            raise CatalogUnavailableError("locked")

    def end(self):
        self.over += 1


def warnings_of(caplog):
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def test_what_could_not_be_written_waits_and_is_written_when_it_is_well_again(caplog):
    health = sick_one()
    keeper, pieces = Keeper(pause=0.0, health=health), [Failing() for _ in range(20)]
    for piece in pieces:
        keeper.submit(piece, 10, piece.end)
    assert not keeper.wait(), "it returns, though nothing could be done"
    assert not health.is_well
    assert sum(piece.attempts for piece in pieces) < 20, "one attempt is enough to know that"
    assert sum(piece.over for piece in pieces) == 0
    assert keeper._held == 200
    for piece in pieces:
        piece.well = True
    assert keeper.wait(LIMIT)
    assert health.is_well
    assert [piece.over for piece in pieces] == [1] * 20
    assert keeper._held == 0
    assert len(warnings_of(caplog)) == 1


def test_it_is_tried_again_as_soon_as_somebody_finds_the_catalog_well():
    health = sick_one()
    keeper, piece, ended = Keeper(pause=0.0, health=health), Failing(), threading.Event()
    keeper.submit(piece, 10, ended.set)
    keeper.drain()
    for _ in range(12):
        keeper.wait()  # the pause until the next attempt has grown far beyond the time of a test
    piece.well = True
    health.succeeded(health.writing)
    assert ended.wait(LIMIT)


def test_what_is_too_much_for_the_memory_is_dropped_meanwhile(caplog):
    keeper, pieces = Keeper(most_bytes=100, pause=0.0, health=sick_one()), [Failing() for _ in range(20)]
    for piece in pieces:
        keeper.submit(piece, 30, piece.end)
        keeper.wait()
    assert keeper._held == 90
    assert [piece.over for piece in pieces] == [0] * 3 + [1] * 17
    assert [piece.attempts for piece in pieces[3:]] == [0] * 17, "whoever brought it did not try either"
    for piece in pieces:
        piece.well = True
    assert keeper.wait(LIMIT)
    assert [piece.over for piece in pieces] == [1] * 20
    assert len(warnings_of(caplog)) == 1


def test_one_that_never_fits_does_not_stop_the_others():
    keeper, large, done = Keeper(pause=0.0, health=sick_one()), Failing(), []
    keeper.submit(large, 1)
    keeper.wait()
    keeper.submit(lambda: done.append(1), 1)
    keeper.wait()
    keeper.wait()
    assert done == [1]


def test_the_end_does_not_wait_for_a_sick_catalog(caplog):
    keeper, piece = Keeper(pause=0.0, health=sick_one()), Failing()
    keeper.submit(piece, 10, piece.end)
    keeper.wait()
    assert not keeper.close(HOURS)
    assert piece.over == 1
    assert len(warnings_of(caplog)) == 1, "which was said before"


def test_what_goes_wrong_after_the_end_is_told_by_nobody(gate, caplog):
    """The catalog was closed for a thread that nobody waited for any longer."""
    health = Health("the catalog", 0.01, ManualClock())
    keeper, begun, over = Keeper(pause=0.0, health=health), threading.Event(), threading.Event()

    def work():
        begun.set()
        gate.wait(LIMIT)
        raise CatalogUnavailableError("it was closed")

    keeper.submit(work, over=over.set)
    assert begun.wait(LIMIT)
    assert not keeper.close(0.01)
    before = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(before) == 1
    gate.set()
    assert over.wait(LIMIT)
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING] == before


def test_the_end_waits_for_a_disk_that_goes_on_and_not_for_one_that_hangs(gate, monkeypatch):
    monkeypatch.setattr("nectar.catalog.keeper.crowding", lambda: 1.0)
    keeper = Keeper(pause=0.0, health=Health("the catalog", 0.25, ManualClock()))

    def goes_on():
        for _ in range(30):
            time.sleep(0.05)
            step()

    done = []
    keeper.submit(goes_on)
    keeper.submit(lambda: done.append(1))
    assert keeper.close(HOURS)
    assert done == [1]
    hanging = Keeper(pause=0.0, health=Health("the catalog", 0.005, ManualClock()))
    hanging.submit(gate.wait)
    assert not hanging.close(HOURS)


def test_a_program_that_brings_too_much_does_not_wait_for_a_disk_that_hangs(gate):
    keeper = Keeper(most_bytes=10, pause=0.0, health=Health("the catalog", 0.005, ManualClock()))
    keeper.submit(gate.wait, 10)
    for _ in range(3):
        keeper.submit(gate.wait, 0)
    keeper.submit(gate.wait, 1)
    assert not gate.is_set()
