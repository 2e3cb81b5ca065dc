"""Putting a computation together: known runs of its streams from the store, gaps computed.

Known runs are found, chosen and proven by `covering`. A gap is filled from what others left of it, such as the cleaned
log of a day, and what is not known of it either is read from its files.
Which states are made, merged and kept is decided by `rewrite/states.py`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import polars as pl
from msgspec import Struct, field
from msgspec.structs import replace

from nectar.catalog.rates import LearnedRates
from nectar.catalog.service import Catalog
from nectar.dialects.polars.incremental.cuts import Run as RunFrame
from nectar.dialects.polars.incremental.groups import StateParts
from nectar.dialects.polars.incremental.parts import Parts, Sources, scans_of, way_of
from nectar.dialects.polars.keying import Keyed, key_over
from nectar.dialects.polars.stored import StoredFrame
from nectar.errors import EnvironmentFailure
from nectar.model.entry import Entry
from nectar.rewrite.cost import Estimate, Rates
from nectar.rewrite.covering import LATEST, Covering, covered
from nectar.rewrite.segments import Gap, Run
from nectar.rewrite.states import Piece, are_useless, put_together
from nectar.store.read import Result

rates: Final = LearnedRates("polars")
MANY_GROUPS = 200_000  # from which on grouping new rows by themselves costs about what merging them costs


class Advanced(Struct, frozen=True):
    """What became of it: the result, the entries it was made from, and states worth keeping.

    new: states of what was computed. merged: states of larger runs, made of several others. estimate: what it was
    thought to take.
    """

    frame: pl.DataFrame
    used: list[Entry]
    new: list[Piece[pl.DataFrame]]
    merged: list[Piece[pl.DataFrame]] = field(default_factory=list)
    estimate: Estimate | None = None


def covering_of(parts: Parts, catalog: Catalog) -> Covering:
    """What is known of a node that could be put together, and what that is thought to take."""
    return _covered_whole(parts, catalog.inquire([parts.program])[parts.program], rates.of(catalog))


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
    """A part that was counted on is not there, or not what it should be, or files cannot be read alone."""


class _Work:
    def __init__(self, parts: Parts, keyed: Keyed, catalog: Catalog, run: RunFrame, known: Sources) -> None:
        self._parts = parts
        self._keyed = keyed
        self._catalog = catalog
        self._run = run
        self._rates = rates.of(catalog)
        way = way_of(keyed.plan, parts.cut.scans, keyed.step_of[parts.node])
        self._beside = {step: frame for step, frame in known.items() if step not in way}
        self._chain = _chain(keyed, parts)
        below = [keyed.program.nodes[keyed.node_of[step]].program for step in self._chain]
        self._programs = [parts.program, *below]
        self._entries = catalog.inquire(self._programs, LATEST)
        self._opened: list[StoredFrame] = []
        self._used: list[Entry] = []

    def close(self) -> None:
        for stored in self._opened:
            stored.close()
        self._parts.cut.copies.close()

    def done(self) -> Advanced | None:
        if not self._parts.are_states and not any(self._entries.values()):
            return None
        covering = self._covering()
        entries = self._entries[self._parts.program]
        if not covering.is_worth_it or (self._parts.are_states and are_useless(self._parts.cut, covering, entries)):
            return None
        done = self._states(covering, entries) if self._parts.are_states else self._rows(covering.pieces)
        return None if done is None else replace(done, estimate=covering.estimate)

    def _covering(self) -> Covering:
        """By what was kept last, which is all that a stream that grows needs; by all there is, if that leaves more."""
        parts = self._parts
        covering = _covered_whole(parts, self._entries[parts.program], self._rates)
        if all(len(entries) < LATEST for entries in self._entries.values()) or covering.is_nearly_all(parts.cut):
            return covering
        self._entries = self._catalog.inquire(self._programs)
        return _covered_whole(parts, self._entries[parts.program], self._rates)

    def _states(self, covering: Covering, entries: Sequence[Entry]) -> Advanced:
        done = put_together(self._parts.cut, covering, entries, self)
        return Advanced(self._run(self._parts.finished(done.whole.frame)), self._used, done.new, done.merged)

    def merged(self, pieces: Sequence[Piece[pl.DataFrame]]) -> Piece[pl.DataFrame]:
        """The state of neighbouring runs; what that took is learned from, and is none of what it saves."""
        size = sum(int(piece.frame.estimated_size()) for piece in pieces)
        begun = time.perf_counter()
        frame = self._run(self._parts.merged([piece.frame for piece in pieces]))
        seconds = time.perf_counter() - begun
        rates.learn(self._catalog, size, seconds, states=True)
        return Piece(pieces[0].start, pieces[-1].end, frame, sum(piece.seconds for piece in pieces))

    def extended(self, head: Run[Entry], end: int) -> Piece[pl.DataFrame] | None:
        """The state of a known run and of what is behind it; None if groups are so few that it makes no difference."""
        parts = self._parts
        if head.what.rows < MANY_GROUPS or not isinstance(parts, StateParts) or not parts.merges_rows:
            return None
        begun = time.perf_counter()
        extended = parts.extended(self.read(head.what), self._filled(head.end, end))
        if extended is None:
            raise _CannotBeRead
        frame = self._run(extended)
        return Piece(head.start, end, frame, time.perf_counter() - begun + head.what.seconds)

    def _rows(self, pieces: Sequence[Run[Entry] | Gap]) -> Advanced | None:
        filled: list[Sources | pl.DataFrame] = []
        for piece in pieces:
            filled += [self.read(piece.what)] if isinstance(piece, Run) else self._filled(piece.start, piece.end)
        if not self._used:
            return None
        frames = [each.lazy() if isinstance(each, pl.DataFrame) else self._parts.part([each]) for each in filled]
        together = self._run(pl.concat(frames))
        return Advanced(self._run(self._parts.merged([together])), self._used, [])

    def computed(self, start: int, end: int) -> Piece[pl.DataFrame]:
        """The state of a run of parts."""
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
                stored = StoredFrame.of(self.read(piece.what))
                self._opened.append(stored)
                found.append({**self._beside, step: stored.lazy()})
        return found

    def read(self, entry: Entry) -> pl.DataFrame:
        """What an entry holds."""
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


def _covered_whole(parts: Parts, entries: Sequence[Entry], known: Rates) -> Covering:
    return covered(0, parts.cut.count, parts.cut, entries, parts.key, known, states=parts.are_states)
