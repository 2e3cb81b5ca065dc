"""Covering a stream with results that are known for runs of it.

In: which runs of a stream's extents have a known result, and what each is worth. Out: disjoint runs with the greatest
worth, and the gaps between them, in order. Weighted interval scheduling: sort by end, then one pass.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Generic, TypeVar

from msgspec import Struct

_T = TypeVar("_T")


class Run(Struct, Generic[_T], frozen=True):
    """Extents from start to end (which is not included). worth: of not computing it. what: the result."""

    start: int
    end: int
    worth: float
    what: _T


class Gap(Struct, frozen=True):
    """Extents for which nothing is known."""

    start: int
    end: int


def cover(count: int, runs: Sequence[Run[_T]]) -> list[Run[_T] | Gap]:
    """A stream of so many extents, cut into runs and gaps, in order.

    Of all ways to choose runs that do not overlap, one with the greatest worth; of several, one with the fewest runs.
    """
    ordered = sorted((run for run in runs if 0 <= run.start < run.end <= count), key=lambda run: (run.end, run.start))
    ends = [run.end for run in ordered]
    best: list[tuple[float, int]] = [(0.0, 0)]  # of the first n: worth, and minus the number of runs
    taken: list[bool] = []
    for at, run in enumerate(ordered):
        before = bisect_right(ends, run.start, 0, at)
        worth, fewest = best[before]
        with_it = (worth + run.worth, fewest - 1)
        taken.append(with_it > best[at])
        best.append(max(with_it, best[at]))
    chosen: list[Run[_T]] = []
    at = len(ordered)
    while at > 0:
        if taken[at - 1]:
            chosen.append(ordered[at - 1])
            at = bisect_right(ends, ordered[at - 1].start, 0, at - 1)
        else:
            at -= 1
    return _with_gaps(count, list(reversed(chosen)))


def _with_gaps(count: int, runs: list[Run[_T]]) -> list[Run[_T] | Gap]:
    pieces: list[Run[_T] | Gap] = []
    reached = 0
    for run in runs:
        if reached < run.start:
            pieces.append(Gap(reached, run.start))
        pieces.append(run)
        reached = run.end
    if reached < count:
        pieces.append(Gap(reached, count))
    return pieces
