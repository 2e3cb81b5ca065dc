"""Fifty small queries over one small table, a few milliseconds each: what interactive work is full of.

No two of them have a part in common that is worth keeping.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import polars as pl
from polars import col

ROWS = 200_000
CITIES = ["Aachen", "Bergen", "Cork", "Delft", "Evora", "Fribourg", "Gdansk", "Hasselt"]


def write_sales(path: Path) -> None:
    """The table: a year of sales, without chance."""
    number = pl.int_range(ROWS, eager=True)
    day = pl.Series([date(2025, 1, 1) + timedelta(days=each) for each in range(365)])
    pl.DataFrame(
        {
            "sale": number,
            "city": pl.Series(CITIES).gather(number * 7 % len(CITIES)),
            "day": day.gather(number * 13 % 365),
            "price": (number * 37 % 10_000) / 100,
            "pieces": number * 11 % 9 + 1,
        }
    ).write_parquet(path)


Shape = Callable[[pl.LazyFrame, int], pl.LazyFrame]

SHAPES: tuple[Shape, ...] = (
    lambda sales, at: sales.filter(col("price") > 90 + at),
    lambda sales, at: sales.filter(col("city") == CITIES[at]).select("sale", "price"),
    lambda sales, at: sales.group_by("city").agg(col("price").sum(), (col("pieces") > at).sum()),
    lambda sales, at: sales.select(col("price").mean() * (at + 1), col("pieces").max()),
    lambda sales, at: sales.with_columns(total=col("price") * col("pieces")).top_k(10 + at, by="total"),
    lambda sales, at: sales.filter(col("day").dt.month() == at + 1).group_by("day").agg(pl.len()).sort("day"),
    lambda sales, at: sales.sort("price", descending=True).head(5 + at),
    lambda sales, at: sales.select(col("city").n_unique(), col("sale").filter(col("pieces") == at + 1).count()),
    lambda sales, at: sales.head(1_000 * (at + 1)).join(sales.head(50), on="city", how="semi"),
    lambda sales, at: sales.group_by("day").agg((col("price") + at).max()).sort("price").tail(9),
)


def queries(path: Path) -> list[pl.LazyFrame]:
    """Fifty queries, all different."""
    return [shape(pl.scan_parquet(path), at) for at in range(5) for shape in SHAPES]
