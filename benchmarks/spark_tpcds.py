"""TPC-DS under Nectar and without it: what it costs where nothing is shared, what it saves where something is.

    python -m benchmarks.spark_tpcds TABLES ROUNDS FOLDER

Each query runs plainly twice and once under Nectar with an empty store, from the text to the rows; each of the three is
the first, the second and the third equally often. Then all queries run one after the other with one store, for the
first time, each beside a plain run of it; and once more. Queries that the engine cannot do are left out. The last line
is the report.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.polars_report import Report
from benchmarks.spark_worker import session_of, settle
from tests.dialects.spark import tpcds

import nectar


@dataclass(slots=True)
class Times:
    """Seconds of one query: plain, plain again, and under Nectar."""

    plain: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return median(self.ours) / median(self.plain + self.again)

    @property
    def spread(self) -> float:
        return median(self.again) / median(self.plain)


def timed(spark: Any, text: str) -> float:
    begun = perf_counter()
    spark.sql(text).collect()
    return perf_counter() - begun


def plainly(spark: Any, text: str) -> float:
    nectar.disable()
    return timed(spark, text)


def with_store(spark: Any, text: str, home: Path) -> float:
    """Under Nectar, with the store of a home."""
    nectar.enable(home=home, reserve=0)
    spark.range(1).count()  # the catalog is open
    settle()
    taken = timed(spark, text)
    settle()
    return taken


def possible(spark: Any, texts: dict[int, str]) -> dict[int, str]:
    """The queries that the engine can do; each has run once, so that files have been read from the disk."""
    found = {}
    for number, text in texts.items():
        try:
            timed(spark, text)
        except Exception:
            continue
        found[number] = text
    return found


def measure_alone(spark: Any, texts: dict[int, str], rounds: int, folder: Path) -> dict[int, Times]:
    times = {number: Times() for number in texts}
    for turn in range(rounds):
        for number, text in texts.items():
            found, home = times[number], folder / f"alone-{turn}-{number}"
            runs = [
                lambda: found.plain.append(plainly(spark, text)),  # noqa: B023 - they run at once
                lambda: found.ours.append(with_store(spark, text, home)),  # noqa: B023
                lambda: found.again.append(plainly(spark, text)),  # noqa: B023
            ]
            first = (number + turn) % len(runs)  # a query that runs for the second time is faster
            for run in runs[first:] + runs[:first]:
                run()
    return times


def for_the_first_time(spark: Any, texts: dict[int, str], home: Path) -> tuple[float, float]:
    """Seconds of all queries with one store, and of plain runs, each of which comes right before or after."""
    total = plain = 0.0
    for number, text in texts.items():
        if number % 2:
            plain += plainly(spark, text)
        total += with_store(spark, text, home)
        if not number % 2:
            plain += plainly(spark, text)
    return total, plain


def once_more(spark: Any, texts: dict[int, str], home: Path) -> tuple[float, int]:
    """Seconds of all queries with a store that has seen them, and how many were answered from it."""
    total, hits = 0.0, 0
    for text in texts.values():
        total += with_store(spark, text, home)
        hits += nectar.last_run().parts[-1].outcome == "reused"
    return total, hits


def main(tables: Path, rounds: int, folder: Path) -> None:
    spark = session_of(str(folder / "first"))
    tpcds.make_views(spark, tables)
    texts = possible(spark, tpcds.queries())
    times = measure_alone(spark, texts, rounds, folder)
    first, plain = for_the_first_time(spark, texts, folder / "sequence")
    warm, hits = once_more(spark, texts, folder / "sequence")
    report = Report()
    report.begin("TPC-DS, nothing shared")
    report.add("tpcds_queries", "queries that the engine can do", len(texts), "", "99")
    report.add(
        "tpcds_ratio", "under Nectar, share of plain time", [each.ratio for each in times.values()], "x", "<= 1.01"
    )
    report.add("tpcds_plain_spread", "plain again, share of plain time", [each.spread for each in times.values()], "x")
    extra = [1000 * (median(each.ours) - median(each.plain + each.again)) for each in times.values()]
    report.add("tpcds_extra_ms", "what Nectar adds to a query", extra, "ms")
    report.begin("TPC-DS, all queries one after the other")
    report.add("tpcds_plain_s", "plain", plain, "s")
    report.add("tpcds_first_s", "under Nectar, for the first time", first, "s")
    report.add("tpcds_first_saved", "saved the first time", 100 * (1 - first / plain), "%")
    report.add("tpcds_warm_s", "under Nectar, once more", warm, "s")
    report.add("tpcds_warm_saved", "saved once more", 100 * (1 - warm / plain), "%", ">= 99")
    report.add("tpcds_warm_hits", "of these from the store", hits, "", str(len(texts)))
    slowest = max(times, key=lambda number: times[number].ratio)
    report.notes.append(f"Of TPC-DS, query {slowest} has the highest ratio.")
    print(report.written())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
