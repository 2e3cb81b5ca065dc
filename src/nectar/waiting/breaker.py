"""A circuit breaker: decides whether something that failed is asked again, and how long anybody waits for it.

In: what happened, and the time by a clock that nobody sets. Out: seconds that the program may wait, and whether it is
time for a probe. Law: while it is open the program waits for nothing; what it waits in vain, or for answers that take
longer than usual, is bounded each time and in all, whoever else finds it well meanwhile. closed -> (failed) -> open,
with a pause that grows -> half-open: one probe -> closed, or open again. No I/O.
"""

from __future__ import annotations

from typing import Final, Literal

State = Literal["closed", "open", "half-open"]
FIRST, LONGEST = 0.25, 60.0  # seconds between a failure and the next probe
EXHAUSTED: Final = 60.0  # the same once the program has waited in vain for as long as it may
TIMES: Final = 4  # how often the program waits in vain
PAYS: Final = 0.05  # of what an answer can save: what it may cost whenever it is asked for
_WELL: Final = 60.0  # seconds without a failure after which earlier ones are forgotten


class Allowance:
    """What a program may lose by waiting. each: seconds at a time; four times that in all."""

    def __init__(self, each: float) -> None:
        self.each, self.lost = each, 0.0

    @property
    def left(self) -> float:
        """Seconds that may be lost now."""
        return self.left_of(TIMES)

    def left_of(self, times: int) -> float:
        """The same for what may lose so many moments and no more."""
        return max(0.0, min(self.each, times * self.each - self.lost))

    def charge(self, seconds: float, times: int) -> None:
        """So much was lost, or what may lose so many moments has none left."""
        self.lost = max(self.lost, min(self.lost + seconds, times * self.each))

    def give_one_more(self, times: int) -> None:
        """What may lose so many moments may lose one more."""
        self.lost = min(self.lost, (times - 1) * self.each)


class Breaker:
    """Of one thing that may fail. allowance: shared with others that the same program waits for.

    times: how many moments of it this one may take; if fewer, it leaves the others something.
    """

    def __init__(self, allowance: Allowance, times: int = TIMES) -> None:
        self.allowance, self._times = allowance, times
        self.state: State = "closed"
        self.since = float("-inf")  # when it was opened, or closed again
        self.failures = 0  # one after the other
        self._until = float("-inf")
        self._charged: float | None = None  # when it last cost the program something
        self._spent = False  # nothing was left then

    @property
    def left(self) -> float:
        """Seconds that the program may lose by it now."""
        return self.allowance.left_of(self._times)

    def patience(self, now: float, worth: float = 0.0) -> float:
        """Seconds that the program may wait for an answer; 0: it is not asked. worth: seconds that one may save."""
        if self.state != "closed":
            return 0.0
        if self._charged is not None and now - max(self._charged, self.since) >= _WELL:
            self._forget(now)
        each = self.allowance.each
        return self.left or (each if PAYS * worth >= each else 0.0)

    def cost(self, now: float, seconds: float, worth: float = 0.0) -> bool:
        """An answer came, and cost so much more than usual; whether the program waits for no more of them."""
        if seconds <= PAYS * worth:
            return False
        was_spent = self._spent
        self._charge(now, seconds - PAYS * worth)
        return self._spent and not was_spent

    def fail(self, now: float, waited: float = 0.0) -> bool:
        """It failed, after the program has waited so long; whether that opens it."""
        self._charge(now, waited)
        if self.state == "open":
            return False  # others had asked before
        opens = self.state == "closed"
        least = 0.0 if self.left else EXHAUSTED
        self._until = now + max(least, min(LONGEST, FIRST * 2.0**self.failures))
        self.failures = min(self.failures + 1, 30)
        if opens:
            self.since = now
        self.state = "open"
        return opens

    def _charge(self, now: float, seconds: float) -> None:
        self.allowance.charge(seconds, self._times)
        self._charged, self._spent = now, not self.left

    def _forget(self, now: float) -> None:
        """A minute has passed that cost nothing: all is as before; or, if nothing was left, it may cost one more."""
        if self._spent:
            self._spent, self._charged = False, now
            self.allowance.give_one_more(self._times)
        else:
            self._charged, self.failures, self.allowance.lost = None, 0, 0.0

    def hurry(self, now: float) -> None:
        """There is reason to believe that it is well again: the next probe is due, unless much was lost."""
        if self.state == "open" and self.left:
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
        # It may cost the program something once more; if nothing was left, not before a minute has passed.
        if not self._spent or self._charged is None or now - self._charged >= EXHAUSTED:
            self._spent = False
            self.allowance.give_one_more(self._times)
        return True
