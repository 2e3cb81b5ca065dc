"""Computing once: flights among threads, reservations among processes; nobody waits for itself or for the dead."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from tests.catalog.making import As, dead_process, key, manual_clock, opened, process_as, value

from nectar.catalog.flights import HOLD, Flights, Reservations, leading
from nectar.errors import CatalogUnavailableError
from nectar.model.entry import Entry, Reservation

LIMIT = 10.0


# among threads


def test_one_leads_and_the_others_get_what_it_has():
    table = Flights()
    flight = table.begin(key(1))
    assert flight is not None
    assert table.begin(key(1)) is None
    assert table.begin(key(2)) is not None, "another key is another flight"
    found = table.find(key(1))
    assert found is flight
    assert not found.future.done()
    table.land(flight, "result")
    assert table.find(key(1)).future.result(0) == "result", "landed, and not yet in the catalog"
    table.end(flight)
    assert table.find(key(1)) is None


def test_a_flight_that_comes_to_nothing_ends_at_once():
    table = Flights()
    flight = table.begin(key(1))
    table.land(flight, None)
    assert flight.future.result(0) is None
    assert table.find(key(1)) is None
    assert table.begin(key(1)) is not None


def test_ending_an_old_flight_leaves_the_new_one():
    table = Flights()
    old = table.begin(key(1))
    table.land(old, None)
    new = table.begin(key(1))
    table.end(old)
    assert table.find(key(1)) is new


def test_a_computation_does_not_wait_for_itself():
    table = Flights()
    table.begin(key(1))
    with leading(key(1)):
        assert table.find(key(1)) is None
        with leading(key(2)):
            assert table.find(key(1)) is None
        seen = []
        thread = threading.Thread(target=lambda: seen.append(table.find(key(1))))
        thread.start()
        thread.join(LIMIT)
        assert seen[0] is not None, "others do"
    assert table.find(key(1)) is not None


def test_only_one_of_many_threads_leads():
    table, leaders = Flights(), []
    barrier = threading.Barrier(8)

    def run():
        barrier.wait(LIMIT)
        for number in range(100):
            if table.begin(key(number)) is not None:
                leaders.append(number)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert sorted(leaders) == list(range(100))


# among processes


@pytest.fixture
def catalog(tmp_path):
    catalog = opened(tmp_path / "home", manual_clock())
    yield catalog
    catalog.close()


def other_process(catalog, tmp_path):
    """The same catalog as another process sees it."""
    other = opened(tmp_path / "home", catalog.clock)
    other.presence = As(process_as(1))  # the first process of a machine is always there
    return other


def pauses(actions):
    """Stands for waiting: does the next thing each time, and nothing afterwards."""
    left = list(actions)

    def pause(_):
        pause.count += 1
        assert pause.count < 200, "it waits for ever"
        if left:
            left.pop(0)()

    pause.count = 0
    return pause


def test_the_first_is_granted_what_it_asks_for(catalog):
    ours = Reservations(catalog)
    taken = ours.take_or_wait(key(1))
    assert isinstance(taken, Reservation)
    ours.give_back(taken)
    again = ours.take_or_wait(key(1))
    assert isinstance(again, Reservation)
    ours.done(again)
    ours.close()


def test_what_is_there_needs_no_reservation(catalog):
    catalog.keep(key(1), key(0), value(1))
    found = Reservations(catalog).take_or_wait(key(1))
    assert isinstance(found, Entry)
    assert found.key == key(1)


def test_a_waiter_gets_the_entry_once_it_is_there(catalog, tmp_path):
    other = other_process(catalog, tmp_path)
    assert isinstance(Reservations(other).take_or_wait(key(1)), Reservation)
    pause = pauses([lambda: None, lambda: None, lambda: other.keep(key(1), key(0), value(1))])
    found = Reservations(catalog, pause).take_or_wait(key(1))
    assert isinstance(found, Entry)
    assert pause.count >= 3
    other.close()


def test_a_waiter_computes_itself_when_the_other_gives_up(catalog, tmp_path):
    other = other_process(catalog, tmp_path)
    theirs = Reservations(other)
    taken = theirs.take_or_wait(key(1))
    pause = pauses([lambda: None, lambda: theirs.give_back(taken)])
    assert Reservations(catalog, pause).take_or_wait(key(1)) is None
    other.close()


def test_a_waiter_takes_over_when_the_time_of_the_other_is_up(catalog, tmp_path):
    other = other_process(catalog, tmp_path)
    Reservations(other).take_or_wait(key(1))
    pause = pauses([lambda: catalog.clock.move(HOLD + 1)])
    assert Reservations(catalog, pause).take_or_wait(key(1)) is None
    other.close()


def test_nobody_waits_for_a_process_that_is_no_more(catalog, tmp_path):
    other = opened(tmp_path / "home", catalog.clock)
    other.presence = As(dead_process())
    assert isinstance(Reservations(other).take_or_wait(key(1)), Reservation)
    ours = Reservations(catalog, pauses([]))
    taken = ours.take_or_wait(key(1))
    assert isinstance(taken, Reservation), "and the reservation is ours now"
    assert taken.holder == catalog.presence.name
    ours.give_back(taken)
    other.close()


def test_reservations_are_renewed_whatever_goes_wrong_with_one(catalog, monkeypatch):
    ours, renewed, seen = Reservations(catalog), [], threading.Event()
    monkeypatch.setattr("nectar.catalog.flights._RENEW", 0.001)

    def prolong(reservation, seconds):
        renewed.append(reservation)
        if len(renewed) > 4:
            seen.set()
        raise SystemExit

    monkeypatch.setattr(catalog, "prolong", prolong)
    taken = [ours.take_or_wait(key(number)) for number in (1, 2)]
    assert seen.wait(LIMIT)
    ours.close()
    ours._thread.join(LIMIT)
    assert {each.key for each in renewed} == {each.key for each in taken}


def test_giving_back_what_the_catalog_cannot_be_told_of_fails_nobody(catalog, monkeypatch):
    def release(reservation):
        raise CatalogUnavailableError("it is locked")

    ours = Reservations(catalog)
    taken = ours.take_or_wait(key(1))
    monkeypatch.setattr(catalog, "release", release)
    ours.give_back(taken)
    assert not ours._held, "it is renewed no longer"
    ours.close()


def elsewhere(catalog, tmp_path, number=999999):
    """The same catalog as a process of another machine sees it."""
    other = opened(tmp_path / "home", catalog.clock)
    other.presence = As(f"elsewhere:{number}")
    return other


def test_processes_of_other_machines_are_not_waited_for_without_a_sign_of_life(catalog, tmp_path):
    """Whether they live cannot be asked."""
    other = elsewhere(catalog, tmp_path)
    theirs = Reservations(other)
    assert all(isinstance(theirs.take_or_wait(key(number)), Reservation) for number in range(10))
    waited = []
    ours = Reservations(catalog, lambda seconds: (waited.append(seconds), catalog.clock.move(seconds)))
    assert [ours.take_or_wait(key(1)) for _ in range(5)] == [None] * 5
    assert sum(waited) == pytest.approx(0.05, rel=0.5), "once, and not again for the same reservation"
    assert [ours.take_or_wait(key(number)) for number in range(10)] == [None] * 10
    assert sum(waited) <= 0.25, "four times in all"
    other.close()


def test_who_renews_a_reservation_lives(catalog, tmp_path):
    other = elsewhere(catalog, tmp_path)
    theirs = Reservations(other)
    taken = theirs.take_or_wait(key(1))

    def pause(seconds):
        catalog.clock.move(seconds)
        pause.count += 1
        if pause.count < 20:
            other.prolong(taken, HOLD)
        else:
            other.keep(key(1), key(0), value(1))

    pause.count = 0
    assert isinstance(Reservations(catalog, pause).take_or_wait(key(1)), Entry)
    other.close()


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="nobody says here whether a process is stopped")
def test_a_stopped_process_is_not_waited_for(catalog, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"], stdout=-1)
    try:
        process.stdout.readline()
        other = opened(tmp_path / "home", catalog.clock)
        other.presence = As(process_as(process.pid))
        assert isinstance(Reservations(other).take_or_wait(key(1)), Reservation)
        gave_up = pauses([lambda: None] * 20 + [lambda: catalog.clock.move(HOLD + 1)])
        assert Reservations(catalog, gave_up).take_or_wait(key(1)) is None
        assert gave_up.count > 20, "while it runs it is waited for"
        assert isinstance(Reservations(other).take_or_wait(key(2)), Reservation)
        os.kill(process.pid, signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        at_once = pauses([])
        assert Reservations(catalog, at_once).take_or_wait(key(2)) is None
        assert at_once.count == 0
        other.close()
    finally:
        process.kill()
        process.communicate()


def test_setting_the_clock_neither_ends_a_wait_nor_makes_it_longer(catalog, tmp_path):
    other = other_process(catalog, tmp_path)
    Reservations(other).take_or_wait(key(1))
    catalog.clock.set(-20)
    waited = []
    ours = Reservations(catalog, lambda seconds: (waited.append(seconds), catalog.clock.move(seconds)))
    assert ours.take_or_wait(key(1)) is None
    assert HOLD <= sum(waited) <= HOLD + 1, "it renews nothing, as a process that hangs"
    other.close()
