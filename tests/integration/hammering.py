"""One of many processes that use a store as hard as they can: python -m tests.integration.hammering HOME SEED SECONDS.

Keeps, looks up, opens, leases, evicts and sweeps at random, and compares every byte it reads. Its last line is what it
did, as JSON; whatever went wrong is in it.
"""

import json
import logging
import random
import sys
import time

from tests.catalog.making import key, opened, value

from nectar.catalog.service import Kept
from nectar.store.problem import Gone
from nectar.store.read import Result

BUDGET = 1_500_000
LARGEST = 40_000
KEYS = 400


def size_of(number: int) -> int:
    """Bytes of the value under a key: a tenth of them so few that they lie inline."""
    return 100 if number % 10 == 0 else 2000 + number * 7919 % (LARGEST - 2000)


def open_here(home):
    """The store of this test."""
    return opened(home, budget=BUDGET, inline=256, protect=5)


class Heard(logging.Handler):
    """Everything that the catalog complains about."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps a line."""
        self.lines.append(record.getMessage())


class Hammer:
    """What one process does."""

    def __init__(self, home: str, seed: int) -> None:
        self.catalog = open_here(home)
        self.random = random.Random(seed)
        self.written = self.kept = self.read = self.gone = self.evicted = self.swept = self.leased = (
            self.turned_away
        ) = 0
        self.wrong: list[str] = []

    def work(self, until: float, least: int) -> None:
        """Hammers until then, and until so many bytes are written, however busy the machine is."""
        actions = [self.keep] * 10 + [self.open] * 8 + [self.lease] * 2 + [self.evict, self.enforce, self.sweep]
        while (time.monotonic() < until or self.written < least) and not self.wrong:
            self.random.choice(actions)(self.random.randrange(KEYS))

    def keep(self, number: int) -> None:
        """Keeps a result; where there is no room the caller goes on."""
        done = self.catalog.keep(key(number), key(number % 5), value(number, size_of(number)), seconds=1.0)
        self.written += size_of(number)
        if isinstance(done, Kept):
            self.kept += 1
        else:
            self.turned_away += 1
            if "no room" not in done.reason:
                self.wrong.append(done.reason)

    def open(self, number: int) -> None:
        """Reads a result, whole, or hears that it is evicted."""
        known = self.catalog.lookup([key(number)], [key(number % 5)])[0].entry
        if known is not None:
            self.compare(number, known, may_be_gone=True)

    def compare(self, number: int, known, may_be_gone: bool) -> None:
        """Opens an entry and compares every byte."""
        found = self.catalog.open(known)
        if isinstance(found, Result):
            with found:
                if bytes(found.to_object()) != value(number, size_of(number)):
                    self.wrong.append(f"{number} has wrong bytes")
            self.read += 1
        elif isinstance(found, Gone) and may_be_gone:
            self.gone += 1
        else:
            self.wrong.append(f"{number}: {found}")

    def lease(self, number: int) -> None:
        """A leased result stays, whatever the others do."""
        known = self.catalog.lookup([key(number)], [key(number % 5)])[0].entry
        leases = [] if known is None else self.catalog.lease([known], 60.0)
        if leases:
            self.leased += 1
            for _ in range(3):
                self.keep(self.random.randrange(KEYS))
                self.compare(number, known, may_be_gone=False)
            self.catalog.end(leases)

    def evict(self, number: int) -> None:
        """Evicts a few, whatever they are worth."""
        plan = self.catalog.collector.plan(everything=True)
        self.catalog.collector.evict(self.random.sample(plan, min(5, len(plan))))
        self.evicted += 1

    def enforce(self, number: int) -> None:
        """Keeps the budget, as a background pass would."""
        self.catalog.collector.enforce()

    def sweep(self, number: int) -> None:
        """Sweeps without grace: only entries and leases protect what others write at this moment."""
        self.swept += len(self.catalog.collector.sweep(grace=0.0).swept)


def main(home: str, seed: str, seconds: str, least: str) -> None:
    """Hammers, and says what happened."""
    heard = Heard()
    logging.getLogger("nectar").addHandler(heard)
    hammer = Hammer(home, int(seed))
    try:
        hammer.work(time.monotonic() + float(seconds), int(least))
        hammer.catalog.close()
    except Exception as error:
        hammer.wrong.append(repr(error))
        raise
    finally:
        hammer.wrong += heard.lines
        print(json.dumps({name: each for name, each in vars(hammer).items() if name not in ("catalog", "random")}))


if __name__ == "__main__":
    main(*sys.argv[1:])
