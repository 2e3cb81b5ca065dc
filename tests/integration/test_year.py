"""A year on a clock that is moved by hand: a store with room for a fifth of what has a name."""

import pytest
from benchmarks.derived_year import DAYS, Run, items, readings, years

from nectar.catalog.collect import Collected, Collector
from nectar.catalog.policies import POLICIES


def expect_a_good_year(found, count):
    """Budget and content are looked at in the year itself, which ends with an error if anything is wrong."""
    ours, lru, lfu, _ = found
    assert [year.policy for year in found] == ["cost-benefit", "lru", "lfu", "gdsf"]
    assert {year.readings for year in found} == {count}
    assert all(0 < year.rebuilds for year in found)
    assert all(0.8 < year.peak <= 1 for year in found), "the room is used, and there is never more"
    assert ours.seconds < lru.seconds
    assert ours.seconds < lfu.seconds


def test_a_small_year():
    expect_a_good_year(years(60, 6, 30), 180)


@pytest.mark.deep
def test_a_year_of_a_thousand_names():
    expect_a_good_year(years(1000, 20, DAYS), 20 * DAYS)


def test_a_year_over_its_budget_is_found_out(tmp_path, monkeypatch):
    from random import Random

    monkeypatch.setattr(Collector, "enforce", lambda *_: Collected())
    run = Run(tmp_path, items(20, Random(1)), POLICIES["lru"])
    with pytest.raises(AssertionError, match=r"no room|budget"):
        run.run(readings(20, 2, 2, Random(1)))


def test_popularity_drifts():
    from random import Random

    given = readings(100, 200, 200, Random(3))
    first, last = given[:4000], given[-4000:]

    def most_read(some):
        counts = {}
        for each in some:
            counts[each.number] = counts.get(each.number, 0) + 1
        return set(sorted(counts, key=counts.get)[-5:])

    assert most_read(first) != most_read(last)
