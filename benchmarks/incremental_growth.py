"""Growth: what the 10th, the 100th and the 1,000th append of a small file cost.

    python -m benchmarks.incremental_growth APPENDS ROWS FOLDER

Medians over the appends around each. Beside them: plain Polars over all files, and what nobody can do without, which is
that Polars lists the files and Nectar looks at each of them. The last line is the report.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter

import polars as pl
from benchmarks.polars_report import Report
from polars import col

import nectar
from nectar.session import Session, current

AROUND = 3


def program(folder: Path) -> pl.LazyFrame:
    return pl.scan_parquet(folder / "*.parquet").group_by("name").agg(col("amount").sum(), pl.len())


def append(folder: Path, number: int, rows: int) -> None:
    row = pl.int_range(rows, eager=True)
    name = pl.select(pl.format("key {}", row % 50)).to_series()
    pl.DataFrame({"name": name, "amount": row + number}).write_parquet(folder / f"{number:06}.parquet")


def identified(session: Session, folder: Path) -> float:
    """Seconds to list the files and to look at each."""
    files = [str(path) for path in sorted(folder.iterdir())]
    begun = perf_counter()
    pl.scan_parquet(folder / "*.parquet").collect_schema()
    session.inputs.identify(files)
    return perf_counter() - begun


def main() -> None:
    appends, rows = map(int, sys.argv[1:3])
    folder = Path(sys.argv[3])
    log = folder / "log"
    log.mkdir(parents=True)
    marks = [mark for mark in (10, 100, 1000) if mark <= appends]
    times: dict[tuple[str, int], list[float]] = {}
    with nectar.reuse(home=folder / "home", overhead="unlimited"):
        session = current()
        assert session is not None
        for number in range(1, appends + AROUND + 1):
            append(log, number, rows)
            begun = perf_counter()
            frame = program(log).collect()
            seconds = perf_counter() - begun
            session.settle()
            mark = next((mark for mark in marks if abs(number - mark) <= AROUND), None)
            if mark is None:
                continue
            times.setdefault(("nectar", mark), []).append(1000 * seconds)
            times.setdefault(("identify", mark), []).append(1000 * identified(session, log))
            with nectar.reuse(off=True):
                begun = perf_counter()
                plain = program(log).collect()
                times.setdefault(("plain", mark), []).append(1000 * (perf_counter() - begun))
            assert frame.sort("name").equals(plain.sort("name"))
        assert session.catalog is not None
        states = sum(bool(entry.spans) for entry in session.catalog.index.entries())
    report = Report()
    report.begin(f"Growth by files of {rows:,} rows")
    for mark in marks:
        report.add(f"growth_{mark}_ms", f"append {mark}, Nectar", times["nectar", mark], "ms")
        report.add(
            f"growth_{mark}_identify_ms", "  of which listing and looking at files", times["identify", mark], "ms"
        )
        report.add(f"growth_{mark}_plain_ms", "  plain Polars over all files", times["plain", mark], "ms")
    report.add("growth_states_kept", "states kept in the end", states, "")
    print(report.written())


if __name__ == "__main__":
    main()
