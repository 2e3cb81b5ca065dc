"""Random Polars programs over files of many kinds: a string of bytes is a program, and shorter bytes a simpler one.

`Tape` hands out choices; `program` makes a Frame of them, which can be built any number of times, in any process. A
Frame knows whether Polars promises the order of its rows; whatever depends on an order gets rows that were sorted
first, so that every program has one answer. Floats are multiples of 1/4: sums are exact in whatever order.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import polars as pl
import polars.selectors as cs

Make = Callable[[], pl.LazyFrame]
T = TypeVar("T")

LEVELS = pl.Enum(["low", "mid", "high"])
FULL: dict[str, Any] = {
    "k": pl.Int64, "g": pl.String, "i8": pl.Int8, "i16": pl.Int16, "i32": pl.Int32, "u8": pl.UInt8, "u16": pl.UInt16,
    "u32": pl.UInt32, "u64": pl.UInt64, "i128": pl.Int128, "f32": pl.Float32, "f64": pl.Float64, "s": pl.String,
    "b": pl.Boolean, "d": pl.Date, "t": pl.Datetime("us"), "z": pl.Datetime("ms", "Europe/Berlin"),
    "du": pl.Duration("us"), "ti": pl.Time, "de": pl.Decimal(12, 2), "c": pl.Categorical, "e": LEVELS,
    "l": pl.List(pl.Int32), "r": pl.Struct({"p": pl.Int16, "q": pl.String}), "y": pl.Binary,
    "a": pl.Array(pl.Int64, 2), "ls": pl.List(pl.String),
}  # fmt: skip
PLAIN = ("k", "g", "i32", "f64", "s", "b", "d")  # what CSV can hold
NESTED = (*PLAIN, "l", "r", "ls")  # what JSON can hold
_DAY = datetime.date(2024, 2, 27)
_TIME = datetime.datetime(2024, 3, 30, 22)  # shortly before a change of the clocks


class Tape:
    """Choices out of bytes; after the last byte, the first choice each time."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._named = 0

    def below(self, most: int) -> int:
        byte = self._data[self._at] if self._at < len(self._data) else 0
        self._at += 1
        return byte % most

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def chance(self, out_of: int) -> bool:
        return self.below(out_of) == out_of - 1

    def name(self, letter: str) -> str:
        """A name that no other column has."""
        self._named += 1
        return f"{letter}{self._named}"

    def some(self, choices: Sequence[T], most: int) -> list[T]:
        """Distinct choices, at least one."""
        found = [self.pick(choices) for _ in range(1 + self.below(most))]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Frame:
    """A lazy frame that can be built again and again.

    ordered: Polars promises the order of its rows. firm: and keeps it when a slice above is moved into what makes them,
    which it does not for joins.
    """

    make: Make
    ordered: bool = True
    firm: bool = True

    @property
    def schema(self) -> dict[str, Any]:
        return dict(self.make().collect_schema())

    def then(self, step: Callable[[pl.LazyFrame], pl.LazyFrame], ordered: bool | None = None) -> Frame:
        """The frame after one more step; by default its rows are in order if they were before."""
        kept = self.ordered if ordered is None else ordered
        return Frame(lambda: step(self.make()), kept, kept and (self.firm or not self.ordered))


# files


def rows(seed: int, count: int) -> pl.DataFrame:
    """A table with every type, nulls, and the numbers that give trouble."""
    random = Random(seed)

    def column(values: Callable[[], Any], nulls: float = 0.15) -> list[Any]:
        return [None if random.random() < nulls else values() for _ in range(count)]

    def number() -> float:
        return random.choice([random.randrange(-40, 40) / 4, 0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, 2.25])

    def text() -> str:
        return random.choice(["", "a", "b", "é", "Ab c", "x-1", "12", "日本"])

    made: dict[str, list[Any]] = {
        "k": column(lambda: random.randrange(6), 0.0), "g": column(lambda: random.choice("uvw")),
        "i8": column(lambda: random.randrange(-128, 128)), "i16": column(lambda: random.randrange(-9, 9)),
        "i32": column(lambda: random.randrange(-1000, 1000)), "u8": column(lambda: random.randrange(256)),
        "u16": column(lambda: random.randrange(99)), "u32": column(lambda: random.randrange(2**20)),
        "u64": column(lambda: random.randrange(2**40)), "i128": column(lambda: random.randrange(-(2**70), 2**70)),
        "f32": column(number), "f64": column(number), "s": column(text), "b": column(lambda: random.random() < 0.5),
        "d": column(lambda: _DAY + datetime.timedelta(random.randrange(9))),
        "t": column(lambda: _TIME + datetime.timedelta(minutes=30 * random.randrange(12))),
        "z": column(lambda: _TIME + datetime.timedelta(minutes=30 * random.randrange(12))),
        "du": column(lambda: datetime.timedelta(seconds=random.randrange(-99, 9999))),
        "ti": column(lambda: datetime.time(random.randrange(24), 30)),
        "de": column(lambda: Decimal(random.randrange(-999, 999)) / 4),
        "c": column(lambda: random.choice(["one", "two", "three"])),
        "e": column(lambda: random.choice(["low", "mid", "high"])),
        "l": column(lambda: [random.choice([1, 2, 3, None]) for _ in range(random.randrange(4))]),
        "r": column(lambda: {"p": random.randrange(5), "q": text()}),
        "y": column(lambda: random.choice([b"", b"\x00\x01", b"abc"])),
        "a": column(lambda: [random.randrange(5), random.randrange(5)]),
        "ls": column(lambda: [text() for _ in range(random.randrange(3))]),
    }  # fmt: skip
    made["z"] = [None if each is None else each.replace(tzinfo=datetime.UTC) for each in made["z"]]
    return pl.DataFrame(made, schema=FULL, strict=False)


FILES = 3


def path_of(folder: Path, kind: str, number: int) -> Path:
    return folder / kind / (f"k={number}/part.parquet" if kind == "hive" else f"p{number}.{kind}")


def write_file(folder: Path, kind: str, number: int, version: int) -> None:
    """One file of a kind of source, as of a version."""
    table = rows(1000 * version + 10 * number + len(kind), 7 + 5 * number)
    path = path_of(folder, kind, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(".aside")
    if kind == "parquet":
        table.write_parquet(aside)
    elif kind == "hive":
        table.drop("k").write_parquet(aside)
    elif kind == "ipc":
        table.write_ipc(aside)
    elif kind == "csv":
        table.select(PLAIN).with_columns(pl.col("f64").fill_nan(0.25)).write_csv(aside)
    else:
        finite = pl.when(pl.col("f64").is_finite()).then("f64").alias("f64")
        table.select(NESTED).with_columns(finite).write_ndjson(aside)
    aside.replace(path)


KINDS = ("parquet", "csv", "ipc", "ndjson", "hive")


def write_files(folder: Path) -> None:
    """All sources, as of version 0."""
    for kind in KINDS:
        for number in range(FILES):
            write_file(folder, kind, number, 0)


_CSV_SCHEMA = {name: FULL[name] for name in PLAIN}
_JSON_SCHEMA = {name: FULL[name] for name in NESTED}


def _scans(folder: Path) -> list[Make]:
    parquet = [folder / "parquet" / f"p{number}.parquet" for number in range(FILES)]
    hive = folder / "hive"
    csv, ipc, ndjson = folder / "csv" / "*.csv", folder / "ipc", folder / "ndjson" / "p*.ndjson"
    return [
        lambda: pl.scan_parquet(parquet),
        lambda: pl.scan_csv(csv, schema=_CSV_SCHEMA),
        lambda: pl.scan_ipc(ipc / "*.ipc"),
        lambda: pl.scan_ndjson(ndjson, schema=_JSON_SCHEMA),
        lambda: pl.scan_parquet(hive, hive_partitioning=True),
        lambda: pl.scan_parquet(parquet[1]),
        lambda: pl.scan_parquet(parquet, row_index_name="at", n_rows=20),
        lambda: pl.scan_csv(csv, try_parse_dates=True),
        lambda: pl.scan_csv(csv, schema_overrides={"k": pl.Int16}, null_values=["a"]),
        lambda: pl.scan_parquet([parquet[2], parquet[0]], include_file_paths="file").with_columns(
            pl.col("file").str.slice(-10)
        ),
        lambda: pl.scan_ndjson(ndjson, ignore_errors=True),
        lambda: rows(5, 9).lazy(),
        lambda: pl.scan_parquet(folder / "parquet" / "p[01].parquet").cache(),
        lambda: pl.scan_ipc([ipc / "p2.ipc", ipc / "p0.ipc"], row_index_name="at", row_index_offset=3),
    ]


def source(tape: Tape, folder: Path) -> Frame:
    """A scan, or a frame in memory, with some of its columns."""
    frame = Frame(tape.pick(_scans(folder)))
    if not tape.chance(4):
        names = list(dict.fromkeys([*(name for name in ("k", "g") if name in frame.schema),
                                    *tape.some(list(frame.schema), 6)]))  # fmt: skip
        frame = frame.then(lambda lf: lf.select(names))
    return frame


# functions of users


def add_three(value: int) -> int:
    return value + 3


def doubled(column: pl.Series) -> pl.Series:
    return column + column


def first_rows(group: pl.DataFrame) -> pl.DataFrame:
    return group.head(2)


def _scaled(factor: int) -> Callable[[pl.Series], pl.Series]:
    def scaled(column: pl.Series) -> pl.Series:
        return column.cast(pl.Int64, strict=False) * factor

    return scaled


# expressions


def _of(schema: dict[str, Any], wanted: Callable[[Any], bool]) -> list[str]:
    return [name for name, kind in schema.items() if wanted(kind)]


def _is_number(kind: Any) -> bool:
    return bool(kind.is_numeric()) and kind != pl.Int128


def _is_sortable(kind: Any) -> bool:
    return not kind.is_nested() and kind not in (pl.Binary, pl.Object)


def _key_columns(schema: dict[str, Any]) -> list[str]:
    return _of(
        schema, lambda kind: kind.is_integer() or kind in (pl.String, pl.Boolean, pl.Date, pl.Categorical, pl.Enum)
    )


def _integer(tape: Tape, column: pl.Expr) -> pl.Expr:
    return tape.pick([
        lambda: column + tape.below(3), lambda: column.cast(pl.Float64) / 4, lambda: column * 2 - 1,
        lambda: column.cast(pl.Int64).abs(), lambda: column.is_in([1, 2, 3]), lambda: column.clip(-2, 4),
        lambda: column.cast(pl.String), lambda: column.fill_null(0), lambda: column.is_between(0, 5),
        lambda: column.replace({1: 7}), lambda: column.cast(pl.Int64) % 3, lambda: column // 2,
        lambda: column.cast(pl.Int64).map_batches(doubled, return_dtype=pl.Int64, is_elementwise=True),
        lambda: column.cast(pl.Int64).map_elements(add_three, return_dtype=pl.Int64),
        lambda: column.map_batches(_scaled(tape.below(3)), return_dtype=pl.Int64),
        lambda: pl.max_horizontal(column, pl.lit(tape.below(4))), lambda: column.cast(pl.Decimal(20, 2)),
        lambda: pl.when(column > tape.below(4)).then(column).otherwise(None), lambda: column.hash(3) % 7,
        lambda: column.bitwise_count_ones(), lambda: column.is_null(), lambda: pl.sum_horizontal(column, column),
    ])()  # fmt: skip


def _float(tape: Tape, column: pl.Expr) -> pl.Expr:
    return tape.pick([
        lambda: column * 2, lambda: column.is_nan(), lambda: column.fill_nan(None), lambda: column.round(0),
        lambda: column.floor(), lambda: column.is_finite(), lambda: column > 0, lambda: column.fill_null(-0.0),
        lambda: column.abs().sqrt().round(6), lambda: column == math.nan, lambda: column == math.inf,
        lambda: column.sign(), lambda: column.clip(-1.0, 1.0), lambda: column.cast(pl.Int64, strict=False),
        lambda: pl.coalesce(column, pl.lit(9.5)), lambda: column.cut([0.0, 2.0]).cast(pl.String),
    ])()  # fmt: skip


def _text(tape: Tape, column: pl.Expr) -> pl.Expr:
    return tape.pick([
        lambda: column.str.to_uppercase(), lambda: column.str.len_chars(), lambda: column.str.contains("a"),
        lambda: column + "!", lambda: column.str.slice(0, 1), lambda: column.str.replace("a", "b"),
        lambda: column.str.split(""), lambda: column.str.to_integer(strict=False), lambda: column.is_in(["a", "u"]),
        lambda: pl.concat_str([column, pl.lit("-"), column], ignore_nulls=bool(tape.below(2))),
        lambda: column.cast(pl.Categorical), lambda: column.str.strip_chars(), lambda: column.fill_null("none"),
        lambda: column.str.extract(r"(\d+)", 1), lambda: column.str.pad_start(4, "*"), lambda: column.str.head(1),
        lambda: pl.format("<{}>", column), lambda: column.str.find("b"), lambda: column.str.count_matches("a"),
        lambda: column.replace_strict({"a": 1, "u": 2}, default=None), lambda: column.str.encode("hex"),
    ])()  # fmt: skip


def _temporal(tape: Tape, column: pl.Expr) -> pl.Expr:
    return tape.pick([
        lambda: column.dt.year(), lambda: column.dt.month(), lambda: column.dt.truncate("1mo"),
        lambda: column.dt.offset_by("1d"), lambda: column.dt.weekday(), lambda: column.dt.strftime("%d.%m.%Y"),
        lambda: column > datetime.date(2024, 3, 1), lambda: column.dt.ordinal_day(), lambda: column.dt.month_start(),
        lambda: column.cast(pl.Int64),
    ])()  # fmt: skip


def _list(tape: Tape, column: pl.Expr) -> pl.Expr:
    return tape.pick([
        lambda: column.list.len(), lambda: column.list.sum(), lambda: column.list.get(0, null_on_oob=True),
        lambda: column.list.sort(), lambda: column.list.contains(2), lambda: column.list.eval(pl.element().rank()),
        lambda: column.list.head(1), lambda: column.list.unique(maintain_order=True), lambda: column.list.max(),
        lambda: column.list.reverse(), lambda: column.list.set_union(column).list.sort(),
        lambda: column.list.eval(pl.element().filter(pl.element() > 1)),
    ])()  # fmt: skip


def row_wise(tape: Tape, schema: dict[str, Any], name: str) -> pl.Expr:
    """An expression of one column that gives each row a value of its own."""
    kind, column = schema[name], pl.col(name)
    if kind == pl.Int128:
        return column + 1
    if kind.is_integer():
        return _integer(tape, column)
    if kind.is_float():
        return _float(tape, column)
    if kind == pl.String:
        return _text(tape, column)
    if kind in (pl.Date, pl.Datetime):
        return _temporal(tape, column)
    if kind == pl.List(pl.Int32):
        return _list(tape, column)
    if kind == pl.Boolean:
        return tape.pick([~column, column.fill_null(True), column & pl.lit(True), column.cast(pl.Int8)])
    if kind == pl.Duration:
        return tape.pick([column.dt.total_seconds(), column * 2, column + datetime.timedelta(1)])
    if kind == pl.Struct and any(field.name == "p" for field in kind.fields):
        return tape.pick(
            [column.struct.field("p"), column.struct.rename_fields(["m", "n"]), column.struct.json_encode()]
        )
    if kind in (pl.Categorical, pl.Enum):
        return tape.pick([column.cast(pl.String), column == "low", column.cat.len_bytes(), column.is_in(["one", "mid"])
                          if kind == pl.Categorical else column.is_null()])  # fmt: skip
    if kind == pl.Binary:
        return tape.pick([column.bin.size(), column.bin.encode("hex"), column == b"abc"])
    if kind == pl.Array:
        return tape.pick([column.arr.sum(), column.arr.get(0), column.arr.to_list()])
    if kind.is_decimal():
        return tape.pick([column + 1, column.cast(pl.Float64), column > 2])
    return column.is_null()


def positional(tape: Tape, schema: dict[str, Any], name: str) -> pl.Expr:
    """An expression of one column that depends on the order of rows."""
    kind, column = schema[name], pl.col(name)
    general = [
        lambda: column.shift(1), lambda: column.is_null().cum_sum(), lambda: column.reverse(),
        lambda: column.fill_null(strategy="forward"), lambda: column.first().over(pl.lit(1)),
        lambda: pl.int_range(pl.len()), lambda: column.is_first_distinct(), lambda: column.rle_id(),
        lambda: column.last(),
    ]  # fmt: skip
    if kind.is_nested() or kind == pl.Binary:
        return tape.pick(general[:3])()
    if _is_number(kind) and kind.is_integer():
        number = column.cast(pl.Int64)
        general += [
            lambda: number.cum_sum(), lambda: number.diff(), lambda: number.rank("ordinal"),
            lambda: number.rolling_sum(3, min_samples=1), lambda: number.rolling_max(2), lambda: number.cum_max(),
            lambda: number.shuffle(seed=tape.below(3)), lambda: number.interpolate(),
            lambda: number.rolling_map(lambda window: window.max(), 2), lambda: number.ewm_mean(com=1).round(6),
            lambda: number.map_batches(lambda column: column.cum_sum(), return_dtype=pl.Int64),
        ]  # fmt: skip
    return tape.pick(general)()


def aggregate(tape: Tape, schema: dict[str, Any], name: str, ordered: bool) -> pl.Expr:
    """An aggregate of one column; one that depends on the order of rows only where they have one."""
    kind, column = schema[name], pl.col(name)
    choices = [lambda: column.count(), lambda: column.null_count(), lambda: pl.len()]
    if ordered:
        choices += [lambda: column.first(), lambda: column.last(), lambda: column.implode(),
                    lambda: column.slice(1, 2).implode()]  # fmt: skip
    if not kind.is_nested() and kind != pl.Binary:
        choices += [lambda: column.n_unique(), lambda: column.drop_nulls().unique().sort().implode()]
    if _is_sortable(kind) and kind not in (pl.Boolean, pl.Categorical, pl.Enum):
        choices += [lambda: column.min(), lambda: column.max()]
    if _is_number(kind) and not kind.is_decimal():
        choices += [
            lambda: column.sum(), lambda: column.mean(), lambda: column.median(), lambda: column.std().round(6),
            lambda: column.quantile(0.25, "nearest"), lambda: (column.sum() / pl.len()).round(6),
            lambda: column.filter(column > 0).sum(), lambda: column.var(0).round(6),
            lambda: column.cast(pl.Float64).fill_nan(0).clip(-9, 9).sum() + 1,
        ]  # fmt: skip
    if kind == pl.Boolean:
        choices += [lambda: column.any(), lambda: column.all(), lambda: column.sum()]
    if kind.is_decimal():
        choices += [lambda: column.sum()]
    return tape.pick(choices)()


def predicate(tape: Tape, schema: dict[str, Any]) -> pl.Expr:
    """A condition on rows."""
    name = tape.pick(list(schema))
    found = tape.pick([
        lambda: pl.col(name).is_not_null(), lambda: pl.col(name).is_null() | pl.lit(True),
        lambda: _compared(tape, schema, name), lambda: _compared(tape, schema, name),
        lambda: row_wise(tape, schema, name).is_not_null(),
    ])()  # fmt: skip
    return ~found if tape.chance(4) else found


def _compared(tape: Tape, schema: dict[str, Any], name: str) -> pl.Expr:
    if _is_number(schema[name]):
        return pl.col(name) > tape.below(4)
    if schema[name] == pl.String:
        return pl.col(name) >= tape.pick(["a", "u", "v"])
    return pl.col(name).is_not_null()


# steps


def in_order(frame: Frame) -> Frame:
    """The frame with rows in an order that is certain: equal rows cannot be told apart."""
    if frame.ordered and frame.firm:
        return frame
    schema = frame.schema
    names = _of(schema, _is_sortable)
    lists = [name for name in schema if name not in names]
    if not names:
        return Frame(lambda: frame.make().select(pl.len()))
    return Frame(lambda: frame.make().drop(lists).sort(names, nulls_last=True, maintain_order=True))


def _filter(tape: Tape, frame: Frame) -> Frame:
    condition = predicate(tape, frame.schema)
    return frame.then(lambda lf: lf.filter(condition))


def _compute(tape: Tape, frame: Frame) -> Frame:
    schema = frame.schema
    names = tape.some(list(schema), 3)
    made = {tape.name("n"): row_wise(tape, schema, name) for name in names}
    if tape.chance(3):
        return frame.then(lambda lf: lf.select("^k|g$", **made))
    return frame.then(lambda lf: lf.with_columns(**made))


def _replace(tape: Tape, frame: Frame) -> Frame:
    name = tape.pick(list(frame.schema))
    made = row_wise(tape, frame.schema, name)
    return frame.then(lambda lf: lf.with_columns(made.alias(name)))


def _position(tape: Tape, frame: Frame) -> Frame:
    frame = in_order(frame)
    name = tape.pick(list(frame.schema))
    made, label = positional(tape, frame.schema, name), tape.name("p")
    return frame.then(lambda lf: lf.with_columns(made.alias(label)))


def _window(tape: Tape, frame: Frame) -> Frame:
    schema = frame.schema
    keys = _key_columns(schema)
    if not keys:
        return frame
    made, label = aggregate(tape, schema, tape.pick(list(schema)), False), tape.name("w")
    key = tape.pick(keys)
    return frame.then(lambda lf: lf.with_columns(made.over(key).alias(label)))


def _group(tape: Tape, frame: Frame) -> Frame:
    frame = in_order(frame) if tape.chance(3) else frame
    ordered = frame.ordered and frame.firm
    schema = frame.schema
    keys = _key_columns(schema)
    if not keys:
        return frame
    by = tape.some(keys, 2)
    others = [name for name in schema if name not in by] or list(schema)
    kept = ordered and tape.chance(3)
    made = [aggregate(tape, schema, name, ordered).alias(tape.name("x")) for name in tape.some(others, 3)]
    if tape.chance(5):
        return frame.then(lambda lf: lf.group_by(by, maintain_order=kept).having(pl.len() > 1).agg(made), kept)
    return frame.then(lambda lf: lf.group_by(by, maintain_order=kept).agg(made), kept)


def _group_function(tape: Tape, frame: Frame) -> Frame:
    frame = in_order(frame)
    keys = _key_columns(frame.schema)
    if not keys:
        return frame
    key = tape.pick(keys)
    schema = frame.schema
    return frame.then(lambda lf: lf.group_by(key, maintain_order=True).map_groups(first_rows, schema=schema))


def _aggregate(tape: Tape, frame: Frame) -> Frame:
    schema = frame.schema
    names = tape.some(list(schema), 3)
    ordered = frame.ordered and frame.firm
    made = {tape.name("x"): aggregate(tape, schema, name, ordered) for name in names}
    return frame.then(lambda lf: lf.select(**made))


def _sort(tape: Tape, frame: Frame) -> Frame:
    names = _of(frame.schema, _is_sortable)
    if not names:
        return frame
    by, down, last = tape.some(names, 2), bool(tape.below(2)), bool(tape.below(2))
    if frame.ordered:
        return frame.then(lambda lf: lf.sort(by, descending=down, nulls_last=last, maintain_order=True))
    return frame.then(lambda lf: lf.sort(by, descending=down, nulls_last=last), False)


def _unique(tape: Tape, frame: Frame) -> Frame:
    schema = frame.schema
    if any(kind.is_nested() or kind == pl.Binary for kind in schema.values()):
        frame = frame.then(lambda lf: lf.select(~(cs.nested() | cs.binary())))
        schema = frame.schema
    if not schema:
        return frame
    subset = tape.some(list(schema), 2) if tape.below(2) else None
    if subset is None:
        return frame.then(lambda lf: lf.unique(), False)
    keep = tape.pick(["none", "first", "last"])
    frame = in_order(frame) if keep != "none" else frame
    kept = frame.ordered and bool(tape.below(2))
    return frame.then(lambda lf: lf.unique(subset, keep=keep, maintain_order=kept), kept)


def _slice(tape: Tape, frame: Frame) -> Frame:
    frame = in_order(frame)
    count, start = tape.below(9), tape.below(5)
    return frame.then(tape.pick([
        lambda lf: lf.head(count), lambda lf: lf.tail(count), lambda lf: lf.slice(start, count),
        lambda lf: lf.slice(-count - 1, 2), lambda lf: lf.gather_every(2, start), lambda lf: lf.with_row_index("at_"),
        lambda lf: lf.reverse(), lambda lf: lf.shift(start - 1), lambda lf: lf.first(),
    ]))  # fmt: skip


def _top(tape: Tape, frame: Frame) -> Frame:
    names = _of(frame.schema, _is_sortable)
    if not names:
        return frame
    count, name = 1 + tape.below(5), tape.pick(names)
    return frame.then(lambda lf: lf.top_k(count, by=name).select(name), False)


def _join(tape: Tape, frame: Frame, folder: Path) -> Frame:
    schema = frame.schema
    if tape.chance(3):  # with a part of itself
        other = frame.then(lambda lf: lf.group_by(pl.first()).agg(pl.len().alias("times")), False)
        key = next(iter(schema))
        if key not in _key_columns(schema):
            return frame
    else:
        other = _short(tape, source(tape, folder))
        shared = [name for name in _key_columns(schema) if other.schema.get(name) == schema[name]]
        if not shared:
            return frame
        key = tape.pick(shared)
    how: Any = tape.pick(["inner", "left", "semi", "anti", "full", "right"])
    order: Any = tape.pick(["none", "left", "left_right", "right_left"])
    coalesce = tape.pick([None, True]) if how in ("full", "left", "right") else None
    ordered = frame.ordered and other.ordered and order in ("left_right", "right_left")
    equal, suffix = tape.chance(3), tape.name("_o")
    return Frame(lambda: frame.make().join(other.make(), on=key, how=how, maintain_order=order, coalesce=coalesce,
                                           nulls_equal=equal, suffix=suffix), ordered, False)  # fmt: skip


def _short(tape: Tape, frame: Frame) -> Frame:
    """Few rows, so that joins stay small."""
    condition = predicate(tape, frame.schema)
    return in_order(frame).then(lambda lf: lf.filter(condition).head(12))


def _cross(tape: Tape, frame: Frame, folder: Path) -> Frame:
    names = list(frame.schema)[:3]
    left = in_order(frame).then(lambda lf: lf.select(names).head(6))
    right = _short(tape, source(tape, folder)).then(lambda lf: lf.select(pl.first().alias("other")))
    if tape.chance(2):
        return Frame(lambda: left.make().join(right.make(), how="cross"), False, False)
    first = names[0]
    if not _is_number(left.schema[first]) or not _is_number(right.schema["other"]):
        return left
    return Frame(lambda: left.make().join_where(right.make(), pl.col(first) < pl.col("other")), False, False)


def _asof(tape: Tape, frame: Frame, folder: Path) -> Frame:
    names = _of(frame.schema, lambda kind: kind == pl.Int64)
    if not names:
        return frame
    key, label = tape.pick(names), tape.name("nearest")
    right = source(tape, folder).then(lambda lf: lf.select(pl.first().is_null().cum_sum().cast(pl.Int64).alias(key),
                                                           pl.int_range(pl.len()).alias(label)))  # fmt: skip
    strategy: Any = tape.pick(["backward", "forward", "nearest"])
    left = in_order(frame).then(lambda lf: lf.sort(key, maintain_order=True).filter(pl.col(key).is_not_null()))
    return Frame(lambda: left.make().join_asof(right.make().unique(key, keep="last", maintain_order=True).sort(key),
                                               on=key, strategy=strategy), True)  # fmt: skip


def _concat(tape: Tape, frame: Frame, folder: Path) -> Frame:
    way = tape.below(5)
    if way == 0:
        condition = predicate(tape, frame.schema)
        other = frame.then(lambda lf: lf.filter(condition))
        return Frame(lambda: pl.concat([frame.make(), other.make()]), frame.ordered, frame.firm)
    if way == 1:
        other = _short(tape, source(tape, folder))
        return Frame(lambda: pl.concat([frame.make(), other.make()], how="diagonal_relaxed"), frame.ordered, frame.firm)
    if way == 2:
        stable = in_order(frame)
        suffix = tape.name("_")
        return Frame(lambda: pl.concat([stable.make(), stable.make().select(pl.all().name.suffix(suffix)).reverse()],
                                       how="horizontal"), True)  # fmt: skip
    if way == 3:
        return Frame(lambda: pl.union([frame.make(), frame.make()]), False, False)
    shared = frame.make()  # one object in two places
    return Frame(lambda: pl.concat([shared, shared], how="vertical_relaxed"), frame.ordered, frame.firm)


def _merge(tape: Tape, frame: Frame) -> Frame:
    names = _of(frame.schema, lambda kind: kind.is_integer() or kind == pl.Date)
    if not names:
        return frame
    key = tape.pick(names)
    stable = in_order(frame).then(lambda lf: lf.drop_nulls(key).sort(key, maintain_order=True))
    return Frame(lambda: stable.make().merge_sorted(stable.make().head(3), key, maintain_order=True), True)


def _reshape(tape: Tape, frame: Frame) -> Frame:
    schema = frame.schema
    lists = _of(schema, lambda kind: kind == pl.List)
    structs = _of(schema, lambda kind: kind == pl.Struct)
    numbers = _of(schema, lambda kind: kind == pl.Int64)
    if lists and tape.below(2):
        name = tape.pick(lists)
        return frame.then(lambda lf: lf.explode(name))
    if structs and len(set(schema) & {"p", "q", "m", "n"}) == 0 and tape.below(2):
        name = tape.pick(structs)
        return frame.then(lambda lf: lf.unnest(name))
    if len(numbers) > 1 and tape.below(2):
        index = [name for name in schema if name not in numbers][:2]
        return frame.then(lambda lf: lf.unpivot(on=numbers, index=index), False)
    old = tape.pick(list(schema))
    return frame.then(tape.pick([
        lambda lf: lf.rename({old: "renamed"}), lambda lf: lf.select(pl.struct(pl.all()).alias("all")),
        lambda lf: lf.rename(str.upper), lambda lf: lf.cache(), lambda lf: lf.select(pl.all().name.prefix("q_")),
        lambda lf: lf.drop_nulls(old), lambda lf: lf.with_columns(pl.lit(None).alias("nothing")),
        lambda lf: lf.with_columns(two=pl.lit(2, pl.Int8), day=pl.lit(_DAY), raw=pl.lit(b"\x00ab\x80")),
        lambda lf: lf.clear(),
    ]))  # fmt: skip


def _pivot(tape: Tape, frame: Frame) -> Frame:
    schema = frame.schema
    if schema.get("g") != pl.String or "k" not in schema:
        return frame
    columns = tape.pick([["u", "v"], ["w"], ["v", "u", "w"]])
    return frame.then(
        lambda lf: lf.pivot("g", on_columns=columns, index="k", values="k", aggregate_function="len"), False
    )


def _time(tape: Tape, frame: Frame) -> Frame:
    times = _of(frame.schema, lambda kind: kind in (pl.Date, pl.Datetime))
    if not times:
        return frame
    name = tape.pick(times)
    stable = in_order(frame).then(lambda lf: lf.drop_nulls(name).sort(name, maintain_order=True))
    made = aggregate(tape, stable.schema, tape.pick(list(stable.schema)), True).alias(tape.name("x"))
    if tape.below(2):
        return stable.then(lambda lf: lf.group_by_dynamic(name, every="2d", period="3d").agg(made))
    return stable.then(lambda lf: lf.rolling(name, period="2d").agg(made))


def _function(tape: Tape, frame: Frame) -> Frame:
    if tape.below(2):
        return in_order(frame).then(lambda lf: lf.map_batches(first_rows))
    threshold = tape.below(4)
    names = _of(frame.schema, _is_number)
    if not names:
        return frame
    name = tape.pick(names)
    return in_order(frame).then(lambda lf: lf.map_batches(lambda table: table.filter(pl.col(name) > threshold)))


_STEPS: tuple[Any, ...] = (
    _filter, _compute, _group, _sort, _join, _replace, _position, _window, _aggregate, _unique, _slice, _concat,
    _reshape, _group_function, _top, _cross, _asof, _merge, _pivot, _time, _function, _filter, _group, _compute,
)  # fmt: skip
_TWO_SOURCES = (_join, _cross, _asof, _concat)


def program(data: bytes, folder: Path, most: int = 6) -> Frame:
    """The program that these bytes stand for."""
    tape = Tape(data)
    frame = source(tape, folder)
    for _ in range(1 + tape.below(most)):
        step = tape.pick(_STEPS)
        frame = step(tape, frame, folder) if step in _TWO_SOURCES else step(tape, frame)
        if not frame.schema:  # nothing is left to work on
            return frame
    return frame


# answers


def answer_of(frame: pl.DataFrame, ordered: bool) -> tuple[Any, ...]:
    """What has to be equal: names and types, and the rows, in order where there is one."""
    found = [tuple(map(_plain, row)) for row in frame.rows()]
    if not ordered:
        found.sort(key=repr)
    return tuple((name, str(kind)) for name, kind in frame.schema.items()), frame.height, tuple(found)


def _plain(value: Any) -> Any:
    """The value so that equal ones compare equal: floats without their last digits, one NaN, one zero."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value if math.isinf(value) else float(f"{value:.9g}") + 0.0
    if isinstance(value, dict):
        return tuple((name, _plain(inner)) for name, inner in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    if isinstance(value, pl.Series):
        return tuple(map(_plain, value.to_list()))
    return value
