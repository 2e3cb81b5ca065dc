"""How long taking values apart may take: some hold millions, and what is computed from them is there sooner.

In: seconds, for a block. Out: a TooLargeError from the block once they are over. Without a block nothing is cut short.
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

_deadline: ContextVar[float] = ContextVar("nectar_patience", default=inf)
_HASHING: Final = 1e9  # bytes a second
_MEMBERS: Final = 1e7  # values of a container a second, at best
_MANY: Final = 10_000  # below, nobody asks


class _OutOfPatience(BaseException):
    """It has taken too long."""


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Within the block, values are taken apart for so long at most. Raises TooLargeError if that is not enough."""
    if seconds == inf:
        yield
        return
    token = _deadline.set(min(_deadline.get(), perf_counter() + seconds))
    try:
        yield
    except _OutOfPatience as end:
        raise TooLargeError(str(end)) from None
    finally:
        _deadline.reset(token)


def stop_if_over(path: Callable[[], str], size: int = 0) -> None:
    """Leaves the block if it has taken too long, or would by the time so many bytes are hashed. path: to what."""
    deadline = _deadline.get()
    if deadline != inf and perf_counter() + size / _HASHING > deadline:
        raise _OutOfPatience(path().partition(" -> ")[0])


def expect(members: Sized) -> None:
    """Leaves the block if looking at all members of a container would take too long."""
    count = len(members)
    if count > _MANY:
        stop_if_over(lambda: f"a container of {count:,} values", int(count / _MEMBERS * _HASHING))
