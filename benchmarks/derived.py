"""How long questions about the provenance of many results take, and how long it takes to write one result down.

    python benchmarks/derived.py [--results 5000] [--runs 7]

The graph is known: a chain of results, each made from the one before, from a file of its own and by two functions, one
of which all share; and as many results again that were all made from the last of the chain. Prints a table for people,
then one line of JSON with the figures. A figure is the median of several runs, in milliseconds; the time of the
processor and the slowest run stand beside it. On a machine with other work only the time of the processor says much.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from nectar.catalog.index.sqlite import SqliteIndex  # noqa: E402 - found by way of the line above
from nectar.model.lineage import FileRead, FunctionUsed, Made, Provenance, Sources  # noqa: E402
from nectar.report.lineage import LineageReport  # noqa: E402

CLEAN = FunctionUsed(bytes(32), "etl.clean", "etl.py:4", "def clean(x):\n    return x\n")


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def provenance(number: int, above: tuple[bytes, ...]) -> Provenance:
    own = FunctionUsed(key(number), f"etl.step_{number}", "etl.py:9", f"def step(x):\n    return x + {number}\n")
    made = Made(
        key(number), key(number), f"step {number}", "me@host", float(number), 1.0, 10, 100, bytes(32), "polars", ""
    )
    return Provenance(made, Sources((FileRead(f"/data/day-{number}.parquet", key(number), 7),), (CLEAN, own), above))


def fill(index: SqliteIndex, results: int) -> list[float]:
    """The graph is there; seconds that each result took."""
    seconds = []
    for number in range(1, results + 1):
        above = (key(number - 1),) if number > 1 else ()
        for each in (provenance(number, above), provenance(results + number, (key(results),))):
            begun = perf_counter()
            index.record(each)
            seconds.append(perf_counter() - begun)
    for number in range(0, results, 10):
        index.bind(f"team/name-{number}", key(results + number + 1), "me@host", 1.0)
    return seconds


def questions(index: SqliteIndex, results: int) -> dict[str, tuple[Callable[[], Any], int]]:
    """What is asked, and how many results the answer has."""
    return {
        "upstream of the last": (lambda: index.trace_results([key(2 * results)], "upstream"), results + 1),
        "downstream of the first": (lambda: index.trace_results([key(1)], "downstream"), 2 * results),
        "downstream of a file": (lambda: index.trace_input("/data/day-1.parquet", "downstream"), 2 * results),
        "downstream of a function": (lambda: index.trace_function("etl.clean", "downstream"), 2 * results),
        "upstream of one": (lambda: index.trace_results([key(1)], "upstream"), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=int, default=5_000, help="deep, and as many wide")
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    figures: dict[str, object] = {"results": 2 * arguments.results}
    with tempfile.TemporaryDirectory() as folder:
        index = SqliteIndex(Path(folder) / "catalog.db")
        seconds = fill(index, arguments.results)
        figures["record_ms"] = round(1000 * median(seconds), 3)
        print(f"writing one result down: {1000 * median(seconds):.2f} ms")
        for name, (ask, expected) in questions(index, arguments.results).items():
            times, processor = [], []
            for _ in range(arguments.runs):
                begun, begun_processor = perf_counter(), process_time()
                found = ask()
                times.append(1000 * (perf_counter() - begun))
                processor.append(1000 * (process_time() - begun_processor))
                if len(found.results) != expected:
                    raise SystemExit(f"{name}: {len(found.results)} results, and not {expected}")
            figures[f"{name.replace(' ', '_')}_ms"] = round(median(times), 1)
            figures[f"{name.replace(' ', '_')}_processor_ms"] = round(median(processor), 1)
            print(
                f"{name:<26} {median(times):7.1f} ms ({median(processor):.1f} of the processor), "
                f"{max(times):7.1f} the slowest, {expected:,} results"
            )
        begun = perf_counter()
        length = len(str(LineageReport("last", index.trace_results([key(2 * arguments.results)], "upstream"))))
        print(f"{'as a text':<26} {1000 * (perf_counter() - begun):7.1f} ms, {length:,} characters")
        index.close()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
