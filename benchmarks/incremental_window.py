"""A window of some days over a longer time, moved day by day.

    python -m benchmarks.incremental_window DAYS LENGTH ROWS-A-DAY KEYS FOLDER

Each move is run under Nectar, as plain Polars over all days of the window, and as people write it by hand: partial sums
of each day are kept in memory, and those of the window are merged. All three, one after the other, on the same files.
The last line is the report.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import polars as pl
from benchmarks.polars_report import Report
from polars import col
from polars.testing import assert_frame_equal

import nectar
from nectar.session import current


def write_day(path: Path, day: int, rows: int, keys: int) -> None:
    number = pl.int_range(rows, eager=True)
    key = ((number * 7919 + day * 104_729) % keys).alias("key")
    name = pl.select(pl.format("key {}", key)).to_series()
    pl.DataFrame({"name": name, "amount": number * 31 % 1000 + day}).write_parquet(path)


def program(days: Sequence[Path]) -> pl.LazyFrame:
    totals = (
        pl.scan_parquet(days).group_by("name").agg(col("amount").sum(), pl.len(), col("amount").max().alias("most"))
    )
    return totals.sort("name")


class ByHand:
    """Partial sums of each day, merged for each window; it knows this one program, and nothing of changed files."""

    def __init__(self) -> None:
        self._partial: dict[Path, pl.DataFrame] = {}

    def run(self, days: Sequence[Path]) -> pl.DataFrame:
        for day in days:
            if day not in self._partial:
                self._partial[day] = program([day]).collect()
        self._partial = {day: self._partial[day] for day in days}
        merged = pl.concat(self._partial.values()).lazy().group_by("name")
        return merged.agg(col("amount").sum(), col("len").sum(), col("most").max()).sort("name").collect()


def main() -> None:
    days, length, rows, keys = map(int, sys.argv[1:5])
    folder = Path(sys.argv[5])
    files = [folder / f"{day:04}.parquet" for day in range(days)]
    for day, path in enumerate(files):
        write_day(path, day, rows, keys)
    times: dict[str, list[float]] = {"nectar": [], "plain": [], "by_hand": []}
    merged: list[float] = []
    by_hand = ByHand()
    with nectar.reuse(home=folder / "home", overhead="unlimited") as run:
        session = current()
        assert session is not None
        for start in range(days - length + 1):
            window = files[start : start + length]
            before = len(run.parts)
            begun = perf_counter()
            frame = program(window).collect()
            times["nectar"].append(perf_counter() - begun)
            merged.append(sum(part.outcome == "reused" for part in run.parts[before:]) + 1)
            session.settle()
            with nectar.reuse(off=True):
                begun = perf_counter()
                plain = program(window).collect()
                times["plain"].append(perf_counter() - begun)
                begun = perf_counter()
                by_hand.run(window)
                times["by_hand"].append(perf_counter() - begun)
            assert_frame_equal(frame, plain)
        assert session.catalog is not None
        held = session.catalog.usage()
        states = [entry for entry in session.catalog.index.entries() if entry.spans]
    report = Report()
    report.begin(f"A window of {length} days over {days}, {rows:,} rows and {keys:,} keys a day")
    for who, words in (("nectar", "Nectar"), ("plain", "plain Polars"), ("by_hand", "written by hand, in memory")):
        # The first runs show the pattern, and make states of all days and then of each.
        report.add(f"window_{who}_ms", f"a move, {words}", [1000 * each for each in times[who][3:]], "ms")
    report.add(
        "window_setting_up_ms", "the third run, which makes a state of each day", 1000 * times["nectar"][2], "ms"
    )
    ratios = [mine / plain for mine, plain in zip(times["nectar"][3:], times["plain"][3:], strict=True)]
    report.add("window_of_plain", "a move, Nectar over plain Polars", ratios, "")
    report.add("window_states_merged", "states merged in a move", merged[3:], "", f"{2 * (length - 1).bit_length()}")
    report.add("window_states_kept", "states kept", len(states), "")
    report.add("window_state_bytes", "bytes of them", sum(entry.size for entry in states), "bytes")
    report.add("window_stored_bytes", "bytes kept in all, results too", held.size, "bytes")
    report.add("window_input_bytes", "bytes of all days", sum(path.stat().st_size for path in files), "bytes")
    print(report.written())


if __name__ == "__main__":
    main()
