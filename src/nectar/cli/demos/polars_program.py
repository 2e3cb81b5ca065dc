"""The program of `nectar demo polars`: a report on a log of clicks, with a function two modules away, and its edits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

REPORT: Final = """\
import sys

import polars as pl
from visits import attention

clicks = pl.scan_parquet(f"{sys.argv[1]}/*.parquet")
pages = (
    clicks.filter(pl.col("status") == 200)
    .with_columns(pl.col("seconds").map_batches(attention, return_dtype=pl.UInt32, is_elementwise=True))
    .group_by("page")
    .agg(visits=pl.len(), seconds=pl.col("seconds").sum(), visitors=pl.col("user").n_unique())
)
print(pages.collect().height, "pages")
print(pages.sort("seconds", descending=True).head(5).collect())
"""
VISITS: Final = """\
from limits import capped


def attention(seconds):
    return capped(seconds)
"""
LIMITS: Final = """\
LONGEST = 600


def capped(seconds):
    return seconds.clip(0, LONGEST)
"""
# Writes days of the log: folder, first day, number of days, clicks a day.
CLICKS: Final = """\
import sys

import polars as pl

folder, first, days, clicks = sys.argv[1], *map(int, sys.argv[2:])
for day in range(first, first + days):
    number = pl.lit(pl.int_range(day * clicks, (day + 1) * clicks, dtype=pl.UInt64, eager=True))
    pl.select(
        at=(number * 86_400_000 // clicks).cast(pl.Datetime("ms")),
        user=(number.hash(1) % 500_000).cast(pl.UInt32),
        page=pl.lit("/shop/item/") + ((number.hash(2) % 1000) * (number.hash(3) % 100)).cast(pl.String),
        seconds=(number.hash(4) % 1800).cast(pl.UInt32),
        status=pl.when(number.hash(5) % 20 == 0).then(404).otherwise(200).cast(pl.UInt16),
    ).write_parquet(f"{folder}/clicks-{day:02}.parquet", compression="uncompressed", statistics=False)
"""
BYTES_PER_CLICK: Final = 21


@dataclass(frozen=True, slots=True)
class Step:
    """One run of the program.

    computed: how many queries must be; None if that depends on how fast results are written. reuses: whether any must
    come from cache, or a step of one. because: what the reason of a miss must name. options: of `nectar run`.
    """

    title: str
    computed: int | None
    reuses: bool = False
    because: str = ""
    changes: dict[str, tuple[str, str]] = field(default_factory=dict)
    options: tuple[str, ...] = ("--explain",)
    moved: bool = False
    new_day: bool = False


STEPS: Final = (
    Step("without Nectar", 0, options=("--no-cache",)),
    Step("the first run", None, because="first time"),
    Step("again, in another process", 0, reuses=True),
    Step(
        "reformatted, commented, in another folder", 0, reuses=True, moved=True,
        changes={
            "report.py": ("pages = (\n", "# what people look at\npages = (\n\n"),
            "limits.py": ("def capped(seconds):\n", 'def capped(seconds):\n    """At most so much."""\n'),
        },
    ),
    Step(
        "another last step", 1, reuses=True, because="visitors",
        changes={"report.py": ('sort("seconds"', 'sort("visitors"')},
    ),
    Step(
        "another limit, two modules away", None, because="LONGEST was 600, is 900",
        changes={"limits.py": ("600", "900")},
    ),
    Step("the old limit is back", 0, reuses=True, changes={"limits.py": ("900", "600")}),
    Step("a new day of clicks", None, because="came", new_day=True),
)  # fmt: skip


def files_of(step: Step, files: dict[str, str]) -> dict[str, str]:
    """The program after the edits of a step."""
    edited = dict(files)
    for name, (old, new) in step.changes.items():
        edited[name] = edited[name].replace(old, new)
    return edited
