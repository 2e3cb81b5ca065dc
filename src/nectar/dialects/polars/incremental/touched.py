"""Groups that nothing new belongs to stay as they are: `map_groups`, and aggregates that cannot be merged.

The keys of the new rows tell which groups are touched. Their old rows are read once more, the groups are computed from
all their rows, in the order of the stream, and the others are taken from what is known. Law: what a group gives depends
on its rows and their order alone, so that a group without new rows gives what it gave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import polars as pl
from msgspec import Struct

from nectar.dialects.polars.aggregates import expression_of
from nectar.dialects.polars.behaviour import depends_on
from nectar.dialects.polars.elementwise import is_elementwise
from nectar.dialects.polars.incremental.cuts import Cut, Streams
from nectar.dialects.polars.incremental.extension import CannotBeExtended, Known, Reading
from nectar.dialects.polars.incremental.grouplocal import is_group_local
from nectar.dialects.polars.incremental.parts import Sources
from nectar.dialects.polars.incremental.separable import Separation
from nectar.dialects.polars.keying import Keyed, key_over
from nectar.dialects.polars.plan import Step
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.keys.values.polars_functions import callback_in

_PLACE: Final = "__nectar_place"  # of the first row of a group in the stream
_KEY: Final = "__nectar_key_{}"
_MOST_TOUCHED: Final = 0.5  # of the known groups: beyond that, looking for their rows takes longer than it saves

GroupFunction = Callable[[pl.DataFrame], pl.DataFrame]


class _Touched(Struct, frozen=True):
    """Groups of streams. keys: what they are grouped by. ordered: groups stand in the order of their first rows."""

    keyed: Keyed
    node: int
    cut: Cut
    keys: tuple[pl.Expr, ...]
    ordered: bool

    @property
    def rows(self) -> int:
        """The step whose rows are grouped."""
        return self.keyed.plan.steps[self.step].inputs[0]

    @property
    def step(self) -> int:
        """The group-by."""
        return self.keyed.step_of[self.node]

    @property
    def from_start(self) -> bool:
        """Rows that come before those of a group would change its place."""
        return self.ordered

    @property
    def names(self) -> list[str]:
        """What keys of groups are called beside the rows of the stream."""
        return [_KEY.format(at) for at in range(len(self.keys))]

    def keys_of(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The keys of some rows, each once."""
        return self.with_keys(rows).select(self.names).unique()

    def with_keys(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The same rows with the keys of their groups."""
        return rows.with_columns(key.alias(name) for key, name in zip(self.keys, self.names, strict=True))

    def touched_rows(self, rows: pl.LazyFrame, touched: pl.DataFrame) -> pl.LazyFrame:
        """Those rows whose groups are touched, in their order."""
        found = self.with_keys(rows).join(
            touched.lazy(), on=self.names, how="semi", nulls_equal=True, maintain_order="left"
        )
        return found.drop(self.names)


class TouchedAggregates(_Touched, frozen=True):
    """Aggregates that cannot be merged: one row for each group, which begins with its keys."""

    are_states: bool = False

    @property
    def program(self) -> bytes:
        """What is known are results of the node over other files."""
        return self.keyed.program.nodes[self.node].program

    def key(self, start: int, end: int, which: int = 0) -> bytes:
        """The key that the node has over a run of parts."""
        return key_over(self.keyed, self.step, self.cut.names_of(start, end, which), which)

    def part(self, pieces: Sequence[Sources]) -> pl.LazyFrame:
        """The aggregates of the rows that come from these sources."""
        return self._over(pl.concat([self.keyed.plan.frame(self.rows, each) for each in pieces]))

    def merged(self, parts: Sequence[pl.DataFrame]) -> pl.LazyFrame:
        """Aggregates of parts tell nothing."""
        raise CannotBeExtended

    def finished(self, part: pl.DataFrame) -> pl.LazyFrame:
        """Nothing is left to be done."""
        return part.lazy()

    def extended(self, known: Known, reading: Reading) -> pl.DataFrame | None:
        """Known groups with those that are touched computed again; None if most of them are."""
        run, old = reading.run, known.frame
        touched = run(self.keys_of(reading.around(known)))
        columns = old.columns[: len(self.keys)]
        places = old.select(columns).with_row_index(_PLACE).join(
            touched, left_on=columns, right_on=self.names, how="semi", nulls_equal=True
        )  # fmt: skip
        if places.height > _MOST_TOUCHED * old.height:
            return None
        again = [self.touched_rows(reading.rows(known.start, known.end), touched)] if places.height else []
        new = run(self._over(reading.around(known, again)))
        return self._put_together(old, new, places, columns)

    def _over(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        aggregates = map(expression_of, self.keyed.plan.steps[self.step].body["aggs"])
        return rows.group_by(*self.keys, maintain_order=self.ordered).agg(*aggregates)

    def _put_together(
        self, old: pl.DataFrame, new: pl.DataFrame, places: pl.DataFrame, columns: Sequence[str]
    ) -> pl.DataFrame:
        kept = old.with_row_index(_PLACE).join(places, on=_PLACE, how="anti", maintain_order="left")
        if not self.ordered:
            return pl.concat([kept.drop(_PLACE), new], rechunk=False)
        known = new.join(places, on=columns, how="left", nulls_equal=True, maintain_order="left")
        # Groups that are new stand behind those that are known, in the order in which they were computed.
        behind = known.with_row_index("__nectar_behind", offset=old.height)
        placed = behind.select(pl.coalesce(_PLACE, "__nectar_behind").alias(_PLACE), *old.columns)
        return pl.concat([kept, placed]).sort(_PLACE).drop(_PLACE)


class TouchedFunction(_Touched, frozen=True):
    """What a function of groups gives: any number of rows for each. What is known has the keys of groups beside it."""

    function: GroupFunction
    program: bytes
    are_states: bool = True

    def key(self, start: int, end: int, which: int = 0) -> bytes:
        """The key of what is known of the groups of a run of parts."""
        below = key_over(self.keyed, self.rows, self.cut.names_of(start, end, which), which)
        return digest_of(joined("groups of", self.program, below))

    def part(self, pieces: Sequence[Sources]) -> pl.LazyFrame:
        """What the function gives for all groups, with their keys."""
        return self._over(self._numbered(pl.concat([self.keyed.plan.frame(self.rows, each) for each in pieces])))

    def merged(self, parts: Sequence[pl.DataFrame]) -> pl.LazyFrame:
        """Groups of parts tell nothing."""
        raise CannotBeExtended

    def finished(self, part: pl.DataFrame) -> pl.LazyFrame:
        """What the function gave, without the keys."""
        sorted_ = part.lazy().sort(_PLACE, maintain_order=True) if self.ordered else part.lazy()
        return sorted_.select(name for name in part.columns if name not in (_PLACE, *self.names))

    def extended(self, known: Known, reading: Reading) -> pl.DataFrame | None:
        """What is known, with the groups that are touched handed to the function again."""
        run = reading.run
        touched = run(self.keys_of(reading.around(known)))
        if touched.is_empty():
            return known.frame
        rows = self._numbered(reading.around(known, [reading.rows(known.start, known.end)]))
        given = run(self._over(self.touched_rows(rows, touched)))
        kept = known.frame.join(touched, on=self.names, how="anti", nulls_equal=True, maintain_order="left")
        return pl.concat([kept, given], rechunk=False)

    def _numbered(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        return rows.with_row_index(_PLACE) if self.ordered else rows

    def _over(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        beside = [_PLACE, *self.names] if self.ordered else self.names
        # The order in which groups are handed over is open anyway, so the cheaper one is asked for.
        return self.with_keys(rows).group_by(self.names).map_groups(_Beside(self.function, beside), None)


class _Beside:
    """A function of groups that keeps some columns of the first row beside what another function gives."""

    def __init__(self, function: GroupFunction, beside: Sequence[str]) -> None:
        self._function = function
        self._beside = beside

    def __call__(self, group: pl.DataFrame) -> pl.DataFrame:
        beside = [group.drop_in_place(name) for name in self._beside]
        given = self._function(group)
        return given.hstack([column.new_from_index(0, given.height) for column in beside])


def touched_parts(
    keyed: Keyed, node: int, separation: Separation, streams: Streams, exact_floats: bool
) -> TouchedAggregates | TouchedFunction | str:
    """A node as groups that can be computed one by one, or why it is none."""
    step = keyed.plan.steps[keyed.step_of[node]]
    why_not = _not_single(step, exact_floats)
    if why_not:
        return why_not
    below = separation.of(step.inputs[0])
    if isinstance(below, str):
        return below
    keys = tuple(map(expression_of, step.body["keys"]))
    if not _are_comparable(keys, keyed.plan.frame(step.inputs[0])):
        return "it groups by values that may be equal without being the same, such as floats"
    if not below.ordered:
        return "its rows are in no certain order"
    cut = streams.cut(below.scans, below.aligned, below.in_turn)
    if cut is None:
        return "its streams cannot be cut together"
    ordered = bool(step.body["maintain_order"])
    if step.body["apply"] is None:
        return TouchedAggregates(keyed, node, cut, keys, ordered)
    program = digest_of(joined("groups", keyed.program.nodes[node].program))
    return TouchedFunction(keyed, node, cut, keys, ordered, _function_of(step), program)


def _not_single(step: Step, exact_floats: bool) -> str:
    """Why groups of a step cannot be computed one by one; empty if they can."""
    if step.kind != "GroupBy":
        return f"{step.kind.lower()} has no groups"
    if any(step.body["options"].get(name) for name in ("dynamic", "rolling", "slice")):
        return "its groups are windows, or only some of them are asked for"
    if not step.body["keys"] or not all(map(is_elementwise, step.body["keys"])) or step.body.get("predicates"):
        return "what it groups by is not computed row by row"
    if step.body["apply"] is None:
        if not all(map(is_group_local, step.body["aggs"])):
            return "one of its aggregates may look at other groups"
        if exact_floats and depends_on(step.body["aggs"])[1]:
            return "its aggregates may differ in the last bits, and exact_floats is set"
    return ""


def _are_comparable(keys: Sequence[pl.Expr], rows: pl.LazyFrame) -> bool:
    """Whether a join finds keys equal that a group-by finds equal, and equal ones are the same."""
    types = rows.select(key.alias(_KEY.format(at)) for at, key in enumerate(keys)).collect_schema()
    return len(types) == len(keys) and all(
        dtype.is_integer() or dtype.is_temporal() or dtype in (pl.String, pl.Boolean, pl.Binary)
        for dtype in types.dtypes()
    )


def _function_of(step: Step) -> GroupFunction:
    """The function that groups are handed to, as Polars calls it."""
    called: Any = callback_in(bytes(step.body["apply"][0]), "a Polars plan").function
    return lambda group: pl.DataFrame._from_pydf(called(group._df))
