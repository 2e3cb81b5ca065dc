"""Waiting for locks of SQLite that others hold: in Python and not in SQLite, which would hold what readers need.

In: an attempt. Out: what it gives. Law: a thread that a program waits for waits no longer than a step may take, or,
while others get their turn one after the other, until it has its own. Nobody who forks waits for it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from itertools import chain, repeat
from typing import Final, TypeVar

from nectar.catalog.index.inside import wait_outside
from nectar.waiting.answering import patience_here, step

_T = TypeVar("_T")
_LOCKED: Final = 30.0  # seconds to wait for a lock that somebody holds, unless a program waits for this thread
_PAUSES: Final = (0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.025)  # between two attempts; then the last one
_BUSY: Final = 20  # times as long, if others get their turn meanwhile
_CODES: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_locked(error: BaseException) -> bool:
    """Whether somebody else holds a lock, so that it is worth waiting for it."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _CODES


def patiently(attempt: Callable[[], _T], version: Callable[[], int] | None = None) -> _T:
    """What an attempt gives, made again as long as somebody holds a lock and this thread may wait.

    version: changes when others have written: then they get their turn, and this thread will have its own.
    """
    try:
        return attempt()
    except sqlite3.OperationalError as error:
        if not is_locked(error):
            raise
    begun = moved = time.monotonic()
    seen = version() if version is not None else 0
    for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
        wait_outside(pause)
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            now, patience = time.monotonic(), patience_here(_LOCKED)
            if version is not None and now - begun < _BUSY * patience and (latest := version()) != seen:
                seen, moved = latest, now
                step()
            if not is_locked(error) or now - moved >= patience:
                raise
    raise AssertionError("attempts do not end")
