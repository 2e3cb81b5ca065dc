"""Making a known result of a run of a stream into the result of all of it.

Some results cannot be merged from results of parts, but what is known of a run tells most of them: groups that nothing
new belongs to, windows that were complete. A rule that extends gets what is known and the rows of whatever it asks for.
Law: the known run is proven by its key, as everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

import polars as pl
from msgspec import Struct, field

from nectar.catalog.service import Catalog
from nectar.dialects.polars.incremental.advance import Advanced
from nectar.dialects.polars.incremental.cuts import Cut
from nectar.dialects.polars.incremental.cuts import Run as RunFrame
from nectar.dialects.polars.incremental.parts import Parts, Sources, scans_of, way_of
from nectar.dialects.polars.keying import Keyed
from nectar.dialects.polars.stored import StoredFrame
from nectar.errors import EnvironmentFailure
from nectar.model.entry import Entry
from nectar.rewrite.states import Piece
from nectar.store.read import Result


class Known(Struct, frozen=True):
    """What is known of a run of parts."""

    start: int
    end: int
    frame: pl.DataFrame


class Reading(Struct, frozen=True):
    """Rows of a stream, as the rule needs them, and how to compute with them."""

    keyed: Keyed
    cut: Cut
    step: int
    beside: Sources
    run: RunFrame
    opened: list[StoredFrame] = field(default_factory=list)

    def rows(self, start: int, end: int) -> pl.LazyFrame:
        """The rows of a run of parts, which is not empty."""
        scans = scans_of(self.keyed.plan, self.cut, start, end)
        if scans is None:
            raise CannotBeExtended
        return self.keyed.plan.frame(self.step, {**self.beside, **scans})

    def over(self, step: int, start: int, end: int, condition: pl.Expr) -> pl.LazyFrame:
        """What a step gives over those rows of a run of parts that meet a condition."""
        rows = StoredFrame.of(self.run(self.rows(start, end).filter(condition)))
        self.opened.append(rows)
        return self.keyed.plan.frame(step, {self.step: rows.lazy()})

    def around(self, known: Known, between: Sequence[pl.LazyFrame] = ()) -> pl.LazyFrame:
        """The rows before a run of parts and those behind it; something else stands between them."""
        before = [self.rows(0, known.start)] if known.start else []
        behind = [self.rows(known.end, self.cut.count)] if known.end < self.cut.count else []
        return pl.concat([*before, *between, *behind])


@runtime_checkable
class Extension(Parts, Protocol):
    """A computation that is made from what is known of a run of its parts, and from rows."""

    @property
    def from_start(self) -> bool:
        """Whether only runs can be extended that begin where the streams do."""

    def extended(self, known: Known, reading: Reading) -> pl.DataFrame | None:
        """What is known of a run, made into the same of everything; None if that takes longer than computing it."""


class CannotBeExtended(Exception):
    """What was counted on is not there, or is not what it was expected to be."""


def extend(parts: Extension, keyed: Keyed, catalog: Catalog, run: RunFrame, known: Sources) -> Advanced | None:
    """The result, made from the longest known run; None if it is better computed as a whole."""
    way = way_of(keyed.plan, parts.cut.scans, keyed.step_of[parts.node])
    beside = {step: frame for step, frame in known.items() if step not in way}
    reading = Reading(keyed, parts.cut, parts.rows, beside, run)
    begun = time.perf_counter()
    found = _longest(parts, catalog)
    try:
        frame = None if found is None else _all_of(parts, found[1], reading)
        if frame is None:
            if not parts.are_states:
                return None
            frame, found = run(parts.part([{**beside, **_everything(keyed, parts)}])), None
        result = run(parts.finished(frame))
    except CannotBeExtended:
        return None
    finally:
        for rows in reading.opened:
            rows.close()
    if result.schema != keyed.plan.schema(keyed.step_of[parts.node]):
        return None
    is_new = found is None or frame is not found[1].frame
    pieces = [Piece(0, parts.cut.count, frame, time.perf_counter() - begun)] if parts.are_states and is_new else []
    return Advanced(result, [] if found is None else [found[0]], pieces)


def _all_of(parts: Extension, known: Known, reading: Reading) -> pl.DataFrame | None:
    whole = known.start == 0 and known.end == parts.cut.count
    return known.frame if whole else parts.extended(known, reading)


def _everything(keyed: Keyed, parts: Extension) -> Sources:
    scans = scans_of(keyed.plan, parts.cut, 0, parts.cut.count)
    if scans is None:
        raise CannotBeExtended
    return scans


def _longest(parts: Extension, catalog: Catalog) -> tuple[Entry, Known] | None:
    """The longest run that is known, proven and read."""
    entries = catalog.inquire([parts.program])[parts.program]
    for start, end, entry in sorted(runs_of(parts, entries), key=lambda run: run[0] - run[1]):
        try:
            opened = catalog.open(entry)
        except EnvironmentFailure:
            continue
        if isinstance(opened, Result):
            return entry, Known(start, end, opened.to_polars())
    return None


def runs_of(parts: Extension, entries: Iterable[Entry]) -> Iterator[tuple[int, int, Entry]]:
    """Known runs that can be extended, proven by their keys."""
    for entry in entries:
        for start, end in parts.cut.runs_of(entry.spans):
            fits = start == 0 or not parts.from_start
            if fits and entry.key in {parts.key(start, end, which) for which in (0, -1)}:
                yield start, end, entry
