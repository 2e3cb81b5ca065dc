"""Estimates: what is known is used unless computing everything is clearly faster."""

import pytest

from nectar.rewrite.cost import TOO_CLOSE, Estimate, Past, Rates, prices

MEGABYTE = 1 << 20
RATES = Rates(starting=0.001, opening=0.0001, merging=1e-9, reading=1e-10)


def past(read, seconds, size=1000):
    return Past(read * MEGABYTE, size, seconds)


def test_nothing_can_be_told_of_nothing():
    assert prices(3, [], RATES, states=True) is None
    assert prices(3, [Past(0, 10, 1.0)], RATES, states=True) is None, "inputs whose size is not known"
    assert prices(3, [past(5, 0.0)], RATES, states=True) is None, "it is not known what they took"


def test_what_is_new_costs_what_the_same_took_before():
    found = prices(10, [past(100, 1.001)], RATES, states=True).estimate(
        1000 * MEGABYTE, [100 * MEGABYTE], [past(900, 9)]
    )
    assert found.whole == pytest.approx(10.001)
    assert found.computing == pytest.approx(1.001)
    assert found.using < 0.01
    assert found.is_worth_it


def test_a_state_as_large_as_its_input_does_not_pay():
    price = prices(10, [past(100, 0.05)], RATES, states=True)
    large = past(900, 0.45, size=900 * MEGABYTE)
    found = price.estimate(1000 * MEGABYTE, [100 * MEGABYTE], [large])
    assert not found.is_worth_it
    assert price.worth(large, 9) < 0
    assert price.worth(past(900, 0.45), 9) > 0


def test_what_is_new_has_a_state_that_is_merged_as_well():
    large = prices(10, [past(100, 0.05, size=100 * MEGABYTE)], RATES, states=True)
    small = prices(10, [past(100, 0.05)], RATES, states=True)
    more, less = (each.estimate(1000 * MEGABYTE, [100 * MEGABYTE], [past(900, 1)]) for each in (large, small))
    assert more.using - less.using == pytest.approx(100 * MEGABYTE * RATES.merging, rel=0.01)
    assert more.computing == less.computing


def test_rows_are_cheaper_to_put_together_than_states():
    rows, states = (prices(10, [past(100, 0.05)], RATES, states=each) for each in (False, True))
    assert rows.of_use(MEGABYTE) < states.of_use(MEGABYTE)


def test_what_cannot_be_told_apart_is_reused():
    assert Estimate(whole=0.005, computing=0.01, using=0.005).is_worth_it
    assert not Estimate(whole=0.005, computing=0.02, using=0.01).is_worth_it
    tiny = prices(4, [Past(100, 50, 0.0001)] * 3, RATES, states=True)
    assert tiny.worth(Past(100, 50, 0.0001), 1) > 0, "a quarter of what is too close to be told"
    assert TOO_CLOSE > 0


def test_one_run_is_worth_more_than_its_halves():
    price = prices(8, [past(1, 0.01)], RATES, states=True)
    assert price.worth(past(2, 0.02, size=1500), 2) > 2 * price.worth(past(1, 0.01, size=1000), 1)


def test_the_smallest_runs_tell_what_computing_takes():
    small = [past(1, 0.011)] * 4
    merged = [past(4, 4.0)] * 4
    assert prices(8, [*small, *merged], RATES, states=True).computing == pytest.approx(0.01 / MEGABYTE)


def test_rates_are_learned_from_what_runs_took():
    learned = Rates()
    for _ in range(30):
        learned = learned.learned(100 * MEGABYTE, 1.0, states=True)
    assert learned.merging == pytest.approx((1.0 - learned.starting) / (100 * MEGABYTE), rel=0.01)
    assert learned.reading == Rates().reading
    assert learned.learned(100 * MEGABYTE, 2.0, states=False).reading > learned.reading
    assert learned.learned(10, 5.0, states=True) == learned, "little data tells how long a plan takes to start"
