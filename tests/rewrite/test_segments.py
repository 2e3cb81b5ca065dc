"""Covers are made of disjoint runs of the greatest worth."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from nectar.rewrite.segments import Gap, Run, cover

RUNS = st.lists(
    st.builds(
        lambda start, length, worth: Run(start, start + length, worth, None),
        st.integers(-1, 9), st.integers(0, 6), st.integers(1, 20),
    ),
    max_size=9,
)  # fmt: skip


def test_nothing_known_is_one_gap():
    assert cover(3, []) == [Gap(0, 3)]
    assert cover(0, []) == []


def test_a_prefix_and_what_is_new():
    old = Run(0, 5, 5.0, "days 1 to 5")
    assert cover(6, [old, Run(0, 1, 1.0, "day 1")]) == [old, Gap(5, 6)]


def test_days_made_by_others_fill_a_week():
    days = [Run(day, day + 1, 1.0, day) for day in range(7)]
    assert cover(7, days) == days


def test_of_equal_worth_the_fewest_runs():
    whole, halves = Run(0, 4, 4.0, "whole"), [Run(0, 2, 2.0, "a"), Run(2, 4, 2.0, "b")]
    assert cover(4, [*halves, whole]) == [whole]


@given(st.integers(0, 10), RUNS)
def test_no_other_choice_is_worth_more(count, runs):
    pieces = cover(count, runs)
    reached = 0
    for piece in pieces:
        assert piece.start == reached
        assert piece.end > piece.start
        reached = piece.end
    assert reached == count
    chosen = [piece for piece in pieces if isinstance(piece, Run)]
    assert all(run in runs for run in chosen)
    assert sum(run.worth for run in chosen) == _best(count, runs)


def _best(count, runs):
    fitting = [run for run in runs if 0 <= run.start < run.end <= count]
    worths = [0]
    for size in range(1, len(fitting) + 1):
        for some in itertools.combinations(sorted(fitting, key=lambda run: run.start), size):
            if all(one.end <= other.start for one, other in itertools.pairwise(some)):
                worths.append(sum(run.worth for run in some))
    return max(worths)
