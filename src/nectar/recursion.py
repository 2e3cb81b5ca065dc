"""Calls of Nectar within calls of Nectar: they take nothing from the recursion limit of the program.

A function that calls itself through Nectar has frames of Nectar between its own. Where many calls are open in a thread,
the limit of the process is raised by what those frames take, and lowered again when the calls end: the program gets as
deep as it would without Nectar, and no deeper. Programs without deep recursion never see the limit change.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import Final

from nectar.forks import in_child

_TAKEN: Final = 2 if sys.version_info < (3, 12) else 1  # from the limit, by calling an object that calls a function
_AT_ONCE: Final = 16  # open calls for which the limit is raised at a time; fewer are not worth it
_MOST: Final = 3000  # open calls in a thread; beyond, the program has the frames that its limit leaves it
_ROOM: Final = 200  # frames


class _Open(threading.local):
    calls = 0


_open: Final = _Open()
_lock = threading.RLock()  # a signal handler may come in between
_raised = 0  # by how much the limit is above what the program has set
_set = 0  # what the limit was set to when it was last changed here


@in_child
def _forget_parent() -> None:
    """A thread of the parent that held the lock is not here to give it back."""
    global _lock
    _lock = threading.RLock()


def limit_of_program() -> int:
    """The recursion limit as the program has set it."""
    limit = sys.getrecursionlimit()
    return limit - _raised if limit == _set else limit


def is_too_deep() -> bool:
    """Whether so many calls are open in this thread that further ones go without Nectar."""
    return _open.calls >= _MOST


class deeper:  # noqa: N801 - read as a word: `with deeper():`
    """Within the block another call of Nectar is open."""

    __slots__ = ()

    def __enter__(self) -> None:
        calls = _open.calls + 1
        if calls % _AT_ONCE == 0:
            _change(_AT_ONCE * _TAKEN)
        _open.calls = calls

    def __exit__(self, *_: object) -> None:
        calls = _open.calls
        _open.calls = calls - 1
        if calls % _AT_ONCE == 0:
            _change(-_AT_ONCE * _TAKEN)


class room:  # noqa: N801 - read as a word: `with room():`
    """Within the block Nectar has frames for steps of its own, if many calls are open or if they are needed."""

    __slots__ = ("_needed",)

    def __init__(self, needed: bool = False) -> None:
        self._needed = needed or _open.calls >= _AT_ONCE

    def __enter__(self) -> None:
        if self._needed:
            _change(_ROOM)

    def __exit__(self, *_: object) -> None:
        if self._needed:
            _change(-_ROOM)


def _change(by: int) -> None:
    """Changes the limit, by no more than it was raised since the program has set it."""
    global _raised, _set
    with _lock, suppress(RecursionError):  # which says that this thread is too deep for the lower limit
        now = sys.getrecursionlimit()
        if now != _set:
            _raised = 0
        by = max(by, -_raised)
        sys.setrecursionlimit(now + by)
        _raised, _set = _raised + by, now + by
