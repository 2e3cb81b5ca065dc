"""Streams, and where they may be cut.

A cut of one stream has a part for each of its files. Several streams are cut together where the ranges of values in
their files are disjoint. Ranges are computed once for each file, and kept like any other result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import polars as pl

from nectar.catalog.service import Catalog
from nectar.dialects.polars.incremental.separable import Origin
from nectar.dialects.polars.keying import Keyed
from nectar.dialects.polars.scans import segment
from nectar.errors import EnvironmentFailure
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.model.entry import Span
from nectar.rewrite.alignment import Range, cut_together
from nectar.store.inputs.identity import Identity
from nectar.store.read import Result

Run = Callable[[pl.LazyFrame], pl.DataFrame]
Keep = Callable[[bytes, bytes, pl.DataFrame, str], None]  # a small result: its key, its program, what it is

_MOST_FILES: Final = 5_000  # of a stream whose ranges are looked at


@dataclass(frozen=True)
class Cut:
    """Streams cut together into `count` parts.

    bounds: for each scan the places where its files are cut, beginning with 0. identities, files: of each scan.
    """

    bounds: Mapping[int, tuple[int, ...]]
    identities: Mapping[int, tuple[Identity, ...]]
    files: Mapping[int, tuple[str, ...]]

    @property
    def scans(self) -> tuple[int, ...]:
        """The steps that read the streams; the first leads."""
        return tuple(self.bounds)

    @property
    def count(self) -> int:
        """How many parts there are."""
        return len(self.bounds[self.scans[0]]) - 1

    def files_of(self, scan: int, start: int, end: int) -> tuple[str, ...]:
        """The files of one stream in a run of parts."""
        bounds = self.bounds[scan]
        return self.files[scan][bounds[start] : bounds[end]]

    def names_of(self, start: int, end: int, which: int = 0) -> dict[int, list[bytes]]:
        """The names of the files of a run of parts, by scan. which: 0 for the best names, -1 for the last."""
        return {
            scan: [each.names[which] for each in self.identities[scan][bounds[start] : bounds[end]]]
            for scan, bounds in self.bounds.items()
        }

    def size_of(self, start: int, end: int) -> int:
        """Bytes of the files of a run of parts."""
        return self._sizes[end] - self._sizes[start]

    def spans_of(self, start: int, end: int) -> tuple[Span, ...]:
        """How a run of parts is found again: for each stream its first and last file, and how many there are."""
        found = []
        for scan, bounds in self.bounds.items():
            run = self.identities[scan][bounds[start] : bounds[end]]
            found.append(Span(run[0].names[0], run[-1].names[0], len(run)))
        return tuple(found)

    def runs_of(self, spans: Sequence[Span]) -> Iterable[tuple[int, int]]:
        """The runs of parts that may have been found with these spans."""
        if len(spans) != len(self.bounds):
            return
        span, scan = spans[0], self.scans[0]
        identities, bounds = self.identities[scan], self.bounds[scan]
        for first in self._places.get(span.first, ()):
            end = first + span.count
            begins, ends = bisect_left(bounds, first), bisect_left(bounds, end)
            whole = bounds[begins] == first and end <= bounds[-1] and bounds[ends] == end
            if whole and span.last in identities[end - 1].names:
                yield begins, ends

    @cached_property
    def _sizes(self) -> list[int]:
        """Bytes of the files of the first n parts, for each n."""
        found = [0]
        for at in range(self.count):
            sizes = [
                each.size or 0
                for scan, bounds in self.bounds.items()
                for each in self.identities[scan][bounds[at] : bounds[at + 1]]
            ]
            found.append(found[-1] + sum(sizes))
        return found

    @cached_property
    def _places(self) -> dict[bytes, list[int]]:
        """Where the files of the leading stream stand, by each of their names."""
        found: dict[bytes, list[int]] = {}
        for at, identity in enumerate(self.identities[self.scans[0]]):
            for name in identity.names:
                found.setdefault(name, []).append(at)
        return found


class Streams:
    """The streams of a query: how they can be cut, together or alone."""

    def __init__(self, keyed: Keyed, catalog: Catalog, run: Run | None = None, keep: Keep | None = None) -> None:
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
        return bounds is not None and (len(bounds[0]) > 2 or all(len(self._sources[scan][1]) == 1 for scan in scans))

    def cut(self, scans: Sequence[int], columns: frozenset[Origin]) -> Cut | None:
        """These streams, cut so that the columns have no value in two parts."""
        if not columns and len(scans) == 1:
            bounds = [tuple(range(len(self._sources[scans[0]][1]) + 1))]
        else:
            found = self._bounds(columns) if {scan for scan, _ in columns} == set(scans) else None
            if found is None:
                return None
            bounds = [found[sorted(scans).index(scan)] for scan in scans]
        return Cut(
            dict(zip(scans, bounds, strict=True)),
            {scan: self._sources[scan][1] for scan in scans},
            {scan: self._sources[scan][0].files for scan in scans},
        )

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
        """The range of each file; None if one has none, or nulls, which are in no order."""
        source, identities = self._sources[scan]
        schema = self._keyed.plan.schema(scan)
        if len(source.files) > _MOST_FILES or not _is_ordered(schema[column]):
            return None
        table = digest_of(joined("ranges", self._keyed.program.nodes[self._keyed.node_of[scan]].program, column))
        known = self._known_ranges(table)
        names = [identity.names[0] for identity in identities]
        missing = [at for at, name in enumerate(names) if name not in known]
        if missing and _overlap([known[name] for name in names if name in known]):
            return None  # what comes may stand apart, but that is not worth reading all of it
        frames = [self._computed(scan, column, at) for at in missing]
        new = [frame for frame in frames if frame is not None]
        if len(new) < len(missing):
            return None
        known |= {names[at]: frame.row(0) for at, frame in zip(missing, new, strict=True)}
        if new and self._keep is not None:
            # One table for all files, so that finding what is known does not take longer with each that comes.
            others = [name for name in known if name not in set(names)][-_MOST_FILES:]
            rows = [(name, *known[name]) for name in dict.fromkeys([*others, *names])]
            self._keep(table, table, _as_table(rows, new[0].schema), f"ranges of {column}")
        found = [known[name] for name in names]
        return None if any(nulls or smallest is None for smallest, _, nulls in found) else [each[:2] for each in found]

    def _known_ranges(self, table: bytes) -> dict[bytes, tuple[Any, Any, int]]:
        """The ranges of files that were looked at before, by the names of the files."""
        (answer,) = self._catalog.lookup([table], [table])
        opened = None if answer.entry is None else self._catalog.open(answer.entry)
        if not isinstance(opened, Result):
            return {}
        return {name: (smallest, largest, nulls) for name, smallest, largest, nulls in opened.to_polars().iter_rows()}

    def _computed(self, scan: int, column: str, at: int) -> pl.DataFrame | None:
        file = self._sources[scan][0].files[at]
        rows = segment(self._keyed.plan, scan, [file])
        if rows is None or self._run is None:
            return None
        values = pl.col(column)
        return self._run(rows.select(smallest=values.min(), largest=values.max(), nulls=values.null_count()))


def _overlap(ranges: list[tuple[Any, Any, int]]) -> bool:
    """Whether there are files enough to tell, and no place between them where a stream could be cut."""
    if any(nulls or smallest is None for smallest, _, nulls in ranges):
        return True
    return len(ranges) > 1 and len(cut_together([[each[:2] for each in ranges]])[0]) <= 2


def _as_table(rows: list[tuple[Any, ...]], types: pl.Schema) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"file": pl.Binary(), **types}, orient="row")


def _is_ordered(dtype: Any) -> bool:
    """Whether values of a type that differ are one smaller than the other, wherever they are read."""
    return bool(dtype.is_integer() or dtype == pl.String or dtype in (pl.Date, pl.Datetime))
