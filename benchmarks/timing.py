"""The functions that are measured, and how long one call takes. Needs nothing but the programs' own libraries."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from statistics import median
from time import perf_counter

PROGRAMS = ("benchmarks.programs.application", "benchmarks.programs.fifty")
BUDGET = 0.4  # seconds for one tool and one function, so that slow peers do not take minutes


def functions() -> dict[str, object]:
    """The functions to measure, by name."""
    found: dict[str, object] = {}
    for name in PROGRAMS:
        found.update(importlib.import_module(name).FUNCTIONS)
    return found


def timed(
    call: Callable[[object], object], function: object, repeats: int, before: Callable[[], None] | None = None
) -> float | None:
    """The median of several calls in microseconds; None if the tool cannot do it."""
    times: list[float] = []
    spent = 0.0
    while len(times) < repeats and (spent < BUDGET or not times):
        if before is not None:
            before()
        start = perf_counter()
        try:
            call(function)
        except Exception:
            return None
        times.append(perf_counter() - start)
        spent += times[-1]
    return median(times) * 1e6
