"""Functions as people write them, for measuring fingerprints: helpers, closures, methods, frames, configuration.

Nothing here is called by the benchmark; it is only fingerprinted. All of it is pure, so that nothing is refused.
"""

from __future__ import annotations

import datetime as dt
import enum
import functools
import itertools
import json
import math
import operator
import re
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl

# configuration and constants, as they lie at the top of modules

VAT = Decimal("0.19")
CURRENCIES = {"EUR": 1.0, "USD": 0.92, "GBP": 1.17, "CHF": 1.04}
COLUMNS = ("id", "customer", "amount", "currency", "when")
STOP_WORDS = frozenset({"a", "an", "and", "of", "or", "the", "to", "in"})
WORD = re.compile(r"[a-z']+", re.IGNORECASE)
PRICES = {f"article-{number:05d}": number * 0.25 for number in range(10_000)}
WEIGHTS = np.arange(131_072, dtype=np.float64)  # 1 MiB
EPOCH = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


class Level(enum.IntEnum):
    LOW = 1
    MIDDLE = 2
    HIGH = 3


@dataclass(frozen=True)
class Order:
    id: int
    customer: str
    amount: float
    currency: str = "EUR"
    tags: tuple[str, ...] = ()

    @property
    def in_euro(self) -> float:
        return self.amount * CURRENCIES[self.currency]

    def with_tax(self) -> float:
        return float(Decimal(str(self.in_euro)) * (1 + VAT))


@dataclass
class Report:
    title: str
    rows: list[tuple[str, float]] = field(default_factory=list)

    def lines(self) -> list[str]:
        return [f"{name:<20}{value:>10.2f}" for name, value in self.rows]


class Shape:
    unit = "m2"

    def area(self) -> float:
        raise NotImplementedError

    def describe(self) -> str:
        return f"{self.area():.1f} {self.unit}"


class Polygon(Shape):
    def __init__(self, points: list[tuple[float, float]]) -> None:
        self.points = points

    def edges(self):
        return zip(self.points, self.points[1:] + self.points[:1], strict=True)

    def area(self) -> float:
        return abs(sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in self.edges())) / 2


class Rectangle(Polygon):
    def __init__(self, width: float, height: float) -> None:
        super().__init__([(0, 0), (width, 0), (width, height), (0, height)])


class Square(Rectangle):
    def __init__(self, side: float) -> None:
        super().__init__(side, side)


class Circle(Shape):
    def __init__(self, radius: float) -> None:
        self.radius = radius

    def area(self) -> float:
        return math.pi * self.radius**2


class Scaler:
    """A callable object with state."""

    def __init__(self, factor: float, offset: float = 0.0) -> None:
        self.factor = factor
        self.offset = offset

    def __call__(self, value: float) -> float:
        return value * self.factor + self.offset

    def inverse(self, value: float) -> float:
        return (value - self.offset) / self.factor

    @classmethod
    def between(cls, low: float, high: float) -> Scaler:
        return cls(1 / (high - low), -low / (high - low))

    @staticmethod
    def clip(value: float) -> float:
        return min(max(value, 0.0), 1.0)


# small helpers and what is built of them


def clean(text: str) -> str:
    return " ".join(text.split()).strip().lower()


def words(text: str) -> list[str]:
    return [word for word in WORD.findall(clean(text)) if word not in STOP_WORDS]


def word_counts(texts: list[str]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(words(text))
    return dict(counts.most_common(100))


def to_euro(amount: float, currency: str) -> float:
    try:
        return round(amount * CURRENCIES[currency], 2)
    except KeyError:
        return math.nan


def parse_when(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).astimezone(dt.UTC)


def parse_order(line: str) -> Order | None:
    parts = line.rstrip("\n").split(";")
    if len(parts) != len(COLUMNS):
        return None
    values = dict(zip(COLUMNS, parts, strict=True))
    return Order(int(values["id"]), clean(values["customer"]), float(values["amount"]), values["currency"])


def parse_orders(lines: list[str]) -> list[Order]:
    return [order for order in map(parse_order, lines) if order is not None and order.amount > 0]


def totals_by_customer(lines: list[str]) -> dict[str, float]:
    totals: defaultdict[str, float] = defaultdict(float)
    for order in parse_orders(lines):
        totals[order.customer] += to_euro(order.amount, order.currency)
    return dict(totals)


def report(lines: list[str]) -> list[str]:
    rows = sorted(totals_by_customer(lines).items(), key=lambda row: (-row[1], row[0]))
    return Report("customers", rows).lines()


def level_of(value: float) -> Level:
    match value:
        case _ if value < 10:
            return Level.LOW
        case _ if value < 100:
            return Level.MIDDLE
        case _:
            return Level.HIGH


def flatten(record: dict, prefix: str = "") -> dict:
    flat = {}
    for key, value in record.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat


def from_json(line: str) -> dict:
    return flatten(json.loads(line))


def moving_average(values: list[float], width: int = 7) -> list[float]:
    sums = itertools.accumulate(values, operator.add, initial=0.0)
    known = list(sums)
    return [(known[at] - known[at - width]) / width for at in range(width, len(known))]


def outliers(values: list[float], limit: float = 3.0) -> list[float]:
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    return [value for value in values if abs(value - mean) > limit * deviation]


def batches(items, size: int = 100):
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, size)):
        yield batch


def total_area(side: float) -> float:
    shapes: list[Shape] = [Square(side), Rectangle(side, 2 * side), Circle(side)]
    return sum(shape.area() for shape in shapes)


def discounted(order: Order, share: float) -> Order:
    return replace(order, amount=order.amount * (1 - share), tags=(*order.tags, "discount"))


def price_of(article: str, count: int) -> float:
    return PRICES.get(article, 0.0) * count


def weighted(values):
    return float(np.dot(WEIGHTS[: len(values)], values) / WEIGHTS[: len(values)].sum())


# decorators and closures


def checked(function):
    @functools.wraps(function)
    def wrapper(*arguments, **options):
        result = function(*arguments, **options)
        if result is None:
            raise ValueError("no result")
        return result

    return wrapper


@checked
def first_order(lines: list[str]):
    return next(iter(parse_orders(lines)), None)


def make_threshold(low: float, high: float):
    def inside(value: float) -> bool:
        return low <= value < high

    return inside


def compose(*functions):
    def composed(value):
        return functools.reduce(lambda result, function: function(result), functions, value)

    return composed


# frames


def clean_frame(frame: pd.DataFrame) -> pd.DataFrame:
    result = frame.dropna(subset=["amount"]).copy()
    result["customer"] = result["customer"].map(clean)
    return result.assign(euro=[to_euro(a, c) for a, c in zip(result["amount"], result["currency"], strict=True)])


def monthly(frame: pd.DataFrame) -> pd.DataFrame:
    cleaned = clean_frame(frame)
    return cleaned.groupby(cleaned["when"].dt.to_period("M")).agg({"euro": ["sum", "mean"], "id": "count"})


def top_customers(frame: pl.LazyFrame, count: int = 10) -> pl.LazyFrame:
    return (
        frame.filter(pl.col("amount") > 0)
        .with_columns(euro=pl.col("amount") * pl.col("currency").replace_strict(CURRENCIES, default=None))
        .group_by("customer")
        .agg(pl.col("euro").sum(), orders=pl.len())
        .sort("euro", descending=True)
        .head(count)
    )


def with_words(frame: pl.LazyFrame) -> pl.LazyFrame:
    return frame.with_columns(pl.col("text").map_elements(words, return_dtype=pl.List(pl.String)))


def standardise(matrix):
    return (matrix - matrix.mean(axis=0)) / np.where(matrix.std(axis=0) == 0, 1, matrix.std(axis=0))


def nearest(matrix, point):
    distances = np.sqrt(((standardise(matrix) - point) ** 2).sum(axis=1))
    return int(np.argmin(distances))


TOTAL = pl.col("amount").sum().over("customer")


def share_of_customer(frame: pl.LazyFrame) -> pl.LazyFrame:
    return frame.with_columns(share=pl.col("amount") / TOTAL)


FUNCTIONS = {
    "lambda": lambda value: value * 2 + 1,
    "lambda over a helper": lambda text: clean(text)[:10],
    "clean": clean,
    "words": words,
    "word_counts": word_counts,
    "to_euro": to_euro,
    "parse_when": parse_when,
    "parse_order": parse_order,
    "parse_orders": parse_orders,
    "totals_by_customer": totals_by_customer,
    "report": report,
    "level_of": level_of,
    "from_json": from_json,
    "moving_average": moving_average,
    "outliers": outliers,
    "batches": batches,
    "decorated": first_order,
    "closure": make_threshold(1.0, 2.5),
    "composed closures": compose(clean, words, len),
    "partial": functools.partial(moving_average, width=30),
    "method": Scaler(2.0).inverse,
    "class method": Scaler.between,
    "static method": Scaler.clip,
    "callable object": Scaler(2.0, 1.0),
    "dataclass": Order,
    "dataclass user": discounted,
    "class hierarchy": total_area,
    "pandas": clean_frame,
    "pandas, grouped": monthly,
    "polars": top_customers,
    "polars with a function": with_words,
    "polars expression": share_of_customer,
    "numpy": nearest,
    "10,000 entry dict": price_of,
    "1 MiB array": weighted,
}
