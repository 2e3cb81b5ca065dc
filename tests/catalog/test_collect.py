"""The collector: budgets are kept, what is protected stays, what belongs to nobody goes."""

import os
import time

import pytest
from tests.catalog.making import (
    LATER,
    bytes_of_entries,
    bytes_on_disk,
    folder_of,
    key,
    manual_clock,
    opened,
    read,
    value,
)

from nectar.catalog.collect import GRACE, victims_of
from nectar.catalog.service import Kept
from nectar.catalog.state import Budget
from nectar.clock import ManualClock
from nectar.model.entry import Lease


@pytest.fixture
def clock():
    return manual_clock()


@pytest.fixture
def catalog(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock)
    yield catalog
    catalog.close()


def keep(catalog, number, size=2000, **more):
    done = catalog.keep(key(number), key(0), value(number, size), **more)
    assert isinstance(done, Kept), done
    return done.entry


def there(catalog):
    """Numbers of the keys that have an entry."""
    keys = {each.key for each in catalog.index.entries()}
    return [number for number in range(100) if key(number) in keys]


def test_without_a_budget_nothing_goes(catalog):
    for number in range(10):
        keep(catalog, number)
    done = catalog.collector.enforce()
    assert (done.evicted, done.kept, done.freed) == ([], {}, 0)
    assert len(there(catalog)) == 10


def test_the_largest_ratio_goes_first_down_to_the_target(catalog, clock):
    for number in range(10):
        keep(catalog, number, seconds=number + 1.0)
    size = catalog.usage().size
    clock.move(1000)
    catalog.collector.budget = Budget(size=size - 1, target=0.75)
    done = catalog.collector.enforce()
    assert there(catalog) == list(range(3, 10)), "those that took least time went"
    assert [victim.key for victim in done.evicted] == [key(0), key(1), key(2)]
    assert done.freed == size - catalog.usage().size
    assert catalog.usage().total <= 0.75 * size
    assert bytes_on_disk(catalog) == bytes_of_entries(catalog)


def test_uses_protect(catalog, clock):
    for number in range(3):
        keep(catalog, number)
    clock.move(10)
    for _ in range(5):
        read(catalog, 1)
    catalog.flush()
    catalog.collector.budget = Budget(size=3000)
    catalog.collector.enforce()
    assert there(catalog) == [1]


def test_pins_and_leases_protect_and_names_do_not(catalog):
    entries = [keep(catalog, number) for number in range(4)]
    catalog.pin(key(0))
    catalog.lease([entries[1]], 60.0)
    catalog.bind("team/a", key(2))
    catalog.collector.budget = Budget(size=0)
    catalog.collector.enforce()
    assert there(catalog) == [0, 1]
    assert read(catalog, 0) == value(0)
    assert read(catalog, 1) == value(1)


def test_a_lease_that_ran_out_protects_no_more(catalog, clock):
    catalog.lease([keep(catalog, 0)], 60.0)
    catalog.collector.budget = Budget(size=0)
    catalog.collector.enforce()
    assert there(catalog) == [0]
    clock.move(60.0)
    catalog.collector.enforce()
    assert there(catalog) == []


def test_something_else_goes_in_the_place_of_what_is_leased(catalog):
    entries = [keep(catalog, number, seconds=number + 1.0) for number in range(4)]
    catalog.lease(entries[:2], 60.0)
    catalog.collector.budget = Budget(size=catalog.usage().size - 1, target=1.0)
    catalog.collector.enforce()
    assert there(catalog) == [0, 1, 3]


def test_new_entries_go_only_if_nothing_else_is_left(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock, protect=600)
    keep(catalog, 0, seconds=10**6)
    clock.move(601)
    keep(catalog, 1, seconds=0.001)
    catalog.collector.budget = Budget(size=catalog.usage().size - 1, target=1.0)
    catalog.collector.enforce()
    assert there(catalog) == [1]
    catalog.collector.budget = Budget(size=1)
    catalog.collector.enforce()
    assert there(catalog) == []
    catalog.close()


def test_what_cannot_be_rebuilt_goes_last_of_all(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock, protect=600)
    keep(catalog, 0, rebuildable=False, seconds=0.001)
    clock.move(601)
    keep(catalog, 1, seconds=10**6)
    catalog.collector.budget = Budget(size=catalog.usage().size - 1, target=1.0)
    catalog.collector.enforce()
    assert there(catalog) == [0]
    catalog.collector.budget = Budget(age=10.0)
    clock.move(10**6)
    catalog.collector.enforce()
    assert there(catalog) == [0], "not for its age"
    catalog.collector.budget = Budget(size=1)
    [victim] = catalog.collector.enforce().evicted
    assert "cannot be rebuilt" in victim.reason
    catalog.close()


@pytest.mark.parametrize("wrong", ["number = number | (1 << 46)", "number = number | (1 << 60)"])
@pytest.mark.parametrize("what", ["size", "doomed", "files"])
def test_a_damaged_total_empties_no_store(catalog, caplog, what, wrong):
    for number in range(5):
        keep(catalog, number)
    catalog.collector.budget = Budget(size=1 << 40, files=1000)
    catalog.index._write("damage", lambda it: it.execute(f"UPDATE counts SET {wrong} WHERE what = ?", (what,)))
    assert catalog.collector.enforce().evicted == []
    keep(catalog, 5)
    assert there(catalog) == list(range(6))
    assert catalog.usage().entries == 6
    assert "counted anew" in caplog.text


def test_a_damaged_total_is_no_error_and_counted_anew_once_a_day(catalog, clock):
    keep(catalog, 0)
    catalog.index._write("damage", lambda it: it.execute("UPDATE counts SET what = 'entrier' WHERE what = 'entries'"))
    catalog.index._write("damage", lambda it: it.execute("UPDATE counts SET number = 'x' WHERE what = 'doomed'"))
    catalog.index._write("damage", lambda it: it.execute("UPDATE counts SET number = -7 WHERE what = 'files'"))
    assert (catalog.usage().entries, catalog.usage().doomed, catalog.usage().files) == (0, 0, 0)
    keep(catalog, 1)
    catalog.collector.sweep_if_due()
    clock.move(2 * 86400.0)
    catalog.collector.sweep_if_due()
    assert catalog.usage().entries == 2


def test_a_budget_of_files(catalog):
    for number in range(10):
        keep(catalog, number)
    keep(catalog, 10, size=100)
    assert catalog.usage().files == 20
    catalog.collector.budget = Budget(files=15, target=0.8)
    catalog.collector.enforce()
    assert catalog.usage().files == 12
    catalog.collector.budget = Budget(files=0)
    catalog.collector.enforce()
    assert there(catalog) == [10], "it lies in the index and takes no file"


def test_a_budget_of_age(catalog, clock):
    keep(catalog, 0)
    clock.move(50)
    keep(catalog, 1)
    clock.move(60)
    catalog.collector.budget = Budget(age=100.0)
    [victim] = catalog.collector.enforce().evicted
    assert (victim.key, victim.reason) == (key(0), "not used for too long")
    assert there(catalog) == [1]


def test_a_reserve_of_the_disk(catalog, monkeypatch):
    for number in range(4):
        keep(catalog, number, seconds=number + 1.0)
    held = bytes_on_disk(catalog)
    monkeypatch.setattr(catalog.store, "free_space", lambda: 10_000 + held - bytes_on_disk(catalog))
    catalog.collector.budget = Budget(reserve=10_000 + 1)
    catalog.collector.enforce()
    assert there(catalog) == [1, 2, 3]
    catalog.collector.budget = Budget(reserve=10**9)
    catalog.collector.enforce()
    assert there(catalog) == []


def test_room_for_what_is_coming(catalog):
    for number in range(4):
        keep(catalog, number)
    catalog.collector.budget = Budget(size=catalog.usage().size + 1000, target=1.0)
    assert not catalog.collector.needed()
    catalog.collector.enforce(coming=1001)
    assert len(there(catalog)) == 3


def test_a_plan_does_nothing(catalog):
    entries = [keep(catalog, number) for number in range(4)]
    catalog.pin(key(0))
    catalog.lease([entries[1]], 60.0)
    assert {victim.key for victim in catalog.collector.plan(everything=True)} == {key(2), key(3)}
    assert catalog.collector.plan() == []
    catalog.collector.budget = Budget(size=0)
    assert {victim.key for victim in catalog.collector.plan()} == {key(2), key(3)}
    assert there(catalog) == [0, 1, 2, 3]


def test_leases_and_pins_are_looked_at_again_when_evicting(catalog):
    entries = [keep(catalog, number) for number in range(3)]
    plan = catalog.collector.plan(everything=True)
    catalog.pin(key(0))
    catalog.lease([entries[1]], 60.0)
    done = catalog.collector.enforce()
    assert catalog.collector.evict(plan, done)
    assert [victim.key for victim in done.evicted] == [key(2)]
    assert set(done.kept) == {key(0), key(1)}
    assert not catalog.collector.evict(plan)


def test_evicted_by_choice(catalog):
    entries = [keep(catalog, number) for number in range(3)]
    assert catalog.collector.evict(victims_of(entries[:2], "because"))
    assert there(catalog) == [2]
    assert bytes_on_disk(catalog) == bytes_of_entries(catalog)


def test_many_are_evicted_in_batches(catalog):
    for number in range(450):
        keep(catalog, number, size=100)
    assert catalog.collector.evict(catalog.collector.plan(everything=True))
    assert catalog.usage().entries == 0


def test_a_deletion_that_was_not_finished_is_finished(catalog):
    doomed = keep(catalog, 0)
    catalog.index.evict([key(0)], catalog.clock.now())
    assert folder_of(catalog, doomed).exists()
    assert catalog.collector.enforce().freed == doomed.size
    assert bytes_on_disk(catalog) == 0
    assert catalog.index.doomed() == []


# sweeping


def garbage(catalog, place="data"):
    """Files without an entry."""
    location = catalog.store.new_location(key(50))
    folder = os.path.join(catalog.store.root, place, location if place == "data" else location[3:])
    os.makedirs(folder)
    for name in ("object.pickle", "manifest.json"):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"x" * 50)
    return location


@pytest.mark.parametrize("place", ["data", "staging", "trash"])
def test_what_belongs_to_nobody_is_swept(catalog, place):
    keep(catalog, 0)
    location = garbage(catalog, place)
    would = catalog.collector.sweep(apply=False, grace=0.0)
    assert (would.swept, would.freed) == ([location], 100)
    done = catalog.collector.sweep(grace=0.0)
    assert (done.swept, done.freed) == ([location], 100)
    assert read(catalog, 0) == value(0)
    assert bytes_on_disk(catalog) == bytes_of_entries(catalog)
    assert catalog.collector.sweep(grace=0.0).swept == []


@pytest.mark.parametrize("place", ["data", "staging"])
def test_what_was_written_just_now_is_left_alone(tmp_path, place):
    catalog = opened(tmp_path / "home", ManualClock(time.time()))
    location = garbage(catalog, place)
    assert catalog.collector.sweep().swept == []
    catalog.clock.move(GRACE + 60)
    assert catalog.collector.sweep().swept == [location]
    catalog.close()


def test_half_deleted_files_need_no_grace(tmp_path):
    catalog = opened(tmp_path / "home", ManualClock(time.time() + 60))
    location = garbage(catalog, "trash")
    assert catalog.collector.sweep().swept == [location]
    catalog.close()


@pytest.mark.parametrize("place", ["data", "staging"])
def test_a_writers_lease_protects_its_files_until_its_time(catalog, clock, place):
    location = garbage(catalog, place)
    assert catalog.index.announce(Lease("t", location, "writer", clock.now() + 60, 100), None, clock.now())
    assert catalog.collector.sweep(grace=0.0).swept == []
    clock.move(60)
    assert catalog.collector.sweep(apply=False, grace=0.0).swept == [location], "a dry run says the same"
    assert catalog.collector.sweep(grace=0.0).swept == [location]
    assert catalog.index.leases() == []


def test_a_row_that_is_added_while_sweeping_saves_its_files(tmp_path, clock):
    home = tmp_path / "home"
    catalog, other = opened(home, clock), opened(home, clock)
    location = garbage(catalog)
    catalog.index.announce(Lease("t", location, "writer", clock.now() + 60, 100), None, clock.now())
    from tests.catalog.making import entry

    leases = other.index.leases

    def add_after_the_leases_were_read():
        found = leases()
        catalog.index.add(entry(50, location=location), "t", 0.0, clock.now())
        return found

    other.index.leases = add_after_the_leases_were_read
    assert other.collector.sweep(grace=0.0).swept == []
    catalog.close()
    other.close()


def test_the_clock_of_these_tests_is_ahead(clock):
    assert clock.now() > time.time() + LATER / 2
