"""Streams, and where they may be cut.

A cut of one stream has a part for each of its files. Several streams are cut together where the ranges of values in
their files are disjoint. Ranges are computed once for each file, and kept like any other result.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
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

_NOTHING: Final = Span(b"", b"", 0)  # of a stream that a run has no file of
_MOST_FILES: Final = 5_000  # of a stream whose ranges are looked at


@dataclass(frozen=True)
class Cut:
    """Streams cut together into `count` parts.

    bounds: for each scan the places where its files are cut, beginning with 0. identities, files: of each scan. seams:
    where one stream ends and the next begins, if they stand one behind the other.
    """

    bounds: Mapping[int, tuple[int, ...]]
    identities: Mapping[int, tuple[Identity, ...]]
    files: Mapping[int, tuple[str, ...]]
    seams: tuple[int, ...] = ()

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
        return sum(
            each.size or 0
            for scan, bounds in self.bounds.items()
            for each in self.identities[scan][bounds[start] : bounds[end]]
        )

    def spans_of(self, start: int, end: int) -> tuple[Span, ...]:
        """How a run of parts is found again: for each stream its first and last file, and how many there are."""
        found = []
        for scan, bounds in self.bounds.items():
            run = self.identities[scan][bounds[start] : bounds[end]]
            found.append(Span(run[0].names[0], run[-1].names[0], len(run)) if run else _NOTHING)
        return tuple(found)

    def runs_of(self, spans: Sequence[Span]) -> Iterable[tuple[int, int]]:
        """The runs of parts that may have been found with these spans."""
        if len(spans) != len(self.bounds):
            return
        read = [(scan, span) for scan, span in zip(self.scans, spans, strict=True) if span.count]
        if not read:
            return
        scan, span = read[0]
        last, last_span = read[-1] if self.seams else read[0]
        for first in self._places[scan].get(span.first, ()):
            begins = bisect_right(self.bounds[scan], first) - 1
            for other in [first] if last == scan else self._places[last].get(last_span.first, ()):
                end = other + last_span.count
                ends = bisect_left(self.bounds[last], end)
                if end > self.bounds[last][-1] or last_span.last not in self.identities[last][end - 1].names:
                    continue
                if self.bounds[scan][begins] == first and self.bounds[last][ends] == end:
                    yield begins, ends

    @cached_property
    def _places(self) -> dict[int, dict[bytes, list[int]]]:
        """Where the files of each stream stand, by each of their names."""
        found: dict[int, dict[bytes, list[int]]] = {scan: {} for scan in self.scans}
        for scan, identities in self.identities.items():
            for at, identity in enumerate(identities):
                for name in identity.names:
                    found[scan].setdefault(name, []).append(at)
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
        self._sorted: dict[Origin, bool] = {}  # whether each of the files is

    def alignable(self, columns: frozenset[Origin]) -> bool:
        """Whether streams can be cut so that these columns have no value in two parts."""
        scans = {scan for scan, _ in columns}
        if self._run is None or len(scans) != len(columns):
            return False
        bounds = self._bounds(columns)
        # Files that came alone do not tell anything: streams of one file each may be the beginning of two that fit.
        return bounds is not None and (len(bounds[0]) > 2 or all(len(self._sources[scan][1]) == 1 for scan in scans))

    def cut(self, scans: Sequence[int], columns: frozenset[Origin], in_turn: bool = False) -> Cut | None:
        """These streams, cut so that the columns have no value in two parts. in_turn: they stand behind each other."""
        seams: tuple[int, ...] = ()
        if in_turn:
            counts = [len(self._sources[scan][1]) for scan in scans]
            seams = tuple(itertools.accumulate(counts))[:-1]
            places = range(sum(counts) + 1)
            bounds = [
                tuple(min(max(place - begin, 0), count) for place in places)
                for begin, count in zip((0, *seams), counts, strict=True)
            ]
        elif not columns and len(scans) == 1:
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
            seams,
        )

    def sorted_ranges(self, origin: Origin) -> list[Range] | None:
        """The range of each file of a stream that is sorted by a column; None if it is not."""
        ranges = self._ranges_of(origin) if self._run is not None else None
        if ranges is None or not self._sorted.get(origin):
            return None
        follows = all(before[1] <= after[0] for before, after in itertools.pairwise(ranges))
        return ranges if follows else None

    def ranges(self, origin: Origin) -> list[Range] | None:
        """The range of each file of a stream by a column; None if it is not known."""
        return None if self._run is None else self._ranges_of(origin)

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
        schema = self._keyed.plan.frame(scan).collect_schema()
        if len(source.files) > _MOST_FILES or not _is_ordered(schema[column]):
            return None
        read = self._keyed.program.nodes[self._keyed.node_of[scan]].program
        program = digest_of(joined("range and order", read, column))
        keys = [digest_of(program + identity.names[0]) for identity in identities]
        answers = self._catalog.lookup(keys, [program] * len(keys))
        found: list[Range] = []
        in_order = True
        for at, (key, answer) in enumerate(zip(keys, answers, strict=True)):
            opened = None if answer.entry is None else self._catalog.open(answer.entry)
            frame = opened.to_polars() if isinstance(opened, Result) else self._computed(scan, column, at, key, program)
            if frame is None or frame["nulls"][0] or frame["smallest"][0] is None:
                return None
            found.append((frame["smallest"][0], frame["largest"][0]))
            in_order = in_order and bool(frame["sorted"][0])
        self._sorted[scan, column] = in_order
        return found

    def _computed(self, scan: int, column: str, at: int, key: bytes, program: bytes) -> pl.DataFrame | None:
        file = self._sources[scan][0].files[at]
        rows = segment(self._keyed.plan, scan, [file])
        if rows is None or self._run is None:
            return None
        values = pl.col(column)
        facts = {"smallest": values.min(), "largest": values.max(), "nulls": values.null_count()}
        frame = self._run(rows.select(**facts, sorted=values.is_sorted()))
        if self._keep is not None:
            self._keep(key, program, frame, f"range of {column}")
        return frame


def _is_ordered(dtype: Any) -> bool:
    """Whether values of a type that differ are one smaller than the other, wherever they are read."""
    return bool(dtype.is_integer() or dtype == pl.String or dtype in (pl.Date, pl.Datetime))
