"""A database that is read without locks, because this user may not make the files that hold them.

SQLite takes such a file for one that never changes. Whoever may write to it changes it all the same, and a reader in
the middle of that would mix what was with what is: the row of one key under another. Law: rows count only if the file
was the same before and after they were read; otherwise it is opened anew, and they are read again.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from nectar.catalog.index.inside import wait_outside

_ATTEMPTS: Final = 10
_PAUSE: Final = 0.01  # seconds between two of them
_TICK: Final = 20_000_000  # nanoseconds: two changes so close to each other may have one time stamp
LOCKING: Final = "mode=ro"
AS_IT_LIES: Final = "mode=ro&immutable=1"


class Rows:
    """The rows of a statement, all read."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def fetchone(self) -> Any:
        """The next row, or None."""
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        """The rows that are left."""
        return list(self._rows)


class Unlocked:
    """A connection to a file that others may change. connect: opens the file in a mode of SQLite."""

    def __init__(self, path: Path, connect: Callable[[str], sqlite3.Connection]) -> None:
        self._path, self._connect = path, connect
        self._state = _settled(path)
        self._connection = connect(AS_IT_LIES)
        self._locks = False
        self.opened = 1  # how often: SQLite says nothing of changes between two times

    @property
    def in_transaction(self) -> bool:
        """Whether several statements belong together at this moment."""
        return self._connection.in_transaction

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        """The rows of a statement, as of one state of the file. Raises OperationalError if it does not stand still."""
        for attempt in range(_ATTEMPTS):
            if attempt:
                wait_outside(_PAUSE)
            if not self._stands_still():
                self._open_anew()
            try:
                rows = self._connection.execute(statement, values).fetchall()
            except sqlite3.DatabaseError:
                if self._stands_still():
                    raise
                continue
            if self._stands_still():
                return Rows(rows)
        raise sqlite3.OperationalError("the database is locked: others write to it all the time")

    def executemany(self, statement: str, values: Any) -> None:
        """Nothing is written. Raises what SQLite raises."""
        self._connection.executemany(statement, values)

    def close(self) -> None:
        """The file is no longer open."""
        self._connection.close()

    def _stands_still(self) -> bool:
        return self._locks or _state_of(self._path) == self._state

    def _open_anew(self) -> None:
        if self._connection.in_transaction:
            raise sqlite3.OperationalError("the database is locked: somebody has changed it while it was read")
        try:
            connection = self._connect(LOCKING)  # while others have it open, the files that hold locks are there
            self._locks = True
        except sqlite3.OperationalError:
            self._state = _settled(self._path)
            connection = self._connect(AS_IT_LIES)
        self._connection.close()
        self._connection = connection
        self.opened += 1


def _settled(path: Path) -> tuple[int, ...]:
    """The state of the file, once whatever changes it has another time stamp. Raises OperationalError if none comes."""
    for _ in range(_ATTEMPTS):
        state = _state_of(path)
        stamps = [stamp for at, stamp in enumerate(state) if at % 4 >= 2]
        if not 0 <= time.time_ns() - max(stamps, default=0) < _TICK:
            return state
        wait_outside(_PAUSE)
    raise sqlite3.OperationalError("the database is locked: others write to it all the time")


def _state_of(path: Path) -> tuple[int, ...]:
    """What differs whenever somebody has written to the file, or is about to: then its log lies beside it."""
    state: list[int] = []
    for each in (path, path.with_name(f"{path.name}-wal")):
        with suppress(FileNotFoundError):
            found = os.stat(each)
            state += [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
    return tuple(state)
