"""TPC-H with orders and their lines arriving in twenty batches: what each query costs when a batch has come.

    python -m benchmarks.incremental_tpch SCALE FOLDER

After each batch the 19 queries that read a growing table run as plain Polars and under Nectar, one after the other, and
their answers are compared. Figures are of the last ten batches. The last line is the report.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Final

import polars as pl
from benchmarks.polars_report import Report
from polars.testing import assert_frame_equal
from tests.integration import tpch

import nectar
from nectar.session import current

BATCHES: Final = 20
FEW: Final = 4  # batches where times mean nothing
LAST: Final = 10
SMALLEST: Final = 0.1  # scale at which times mean something
QUIET: Final = 2.1  # seconds after which a file is known by what its file system says of it
ARRIVING: Final = ("orders", "lineitem")
WITHOUT: Final = (2, 11, 16)  # queries that read neither


@dataclass(frozen=True, slots=True)
class Arriving(tpch.Tables):
    """Tables of which some are folders that files come to."""

    def scan(self, name: str) -> pl.LazyFrame:
        """One table, not read yet."""
        where = self.folder / name
        return pl.scan_parquet(f"{where}/*.parquet" if name in ARRIVING else f"{where}.parquet")


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds of one query after one batch."""

    plain: float
    nectar: float


def generated(folder: Path, scale: float, batches: int) -> None:
    """All tables, those that arrive in so many files."""
    command = [str(tpch.GENERATOR), "parquet", "-s", f"{scale:g}", "-o", str(folder), "--overwrite"]
    still = ",".join(name for name in tpch.TABLES if name not in ARRIVING)
    subprocess.run([*command, f"--tables={still}"], check=True, capture_output=True)
    subprocess.run([*command, f"--tables={','.join(ARRIVING)}", f"--parts={batches}"], check=True, capture_output=True)


class Arrival:
    """A folder of tables to which batches come."""

    def __init__(self, folder: Path, made: Path, scale: float) -> None:
        self.made = made
        self.tables = Arriving(folder, scale)
        for name in ARRIVING:
            (folder / name).mkdir(parents=True)
        for name in tpch.TABLES:
            if name not in ARRIVING:
                os.link(made / f"{name}.parquet", folder / f"{name}.parquet")

    def come(self, batch: int) -> None:
        """One more batch is there."""
        for name in ARRIVING:
            os.link(self.made / name / f"{name}.{batch}.parquet", self.tables.folder / name / f"{batch:03}.parquet")


def measured(made: Path, folder: Path, scale: float, batches: int) -> dict[int, list[Round]]:
    """What each query took after each batch."""
    queries = {number: query for number, query in tpch.QUERIES.items() if number not in WITHOUT}
    found: dict[int, list[Round]] = {number: [] for number in queries}
    arrival = Arrival(folder / "tables", made, scale)
    with nectar.reuse(home=folder / "home", reserve=0, overhead="unlimited"):
        for batch in range(1, batches + 1):
            arrival.come(batch)
            sleep(QUIET if batches == BATCHES else 0)
            for number, query in queries.items():
                found[number].append(_round(lambda query=query: query(arrival.tables)))
    return found


def _round(query: Callable[[], pl.LazyFrame]) -> Round:
    with nectar.reuse(off=True):
        begun = perf_counter()
        expected = query().collect()
        plain = perf_counter() - begun
    begun = perf_counter()
    answer = query().collect()
    ours = perf_counter() - begun
    session = current()
    assert session is not None
    session.settle()
    assert_frame_equal(answer, expected, check_row_order=False, rel_tol=1e-9)
    return Round(plain, ours)


def main() -> None:
    scale, folder = float(sys.argv[1]), Path(sys.argv[2])
    made = folder / "made"
    batches = BATCHES if scale >= SMALLEST else FEW
    generated(made, scale, batches)
    found = measured(made, folder, scale, batches)
    report = Report()
    report.begin(f"TPC-H at scale {scale:g} in {batches} batches: a query after one of the last {LAST}")
    ratios = {}
    for number, rounds in found.items():
        late = rounds[-LAST:]
        ratios[number] = median(each.nectar / each.plain for each in late)
        report.add(f"tpch_{number}_ms", f"query {number}, Nectar", [1000 * each.nectar for each in late], "ms")
        report.add(f"tpch_{number}_plain_ms", "  plain Polars", [1000 * each.plain for each in late], "ms")
        report.add(f"tpch_{number}_ratio", "  ratio", [each.nectar / each.plain for each in late], "", "0.5")
    fast = sum(ratio < 0.5 for ratio in ratios.values())
    report.add("tpch_under_half", f"queries of {len(ratios)} that take less than half the time", fast, "", "12")
    print(report.written())


if __name__ == "__main__":
    main()
