"""Transactions on an SQLite file: opened, brought up to date, read and written by many threads and processes.

Law: a call has either happened as a whole or not at all; errors of SQLite become CatalogFailure and say what to do.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from nectar.catalog.index.connection import connect, explain
from nectar.catalog.index.schema import MIGRATIONS, VERSION
from nectar.catalog.index.spare import Spare
from nectar.errors import CatalogFailure
from nectar.faults import Reach, nowhere

_T = TypeVar("_T")
_INHERITED: Final[list[sqlite3.Connection]] = []
_live: Final[weakref.WeakSet[Transactions]] = weakref.WeakSet()
_opening: Final = threading.RLock()
_ATTEMPTS: Final = 300  # to begin a new file, while others do
_PAUSE: Final = 0.02  # seconds in between


class Transactions:
    """A file with tables. One object may be used by many threads."""

    def __init__(self, path: str | os.PathLike[str], *, reach: Reach = nowhere, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self._reach = reach
        self._spare = Spare(self.path, reach)
        with _opening:
            self._open()
            _live.add(self)

    def _open(self) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._connection = connect(self.path, self.read_only)
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    # set-up

    def _prepare(self) -> None:
        version = self._translate(lambda: self._connection.execute("PRAGMA user_version").fetchone()[0])
        if version > VERSION:
            raise CatalogFailure(
                f"the catalog {self.path} was written by a newer version of Nectar (format {version}, this one knows "
                f"{VERSION}): upgrade Nectar, or use another folder (NECTAR_HOME)"
            )
        if version < VERSION:
            if self.read_only:
                raise CatalogFailure(
                    f"the catalog {self.path} has the old format {version} and cannot be written here: open it once "
                    "with the right to write, so that it is brought up to date"
                )
            self._translate(self._migrate)
        if not self.read_only:
            self._spare.hold()

    def _migrate(self) -> None:
        self._use_wal()
        with self._writing("migrate"):
            # Another process may have been faster.
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version={VERSION}")

    def _use_wal(self) -> None:
        """The file has a write-ahead log. SQLite does not wait here for others who do the same at this moment."""
        for _ in range(_ATTEMPTS):
            try:
                self._connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                time.sleep(_PAUSE)
        self._connection.execute("PRAGMA journal_mode=WAL")

    @contextmanager
    def _writing(self, what: str) -> Iterator[sqlite3.Connection]:
        """A transaction that has the right to write from its beginning; rolled back if anything goes wrong."""
        with self._lock:
            self._reach(f"sql begin {what}")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._reach(f"sql commit {what}")
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _write(self, what: str, action: Callable[[sqlite3.Connection], _T]) -> _T:
        def transaction() -> _T:
            with self._writing(what) as connection:
                return action(connection)

        return self._translate(transaction)

    def _free(self, what: str, action: Callable[[sqlite3.Connection], _T]) -> _T:
        """Writes what makes room: it can be done on a full disk as well."""
        try:
            return self._write(what, action)
        except CatalogFailure as failure:
            if "full" in str(failure.__cause__) and self._spare.give_up():
                return self._write(what, action)
            raise

    def _read(self, action: Callable[[sqlite3.Connection], _T]) -> _T:
        def reading() -> _T:
            with self._lock:
                return action(self._connection)

        return self._translate(reading)

    def _snapshot(self, action: Callable[[sqlite3.Connection], _T]) -> _T:
        """Reads several times, as of one moment."""

        def reading(connection: sqlite3.Connection) -> _T:
            connection.execute("BEGIN")
            try:
                return action(connection)
            finally:
                connection.execute("ROLLBACK")

        return self._read(reading)

    def _translate(self, action: Callable[[], _T]) -> _T:
        """Runs an action; errors of SQLite say what to do."""
        if os.getpid() != self._process:
            # SQLite forbids a fork to use, or even to close, the connection it was born with.
            _INHERITED.append(self._connection)
            self._open()
        try:
            return action()
        except sqlite3.Error as error:
            raise CatalogFailure(explain(error, self.path)) from error

    def sound(self) -> list[str]:
        """What SQLite itself finds wrong with the file; empty if nothing."""
        found = self._read(lambda connection: [row[0] for row in connection.execute("PRAGMA integrity_check(10)")])
        return [] if found == ["ok"] else found

    def close(self) -> None:
        """Ends the use of the file."""
        with self._lock:
            self._connection.close()


# SQLite has locks of its own. A child that is born while a thread holds one could never use SQLite again: nobody would
# give it back. So whoever forks waits until no thread is inside.


def _before_fork() -> None:
    _opening.acquire()
    _held.extend(each._lock for each in _live)
    for lock in _held:
        lock.acquire()


def _after_fork() -> None:
    while _held:
        _held.pop().release()
    _opening.release()


_held: Final[list[threading.RLock]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
