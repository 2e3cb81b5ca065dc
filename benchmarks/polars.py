"""What Polars programs gain and lose under Nectar, beside plain Polars and what people do by hand.

    python benchmarks/polars.py [--quick] [--scale 1] [--rounds 3] [--documents-mb 1000] [--objects 3000000] [--runs 2]
                                [--only overhead words debugging] [--folder WHERE]

Prints tables for people, then one line of JSON with the figures. Each part is measured in processes of its own and
says in its first lines how: polars_overhead.py (nothing to reuse), polars_words.py (the paper's table 4, and hits in
new processes), polars_debugging.py (the paper's table 6). Medians, with the lowest and the highest; where two things
are compared, the fastest of each. Everything lies in a temporary folder, which is deleted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # not this folder: nobody shall take this file for Polars

from benchmarks.polars_report import Report  # noqa: E402 - found by way of the line above


@dataclass(frozen=True, slots=True)
class Sizes:
    scale: float
    rounds: int
    documents: float
    objects: int
    runs: int


FULL = Sizes(scale=1, rounds=3, documents=1000, objects=3_000_000, runs=2)
QUICK = Sizes(scale=0.1, rounds=2, documents=60, objects=300_000, runs=1)


def parts(sizes: Sizes, folder: Path) -> dict[str, list[str]]:
    """The parts, and the arguments of each; the last is a folder of its own."""
    return {
        "overhead": [str(folder / "tpch"), f"{sizes.scale:g}", str(sizes.rounds), str(folder / "overhead")],
        "words": [f"{sizes.documents:g}", str(folder / "words")],
        "debugging": [str(sizes.objects), str(sizes.runs), str(folder / "debugging")],
    }


def measure(sizes: Sizes, only: list[str], where: Path | None) -> tuple[Report, dict[str, object]]:
    report = Report()
    about: dict[str, object] = {"cores": os.cpu_count() or 0, "load_before": _load()}
    folder = Path(tempfile.mkdtemp(prefix="nectar-bench-", dir=where))
    try:
        for name, arguments in parts(sizes, folder).items():
            if name in only:
                begun = perf_counter()
                found = Report.read(_run(name, arguments))
                found.show()
                report.join(found)
                about[f"seconds_for_{name}"] = round(perf_counter() - begun, 1)
                shutil.rmtree(arguments[-1], ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    about["load_after"] = _load()
    return report, about


def _run(name: str, arguments: list[str]) -> str:
    """The last line of a part, which is its report."""
    Path(arguments[-1]).mkdir(parents=True)
    command = [sys.executable, "-m", f"benchmarks.polars_{name}", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return done.stdout.splitlines()[-1]


def _load() -> float:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else -1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small data: whether everything works, not how fast")
    parser.add_argument("--scale", type=float, help="of TPC-H")
    parser.add_argument("--rounds", type=int, help="how often each query of TPC-H runs")
    parser.add_argument("--documents-mb", type=float, dest="documents")
    parser.add_argument("--objects", type=int, help="in the sky of the query that is debugged")
    parser.add_argument("--runs", type=int, help="how often that query is debugged")
    names = [*parts(FULL, Path())]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--folder", type=Path, help="where to measure; the system's temporary folder unless given")
    chosen = parser.parse_args()
    usual = QUICK if chosen.quick else FULL
    given = {name: getattr(chosen, name) for name in Sizes.__slots__}
    sizes = Sizes(**{name: getattr(usual, name) if value is None else value for name, value in given.items()})
    report, about = measure(sizes, chosen.only, chosen.folder)
    loads = f"load {about['load_before']} before and {about['load_after']} after"
    print(f"{about['cores']} cores, {loads}.")
    print("Files written by hand know nothing of changed code or documents; joblib sees changes of its function alone.")
    print(json.dumps(json.loads(report.as_json()) | about))


if __name__ == "__main__":
    main()
