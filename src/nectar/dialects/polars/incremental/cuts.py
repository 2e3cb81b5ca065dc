"""Streams, and where they may be cut.

A cut of one stream has a part for each of its extents: its files, or what they grew by. Several streams are cut
together where the ranges of values in their extents are disjoint. Ranges are computed once for each extent, and kept
like any other result.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any, Final

import polars as pl
from msgspec import Struct

from nectar.catalog.service import Catalog
from nectar.dialects.polars.incremental.extents import Copies, Extent, Growth, extents_of, names_of
from nectar.dialects.polars.incremental.places import Places
from nectar.dialects.polars.incremental.separable import Origin
from nectar.dialects.polars.keying import Keyed
from nectar.dialects.polars.scans import has_types_of_stream, segment
from nectar.errors import EnvironmentFailure
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.model.entry import Span
from nectar.rewrite.alignment import Range, cut_together
from nectar.store.read import Result

Run = Callable[[pl.LazyFrame], pl.DataFrame]
Keep = Callable[[bytes, Callable[[], pl.DataFrame], str], None]  # a small result: its key, what makes it, what it is

# The smallest and the largest value, how many are null, whether they are sorted, and whether the file has, by itself,
# the columns and types of the stream.
Facts = tuple[Any, Any, int, bool, bool]

_NOTHING: Final = Span(b"", b"", 0)  # of a stream that a run has no file of
_FACTS: Final = ("smallest", "largest", "nulls", "sorted", "alike")
_AT_ONCE: Final = 16  # files that are asked in one run
_MOST_FILES: Final = 5_000  # of a stream whose ranges are looked at


class Cut(Struct, frozen=True, dict=True):
    """Streams cut together into `count` parts.

    bounds: for each scan the places where its extents are cut, beginning with 0. extents: of each scan. copies: what
    extents are read from that are no files. seams: where one stream ends and the next begins, if they stand one behind
    the other.
    """

    bounds: Mapping[int, tuple[int, ...]]
    extents: Mapping[int, tuple[Extent, ...]]
    copies: Copies
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
        """Files that hold one stream in a run of parts."""
        return tuple(self.copies.files(self.extents_of(scan, start, end)))

    def names_of(self, start: int, end: int, which: int = 0) -> dict[int, list[bytes]]:
        """The names of the extents of a run of parts, by scan. which: 0 for the best names, -1 for the last."""
        return {scan: names_of(self.extents_of(scan, start, end), which) for scan in self.bounds}

    def size_of(self, start: int, end: int) -> int:
        """Bytes of the extents of a run of parts."""
        return self._sizes[end] - self._sizes[start]

    def spans_of(self, start: int, end: int) -> tuple[Span, ...]:
        """How a run of parts is found again: for each stream its first and last name, and how many there are."""
        found = self.names_of(start, end).values()
        return tuple(Span(names[0], names[-1], len(names)) if names else _NOTHING for names in found)

    def runs_of(self, spans: Sequence[Span]) -> Iterable[tuple[int, int]]:
        """The runs of parts that may have been found with these spans."""
        if len(spans) != len(self.bounds):
            return
        read = [(scan, span) for scan, span in zip(self.scans, spans, strict=True) if span.count]
        if not read:
            return
        scan, span = read[0]
        last, last_span = read[-1] if self.seams else read[0]
        for first, end in self._places[scan].runs_of(span):
            begins = bisect_right(self.bounds[scan], first) - 1
            for _, ended in [(first, end)] if last == scan else self._places[last].runs_of(last_span):
                ends = bisect_left(self.bounds[last], ended)
                if self.bounds[scan][begins] == first and self.bounds[last][ends] == ended:
                    yield begins, ends

    @property
    def first_names(self) -> set[bytes]:
        """The names of the first file of the leading stream, as it is and as it was when it was shorter."""
        extents = self.leading(0, self.count)
        stretches = takewhile(lambda extent: extent.path == extents[0].path, extents)
        return {name for each in stretches for name in (*each.identity.names, *each.upto.names)}

    def leading(self, start: int, end: int) -> tuple[Extent, ...]:
        """What the leading stream has in a run of parts."""
        return self.extents_of(self.scans[0], start, end)

    def ends_of(self, start: int, end: int) -> tuple[tuple[bytes, ...], tuple[bytes, ...], int]:
        """Names of the first extent of the leading stream in a run of parts, of the last, and how many there are."""
        extents = self.leading(start, end)
        return extents[0].identity.names, extents[-1].identity.names, len(extents)

    def extents_of(self, scan: int, start: int, end: int) -> tuple[Extent, ...]:
        """What one stream has in a run of parts."""
        bounds = self.bounds[scan]
        return self.extents[scan][bounds[start] : bounds[end]]

    @cached_property
    def _sizes(self) -> list[int]:
        """Bytes of the extents of the first n parts, for each n."""
        found = [0]
        for at in range(self.count):
            sizes = [each.identity.size or 0 for scan in self.bounds for each in self.extents_of(scan, at, at + 1)]
            found.append(found[-1] + sum(sizes))
        return found

    @cached_property
    def _places(self) -> dict[int, Places]:
        return {scan: Places(extents) for scan, extents in self.extents.items()}


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
        self._facts: dict[Origin, dict[bytes, Facts]] = {}
        self._types: dict[Origin, pl.Schema] = {}  # of the facts

    def alignable(self, columns: frozenset[Origin]) -> bool:
        """Whether streams can be cut so that these columns have no value in two parts."""
        scans = {scan for scan, _ in columns}
        if len(scans) != len(columns):
            return False
        counts = {len(self._extents(scan)) for scan in scans}
        if 1 in counts:
            # Streams of one file each may be the beginning of two that fit. A single file cannot be cut for another.
            return counts == {1} and self._bounds(columns) is not None
        bounds = self._bounds(columns)
        return bounds is not None and len(bounds[0]) > 2

    def separates(self, columns: frozenset[Origin]) -> bool:
        """The same, where finding out is cheap: in files of lines it takes as long as reading them."""
        return all(self._is_columnar(scan) for scan, _ in columns) and self.alignable(columns)

    def _is_columnar(self, scan: int) -> bool:
        return bool({"Parquet", "Ipc"} & set(self._keyed.plan.steps[scan].body["scan_type"]))

    def cut(self, scans: Sequence[int], columns: frozenset[Origin], in_turn: bool = False) -> Cut | None:
        """These streams, cut so that the columns have no value in two parts. in_turn: they stand behind each other."""
        seams: tuple[int, ...] = ()
        if in_turn:
            counts = [len(self._extents(scan)) for scan in scans]
            seams = tuple(itertools.accumulate(counts))[:-1]
            places = range(sum(counts) + 1)
            bounds = [
                tuple(min(max(place - begin, 0), count) for place in places)
                for begin, count in zip((0, *seams), counts, strict=True)
            ]
        elif not columns and len(scans) == 1:
            bounds = [tuple(range(len(self._extents(scans[0])) + 1))]
        else:
            found = self._bounds(columns) if {scan for scan, _ in columns} == set(scans) else None
            if found is None:
                return None
            bounds = [found[sorted(scans).index(scan)] for scan in scans]
        extents = {scan: self._extents(scan) for scan in scans}
        return Cut(dict(zip(scans, bounds, strict=True)), extents, self._copies, seams)

    def uncut(self, scans: Sequence[int]) -> Cut:
        """These streams as one part."""
        extents = {scan: self._extents(scan) for scan in scans}
        return Cut({scan: (0, len(each)) for scan, each in extents.items()}, extents, self._copies)

    def _extents(self, scan: int) -> tuple[Extent, ...]:
        if scan not in self._cut:
            source, identities = self._sources[scan]
            self._cut[scan] = extents_of(self._keyed.plan, scan, source.files, identities, self._growth)
        return self._cut[scan]

    def sorted_ranges(self, origin: Origin) -> list[Range] | None:
        """The range of each extent of a stream that is sorted by a column; None if it is not."""
        facts = self._facts_of(origin, range(len(self._extents(origin[0]))))
        if facts is None or not all(fact[3] for fact in facts):
            return None
        follows = all(before[1] <= after[0] for before, after in itertools.pairwise(facts))
        return [fact[:2] for fact in facts] if follows else None

    def ranges(self, origin: Origin) -> list[Range] | None:
        """The range of each extent of a stream by a column; None if one has nulls, which are in no order."""
        facts = self._facts_of(origin, range(len(self._extents(origin[0]))))
        return None if facts is None else [fact[:2] for fact in facts]

    def ranges_to_skip_by(self, origin: Origin) -> list[Range] | None:
        """The same, if files need not be read: reading one fails if it has other columns or types than the stream."""
        facts = self._facts_of(origin, range(len(self._extents(origin[0]))))
        return None if facts is None or not all(fact[4] for fact in facts) else [fact[:2] for fact in facts]

    def _bounds(self, columns: frozenset[Origin]) -> list[tuple[int, ...]] | None:
        """Where to cut the streams, in the order of their steps."""
        try:
            if not all(map(self._may_separate, columns)):
                return None
            self._find_out({origin: range(len(self._extents(origin[0]))) for origin in columns})
            ranges = [self.ranges(origin) for origin in sorted(columns)]
            found = [each for each in ranges if each is not None]
            return cut_together(found) if found and len(found) == len(ranges) else None
        except TypeError:  # values of different types
            return None

    def _may_separate(self, origin: Origin) -> bool:
        """Whether a stream can be cut by a column, as far as those extents tell that were looked at, or two of them."""
        extents = self._extents(origin[0])
        if len(extents) == 1:
            return True
        known = self._known_facts(origin)
        told = [at for at, extent in enumerate(extents) if _known_name(extent, known) in known]
        facts = self._facts_of(origin, told if len(told) > 1 else [0, len(extents) - 1])
        return facts is not None and len(cut_together([[fact[:2] for fact in facts]])[0]) > 2

    def _facts_of(self, origin: Origin, wanted: Sequence[int]) -> list[Facts] | None:
        """What is known of these extents, or found out now; None if it says nothing."""
        self._find_out({origin: wanted})
        extents, known = self._extents(origin[0]), self._known_facts(origin)
        names = [_known_name(extents[at], known) for at in wanted]
        if not all(name in known for name in names):
            return None
        facts = [known[name] for name in names]
        return None if any(nulls or smallest is None for smallest, _, nulls, *_ in facts) else facts

    def _find_out(self, wanted: Mapping[Origin, Sequence[int]]) -> None:
        """These extents are known now, as far as they can be."""
        if self._run is None:
            return
        missing = [(origin, at) for origin, some in wanted.items() for at in self._unknown(origin, some)]
        told = {(origin, at): self._told(*origin, at) for origin, at in missing}
        new = {each: frame for each, frame in told.items() if frame is not None}
        for start in range(0, len(new), _AT_ONCE):
            self._ask(self._run, dict(itertools.islice(new.items(), start, start + _AT_ONCE)))
        for origin in {origin for origin, _ in new if origin in self._types}:
            self._remember(origin)

    def _unknown(self, origin: Origin, wanted: Sequence[int]) -> list[int]:
        """Those of these extents that are not known, and could be."""
        (scan, column), extents = origin, self._extents(origin[0])
        if len(extents) > _MOST_FILES or not _is_ordered(self._keyed.plan.schema(scan)[column]):
            return []
        known = self._known_facts(origin)
        return [at for at in wanted if known.keys().isdisjoint(extents[at].identity.names)]

    def _ask(self, run: Run, told: Mapping[tuple[Origin, int], pl.LazyFrame]) -> None:
        """Runs what tells of several extents at once, so that files are read beside each other."""
        named = [frame.select(pl.all().name.prefix(f"{number} ")) for number, frame in enumerate(told.values())]
        try:
            found = run(pl.concat(named, how="horizontal"))
        except (EnvironmentFailure, pl.exceptions.PolarsError):
            return
        for number, (origin, at) in enumerate(told):
            facts = found.select(pl.col(f"{number} {name}").alias(name) for name in _FACTS)
            known = self._known_facts(origin)
            known[_known_name(self._extents(origin[0])[at], known)] = facts.row(0)
            self._types[origin] = facts.schema

    def _remember(self, origin: Origin) -> None:
        """One table for all files, so that finding what is known does not take longer with each that comes."""
        if self._keep is None:
            return
        known = self._known_facts(origin)
        names = [_known_name(extent, known) for extent in self._extents(origin[0])]
        others = [name for name in known if name not in set(names)][-_MOST_FILES:]
        rows = [(name, *known[name]) for name in dict.fromkeys([*others, *names]) if name in known]
        table, types = self._table(origin), self._types[origin]
        self._keep(table, lambda: _as_table(rows, types), f"ranges of {origin[1]}")

    def _known_facts(self, origin: Origin) -> dict[bytes, Facts]:
        """What is known of files that were looked at before, by the names of the files."""
        if origin not in self._facts:
            table = self._table(origin)
            entry = self._catalog.index.lookup([table]).get(table)
            try:
                opened = None if entry is None else self._catalog.open(entry)
            except EnvironmentFailure:
                opened = None
            rows = opened.to_polars().iter_rows() if isinstance(opened, Result) else ()
            self._facts[origin] = {row[0]: row[1:] for row in rows}
        return self._facts[origin]

    def _table(self, origin: Origin) -> bytes:
        read = self._keyed.program.nodes[self._keyed.node_of[origin[0]]].program
        return digest_of(joined("facts", read, origin[1]))

    def _told(self, scan: int, column: str, at: int) -> pl.LazyFrame | None:
        """What an extent tells of a column, in one row; None if it cannot be read alone."""
        extent = self._extents(scan)[at]
        if extent.start == 0 and extent.end is not None:
            return None  # all that a file held before would have to be copied
        try:
            rows = segment(self._keyed.plan, scan, self._copies.files([extent]))
        except (EnvironmentFailure, pl.exceptions.PolarsError):
            return None
        if rows is None:
            return None
        values = _in_one_order(column, self._keyed.plan.schema(scan)[column])
        alike = extent.alone is None and has_types_of_stream(self._keyed.plan, scan, extent.path)
        told = (values.min(), values.max(), values.null_count(), values.is_sorted(), pl.lit(alike))
        return rows.select(**dict(zip(_FACTS, told, strict=True)))


def _known_name(extent: Extent, known: Mapping[bytes, Any]) -> bytes:
    """The name under which an extent is known, or the best it has."""
    return next((name for name in extent.identity.names if name in known), extent.identity.names[0])


def _as_table(rows: list[tuple[Any, ...]], types: pl.Schema) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"file": pl.Binary(), **types}, orient="row")


def _in_one_order(column: str, dtype: Any) -> pl.Expr:
    """The values of a column. Where clocks are set back, times of a zone are not compared by when they are."""
    values = pl.col(column)
    return values.dt.convert_time_zone("UTC") if getattr(dtype, "time_zone", None) else values


def _is_ordered(dtype: Any) -> bool:
    """Whether values of a type that differ are one smaller than the other, wherever they are read."""
    return bool(dtype.is_integer() or dtype == pl.String or dtype in (pl.Date, pl.Datetime))
