"""TPC-H with orders and their lines arriving in batches: what each query costs when a batch has come."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl
from tests.integration import tpch

import nectar
from nectar import session

ARRIVING: Final = ("orders", "lineitem")
WITHOUT: Final = (2, 11, 16)  # queries that read neither


@dataclass(frozen=True, slots=True)
class Arriving(tpch.Tables):
    """Tables of which some are folders that files come to."""

    def scan(self, name: str) -> pl.LazyFrame:
        """One table, not read yet."""
        where = self.folder / name
        return pl.scan_parquet(f"{where}/*.parquet" if name in ARRIVING else f"{where}.parquet")


def generated(folder: Path, scale: float, batches: int) -> None:
    """All tables, those that arrive in so many files."""
    if (folder / "done").exists():
        return
    command = [str(tpch.GENERATOR), "parquet", "-s", f"{scale:g}", "-o", str(folder), "--overwrite"]
    still = ",".join(name for name in tpch.TABLES if name not in ARRIVING)
    subprocess.run([*command, f"--tables={still}"], check=True, capture_output=True)
    subprocess.run([*command, f"--tables={','.join(ARRIVING)}", f"--parts={batches}"], check=True, capture_output=True)
    (folder / "done").touch()


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


def measured(made: Path, scale: float, batches: int, only: tuple[int, ...] = ()) -> dict[int, list[dict[str, Any]]]:
    """For each query, and each batch: seconds plain and with Nectar, and whether anything was put together."""
    queries = {number: query for number, query in tpch.QUERIES.items() if number not in WITHOUT}
    queries = {number: query for number, query in queries.items() if not only or number in only}
    found: dict[int, list[dict[str, Any]]] = {number: [] for number in queries}
    with tempfile.TemporaryDirectory(dir=made.parent) as folder:
        arrival = Arrival(Path(folder) / "tables", made, scale)
        nectar.enable(home=Path(folder) / "home", budget="20GB")
        for batch in range(1, batches + 1):
            arrival.come(batch)
            for number, query in queries.items():
                found[number].append(_round(lambda query=query: query(arrival.tables)))
        nectar.disable()
    return found


def _round(query: Any) -> dict[str, Any]:
    with nectar.reuse(off=True):
        begun = time.perf_counter()
        plain = query().collect()
        plain_seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    answer = query().collect()
    seconds = time.perf_counter() - begun
    current = session.current()
    assert current is not None
    current.settle()
    reused = sum(part.outcome == "reused" for part in nectar.last_run().parts)
    return {"plain": plain_seconds, "nectar": seconds, "reused": reused, "rows": answer.height == plain.height}


def summary(found: dict[int, list[dict[str, Any]]], last: int = 10) -> dict[int, dict[str, Any]]:
    """The last batches of each query: median seconds, their ratio, and how often something was reused."""
    told = {}
    for number, rounds in found.items():
        late = rounds[-last:]
        plain = statistics.median(each["plain"] for each in late)
        ours = statistics.median(each["nectar"] for each in late)
        told[number] = {
            "plain_ms": round(plain * 1e3, 1), "nectar_ms": round(ours * 1e3, 1), "ratio": round(ours / plain, 3),
            "incremental": sum(each["reused"] > 0 for each in late) == len(late),
        }  # fmt: skip
    return told


if __name__ == "__main__":
    scale, batches = float(sys.argv[1]), int(sys.argv[2])
    only = tuple(map(int, sys.argv[3:]))
    made = Path(tempfile.gettempdir()) / f"nectar-tpch-{scale:g}-{batches}"
    generated(made, scale, batches)
    for number, each in summary(measured(made, scale, batches, only)).items():
        print(number, each)
