"""A slow Python function over many groups, of which new rows touch a few.

    python -P benchmarks/incremental_map_groups.py [--groups N] [--quick]

A stream has one row or more for each group. A file comes that belongs to 1 % of the groups. Measured are the run under
Nectar that follows, and plain Polars over the same files; the answers are compared. The last line is the figures.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import polars as pl
from polars.testing import assert_frame_equal

import nectar
from nectar.session import current

GROUPS, QUICK = 1_000_000, 5_000
ROWS, FILES = 3, 4  # rows of a group, and files they lie in
SCHEMA = {"user": pl.Int64, "score": pl.Float64}


def score(group: pl.DataFrame) -> pl.DataFrame:
    """What people write when no expression will do: a loop over the values of a group."""
    values = group["seconds"].to_list()
    total = 0.0
    for turn in range(120):
        for value in values:
            total = (total * 31.0 + value + turn) % 1009.0
    return pl.DataFrame({"user": group["user"][:1], "score": [total]}, schema=SCHEMA)


def query(folder: Path) -> pl.LazyFrame:
    return pl.scan_parquet(f"{folder}/*.parquet").group_by("user").map_groups(score, SCHEMA)


def figures(groups: int = GROUPS) -> dict[str, float]:
    """Seconds of the run after 1 % of the groups were touched, of plain Polars, and how many times faster it is."""
    with tempfile.TemporaryDirectory() as folder:
        return _measured(Path(folder), groups)


def _measured(folder: Path, groups: int) -> dict[str, float]:
    files, home = folder / "files", folder / "home"
    files.mkdir()
    _write(files, 0, pl.int_range(groups // 1000, eager=True))  # the first run is a small one: it shows the program
    with nectar.reuse(home=home, budget="100GB", reserve=0, overhead="unlimited"):
        _run(files)
        for number in range(1, FILES + 1):
            _write(
                files, number, (pl.int_range(groups * ROWS // FILES, eager=True) + number * groups // FILES) % groups
            )
        first, _ = _run(files)
        _write(files, FILES + 1, pl.int_range(0, groups, 100, eager=True))
        increment, answer = _run(files)
    with nectar.reuse(off=True):
        begun = perf_counter()
        plain = query(files).collect()
        recomputed = perf_counter() - begun
    assert_frame_equal(answer.sort("user"), plain.sort("user"))
    return {
        "groups": groups,
        "all_groups_seconds": round(first, 3),
        "increment_seconds": round(increment, 3),
        "recomputation_seconds": round(recomputed, 3),
        "times_faster": round(recomputed / increment, 1),
    }


def _write(folder: Path, number: int, users: pl.Series) -> None:
    frame = pl.DataFrame({"user": users, "seconds": (users * 7919 + number * 104729) % 86_400})
    frame.write_parquet(folder / f"{number:03}.parquet")


def _run(folder: Path) -> tuple[float, pl.DataFrame]:
    """Seconds until the answer is there, and the answer; what is still to be written is waited for afterwards."""
    begun = perf_counter()
    answer = query(folder).collect()
    seconds = perf_counter() - begun
    session = current()
    if session is not None:
        session.settle()
    return seconds, answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=GROUPS)
    parser.add_argument("--quick", action="store_true", help="few groups: whether it works, not how fast")
    chosen = parser.parse_args()
    found = figures(QUICK if chosen.quick else chosen.groups)
    for name, value in found.items():
        print(f"{name:24} {value:>14,}", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
