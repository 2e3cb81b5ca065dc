"""Which runs of a stream are merged into larger ones, so that a window that moves over it needs few of them.

A binary counter over what arrives: two runs of equal size that stand side by side become one of the double size. Law:
no run becomes half of two larger ones, so of n arrivals there are fewer than 2 n runs, and any window over them is
covered by about 2 log2 n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def doubled(
    runs: Sequence[_T],
    size_of: Callable[[_T], int],
    is_half: Callable[[_T], bool],
    merge: Callable[[_T, _T], _T],
) -> list[_T]:
    """Runs that cover the same, in the same order, of which no two neighbours could be merged.

    is_half: whether a run is already half of a known one of the double size, which may reach out of the window.
    """
    done: list[_T] = []
    for run in runs:
        done.append(run)
        while len(done) > 1 and size_of(done[-2]) == size_of(done[-1]) and not any(map(is_half, done[-2:])):
            right, left = done.pop(), done.pop()
            done.append(merge(left, right))
    return done
