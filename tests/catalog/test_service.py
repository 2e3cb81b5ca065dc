"""The catalog as others use it: what is kept comes back, what cannot be kept is said, what is lost is computed anew."""

import logging
import shutil

import pytest
from tests.catalog.making import bytes_on_disk, folder_of, key, manual_clock, opened, read, value

from nectar.catalog import service
from nectar.catalog.embedded import budget_of
from nectar.catalog.holding import holding
from nectar.catalog.service import Kept, Known, NotKept
from nectar.catalog.state import Budget, Granted, Present, Taken
from nectar.errors import SettingError
from nectar.model.entry import Job, Span
from nectar.settings import load_settings
from nectar.store.problem import Damaged, Gone
from nectar.store.read import Result


@pytest.fixture
def clock():
    return manual_clock()


@pytest.fixture
def catalog(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock, verify="before")
    yield catalog
    catalog.close()


def keep(catalog, number, size=2000, **more):
    done = catalog.keep(key(number), key(0), value(number, size), **more)
    assert isinstance(done, Kept), done
    return done.entry


# keeping and finding


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 2000, 10**6])
def test_what_is_kept_comes_back(catalog, size):
    entry = keep(catalog, 1, size, seconds=2.0, recipe=b"r" * 32, spans=(Span(b"a", b"b", 2),), rebuildable=False)
    assert read(catalog, 1) == value(1, size)
    assert (entry.inline is not None) == (entry.location == "") == (size <= 256)
    assert (entry.seconds, entry.recipe, entry.spans, entry.rebuildable) == (
        2.0,
        b"r" * 32,
        (Span(b"a", b"b", 2),),
        False,
    )
    assert entry.producer == catalog.person
    assert catalog.usage().size == entry.size


@pytest.mark.parametrize("rows", [3, 10_000])
def test_tables_come_back(catalog, rows):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": list(range(rows)), "ü": ["x"] * rows})
    done = catalog.keep(key(1), key(0), table, table=True)
    assert (done.entry.kind, done.entry.rows) == ("arrow", rows)
    with catalog.open(done.entry) as result:
        assert result.to_arrow() == table


def test_nothing_lies_inline_if_the_threshold_is_zero(tmp_path):
    catalog = opened(tmp_path / "home", inline=0)
    assert keep(catalog, 1, 0).inline is None
    assert read(catalog, 1) == b""
    catalog.close()


class Modest:
    """An object that does not show how much it holds."""

    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held

    def __reduce__(self):
        return Modest, (self.held,)


def test_what_is_larger_than_it_looks_goes_into_files(catalog):
    done = catalog.keep(key(1), key(0), Modest(b"x" * 10_000))
    assert done.entry.inline is None
    with catalog.open(done.entry) as result:
        assert result.to_object().held == b"x" * 10_000


def test_a_budget_holds_for_what_is_larger_than_it_looks(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock, budget=25_000, inline=0)
    for number in range(5):
        assert isinstance(catalog.keep(key(number), key(0), Modest(b"x" * 10_000)), Kept)
        clock.move(1)
        assert catalog.usage().total <= 25_000
    catalog.close()


def test_the_first_of_two_results_stays(catalog):
    first = keep(catalog, 1)
    again = catalog.keep(key(1), key(0), value(2))
    assert again == Kept(first)
    assert read(catalog, 1) == value(1)
    assert bytes_on_disk(catalog) == first.size
    assert catalog.index.doomed() == catalog.index.leases() == []


def test_machine_time_is_that_of_everything_reused_too(catalog):
    first = keep(catalog, 1, seconds=100.0)
    second = keep(catalog, 2, seconds=1.0, made_from=[first])
    third = keep(catalog, 3, seconds=0.5, made_from=[first, second])
    assert (second.seconds, third.seconds) == (101.0, 201.5)


def test_lookups_are_counted_per_program_whether_they_find_anything(catalog, tmp_path, clock):
    assert catalog.lookup([key(1)], [key(9)]) == [Known(None, 0)]
    entry = keep(catalog, 1)
    assert catalog.lookup([key(1), key(2)], [key(9), key(9)]) == [Known(entry, 0), Known(None, 1)]
    assert catalog.lookup([key(3)], [key(9)])[0].lookups == 3
    catalog.flush()
    assert catalog.lookup([key(3)], [key(9)])[0].lookups == 4
    other = opened(tmp_path / "home", clock)
    assert other.lookup([key(3)], [key(9)])[0].lookups == 4
    other.close()


def test_uses_are_counted_and_written_down(catalog, clock):
    keep(catalog, 1)
    clock.move(10)
    for _ in range(3):
        read(catalog, 1)
    assert catalog.index.lookup([key(1)])[key(1)].hits in (0, 1, 2, 3)
    catalog.flush()
    found = catalog.index.lookup([key(1)])[key(1)]
    assert (found.hits, found.used) == (3, clock.now())


def test_uses_are_written_down_from_time_to_time(catalog, clock):
    keep(catalog, 1)
    read(catalog, 1)
    clock.move(60)
    read(catalog, 1)
    assert catalog.index.lookup([key(1)])[key(1)].hits >= 1
    keys = [key(n) for n in range(5000)]
    catalog.lookup(keys, keys)
    assert catalog.index.lookups([key(299)])[key(299)] == 1


def test_inquire_gives_all_entries_of_a_program(catalog):
    entries = [keep(catalog, number) for number in range(3)]
    assert {each.key for each in catalog.inquire([key(0)])[key(0)]} == {each.key for each in entries}


def test_closing_writes_everything_down(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock)
    keep(catalog, 1)
    read(catalog, 1)
    catalog.close()
    again = opened(tmp_path / "home", clock)
    assert again.index.lookup([key(1)])[key(1)].hits == 1
    assert again.index.lookups([key(0)]) == {key(0): 1}
    again.close()


# what cannot be kept


LARGER_THAN_IT_LOOKS = ["x"] * 200 + ["y" * 20_000]


def test_what_was_just_kept_is_not_the_first_to_go(tmp_path, clock):
    """It turns out too large, and is worth little: but somebody has just made it in order to read it."""
    catalog = opened(tmp_path / "home", clock, budget=30_000, inline=0)
    keep(catalog, 1, 20_000, seconds=1e6)
    new = catalog.keep(key(2), key(0), LARGER_THAN_IT_LOOKS).entry
    assert set(catalog.index.lookup([key(1), key(2)])) == {key(2)}
    assert catalog.usage().total <= 30_000
    assert list(catalog.index.leases()) == []
    catalog.discard([new])
    catalog.pin(keep(catalog, 1, 20_000).key)
    catalog.keep(key(2), key(0), LARGER_THAN_IT_LOOKS)
    assert set(catalog.index.lookup([key(1), key(2)])) == {key(1)}, "before the budget is passed, it goes itself"
    assert catalog.usage().total <= 30_000
    catalog.close()


def test_more_than_the_budget_is_not_kept_and_evicts_nothing(tmp_path):
    catalog = opened(tmp_path / "home", budget=10_000)
    keep(catalog, 1)
    done = catalog.keep(key(2), key(0), value(2, 20_000))
    assert isinstance(done, NotKept)
    assert "budget" in done.reason
    assert read(catalog, 1) == value(1), "it would not have helped"
    assert catalog.index.leases() == []
    catalog.close()


@pytest.mark.parametrize("size", [200, 4000])
def test_what_is_protected_leaves_no_room(tmp_path, size):
    catalog = opened(tmp_path / "home", budget=5000)
    keep(catalog, 1, 4500)
    catalog.pin(key(1))
    done = catalog.keep(key(2), key(0), value(2, size))
    assert isinstance(done, NotKept)
    assert "no room" in done.reason
    assert read(catalog, 1) == value(1, 4500)
    catalog.pin(key(1), False)
    assert isinstance(catalog.keep(key(2), key(0), value(2, size)), Kept)
    catalog.close()


def test_small_results_do_not_pass_the_budget_either(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock, budget=5000)
    for number in range(100):
        keep(catalog, number, 200)
        clock.move(1)
        assert catalog.usage().total <= 5000
    assert 5 <= catalog.usage().entries <= 20
    catalog.close()


def test_the_budget_is_kept_while_keeping(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock, budget=20_000)
    for number in range(50):
        keep(catalog, number)
        clock.move(1)
        assert bytes_on_disk(catalog) <= 20_000
        assert catalog.usage().total <= 20_000
    assert catalog.usage().entries >= 5
    catalog.close()


def test_what_does_not_pickle_is_not_kept(catalog):
    for thing in (lambda: 1, [lambda: 1] * 1000):
        done = catalog.keep(key(1), key(0), thing)
        assert isinstance(done, NotKept)
        assert "pickle" in done.reason
    assert catalog.index.leases() == []
    assert bytes_on_disk(catalog) == 0


def test_an_interrupted_writer_leaves_nothing(tmp_path, clock):
    def interrupt(step):
        if step == "rename into place":
            raise KeyboardInterrupt

    catalog = opened(tmp_path / "home", clock, interrupt)
    with pytest.raises(KeyboardInterrupt):
        catalog.keep(key(1), key(0), value(1))
    assert catalog.index.leases() == []
    assert bytes_on_disk(catalog) == 0
    catalog.close()


@pytest.mark.parametrize("step", ["create manifest", "rename into place", "sql begin add entry"])
def test_a_writer_that_is_slower_than_its_lease_keeps_nothing(tmp_path, clock, step):
    home = tmp_path / "home"
    sweeper = opened(home, clock)

    def fall_asleep(reached):
        if reached == step:
            clock.move(service._WRITING + 1)
            sweeper.collector.sweep(grace=0.0)

    catalog = opened(home, clock, fall_asleep)
    done = catalog.keep(key(1), key(0), value(1))
    assert isinstance(done, NotKept), "its files are swept by now"
    assert read(catalog, 1) is None
    assert catalog.index.leases() == catalog.index.doomed() == []
    assert bytes_on_disk(catalog) == 0
    catalog.close()
    sweeper.close()


def test_a_store_that_may_only_be_read(tmp_path, clock):
    writer = opened(tmp_path / "home", clock)
    entry, lost = keep(writer, 1), keep(writer, 2)
    shutil.rmtree(folder_of(writer, lost))
    writer.close()
    reader = opened(tmp_path / "home", clock, read_only=True)
    assert read(reader, 1) == value(1)
    done = reader.keep(key(3), key(0), value(3))
    assert isinstance(done, NotKept)
    assert "only be read" in done.reason
    assert isinstance(reader.open(lost), Gone)
    clock.move(100)
    assert reader.lookup([key(1)], [key(0)])[0].entry == entry
    reader.close()


def test_read_only_needs_a_catalog(tmp_path):
    from nectar.errors import CatalogFailure

    with pytest.raises(CatalogFailure):
        opened(tmp_path / "home", read_only=True)
    assert not (tmp_path / "home").exists()


# what is lost


def damage(catalog, entry, how):
    part = folder_of(catalog, entry) / "object.pickle"
    if how == "flipped":
        content = bytearray(part.read_bytes())
        content[-100] ^= 1
        part.write_bytes(content)
    elif how == "short":
        part.write_bytes(part.read_bytes()[:-1])
    elif how == "part":
        part.unlink()
    else:
        shutil.rmtree(part.parent)


@pytest.mark.parametrize("protection", ["none", "pin", "lease"])
@pytest.mark.parametrize("how", ["flipped", "short", "part", "gone"])
def test_a_damaged_result_is_reported_evicted_and_computed_anew(catalog, caplog, how, protection):
    entry = keep(catalog, 1)
    catalog.pin(key(1), protection == "pin")
    if protection == "lease":
        catalog.lease([entry], 60.0)
    damage(catalog, entry, how)
    with caplog.at_level(logging.WARNING, "nectar.catalog"):
        opened_result = catalog.open(entry)
    assert isinstance(opened_result, Gone if how == "gone" else Damaged)
    assert len(caplog.records) == 1
    assert key(1).hex()[:12] in caplog.text
    assert catalog.lookup([key(1)], [key(0)])[0].entry is None
    new = keep(catalog, 1)
    assert new.location != entry.location
    assert read(catalog, 1) == value(1)
    catalog.collector.enforce()
    assert bytes_on_disk(catalog) == new.size


def test_damage_is_found_in_the_background(tmp_path, clock, caplog):
    catalog = opened(tmp_path / "home", clock, verify="length")
    entry = keep(catalog, 1)
    damage(catalog, entry, "flipped")
    result = catalog.open(entry)
    assert isinstance(result, Result), "length and ends are right"
    result.close()
    catalog.store.settle()
    assert catalog.lookup([key(1)], [key(0)])[0].entry is None
    assert "not those that were written" in caplog.text
    catalog.close()


def test_what_took_the_place_of_a_lost_result_stays(catalog, caplog):
    old = keep(catalog, 1)
    catalog.collector.evict(catalog.collector.plan(everything=True))
    new = keep(catalog, 1)
    catalog.pin(key(1))
    with caplog.at_level(logging.WARNING, "nectar.catalog"):
        assert isinstance(catalog.open(old), Gone)
    assert catalog.index.lookup([key(1)])[key(1)].location == new.location
    assert caplog.records == [], "eviction is no loss"


def test_a_reader_keeps_what_it_has_opened(catalog):
    entry = keep(catalog, 1, 100_000)
    with catalog.open(entry) as result:
        catalog.collector.evict(catalog.collector.plan(everything=True))
        assert bytes_on_disk(catalog) == 0
        assert result.to_object() == value(1, 100_000)
    assert isinstance(catalog.open(entry), Gone)


# leases, pins, names, reservations


def test_leases_are_renewed_and_end(catalog, clock):
    entry, small = keep(catalog, 1), keep(catalog, 2, 10)
    [lease] = catalog.lease([entry, small], 60.0)
    assert (lease.until, lease.holder) == (clock.now() + 60, catalog.presence.name)
    clock.move(50)
    [lease] = catalog.renew([lease], 60.0)
    clock.move(50)
    catalog.collector.evict(catalog.collector.plan(everything=True))
    assert read(catalog, 1) == value(1)
    catalog.end([lease])
    catalog.collector.evict(catalog.collector.plan(everything=True))
    assert read(catalog, 1) is None


def test_what_is_gone_cannot_be_leased(catalog):
    entry = keep(catalog, 1)
    catalog.collector.evict(catalog.collector.plan(everything=True))
    assert catalog.lease([entry], 60.0) == []


def test_a_lease_that_was_forgotten_is_not_renewed_once_the_result_is_gone(catalog, clock):
    [lease] = catalog.lease([keep(catalog, 1)], 60.0)
    clock.move(60)
    catalog.collector.sweep(grace=0.0)
    assert catalog.renew([lease], 60.0) != [], "nobody evicted it yet"
    clock.move(60)
    catalog.collector.sweep(grace=0.0)
    catalog.collector.evict(catalog.collector.plan(everything=True))
    assert catalog.renew([lease], 60.0) == []


def test_pins(catalog):
    keep(catalog, 1)
    assert catalog.pin(key(1))
    assert not catalog.pin(key(2))
    catalog.collector.budget = Budget(size=0)
    catalog.collector.enforce()
    assert read(catalog, 1) == value(1)
    assert catalog.pin(key(1), False)


def test_one_computes_until_its_time_is_up(tmp_path, clock):
    mine, yours = opened(tmp_path / "home", clock), opened(tmp_path / "home", clock)
    granted = mine.reserve(key(1), 60.0)
    assert isinstance(granted, Granted)
    taken = yours.reserve(key(1), 60.0)
    assert taken == Taken(granted.reservation)
    clock.move(60)
    again = yours.reserve(key(1), 60.0)
    assert isinstance(again, Granted)
    mine.release(granted.reservation)
    assert isinstance(mine.reserve(key(1), 60.0), Taken), "a late holder gives nothing of others back"
    yours.release(again.reservation)
    assert isinstance(mine.reserve(key(1), 60.0), Granted)
    entry = keep(yours, 1)
    assert mine.reserve(key(1), 60.0) == Present(entry)
    mine.close()
    yours.close()


def test_names_recipes_and_jobs(catalog):
    bound = catalog.bind("team/ü", key(1))
    assert (bound.by, bound.version) == (catalog.person, 1)
    assert catalog.index.get_recipe(catalog.put_recipe([b"a", b"b"])) == [b"a", b"b"]
    job = Job(1.0, key(0), key(1), 2.0)
    catalog.log(job)
    assert catalog.index.jobs() == [job]


def test_the_job_log_is_bounded_by_a_setting(tmp_path):
    catalog = opened(tmp_path / "home", job_log=3)
    for number in range(10):
        catalog.log(Job(float(number), key(0), key(1), 2.0))
    assert [job.at for job in catalog.index.jobs()] == [9.0, 8.0, 7.0]
    catalog.close()


# embedded


def test_results_may_lie_elsewhere(tmp_path):
    catalog = opened(tmp_path / "home", store=str(tmp_path / "elsewhere"))
    keep(catalog, 1)
    assert (tmp_path / "elsewhere" / "data").is_dir()
    assert not (tmp_path / "home" / "results").exists()
    catalog.close()


def test_zero_means_no_limit(tmp_path):
    chosen = {"home": tmp_path, "budget": 0, "reserve": 0, "most_files": 7, "most_age": "1d"}
    assert budget_of(load_settings(chosen, {}, tmp_path)) == Budget(None, 7, 86400.0, None)


def test_an_unknown_policy_is_refused(tmp_path):
    with pytest.raises(SettingError, match="no eviction policy"):
        opened(tmp_path / "home", policy="mine")


@pytest.mark.parametrize("policy", ["cost-benefit", "lru", "lrfu", "gdsf"])
def test_every_policy_keeps_the_budget(tmp_path, clock, policy):
    catalog = opened(tmp_path / "home", clock, budget=20_000, policy=policy)
    for number in range(30):
        keep(catalog, number)
        clock.move(1)
        assert catalog.usage().total <= 20_000
    catalog.close()


def test_a_result_that_is_waited_for_goes_last(tmp_path, clock):
    """Whoever has a result made again gets to read it, small ones in the index included."""
    catalog = opened(tmp_path / "home", clock, budget="100 kB", inline=4096)
    wanted = key(1000)
    with holding(catalog, wanted):
        keep(catalog, 1000, seconds=0.001)
        for number in range(50):
            keep(catalog, number, 5_000, seconds=100.0)
            assert wanted in catalog.index.lookup([wanted]), number
    for number in range(50, 100):
        keep(catalog, number, 5_000, seconds=100.0)
    assert wanted not in catalog.index.lookup([wanted])  # it is worth least
    assert catalog.index.usage(clock.now()).total <= 100_000
    catalog.close()
