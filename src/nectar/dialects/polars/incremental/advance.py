"""Putting a computation together: known runs of its streams from the store, gaps computed.

Known runs are found by their first and last files, chosen so that most is covered (rewrite/segments.py), and proven by
their keys, which are computed from the files there are now. A gap is filled from what others left of it, such as the
cleaned log of a day, and what is not known of it either is read from its files.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from nectar.catalog.service import Catalog
from nectar.dialects.polars.incremental.cuts import Cut
from nectar.dialects.polars.incremental.cuts import Run as RunFrame
from nectar.dialects.polars.incremental.parts import Parts, Sources, scans_of, way_of
from nectar.dialects.polars.keying import Keyed, key_over
from nectar.dialects.polars.stored import StoredFrame
from nectar.errors import EnvironmentFailure
from nectar.model.entry import Entry
from nectar.rewrite.segments import Gap, Run, cover
from nectar.store.read import Result


@dataclass(frozen=True, slots=True)
class Piece:
    """A state that is worth keeping: of which run of parts, and what it took."""

    start: int
    end: int
    frame: pl.DataFrame
    seconds: float


@dataclass(frozen=True, slots=True)
class Advanced:
    """What became of it: the result, the entries it was made from, and new states."""

    frame: pl.DataFrame
    used: list[Entry]
    new: list[Piece]


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

    def done(self) -> Advanced | None:
        entries = self._entries[self._parts.program]
        pieces = _covered(0, self._parts.cut.count, self._parts.cut, entries, self._parts.key)
        runs = [piece for piece in pieces if isinstance(piece, Run)]
        if not self._parts.are_states:
            return self._rows(pieces)
        # States are known, but none of a run of this stream: it has lost its head. States of single files outlive that.
        window = bool(entries) and not runs
        new: list[Piece] = []
        frames: list[pl.DataFrame] = []
        for piece in pieces:
            if isinstance(piece, Run):
                frames.append(self._read(piece.what))
                continue
            for start, end in _cuts(piece, window, self._parts.cut.seams):
                new.append(self._computed(start, end))
                frames.append(new[-1].frame)
        state = frames[0] if len(frames) == 1 else self._run(self._parts.merged(frames))
        return Advanced(self._run(self._parts.finished(state)), self._used, new)

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
        for piece in _covered(start, end, self._parts.cut, entries, key):
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


def _cuts(gap: Gap, window: bool, seams: Sequence[int]) -> list[tuple[int, int]]:
    """How a gap is computed: as a whole, or file by file; a state of two streams would be of no use once one grows."""
    if window:
        return [(at, at + 1) for at in range(gap.start, gap.end)]
    return list(itertools.pairwise([gap.start, *(seam for seam in seams if gap.start < seam < gap.end), gap.end]))


def _covered(
    start: int, end: int, cut: Cut, entries: Sequence[Entry], key: Callable[[int, int, int], bytes]
) -> list[Run[Entry] | Gap]:
    """A run of parts, cut into known runs and gaps; what was chosen is proven."""
    runs = [
        Run(first - start, last - start, float(last - first), entry)
        for entry in entries
        for first, last in cut.runs_of(entry.spans)
        if start <= first and last <= end
    ]
    while True:
        pieces = cover(end - start, runs)
        false = [
            piece
            for piece in pieces
            if isinstance(piece, Run)
            and piece.what.key not in {key(start + piece.start, start + piece.end, which) for which in (0, -1)}
        ]
        if not false:
            return [_moved(piece, start) for piece in pieces]
        runs = [run for run in runs if run not in false]


def _moved(piece: Run[Entry] | Gap, by: int) -> Run[Entry] | Gap:
    if isinstance(piece, Gap):
        return Gap(piece.start + by, piece.end + by)
    return Run(piece.start + by, piece.end + by, piece.worth, piece.what)
