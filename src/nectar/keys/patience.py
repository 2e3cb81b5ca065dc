"""How long taking values apart may take: some hold millions, and what is computed from them is there sooner.

In: seconds, for a block. Out: a TooLargeError from the block once they are over, by the clock and by its work: on
a machine with other work to do no value is larger than elsewhere. Without a block nothing is cut short.
Law: a key is made of everything or is not made at all. What stops a walk is therefore no Exception, which somebody on
the way might take for a value that cannot be read, and go on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import perf_counter
from typing import Final

from nectar.errors import TooLargeError
from nectar.overhead.spent import worked

_NEVER: Final = (inf, inf)
_deadline: ContextVar[tuple[float, float]] = ContextVar("nectar_patience", default=_NEVER)  # by clock, by work
_HASHING: Final = 2e9  # bytes a second
_MEMBERS: Final = 1e7  # values of a container a second, at best
_ONE_BY_ONE: Final = 1e6  # the same where each is looked at by itself; more only if many are the same object
_MANY: Final = 10_000  # below, nobody asks


class _OutOfPatience(BaseException):
    """It has taken too long."""


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Within the block, values are taken apart for so long at most. Raises TooLargeError if that is not enough."""
    if seconds == inf:
        yield
        return
    wall, work = _deadline.get()
    token = _deadline.set((min(wall, perf_counter() + seconds), min(work, worked() + seconds)))
    try:
        yield
    except _OutOfPatience as end:
        raise TooLargeError(str(end)) from None
    finally:
        _deadline.reset(token)


def stop_if_over(path: Callable[[], str], size: int = 0) -> None:
    """Leaves the block if it has taken too long, or would by the time so many bytes are hashed. path: to what."""
    deadline = _deadline.get()
    if deadline is _NEVER:
        return
    coming = size / _HASHING
    if perf_counter() + coming > deadline[0] and worked() + coming > deadline[1]:
        raise _OutOfPatience(path().partition(" -> ")[0])


def expect(members: Sized, one_by_one: bool = False) -> None:
    """Leaves the block if looking at all members of a container would take too long. one_by_one: each by itself."""
    count = len(members)
    if count > _MANY:
        rate = _ONE_BY_ONE if one_by_one else _MEMBERS
        stop_if_over(lambda: f"a container of {count:,} values", int(count / rate * _HASHING))
