"""A year in which a thousand named results are read, and the store has room for a fifth of them.

In: results with sizes, costs and what each is made from; readings of them over the days, some names much more often
than others, and not the same ones all year. Each policy sees the same year, on a clock that is moved by hand, through
the real catalog, store and collector; only the programs are stood in for, by bytes of a known size that take a known
time. Out: how often and at what cost results had to be made again. Law: the store is never over its budget, and every
reading gets the bytes that were asked for; otherwise there is no figure.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Final

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from nectar.catalog.collect import Collector  # noqa: E402 - found by way of the line above
from nectar.catalog.embedded import open_catalog  # noqa: E402
from nectar.catalog.policies import POLICIES  # noqa: E402
from nectar.catalog.service import Catalog, NotKept  # noqa: E402
from nectar.catalog.state import Candidate, Policy  # noqa: E402
from nectar.clock import ManualClock  # noqa: E402
from nectar.model.entry import Entry  # noqa: E402
from nectar.settings import Settings  # noqa: E402
from nectar.store.read import Result  # noqa: E402

DAY: Final = 86400.0
DAYS: Final = 365
SHARE: Final = 0.2  # of what all results add up to: the budget
_SKEW: Final = 0.9  # the name of rank r is read in proportion to 1 / r ** _SKEW
_DRIFT: Final = 0.01  # of all names, so many get another rank each day
_DISK_EVERY: Final = 100  # readings between two looks at the disk itself


class LeastFrequentlyUsed:
    """Least often used first; those used equally often by time since last use."""

    name = "lfu"

    def expendability(self, candidate: Candidate, now: float) -> float:
        """Minus the number of uses; the time breaks ties and no more."""
        return -candidate.hits + min(now - candidate.used, 1e9) / 1e10


@dataclass(frozen=True, slots=True)
class Item:
    """A named result. seconds: that making it takes, once what it is made from is there."""

    number: int
    size: int
    seconds: float
    above: int | None

    @property
    def name(self) -> str:
        return f"team/{self.number}"

    @property
    def key(self) -> bytes:
        return self.number.to_bytes(32, "big")

    @property
    def content(self) -> bytes:
        return self.number.to_bytes(8, "big") * (self.size // 8)


@dataclass(frozen=True, slots=True)
class Reading:
    """Somebody reads a name."""

    at: float
    number: int


@dataclass(slots=True)
class Year:
    """What came of a year under one policy. peak: the most that the store ever held, as a share of its budget."""

    policy: str
    readings: int = 0
    rebuilds: int = 0
    seconds: float = 0.0
    peak: float = 0.0


def items(count: int, random: Random) -> list[Item]:
    """Sizes and costs differ widely, and not together; three of ten are made from an earlier one."""
    found = []
    for number in range(count):
        size = 8 * round(min(max(random.lognormvariate(9.2, 1.0), 600), 200_000) / 8)
        seconds = min(random.lognormvariate(4.0, 1.5), 20_000)
        above = random.randrange(number) if number and random.random() < 0.3 else None
        found.append(Item(number, size, seconds, above))
    return found


def readings(count: int, each_day: int, days: int, random: Random) -> list[Reading]:
    """Names by rank, most often the first; each day some names change places."""
    ranked = random.sample(range(count), count)
    weights = list(accumulate(1 / rank**_SKEW for rank in range(1, count + 1)))
    found = []
    for day in range(days):
        moments = sorted(random.random() for _ in range(each_day))
        numbers = random.choices(ranked, cum_weights=weights, k=each_day)
        found += [Reading((day + at) * DAY, number) for at, number in zip(moments, numbers, strict=True)]
        for _ in range(max(1, round(count * _DRIFT))):
            one, other = random.randrange(count), random.randrange(count)
            ranked[one], ranked[other] = ranked[other], ranked[one]
    return found


class Run:
    """A year under one policy."""

    def __init__(self, folder: Path, every: Sequence[Item], policy: Policy) -> None:
        self._every = every
        self._clock = ManualClock()
        self._results = folder / "results"
        self._budget = int(SHARE * sum(item.size for item in every))
        settings = Settings(home=folder, budget=self._budget, reserve=0, inline=0)
        self._catalog: Catalog = open_catalog(settings, clock=self._clock)
        collector: Collector = self._catalog.collector
        collector.policy = policy
        self.year = Year(policy.name)

    def run(self, given: Sequence[Reading]) -> Year:
        """All names are given, then read through the year."""
        for item in self._every:
            self._present(item)
            self._catalog.bind(item.name, item.key)
        self.year.rebuilds, self.year.seconds = 0, 0.0  # making them for the first time is no rebuild
        begun = self._clock.now()
        for count, reading in enumerate(given):
            self._clock.move(max(0.0, begun + reading.at - self._clock.now()))
            self._read(self._every[reading.number])
            if count % _DISK_EVERY == 0:
                self._expect_within(sum(map(_size, self._results.rglob("*"))))
        self.year.readings = len(given)
        self._catalog.close()
        return self.year

    def _read(self, item: Item) -> None:
        name = self._catalog.index.resolve(item.name)
        assert name is not None
        result = self._catalog.open(self._present(item))
        if name.key != item.key or not isinstance(result, Result):
            raise AssertionError(f"{item.name} cannot be read: {result}")
        with result:
            if result.to_object() != item.content:
                raise AssertionError(f"{item.name} holds something else")

    def _present(self, item: Item) -> Entry:
        """The entry of a result, which is made again if it was deleted, after what it is made from."""
        known = self._catalog.index.lookup([item.key]).get(item.key)
        if known is not None:
            return known
        above = [] if item.above is None else [self._present(self._every[item.above])]
        for entry in above:
            opened = self._catalog.open(entry)
            if not isinstance(opened, Result):
                raise AssertionError(f"{entry.about} cannot be read: {opened}")
            opened.close()
        self._clock.move(item.seconds)
        kept = self._catalog.keep(
            item.key, item.key, item.content, seconds=item.seconds, made_from=above, about=item.name
        )
        if isinstance(kept, NotKept):
            raise AssertionError(f"{item.name} is not kept: {kept.reason}")
        self.year.rebuilds += 1
        self.year.seconds += item.seconds
        self._expect_within(self._catalog.usage().total)
        return kept.entry

    def _expect_within(self, held: int) -> None:
        self.year.peak = max(self.year.peak, held / self._budget)
        if held > self._budget:
            raise AssertionError(f"the store holds {held:,} bytes, and its budget is {self._budget:,}")


def _size(path: Path) -> int:
    try:
        return os.lstat(path).st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0


def years(count: int, each_day: int, days: int, seed: int = 7) -> list[Year]:
    """The same year under each policy."""
    every = items(count, Random(seed))
    given = readings(count, each_day, days, Random(seed + 1))
    found = []
    for policy in (POLICIES["cost-benefit"], POLICIES["lru"], LeastFrequentlyUsed(), POLICIES["gdsf"]):
        with tempfile.TemporaryDirectory() as folder:
            found.append(Run(Path(folder), every, policy).run(given))
    return found
