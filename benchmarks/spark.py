"""What Spark programs gain and lose under Nectar, beside the same engine without it and the figures of KeyChain.

    python benchmarks/spark.py [--engine sail|spark] [--quick] [--scale 1] [--rounds 1] [--runs 5]
                               [--only sharing tpcds fingerprints parts growth] [--folder WHERE]

The engine is Sail in the process of the program, or a Spark server on this machine, which is started for all parts.

Prints tables for people, then one line of JSON with the figures. Each part is measured in processes of its own and
says in its first lines how: spark_sharing.py (KeyChain's tables I to III), spark_tpcds.py (what TPC-DS costs and
saves), spark_fingerprints.py (time to make keys), spark_parts.py (what a known part takes to read), spark_growth.py
(what one more day takes). Medians, with the lowest and the highest. Everything lies in a temporary folder, which is
deleted. Needs the environment of `make test-sail`, or of `make test-spark`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # not this folder: nobody shall take its files for libraries

from benchmarks.parts import circumstances, measured  # noqa: E402 - found by way of the line above
from tests.dialects.spark import engines, tpcds  # noqa: E402


@dataclass(frozen=True, slots=True)
class Sizes:
    scale: float
    rounds: int
    runs: int


FULL = Sizes(scale=1, rounds=1, runs=5)
QUICK = Sizes(scale=0.01, rounds=1, runs=2)


def parts(sizes: Sizes, folder: Path) -> dict[str, list[str]]:
    """The parts, and the arguments of each; the last is a folder of its own."""
    tables = str(folder / "tables")
    return {
        "sharing": [tables, str(sizes.runs), str(folder / "sharing")],
        "tpcds": [tables, str(sizes.rounds), str(folder / "tpcds")],
        "fingerprints": [tables, str(folder / "fingerprints")],
        "parts": [tables, str(sizes.runs), str(folder / "parts")],
        "growth": [tables, str(sizes.runs), str(folder / "growth")],
    }


def with_tables(sizes: Sizes, folder: Path) -> dict[str, list[str]]:
    """The parts, once the tables they read are there."""
    tpcds.generate(folder / "tables", sizes.scale)
    return parts(sizes, folder)


@contextmanager
def running(engine: str) -> Iterator[None]:
    """The engine is there for the parts: Sail they start by themselves."""
    if engine == "sail":
        yield
        return
    server = engines.Spark(memory="4g")
    os.environ["SPARK_REMOTE"] = server.address
    try:
        yield
    finally:
        server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=["sail", "spark"], default="sail")
    parser.add_argument("--quick", action="store_true", help="small data: whether everything works, not how fast")
    parser.add_argument("--scale", type=float, help="of TPC-DS")
    parser.add_argument("--rounds", type=int, help="how often each query of TPC-DS runs")
    parser.add_argument("--runs", type=int, help="how often a hit is timed")
    names = [*parts(FULL, Path())]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--folder", type=Path, help="where to measure; the system's temporary folder unless given")
    chosen = parser.parse_args()
    missing = tpcds.why_missing()
    if missing:
        parser.exit(2, f"The tables of TPC-DS cannot be made: {missing}\n")
    usual = QUICK if chosen.quick else FULL
    given = {name: getattr(chosen, name) for name in Sizes.__slots__}
    sizes = Sizes(**{name: getattr(usual, name) if value is None else value for name, value in given.items()})
    with running(chosen.engine):
        report, about = measured("spark", lambda folder: with_tables(sizes, folder), chosen.only, chosen.folder)
    print(circumstances(about))
    print(json.dumps(json.loads(report.as_json()) | about | {"scale": sizes.scale, "engine": chosen.engine}))


if __name__ == "__main__":
    main()
