"""Writes aggregates.txt: how each aggregate is taken apart. Run it when that is meant to change: python -m <this>."""

from pathlib import Path

import polars as pl

from nectar.dialects.polars.aggregates import taken_apart
from nectar.dialects.polars.aggregates.expressions import serialised

FILE = Path(__file__).parent / "aggregates.txt"
SCHEMA = pl.Schema({"k": pl.Int64, "i": pl.Int32, "f": pl.Float32, "b": pl.Boolean, "s": pl.String})
AGGREGATES = """
pl.len()
i.sum()
b.sum()
f.sum()
i.min()
s.max()
f.nan_min()
f.nan_max()
i.mean()
f.mean()
i.var()
i.var(ddof=0)
f.std(ddof=2)
i.product()
i.count()
i.len()
i.null_count()
i.n_unique()
i.has_nulls()
i.is_empty()
i.is_empty(ignore_nulls=True)
i.filter(b).is_empty()
i.filter(b).is_empty(ignore_nulls=True)
b.any()
b.all()
b.any(ignore_nulls=False)
b.all(ignore_nulls=False)
i.bitwise_and()
i.bitwise_or()
i.bitwise_xor()
s.first()
s.last()
s.first(ignore_nulls=True)
s.last(ignore_nulls=True)
s.filter(b).first()
s.drop_nulls().last()
s.min_by(f)
s.max_by(f)
s
s.filter(i > 1)
s.implode()
s.unique()
s.unique(maintain_order=True)
i.filter(b).sum()
(i * 2 + 1).max()
i.sum() / pl.len()
pl.len() - 1
(i.max() - i.min()).cast(pl.Int64)
pl.when(i.sum() > 0).then(f.mean()).otherwise(0)
pl.sum_horizontal(i.sum(), f.sum())
pl.struct(i.sum(), f.max().alias("m"))
pl.struct(pl.col("i", "f")).first()
i.sum().name.suffix("_total")
pl.col("i", "f").sum()
pl.all().first()
pl.col("^(i|f)$").max() - i.min()
i.median()
i.quantile(0.5)
s.mode()
i.skew()
i.kurtosis()
i.arg_min()
i.approx_n_unique()
f.product()
b.bitwise_and()
pl.corr("i", "f")
s.str.join(",")
i.item()
i.sort().first()
i.cum_sum().last()
i.head(2)
i.tail(2)
i.slice(1, 2)
i.slice(-3, 2)
i * i.sum()
i.rank().max()
i.sum().over("s")
pl.lit(pl.Series([1, 2]))
i.map_batches(abs, return_dtype=pl.Int32).sum()
"""


def expression(source: str) -> pl.Expr:
    """The expression that a line is about."""
    names = {name: pl.col(name) for name in SCHEMA}
    return eval(source, {"pl": pl, "abs": abs, **names})  # type: ignore[no-any-return]  # lines of this very file


def line_of(source: str) -> str:
    """A line: the expression, its states, how they are merged, how they are finished; or why it is not merged."""
    found = taken_apart([serialised(expression(source))], SCHEMA, [serialised(pl.col("k"))])
    if isinstance(found, str):
        return f"{source} | not merged: {found}"
    columns = [found.states.made, found.states.merged, list(found.finishing)]
    shown = ["; ".join(map(str, each)).replace("__nectar_state_", "state ") for each in columns]
    return " | ".join([source, *(" ".join(each.split()) for each in shown)])


def lines() -> list[str]:
    """All lines, as they are now."""
    return list(map(line_of, AGGREGATES.split("\n")[1:-1]))


if __name__ == "__main__":
    FILE.write_text("\n".join(["aggregate | states | merged | finished", *lines(), ""]), encoding="utf-8")
