"""Housekeeping beside the work keeps budgets that nobody waits for."""

from nectar.catalog.collect import SWEEP_EVERY
from nectar.catalog.embedded import open_catalog
from nectar.catalog.housekeeping import EVERY, Housekeeper
from nectar.clock import ManualClock
from nectar.settings import load_settings


def catalog_at(home, clock, **settings):
    chosen = {"home": str(home), "reserve": 0, "protect": 0, "inline": 0, **settings}
    return open_catalog(load_settings(chosen, {}, home), clock=clock, background=True)


def settle(catalog):
    catalog.housekeeper._thread.join(30)


def test_what_is_too_old_goes_while_others_are_kept(tmp_path):
    clock = ManualClock()
    catalog = catalog_at(tmp_path, clock, most_age="1d")
    catalog.keep(b"a" * 32, b"p" * 32, b"x" * 10_000)
    settle(catalog)
    assert catalog.usage().entries == 1
    clock.move(2 * 86400)
    catalog.keep(b"b" * 32, b"p" * 32, b"y" * 10_000)
    settle(catalog)
    assert set(catalog.index.lookup([b"a" * 32, b"b" * 32])) == {b"b" * 32}
    catalog.close()


def test_those_who_only_read_look_after_the_budget(tmp_path):
    """A process may read for weeks, and write nothing: what is too old goes all the same."""
    clock = ManualClock()
    catalog = catalog_at(tmp_path, clock, most_age="1d")
    old, used = (catalog.keep(each * 32, b"p" * 32, b"x" * 10_000).entry for each in (b"a", b"b"))
    catalog.close()
    reader = catalog_at(tmp_path, clock, most_age="1d")
    for _ in range(5):
        clock.move(86400 / 2)
        reader.open(used).close()
        settle(reader)
    assert set(reader.index.lookup([old.key, used.key])) == {used.key}
    reader.close()


def test_a_pass_that_fails_in_whatever_way_is_told_of_and_the_next_one_comes(tmp_path, monkeypatch, caplog):
    clock = ManualClock()
    catalog = catalog_at(tmp_path, clock)
    keeper = Housekeeper(catalog.collector, clock)

    def fail():
        raise SystemExit("no pass")

    monkeypatch.setattr(catalog.collector, "enforce", fail)
    for _ in range(2):
        assert keeper.poke()
        keeper._thread.join(30)
        clock.move(EVERY)
    assert caplog.text.count("no pass") == 2
    keeper.close()
    catalog.close()


def test_passes_are_not_more_frequent_than_they_should_be(tmp_path):
    clock = ManualClock()
    catalog = catalog_at(tmp_path, clock)
    keeper = Housekeeper(catalog.collector, clock)
    assert keeper.poke()
    keeper._thread.join(30)
    assert not keeper.poke()
    clock.move(EVERY)
    assert keeper.poke()
    keeper.close()
    clock.move(EVERY)
    assert not keeper.poke()
    catalog.close()


def test_files_of_dead_writers_are_swept_in_time(tmp_path):
    """Once a day, by whichever process comes then."""
    clock = ManualClock(4_000_000_000.0)  # long after the files were written
    catalog = catalog_at(tmp_path, clock)
    catalog.housekeeper.poke()
    settle(catalog)
    catalog.close()
    catalog = catalog_at(tmp_path, clock)
    lost = catalog.store.new_location(b"k" * 32)
    with catalog.store.stage(lost) as staging:
        staging.write_object([1, 2, 3])
        staging.publish()
    clock.move(SWEEP_EVERY)
    catalog.housekeeper.poke()
    settle(catalog)
    assert catalog.store.size_of(lost) is None
    assert catalog.index.passed("sweep") == clock.now()
    catalog.close()


def test_one_process_of_many_sweeps(tmp_path, monkeypatch):
    clock = ManualClock()
    catalogs = [catalog_at(tmp_path, clock) for _ in range(3)]
    swept = []
    for catalog in catalogs:
        monkeypatch.setattr(catalog.collector, "sweep", lambda halted: swept.append(1))
    for days in (0, 1, 1, 2):
        clock.move(days * SWEEP_EVERY)
        for catalog in catalogs:
            catalog.collector.sweep_if_due()
    assert len(swept) == 3, "none when the catalog is new"
    clock.move(-5 * SWEEP_EVERY)
    catalogs[0].collector.sweep_if_due()
    assert len(swept) == 4, "a clock that was set back keeps nobody from it"
    for catalog in catalogs:
        catalog.close()


def test_a_sweep_ends_with_the_process(tmp_path):
    clock = ManualClock(4_000_000_000.0)
    catalog = catalog_at(tmp_path, clock)
    lost = catalog.store.new_location(b"k" * 32)
    with catalog.store.stage(lost) as staging:
        staging.write_object([1])
        staging.publish()
    assert catalog.collector.sweep(halted=lambda: True).swept == []
    assert catalog.collector.sweep().swept == [lost]
    catalog.close()


def test_a_failing_pass_disturbs_nobody(tmp_path, monkeypatch, caplog):
    clock = ManualClock()
    catalog = catalog_at(tmp_path, clock)
    monkeypatch.setattr(catalog.collector, "enforce", lambda coming=0: 1 / 0)
    kept = catalog.keep(b"a" * 32, b"p" * 32, b"x" * 10_000)
    settle(catalog)
    assert type(kept).__name__ == "Kept"
    assert "housekeeping did not finish" in caplog.text
    catalog.close()
