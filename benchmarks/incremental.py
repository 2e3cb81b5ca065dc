"""What growing and moving streams cost under Nectar, beside computing everything anew.

    python benchmarks/incremental.py [--quick] [--rows 4000000] [--days 6] [--pairs 2000000] [--few-pairs 20000]
                                     [--rounds 2] [--year 365] [--window 30] [--daily 100000] [--appends 1000]
                                     [--scale 1] [--only days window growth tpch] [--folder WHERE]

Prints tables for people, then one line of JSON with the figures. Each part is measured in a process of its own and says
in its first lines how: incremental_days.py (the paper's table 5), incremental_window.py (a window moved day by day),
incremental_growth.py (a thousand appends), incremental_tpch.py (TPC-H in batches, if it is there). Everything lies in a
temporary folder, which is deleted. Nectar looks at each query, however little there is to gain: what increments cost is
measured here, and what the budget makes of it in overhead.py.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # not this folder: nobody shall take a file in it for Polars

from benchmarks.parts import circumstances, measured  # noqa: E402 - found by way of the line above


@dataclass(frozen=True, slots=True)
class Sizes:
    rows: int
    days: int
    pairs: int
    few_pairs: int
    rounds: int
    year: int
    window: int
    daily: int
    appends: int
    scale: float


FULL = Sizes(4_000_000, 6, 2_000_000, 20_000, rounds=2, year=365, window=30, daily=100_000, appends=1000, scale=1)
QUICK = Sizes(20_000, 4, 10_000, 100, rounds=1, year=40, window=10, daily=2_000, appends=12, scale=0.01)


def parts(sizes: Sizes, folder: Path) -> dict[str, list[str]]:
    """The parts, and the arguments of each; the last is a folder of its own."""
    days = (sizes.rows, sizes.days, sizes.pairs, sizes.few_pairs, sizes.rounds)
    found = {
        "days": [*map(str, days), str(folder / "days")],
        "window": [*map(str, (sizes.year, sizes.window, sizes.daily, 2_000)), str(folder / "window")],
        "growth": [str(sizes.appends), "1000", str(folder / "growth")],
        "tpch": [f"{sizes.scale:g}", str(folder / "tpch")],
    }
    return {name: arguments for name, arguments in found.items() if _module(name).exists()}


def _module(name: str) -> Path:
    return ROOT / "benchmarks" / f"incremental_{name}.py"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small data: whether everything works, not how fast")
    parser.add_argument("--rows", type=int, help="clicks of a day")
    parser.add_argument("--days", type=int, help="of clicks")
    parser.add_argument("--pairs", type=int, help="of query and page, where there are many")
    parser.add_argument("--few-pairs", type=int)
    parser.add_argument("--rounds", type=int, help="how often days are added")
    parser.add_argument("--year", type=int, help="days over which the window moves")
    parser.add_argument("--window", type=int, help="days of the window")
    parser.add_argument("--daily", type=int, help="rows of a day of the window")
    parser.add_argument("--appends", type=int)
    parser.add_argument("--scale", type=float, help="of TPC-H")
    names = [*parts(FULL, Path())]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--folder", type=Path, help="where to measure; the system's temporary folder unless given")
    chosen = parser.parse_args()
    usual = QUICK if chosen.quick else FULL
    given = {name: getattr(chosen, name) for name in Sizes.__slots__}
    sizes = Sizes(**{name: getattr(usual, name) if value is None else value for name, value in given.items()})
    report, about = measured("incremental", lambda folder: parts(sizes, folder), chosen.only, chosen.folder)
    print(circumstances(about))
    print(json.dumps(json.loads(report.as_json()) | about))


if __name__ == "__main__":
    main()
