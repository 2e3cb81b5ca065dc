"""Time, passed in wherever it matters, so that tests move it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> float:
        """Seconds since 1970, as of now."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        """Seconds since 1970, as of now."""
        return time.time()


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, start: float = 1_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        """The time it was set to."""
        return self._now

    def move(self, seconds: float) -> None:
        """Moves the clock on."""
        self._now += seconds
