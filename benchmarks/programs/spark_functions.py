"""Functions as people give them to Spark: text, numbers, tables, classes, pandas, and chains of fifty."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache, partial

import numpy as np
import pandas as pd
from benchmarks.programs import fifty

WORD = re.compile(r"[a-z]+")
RATES = {f"C{number:03}": number / 7 for number in range(2000)}
WEIGHTS = np.linspace(0, 1, 100_000)
HOLIDAYS = frozenset(date(2000, 1, 1) + timedelta(days=30 * number) for number in range(120))


def words(text):
    return Counter(WORD.findall(str(text).lower())).most_common(1)


def converted(value):
    return value * RATES.get(f"C{int(value) % 2000:03}", 1.0)


def weighted(value):
    return float(WEIGHTS[int(value) % len(WEIGHTS)]) * value


def next_working_day(days):
    day = date(2000, 1, 1) + timedelta(days=int(days))
    while day in HOLIDAYS or day.weekday() > 4:
        day += timedelta(days=1)
    return day.isoformat()


def record(value):
    return json.loads(json.dumps({"value": value, "squares": [value**power for power in range(5)]}))["squares"][-1]


def rounded(value):
    return str(Decimal(str(value)).quantize(Decimal("0.01")))


@lru_cache(maxsize=100)
def factorials(value):
    return math.log(math.factorial(int(value) % 50))


def spread(value):
    return statistics.pstdev([value, value + 1, value * 2])


@dataclass(frozen=True)
class Band:
    name: str
    low: float
    high: float

    def holds(self, value):
        return self.low <= value < self.high


class Classifier:
    """Which band a value is in."""

    def __init__(self, *bands):
        self.bands = bands

    def __call__(self, value):
        return next((band.name for band in self.bands if band.holds(value)), None)


def between(low, high, value):
    return low <= value < high


def standardised(values):
    values = pd.Series(values)
    return (values - values.mean()) / (values.std() or 1.0)


FUNCTIONS = {
    "words": words, "converted": converted, "weighted": weighted, "next_working_day": next_working_day,
    "record": record, "rounded": rounded, "factorials": factorials, "spread": spread, "standardised": standardised,
    "classifier": Classifier(Band("low", 0, 10), Band("high", 10, math.inf)), "partial": partial(between, 1, 5),
    **fifty.FUNCTIONS,
}  # fmt: skip
