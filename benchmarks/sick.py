"""What a sick catalog costs a program: with a fault, beside the same program without Nectar.

    python benchmarks/sick.py [--pairs N] [--calls N] [--queries N] [--faults NAME ...] [--kinds calls queries]

Each pair runs the program without Nectar and with it, one after the other, each in a process of its own; the fault
comes after a tenth of the calls and stays to the end of the process. Once more for each fault the catalog is well again
at the end: then it is counted how many results were pending and how many are kept. A table, then one line of JSON.
Allowed are 1.05 times the time without Nectar and 0.2 s more, by the median.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.programs.sick import worked  # noqa: E402 - found by way of the line above

FAULTS = ("none", "lock", "slow", "forwards", "back", "full", "readonly", "stopped")
CALL, QUERY = 0.005, 0.020  # seconds that one of each takes
SHARE, SECONDS = 1.05, 0.2


def quickest(call: Callable[[], object]) -> float:
    """Seconds of the quickest of some calls: others use the machine too."""
    times = []
    for _ in range(15):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return min(times)


def sizes() -> dict[str, int]:
    """How large a call and a query have to be to take as long as they should."""
    import polars as pl

    rows = 400_000
    frame = pl.select(a=pl.int_range(rows)).with_columns(g=pl.col("a") % 1000).lazy()
    query = frame.group_by("g").agg(pl.col("a").sum()).select(pl.col("a").sum())
    return {
        "calls": int(100_000 * CALL / quickest(lambda: worked(3, 100_000))),
        "queries": int(rows * QUERY / quickest(query.collect)),
    }


def ran(kind: str, fault: str, number: int, size: int, folder: Path, *options: str) -> dict[str, Any]:
    """What one process has to say of itself."""
    home = folder / "home"
    shutil.rmtree(home, ignore_errors=True)
    command = [sys.executable, "-P", str(ROOT / "benchmarks" / "sick_worker.py"), kind, fault, str(home)]
    sized = ["--number", str(number), "--size", str(size)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NECTAR_")}
    done = subprocess.run([*command, *sized, *options], capture_output=True, text=True, env=environment, timeout=900)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(kind: str, fault: str, pairs: int, number: int, size: int, folder: Path) -> dict[str, Any]:
    """Medians of pairs, and what became of the results."""
    plain, nectar, warnings, right = [], [], [], True
    for _ in range(pairs):
        without = ran(kind, fault, number, size, folder, "--plain")
        beside = ran(kind, fault, number, size, folder)
        plain.append(without["seconds"])
        nectar.append(beside["seconds"])
        warnings.append(len(beside["warnings"]))
        right = right and without["right"] and beside["right"]
    again = ran(kind, fault, number, size, folder, "--recover")
    return {
        "plain": round(median(plain), 3), "nectar": round(median(nectar), 3),
        "over": round(median(b - (SHARE * a + SECONDS) for a, b in zip(plain, nectar, strict=True)), 3),
        "ratio": round(median(b / a for a, b in zip(plain, nectar, strict=True)), 3),
        "warnings": max(warnings), "right": right and again["right"],
        "pending": again["pending"], "settled": again["settled"], "kept": again["kept"],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--faults", nargs="+", default=FAULTS, choices=FAULTS)
    parser.add_argument("--kinds", nargs="+", default=("calls", "queries"), choices=("calls", "queries"))
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    size = sizes()
    print(f"{'':9} {'fault':9} {'plain':>8} {'nectar':>8} {'ratio':>6} {'over':>7}  warnings  pending, settled, kept")
    with tempfile.TemporaryDirectory(prefix="nectar-sick-") as folder:
        for kind in options.kinds:
            for fault in options.faults:
                number = options.calls if kind == "calls" else options.queries
                found = measured(kind, fault, options.pairs, number, size[kind], Path(folder))
                figures[f"{kind}_{fault}"] = found
                print(
                    f"{kind:9} {fault:9} {found['plain']:6.2f} s {found['nectar']:6.2f} s {found['ratio']:6.3f} "
                    f"{found['over']:5.2f} s  {found['warnings']:8}  {found['pending']}, {found['settled']}, "
                    f"{found['kept']}{'' if found['right'] else '  WRONG ANSWERS'}",
                    flush=True,
                )
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
