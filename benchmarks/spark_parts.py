"""What it takes to read a part that is known, beside the engine's own time to read the same Parquet.

    python -m benchmarks.spark_parts TABLES RUNS FOLDER

A program caches a frame, a join of sales with the days they were made on, and asks several questions about it. The
first has the frame written to the store; each of the others is new, and only the frame is known. The same questions
about the very files of the store, without Nectar, are what is compared with. The last line is the report.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.polars_report import Report
from benchmarks.spark_worker import session_of, settle
from pyspark.sql import functions as F

import nectar

ROUNDS = 3  # for each run that was asked for


def frame_of(spark: Any, tables: Path) -> Any:
    sales = spark.read.parquet(str(tables / "store_sales.parquet"))
    days = spark.read.parquet(str(tables / "date_dim.parquet"))
    both = sales.join(days, sales["ss_sold_date_sk"] == days["d_date_sk"])
    return both.select(*sales.columns, "d_year", "d_moy")


def asked(frame: Any, number: int) -> Any:
    """A question that nobody has asked before, and that all of the frame has to be read for."""
    chosen = frame.filter(F.col("ss_item_sk") != F.lit(number))
    read = [name for name in frame.columns if name.startswith("ss_")]
    return chosen.groupBy("d_year", "d_moy").agg(*(F.sum(name).alias(name) for name in read))


def timed(question: Any) -> float:
    begun = perf_counter()
    question.collect()
    return perf_counter() - begun


def main(tables: Path, runs: int, folder: Path) -> None:
    home = folder / "home"
    spark = session_of(str(home))
    frame = frame_of(spark, tables)
    columns = frame.columns
    frame.cache()
    asked(frame, 0).collect()
    settle()
    files = sorted(map(str, home.rglob("*.parquet")))
    ours: list[float] = []
    plain: list[float] = []

    def over_the_part(number: int) -> None:
        nectar.enable(home=home, reserve=0)
        spark.range(number).count()  # the catalog is open
        settle()
        ours.append(timed(asked(frame, number)))
        assert [part.outcome for part in nectar.last_run().parts] == ["reused", "computed"]
        settle()

    def over_its_files(number: int) -> None:
        nectar.disable()
        again = spark.read.parquet(*files).toDF(*columns)  # the store has numbers in the place of names
        plain.append(timed(asked(again, number)))

    for number in range(1, ROUNDS * runs + 1):
        runs_of_both = [over_the_part, over_its_files]
        for run in runs_of_both if number % 2 else reversed(runs_of_both):
            run(number)
    report = Report()
    report.begin("A known part of a new question, beside the engine's own time to read the same files")
    report.add("part_read_ms", "over a known part", [1000 * each for each in ours], "ms")
    report.add("parquet_read_ms", "over its files, without Nectar", [1000 * each for each in plain], "ms")
    report.add("part_ratio", "ratio", median(ours) / median(plain), "x", "<= 1.1")
    print(report.written())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
