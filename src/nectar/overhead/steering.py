"""Decides, before a query runs, whether Nectar looks at it or leaves it alone; and what is written down afterwards.

In: where the query stands in the program, and what is known of that site. Out: a decision, within microseconds: a loop
of ten thousand tiny queries asks ten thousand times. Law: whatever is decided, the answer is the same; a wrong decision
costs time, and the next one is better.

- A site whose queries take no longer than a look is left alone. Once one takes long, it is looked at again.
- A site whose results were found before is looked at if what it saves on average is more than what a look takes.
- Any other site is looked at as long as the budget lasts; the first few times also if a look takes little of
  the time of a query.
- A query that was left alone and took long is looked at after it has run (`is_worth_a_late_look`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from pathlib import Path
from types import FrameType
from typing import Final

from nectar.overhead import process  # noqa: F401 - notes what is there when Nectar begins
from nectar.overhead.ledger import Ledger
from nectar.overhead.sites import Site, Sites
from nectar.quantities import show_duration

_LOOK: Final = 5e-3  # seconds that a look takes, until one has been measured
_GAIN: Final = 2.0  # how many times what a look costs it must be expected to save
_SMALL: Final = 1 / 25  # share of a query's time that a look may take beyond the budget, for the first few at a site
_TRIALS: Final = 8
_CALL: Final = 0.5  # share of a function's time that looking at a call may take
_CALLS: Final = 3  # calls that are looked at in any case: the first takes longer, and says little
_QUICK: Final = 2e-3  # seconds that nobody minds who asks for a function to be remembered
_LEAST: Final = 20e-3  # seconds that values may take to be looked at in any case
_WRITING: Final = 5e8  # bytes a second, until they have been measured
_FILE: Final = 3e-3  # seconds that writing takes, however little it is
_READING: Final = 1e9  # bytes a second, from memory or a good disk


class Steering:
    """What one session knows of the sites of its program and of its own cost. Without a share nothing is left alone."""

    def __init__(
        self,
        share: float = inf,
        floor: float = 0.0,
        memory: Path | None = None,
        timer: Callable[[], float] = time.perf_counter,
        program: str | None = None,
        age: float | None = None,
    ) -> None:
        self.ledger = Ledger(share, floor, timer, time.process_time() if age is None else age)
        self.sites = Sites(memory, program)
        self.timer = timer
        self.is_free = share == inf
        self.left_alone = self.waived = 0  # queries and calls that ran without a look: quick ones, and for want of time
        self._told: dict[str, float] = {}

    # before

    def site(self, frame: FrameType | None) -> Site:
        """The site of a frame."""
        return self.sites.at(frame)

    def looks_at(self, site: Site) -> bool:
        """Whether Nectar looks at a query before it runs there."""
        if self.is_free:
            return True
        if site.runs:
            cost = self.cost_of(site)
            if site.seconds <= _GAIN * cost:
                return False
            if site.seconds * site.chance > _GAIN * cost or self._is_small(site, cost, site.seconds):
                return True
        return self.ledger.left > 0.0

    def _is_small(self, site: Site, cost: float, seconds: float) -> bool:
        """Whether a look takes little of a query's time, at a site that has not shown yet that it finds nothing."""
        return site.looks < _TRIALS and cost <= _SMALL * seconds

    def cost_of(self, site: Site) -> float:
        """Seconds that a look takes at a site, as far as that is known."""
        return site.cost or self._usual_look

    @property
    def _usual_look(self) -> float:
        return self.sites.figures.get("look") or _LOOK

    def patience(self, site: Site | None) -> float:
        """Seconds that taking the values of a query apart may take, such as what its functions refer to."""
        if self.is_free or site is None:
            return inf
        return max(_LEAST, self.ledger.left, site.seconds * max(_SMALL, site.chance / _GAIN))

    # calls of memoised functions, which people ask for

    def looks_at_call(self, site: Site) -> bool:
        """Whether Nectar looks at a call: until that has shown to take long, and longer than the function itself."""
        if self.is_free or site.tries < _CALLS or site.cost <= max(_QUICK, _CALL * site.seconds):
            return True
        if self.ledger.left > site.cost:
            return True
        return site.seconds * site.chance > _GAIN * site.cost

    def patience_of_call(self, site: Site) -> float:
        """Seconds that taking its arguments apart may take."""
        if self.is_free:
            return inf
        return max(_LEAST, self.ledger.left, site.seconds * max(_CALL / 2, site.chance / _GAIN))

    def called(self, site: Site, seconds: float, own: float, hit: bool) -> None:
        """Nectar has looked at a call, as `looked`."""
        site.ran(seconds)
        site.looked(hit, own)
        if site.tries == 1:
            site.cost = 0.0
        self.ledger.spend("looking up", own)
        if hit:
            self.ledger.save(seconds)

    # after

    def ran_alone(self, site: Site, seconds: float) -> bool:
        """A query ran without Nectar; whether it was quicker than a look."""
        site.ran(seconds)
        quick = seconds <= _GAIN * self.cost_of(site)
        self.left_alone += quick
        self.waived += not quick
        return quick

    def is_worth_a_late_look(self, site: Site, seconds: float) -> bool:
        """Whether a query that was left alone, and took so long, is looked at now that it has run."""
        cost = self.cost_of(site)
        if seconds <= _GAIN * cost:
            return False
        return self.ledger.left > 0.0 or self._is_small(site, cost, seconds)

    def looked(self, site: Site | None, seconds: float, own: float, hit: bool) -> None:
        """Nectar has looked at a query. seconds: what it takes without Nectar. own: what Nectar took of it."""
        if site is not None:
            site.ran(seconds)
            site.looked(hit, own)
        usual = self.sites.figures.get("look", own)
        self.sites.figures["look"] = usual + (own - usual) / 8
        self.ledger.spend("looking up", own)
        if hit:
            self.ledger.save(seconds)

    def remember(self) -> None:
        """Later processes know what was learned; people who ask what Nectar costs are told."""
        ledger = self.ledger
        now: dict[str, float] = {str(purpose): seconds for purpose, seconds in list(ledger.spent.items())}
        now |= {"program": ledger.program, "saved": ledger.saved, "left alone": self.left_alone, "waived": self.waived}
        self.sites.remember({name: value - self._told.get(name, 0.0) for name, value in now.items()})
        self._told = now

    # keeping

    def why_not_keep(self, seconds: float, size: int, asked_before: bool = False) -> str:
        """Why a result is not to be written, which took so long to compute and has so many bytes; empty if it is.

        asked_before: it is not the first time that somebody wants it.
        """
        if self.is_free:
            return ""
        reading, writing = self._usual_look + size / _READING, self.writing(size)
        if seconds <= reading:
            again = f"finding it again would take about {show_duration(reading)}"
            return f"computing it took {show_duration(seconds)}, {again}"
        if writing <= max(self.ledger.left, _SMALL * seconds) or (asked_before and seconds - reading > _GAIN * writing):
            return ""
        return (
            f"writing it would take about {show_duration(writing)}, and Nectar may not work so long for this program "
            "yet (setting: overhead)"
        )

    def writing(self, size: int) -> float:
        """Seconds that writing so many bytes takes here."""
        return _FILE + size / (self.sites.figures.get("writing") or _WRITING)

    def wrote(self, size: int, seconds: float) -> None:
        """So many bytes took so long; small ones say little of the disk."""
        if size > 1 << 20 and seconds > _FILE:
            speed = size / (seconds - _FILE)
            usual = self.sites.figures.get("writing", speed)
            self.sites.figures["writing"] = usual + (speed - usual) / 4
