"""Time that a piece of Nectar's work takes: by the clock, and as far as it was work.

The clock says what the program waits for. What a look costs is told by the work: on a machine with other things to do
the clock tells of these, and a function would be left alone because of somebody else's. Work is what the processor does
in this thread, and what it waits for other threads of its own to do (`helped`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, thread_time
from typing import Final, NamedTuple

_SHORT: Final = 0.5e-3  # seconds; to ask for the work takes microseconds of a hit


class _Help(threading.local):
    seconds = 0.0


_help: Final = _Help()


@contextmanager
def helped() -> Iterator[None]:
    """Within the block other threads work for this one, which waits for them."""
    begun = perf_counter()
    own = thread_time()
    try:
        yield
    finally:
        _help.seconds += max(0.0, perf_counter() - begun - (thread_time() - own))


def worked() -> float:
    """Seconds of work that were done in this thread or for it, from some moment on."""
    return thread_time() + _help.seconds


class Spent(NamedTuple):
    """Seconds by the clock, and of work, which are never more."""

    wall: float
    work: float

    @classmethod
    def now(cls) -> Spent:
        """The two clocks as they stand."""
        return cls(perf_counter(), worked())

    @classmethod
    def since(cls, begun: Spent) -> Spent:
        """What was spent since the clocks stood like that, in the same thread. What is short counts as work."""
        wall = perf_counter() - begun.wall
        if wall < _SHORT:
            return cls(wall, wall)
        return cls(wall, max(0.0, min(wall, worked() - begun.work)))

    def and_also(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(self.wall + other.wall, self.work + other.work)

    def without(self, part: Spent) -> Spent:
        """What is left without a part of it."""
        return Spent(max(0.0, self.wall - part.wall), max(0.0, self.work - part.work))


NOTHING: Final = Spent(0.0, 0.0)
