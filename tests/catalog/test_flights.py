"""Computing once: flights among threads, reservations among processes; nobody waits for itself or for the dead."""

import os
import subprocess
import sys
import threading

import pytest
from tests.catalog.making import key, manual_clock, opened, value

from nectar.catalog import flights
from nectar.catalog.flights import HOLD, Flights, Reservations, leading
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
    other.holder = f"{catalog.holder.rpartition(':')[0]}:1"  # the first process of a machine is always there
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
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    other = opened(tmp_path / "home", catalog.clock)
    other.holder = f"{catalog.holder.rpartition(':')[0]}:{dead.pid}"
    assert isinstance(Reservations(other).take_or_wait(key(1)), Reservation)
    ours = Reservations(catalog, pauses([]))
    taken = ours.take_or_wait(key(1))
    assert isinstance(taken, Reservation), "and the reservation is ours now"
    assert taken.holder == catalog.holder
    ours.give_back(taken)
    other.close()


def test_processes_of_other_machines_are_waited_for(catalog, tmp_path):
    """Whether they live cannot be asked; their time runs out."""
    other = opened(tmp_path / "home", catalog.clock)
    other.holder = "elsewhere:999999"
    assert isinstance(Reservations(other).take_or_wait(key(1)), Reservation)
    pause = pauses([lambda: None] * 5 + [lambda: catalog.clock.move(HOLD + 1)])
    assert Reservations(catalog, pause).take_or_wait(key(1)) is None
    assert pause.count >= 6
    other.close()


@pytest.mark.parametrize("holder", ["", "host", "host:", "host:abc", f"{'h' * 300}:1"])
def test_holders_that_mean_nothing_are_not_declared_dead(holder):
    assert not flights._has_died(Reservation(key(1), "t", holder, 0.0), "host:1")


def test_this_process_lives():
    here = f"host:{os.getpid()}"
    assert not flights._has_died(Reservation(key(1), "t", here, 0.0), here)
