"""Aggregates: states of parts, merged and finished. Of groups (`group_by`), or of everything (`select`)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from nectar.dialects.polars.aggregates import LAYOUT, States, expression_of, taken_apart
from nectar.dialects.polars.behaviour import depends_on
from nectar.dialects.polars.elementwise import is_elementwise
from nectar.dialects.polars.incremental.cuts import Cut, Streams
from nectar.dialects.polars.incremental.parts import Sources
from nectar.dialects.polars.incremental.separable import Separation
from nectar.dialects.polars.keying import Keyed, key_over
from nectar.dialects.polars.plan import Step
from nectar.dialects.polars.scans import reads_file_by_file
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of

_ROWS = "__nectar_rows"  # how many rows a state of everything was made of


class StateParts(Struct, frozen=True):
    """Aggregates of streams. keys: what they are grouped by; None if they are of everything."""

    keyed: Keyed
    node: int
    cut: Cut
    rows: int
    program: bytes
    keys: tuple[pl.Expr, ...] | None
    ordered: bool
    states: States
    finishing: tuple[pl.Expr, ...]
    are_states: bool = True

    def key(self, start: int, end: int, which: int = 0) -> bytes:
        """The key of the state of a run of parts."""
        below = key_over(self.keyed, self.rows, self.cut.names_of(start, end, which), which)
        return digest_of(joined("state of", self.program, below))

    def part(self, pieces: Sequence[Sources]) -> pl.LazyFrame:
        """The state of the rows that come from these sources."""
        rows = self._rows_of(pieces)
        if self.keys is None:
            return rows.select(pl.len().alias(_ROWS), *self.states.made)
        return rows.group_by(*self.keys, maintain_order=self.ordered).agg(*self.states.made)

    def _rows_of(self, pieces: Sequence[Sources]) -> pl.LazyFrame:
        frames = [self.keyed.plan.frame(self.rows, each) for each in pieces]
        return frames[0] if len(frames) == 1 else pl.concat(frames)

    @property
    def merges_rows(self) -> bool:
        """Whether the state of a row is computed row by row, so that rows can be merged without being grouped first."""
        return self.keys is not None and all(each is not None for each in self.states.single)

    def extended(self, state: pl.DataFrame, pieces: Sequence[Sources]) -> pl.LazyFrame | None:
        """The state of everything that a state is of, and of the rows of these sources, each of which is merged alone.

        Where groups are about as many as rows, grouping new rows first would cost as much again. None if the rows have
        other types than the state.
        """
        single = [each for each in self.states.single if each is not None]
        rows = self._rows_of(pieces).select(*(self.keys or ()), *single)
        alike = rows.collect_schema() == state.schema
        return self._grouped(pl.concat([state.lazy(), rows])) if alike else None

    def _grouped(self, together: pl.LazyFrame) -> pl.LazyFrame:
        return together.group_by(*self._names, maintain_order=self.ordered).agg(*self.states.merged)

    def merged(self, parts: Sequence[pl.DataFrame]) -> pl.LazyFrame:
        """The state of all rows that these are states of."""
        together = pl.concat(parts).lazy() if len(parts) > 1 else parts[0].lazy()
        if self.keys is None:
            # The state of no rows has a first value as well, which is none.
            rows = pl.col(_ROWS)
            counted = together.filter((rows > 0) | (rows.sum() == 0))
            return counted.select(rows.sum(), *self.states.merged)
        return self._grouped(together)

    def finished(self, part: pl.DataFrame) -> pl.LazyFrame:
        """The aggregates."""
        names = () if self.keys is None else self._names
        return part.lazy().select(*names, *self.finishing)

    @property
    def _names(self) -> list[str]:
        return [key.meta.output_name() for key in self.keys or ()]


def state_parts(
    keyed: Keyed, node: int, separation: Separation, streams: Streams, exact_floats: bool
) -> StateParts | str:
    """A node as aggregates that can be computed in parts, or why it is none."""
    number = keyed.step_of[node]
    step = keyed.plan.steps[number]
    if step.kind not in ("GroupBy", "Select"):
        return f"{step.kind.lower()} has no aggregates"
    why_not = _not_grouped(step) if step.kind == "GroupBy" else ""
    if why_not:
        return why_not
    below = separation.of(step.inputs[0])
    if isinstance(below, str):
        return below
    if not below.ordered and _depends_on_order(step):
        return "its rows are in no certain order, and it depends on their order"
    cut = streams.cut(below.scans, below.aligned, below.in_turn)
    return "its streams cannot be cut together" if cut is None else _taken_apart(keyed, node, step, cut, exact_floats)


def _depends_on_order(step: Step) -> bool:
    grouped = step.kind == "GroupBy"
    return (grouped and bool(step.body["maintain_order"])) or depends_on(step.body["aggs" if grouped else "expr"])[0]


def _not_grouped(step: Step) -> str:
    """Why the groups of a group-by are not those of its parts; empty if they are."""
    options = step.body["options"]
    if step.body["apply"] is not None or any(options.get(name) for name in ("dynamic", "rolling", "slice")):
        return "its groups are windows, or are handed to a function"
    if not all(map(is_elementwise, step.body["keys"])) or step.body.get("predicates"):
        return "what it groups by is not computed row by row"
    return ""


def _taken_apart(keyed: Keyed, node: int, step: Step, cut: Cut, exact_floats: bool) -> StateParts | str:
    grouped = step.kind == "GroupBy"
    aggregates, keys = (step.body["aggs"], step.body["keys"]) if grouped else (step.body["expr"], ())
    apart = taken_apart(aggregates, keyed.plan.schema(step.inputs[0]), keys, whole=not grouped)
    if isinstance(apart, str):
        return apart
    if not grouped and not apart.states.made:
        return "it has no aggregates"
    below = keyed.program.nodes[keyed.node_of[step.inputs[0]]]
    parts = StateParts(
        keyed, node, cut, step.inputs[0],
        digest_of(joined(f"state {LAYOUT}", keyed.program.nodes[node].program, below.program)),
        tuple(map(expression_of, keys)) if grouped else None,
        grouped and bool(step.body["maintain_order"]), apart.states, apart.finishing,
    )  # fmt: skip
    return _checked(parts, exact_floats)


def _checked(parts: StateParts, exact_floats: bool) -> StateParts | str:
    """The same, once it is certain that merging gives the very columns that aggregating everything gives."""
    keyed = parts.keyed
    schema = keyed.plan.schema(keyed.step_of[parts.node])
    extents = parts.cut.extents.items()
    if not all(reads_file_by_file(keyed.plan, scan, [each.path for each in found]) for scan, found in extents):
        return "its files cannot be read one by one"
    types = parts.part([{parts.rows: keyed.plan.stand_in(parts.rows)}]).collect_schema()
    if exact_floats and parts.states.depend_on_cuts(types):
        return "sums of floats depend on how a stream is cut, and exact_floats is set"
    empty = pl.DataFrame(schema=types)
    merged_types = parts.merged([empty, empty]).collect_schema()
    if merged_types != types:
        return "merging would give states of other types"
    merged = parts.finished(empty).collect_schema()
    if list(merged) != list(schema):
        return "merging would give other columns"
    casts = [name for name in schema if merged[name] != schema[name]]
    if any(not (merged[name].is_float() and schema[name].is_float()) for name in casts):
        return "merging would give other types"
    return _with_types(parts, schema)


def _with_types(parts: StateParts, schema: pl.Schema) -> StateParts:
    finishing = tuple(
        each.cast(schema[each.meta.output_name()]) if schema[each.meta.output_name()].is_float() else each
        for each in parts.finishing
    )
    return replace(parts, finishing=finishing)
