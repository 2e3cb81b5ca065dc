"""Transactions on an SQLite file: opened, brought up to date, read and written by many threads and processes.

Law: a call has either happened as a whole or not at all; errors of SQLite become CatalogFailure and say what to do.
Readers wait for no writer, neither one of another process nor one of this.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from nectar.catalog.index.connection import BROKEN, SYNCHRONOUS, connect, failure_of
from nectar.catalog.index.inside import inside, is_cut_off
from nectar.catalog.index.locks import patiently
from nectar.catalog.index.schema import MIGRATIONS, VERSION
from nectar.catalog.index.spare import Spare, lacks_room
from nectar.errors import CatalogFailure, CatalogUnavailableError, StoreFailure
from nectar.faults import Reach, nowhere
from nectar.forks import in_child
from nectar.trust.files import PRIVATE, Access
from nectar.trust.held import hold

_T = TypeVar("_T")
_INHERITED: Final[set[sqlite3.Connection]] = set()
_opening = threading.RLock()  # of files that were opened by a parent


class Transactions:
    """A file with tables. One object may be used by many threads.

    alone_if_full: on a disk without room for what processes share, it is opened so that no other can use it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        reach: Reach = nowhere,
        read_only: bool = False,
        access: Access = PRIVATE,
        alone_if_full: bool = False,
        in_place: Callable[[], object] = bool,
    ) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self._reach, self._access, self._alone_if_full = reach, access, alone_if_full
        self._in_place = in_place  # raises if the path leads to another file by now
        self._spare = Spare(self.path, reach, access)
        self._let_go: Callable[[], object] = bool  # lets go of the files that others must not open
        self._open()

    def _open(self) -> None:
        if is_cut_off():
            raise CatalogUnavailableError(
                f"the catalog {self.path} cannot be used in this process: it was forked while a thread of its parent "
                "was inside SQLite, which did not answer"
            )
        self._lock = threading.RLock()
        self._names_are_durable = self._is_closed = False
        self._written = 0  # transactions of this process, which its own connection does not tell of
        self._reading = threading.RLock()  # for the second connection
        self._reader: sqlite3.Connection | None = None
        with inside:
            try:
                self._connect()
            except CatalogFailure as failure:
                if self.read_only or not lacks_room(failure, self.path.parent):
                    raise
                self._open_without_room(failure)
        self._process = os.getpid()  # not before: other threads use what it is opened with then

    def _open_anew(self) -> None:
        """SQLite forbids a child to use, or even to close, the connections that it was born with."""
        with _opening:
            if self._process != os.getpid():
                _INHERITED.update(each for each in (self._connection, self._reader) if each is not None)
                self._open()

    def _open_without_room(self, failure: CatalogFailure) -> None:
        """Opens the file on a full disk: in the spare room, or without what is shared with other processes."""
        if self._spare.give_up():
            try:
                return self._connect()
            except CatalogFailure as another:
                failure = another
        if not self._alone_if_full:
            raise failure
        return self._connect(alone=True)

    def _connect(self, alone: bool = False) -> None:
        self._alone = alone
        self._connection = connect(self.path, self.read_only, self._access, alone)
        try:
            self._in_place()
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    # set-up

    def _prepare(self) -> None:
        version = self._told(lambda: self._reading_of(lambda it: it.execute("PRAGMA user_version").fetchone()[0]))
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
            self._told(self._migrate if version else self._begin)
        if not self.read_only:
            self._spare.hold()
        self._let_go()
        # Locks lie on the file itself and on what processes share, which is there once it was read.
        self._let_go = weakref.finalize(self, hold(self.path, f"{self.path}-shm"))

    def _begin(self) -> None:
        """A new file has its tables, and nobody waits for the disk.

        If the power fails now, there is no file, or one with a single page, and a log whose entries have checksums.
        """
        self._wait_for_disk("OFF")
        try:
            self._migrate()
        finally:
            self._wait_for_disk(SYNCHRONOUS)

    def _migrate(self) -> None:
        self._use_wal()
        with self._writing("migrate"):
            # Another process may have been faster.
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version={VERSION}")

    def _wait_for_disk(self, how: str) -> None:
        patiently(lambda: self._connection.execute(f"PRAGMA synchronous={how}"))

    def _use_wal(self) -> None:
        """The file has a write-ahead log, also if others do the same at this moment."""
        patiently(lambda: self._connection.execute("PRAGMA journal_mode=WAL"))

    @contextmanager
    def _writing(self, what: str) -> Iterator[sqlite3.Connection]:
        """A transaction that has the right to write from its beginning; rolled back if anything goes wrong."""
        with self._lock, inside:
            self._reach(f"sql begin {what}")
            patiently(lambda: self._connection.execute("BEGIN IMMEDIATE"), self._version)
            try:
                yield self._connection
                self._reach(f"sql commit {what}")
                self._written += 1  # before: an interrupt may come right after
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

    def _write_durably(self, what: str, action: Callable[[sqlite3.Connection], _T]) -> _T:
        """The same; a loss of power afterwards loses nothing of it, and nothing that was written before."""

        def transaction() -> _T:
            with self._lock, inside:
                self._wait_for_disk("FULL")  # the log is synced as a whole, with all that came before
                try:
                    with self._writing(what) as connection:
                        done = action(connection)
                finally:
                    self._wait_for_disk(SYNCHRONOUS)
            self._make_names_durable()
            return done

        return self._translate(transaction)

    def _make_names_durable(self) -> None:
        """The names of the files, and that of their folder, are there after a loss of power; once for each process."""
        if self._names_are_durable or not hasattr(os, "O_DIRECTORY"):
            return
        for folder in (self.path.parent, self.path.parent.parent):
            self._reach("fsync folder of index")
            with suppress(OSError):  # of others, which may not be opened
                fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
        self._names_are_durable = True

    def _free(self, what: str, action: Callable[[sqlite3.Connection], _T]) -> _T:
        """Writes what makes room: it can be done on a full disk as well."""
        try:
            return self._write(what, action)
        except CatalogFailure as failure:
            if not lacks_room(failure) or not (self._spare.give_up() or self._reuse_log()):
                raise
            return self._write(what, action)

    def _reuse_log(self) -> bool:
        """What is in the log of the file is in the file, so that the log has room again; False if it has not."""
        try:
            self._reach("sql reuse log")
            with self._lock, inside:
                busy, pages, moved = self._connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
        except sqlite3.Error:
            return False
        return not busy and 0 < pages == moved

    def _read(self, action: Callable[[sqlite3.Connection], _T]) -> _T:
        return self._translate(partial(self._reading_of, action))

    def _reading_of(self, action: Callable[[sqlite3.Connection], _T]) -> _T:
        if self._lock.acquire(blocking=self._alone):
            try:
                with inside:
                    return patiently(partial(action, self._connection))
            finally:
                self._lock.release()
        with self._reading, inside:  # another thread writes, or waits for its turn to write
            if self._reader is None:
                self._reader = self._second()
            return patiently(partial(action, self._reader))

    def _second(self) -> sqlite3.Connection:
        """Another connection to the same file."""
        connection = connect(self.path, True, self._access)
        try:
            self._in_place()
        except StoreFailure as failure:
            connection.close()
            raise CatalogUnavailableError(str(failure)) from failure
        return connection

    def version(self) -> tuple[int, ...]:
        """Another value than before if anything was written since, by whoever.

        Of the connection that is asked: the other one may count what this one has written, and in its own numbers.
        """
        return self._read(self._version_for)

    def _version_for(self, connection: sqlite3.Connection) -> tuple[int, ...]:
        version = int(connection.execute("PRAGMA data_version").fetchone()[0])
        # One that is read without locks is opened anew after each change, and begins to count again.
        return id(connection), getattr(connection, "opened", 0), self._written, version

    def _version(self) -> int:
        """Changes whenever somebody else has written."""
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def try_writing(self) -> None:
        """Somebody could write at this moment. Raises CatalogUnavailableError if not."""
        same = "UPDATE counts SET number = number WHERE what = 'entries'"
        self._write("try", lambda connection: connection.execute(same))

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
            self._open_anew()
        return self._told(action)

    def _told(self, action: Callable[[], _T]) -> _T:
        try:
            return action()
        except BROKEN as error:
            if self._is_closed:  # by whoever did not wait for this thread any longer
                raise CatalogUnavailableError(f"the catalog {self.path} was closed before this was done") from error
            raise failure_of(error, self.path) from error

    def sound(self) -> list[str]:
        """What SQLite itself finds wrong with the file; empty if nothing."""
        found = self._read(lambda connection: [row[0] for row in connection.execute("PRAGMA integrity_check(10)")])
        return [] if found == ["ok"] else found

    def erase(self) -> bool:
        """Nothing of what was deleted is left in the file or its log; False if somebody else is reading just now."""

        def erased(connection: sqlite3.Connection) -> bool:
            connection.execute("VACUUM")
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy

        return self._read(erased)

    def close(self) -> None:
        """Ends the use of the file."""
        if os.getpid() != self._process:  # it is the parent's
            return
        with self._lock, self._reading, inside:
            self._is_closed = True
            self._connection.close()
            if self._reader is not None:
                self._reader.close()
            self._let_go()


@in_child
def _forget_parent() -> None:
    """A thread of the parent that was opening a file anew is not here to give the lock back."""
    global _opening
    _opening = threading.RLock()
