"""Recipes and provenance count towards the budget: what nobody can reach goes before results do."""

import os
import random
import tempfile
from pathlib import Path

import pytest
from tests.catalog.making import MEMORY, fork_and_die, key, manual_clock, opened, read, value

from nectar.catalog.check import check
from nectar.catalog.collect import SWEEP_EVERY
from nectar.catalog.service import Kept
from nectar.model.entry import RECIPE_LABEL, Version
from nectar.model.lineage import Sources

BUDGET = 8_000_000
SETTLED = 700.0  # seconds after which nobody is about to keep what a recipe is of


@pytest.fixture(autouse=True)
def _noise(monkeypatch):
    """What stands for recipes here is noise, which may look like anything."""
    monkeypatch.setattr("nectar.catalog.index.recipes.looks_secret", lambda part: False)


@pytest.fixture
def clock():
    return manual_clock()


@pytest.fixture
def catalog(tmp_path, clock):
    catalog = opened(tmp_path / "home", clock, budget=BUDGET)
    yield catalog
    catalog.close()


def keep(catalog, number, recipe=0, size=2000, made_from=()):
    """A result with a recipe of so many bytes, as dialects keep it; whether there was room for both."""
    identity = None
    if recipe and catalog.collector.has_room_for_record(recipe):
        identity = catalog.put_recipe([random.Random(number).randbytes(recipe)])
        label = f"{RECIPE_LABEL}{key(number).hex()}"
        catalog.index.add_version(Version(label, identity, identity, catalog.clock.now()))
    done = catalog.keep(
        key(number), key(0), value(number, size), recipe=identity, rebuildable=identity is not None, seconds=1.0,
        made_from=[catalog.index.lookup([key(each)])[key(each)] for each in made_from], sources=Sources,
    )  # fmt: skip
    return identity is not None, isinstance(done, Kept)


def has_recipe(catalog, number):
    return bool(catalog.index.versions(f"{RECIPE_LABEL}{key(number).hex()}"))


def test_recipes_never_outgrow_the_budget(catalog, clock):
    """Each run has another function; its recipe is of no use once its result is gone."""
    for number in range(40):
        assert keep(catalog, number, recipe=1_000_000) == (True, True)
        assert catalog.usage().total <= BUDGET
        clock.move(SETTLED)
    assert catalog.index.path.stat().st_size < 2 * BUDGET
    assert read(catalog, 39) == value(39)
    assert catalog.index.broken_recipes() == []
    assert all(has_recipe(catalog, entry_number) for entry_number in range(40) if read(catalog, entry_number))


def test_no_more_results_go_than_have_to_for_recipes_that_are_larger(catalog, clock):
    for number in range(20, 40):
        keep(catalog, number, size=100_000)
    for number in range(4):
        keep(catalog, number, recipe=1_000_000)
        clock.move(SETTLED)
    before = catalog.usage().entries
    assert before == 24
    assert keep(catalog, 4, recipe=1_000_000) == (True, True)
    assert catalog.usage().records < BUDGET // 2
    assert before - 10 <= catalog.usage().entries


def test_new_results_do_not_go_for_recipes(catalog):
    """What they came from could not be forgotten yet, so it would be in vain."""
    kept = [keep(catalog, number, recipe=1_000_000)[0] for number in range(10)]
    assert kept == [True] * 4 + [False] * 6
    assert catalog.usage().entries == 10
    assert catalog.usage().records < BUDGET // 2


def test_what_nobody_can_reach_goes_before_any_result(catalog, clock):
    for number in range(4):
        keep(catalog, number, recipe=1_000_000)
    catalog.discard([catalog.index.lookup([key(number)])[key(number)] for number in range(3)])
    catalog.bind("team/one", key(1))
    clock.move(SETTLED)
    assert keep(catalog, 10, size=5_500_000) == (False, True)
    assert [has_recipe(catalog, number) for number in range(4)] == [False, True, False, True]
    assert read(catalog, 3) == value(3)
    assert read(catalog, 10) == value(10, 5_500_000)
    assert catalog.usage().total <= BUDGET


def test_within_the_budget_nothing_is_forgotten(catalog, clock):
    keep(catalog, 1, recipe=1_000_000)
    catalog.discard(catalog.index.lookup([key(1)]).values())
    clock.move(100 * SETTLED)
    catalog.collector.enforce()
    assert catalog.collector.has_room_for_record(1000)
    assert has_recipe(catalog, 1), "what was evicted can be made again, as long as there is room for its recipe"
    assert key(1) in catalog.index.made([key(1)])


def test_recipes_of_what_a_named_result_came_from_stay(catalog, clock):
    keep(catalog, 1, recipe=1_000_000)
    keep(catalog, 2, recipe=1_000_000, made_from=[1])
    catalog.bind("team/two", key(2))
    catalog.discard(list(catalog.index.entries()))
    clock.move(SETTLED)
    for number in range(10, 20):
        keep(catalog, number, recipe=1_000_000)
        clock.move(SETTLED)
        assert catalog.usage().total <= BUDGET
    assert has_recipe(catalog, 1)
    assert has_recipe(catalog, 2)


def test_a_recipe_that_takes_much_of_the_budget_is_not_kept(catalog):
    assert keep(catalog, 1, recipe=BUDGET // 3) == (False, True)
    assert not catalog.index.lookup([key(1)])[key(1)].rebuildable
    assert catalog.usage().records == 0


def test_a_recipe_whose_result_is_still_to_come_is_not_forgotten(catalog, clock):
    identity = catalog.put_recipe([random.Random(1).randbytes(1_000_000)])
    for number in range(10, 16):
        keep(catalog, number, recipe=1_000_000)
    assert catalog.index.get_recipe(identity) is not None
    assert catalog.usage().total <= BUDGET


@pytest.fixture
def folder():
    """In memory, if that can be."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_while_records_are_forgotten_nothing_is_torn(folder):
    """Each deletion happens as a whole or not at all; the next pass goes on."""
    fatal, killed = 0, -1
    while killed < 0 or killed == fatal:
        fatal, killed = fatal + 1, max(killed, 0)
        clock, home = manual_clock(), folder / str(fatal)
        catalog = opened(home, clock, budget=BUDGET)
        for number in range(3):
            keep(catalog, number, recipe=1000, made_from=[number - 1] if number else [])
        catalog.bind("two", key(2))
        keep(catalog, 5, recipe=1000)
        catalog.discard(list(catalog.index.entries()))
        clock.move(SETTLED)
        catalog.close()

        def forget(reach):
            catalog = opened(home, clock, reach, budget=BUDGET)
            while catalog.index.forget_unneeded(clock.now(), 1):
                pass
            catalog.index.note_pass("sweep", clock.now() - 2 * SWEEP_EVERY)
            catalog.collector.sweep_if_due()

        killed += fork_and_die(forget, fatal)
        catalog = opened(home, clock, budget=BUDGET)
        assert catalog.index.broken_recipes() == []
        assert check(catalog, thorough=True) == []
        while catalog.index.forget_unneeded(clock.now(), 1):
            pass
        assert [has_recipe(catalog, number) for number in (0, 1, 2, 5)] == [True, True, True, False]
        assert catalog.index.made([key(5)]) == {}
        assert catalog.index.totals().recipes == 3
        catalog.close()
    assert killed > 5
