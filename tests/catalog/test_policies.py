"""What each policy would let go first."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.catalog.test_state import NOW, candidate

from nectar.catalog.policies import POLICIES, policy_named
from nectar.errors import SettingError


def ranking(name, *candidates):
    """The numbers of candidates in the order in which they would go."""
    policy = policy_named(name)
    return sorted(range(len(candidates)), key=lambda at: -policy.expendability(candidates[at], NOW))


def test_cost_benefit_is_the_ratio_of_the_paper():
    value = policy_named("cost-benefit").expendability(candidate(size=100, used=NOW - 9, hits=5, seconds=2.0), NOW)
    assert value == 100 * (9 + 1) / (5 * 2.0)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (dict(size=200), dict(size=100)),
        (dict(used=0.0), dict(used=500.0)),
        (dict(hits=1), dict(hits=2)),
        (dict(seconds=1.0), dict(seconds=2.0)),
    ],
)
def test_cost_benefit_lets_go_what_is_large_idle_unused_cheap(first, second):
    assert ranking("cost-benefit", candidate(**second), candidate(**first)) == [1, 0]


def test_cost_benefit_of_what_took_no_time_and_was_never_used():
    value = policy_named("cost-benefit").expendability(candidate(seconds=0.0, hits=0, used=NOW + 5), NOW)
    assert math.isfinite(value)
    assert value > 0


def test_least_recently_used():
    assert ranking("lru", candidate(used=5.0, size=1), candidate(used=4.0, hits=100), candidate(used=6.0)) == [1, 0, 2]


def test_least_frequently_recently_used():
    often, once, long_ago = candidate(hits=7, used=NOW), candidate(hits=1, used=NOW), candidate(hits=7, used=-(10**6))
    assert ranking("lrfu", often, once, long_ago) == [2, 1, 0]


def test_greedy_dual_size_frequency():
    small, large, costly = candidate(size=10), candidate(size=1000), candidate(size=1000, seconds=10**6)
    assert ranking("gdsf", small, large, costly) == [1, 0, 2]
    assert ranking("gdsf", candidate(used=NOW), candidate(used=0.0)) == [1, 0]


@given(
    st.sampled_from(sorted(POLICIES)),
    st.integers(0, 2**60),
    st.floats(0, 1e9),
    st.integers(0, 2**40),
    st.floats(0, 1e10),
)
def test_every_policy_gives_a_number(name, size, seconds, hits, used):
    assert math.isfinite(
        policy_named(name).expendability(candidate(size=size, seconds=seconds, hits=hits, used=used), NOW)
    )


def test_an_unknown_policy_is_refused_with_those_there_are():
    with pytest.raises(SettingError, match="cost-benefit, lru, lrfu, gdsf"):
        policy_named("random")
