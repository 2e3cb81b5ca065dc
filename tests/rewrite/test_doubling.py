"""Runs of equal size become one, and any window over what arrived needs few of them."""

import math

from hypothesis import given
from hypothesis import strategies as st

from nectar.rewrite.doubling import doubled, outgrown
from nectar.rewrite.segments import Gap, Run, cover


class Arrivals:
    """States of runs of arrivals, kept as a window moves over them."""

    def __init__(self):
        self.known = set()

    def is_half(self, run):
        size = run[1] - run[0]
        return (run[0], run[1] + size) in self.known or (run[0] - size, run[1]) in self.known

    def merge(self, left, right):
        assert left[1] == right[0]
        both = (left[0], right[1])
        assert both not in self.known, "merged before"
        self.known.add(both)
        return both

    def window(self, start, end):
        """How many known runs the window was made from, after those missing were computed one by one."""
        inside = [Run(a - start, b - start, b - a, (a, b)) for a, b in self.known if start <= a and b <= end]
        held, used = [], 0
        for piece in cover(end - start, inside):
            if isinstance(piece, Gap):
                singles = [(at + start, at + start + 1) for at in range(piece.start, piece.end)]
                self.known.update(singles)
                held += singles
            else:
                held.append(piece.what)
                used += 1
        done = doubled(held, lambda run: run[1] - run[0], self.is_half, self.merge)
        assert (done[0][0], done[-1][1]) == (start, end)
        assert all(one[1] == other[0] for one, other in zip(done, done[1:], strict=False))
        return used


def test_four_become_one():
    arrivals = Arrivals()
    arrivals.window(0, 4)
    assert sorted(arrivals.known) == [(0, 1), (0, 2), (0, 4), (1, 2), (2, 3), (2, 4), (3, 4)]


def test_half_of_a_pair_that_reaches_out_of_the_window_is_not_paired_again():
    arrivals = Arrivals()
    arrivals.window(0, 2)
    arrivals.window(1, 3)
    assert sorted(arrivals.known) == [(0, 1), (0, 2), (1, 2), (2, 3)]


@given(st.integers(2, 70), st.lists(st.integers(1, 3), min_size=1, max_size=40))
def test_a_window_needs_few_runs_and_few_are_kept(length, moves):
    arrivals = Arrivals()
    arrivals.window(0, length)
    start = 0
    for by in moves:
        start += by
        assert arrivals.window(start, start + length) <= 2 * math.log2(length) + 2
    assert len(arrivals.known) < 2 * (start + length)


def test_few_heads_stay_and_one_is_never_far_from_any_branch():
    heads = set()
    for reached in range(1, 300):
        heads -= outgrown(heads, reached)
        assert len(heads) <= math.log2(reached) + 1
        for back in range(1, reached - 1):
            usable = [length for length in heads if length <= reached - back]
            assert not usable or reached - max(usable) <= 4 * back
        heads.add(reached)


def test_what_is_longer_is_none_of_its_heads():
    assert outgrown([4, 5, 6, 9, 12], 9) == {5}
