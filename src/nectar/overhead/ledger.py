"""An account of time: what Nectar has cost the program so far, what it has saved, and what it may cost yet.

In: seconds, as they are measured. Out: the seconds that are left of the budget, which is a share of the time that the
program would take without Nectar, half of what it has saved, and a floor for each process. Work in the background
counts like any other: it takes a core from the program, and the end of the process waits for it.

Computations that run beside each other share the time that passes. What eight queries took which ran at once for five
seconds is five seconds, and that is what finding them saves; by the clock of each it would be forty.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from types import TracebackType
from typing import Final, Literal
from weakref import WeakSet

Purpose = Literal["starting", "looking up", "writing parts", "in the background"]
_BEHIND: Final = "in the background"
_EARNED: Final = (
    0.5  # of what was saved may be spent: the program is the faster for it, also if as much again was not saved
)


class Ledger:
    """Counts seconds. share, floor: the budget. timer: a clock that only goes forward.

    Without a lock: a signal handler may spend time while the thread it stopped does. What two threads spend in the same
    instant may be counted once.
    """

    def __init__(
        self, share: float = inf, floor: float = 0.0, timer: Callable[[], float] = time.perf_counter, age: float = 0.0
    ) -> None:
        self.share, self.floor, self._timer = share, floor, timer
        self._began = timer() - age
        self.spent: dict[Purpose, float] = {}
        self.saved = 0.0
        self._before = 0.0  # seconds spent in the foreground

    def spend(self, purpose: Purpose, seconds: float) -> None:
        """Nectar has worked for so long."""
        self.spent[purpose] = self.spent.get(purpose, 0.0) + seconds
        if purpose != _BEHIND:
            self._before += seconds

    def save(self, seconds: float) -> None:
        """The program would have computed for so long, and did not."""
        self.saved += seconds

    @property
    def program(self) -> float:
        """Seconds that the program would have taken up to now without Nectar."""
        return max(0.0, self._timer() - self._began - self._before) + self.saved

    @property
    def total(self) -> float:
        """Seconds that Nectar has worked."""
        return sum(self.spent.values())

    @property
    def left(self) -> float:
        """Seconds that Nectar may work yet; negative if it has worked longer than it should."""
        if self.share == inf:
            return inf
        return self.floor + self.share * self.program + _EARNED * self.saved - self.total


class SharedTime:
    """A clock that is divided among the computations that run. timer: a clock that only goes forward.

    Without a lock, as the ledger: what two threads do in the same instant sees the same state, and counts once.
    """

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer
        self._state: tuple[float, float | None] = 0.0, None  # what has passed, and when that was
        self.running: WeakSet[Share] = WeakSet()  # who forgets to end is gone with its thread

    @property
    def passed(self) -> float:
        """Seconds up to now, each divided by the number of computations that ran in it."""
        passed, seen = self._state
        now = self._timer()
        if seen is not None:
            passed += (now - seen) / max(1, len(self.running))
        self._state = passed, now
        return passed

    def share(self, within: bool = False) -> Share:
        """Measures a computation. within: it is part of another one, which waits for it."""
        return Share(self, within)


class Share:
    """Within the block a computation runs; afterwards `seconds` is its share of the time, and `wall` all of it."""

    __slots__ = ("__weakref__", "_begun", "_clock", "_within", "seconds", "wall")

    def __init__(self, clock: SharedTime, within: bool) -> None:
        self._clock, self._within = clock, within
        self.seconds = self.wall = 0.0

    def __enter__(self) -> Share:
        self._begun = self._clock.passed, self._clock._timer()
        if not self._within:
            self._clock.running.add(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        passed, begun = self._begun
        self.wall = self._clock._timer() - begun
        self.seconds = min(self._clock.passed - passed, self.wall)
        self._clock.running.discard(self)

    def of(self, seconds: float) -> float:
        """The share of seconds that the clock showed while it ran, and around it."""
        return seconds * self.seconds / self.wall if self.wall > 0.0 else seconds
