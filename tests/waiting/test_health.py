"""The health of a catalog: asked while it is well, left alone while it is not, and told of once."""

import contextlib
import errno
import logging
import threading

import pytest

from nectar.clock import ManualClock
from nectar.errors import CatalogFailure, CatalogUnavailableError, InputFailure, StoreFailure
from nectar.waiting import answering
from nectar.waiting.answering import unhurried
from nectar.waiting.breaker import EXHAUSTED, FIRST, TIMES
from nectar.waiting.health import Health, is_passing, worth

LONG = 60.0


@pytest.fixture(autouse=True)
def _quiet_machine(monkeypatch):
    monkeypatch.setattr(answering, "crowding", lambda: 1.0)
    monkeypatch.setattr("nectar.waiting.health.crowding", lambda: 1.0)


@pytest.fixture
def gate():
    gate = threading.Event()
    yield gate
    gate.set()


@pytest.fixture
def clock():
    return ManualClock()


def health_of(clock, patience=LONG):
    return Health("the catalog", patience, clock)


def locked():
    raise CatalogUnavailableError("another process kept it locked")


def count_of(caplog):
    return len([each for each in caplog.records if each.levelno >= logging.WARNING])


def test_what_may_pass_and_what_does_not():
    assert is_passing(CatalogUnavailableError("locked"))
    assert is_passing(StoreFailure(errno.ENOSPC, "no space left"))
    assert is_passing(StoreFailure(errno.EROFS, "only read"))
    assert not is_passing(StoreFailure(errno.EACCES, "denied"))
    assert not is_passing(CatalogFailure("damaged"))
    assert not is_passing(InputFailure(errno.EIO, "a file of the program")), "which says nothing of the catalog"
    assert not is_passing(ValueError())


def test_a_catalog_that_fails_is_asked_once_and_told_of_once(clock, caplog):
    health, asked = health_of(clock), []

    def work():
        asked.append(1)
        locked()

    for _ in range(1000):
        with pytest.raises(CatalogUnavailableError, match="locked"):
            health.ask(work, health.writing)
    assert len(asked) == 1
    assert count_of(caplog) == 1
    assert not health.is_well
    assert health.ask(lambda: "read", health.reading) == "read", "what reads fails by itself"


def test_what_is_wrong_with_a_question_says_nothing_of_the_catalog(clock, caplog):
    health = health_of(clock)
    for _ in range(3):
        with pytest.raises(CatalogFailure, match="damaged"):
            health.ask(lambda: (_ for _ in ()).throw(CatalogFailure("damaged")), health.reading)
    assert health.is_well
    assert count_of(caplog) == 0


def test_one_that_does_not_answer_is_waited_for_once(clock, caplog, gate):
    health, asked = health_of(clock, 0.01), []
    for _ in range(1000):
        with pytest.raises(CatalogUnavailableError):
            health.ask(lambda: (asked.append(1), gate.wait()), health.reading)
    assert len(asked) <= 1, "on a busy machine the thread may not even have begun"
    assert count_of(caplog) == 0, "a machine that was busy for a moment is nothing to tell of"
    clock.move(TIMES * 0.01)
    for _ in range(2):
        with pytest.raises(CatalogUnavailableError, match="did not answer"):
            health.ask(pytest.fail, health.reading)
    assert count_of(caplog) == 1


def test_it_is_told_of_where_the_program_ends_at_the_latest(clock, caplog, gate):
    health = health_of(clock, 0.01)
    health.tell_at_end()
    assert count_of(caplog) == 0
    with pytest.raises(CatalogUnavailableError):
        health.ask(gate.wait, health.reading)
    health.tell_at_end()
    health.tell_at_end()
    assert count_of(caplog) == 1


def test_probes_run_beside_the_program_one_at_a_time_and_close_it(clock, caplog):
    health, probing, probed, well = health_of(clock), threading.Event(), [], threading.Event()

    def probe():
        probed.append(threading.get_ident())
        probing.wait(LONG)

    health.probe_with(pytest.fail, probe)
    health.when_well(well.set)
    for _ in range(5):
        with pytest.raises(CatalogUnavailableError):
            health.ask(locked, health.writing)
    assert probed == []
    clock.move(FIRST)
    for _ in range(5):
        with pytest.raises(CatalogUnavailableError):
            health.ask(pytest.fail, health.writing)
    probing.set()
    assert well.wait(LONG)
    assert len(probed) == 1
    assert probed != [threading.get_ident()]
    assert health.ask(lambda: 1, health.writing) == 1
    assert count_of(caplog) == 1


def test_a_probe_that_fails_or_takes_too_long_leaves_it_open_for_longer(clock, gate):
    health, ended = health_of(clock), threading.Semaphore(0)
    answers = [locked, lambda: clock.move(2 * LONG), lambda: None]
    health.probe_with(pytest.fail, lambda: answers.pop(0)())
    original = health._probed
    health._probed = lambda *given: (original(*given), ended.release())
    with pytest.raises(CatalogUnavailableError):
        health.ask(locked, health.writing)
    for pause in (FIRST, 2 * FIRST, 4 * FIRST):
        for _ in range(2):  # half of the pause, which is too soon; and the other half
            with pytest.raises(CatalogUnavailableError):
                health.ask(pytest.fail, health.writing)
            clock.move(pause / 2)
        with pytest.raises(CatalogUnavailableError):
            health.ask(pytest.fail, health.writing)
        assert ended.acquire(timeout=LONG)
    assert answers == []
    assert health.is_well


def test_setting_the_clock_changes_nothing(clock):
    health = health_of(clock)
    with pytest.raises(CatalogUnavailableError):
        health.ask(locked, health.writing)
    health.probe_with(pytest.fail, pytest.fail)
    for jump in (3600.0, -300.0):
        clock.set(jump)
        with pytest.raises(CatalogUnavailableError):
            health.ask(pytest.fail, health.writing)
    assert health.writing.state == "open", "no pause is over, and none is longer"


def test_threads_beside_the_program_are_not_held_back(clock):
    health = health_of(clock)
    with pytest.raises(CatalogUnavailableError):
        health.ask(locked, health.writing)
    with unhurried():
        assert health.ask(lambda: 1, health.writing) == 1


# answers that come, but take longer than usual


def slowly(clock, health, seconds, breaker=None):
    """How often a program is served, of a hundred times, if each answer takes so long."""
    served = 0
    for _ in range(100):
        with contextlib.suppress(CatalogUnavailableError):
            health.ask(lambda: clock.move(seconds), breaker or health.writing)
            served += 1
    return served


@pytest.mark.parametrize("seconds", [0.02, 0.03, 0.049])
def test_a_program_that_is_served_slowly_loses_no_more_than_one_that_is_not_served(clock, caplog, seconds):
    health = health_of(clock, 0.05)
    begun = clock.elapsed()
    served = slowly(clock, health, seconds)
    assert 0 < served < 100
    assert clock.elapsed() - begun - served * 0.01 <= TIMES * 0.05
    assert health.is_well, "what is written beside the program is kept"
    assert count_of(caplog) == 0, "and nobody need be told"
    assert health.ask(lambda: "found", health.reading) == "found"
    clock.move(EXHAUSTED)
    assert slowly(clock, health, 0.0) == 100


def test_a_lock_that_is_held_in_slices_costs_no_more_than_one_that_is_held_all_the_time(clock):
    """Each attempt fails when its time is over, and what is written beside the program finds its turn in between."""
    health = health_of(clock, 0.05)
    begun, asked = clock.elapsed(), []

    def in_vain():
        asked.append(1)
        clock.move(0.05)
        locked()

    for _ in range(1000):
        with pytest.raises(CatalogUnavailableError):
            health.ask(in_vain, health.writing)
        health.succeeded(health.writing)
    assert len(asked) < TIMES
    assert clock.elapsed() - begun <= TIMES * 0.05
    assert health.ask(lambda: "found", health.reading) == "found"


def test_answers_in_the_usual_time_cost_nothing(clock):
    health = health_of(clock, 0.05)
    assert slowly(clock, health, 0.009) == 100


def test_where_many_want_to_run_everything_takes_longer(clock, monkeypatch):
    monkeypatch.setattr("nectar.waiting.health.crowding", lambda: 10.0)
    assert slowly(clock, health_of(clock, 0.05), 0.09) == 100


def test_reading_is_accounted_for_by_whoever_looks(clock):
    health = health_of(clock, 0.05)
    assert slowly(clock, health, 0.04, health.reading) == 100, "what is found may pay for it"


def test_what_saves_a_long_time_is_asked_for_however_slowly_it_comes(clock):
    health = health_of(clock, 0.05)
    with worth(2.0):
        assert slowly(clock, health, 0.04) == 100
    assert slowly(clock, health, 0.04) < 100
    with worth(2.0):
        assert slowly(clock, health, 0.04) == 100
    with worth(0.1):
        assert slowly(clock, health, 0.04) == 0
    assert slowly(clock, health, 0.04) == 0, "what something is worth counts within the block"
