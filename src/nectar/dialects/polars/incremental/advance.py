"""Putting a computation together: known runs of its streams from the store, gaps computed.

Known runs are found, chosen and proven by `covering`. A gap is filled from what others left of it, such as the cleaned
log of a day, and what is not known of it either is read from its files.

States that are kept: those of gaps; if the stream has grown, that of everything, so that the next growth merges two; if
it moves like a window, those of neighbours of equal size (rewrite/doubling.py), so that a window needs few of them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from nectar.catalog.service import Catalog
from nectar.dialects.polars.incremental.covering import Covering, covered
from nectar.dialects.polars.incremental.cuts import Cut
from nectar.dialects.polars.incremental.cuts import Run as RunFrame
from nectar.dialects.polars.incremental.parts import Parts, Sources, scans_of, way_of
from nectar.dialects.polars.incremental.rates import learn, rates_of
from nectar.dialects.polars.keying import Keyed, key_over
from nectar.dialects.polars.stored import StoredFrame
from nectar.errors import EnvironmentFailure
from nectar.model.entry import SUPERSEDED, Entry
from nectar.rewrite.cost import Estimate, Rates
from nectar.rewrite.doubling import doubled, outgrown
from nectar.rewrite.segments import Gap, Run
from nectar.store.read import Result

_CHANCES: Final = 4  # states that may be kept in vain: a run keeps two, that of what is new and that of everything
_MOST_NEW_STATES: Final = 400  # of one gap: each costs the start of a plan


@dataclass(frozen=True, slots=True)
class Piece:
    """A state at hand: of which run of parts, and what it took, everything it was made from included.

    known: the entry it was read from; None if it is new. supersedes: entries that are hardly needed once it is kept.
    outgrown: those of them that are not needed at all.
    """

    start: int
    end: int
    frame: pl.DataFrame
    seconds: float
    known: Entry | None = None
    supersedes: tuple[Entry, ...] = ()
    outgrown: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class Advanced:
    """What became of it: the result, the entries it was made from, and states worth keeping.

    new: states of what was computed. merged: states of larger runs, made of several others. estimate: what it was
    thought to take.
    """

    frame: pl.DataFrame
    used: list[Entry]
    new: list[Piece]
    merged: list[Piece] = field(default_factory=list)
    estimate: Estimate | None = None


def covering_of(parts: Parts, catalog: Catalog) -> Covering:
    """What is known of a node that could be put together, and what that is thought to take."""
    return _covered_whole(parts, catalog.inquire([parts.program])[parts.program], rates_of(catalog))


def advance(parts: Parts, keyed: Keyed, catalog: Catalog, run: RunFrame, known: Sources) -> Advanced | None:
    """The result, put together; None if it is better computed as a whole, or cannot be put together."""
    work = _Work(parts, keyed, catalog, run, known)
    try:
        return work.done()
    except _CannotBeRead:
        return None
    finally:
        work.close()


class _CannotBeRead(Exception):
    """A part that was counted on is not there, or files cannot be read alone."""


class _Work:
    def __init__(self, parts: Parts, keyed: Keyed, catalog: Catalog, run: RunFrame, known: Sources) -> None:
        self._parts = parts
        self._keyed = keyed
        self._catalog = catalog
        self._run = run
        self._rates = rates_of(catalog)
        way = way_of(keyed.plan, parts.cut.scans, keyed.step_of[parts.node])
        self._beside = {step: frame for step, frame in known.items() if step not in way}
        self._chain = _chain(keyed, parts)
        programs = [keyed.program.nodes[keyed.node_of[step]].program for step in self._chain]
        self._entries = catalog.inquire([parts.program, *programs])
        self._opened: list[StoredFrame] = []
        self._used: list[Entry] = []

    def close(self) -> None:
        for stored in self._opened:
            stored.close()
        self._parts.cut.copies.close()

    def done(self) -> Advanced | None:
        entries = self._entries[self._parts.program]
        if not self._parts.are_states and not any(self._entries.values()):
            return None
        covering = _covered_whole(self._parts, entries, self._rates)
        if not covering.is_worth_it or (self._parts.are_states and self._is_useless(covering, entries)):
            return None
        done = self._states(covering, entries) if self._parts.are_states else self._rows(covering.pieces)
        return None if done is None else replace(done, estimate=covering.estimate)

    def _is_useless(self, covering: Covering, entries: Sequence[Entry]) -> bool:
        """Whether states would be made of everything, and are not likely to be needed again."""
        return not covering.known and (self._parts.cut.count == 1 or _in_vain(self._parts.cut, entries))

    def _states(self, covering: Covering, entries: Sequence[Entry]) -> Advanced:
        cut = self._parts.cut
        # Of streams that stand behind each other, each grows at its end: states of everything would be of no use.
        grows = not cut.seams and _grows(cut, entries)
        # States are known, but of streams with another beginning: it moves. States of single files outlive that.
        moves = bool(entries) and not grows and not cut.seams
        at_hand: list[Piece] = []
        for piece in covering.pieces:
            if isinstance(piece, Run):
                frame = self._read(piece.what)
                at_hand.append(Piece(piece.start, piece.end, frame, piece.what.seconds, piece.what))
            else:
                at_hand += [self._computed(start, end) for start, end in _cuts(piece, moves, cut.seams)]
        new = [piece for piece in at_hand if piece.known is None]
        merged: list[Piece] = []
        if moves:
            at_hand = self._doubled(at_hand, entries, merged)
        if len(at_hand) > 1:
            whole = self._merged(at_hand)
            if grows:
                # The next growth merges two states. What was the state of everything is for histories that branch.
                supersedes = tuple(run.what for run in covering.known if run.start == 0)
                merged.append(replace(whole, supersedes=supersedes, outgrown=_outgrown(cut, entries)))
            at_hand = [whole]
        return Advanced(self._run(self._parts.finished(at_hand[0].frame)), self._used, new, merged)

    def _doubled(self, pieces: Sequence[Piece], entries: Sequence[Entry], merged: list[Piece]) -> list[Piece]:
        """Fewer states of the same: neighbours of equal size are merged, and added to those worth keeping."""
        halves = Halves.of(self._parts.cut, entries)

        def merge(left: Piece, right: Piece) -> Piece:
            merged.append(self._merged([left, right]))
            return merged[-1]

        return doubled(
            pieces,
            lambda piece: self._parts.cut.spans_of(piece.start, piece.end)[0].count,
            lambda piece: halves.has(piece.start, piece.end),
            merge,
        )

    def _merged(self, pieces: Sequence[Piece]) -> Piece:
        size = sum(int(piece.frame.estimated_size()) for piece in pieces)
        begun = time.perf_counter()
        frame = self._run(self._parts.merged([piece.frame for piece in pieces]))
        seconds = time.perf_counter() - begun
        learn(self._catalog, size, seconds, states=True)
        return Piece(pieces[0].start, pieces[-1].end, frame, seconds + sum(piece.seconds for piece in pieces))

    def _rows(self, pieces: Sequence[Run[Entry] | Gap]) -> Advanced | None:
        filled: list[Sources | pl.DataFrame] = []
        for piece in pieces:
            filled += [self._read(piece.what)] if isinstance(piece, Run) else self._filled(piece.start, piece.end)
        if not self._used:
            return None
        frames = [each.lazy() if isinstance(each, pl.DataFrame) else self._parts.part([each]) for each in filled]
        together = self._run(pl.concat(frames))
        return Advanced(self._run(self._parts.merged([together])), self._used, [])

    def _computed(self, start: int, end: int) -> Piece:
        begun = time.perf_counter()
        frame = self._run(self._parts.part(self._filled(start, end)))
        return Piece(start, end, frame, time.perf_counter() - begun)

    def _filled(self, start: int, end: int, depth: int = 0) -> list[Sources]:
        """Sources that give the rows of a run of parts, in order: what is known of a step below, or files."""
        if depth == len(self._chain):
            scans = scans_of(self._keyed.plan, self._parts.cut, start, end)
            if scans is None:
                raise _CannotBeRead
            return [{**self._beside, **scans}]
        step = self._chain[depth]
        entries = self._entries[self._keyed.program.nodes[self._keyed.node_of[step]].program]

        def key(first: int, last: int, which: int) -> bytes:
            return key_over(self._keyed, step, self._parts.cut.names_of(first, last, which), which)

        found: list[Sources] = []
        below = covered(start, end, self._parts.cut, entries, key, self._rates, states=False)
        for piece in below.pieces:
            if isinstance(piece, Gap):
                found += self._filled(piece.start, piece.end, depth + 1)
            else:
                stored = StoredFrame(self._read(piece.what))
                self._opened.append(stored)
                found.append({**self._beside, step: stored.lazy()})
        return found

    def _read(self, entry: Entry) -> pl.DataFrame:
        try:
            opened = self._catalog.open(entry)
        except EnvironmentFailure as failure:
            raise _CannotBeRead from failure
        if not isinstance(opened, Result):
            raise _CannotBeRead
        self._used.append(entry)
        return opened.to_polars()


def _chain(keyed: Keyed, parts: Parts) -> list[int]:
    """The steps from the rows of the parts down to their scan, where others may have left something; the top first."""
    if len(parts.cut.scans) > 1:
        return []
    (scan,) = parts.cut.scans
    way = way_of(keyed.plan, [scan], parts.rows)
    top = keyed.step_of[parts.node]
    return [step for step in sorted(way, reverse=True) if step not in (scan, top) and step <= parts.rows]


def _in_vain(cut: Cut, entries: Sequence[Entry]) -> bool:
    """Whether the last states of runs of these files were never used: something else than the files changes."""
    of_these = [entry for entry in entries if any(True for _ in cut.runs_of(entry.spans))]
    latest = sorted(of_these, key=lambda entry: entry.created)[-_CHANCES:]
    return len(latest) == _CHANCES and all(entry.hits == 0 for entry in latest)


def _covered_whole(parts: Parts, entries: Sequence[Entry], rates: Rates) -> Covering:
    return covered(0, parts.cut.count, parts.cut, entries, parts.key, rates, states=parts.are_states)


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


@dataclass(frozen=True, slots=True)
class Halves:
    """Which runs are halves of known ones, told by their first or last file; the other half need not be there."""

    cut: Cut
    begins: frozenset[tuple[bytes, int]]
    ends: frozenset[tuple[bytes, int]]

    @classmethod
    def of(cls, cut: Cut, entries: Sequence[Entry]) -> Halves:
        """By the spans of entries."""
        spans = [entry.spans[0] for entry in entries if entry.spans]
        return cls(
            cut,
            frozenset((span.first, span.count) for span in spans),
            frozenset((span.last, span.count) for span in spans),
        )

    def has(self, start: int, end: int) -> bool:
        """Whether a run of parts is half of a known one of the double size."""
        extents = self.cut.leading(start, end)
        double = 2 * len(extents)
        return any((name, double) in self.begins for name in extents[0].identity.names) or any(
            (name, double) in self.ends for name in extents[-1].identity.names
        )
