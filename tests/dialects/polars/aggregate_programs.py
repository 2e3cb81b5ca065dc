"""Random rows of every type, random aggregates over them, and how they are computed in parts: for tests."""

from __future__ import annotations

import datetime as dt
import io
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

import polars as pl
import polars.selectors as cs

from nectar.dialects.polars.aggregates import Apart, taken_apart
from nectar.dialects.polars.aggregates.expressions import serialised

# Floats are multiples of an eighth: their sums are exact, so that merged ones must be equal to the last bit.
_FLOATS = [0.0, 0.125, -2.5, 7.0, 100.625, None, float("nan")]
_INFINITE = [*_FLOATS, float("inf"), float("-inf")]
_DAY = dt.date(2026, 1, 1)
VALUES: dict[str, tuple[Any, list[Any]]] = {
    "i8": (pl.Int8, [1, -1, 127, -128, 0, None]), "i16": (pl.Int16, [1, 2**15 - 1, -5, None]),
    "i32": (pl.Int32, [2**31 - 1, -(2**31), 3, None]), "i64": (pl.Int64, [2**63 - 1, 2**53 + 1, -3, 2, None]),
    "i128": (pl.Int128, [2**100, -(2**126), 5, None]), "u8": (pl.UInt8, [0, 255, 3, None]),
    "u16": (pl.UInt16, [65535, 2, None]), "u32": (pl.UInt32, [2**32 - 1, 0, 7, None]),
    "u64": (pl.UInt64, [2**64 - 1, 3, 0, None]), "f16": (pl.Float16, [0.5, -3.0, 7.5, None, float("nan")]),
    "f32": (pl.Float32, _FLOATS), "f64": (pl.Float64, _FLOATS), "inf": (pl.Float64, _INFINITE),
    "bool": (pl.Boolean, [True, False, None]), "str": (pl.String, ["a", "", "zz", "é", None]),
    "bin": (pl.Binary, [b"", b"\xff", b"a", None]), "date": (pl.Date, [_DAY, _DAY + dt.timedelta(9), None]),
    "time": (pl.Time, [dt.time(1), dt.time(23, 59), None]),
    "when": (pl.Datetime("us", "UTC"), [dt.datetime(2026, 1, 1), dt.datetime(1960, 5, 5, 5), None]),
    "dur": (pl.Duration("ms"), [dt.timedelta(1), dt.timedelta(milliseconds=-3), None]),
    "cat": (pl.Categorical, ["b", "a", "c", None]), "enum": (pl.Enum(["z", "b", "a"]), ["a", "b", "z", None]),
    "dec": (pl.Decimal(10, 2), [Decimal("1.10"), Decimal("-99999999.99"), None]),
    "list": (pl.List(pl.Int8), [[1], [], [None, 2], None]), "arr": (pl.Array(pl.Int8, 1), [[1], [2], None]),
    "st": (pl.Struct({"x": pl.Int8, "y": pl.String}), [{"x": 1, "y": "a"}, {"x": None, "y": None}, None]),
    "zero": (pl.Float64, [0.0, -0.0, None]), "null": (pl.Null, [None]), "none": (pl.Int64, [None]),
}  # fmt: skip
NUMBERS = ["i8", "i16", "i32", "i64", "i128", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "inf", "bool", "dec"]
WIDE = ["i64", "i128", "u64"]  # sums of these as floats are rounded
ANY = list(VALUES)
_SPREAD = ["i8", "i16", "u8", "f16", "f32", "f64", "inf", "bool"]  # not much further from zero than from each other


def rows(draw: Random, count: int) -> pl.DataFrame:
    """Rows with a column of each type, and a key."""
    columns = {"k": pl.Series([draw.choice([1, 2, 3, None]) for _ in range(count)], dtype=pl.Int64)}
    places = [place if draw.random() < 0.8 else None for place in draw.sample(range(count), count)]
    columns["at"] = pl.Series(places, dtype=pl.Float64)  # which of equals min_by chooses is not defined: there are none
    for name, (kind, values) in VALUES.items():
        columns[name] = pl.Series([draw.choice(values) for _ in range(count)], dtype=kind)
    return pl.DataFrame(columns)


def aggregate(draw: Random, depth: int = 2) -> pl.Expr:
    """An aggregate, or an expression over several."""
    if depth == 0 or draw.random() < 0.5:
        return _leaf(draw)
    make = draw.choice([_arithmetic, _choice, _horizontal, _finishing, _fields])
    return make(draw, depth - 1)


def several(draw: Random) -> pl.Expr:
    """An aggregate of several columns at once."""
    columns = draw.choice(
        [pl.col("i8", "f64"), cs.integer(), cs.float(), pl.col(pl.Boolean, pl.Date), pl.col("^i.*$"), pl.all(),
         cs.temporal(), pl.exclude("list", "arr", "st", "null")]
    )  # fmt: skip
    found = getattr(columns, draw.choice(["min", "max", "first", "null_count", "len", "n_unique"]))()
    if draw.random() < 0.3:
        found = pl.col("i8", "i64").sum() - pl.col("i16", "i32").max()
    return draw.choice([found, found.name.suffix("_x"), found.name.prefix("p_"), found.name.to_uppercase()])


def list_of(draw: Random) -> pl.Expr:
    """A list for each group."""
    column = _rows(draw, draw.choice(ANY))
    ends = [column.head(2), column.tail(3), column.head(0), column.slice(0, 5)]
    return draw.choice([column, column.implode(), column.unique(maintain_order=True), *ends])


def _rows(draw: Random, name: str) -> pl.Expr:
    """A column, some of whose rows may be left out."""
    column = pl.col(name)
    ways = [column, column, column, column.filter(pl.col("i8") > 0), column.filter("bool"), column.drop_nulls()]
    if name in NUMBERS and name not in ("bool", "dec"):
        ways += [column + 1, column * pl.col(name), -column.cast(pl.Int32, strict=False)]
        ways += [] if name in WIDE else [column.cast(pl.Float64)]
    return draw.choice(ways)


def _leaf(draw: Random) -> pl.Expr:
    if draw.random() < 0.15:
        return draw.choice([pl.len(), pl.len(), pl.lit(3)])
    if draw.random() < 0.45:
        number = draw.choice(["sum", "mean", "var", "std", "product"])
        if number in ("var", "std"):
            return getattr(_rows(draw, draw.choice(_SPREAD)), number)(ddof=draw.choice([0, 1, 1, 2]))
        return getattr(_rows(draw, draw.choice(NUMBERS)), number)()
    column = _rows(draw, name := draw.choice(ANY))
    ways = [column.count(), column.len(), column.null_count(), column.n_unique(), column.first(), column.last(),
            column.first(ignore_nulls=True), column.last(ignore_nulls=True), column.has_nulls(), column.is_empty(),
            column.is_empty(ignore_nulls=True), pl.col(name).min_by("at"), pl.col(name).max_by("at")]  # fmt: skip
    if name not in ("list", "arr", "st"):
        ways += [column.min(), column.max(), column.nan_min(), column.nan_max()]
    if name == "bool":
        ways = [getattr(column, which)(ignore_nulls=nulls) for which in ("any", "all") for nulls in (True, False)]
    if name in ("i8", "i32", "u64"):
        ways += [column.bitwise_and(), column.bitwise_or(), column.bitwise_xor()]
    return draw.choice(ways)


def _number(draw: Random) -> pl.Expr:
    column = _rows(draw, name := draw.choice(NUMBERS[:-2]))
    exact = [column.sum(), column.min(), column.max(), pl.len(), column.count()]
    return draw.choice(exact if name in WIDE else [*exact, column.mean()])


def _arithmetic(draw: Random, depth: int) -> pl.Expr:
    left, right = _number(draw), _number(draw)
    return draw.choice([left / right, left - 1, left - right, left * 2, left // 3, pl.len() - pl.col("i8").count() - 1])


def _choice(draw: Random, depth: int) -> pl.Expr:
    chosen = pl.when(_number(draw) > draw.choice([0, 1, 2.5])).then(aggregate(draw, depth))
    return draw.choice([chosen, chosen.otherwise(None)])


def _horizontal(draw: Random, depth: int) -> pl.Expr:
    which = draw.choice([pl.sum_horizontal, pl.max_horizontal, pl.min_horizontal, pl.coalesce])
    return which(_number(draw), _number(draw), 3)


def _finishing(draw: Random, depth: int) -> pl.Expr:
    found = _number(draw)
    return draw.choice(
        [found.cast(pl.Float32), found.cast(pl.String), found.abs(), found.is_null(), found.fill_null(7),
         (pl.col("i16").max() - pl.col("i16").min()).cast(pl.Int64), found.is_between(0, 5), found.clip(0, 9)]
    )  # fmt: skip


def _fields(draw: Random, depth: int) -> pl.Expr:
    return pl.struct(aggregate(draw, depth).alias("x"), pl.col("f64").max(), (pl.len() - 1).alias("y"))


class NotMerged(Exception):
    """The aggregates cannot be taken apart. Its text: why."""


@dataclass(frozen=True)
class Way:
    """How aggregates are computed. whole: all rows are one group. stored: states go through a file before merging.

    alone: rows of the later parts are merged each by itself, where that can be.
    """

    engine: str = "in-memory"
    whole: bool = False
    ordered: bool = True
    stored: bool = False
    alone: bool = False

    def at_once(self, frame: pl.DataFrame, aggregates: list[pl.Expr]) -> pl.DataFrame:
        """The aggregates, as plain Polars computes them."""
        lazy = frame.lazy()
        if self.whole:
            return lazy.select(*aggregates).collect(engine=self.engine)
        return lazy.group_by("k", maintain_order=self.ordered).agg(*aggregates).collect(engine=self.engine)

    def in_parts(self, frame: pl.DataFrame, cuts: list[int], aggregates: list[pl.Expr]) -> pl.DataFrame:
        """The aggregates, made by merging states of parts."""
        keys = [] if self.whole else [serialised(pl.col("k"))]
        apart = taken_apart([serialised(each) for each in aggregates], frame.schema, keys, self.whole)
        if isinstance(apart, str):
            raise NotMerged(apart)
        parts = [frame[start:end] for start, end in zip([0, *cuts], [*cuts, frame.height], strict=True)]
        merged, *others = [self._state(part, apart) for part in parts]
        if self.alone and not self.whole and all(each is not None for each in apart.states.single):
            rows = [part.lazy().select("k", *apart.states.single).collect(engine=self.engine) for part in parts[1:]]
            others = rows if all(each.schema == merged.schema for each in rows) else others
        for state in others:  # one by one: what is merged is a state again
            merged = self.at_once(pl.concat([merged, state]), apart.states.merged)
        return merged.lazy().select(*([] if self.whole else ["k"]), *apart.finishing).collect(engine=self.engine)

    def _state(self, part: pl.DataFrame, apart: Apart) -> pl.DataFrame:
        state = self.at_once(part, apart.states.made)
        return _through_a_file(state) if self.stored else state


def _through_a_file(frame: pl.DataFrame) -> pl.DataFrame:
    file = io.BytesIO()
    frame.write_ipc(file)
    return pl.read_ipc(file.getvalue())
