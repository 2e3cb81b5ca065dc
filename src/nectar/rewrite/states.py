"""Putting the state of a stream together: known states of runs of it, new ones of the gaps, merged.

In: a stream that is cut, how it is covered, what is known of it, and somebody who reads, computes and merges. Out: the
state of everything, and the states that are worth keeping: those of gaps; if the stream has grown, that of everything,
so that the next growth merges two; if it moves like a window, those of neighbours of equal size (`doubling`), so that a
window needs few of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from nectar.model.entry import SUPERSEDED, Entry
from nectar.rewrite.covering import Covering, Cut
from nectar.rewrite.doubling import doubled, outgrown
from nectar.rewrite.segments import Gap, Run

_CHANCES: Final = 4  # states that may be kept in vain: a run keeps two, that of what is new and that of everything
_MOST_NEW_STATES: Final = 400  # of one gap: each costs the start of a plan

_Frame = TypeVar("_Frame")


class Piece(Struct, Generic[_Frame], frozen=True):
    """A state at hand: of which run of parts, and what it took, everything it was made from included.

    known: the entry it was read from; None if it is new. supersedes: entries that are hardly needed once it is kept.
    outgrown: those of them that are not needed at all.
    """

    start: int
    end: int
    frame: _Frame
    seconds: float
    known: Entry | None = None
    supersedes: tuple[Entry, ...] = ()
    outgrown: tuple[Entry, ...] = ()


class Work(Protocol[_Frame]):
    """Who has states at hand, or makes them."""

    def read(self, entry: Entry) -> _Frame:
        """The state that an entry holds."""

    def computed(self, start: int, end: int) -> Piece[_Frame]:
        """The state of a run of parts, computed."""

    def merged(self, pieces: Sequence[Piece[_Frame]]) -> Piece[_Frame]:
        """The state of neighbouring runs, which stand in order."""

    def extended(self, head: Run[Entry], end: int) -> Piece[_Frame] | None:
        """The state of a known run and of the parts behind it, without a state of their own; None if it is no gain."""


class Together(Struct, Generic[_Frame], frozen=True):
    """The state of everything. new: states of what was computed. merged: states of larger runs, worth keeping."""

    whole: Piece[_Frame]
    new: list[Piece[_Frame]]
    merged: list[Piece[_Frame]] = field(default_factory=list)


def are_useless(cut: Cut, covering: Covering, entries: Sequence[Entry]) -> bool:
    """Whether states would be made of everything, and are not likely to be needed again."""
    return not covering.known and (cut.count == 1 or _in_vain(cut, entries))


def put_together(cut: Cut, covering: Covering, entries: Sequence[Entry], work: Work[_Frame]) -> Together[_Frame]:
    """The state of everything, put together as it is covered."""
    # Of streams that stand behind each other, each grows at its end: states of everything would be of no use.
    grows = not cut.seams and _grows(cut, entries)
    # States are known, but of streams with another beginning: it moves. States of single files outlive that.
    moves = bool(entries) and not grows and not cut.seams
    at_once = _extended(covering, work) if grows else None
    if at_once is not None:
        return Together(at_once, [], [_superseding(at_once, cut, covering, entries)])
    at_hand: list[Piece[_Frame]] = []
    for piece in covering.pieces:
        if isinstance(piece, Run):
            frame = work.read(piece.what)
            at_hand.append(Piece(piece.start, piece.end, frame, piece.what.seconds, piece.what))
        else:
            at_hand += [work.computed(start, end) for start, end in _cuts(piece, moves, cut.seams)]
    new = [piece for piece in at_hand if piece.known is None]
    merged: list[Piece[_Frame]] = []
    if moves:
        at_hand = _doubled(cut, at_hand, entries, work, merged)
    if len(at_hand) > 1:
        whole = work.merged(at_hand)
        if grows:
            merged.append(_superseding(whole, cut, covering, entries))
        at_hand = [whole]
    return Together(at_hand[0], new, merged)


def _extended(covering: Covering, work: Work[_Frame]) -> Piece[_Frame] | None:
    """The state of everything where one of its beginning is known, and everything else is new; None if it is not so."""
    if len(covering.pieces) != 2:
        return None
    head, gap = covering.pieces
    if not isinstance(head, Run) or not isinstance(gap, Gap):
        return None
    return work.extended(head, gap.end)


def _superseding(
    whole: Piece[_Frame], cut: Cut, covering: Covering, entries: Sequence[Entry]
) -> Piece[_Frame]:  # fmt: skip
    """The next growth merges two states. What was the state of everything is for histories that branch."""
    supersedes = tuple(run.what for run in covering.known if run.start == 0)
    return replace(whole, supersedes=supersedes, outgrown=_outgrown(cut, entries))


def _doubled(
    cut: Cut, pieces: Sequence[Piece[_Frame]], entries: Sequence[Entry], work: Work[_Frame],
    merged: list[Piece[_Frame]],
) -> list[Piece[_Frame]]:  # fmt: skip
    """Fewer states of the same: neighbours of equal size are merged, and added to those worth keeping."""
    halves = _Halves.of(cut, entries)

    def merge(left: Piece[_Frame], right: Piece[_Frame]) -> Piece[_Frame]:
        merged.append(work.merged([left, right]))
        return merged[-1]

    return doubled(
        pieces,
        lambda piece: cut.spans_of(piece.start, piece.end)[0].count,
        lambda piece: halves.has(piece.start, piece.end),
        merge,
    )


def _in_vain(cut: Cut, entries: Sequence[Entry]) -> bool:
    """Whether the last states of runs of these files were never used: something else than the files changes."""
    of_these = [entry for entry in entries if any(True for _ in cut.runs_of(entry.spans))]
    latest = sorted(of_these, key=lambda entry: entry.created)[-_CHANCES:]
    return len(latest) == _CHANCES and all(entry.hits == 0 for entry in latest)


def _grows(cut: Cut, entries: Sequence[Entry]) -> bool:
    """Whether a stream has grown, or branched: one about as long began with the same file."""
    spans = [entry.spans[0] for entry in entries if entry.spans]
    length = cut.spans_of(0, cut.count)[0].count
    return any(2 * span.count >= length and span.first in cut.first_names for span in spans)


def _outgrown(cut: Cut, entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Superseded states of heads of a stream, of which there are enough others."""
    heads = {
        last: entry
        for entry in entries
        if entry.protected == SUPERSEDED
        for first, last in cut.runs_of(entry.spans)
        if first == 0
    }
    return tuple(heads[length] for length in sorted(outgrown(heads, cut.count)))


def _cuts(gap: Gap, moves: bool, seams: Sequence[int]) -> list[tuple[int, int]]:
    """The runs for which a gap gets states: one by one if the stream moves, unless they are too many.

    A state of two streams would be of no use once the first of them grows.
    """
    length = gap.end - gap.start
    places = range(gap.start, gap.end, -(-length // _MOST_NEW_STATES)) if moves else seams
    return list(itertools.pairwise([gap.start, *(at for at in places if gap.start < at < gap.end), gap.end]))


class _Halves(Struct, frozen=True):
    """Which runs are halves of known ones, told by their first or last file; the other half need not be there."""

    cut: Cut
    begins: frozenset[tuple[bytes, int]]
    ends: frozenset[tuple[bytes, int]]

    @classmethod
    def of(cls, cut: Cut, entries: Sequence[Entry]) -> _Halves:
        """By the spans of entries."""
        spans = [entry.spans[0] for entry in entries if entry.spans]
        return cls(
            cut,
            frozenset((span.first, span.count) for span in spans),
            frozenset((span.last, span.count) for span in spans),
        )

    def has(self, start: int, end: int) -> bool:
        """Whether a run of parts is half of a known one of the double size."""
        first, last, count = self.cut.ends_of(start, end)
        return any((name, 2 * count) in self.begins for name in first) or any(
            (name, 2 * count) in self.ends for name in last
        )
