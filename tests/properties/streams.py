"""Random programs over growing streams, and what happens to streams: a string of bytes is a program and a history.

A Program is a function of scans, which can be built any number of times. It knows whether Polars promises the order of
its rows; what depends on an order is asked only of rows that have one. Floats are multiples of 1/4: sums are exact in
whatever order, so that only variances are compared within a bound.
"""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
from tests.properties.polars_programs import Tape

FORMS = ("parquet", "csv", "ndjson", "ipc")
GROWING = ("csv", "ndjson")
PLAIN: dict[str, Any] = {
    "o": pl.Int64, "k": pl.String, "j": pl.Int64, "v": pl.Int32, "f": pl.Float64, "b": pl.Boolean, "d": pl.Date,
    "s": pl.String,
}  # fmt: skip
SCHEMAS: dict[str, dict[str, Any]] = {
    "csv": PLAIN,
    "ndjson": {**PLAIN, "l": pl.List(pl.Int64)},
    "parquet": {**PLAIN, "l": pl.List(pl.Int64), "m": pl.Decimal(10, 2), "u": pl.UInt8, "c": pl.Categorical},
    "ipc": {**PLAIN, "l": pl.List(pl.Int64), "m": pl.Decimal(10, 2), "u": pl.UInt8, "c": pl.Categorical},
}
_DAY = datetime.date(2024, 2, 27)


def rows(form: str, first: int, count: int, random: Random) -> pl.DataFrame:
    """Rows numbered from first; nulls are everywhere but in the number."""

    def values(*choices: Any) -> list[Any]:
        return [random.choice(choices) for _ in range(count)]

    columns: dict[str, Any] = {
        "o": range(first, first + count), "k": values("a", "b", "c", None), "j": values(1, 2, 3),
        "v": values(None, 1, 2, 250, -7, 2**31 - 1), "f": values(None, 1.5, float("nan"), -2.25, 1e6, 0.0),
        "b": values(True, False, None), "d": values(None, _DAY, _DAY + datetime.timedelta(3)),
        "s": values("x", "y\nz", 'q"r', "é,", None), "l": values(None, [], [1], [2, None]),
        "m": values(None, 1, 2), "u": values(None, 1, 255), "c": values("p", "q", None),
    }  # fmt: skip
    if form == "ndjson":
        columns["f"] = values(None, 1.5, -2.25, 1e6)  # JSON has no NaN
    schema = SCHEMAS[form]
    return pl.DataFrame({name: columns[name] for name in schema}, schema=schema)


class Stream:
    """A folder of files: they come, grow, go, and are changed."""

    def __init__(
        self, folder: Path, form: str, seed: int, declared: bool, most: int = 12, empties: float = 0.1
    ) -> None:
        self.folder, self.form, self.declared, self._most, self._empties = folder, form, declared, most, empties
        self._random = Random(seed)
        self._made = 0
        folder.mkdir(parents=True)

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.iterdir())

    def scan(self) -> pl.LazyFrame:
        options = {"schema": SCHEMAS[self.form]} if self.declared and self.form in GROWING else {}
        if self.form == "csv" and not self.declared:
            options = {"schema_overrides": PLAIN}
        scan: pl.LazyFrame = getattr(pl, f"scan_{self.form}")(f"{self.folder}/*.{self.form}", **options)
        return scan

    def _rows(self, empty: bool = False) -> pl.DataFrame:
        self._made += 1
        count = 0 if empty and self.form != "ndjson" else self._random.randint(1, self._most)
        return rows(self.form, 100 * self._made, count, self._random)

    def _write(self, path: Path, empty: bool = False) -> None:
        # Never in place: Polars maps files into memory, and a mapped file that is truncated ends the process.
        aside = self.folder.parent / f"{self.folder.name}-aside"
        getattr(self._rows(empty), f"write_{self.form}")(aside)
        aside.replace(path)

    # what may happen

    def come(self) -> None:
        self._write(self.folder / f"{self._made:04}.{self.form}", empty=self._random.random() < self._empties)

    def grow(self) -> None:
        """Lines are appended to the last file; other files cannot grow, and one more comes."""
        if self.form not in GROWING:
            return self.come()
        text = self._rows().write_ndjson() if self.form == "ndjson" else self._rows().write_csv(include_header=False)
        with open(self.files[-1], "a", newline="") as file:
            file.write(text)
        return None

    def go(self) -> None:
        if len(self.files) > 1:
            self.files[0].unlink()

    def branch(self) -> None:
        self._write(self.files[-1])

    def rewrite(self) -> None:
        self._write(self._random.choice(self.files))

    def rename(self) -> None:
        file = self._random.choice(self.files)
        file.rename(self.folder / f"{self._random.randint(0, self._made):04}{file.stem}.{self.form}")

    def duplicate(self) -> None:
        file = self._random.choice(self.files)
        shutil.copyfile(file, self.folder / f"{file.stem}-.{self.form}")

    def swap(self) -> None:
        one, other = self._random.choice(self.files), self._random.choice(self.files)
        if one != other:
            aside = self.folder.parent / "aside"
            one.rename(aside)
            other.rename(one)
            aside.rename(other)

    def truncate(self) -> None:
        """The last line of a file of lines is cut off, and others come after what is left."""
        if self.form in GROWING:
            file, aside = self.files[-1], self.folder.parent / f"{self.folder.name}-aside"
            old = file.read_bytes()
            aside.write_bytes(old[: old.rstrip(b"\n").rfind(b"\n") + 1] or old)
            aside.replace(file)
        self.grow()


EVENTS = (
    "come", "grow", "come", "come", "grow", "grow", "go", "branch", "rewrite", "rename", "duplicate", "swap",
    "truncate", "evict", "nothing",
)  # fmt: skip

Step = Callable[[pl.LazyFrame], pl.LazyFrame]


@dataclass(frozen=True)
class Program:
    """Steps over a stream. ordered: Polars promises the order of the rows. columns: that can be counted on."""

    steps: tuple[Step, ...] = ()
    ordered: bool = True
    columns: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    numbered: bool = True  # no two rows have the same number, unless files are duplicates

    def of(self, scan: pl.LazyFrame) -> pl.LazyFrame:
        for step in self.steps:
            scan = step(scan)
        return scan

    def then(self, about: str, step: Step, **changes: Any) -> Program:
        return replace(self, steps=(*self.steps, step), about=(*self.about, about), **changes)


def program(tape: Tape, form: str, static: Path, other: Callable[[], pl.LazyFrame] | None) -> Program:
    """A program. static: a file that does not grow. other: a stream whose rows have the same numbers."""
    made = Program(columns=tuple(SCHEMAS[form]))
    if other is not None:
        made = _joined(tape, made, other)
    for _ in range(tape.below(4)):
        made = _row_step(tape, made, static)
    made = _last_step(tape, made)
    return _above(tape, made)


def _joined(tape: Tape, made: Program, other: Callable[[], pl.LazyFrame]) -> Program:
    how = tape.pick(("inner", "left", "semi", "anti"))
    right = lambda: other().select("o", w=pl.col("v"), x=pl.col("k"))
    columns = made.columns if how in ("semi", "anti") else (*made.columns, "w", "x")
    step = lambda rows: rows.join(right(), on="o", how=how)
    return made.then(f"{how} join of two streams", step, ordered=False, columns=columns)


_FILTERS = {
    "v > 1": pl.col("v") > 1, "k = a or j = 2": (pl.col("k") == "a") | (pl.col("j") == 2), "b": pl.col("b"),
    "f is nan": pl.col("f").is_nan(), "s holds": pl.col("s").str.contains("y"), "none": pl.col("j") > 7,
    "d": pl.col("d") > _DAY, "v is null": pl.col("v").is_null(),
}  # fmt: skip
_COLUMNS = {
    "double": (pl.col("v").cast(pl.Int64) * 2).alias("n"), "when": pl.when(pl.col("b")).then(pl.col("j")).alias("n"),
    "filled": pl.col("v").fill_null(0).alias("n"), "quarter": (pl.col("f") / 4).alias("f"),
    "upper": pl.col("s").str.to_uppercase().alias("s"), "year": pl.col("d").dt.year().alias("n"),
    "number": pl.lit(3).alias("n"), "cast": pl.col("j").cast(pl.Float32).alias("n"),
}  # fmt: skip


def _row_step(tape: Tape, made: Program, static: Path) -> Program:
    kind = tape.pick(("filter", "with_columns", "filter", "select", "join", "explode", "rename"))
    if kind == "filter":
        name = tape.pick(sorted(_FILTERS))
        return made.then(f"filter {name}", lambda rows: rows.filter(_FILTERS[name]))
    if kind == "with_columns":
        name = tape.pick(sorted(_COLUMNS))
        columns = tuple(dict.fromkeys((*made.columns, _COLUMNS[name].meta.output_name())))
        return made.then(f"with_columns {name}", lambda rows: rows.with_columns(_COLUMNS[name]), columns=columns)
    if kind == "select":
        return made.then("select", lambda rows: rows.select(made.columns))
    if kind == "join" and "i" not in made.columns:
        return _static_join(tape, made, static)
    if kind == "explode" and "l" in made.columns:
        return made.then("explode", lambda rows: rows.explode("l"), numbered=False)
    if kind == "rename" and "r" not in made.columns:
        columns = tuple("r" if name == "s" else name for name in made.columns)
        return made.then("rename", lambda rows: rows.rename({"s": "r"}).with_columns(s=pl.col("r")),
                         columns=(*columns, "s"))  # fmt: skip
    return made


def _static_join(tape: Tape, made: Program, static: Path) -> Program:
    how = tape.pick(("inner", "left", "semi", "anti", "cross", "full", "right"))
    right = lambda: pl.scan_parquet(static)
    columns = made.columns if how in ("semi", "anti") else (*made.columns, "i")
    if how == "cross":
        step: Step = lambda rows: rows.join(right().select("i"), how="cross")
    elif how in ("full", "right"):
        step = lambda rows: rows.join(right(), on="k", how=how, coalesce=True)
    else:
        step = lambda rows: rows.join(right(), on="k", how=how)
    return made.then(f"{how} join", step, ordered=False, columns=columns, numbered=False)


AGGREGATES: dict[str, pl.Expr] = {
    "sum": pl.col("v").sum(), "len": pl.len(), "count": pl.col("v").count(), "min": pl.col("f").min(),
    "max": pl.col("d").max(), "mean": pl.col("v").mean(), "mean of floats": pl.col("f").mean(),
    "sum of floats": pl.col("f").sum(), "any": pl.col("b").any(), "all": pl.col("b").all(),
    "null_count": pl.col("s").null_count(), "ratio": pl.col("j").sum() / pl.len(), "std": pl.col("j").std(),
    "var": pl.col("j").var(ddof=0), "n_unique": pl.col("k").n_unique(), "median": pl.col("j").median(),
    "filtered": pl.col("j").filter(pl.col("b")).sum(), "product": pl.col("j").product(),
    "largest text": pl.col("s").max(), "booleans": pl.col("b").sum(), "any, nulls": pl.col("b").any(ignore_nulls=False),
}  # fmt: skip
OF_ORDER: dict[str, pl.Expr] = {
    "first": pl.col("s").first(), "last": pl.col("v").last(), "list": pl.col("o"), "head": pl.col("o").head(2),
}  # fmt: skip


def _aggregates(tape: Tape, made: Program) -> list[pl.Expr]:
    known = {**AGGREGATES, **OF_ORDER} if made.ordered else AGGREGATES
    names = [tape.pick(sorted(known)) for _ in range(1 + tape.below(4))]
    return [known[name].alias(f"x{at}") for at, name in enumerate(names)]


def _last_step(tape: Tape, made: Program) -> Program:
    kind = tape.pick(("group_by", "group_by", "totals", "rows", "sort", "top", "head", "tail", "unique", "distinct"))
    if kind == "group_by":
        keys = tape.pick((("k",), ("k", "j"), ("b",), ("o",), ("d", "s"), ("j",)))
        some = _aggregates(tape, made)
        ordered = made.ordered and tape.chance(2)
        step: Step = lambda rows: rows.group_by(*keys, maintain_order=ordered).agg(*some)
        return made.then(f"group_by {keys} {[str(each) for each in some]}", step, ordered=ordered,
                         columns=(*keys, *(f"x{at}" for at in range(len(some)))), numbered=False)  # fmt: skip
    if kind == "totals":
        some = _aggregates(tape, made)
        some = [each for each in some if not any(str(each) == str(lists) for lists in OF_ORDER.values())]
        scalar = [each for each in some if "head" not in str(each) and str(each)[:9] != 'col("o").']
        scalar = [each for each in scalar if each.meta.root_names() != ["o"]] or [pl.len().alias("x0")]
        return made.then(f"totals {[str(each) for each in scalar]}", lambda rows: rows.select(*scalar), columns=())
    if kind in ("sort", "top") and made.numbered:
        down = tape.chance(2)
        by = tape.pick((("o",), ("k", "o"), ("v", "o"), ("d", "s", "o")))
        # Rows of files that are duplicates are equal, and it does not matter which comes first.
        made = made.then(f"sort {by}", lambda rows: rows.sort(by, descending=down, nulls_last=not down), ordered=True)
        return made if kind == "sort" else made.then("head", lambda rows: rows.head(7))
    if kind in ("head", "tail") and made.ordered:
        count = 1 + tape.below(30)
        return made.then(f"{kind} {count}", lambda rows: getattr(rows, kind)(count))
    if kind == "unique" and made.ordered:
        subset, keep = tape.pick((["k"], ["k", "j"], ["b", "d"])), tape.pick(("first", "last", "none"))
        step = lambda rows: rows.unique(subset=subset, keep=keep, maintain_order=True)
        return made.then(f"unique {subset} {keep}", step)
    if kind == "distinct":
        names = tape.pick((("k",), ("k", "b"), ("j", "d", "s")))
        return made.then(f"distinct {names}", lambda rows: rows.select(names).unique(), ordered=False, columns=names)
    return made


def _above(tape: Tape, made: Program) -> Program:
    kind = tape.pick(("nothing", "nothing", "count", "number"))
    if kind == "count" and made.columns:
        return made.then("how many", lambda rows: rows.select(pl.len()), ordered=True, columns=())
    if kind == "number" and made.ordered:
        return made.then("with_row_index", lambda rows: rows.with_row_index("index"))
    return made
