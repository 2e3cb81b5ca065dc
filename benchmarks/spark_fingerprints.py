"""How long it takes to make the keys of a plan: over all of TPC-DS, and of programs made of Python functions.

    python -m benchmarks.spark_fingerprints TABLES FOLDER

Measured is everything from the request to its keys: the walk over the plan, SQL text, views, files, settings of the
session, functions. First: a text, or functions, that this process has not seen. Again: the same plan once more. The
last line is the report.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.polars_report import Report
from benchmarks.programs import spark_functions
from benchmarks.spark_worker import session_of
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import functions as F
from tests.dialects.spark import tpcds

from nectar.dialects.spark import functions, interceptor
from nectar.dialects.spark.sql import queries
from nectar.dialects.spark.sql.words import pieces_of
from nectar.keys import outcome

ROUNDS = 3  # of which the median counts


class Clock:
    """Adds up the time that is spent in functions of Nectar."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            begun = perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds += perf_counter() - begun

        return timed

    def taken(self) -> float:
        """Milliseconds since this was asked last."""
        taken, self.seconds = 1000 * self.seconds, 0.0
        return taken


def measure(run: Callable[[], object], clock: Clock) -> float | None:
    """Milliseconds in Nectar for a program; None if the engine cannot do it."""
    clock.taken()
    try:
        run()
    except Exception:
        return None
    return clock.taken()


def sql_programs(spark: Any) -> dict[str, Callable[[], object]]:
    def program(text: str) -> Callable[[], object]:
        return lambda: spark.sql(text).limit(0).collect()  # the plan has keys before the engine begins

    return {f"q{number}": program(text) for number, text in tpcds.queries().items()}


def function_programs(spark: Any) -> dict[str, Callable[[], object]]:
    register_pickle_by_value(spark_functions)  # as functions of a main file are

    def program(function: Any) -> Callable[[], object]:
        return lambda: spark.range(0).select(F.udf(function, "string")("id").alias("x")).collect()

    return {name: program(function) for name, function in spark_functions.FUNCTIONS.items()}


def report_on(report: Report, name: str, words: str, programs: dict[str, Callable[[], object]], clock: Clock) -> None:
    for turn in ("first", "again"):
        rounds = []
        for _ in range(ROUNDS):
            if turn == "first":
                queries._read.cache_clear()
                pieces_of.cache_clear()
                outcome._memory.clear()
            rounds.append([measure(run, clock) for run in programs.values()])
        times = [median(taken) for taken in zip(*rounds, strict=True) if None not in taken]
        report.add(
            f"{name}_{turn}_mean_ms", f"{words}, {turn}: mean of {len(times)}", sum(times) / len(times), "ms", "2"
        )
        report.add(f"{name}_{turn}_max_ms", f"{words}, {turn}: maximum", max(times), "ms", "265")


def main(tables: Path, folder: Path) -> None:
    spark = session_of(str(folder / "home"))
    tpcds.make_views(spark, tables)
    clock = Clock()
    interceptor.query_of = clock.around(interceptor.query_of)
    functions._described_or_none = clock.around(functions._described_or_none)
    spark.sql("select 1").collect()  # the parser is loaded
    report = Report()
    report.begin("Time to make keys, against KeyChain's 2 ms on average and 265 ms at most")
    report_on(report, "keys_tpcds", "plans of TPC-DS", sql_programs(spark), clock)
    report_on(report, "keys_functions", "programs of functions", function_programs(spark), clock)
    print(report.written())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
