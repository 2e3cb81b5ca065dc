"""Inner joins whose two sides grow: what is known of the join of two runs is a rectangle, and the rest is joined.

Law: a join of everything is the joins of all files of one side with all files of the other, in no certain order. If the
join of some of the one with some of the other is known, it is left out: the rest is at most four rectangles. Of these
only files are read whose ranges of what is joined on meet.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from nectar.catalog.service import Catalog
from nectar.dialects.polars.behaviour import depends_on
from nectar.dialects.polars.filters import conditions_of
from nectar.dialects.polars.incremental.advance import Advanced
from nectar.dialects.polars.incremental.cuts import Cut, Streams
from nectar.dialects.polars.incremental.cuts import Run as RunFrame
from nectar.dialects.polars.incremental.extents import Extent
from nectar.dialects.polars.incremental.groups import StateParts
from nectar.dialects.polars.incremental.parts import Sources, way_of
from nectar.dialects.polars.incremental.places import Places
from nectar.dialects.polars.incremental.rows import RowParts
from nectar.dialects.polars.incremental.separable import Origin, Separable, Separation, is_row_wise
from nectar.dialects.polars.keying import Keyed
from nectar.dialects.polars.plan import Step
from nectar.dialects.polars.scans import segment
from nectar.errors import EnvironmentFailure
from nectar.model.entry import Entry
from nectar.rewrite.alignment import Range
from nectar.rewrite.states import Piece
from nectar.store.read import Result

_Run = tuple[int, int]  # of the extents of one side
_Sides = tuple[Sequence[Extent], Sequence[Extent]]
_FEWEST: int = 2  # files of a side that may grow: a table in one file is taken to be replaced as a whole


class Rectangle(Struct, frozen=True):
    """Rows or states of a join of two streams. inner: the same, of all files. ranges: of the files of both sides."""

    inner: RowParts | StateParts
    ranges: tuple[Sequence[Range] | None, Sequence[Range] | None]

    @property
    def node(self) -> int:
        """The node."""
        return self.inner.node

    @property
    def cut(self) -> Cut:
        """Both streams, as one part."""
        return self.inner.cut

    @property
    def rows(self) -> int:
        """The step whose rows are put together."""
        return self.inner.rows

    @property
    def program(self) -> bytes:
        """What rectangles have in common."""
        return self.inner.program

    @property
    def are_states(self) -> bool:
        """Whether what is known are states."""
        return self.inner.are_states

    def key(self, start: int, end: int, which: int = 0) -> bytes:
        """The key of everything: there is one part."""
        return self.inner.key(start, end, which)

    def part(self, pieces: Sequence[Sources]) -> pl.LazyFrame:
        """The rows, or the state of the rows, that come from these sources."""
        return self.inner.part(pieces)

    def merged(self, parts: Sequence[pl.DataFrame]) -> pl.LazyFrame:
        """One made of several."""
        return self.inner.merged(parts)

    def finished(self, part: pl.DataFrame) -> pl.LazyFrame:
        """The result."""
        return self.inner.finished(part)

    def known(self, entries: Sequence[Entry]) -> Iterator[tuple[_Run, _Run, Entry]]:
        """Rectangles that are known and proven, the largest first."""
        left, right = (Places(self.cut.extents[scan]) for scan in self.cut.scans)
        found = [
            (one, other, entry)
            for entry in entries
            if len(entry.spans) == len(self.cut.scans)
            for one in left.runs_of(entry.spans[0])
            for other in right.runs_of(entry.spans[1])
        ]
        for one, other, entry in sorted(found, key=lambda each: _area(*each[:2]), reverse=True):
            of = replace(self.cut, bounds=dict(zip(self.cut.scans, (one, other), strict=True)))
            if entry.key in {replace(self.inner, cut=of).key(0, 1, which) for which in (0, -1)}:
                yield one, other, entry

    def extents(self, one: _Run, other: _Run) -> _Sides | None:
        """The extents of a rectangle that may have rows to be joined; None if there are none."""
        chosen = list(range(*one)), list(range(*other))
        mine, others = self.ranges
        if mine is not None and others is not None:
            left = [at for at in chosen[0] if _meets(mine[at], [others[each] for each in chosen[1]])]
            right = [at for at in chosen[1] if _meets(others[at], [mine[each] for each in chosen[0]])]
            chosen = left, right
        left_side, right_side = (self.cut.extents[scan] for scan in self.cut.scans)
        found = [left_side[at] for at in chosen[0]], [right_side[at] for at in chosen[1]]
        return found if all(found) else None


def extend_rectangle(
    parts: Rectangle, keyed: Keyed, catalog: Catalog, run: RunFrame, known: Sources
) -> Advanced | None:
    """The result, made from the largest known rectangle; None if it is computed as a whole."""
    way = way_of(keyed.plan, parts.cut.scans, keyed.step_of[parts.node])
    beside = {step: frame for step, frame in known.items() if step not in way}
    counts = [len(parts.cut.extents[scan]) for scan in parts.cut.scans]
    begun = time.perf_counter()
    found = _read(parts, catalog)
    if found is None and not parts.are_states:
        return None
    one, other = (found[0], found[1]) if found else ((0, 0), (0, 0))
    sources = [
        _sources(keyed, parts, sides, beside)
        for rest in _rest(one, other, counts[0], counts[1])
        if (sides := parts.extents(*rest)) is not None
    ]
    if None in sources:
        return None
    pieces = [each for each in sources if each is not None]
    frames = [] if found is None else [found[3]]
    if pieces or not frames:
        # Everything that may be joined was left out: the first files of both sides have no rows to be joined either.
        pieces = pieces or [_first(keyed, parts, beside)]
        frames.append(run(parts.part(pieces)))
    whole = frames[0] if len(frames) == 1 and parts.are_states else run(parts.merged(frames))
    new = (
        [Piece(0, 1, whole, time.perf_counter() - begun)]
        if parts.are_states and len(frames) > (found is not None)
        else []
    )
    return Advanced(run(parts.finished(whole)), [] if found is None else [found[2]], new)


def _first(keyed: Keyed, parts: Rectangle, beside: Sources) -> Sources:
    left, right = (parts.cut.extents[scan][:1] for scan in parts.cut.scans)
    sources = _sources(keyed, parts, (left, right), beside)
    assert sources is not None
    return sources


def _sources(keyed: Keyed, parts: Rectangle, sides: _Sides, beside: Sources) -> Sources | None:
    found = dict(beside)
    for scan, extents in zip(parts.cut.scans, sides, strict=True):
        frame = segment(keyed.plan, scan, parts.cut.copies.files(extents))
        if frame is None:
            return None
        found[scan] = frame
    return found


def _read(parts: Rectangle, catalog: Catalog) -> tuple[_Run, _Run, Entry, pl.DataFrame] | None:
    for one, other, entry in parts.known(catalog.inquire([parts.program])[parts.program]):
        try:
            opened = catalog.open(entry)
        except EnvironmentFailure:
            continue
        if isinstance(opened, Result):
            return one, other, entry, opened.to_polars()
    return None


def _rest(one: _Run, other: _Run, left: int, right: int) -> list[tuple[_Run, _Run]]:
    """What is left of everything without a rectangle."""
    if one[0] == one[1]:
        return [((0, left), (0, right))]
    beside = [(run, (0, right)) for run in ((0, one[0]), (one[1], left))]
    within = [(one, run) for run in ((0, other[0]), (other[1], right))]
    return [(mine, its) for mine, its in (*beside, *within) if mine[0] < mine[1] and its[0] < its[1]]


def _area(one: _Run, other: _Run) -> int:
    return (one[1] - one[0]) * (other[1] - other[0])


def _meets(one: Range, others: Sequence[Range]) -> bool:
    return any(one[0] <= each[1] and each[0] <= one[1] for each in others)


# which joins


def rectangle_of(
    parts: RowParts | StateParts, keyed: Keyed, separation: Separation, streams: Streams
) -> Rectangle | None:
    """The same node as a join of two streams that may both grow; None if it is none."""
    step = keyed.plan.steps[keyed.step_of[parts.node]]
    if len(parts.cut.scans) != 1 or (isinstance(parts, StateParts) and _depends_on_order(step)):
        return None
    found = _join(keyed, separation, parts.rows)
    if found is None:
        return None
    join, left, right = found
    files = {number: source.files for number, source, _ in keyed.sources}
    scans = left.scans[0], right.scans[0]
    if any(len(files[scan]) < _FEWEST for scan in scans) or files[scans[0]] == files[scans[1]]:
        return None
    return Rectangle(replace(parts, cut=streams.uncut(scans)), _ranges(keyed, join, (left, right), streams))


def _depends_on_order(step: Step) -> bool:
    if step.kind == "GroupBy" and step.body["maintain_order"]:
        return True
    return depends_on(step.body["aggs" if step.kind == "GroupBy" else "expr"])[0]


def _join(keyed: Keyed, separation: Separation, number: int) -> tuple[Step, Separable, Separable] | None:
    """The inner join of two streams that a step is computed from row by row, and its sides."""
    step = keyed.plan.steps[number]
    while step.kind != "Join":
        if not is_row_wise(step):
            return None
        step = keyed.plan.steps[step.inputs[0]]
    arguments = step.body["options"]["args"]
    plain = arguments["how"] == "Inner" and arguments["maintain_order"] == "None" and not arguments["nulls_equal"]
    sides = [separation.of(each) for each in step.inputs]
    left, right = sides
    if not plain or isinstance(left, str) or isinstance(right, str) or isinstance(separation.of(number), str):
        return None
    simple = all(len(side.scans) == 1 and not side.aligned and side.ordered for side in (left, right))
    return (step, left, right) if simple and left.scans != right.scans else None


def _ranges(
    keyed: Keyed, join: Step, sides: tuple[Separable, Separable], streams: Streams
) -> tuple[Sequence[Range] | None, Sequence[Range] | None]:
    """By which files of both sides need not be read; None where one that is not read might have failed."""
    mine, others = _origins(join, *sides)
    if mine is None or others is None or not all(_cannot_fail(keyed, each) for each in join.inputs):
        return None, None
    return streams.ranges_to_skip_by(mine), streams.ranges_to_skip_by(others)


def _cannot_fail(keyed: Keyed, number: int) -> bool:
    """Whether no row can make the steps up to this one fail: they leave out rows and columns, and give names."""
    step = keyed.plan.steps[number]
    while step.inputs:
        chosen = step.body.get("expr", step.body.get("exprs")) if step.kind in ("Select", "HStack") else None
        if conditions_of(step) is None and (chosen is None or not all(map(_is_a_column, chosen))):
            return False
        step = keyed.plan.steps[step.inputs[0]]
    return True


def _is_a_column(expression: Any) -> bool:
    while isinstance(expression, dict) and set(expression) == {"Alias"}:
        expression = expression["Alias"][0]
    return isinstance(expression, dict) and bool({"Column", "Selector"} & set(expression))


def _origins(join: Step, left: Separable, right: Separable) -> tuple[Origin | None, Origin | None]:
    """Columns of the scans that the join is on: one of each side, of the first pair that is known."""
    on = join.body["condition"]["Equi"]
    if not all(map(_is_a_column, (*on["left_on"], *on["right_on"]))):
        return None, None
    for mine, others in zip(on["left_on"], on["right_on"], strict=True):
        if set(mine) == set(others) == {"Column"}:
            found = (left.columns or {}).get(mine["Column"]), (right.columns or {}).get(others["Column"])
            if None not in found:
                return found
    return None, None
