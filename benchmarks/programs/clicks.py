"""A log of clicks, one file a day, and what is asked of it: the programs of the Nectar paper's table 5."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from polars import col


def write_day(path: Path, day: int, rows: int, pairs: int) -> None:
    """A day of so many clicks, over so many pairs of a query and a page; without chance, and no two days alike."""
    number = pl.int_range(rows, eager=True)
    pair = ((number * 2_654_435_761 + day * 40_503) % 4_294_967_291 % pairs).alias("pair")
    query, page, user = (pair % max(1, pairs // 50)), pair, (number * 7919 + day) % max(10, pairs // 4)
    pl.DataFrame(
        {
            "query": pl.select(pl.format("how to find {}", query)).to_series(),
            "page": pl.select(pl.format("https://example.org/{}", page)).to_series(),
            "user": pl.select(pl.format("user {}", user)).to_series(),
            "click": number * 2_654_435_761 % 4_294_967_291 * 64 + day,  # of one day, from everywhere
            "seconds": number * 31 % 600,
        }
    ).write_parquet(path)


def query_relevance(days: Sequence[Path]) -> pl.LazyFrame:
    """The pages that people stay on longest for what they asked."""
    seen = pl.scan_parquet(days).group_by("query", "page").agg(col("seconds").sum(), pl.len().alias("clicks"))
    return seen.filter(col("clicks") > 2).top_k(100, by="seconds")


def active_users(days: Sequence[Path]) -> pl.LazyFrame:
    """Who clicked most."""
    return pl.scan_parquet(days).group_by("user").agg(pl.len().alias("clicks")).top_k(100, by="clicks")


def longest_clicks(days: Sequence[Path]) -> pl.LazyFrame:
    """A state as large as what it is made of: each click is a group."""
    return pl.scan_parquet(days).group_by("click").agg(col("seconds").max()).top_k(100, by="seconds")


PROGRAMS = {"query_relevance": query_relevance, "active_users": active_users, "longest_clicks": longest_clicks}
LARGEST = {query_relevance: "seconds", active_users: "clicks", longest_clicks: "seconds"}  # by which they choose
