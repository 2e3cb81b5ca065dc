"""What Polars programs gain and lose under Nectar, beside plain Polars and what people do by hand.

    python benchmarks/polars.py [--quick] [--scale 1] [--rounds 3] [--documents-mb 1000] [--objects 3000000] [--runs 5]
                                [--only overhead words debugging] [--folder WHERE]

Prints tables for people, then one line of JSON with the figures. Each part is measured in processes of its own and
says in its first lines how: polars_overhead.py (nothing to reuse), polars_words.py (the paper's table 4, and hits in
new processes), polars_debugging.py (the paper's table 6). Medians, with the lowest and the highest; where two things
are compared, the fastest of each. Everything lies in a temporary folder, which is deleted.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # not this folder: nobody shall take this file for Polars

from benchmarks.parts import circumstances, measured  # noqa: E402 - found by way of the line above


@dataclass(frozen=True, slots=True)
class Sizes:
    scale: float
    rounds: int
    documents: float
    objects: int
    runs: int


FULL = Sizes(scale=1, rounds=3, documents=1000, objects=3_000_000, runs=5)
QUICK = Sizes(scale=0.1, rounds=2, documents=60, objects=300_000, runs=1)


def parts(sizes: Sizes, folder: Path) -> dict[str, list[str]]:
    """The parts, and the arguments of each; the last is a folder of its own."""
    return {
        "overhead": [str(folder / "tpch"), f"{sizes.scale:g}", str(sizes.rounds), str(folder / "overhead")],
        "words": [f"{sizes.documents:g}", str(folder / "words")],
        "debugging": [str(sizes.objects), str(sizes.runs), str(folder / "debugging")],
    }


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
    report, about = measured("polars", lambda folder: parts(sizes, folder), chosen.only, chosen.folder)
    print(circumstances(about))
    print("Files written by hand know nothing of changed code or documents; joblib sees changes of its function alone.")
    print(json.dumps(json.loads(report.as_json()) | about))


if __name__ == "__main__":
    main()
