"""Table 5 of the Nectar paper: a day is added to a log of clicks, and programs run again.

    python -m benchmarks.incremental_days ROWS-A-DAY DAYS PAIRS FEW-PAIRS ROUNDS FOLDER

Each program runs over day 1, days 1 and 2, and so on; from the third on it is measured, beside the same query as plain
Polars over all days, and beside the way that was not chosen (what is known, or everything anew). In every round all of
them run one after the other on the same files; the fastest of each counts. The last line is the report.

Aim: (rows that are new + rows of the state that is merged) / (all rows) of the time for everything, 1.15 times that and
20 ms. Regret: how much faster the better way is than the chosen one; aim: 10 % and 20 ms.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import polars as pl
from benchmarks.polars_report import Report
from benchmarks.programs.clicks import LARGEST, PROGRAMS, write_day

import nectar
from nectar.dialects.polars.incremental.advance import rates
from nectar.rewrite.cost import Rates
from nectar.session import current

SHARE, SECONDS = 1.15, 0.02
REGRET_SHARE, REGRET_SECONDS = 1.1, 0.02
Program = Callable[[Sequence[Path]], pl.LazyFrame]
# Which way is taken: what estimates say, what is known wherever it is known, everything anew.
WAYS = {"chosen": None, "segments": Rates(opening=0.0, merging=0.0), "whole": Rates(opening=1e9)}


@dataclass(slots=True)
class Step:
    """One day more: the fastest of each way, plain Polars beside them, and rows of the state that was merged."""

    times: dict[str, float] = field(default_factory=dict)
    state_rows: int = 0

    def add(self, way: str, seconds: float) -> None:
        self.times[way] = min(seconds, self.times.get(way, seconds))


def timed(query: pl.LazyFrame) -> tuple[float, pl.DataFrame]:
    begun = perf_counter()
    frame = query.collect()
    return perf_counter() - begun, frame


def grown(program: Program, days: list[Path], home: Path, way: str, steps: dict[int, Step]) -> None:
    """Runs a program day after day under Nectar."""
    with nectar.reuse(home=home, overhead="unlimited") as run:
        session = current()
        assert session is not None
        catalog = session.catalog
        assert catalog is not None
        for count in range(1, len(days) + 1):
            forced = WAYS[way]
            if forced is not None and count > 2:
                rates._known[catalog] = forced
            before = len(run.parts)
            seconds, frame = timed(program(days[:count]))
            used = [part for part in run.parts[before:] if part.outcome == "reused"]
            session.settle()
            if count > 2:
                steps[count].add(way, seconds)
                with nectar.reuse(off=True):
                    plain, expected = timed(program(days[:count]))
                steps[count].add("plain", plain)
                # Of the others, those that are equal in it may be any.
                assert frame[LARGEST[program]].sort().equals(expected[LARGEST[program]].sort())
                if way == "segments":
                    keys = [bytes.fromhex(part.key) for part in used]
                    steps[count].state_rows = sum(each.rows for each in catalog.index.lookup(keys).values())
    shutil.rmtree(home)


def measured(program: Program, days: list[Path], rounds: int, folder: Path) -> dict[int, Step]:
    steps = {count: Step() for count in range(3, len(days) + 1)}
    for _ in range(rounds):
        for way in WAYS:
            grown(program, days, folder / "home", way, steps)
    return steps


def tell(report: Report, name: str, words: str, steps: dict[int, Step], rows: int) -> None:
    last = max(steps)
    full = [step.times["plain"] for step in steps.values()]
    report.add(f"{name}_plain_s", f"{words}: all days, plain Polars, day {last}", full[-1], "s")
    report.add(f"{name}_nectar_s", f"{words}: with one day new, day {last}", steps[last].times["chosen"], "s")
    shares, bounds, regrets = [], [], []
    for count, step in steps.items():
        share = (rows + step.state_rows) / (rows * count)
        shares.append(share)
        bounds.append(step.times["chosen"] / (SHARE * share * step.times["plain"] + SECONDS))
        best = min(step.times["segments"], step.times["whole"], step.times["chosen"])
        regrets.append(step.times["chosen"] / (REGRET_SHARE * best + REGRET_SECONDS))
    report.add(f"{name}_state_rows", f"{words}: rows of the state", steps[last].state_rows, "")
    report.add(f"{name}_share", f"{words}: rows new and of the state, of all", shares, "")
    report.add(f"{name}_of_bound", f"{words}: time of what it may take", bounds, "", "at most 1")
    report.add(f"{name}_regret", f"{words}: regret, of what it may be", regrets, "", "at most 1")


def main() -> None:
    *numbers, where = sys.argv[1:]
    rows, count, many, few, rounds = map(int, numbers)
    folder = Path(where)
    report = Report()
    for kind, pairs in (("few", few), ("many", many)):
        report.begin(f"A day is added: {count} days of {rows:,} clicks, {pairs:,} pairs of query and page (table 5)")
        days = [folder / f"{kind}-{day:02}.parquet" for day in range(count)]
        for day, path in enumerate(days):
            write_day(path, day, rows, pairs)
        for name, program in PROGRAMS.items():
            if name == "longest_clicks" and kind == "few":
                continue  # it knows nothing of pairs
            steps = measured(program, days, rounds, folder)
            tell(report, f"{name}_{kind}", name.replace("_", " "), steps, rows)
    print(report.written())


if __name__ == "__main__":
    main()
