"""Streams, and where they may be cut.

A cut of one stream has a part for each of its extents: its files, or what they grew by. Several streams are cut
together where the ranges of values in their extents are disjoint. Ranges are computed once for each extent, and kept
like any other result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import polars as pl

from nectar.catalog.service import Catalog
from nectar.dialects.polars.incremental.extents import Copies, Extent, Growth, extents_of, names_of
from nectar.dialects.polars.incremental.places import Places
from nectar.dialects.polars.incremental.separable import Origin
from nectar.dialects.polars.keying import Keyed
from nectar.dialects.polars.scans import segment
from nectar.errors import EnvironmentFailure
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.model.entry import Span
from nectar.rewrite.alignment import Range, cut_together
from nectar.store.read import Result

Run = Callable[[pl.LazyFrame], pl.DataFrame]
Keep = Callable[[bytes, bytes, pl.DataFrame, str], None]  # a small result: its key, its program, what it is

_MOST_FILES: Final = 5_000  # of a stream whose ranges are looked at


@dataclass(frozen=True)
class Cut:
    """Streams cut together into `count` parts.

    bounds: for each scan the places where its extents are cut, beginning with 0. extents: of each scan. copies: what
    extents are read from that are no files.
    """

    bounds: Mapping[int, tuple[int, ...]]
    extents: Mapping[int, tuple[Extent, ...]]
    copies: Copies

    @property
    def scans(self) -> tuple[int, ...]:
        """The steps that read the streams; the first leads."""
        return tuple(self.bounds)

    @property
    def count(self) -> int:
        """How many parts there are."""
        return len(self.bounds[self.scans[0]]) - 1

    def files_of(self, scan: int, start: int, end: int) -> tuple[str, ...]:
        """Files that hold one stream in a run of parts."""
        return tuple(self.copies.files(self._run(scan, start, end)))

    def names_of(self, start: int, end: int, which: int = 0) -> dict[int, list[bytes]]:
        """The names of the extents of a run of parts, by scan. which: 0 for the best names, -1 for the last."""
        return {scan: names_of(self._run(scan, start, end), which) for scan in self.bounds}

    def size_of(self, start: int, end: int) -> int:
        """Bytes of the extents of a run of parts."""
        return sum(each.identity.size or 0 for scan in self.bounds for each in self._run(scan, start, end))

    def spans_of(self, start: int, end: int) -> tuple[Span, ...]:
        """How a run of parts is found again: for each stream its first and last name, and how many there are."""
        found = self.names_of(start, end).values()
        return tuple(Span(names[0], names[-1], len(names)) for names in found)

    def runs_of(self, spans: Sequence[Span]) -> Iterable[tuple[int, int]]:
        """The runs of parts that may have been found with these spans."""
        if len(spans) != len(self.bounds):
            return
        bounds = self.bounds[self.scans[0]]
        for first, last in self._places.runs_of(spans[0]):
            begins, ends = bisect_left(bounds, first), bisect_left(bounds, last)
            if last <= bounds[-1] and bounds[begins] == first and bounds[ends] == last:
                yield begins, ends

    def _run(self, scan: int, start: int, end: int) -> tuple[Extent, ...]:
        bounds = self.bounds[scan]
        return self.extents[scan][bounds[start] : bounds[end]]

    @cached_property
    def _places(self) -> Places:
        return Places(self.extents[self.scans[0]])


class Streams:
    """The streams of a query: how they can be cut, together or alone."""

    def __init__(
        self, keyed: Keyed, catalog: Catalog, run: Run | None = None, keep: Keep | None = None,
        growth: Growth | None = None,
    ) -> None:  # fmt: skip
        self._growth = growth
        self._copies = Copies()
        self._cut: dict[int, tuple[Extent, ...]] = {}
        self._keyed = keyed
        self._catalog = catalog
        self._run = run
        self._keep = keep
        self._sources = {number: (source, identities) for number, source, identities in keyed.sources}
        self._ranges: dict[Origin, list[Range] | None] = {}

    def alignable(self, columns: frozenset[Origin]) -> bool:
        """Whether streams can be cut so that these columns have no value in two parts."""
        scans = {scan for scan, _ in columns}
        if self._run is None or len(scans) != len(columns):
            return False
        bounds = self._bounds(columns)
        # Files that came alone do not tell anything: streams of one file each may be the beginning of two that fit.
        return bounds is not None and (len(bounds[0]) > 2 or all(len(self._extents(scan)) == 1 for scan in scans))

    def cut(self, scans: Sequence[int], columns: frozenset[Origin]) -> Cut | None:
        """These streams, cut so that the columns have no value in two parts."""
        if not columns and len(scans) == 1:
            bounds = [tuple(range(len(self._extents(scans[0])) + 1))]
        else:
            found = self._bounds(columns) if {scan for scan, _ in columns} == set(scans) else None
            if found is None:
                return None
            bounds = [found[sorted(scans).index(scan)] for scan in scans]
        return Cut(dict(zip(scans, bounds, strict=True)), {scan: self._extents(scan) for scan in scans}, self._copies)

    def _extents(self, scan: int) -> tuple[Extent, ...]:
        if scan not in self._cut:
            source, identities = self._sources[scan]
            self._cut[scan] = extents_of(self._keyed.plan, scan, source.files, identities, self._growth)
        return self._cut[scan]

    def _bounds(self, columns: frozenset[Origin]) -> list[tuple[int, ...]] | None:
        """Where to cut the streams, in the order of their steps."""
        ranges = [self._ranges_of(origin) for origin in sorted(columns)]
        found = [each for each in ranges if each is not None]
        try:
            return cut_together(found) if found and len(found) == len(ranges) else None
        except TypeError:  # values of different types
            return None

    def _ranges_of(self, origin: Origin) -> list[Range] | None:
        if origin not in self._ranges:
            try:
                self._ranges[origin] = self._looked_up(*origin)
            except (EnvironmentFailure, pl.exceptions.PolarsError):
                self._ranges[origin] = None
        return self._ranges[origin]

    def _looked_up(self, scan: int, column: str) -> list[Range] | None:
        """The range of each extent; None if one has none, or nulls, which are in no order."""
        extents = self._extents(scan)
        schema = self._keyed.plan.frame(scan).collect_schema()
        if len(extents) > _MOST_FILES or not _is_ordered(schema[column]):
            return None
        program = digest_of(joined("range", self._keyed.program.nodes[self._keyed.node_of[scan]].program, column))
        known = self._known_ranges(program, extents)
        found: list[Range] = []
        for extent in extents:
            frame = next((known[name] for name in extent.identity.names if name in known), None)
            if frame is None:
                frame = self._computed(scan, column, extent, program)
            if frame is None or frame["nulls"][0] or frame["smallest"][0] is None:
                return None
            found.append((frame["smallest"][0], frame["largest"][0]))
        return found

    def _known_ranges(self, program: bytes, extents: Sequence[Extent]) -> dict[bytes, pl.DataFrame]:
        """What is known of extents, by their names."""
        names = list(dict.fromkeys(name for extent in extents for name in extent.identity.names))
        answers = self._catalog.lookup([digest_of(program + name) for name in names], [program] * len(names))
        found: dict[bytes, pl.DataFrame] = {}
        for name, answer in zip(names, answers, strict=True):
            opened = None if answer.entry is None else self._catalog.open(answer.entry)
            if isinstance(opened, Result):
                found[name] = opened.to_polars()
        return found

    def _computed(self, scan: int, column: str, extent: Extent, program: bytes) -> pl.DataFrame | None:
        if extent.start == 0 and extent.end is not None:
            return None  # all that a file held before would have to be copied
        rows = segment(self._keyed.plan, scan, self._copies.files([extent]))
        if rows is None or self._run is None:
            return None
        values = pl.col(column)
        frame = self._run(rows.select(smallest=values.min(), largest=values.max(), nulls=values.null_count()))
        if self._keep is not None:
            self._keep(digest_of(program + extent.identity.names[0]), program, frame, f"range of {column}")
        return frame


def _is_ordered(dtype: Any) -> bool:
    """Whether values of a type that differ are one smaller than the other, wherever they are read."""
    return bool(dtype.is_integer() or dtype == pl.String or dtype in (pl.Date, pl.Datetime))
