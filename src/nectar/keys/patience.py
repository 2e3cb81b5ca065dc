"""How long taking values apart may take: some hold millions, and what is computed from them is there sooner.

In: seconds, for a block. Out: a TooLargeError from the block once they are over, by the clock and by its work: on
a machine with other work to do no value is larger than elsewhere. Files that have to be read to be known get as many
seconds again. Without a block nothing is cut short.
Law: a key is made of everything or is not made at all. What stops a walk is therefore no Exception, which somebody on
the way might take for a value that cannot be read, and go on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from contextvars import ContextVar, Token
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Final

from nectar.errors import TooLargeError
from nectar.overhead.spent import worked

if TYPE_CHECKING:  # most programs read no file that has just changed
    from nectar.overhead.allowance import Allowance

_limit: ContextVar[_Limit | None] = ContextVar("nectar_patience", default=None)
_HASHING: Final = 2e9  # bytes a second
_MEMBERS: Final = 1e7  # values of a container a second, at best
_ONE_BY_ONE: Final = 1e6  # the same where each is looked at by itself; more only if many are the same object
_FILES: Final = 1e5  # files that are listed and looked at a second
_MANY: Final = 10_000  # below, nobody asks


class _OutOfPatience(BaseException):
    """It has taken too long."""


class _Limit:
    """So many seconds from now on. outer: the limit of the block around."""

    __slots__ = ("_before", "_begun", "_outer", "_reading", "_seconds")

    def __init__(self, seconds: float, outer: _Limit | None) -> None:
        self._seconds, self._outer = seconds, outer
        self._begun, self._before = perf_counter(), worked()
        self._reading: Allowance | None = None

    @property
    def reading(self) -> Allowance:
        """What reading files may take: as many seconds again, and no more than the block around has left for it."""
        if self._reading is None:
            from nectar.overhead.allowance import Allowance

            outer = None if self._outer is None else self._outer.reading
            self._reading = Allowance(self._seconds) if outer is None or outer.left > self._seconds else outer
        return self._reading

    def is_over(self, coming: float) -> bool:
        """Whether the time is over, or would be after so many more seconds; by the clock and by the work."""
        seconds = self._seconds - coming
        over = perf_counter() - self._begun > seconds and worked() - self._before > seconds
        return over or (self._outer is not None and self._outer.is_over(coming))


class patience:  # noqa: N801 - read as a word: `with patience(0.1):`
    """Within the block, values are taken apart for so long at most. Raises TooLargeError if that is not enough.

    A class, since each call of a memoised function enters such a block: a generator takes five times as long.
    """

    __slots__ = ("_seconds", "_token")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._token: Token[_Limit | None] | None = None

    def __enter__(self) -> None:
        if self._seconds != inf:
            self._token = _limit.set(_Limit(self._seconds, _limit.get()))

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._token is None:
            return
        _limit.reset(self._token)
        if isinstance(error, _OutOfPatience):
            raise TooLargeError(str(error)) from None


def stop_if_over(path: Callable[[], str], size: int = 0) -> None:
    """Leaves the block if it has taken too long, or would by the time so many bytes are hashed. path: to what."""
    limit = _limit.get()
    if limit is not None and limit.is_over(size / _HASHING):
        raise _OutOfPatience(path().partition(" -> ")[0])


def expect(members: Sized, one_by_one: bool = False) -> None:
    """Leaves the block if looking at all members of a container would take too long. one_by_one: each by itself."""
    count = len(members)
    if count > _MANY:
        rate = _ONE_BY_ONE if one_by_one else _MEMBERS
        stop_if_over(lambda: f"a container of {count:,} values", int(count / rate * _HASHING))


def expect_files(count: int) -> None:
    """Leaves the block if listing and looking at so many files would take too long."""
    if count > _MANY:
        stop_if_over(lambda: f"a folder of {count:,} files", int(count / _FILES * _HASHING))


def allowance() -> Allowance | None:
    """What reading files may take here; None if there is no limit."""
    limit = _limit.get()
    return None if limit is None else limit.reading
