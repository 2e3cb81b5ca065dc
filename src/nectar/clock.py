"""Time, passed in wherever it matters, so that tests move it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> float:
        """Seconds since 1970, as of now; somebody may set it, an hour forwards or five minutes back."""

    def elapsed(self) -> float:
        """Seconds since some moment; whoever wants to know how long something took asks this."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        """Seconds since 1970, as of now."""
        return time.time()

    def elapsed(self) -> float:
        """Seconds since some moment, whatever the time is set to."""
        return time.monotonic()


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, start: float = 1_000_000.0) -> None:
        self._now = start
        self._elapsed = 0.0

    def now(self) -> float:
        """The time it was set to."""
        return self._now

    def elapsed(self) -> float:
        """The seconds that it was moved on."""
        return self._elapsed

    def move(self, seconds: float) -> None:
        """Moves the clock on."""
        self._now += seconds
        self._elapsed += seconds

    def set(self, seconds: float) -> None:
        """Sets the clock to another time, so much later or earlier, as people and machines do; no time passes."""
        self._now += seconds
