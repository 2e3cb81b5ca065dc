"""Which states of runs of a stream are kept: larger ones made of neighbours, and a few of its former heads.

A window that moves: a binary counter over what arrives; two runs of equal size that stand side by side become one of
the double size. Law: no run becomes half of two larger ones, so of n arrivals there are fewer than 2 n runs, and any
window over them is covered by about 2 log2 n. A stream that grows: of its heads about log2 n stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


def outgrown(lengths: Iterable[int], reached: int) -> set[int]:
    """Of heads of these lengths, those that may go once the stream has reached another length.

    A history that branches does so near its end, mostly. Of the heads that are 1, 2 or 3, 4 to 7, 8 to 15 ... shorter,
    the shortest of each stays, and grows into the next; so a few are there however far back the branch is.
    """
    shortest: dict[int, int] = {}
    shorter = {length for length in lengths if length < reached}
    for length in shorter:
        distance = (reached - length).bit_length()
        shortest[distance] = min(length, shortest.get(distance, length))
    return shorter - set(shortest.values())
