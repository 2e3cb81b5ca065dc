"""A question about sales that is asked every day, when the sales of one more day have come.

    python -m benchmarks.spark_growth TABLES DAYS FOLDER

Days come to a folder of Parquet files, and, on Sail, to a Delta table. Each day the question is asked under Nectar,
which has been asked the days before; without it, over everything; and without it over the new day alone, which is what
nobody can do without. The last line is the report.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import pyarrow.parquet
from benchmarks.polars_report import Report
from benchmarks.spark_worker import session_of, settle
from pyspark.sql import functions as F

import nectar

COLUMNS = ["ss_item_sk", "ss_customer_sk", "ss_quantity", "ss_net_paid", "ss_list_price"]
BEFORE = 12  # days that are there when it begins
LEARNING = 3  # days after which parts are known: the first is computed plainly, the second makes states


def question(sales: Any) -> Any:
    sold = sales.filter(F.col("ss_quantity") > 0).groupBy("ss_item_sk")
    paid, most = F.sum("ss_net_paid").alias("paid"), F.max("ss_list_price").alias("most")
    return sold.agg(F.count("*").alias("sales"), paid, most).orderBy(F.desc("paid"), "ss_item_sk").limit(10)


class Days:
    """Sales of days, all alike, a file for each. kind: what reads them."""

    def __init__(self, kind: str, spark: Any, day: Path, folder: Path) -> None:
        self.kind, self._spark, self._day, self._all = kind, spark, day, folder / kind
        self._count = 0
        if kind == "parquet":
            self._all.mkdir()

    def come(self) -> None:
        """One more day."""
        self._count += 1
        if self.kind == "parquet":
            shutil.copy(self._day, self._all / f"day-{self._count:03}.parquet")
            return
        day = self._spark.read.parquet(str(self._day)).coalesce(1)
        day.write.format("delta").mode("append").save(str(self._all))

    def all(self) -> Any:
        return self._spark.read.format(self.kind).load(str(self._all))

    def last(self) -> Any:
        return self._spark.read.parquet(str(self._day))


def timed(ask: Callable[[], Any]) -> tuple[float, Any]:
    begun = perf_counter()
    rows = ask().collect()
    return perf_counter() - begun, rows


def measure(report: Report, days: Days, count: int, home: Path) -> None:
    ours, everything, new, outcomes = [], [], [], []
    nectar.disable()
    for _ in range(BEFORE):
        days.come()
    for day in range(LEARNING + count):
        if day:
            days.come()
        nectar.enable(home=home, reserve=0)
        mine, rows = timed(lambda: question(days.all()))
        outcomes.append(nectar.last_run().parts[-1].reason)
        settle()
        nectar.disable()
        whole, expected = timed(lambda: question(days.all()))
        assert rows == expected
        alone, _ = timed(lambda: question(days.last()))
        if day >= LEARNING:
            ours.append(mine)
            everything.append(whole)
            new.append(alone)
    kind, words = days.kind, {"parquet": "a folder", "delta": "a Delta table"}[days.kind]
    made = sum("put together from" in outcome for outcome in outcomes[-count:])
    report.add(f"growth_{kind}_days", f"{words}, days put together", made, "", str(count))
    report.add(f"growth_{kind}_whole_s", f"{words}, everything, without Nectar", everything, "s")
    report.add(f"growth_{kind}_new_s", f"{words}, the new day alone, without Nectar", new, "s")
    report.add(f"growth_{kind}_ours_s", f"{words}, with Nectar", ours, "s")
    report.add(f"growth_{kind}_ratio", f"{words}, beside everything", median(ours) / median(everything), "x")
    report.add(f"growth_{kind}_over_new", f"{words}, beside the new day alone", median(ours) / median(new), "x")


def main(tables: Path, count: int, folder: Path) -> None:
    spark = session_of(str(folder / "home"))
    day = folder / "day.parquet"
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(tables / "store_sales.parquet", columns=COLUMNS), day)
    report = Report()
    report.begin(f"A question of every day, over {BEFORE + LEARNING} days of sales and more")
    for kind in ("parquet",) if "SPARK_REMOTE" in os.environ else ("parquet", "delta"):
        measure(report, Days(kind, spark, day, folder), count, folder / "home")
        shutil.rmtree(folder / kind)
    print(report.written())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
