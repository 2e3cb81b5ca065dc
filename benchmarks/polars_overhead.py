"""What Nectar costs where there is nothing to reuse: TPC-H, and fifty queries of a few milliseconds.

    python -m benchmarks.polars_overhead TABLES SCALE ROUNDS FOLDER

Every query runs in turn as plain Polars and under Nectar with an empty store; who is first changes from round to round.
The process is warm: modules are loaded, the catalog is open. How long an engine takes varies by more than what is
measured here, so the time spent in Nectar's own functions is told too. At scale 1 the answers are compared with those
that the specification prints. The last line is the report.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import polars as pl
from benchmarks.polars_report import Report
from benchmarks.programs import trivial
from polars.lazyframe import engine_config
from tests.integration import tpch

import nectar
from nectar.session import current

PLAIN: Any = engine_config._ENGINE_BY_NAME["auto"]  # before Nectar is one of the engines
ALLOWED_SHARE, ALLOWED_SECONDS = 1.01, 0.005
Make = Callable[[], pl.LazyFrame]

# Answers at scale 1 that the specification prints: query, column, row, value.
PRINTED: tuple[tuple[int, str, int, object], ...] = (
    (1, "count_order", 0, 1478493), (1, "count_order", 2, 2920374), (1, "sum_disc_price", 0, 53758257134.87),
    (3, "l_orderkey", 0, 2456423), (3, "revenue", 0, 406181.01), (4, "order_count", 0, 10594),
    (5, "revenue", 0, 55502041.17), (6, "revenue", 0, 123141078.23), (7, "revenue", 0, 54639732.73),
    (8, "mkt_share", 0, 0.03), (12, "high_line_count", 0, 6202), (14, "promo_revenue", 0, 16.38),
    (15, "total_revenue", 0, 1772627.21), (17, "avg_yearly", 0, 348406.05), (19, "revenue", 0, 3083843.06),
    (21, "numwait", 0, 20), (22, "numcust", 0, 888),
)  # fmt: skip


@dataclass(slots=True)
class Times:
    """Seconds of one query in every round: plain, under Nectar until the frame is there, and until it is kept."""

    plain: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)

    @property
    def extra(self) -> float:
        return min(self.ours) - min(self.plain)

    @property
    def ratio(self) -> float:
        return min(self.ours) / min(self.plain)

    @property
    def extra_until_kept(self) -> float:
        return min(self.kept) - min(self.plain)

    @property
    def is_cheap(self) -> bool:
        return min(self.ours) <= min(self.plain) * ALLOWED_SHARE + ALLOWED_SECONDS


def check_answers(tables: tpch.Tables) -> None:
    """At scale 1 the answers are those of the specification."""
    if tables.scale != 1:
        return
    for number, column, row, expected in PRINTED:
        found = tpch.QUERIES[number](tables).collect(engine=PLAIN)[column][row]
        digits = len(str(expected).partition(".")[2])
        assert round(found, digits) == expected, (number, column, row, found, expected)


@contextmanager
def empty_store(folder: Path, warmer: Make) -> Iterator[None]:
    """Nectar is on with nothing kept, the catalog open and used once."""
    nectar.enable(home=folder, overhead="unlimited")  # a look at each query is what is measured here
    try:
        warmer().collect()
        settle()
        yield
    finally:
        nectar.disable()


def settle() -> None:
    session = current()
    assert session is not None
    assert session.settle(60)


def measure(queries: Sequence[Make], rounds: int, folder: Path, warmer: Make) -> list[Times]:
    times = [Times() for _ in queries]
    for number in range(rounds):
        with empty_store(folder / f"home{number}", warmer):
            for query, found in zip(queries, times, strict=True):
                for run in (_plainly, _ours) if number % 2 else (_ours, _plainly):
                    run(query(), found)
    return times


def _plainly(frame: pl.LazyFrame, found: Times) -> None:
    begun = perf_counter()
    frame.collect(engine=PLAIN)
    found.plain.append(perf_counter() - begun)


def _ours(frame: pl.LazyFrame, found: Times) -> None:
    begun = perf_counter()
    frame.collect()
    found.ours.append(perf_counter() - begun)
    settle()
    found.kept.append(perf_counter() - begun)
    run = nectar.last_run()
    assert not run.reused, run.details()
    assert all(part.outcome == "computed" for part in run.parts), run.details()


# what the time is spent on

# In words, and the functions that do it. A function within another is not counted twice.
STAGES: tuple[tuple[str, str, str], ...] = (
    ("look at frames in memory and found files", "nectar.dialects.polars.query", "leaves_of"),
    ("write down and read the plan", "nectar.dialects.polars.plan", "Plan.of"),
    ("resolve the files of scans", "nectar.dialects.polars.keying", "sources_of"),
    ("identify files", "nectar.store.inputs.identify", "Inputs.identify"),
    ("make keys", "nectar.dialects.polars.query", "keyed"),
    ("choose and look up", "nectar.dialects.polars.query", "_look_up"),
    ("say that it is computed here", "nectar.dialects.polars.collecting", "claimed"),
    ("look at files again", "nectar.dialects.polars.keeping", "changed"),
    ("decide to keep, hand over", "nectar.dialects.polars.collecting", "keep"),
)


class Stopwatch:
    """Counts the time in some functions, that in others within them left out."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner = [0.0]

    def wrapped(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            self._inner.append(0.0)
            begun = perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                spent = perf_counter() - begun
                self.seconds[stage] = self.seconds.get(stage, 0.0) + spent - self._inner.pop()
                self._inner[-1] += spent

        return timed


@contextmanager
def watched(watch: Stopwatch) -> Iterator[None]:
    """Within the block the functions of all stages are watched."""
    undo: list[tuple[Any, str, Any]] = []
    try:
        for stage, module, path in STAGES:
            owner: Any = importlib.import_module(module)
            *outer, name = path.split(".")
            for part in outer:
                owner = getattr(owner, part)
            raw = vars(owner)[name]
            undo.append((owner, name, raw))
            function = watch.wrapped(stage, raw.__func__ if isinstance(raw, classmethod) else raw)
            setattr(owner, name, classmethod(function) if isinstance(raw, classmethod) else function)
        yield
    finally:
        for owner, name, raw in undo:
            setattr(owner, name, raw)


def profile(queries: Sequence[Make], rounds: int, folder: Path, warmer: Make) -> list[dict[str, float]]:
    """For each query the milliseconds of each stage: those of the round that took least."""
    best: list[dict[str, float]] = [{} for _ in queries]
    for number in range(rounds):
        with empty_store(folder / f"profile{number}", warmer):
            for at, query in enumerate(queries):
                watch = Stopwatch()
                with watched(watch):
                    query().collect()
                    settle()
                if not best[at] or sum(watch.seconds.values()) < sum(best[at].values()):
                    best[at] = watch.seconds
    return [{stage: seconds * 1e3 for stage, seconds in found.items()} for found in best]


def tell(report: Report, kind: str, words: str, times: Sequence[Times], stages: Sequence[dict[str, float]]) -> None:
    extra, kept = [each.extra * 1e3 for each in times], [each.extra_until_kept * 1e3 for each in times]
    plain, ours = sum(min(each.plain) for each in times), sum(min(each.ours) for each in times)
    report.begin(f"Overhead, nothing to reuse, results kept: {words}")
    report.add(f"{kind}_plain_s", "plain Polars, all queries", plain, "s")
    report.add(f"{kind}_nectar_s", "under Nectar, all queries, until the frames are there", ours, "s")
    report.add(f"{kind}_total_ratio", "the second to the first", ours / plain, "")
    report.add(f"{kind}_overhead_ms", "extra time of a query, until the frame is there", extra, "ms", "1 % + 5 ms")
    report.add(f"{kind}_ratio", "ratio of a query's times", [each.ratio for each in times], "")
    cheap = sum(each.is_cheap for each in times)
    report.add(f"{kind}_within_aim", f"queries within 1 % + 5 ms, of {len(times)}", cheap, "")
    report.add(f"{kind}_until_kept_ms", "extra time of a query, until its result is kept", kept, "ms")
    own = [sum(found.values()) for found in stages]
    report.add(f"{kind}_own_ms", "time of a query spent in Nectar itself", own, "ms", "1 % + 5 ms")
    few = sum(spent <= min(each.plain) * 10 + 5 for spent, each in zip(own, times, strict=True))
    report.add(f"{kind}_own_within_aim", f"queries for which that is within 1 % + 5 ms, of {len(times)}", few, "")
    for stage, _, _ in STAGES:
        name = stage.replace(" ", "_").replace(",", "")
        report.add(f"{kind}_{name}_ms", f"  of that: {stage}", [found.get(stage, 0.0) for found in stages], "ms")


def main(folder: str, scale: str, rounds: str, scratch: str) -> None:
    tables, where = tpch.generate(Path(folder), float(scale)), Path(scratch)
    check_answers(tables)
    sales = where / "sales.parquet"
    trivial.write_sales(sales)
    large = [lambda query=query: query(tables) for query in tpch.QUERIES.values()]
    small = [lambda at=at: trivial.queries(sales)[at] for at in range(len(trivial.queries(sales)))]

    def warmer() -> pl.LazyFrame:
        return pl.scan_parquet(sales).select(pl.col("sale").sum())

    report = Report()
    for kind, words, queries, repeats in (
        ("tpch", f"the 22 queries of TPC-H, scale {scale}", large, int(rounds)),
        ("trivial", f"{len(small)} queries of a few ms", small, int(rounds) * 2),
    ):
        times = measure(queries, repeats, where / kind, warmer)
        tell(report, kind, words, times, profile(queries, 2, where / f"{kind}-profile", warmer))
        worst = max(range(len(times)), key=lambda at: times[at].extra)
        middle = median(min(each.plain) for each in times) * 1e3
        report.notes.append(
            f"{words}: the median query takes {middle:.1f} ms as plain Polars; number {worst + 1} has most extra "
            f"time, {times[worst].extra * 1e3:.1f} ms over {min(times[worst].plain) * 1e3:.1f} ms."
        )
    print(report.written())


if __name__ == "__main__":
    main(*sys.argv[1:])
