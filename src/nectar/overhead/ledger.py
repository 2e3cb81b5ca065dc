"""An account of time: what Nectar has cost the program so far, what it has saved, and what it may cost yet.

In: seconds, as they are measured. Out: the seconds that are left of the budget, which is a share of the time that the
program would take without Nectar, and a floor for each process. Work in the background counts like any other: it takes
a core from the program, and the end of the process waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import Final, Literal

Purpose = Literal["starting", "looking up", "writing parts", "in the background"]
_BEHIND: Final = "in the background"


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
        return inf if self.share == inf else self.floor + self.share * self.program - self.total
