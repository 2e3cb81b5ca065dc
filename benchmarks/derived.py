"""Derived data: what a year of reading, deleting and making again costs; how long questions about provenance take.

    python benchmarks/derived.py [--results 5000] [--runs 7] [--names 1000] [--readings 20] [--days 365]

The year is that of derived_year.py, under four policies. The graph of the provenance is known: a chain of results, each
made from the one before, from a file of its own and by two functions, one of which all share; and as many results again
that were all made from the last of the chain. Each answer is compared with it, whole. Prints tables for people, then
one line of JSON with the figures. A time is the median of several runs, in milliseconds; the time of the processor and
the slowest run stand beside it. On a machine with other work only the time of the processor says much.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.derived_year import DAYS, SHARE, years  # noqa: E402 - found by way of the line above

from nectar.catalog.index.sqlite import SqliteIndex  # noqa: E402
from nectar.model.lineage import FileRead, FunctionUsed, Lineage, Made, Provenance, Sources  # noqa: E402
from nectar.report.lineage import LineageReport  # noqa: E402

CLEAN = FunctionUsed(bytes(32), "etl.clean", "etl.py:4", "def clean(x):\n    return x\n")


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def url(number: int) -> str:
    return f"/data/day-{number}.parquet"


def named(length: int) -> range:
    """Numbers of the results that have a name."""
    return range(length + 1, 2 * length + 1, 10)


def name_of(number: int) -> str:
    return f"team/name-{number}"


def provenance(number: int, above: tuple[bytes, ...]) -> Provenance:
    own = FunctionUsed(key(number), f"etl.step_{number}", "etl.py:9", f"def step(x):\n    return x + {number}\n")
    made = Made(
        key(number), key(number), f"step {number}", "me@host", float(number), 1.0, 10, 100, bytes(32), "polars", ""
    )
    return Provenance(made, Sources((FileRead(url(number), key(number), 7),), (CLEAN, own), above))


def fill(index: SqliteIndex, results: int) -> list[float]:
    """The graph is there; seconds that each result took."""
    seconds = []
    for number in range(1, results + 1):
        above = (key(number - 1),) if number > 1 else ()
        for each in (provenance(number, above), provenance(results + number, (key(results),))):
            begun = perf_counter()
            index.record(each)
            seconds.append(perf_counter() - begun)
    for number in named(results):
        index.bind(name_of(number), key(number), "me@host", 1.0)
    return seconds


@dataclass(frozen=True, slots=True)
class Truth:
    """What an answer has to hold. results: by number. origins: whether files and functions are told as well."""

    results: frozenset[int]
    origins: bool
    length: int

    @property
    def made_from(self) -> set[tuple[int, int]]:
        every = {(each, min(each - 1, self.length)) for each in self.results if each > 1}
        return {(each, source) for each, source in every if source in self.results}

    def expect(self, question: str, found: Lineage) -> None:
        """Ends the program if an answer is not the truth."""
        number = {at: int.from_bytes(made.key, "big") for at, made in found.results.items()}
        told = {
            "results": frozenset(number.values()),
            "made from": {(number[result], number[source]) for result, source in found.made_from},
            "files": {file.url for file in found.files.values()},
            "functions": {function.name for function in found.functions.values()},
            "names": {name.name for name, _ in found.names},
            "who read what": {
                (number[result], found.files[file].url)
                for result, stream in found.reads
                for file in found.streams[stream]
            },
        }
        of_files = self.results if self.origins else frozenset()
        true = {
            "results": self.results,
            "made from": self.made_from,
            "files": {url(each) for each in of_files},
            "functions": {f"etl.step_{each}" for each in of_files} | ({CLEAN.name} if of_files else set()),
            "names": {name_of(each) for each in named(self.length) if each in self.results},
            "who read what": {(each, url(each)) for each in of_files},
        }
        for what, expected in true.items():
            if told[what] != expected:
                raise SystemExit(f"{question}: {what} are not what they are in truth")


def questions(index: SqliteIndex, length: int) -> dict[str, tuple[Callable[[], Lineage], Truth]]:
    """What is asked, and what is true."""
    everything = Truth(frozenset(range(1, 2 * length + 1)), False, length)
    chain = Truth(frozenset({*range(1, length + 1), 2 * length}), True, length)
    one = Truth(frozenset({1}), True, length)
    wide = Truth(frozenset({length, *range(length + 1, 2 * length + 1)}), False, length)
    return {
        "upstream of the last": (lambda: index.trace_results([key(2 * length)], "upstream"), chain),
        "downstream of the first": (lambda: index.trace_results([key(1)], "downstream"), everything),
        "downstream of the widest": (lambda: index.trace_results([key(length)], "downstream"), wide),
        "downstream of a file": (lambda: index.trace_input(url(1), "downstream"), everything),
        "downstream of a function": (lambda: index.trace_function("etl.clean", "downstream"), everything),
        "upstream of one": (lambda: index.trace_results([key(1)], "upstream"), one),
    }


def provenance_figures(results: int, runs: int) -> dict[str, object]:
    """Each question is asked several times."""
    figures: dict[str, object] = {"results": 2 * results}
    with tempfile.TemporaryDirectory() as folder:
        index = SqliteIndex(Path(folder) / "catalog.db")
        seconds = fill(index, results)
        figures["record_ms"] = round(1000 * median(seconds), 3)
        print(f"provenance of {2 * results:,} results\n  {'writing one down':<26} {1000 * median(seconds):7.2f} ms")
        for name, (ask, truth) in questions(index, results).items():
            times, processor = [], []
            for _ in range(runs):
                begun, begun_processor = perf_counter(), process_time()
                found = ask()
                times.append(1000 * (perf_counter() - begun))
                processor.append(1000 * (process_time() - begun_processor))
            truth.expect(name, found)
            figures[f"{name.replace(' ', '_')}_ms"] = round(median(times), 1)
            figures[f"{name.replace(' ', '_')}_processor_ms"] = round(median(processor), 1)
            print(
                f"  {name:<26} {median(times):7.1f} ms ({median(processor):.1f} of the processor), "
                f"{max(times):7.1f} the slowest, {len(truth.results):,} results"
            )
        begun = perf_counter()
        length = len(str(LineageReport("last", index.trace_results([key(2 * results)], "upstream"))))
        figures["as_a_text_ms"] = round(1000 * (perf_counter() - begun), 1)
        print(f"  {'asked, and as a text':<26} {figures['as_a_text_ms']:7.1f} ms, {length:,} characters")
        index.close()
    return figures


def year_figures(names: int, readings: int, days: int) -> dict[str, object]:
    """The same year under each policy."""
    figures: dict[str, object] = {"names": names, "readings": readings * days}
    print(f"\n{days} days, {names:,} names, {readings * days:,} readings, room for {SHARE:.0%} of what they add up to")
    print(f"  {'policy':<14} {'made again':>10} {'of readings':>12} {'hours of that':>14} {'most held':>10}")
    for year in years(names, readings, days):
        hours = year.seconds / 3600
        share = year.rebuilds / year.readings
        print(f"  {year.policy:<14} {year.rebuilds:>10,} {share:>12.0%} {hours:>14.1f} {year.peak:>10.1%}")
        name = year.policy.replace("-", "_")
        figures |= {
            f"{name}_rebuilds": year.rebuilds, f"{name}_rebuild_hours": round(hours, 2),
            f"{name}_peak_of_budget": round(year.peak, 4),
        }  # fmt: skip
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, default=5_000, help="deep, and as many wide")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--names", type=int, default=1_000)
    parser.add_argument("--readings", type=int, default=20, help="a day")
    parser.add_argument("--days", type=int, default=DAYS)
    given = parser.parse_args()
    figures = provenance_figures(given.results, given.runs)
    figures |= year_figures(given.names, given.readings, given.days)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
