"""Programs that have little or nothing to gain, each as somebody would write it.

    python -m benchmarks.programs.small PROGRAM FOLDER SIZE [nectar]

With `nectar` Nectar is enabled before anything else. Prints what the program found; nothing else is said or measured
here. SIZE scales the data and the number of queries: 1 is the real thing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.argv[4:] == ["nectar"]:
    import nectar

    nectar.enable()


def prepare(folder: Path, size: float) -> None:
    """The files of all programs."""
    import polars as pl

    rows = int(3_000_000 * size)
    pl.DataFrame({"a": range(1000), "g": [each % 7 for each in range(1000)]}).write_parquet(folder / "small.parquet")
    large = pl.DataFrame({"i": range(rows)}).with_columns(s=pl.col("i").cast(pl.String), g=pl.col("i") % 1000)
    large.write_parquet(folder / "large.parquet")


def _small(folder: Path, least: int) -> Any:
    import polars as pl

    lf = pl.scan_parquet(folder / "small.parquet").filter(pl.col("a") > least)
    return lf.group_by("g").agg(pl.col("a").sum()).sort("g")


def one_site(folder: Path, size: float) -> object:
    """300 small queries in a loop."""
    return sum(_small(folder, number).collect().height for number in range(int(300 * size)))


def many_sites(folder: Path, size: float) -> object:
    """300 small queries, each in a line of its own."""
    text = "\n".join(f"found.append(query(folder, {number}).collect().height)" for number in range(int(300 * size)))
    found: list[int] = []
    exec(compile(text, "many_sites.py", "exec"), {"query": _small, "folder": folder, "found": found})
    return sum(found)


def tiny(folder: Path, size: float) -> object:
    """10,000 queries of a few rows in memory."""
    import polars as pl

    frame = pl.LazyFrame({"a": [1, 2, 3]})
    return sum(frame.filter(pl.col("a") > number % 3).collect().height for number in range(int(10_000 * size)))


def fresh(folder: Path, size: float) -> object:
    """One small query."""
    return _small(folder, 3).collect().height


def large_dict(folder: Path, size: float) -> object:
    """A function that looks up a dict of a million entries, in three queries."""
    import polars as pl

    prices = {number: number / 7 for number in range(int(1_000_000 * size))}

    def price(number: int) -> float:
        return prices.get(number, 0.0)

    lf = pl.scan_parquet(folder / "small.parquet")
    priced = pl.col("a").map_elements(price, return_dtype=pl.Float64)
    return [lf.filter(pl.col("g") == number).select(priced.sum()).collect().item() for number in range(3)]


def series_literal(folder: Path, size: float) -> object:
    """A column of 20 million values is put beside what is read."""
    import polars as pl

    rows = int(20_000_000 * size)
    values = pl.Series("v", range(rows), dtype=pl.Int64)
    lf = pl.scan_parquet(folder / "small.parquet").select(pl.col("a").first())
    return [lf.select(values, pl.col("a")).select(pl.col("v").sum() + step).collect().item() for step in range(3)]


def is_in(folder: Path, size: float) -> object:
    """Rows whose number is one of two million."""
    import polars as pl

    wanted = pl.Series(range(0, int(4_000_000 * size), 2)).implode()
    lf = pl.scan_parquet(folder / "large.parquet")
    known = lf.filter(pl.col("i").is_in(wanted))
    return [known.filter(pl.col("g") > least).select(pl.len()).collect().item() for least in range(3)]


def filters(folder: Path, size: float) -> object:
    """Eight filters that let most of 3 million rows pass."""
    import polars as pl

    lf = pl.scan_parquet(folder / "large.parquet")
    return [lf.filter(pl.col("i") > number * 7).collect().height for number in range(8)]


def tpch(folder: Path, size: float) -> object:
    """The 22 queries of TPC-H, each once."""
    from tests.integration.tpch import QUERIES, generate

    tables = generate(folder / "tpch", size)
    return [query(tables).collect().height for query in QUERIES.values()]


def prepare_tpch(folder: Path, size: float) -> None:
    """The tables of TPC-H; SIZE is its scale."""
    from tests.integration.tpch import generate

    generate(folder / "tpch", size)


@dataclass
class Point:
    """Three numbers."""

    x: float
    y: float
    z: int


def _calls(function: Callable[[Any], float], argument: Any, times: int = 5) -> object:
    import nectar

    memoised = nectar.memo(function) if sys.argv[4:] == ["nectar"] else function
    return [memoised(argument) for _ in range(times)]


def _sum_of_points(points: list[Point]) -> float:
    return sum(point.x + point.y for point in points)


def _sum_of_rows(rows: list[dict[str, Any]]) -> float:
    return sum(row["x"] + row["y"] for row in rows)


def _sum_of_array(array: Any) -> float:
    return float(array.sum())


def memo_dataclasses(folder: Path, size: float) -> object:
    """A memoised function of 100,000 dataclasses."""
    points = [Point(number / 3, number / 7, number) for number in range(int(100_000 * size))]
    return _calls(_sum_of_points, points)


def memo_dicts(folder: Path, size: float) -> object:
    """A memoised function of 100,000 rows."""
    rows = [{"x": number / 3, "y": number / 7, "name": str(number)} for number in range(int(100_000 * size))]
    return _calls(_sum_of_rows, rows)


def memo_array(folder: Path, size: float) -> object:
    """A memoised function of an array of 800 MB."""
    import numpy as np

    return _calls(_sum_of_array, np.arange(int(100_000_000 * size), dtype=np.float64))


# so that staying out of the way is not the whole answer


def slow_queries(folder: Path, size: float) -> object:
    """Four queries that take more than a tenth of a second."""
    import polars as pl

    lf = pl.scan_parquet(folder / "large.parquet")
    found = []
    for number in range(4):
        groups = lf.with_columns(pl.col("s").str.reverse().str.slice(0, 4 + number)).group_by("s").agg(pl.len())
        found.append(groups.sort("len", "s").tail(5).collect().height)
    return found


def becomes_slow(folder: Path, size: float) -> object:
    """A site that is quick for long, and then slow, three times the same."""
    import polars as pl

    def run(lf: pl.LazyFrame) -> int:
        return lf.collect().height

    lf = pl.scan_parquet(folder / "large.parquet")
    slow = lf.with_columns(pl.col("s").str.reverse()).sort("s").group_by("g").agg(pl.col("s").first()).sort("g").tail(3)
    found = [run(pl.scan_parquet(folder / "small.parquet").filter(pl.col("a") > number)) for number in range(200)]
    return sum(found) + sum(run(slow) for _ in range(3))


PROGRAMS: dict[str, Callable[[Path, float], object]] = {
    each.__name__: each
    for each in (
        fresh, one_site, many_sites, tiny, large_dict, series_literal, is_in, filters, memo_dataclasses, memo_dicts,
        memo_array, tpch, slow_queries, becomes_slow,
    )
}  # fmt: skip
PREPARING: dict[str, Callable[[Path, float], None]] = {each.__name__: each for each in (prepare, prepare_tpch)}


def main() -> None:
    """Runs a program, or makes what programs read."""
    name, folder, size = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    if name in PREPARING:
        PREPARING[name](folder, size)
    else:
        print(PROGRAMS[name](folder, size))


if __name__ == "__main__":
    main()
