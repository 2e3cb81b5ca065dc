"""A file of lines that grows by one part in a hundred: a group-by under Nectar against the same by plain Polars.

    python benchmarks/incremental_files.py [--megabytes 500] [--appends 5] [--form csv]

Each append is followed, once the file is quiet, by one run under Nectar and one without, in this process, the file in
the page cache. The first runs show Nectar the pattern and are told apart. Times of the processor are given as well: on
a machine that others use they say more. Everything lies in a temporary folder, which is deleted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder: nobody shall take a file in it for a library

import polars as pl  # noqa: E402 - found by way of the line above

import nectar  # noqa: E402
from nectar import session  # noqa: E402

SHARE = 100  # of the file that comes with an append: one part in so many
QUIET = 2.1  # seconds after which a file is known by what its file system says of it
BLOCK = 200_000  # lines that are written at once
WARMING = 3  # appends after which the pattern is known


def figures(megabytes: float = 500, appends: int = 5, form: str = "csv") -> dict[str, float]:
    """What a run takes after an append, under Nectar and without: medians, and how often faster."""
    with tempfile.TemporaryDirectory(prefix="nectar-bench-") as folder:
        log = Path(folder) / f"log.{form}"
        rows = 0
        while not log.exists() or log.stat().st_size < megabytes * 1e6:
            rows += _append(log, form, rows, BLOCK)
        filled, new = log.stat().st_size, max(1, rows // SHARE)
        with nectar.reuse(home=Path(folder) / "home", reserve=0, overhead="unlimited"):
            time.sleep(QUIET)
            runs = [_measured(log, form)]
            plain = []
            for _ in range(WARMING + appends):
                rows += _append(log, form, rows, new)
                time.sleep(QUIET)
                runs.append(_measured(log, form))
                with nectar.reuse(off=True):
                    plain.append(_measured(log, form))
        mine, plain = runs[1 + WARMING :], plain[WARMING:]
        return {
            "file_megabytes": round(log.stat().st_size / 1e6, 1),
            "new_megabytes": round((log.stat().st_size - filled) / 1e6 / (WARMING + appends), 2),
            "first_seconds": round(runs[0][0], 3),
            "warming_seconds": round(max(seconds for seconds, _ in runs[1 : 1 + WARMING]), 3),
            "append_seconds": round(median(seconds for seconds, _ in mine), 3),
            "append_seconds_highest": round(max(seconds for seconds, _ in mine), 3),
            "recomputed_seconds": round(median(seconds for seconds, _ in plain), 3),
            "append_processor_seconds": round(median(processor for _, processor in mine), 3),
            "recomputed_processor_seconds": round(median(processor for _, processor in plain), 3),
            "times_faster": round(median(one / other for (one, _), (other, _) in zip(plain, mine, strict=True)), 1),
        }


def _measured(log: Path, form: str) -> tuple[float, float]:
    """Seconds that one run takes, on the clock and of the processors; keeping the result is not part of it."""
    begun, processor = time.perf_counter(), time.process_time()
    rows: pl.LazyFrame = getattr(pl, f"scan_{form}")(log)
    rows.filter(pl.col("status") != 404).group_by("page").agg(
        pl.len(), pl.col("bytes").sum(), pl.col("seconds").mean(), pl.col("user").max().alias("last_user")
    ).collect()
    taken = time.perf_counter() - begun, time.process_time() - processor
    now = session.current()
    if now is not None:
        now.settle()
    return taken


def _append(log: Path, form: str, start: int, count: int) -> int:
    """So many lines more, which no other lines are equal to; how many."""
    number = pl.int_range(start, start + count)
    frame = pl.select(
        page="/page/" + (number * 7919 % 5000).cast(pl.String),
        user="user" + number.cast(pl.String),
        status=pl.when(number % 50 == 0).then(404).otherwise(200),
        bytes=number * 31 % 100_000,
        seconds=(number % 977) / 128,
    )
    text = frame.write_ndjson() if form == "ndjson" else frame.write_csv(include_header=start == 0)
    with log.open("a") as file:
        file.write(text)
    return count


def main() -> None:
    """Prints the figures for people, then as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=500)
    parser.add_argument("--appends", type=int, default=5)
    parser.add_argument("--form", choices=["csv", "ndjson"], default="csv")
    arguments = parser.parse_args()
    found = figures(arguments.megabytes, arguments.appends, arguments.form)
    for name, value in found.items():
        print(f"{name.replace('_', ' '):<24}{value:>10}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
