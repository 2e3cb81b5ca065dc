"""A circuit breaker: decides whether something that failed is asked again, and how long anybody waits for it.

In: what happened, and the time by a clock that nobody sets. Out: seconds that the program may wait, and whether it is
time for a probe. Law: while it is open the program waits for nothing; what it waits in vain is bounded each time and in
all. closed -> (failed) -> open, with a pause that grows -> half-open: one probe -> closed, or open again. No I/O.
"""

from __future__ import annotations

from typing import Final, Literal

State = Literal["closed", "open", "half-open"]
FIRST, LONGEST = 0.25, 60.0  # seconds between a failure and the next probe
EXHAUSTED: Final = 60.0  # the same once the program has waited in vain for as long as it may
TIMES: Final = 4  # how often the program waits in vain
_WELL: Final = 60.0  # seconds without a failure after which earlier ones are forgotten


class Allowance:
    """What a program may lose by waiting in vain. each: seconds at a time; four times that in all."""

    def __init__(self, each: float) -> None:
        self.each, self.lost = each, 0.0

    @property
    def left(self) -> float:
        """Seconds that may be lost now."""
        return max(0.0, min(self.each, TIMES * self.each - self.lost))


class Breaker:
    """Of one thing that may fail. allowance: shared with others that the same program waits for."""

    def __init__(self, allowance: Allowance) -> None:
        self.allowance = allowance
        self.state: State = "closed"
        self.since = float("-inf")  # when it was opened, or closed again
        self.failures = 0  # one after the other
        self._until = float("-inf")

    def patience(self, now: float) -> float:
        """Seconds that the program may wait for an answer; 0: it is not asked."""
        if self.state != "closed":
            return 0.0
        if self.failures and now - self.since >= _WELL:
            self.failures, self.allowance.lost = 0, 0.0
        return self.allowance.left

    def fail(self, now: float, waited: float = 0.0) -> bool:
        """It failed, after the program has waited so long; whether that opens it."""
        self.allowance.lost += waited
        if self.state == "open":
            return False  # others had asked before
        opens = self.state == "closed"
        least = 0.0 if self.allowance.left else EXHAUSTED
        self._until = now + max(least, min(LONGEST, FIRST * 2.0**self.failures))
        self.failures = min(self.failures + 1, 30)
        if opens:
            self.since = now
        self.state = "open"
        return opens

    def hurry(self, now: float) -> None:
        """There is reason to believe that it is well again: the next probe is due, unless much was lost."""
        if self.state == "open" and self.allowance.left:
            self._until = min(self._until, now)

    def probes(self, now: float) -> bool:
        """Whether the caller is the one who probes now."""
        if self.state != "open" or now < self._until:
            return False
        self.state = "half-open"
        return True

    def succeed(self, now: float) -> bool:
        """It answered in time; whether that closes it."""
        if self.state == "closed":
            return False
        self.state, self.since = "closed", now
        # It may cost the program something once more.
        self.allowance.lost = min(self.allowance.lost, (TIMES - 1) * self.allowance.each)
        return True
