"""The program of `nectar demo memo`: a report on orders with helpers two modules away, and its edits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

SHOP: Final = """\
import sys

import nectar
from pricing import price


@nectar.memo
def revenue(orders, month):
    rows = [line.split(",") for line in orders.read_text().splitlines()]
    return sum(price(int(cents)) for at, cents in rows if int(at) == month)


@nectar.memo
def report(orders):
    return {month: revenue(orders, month) for month in range(1, 5)}


if __name__ == "__main__":
    print(report(nectar.File(sys.argv[1])))
    print(nectar.last_run().details())
"""
PRICING: Final = """\
from tax import with_tax


def price(cents):
    total = 0
    for step in range(15000):  # stands for work that takes its time
        total += with_tax(cents) % (step + 7)
    return total
"""
TAX: Final = """\
RATE = 19


def with_tax(cents):
    return cents * (100 + RATE) // 100
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One run of the program. reused, computed: how many calls must be; because: what the reason must name."""

    title: str
    reused: int
    computed: int
    because: str = ""
    changes: dict[str, tuple[str, str]] = field(default_factory=dict)
    new_orders: bool = False
    moved: bool = False


STEPS: Final = (
    Step("the first run", 0, 5, "first time"),
    Step("again, in another process", 1, 0),
    Step(
        "reformatted, renamed, commented, in another folder", 1, 0,
        changes={
            "shop.py": ("rows = [line", "# all orders\n    rows = [line"),
            "pricing.py": ("def price(cents):\n    total", 'def price(cents):\n    """The price."""\n\n    total'),
        },
        moved=True,
    ),
    Step("one more month in the report", 4, 2, "its code changed", changes={"shop.py": ("range(1, 5)", "range(1, 6)")}),
    Step("another tax rate, two modules away", 0, 6, "was 19, is 21", changes={"tax.py": ("19", "21")}),
    Step("the old tax rate is back", 1, 0, changes={"tax.py": ("21", "19")}),
    Step("an order comes in", 0, 6, "content of its input", new_orders=True),
)  # fmt: skip


def files_of(step: Step, files: dict[str, str]) -> dict[str, str]:
    """The program after the edits of a step."""
    edited = dict(files)
    for name, (old, new) in step.changes.items():
        edited[name] = edited[name].replace(old, new)
    return edited


def orders(count: int) -> str:
    """A file of orders: month and cents, a line each."""
    return "".join(f"{at % 6 + 1},{at * 37 % 9000 + 100}\n" for at in range(count))
