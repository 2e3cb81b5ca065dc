"""Known runs of a cut: found by their first and last files, priced, chosen so that they save most, and proven.

A run is proven by its key, which is computed from the files there are now. What its result is worth is what computing
it would take, by what past runs of the same program took, without what reading and merging it takes on this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from nectar.model.entry import Entry, Span
from nectar.rewrite.cost import Estimate, Past, Prices, Rates, prices
from nectar.rewrite.segments import Gap, Run, cover

LATEST: Final = 64  # entries of a program that are looked at first; a stream that grows needs no others

Key = Callable[[int, int, int], bytes]  # of a run of parts: start, end, and which of the names of files


class Cut(Protocol):
    """Streams cut into parts, as planning sees them."""

    @property
    def count(self) -> int:
        """How many parts there are."""

    @property
    def seams(self) -> tuple[int, ...]:
        """Where one stream ends and the next begins, if several stand one behind the other."""

    @property
    def first_names(self) -> Collection[bytes]:
        """The names of the first extent, as it is and as it was."""

    def size_of(self, start: int, end: int) -> int:
        """Bytes of the extents of a run of parts."""

    def spans_of(self, start: int, end: int) -> tuple[Span, ...]:
        """How a run of parts is found again."""

    def runs_of(self, spans: Sequence[Span]) -> Iterable[tuple[int, int]]:
        """The runs of parts that may have been found with these spans."""

    def ends_of(self, start: int, end: int) -> tuple[Collection[bytes], Collection[bytes], int]:
        """The names of the first extent that leads in a run of parts, those of the last, and how many there are."""


class Covering(Struct, frozen=True):
    """A run of parts, cut into known runs and gaps.

    fitting: how many known runs there are to choose from. estimate: what it is thought to take; None if nothing tells.
    """

    pieces: list[Run[Entry] | Gap]
    fitting: int
    estimate: Estimate | None = None

    @property
    def known(self) -> list[Run[Entry]]:
        """The known runs that were chosen."""
        return [piece for piece in self.pieces if isinstance(piece, Run)]

    def is_nearly_all(self, cut: Cut) -> bool:
        """Whether hardly anything of the stream is left to be computed."""
        known = sum(cut.size_of(run.start, run.end) for run in self.known)
        return 16 * known > 15 * cut.size_of(0, cut.count)

    @property
    def is_worth_it(self) -> bool:
        """Whether to use it: not where computing everything is clearly faster."""
        if self.fitting and not self.known:
            return False
        return self.estimate is None or self.estimate.is_worth_it


def covered(
    start: int, end: int, cut: Cut, entries: Sequence[Entry], key: Key, rates: Rates, *, states: bool
) -> Covering:
    """A run of parts, covered as it saves most. states: the results are merged, and not put one after the other."""
    found = [
        (first, last, entry)
        for entry in entries
        for first, last in cut.runs_of(entry.spans)
        if start <= first and last <= end
    ]
    past = [Past(cut.size_of(first, last), entry.size, entry.seconds) for first, last, entry in found]
    price = prices(end - start, past, rates, states)
    runs = [
        Run(first - start, last - start, _worth(price, each, last - first), entry)
        for (first, last, entry), each in zip(found, past, strict=True)
    ]
    pieces, fitting = _proven(end - start, runs, lambda first, last, which: key(start + first, start + last, which))
    moved = [_moved(piece, start) for piece in pieces]
    return Covering(moved, fitting, None if price is None else _estimate(price, cut, start, end, moved))


def _worth(price: Prices | None, past: Past, parts: int) -> float:
    return float(parts) if price is None else price.worth(past, parts)


def _proven(count: int, runs: Sequence[Run[Entry]], key: Key) -> tuple[list[Run[Entry] | Gap], int]:
    """The best cover whose runs all have the key that they should have; and how many runs were left to choose from."""
    while True:
        pieces = cover(count, runs)
        false = [
            piece
            for piece in pieces
            if isinstance(piece, Run)
            and piece.what.key not in {key(piece.start, piece.end, which) for which in (0, -1)}
        ]
        if not false:
            return pieces, len(runs)
        runs = [run for run in runs if run not in false]


def _estimate(price: Prices, cut: Cut, start: int, end: int, pieces: Sequence[Run[Entry] | Gap]) -> Estimate:
    gaps = [cut.size_of(piece.start, piece.end) for piece in pieces if isinstance(piece, Gap)]
    used = [Past(0, piece.what.size, piece.what.seconds) for piece in pieces if isinstance(piece, Run)]
    return price.estimate(cut.size_of(start, end), gaps, used)


def _moved(piece: Run[Entry] | Gap, by: int) -> Run[Entry] | Gap:
    if isinstance(piece, Gap):
        return Gap(piece.start + by, piece.end + by)
    return Run(piece.start + by, piece.end + by, piece.worth, piece.what)
