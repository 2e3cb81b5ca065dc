"""Decides, before a query runs, whether Nectar looks at it or leaves it alone; and what is written down afterwards.

In: where the query stands in the program, and what is known of that site. Out: a decision, within microseconds: a loop
of ten thousand tiny queries asks ten thousand times. Law: whatever is decided, the answer is the same; a wrong decision
costs time, and the next one is better.

- A site whose queries take no longer than a look is left alone. Once one takes long, it is looked at again.
- A site whose results were found before is looked at if what it saves on average is more than what a look takes.
- Any other site is looked at as long as the budget lasts; the first few times also if a look takes little of
  the time of a query.
- A query that was left alone and took long is looked at after it has run (`is_worth_a_late_look`).
- Looks at the calls of a memoised function may take half of what its calls take, and what they save.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Final

from nectar.overhead import process  # noqa: F401 - notes what is there when Nectar begins
from nectar.overhead.ledger import Ledger, SharedTime
from nectar.overhead.sites import ENOUGH, Site, Sites
from nectar.quantities import show_duration

_LOOK: Final = 5e-3  # seconds that a look takes, until one has been measured
_GAIN: Final = 2.0  # how many times what a look costs it must be expected to save
_SMALL: Final = 1 / 25  # share of a query's time that a look may take beyond the budget, for the first few at a site
_TRIALS: Final = 8
_LOADING: Final = 0.08  # seconds at most that loading is thought to take: what was measured may have been an exception
_USUAL_LOADING: Final = 0.05  # until it has been measured
_LIKELY: Final = 0.1  # a chance worth loading what looks, for queries that take longer than that
_HIDDEN: Final = 2.0  # times what sites promise is expected: the first look at one never finds anything
_CHEAP: Final = 2e-3  # seconds of a look at a call; what cost more may have been an exception, and is tried again
_CALL: Final = 0.5  # share of a function's time that looking at its calls may take
_QUICK: Final = 0.5e-3  # seconds of a call; a hit takes a quarter of it, and what is as quick is not asked about again
_CROWDED: Final = 3.0  # times its work that a look may take by the clock because others want the processor too
_LEAST: Final = 20e-3  # seconds that values may take to be looked at in any case
_MUCH: Final = 50e-3  # seconds of a look at a call, where computing takes less
_LOADED: Final = "loading "  # what figures begin with that say how long that takes, for each module
_UNKNOWN: Final = 4.0  # seconds at most that a function is taken to need which has not run yet
_WRITING: Final = 5e8  # bytes a second, until they have been measured
_TELLING: Final = 256e6  # bytes whose writing says what writing takes; of fewer, most is waiting for the processor
_FILE: Final = 3e-3  # seconds that writing takes, however little it is
_READING: Final = 1e9  # bytes a second, from memory or a good disk


def reading(size: int) -> float:
    """Seconds that reading so many bytes of a result takes."""
    return size / _READING


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
        patience: float = 1.0,
    ) -> None:
        self.ledger = Ledger(share, floor, timer, time.process_time() if age is None else age)
        self.sites = Sites(memory, program, patience)
        self.timer = timer
        self.queries, self.calls = SharedTime(timer), SharedTime(timer)  # a call may wait for queries in other threads
        self.is_free = share == inf
        self.left_alone = self.waived = 0  # queries and calls that ran without a look: quick ones, and for want of time
        self._told: dict[str, float] = {}

    # before

    def looks_at(self, site: Site, module: str = "", *, late: bool = True) -> bool:
        """Whether Nectar looks at a query before it runs there. module: what looks. late: there are late looks.

        A site that nobody knows gets the first look of a process however long loading takes, since what it takes is
        known afterwards; and where there are no late looks, any first look: what is left alone the first time is reused
        two processes later. At a known site loading has to pay, unless what all sites promise pays for it.
        """
        if self.is_free:
            return True
        if site.limit:
            return False
        loading = self.loading(module)
        if not site.runs:
            excused = self.ledger.spent.get("starting", 0.0) if loading or not late else 0.0
            return self.ledger.left + excused > 0.0
        cost = self.cost_of(site)
        if site.seconds <= _GAIN * cost:
            return False
        is_likely = site.chance >= _LIKELY and site.seconds > loading
        if loading and (is_likely or _HIDDEN * self.sites.promise > loading):
            loading = 0.0
        cost += loading
        if site.seconds <= _GAIN * cost:
            return False
        if site.seconds * site.chance > _GAIN * cost or self._is_small(site, cost, site.seconds):
            return True
        return self.ledger.left > loading

    def loading(self, module: str) -> float:
        """Seconds that pass before a first look, until a module and what it needs are there; 0 if they are."""
        if not module or module in sys.modules:
            return 0.0
        return min(self.sites.figures.get(_LOADED + module, _USUAL_LOADING), _LOADING)

    def loaded(self, module: str, seconds: float) -> None:
        """It took so long until a module and what it needs were there."""
        usual = self.sites.figures.get(_LOADED + module, seconds)
        self.sites.figures[_LOADED + module] = usual + (seconds - usual) / 4

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
        """Whether Nectar looks at a call: as long as what looks take is within what calls take, and what looks save.

        What earlier processes know of that counts: the first few calls of this one would show the same. Seconds add up,
        so a function that is slow once in a thousand calls is looked at, if that once takes longer than the looks.
        """
        if site.limit:
            return False
        if self.is_free or site.tries < ENOUGH or site.credit >= 0.0:
            return True
        if site.seconds <= _QUICK or site.cost <= _CHEAP:  # there is nothing to gain, or calls make up for it soon
            return False
        return self.ledger.left > site.cost

    def patience_of_call(self, site: Site) -> float:
        """Seconds that taking its arguments apart may take: a share of what the function takes.

        For one that has not run yet stands what the program took so far: to come by large arguments takes its time.
        """
        if self.is_free:
            return inf
        seconds = site.seconds if site.runs else min(self.ledger.program, _UNKNOWN)
        return max(_LEAST, self.ledger.left, seconds * max(_CALL / 2, site.chance / _GAIN))

    def why_not_keep_call(self, seconds: float, own: float) -> str:
        """Why the result of a call is not to be kept, which took so long to compute and to look for; empty if it is."""
        if self.is_free or not _is_too_long(own, seconds):
            return ""
        return f"computing it took {show_duration(seconds)}, looking for it {show_duration(own)}"

    def called(
        self, site: Site, seconds: float, own: float, hit: bool, gave_up: bool = False, waited: float | None = None,
        keeping: float = 0.0,
    ) -> None:  # fmt: skip
        """Nectar has looked at a call, as `looked`. gave_up: its arguments held too much. waited: own, by the clock.

        keeping: how much of that was done after the function had run, which a hit does not take. What the first look
        takes says little, unless it is much: the next ones will find more at hand.
        """
        site.is_function = True
        site.ran(seconds)
        site.looked(float(hit), own - keeping)
        is_long = gave_up or _is_too_long(own, seconds)  # looking again would show the same
        if is_long:
            site.tries = max(site.tries, ENOUGH)
        elif site.tries == 1:
            site.cost = 0.0
        waited = own if waited is None else waited
        if not self.is_free:
            spent = min(waited, _CROWDED * own) if is_long or site.tries > 1 else 0.0
            if is_vain := _is_vain(site):  # what slower calls have earned before is no reason to go on
                site.credit = min(site.credit, 0.0)
            site.earn((_SMALL if is_vain else _CALL) * seconds + (seconds if hit else 0.0) - spent)
        self.ledger.spend("looking up", waited)
        if hit:
            self.ledger.save(seconds)

    # after

    def ran_alone(self, site: Site, seconds: float) -> bool:
        """A query ran without Nectar; whether it was quicker than a look."""
        site.ran(seconds)
        if seconds <= site.limit:
            self.left_alone += 1
            return True
        limit = _GAIN * self.cost_of(site)
        quick = seconds <= limit
        site.limit = limit if quick and site.seconds <= limit else 0.0
        self.left_alone += quick
        self.waived += not quick
        return quick

    def call_ran_alone(self, site: Site, seconds: float) -> bool:
        """A call of a memoised function ran without Nectar; whether it was quicker than a look.

        Where calls proved quick, one that is slow for once, as on a busy machine, is no reason to load what looks.
        """
        site.ran(seconds)
        if not site.limit or seconds > _GAIN * _USUAL_LOADING:
            site.earn((_SMALL if _is_vain(site) else _CALL) * seconds)
        quick = seconds <= site.cost
        limit = min(site.cost, _QUICK)
        site.limit = limit if max(seconds, site.seconds) <= limit and site.tries >= ENOUGH else 0.0
        self.left_alone += quick
        self.waived += not quick
        return quick

    def is_worth_a_late_look(self, site: Site, seconds: float, module: str = "") -> bool:
        """Whether a query that was left alone, and took so long, is looked at now that it has run.

        What is slow once, on a busy machine, is not worth loading what looks at it.
        """
        cost = self.cost_of(site)
        if seconds <= _GAIN * (cost + self.loading(module)):
            return False
        return self.ledger.left > 0.0 or self._is_small(site, cost, seconds)

    def looked(self, site: Site | None, seconds: float, own: float, found: float = 0.0) -> None:
        """Nectar has looked at a query.

        seconds: what it takes without Nectar. own: what Nectar took of it. found: seconds of it that need not be
        computed, since results of the whole or of parts are kept. The first look at a site takes longer than those that
        follow: functions and files are met for the first time, and parts of Nectar are loaded for it.
        """
        usual = self._usual_look
        if site is not None:
            site.ran(seconds)
            site.looked(min(1.0, found / seconds) if seconds else 0.0, own)
            if site.tries == 1:
                site.cost = min(site.cost, usual)
        self.sites.figures["look"] = usual + (min(own, _GAIN * usual) - usual) / 8
        self.ledger.spend("looking up", own)

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
        if seconds <= _GAIN * self._usual_look:
            return f"computing it took {show_duration(seconds)}, and what is as quick is left alone"
        finding, writing = self._usual_look + reading(size), self.writing(size)
        if seconds <= finding:
            again = f"finding it again would take about {show_duration(finding)}"
            return f"computing it took {show_duration(seconds)}, {again}"
        if writing <= max(self.ledger.left, _SMALL * seconds) or (asked_before and size < self.paying(seconds)):
            return ""
        return (
            f"writing it would take about {show_duration(writing)}, and Nectar may not work so long for this program "
            "yet (setting: overhead)"
        )

    def paying(self, seconds: float, slower: float = 1.0) -> float:
        """Bytes, at most, of a result that took so long if writing it is to pay the first time it is found again.

        slower: times what we take for a byte; an engine that writes encodes and compresses.
        """
        if self.is_free:
            return inf
        spare = seconds - self._usual_look - _GAIN * _FILE
        return max(0.0, spare) / (1 / _READING + _GAIN * slower / self._writing_speed)

    def writing(self, size: int) -> float:
        """Seconds that writing so many bytes takes here."""
        return _FILE + size / self._writing_speed

    @property
    def _writing_speed(self) -> float:
        return self.sites.figures.get("writing") or _WRITING

    def wrote(self, size: int, seconds: float) -> None:
        """So many bytes took so long. The fewer they are, the less that says of the disk, and the more of the machine.

        Averaged is what a byte takes: one write that the disk did at once says nothing against those that it did not.
        """
        if size > 1 << 20 and seconds > _FILE:
            usual = 1 / self._writing_speed
            usual += ((seconds - _FILE) / size - usual) * min(1 / 4, size / _TELLING)
            self.sites.figures["writing"] = 1 / usual


def _is_vain(site: Site) -> bool:
    """Whether looks at a function find nothing, though an earlier process has kept results."""
    return site.is_known and site.tries >= ENOUGH + _TRIALS and site.chance < _SMALL


def _is_too_long(own: float, seconds: float) -> bool:
    """Whether a look at a call takes longer than computing it, and that is no accident."""
    return own > max(_MUCH, seconds)
