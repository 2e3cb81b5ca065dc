"""What processes leave behind that end at any moment: leases, reservations and files go; all room is found again."""

import os
import sys
import tempfile
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.catalog.making import (
    MEMORY,
    As,
    bytes_of_entries,
    bytes_on_disk,
    dead_process,
    folder_of,
    fork_and_die,
    key,
    manual_clock,
    opened,
    process_as,
    read,
    value,
)

from nectar.catalog.check import check
from nectar.catalog.service import Kept, NotKept
from nectar.catalog.state import Budget, Granted, Lapsed, Taken
from nectar.clock import ManualClock
from nectar.model.entry import LONGEST, Lease, Reservation

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="only /proc tells who is still there")


@pytest.fixture
def clock():
    return manual_clock()


@pytest.fixture
def catalog(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock)
    yield catalog
    catalog.close()


@pytest.fixture
def dead(tmp_path, clock, catalog):
    """The same catalog, as a process has it that is no more."""
    catalog = opened(tmp_path / "home", clock)
    catalog.presence = As(dead_process())
    yield catalog
    catalog.close()


def announced(catalog, number, size=1000):
    """A writer at work: room is announced, and something lies in staging/."""
    lease = catalog._announced(key(number), size)
    staging = catalog.store.stage(lease.location)
    staging.__enter__()
    staging.write_bytes("half", b"x" * size)
    return lease, staging


def everything_is_found_again(catalog):
    usage = catalog.usage()
    assert (usage.pending, usage.doomed) == (0, 0)
    assert catalog.index.leases() == []
    assert catalog.index.reservations() == []
    assert bytes_on_disk(catalog) == bytes_of_entries(catalog)
    assert list(os.scandir(os.path.join(catalog.store.root, "staging"))) == []
    assert not [each for each in check(catalog, thorough=True) if each.what != "foreign file"]


def test_what_a_dead_writer_announced_counts_no_more(catalog, dead):
    announced(dead, 1)
    assert catalog.usage().pending == 1000
    catalog.collector.enforce()
    everything_is_found_again(catalog)


def test_a_dead_writer_costs_nobody_else_a_result(catalog, dead):
    kept = [catalog.keep(key(number), key(0), value(number)) for number in range(3)]
    announced(dead, 7, 50_000)
    catalog.collector.budget = Budget(size=catalog.usage().size + 10_000)
    assert catalog.collector.plan() == [], "a dry run knows that nothing has to go"
    assert isinstance(catalog.keep(key(4), key(0), value(4)), Kept)
    assert all(read(catalog, number) == value(number) for number in (0, 1, 2, 4)), kept
    everything_is_found_again(catalog)


def test_what_was_published_and_has_no_row_goes_too(catalog, dead):
    _, staging = announced(dead, 1)
    staging.publish()
    assert bytes_on_disk(catalog) > 1000
    catalog.collector.enforce()
    everything_is_found_again(catalog)


def test_a_sweep_needs_no_grace_where_the_writer_is_gone(tmp_path, dead):
    now = opened(tmp_path / "home", ManualClock())  # far behind the time stamps of the files
    lease, _ = announced(dead, 1)
    assert now.collector.sweep(apply=False).swept == [lease.location]
    assert bytes_on_disk(now) > 0
    now.collector.sweep()
    everything_is_found_again(now)
    now.close()


def test_a_dead_reader_holds_nothing(catalog, dead):
    entry = catalog.keep(key(1), key(0), value(1)).entry
    assert dead.lease([entry], 3600.0)
    assert not catalog.discard([entry])
    catalog.collector.budget = Budget(size=0)
    catalog.collector.enforce()
    assert catalog.usage().entries == 0
    everything_is_found_again(catalog)


def test_a_reader_that_dies_takes_no_result_with_it(catalog, dead):
    entry = catalog.keep(key(1), key(0), value(1)).entry
    dead.lease([entry], 3600.0)
    catalog.collector.enforce()
    assert read(catalog, 1) == value(1)
    everything_is_found_again(catalog)


@pytest.mark.parametrize("who", ["the living", "another machine", "nobody known"])
def test_what_the_living_and_the_unknown_hold_stays(catalog, tmp_path, clock, who):
    names = {"the living": process_as(1), "another machine": "elsewhere:9/1/2/3/4/5", "nobody known": "elsewhere:9"}
    other = opened(tmp_path / "home", clock)
    other.presence = As(names[who])
    lease, staging = announced(other, 1)
    catalog.collector.enforce()
    catalog.collector.sweep(grace=0.0)
    assert catalog.index.leases() == [lease]
    assert catalog.usage().pending == 1000
    published = staging.publish()
    assert os.path.exists(os.path.join(catalog.store.root, "data", published.location))
    other.close()


def test_who_is_taken_for_dead_and_is_not_keeps_nothing_wrong(catalog, dead):
    """At worst a result is not kept."""
    lease, staging = announced(dead, 1)
    published = staging.publish()
    catalog.collector.end_abandoned()
    entry = replace(catalog.keep(key(2), key(0), value(2)).entry, key=key(1), location=published.location)
    assert isinstance(dead.index.add(entry, lease.token, 0.0, catalog.clock.now()), Lapsed)
    catalog.collector.enforce()
    assert read(catalog, 1) is None
    assert bytes_on_disk(catalog) == bytes_of_entries(catalog)


def test_a_handover_of_the_dead_is_swept_with_what_the_engine_wrote(catalog, dead):
    handover = dead.handover(key(1), 1000)
    handover.__enter__()
    os.makedirs(handover.path)
    for name in ("part-0.parquet", "_SUCCESS", "part-1.parquet.crc"):
        with open(os.path.join(handover.path, name), "wb") as file:
            file.write(b"x" * 500)
    catalog.collector.enforce()
    everything_is_found_again(catalog)


def test_reservations_of_the_dead_go(catalog, dead):
    assert isinstance(dead.reserve(key(1), 30.0), Granted)
    assert isinstance(catalog.reserve(key(1), 30.0), Taken)
    catalog.collector.enforce()
    assert isinstance(catalog.reserve(key(1), 30.0), Granted)


def test_a_reservation_of_a_clock_that_was_ahead_holds_nobody_up(catalog):
    """Nor one of a machine that is not known, made before this clock was set back."""
    now = catalog.clock.now()
    catalog.index.reserve(Reservation(key(1), "t", "container-7:1", now + 3600.0), now + 3570.0)
    assert isinstance(catalog.reserve(key(1), 30.0), Granted)
    assert isinstance(catalog.reserve(key(1), 30.0), Taken), "and now it is ours"


def test_a_lease_of_a_clock_that_was_ahead_ends_a_day_later(catalog, clock):
    now = clock.now()
    location = catalog.store.new_location(key(1))
    catalog.index.announce(Lease("t", location, "elsewhere:1", now + 400 * LONGEST, 5), None, now)
    catalog.index.expire(now)
    assert [lease.until for lease in catalog.index.leases()] == [now + LONGEST]
    clock.move(LONGEST + 1)
    catalog.index.expire(clock.now())
    assert catalog.index.leases() == []


def test_a_check_names_leases_of_the_dead_and_ends_them(catalog, dead):
    lease, _ = announced(dead, 1)
    found = [each for each in check(catalog) if each.what == "lapsed lease"]
    assert [(each.subject, each.mended) for each in found] == [(lease.location, False)]
    assert "which is gone" in found[0].detail
    check(catalog, repair=True)
    everything_is_found_again(catalog)


# killed at every step


@pytest.fixture
def folder():
    """In memory, if that can be: nothing here depends on a disk."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


def keeping(home, clock):
    def work(reach):
        catalog = opened(home, clock, reach, budget=20_000)
        catalog.keep(key(1), key(0), value(1, 9000))
        catalog.keep(key(1), key(0), value(1001, 9000), replaces=True)
        catalog.keep(key(2), key(0), value(2, 9000))

    return work


def collecting(home, clock):
    def work(reach):
        catalog = opened(home, clock, reach)
        catalog.reserve(key(5), 30.0)
        entry = catalog.index.lookup([key(10)])[key(10)]
        catalog.lease([entry], 3600.0)
        catalog.collector.evict(catalog.collector.plan(everything=True))
        catalog.collector.sweep(grace=0.0)

    return work


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize("what", [keeping, collecting])
def test_killed_at_any_step_all_room_is_found_again(folder, clock, what):
    fatal = killed = 0
    while killed == fatal:
        fatal += 1
        home = folder / str(fatal)
        catalog = opened(home, clock)
        for number in (10, 11):
            catalog.keep(key(number), key(0), value(number))
        catalog.close()
        killed += fork_and_die(what(home, clock), fatal)
        catalog = opened(home, clock)
        catalog.collector.enforce()
        everything_is_found_again(catalog)
        for number, wanted in ((1, {1, 1001}), (2, {2}), (10, {10}), (11, {11})):
            assert read(catalog, number) in (None, *(value(each, 9000 if number < 10 else 2000) for each in wanted))
        assert isinstance(catalog.keep(key(3), key(0), value(3)), Kept)
        assert not isinstance(catalog.keep(key(3), key(0), value(3)), NotKept)
        catalog.close()
    assert killed > 15, "that many steps there are"


def test_the_folder_of_an_entry_is_never_taken_for_a_writers(catalog, dead):
    entry = catalog.keep(key(1), key(0), value(1)).entry
    dead.index.put_leases([Lease("t", entry.location, dead.presence.name, catalog.clock.now() + 60, 5)])
    catalog.collector.enforce()
    assert folder_of(catalog, entry).exists()
    assert read(catalog, 1) == value(1)
