"""Opening an SQLite file, and saying what went wrong with it."""

from __future__ import annotations

import os
import sqlite3
import stat
from functools import partial
from pathlib import Path
from typing import Final, cast

from nectar.catalog.index.locks import is_locked, patiently
from nectar.catalog.index.spare import is_full
from nectar.catalog.index.unlocked import LOCKING, Unlocked
from nectar.errors import CatalogFailure, CatalogUnavailableError, UntrustedError
from nectar.trust.files import PRIVATE, Access, create

SYNCHRONOUS: Final = "NORMAL"  # a checkpoint waits for the disk, a transaction does not
BROKEN: Final = (sqlite3.Error, UnicodeDecodeError)  # the latter if what is damaged is a text, or is told of in one
_PASSING: Final = frozenset({  # what SQLite says of the machine, and not of the file
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL,
})  # fmt: skip


def connect(path: Path, read_only: bool, access: Access = PRIVATE, alone: bool = False) -> sqlite3.Connection:
    """A connection to the file, made if it is not there and may be written.

    alone: nobody else can use it meanwhile, and what processes share otherwise takes no room on the disk.
    SQLite gives the files beside it the mode of the file itself, whatever the umask, and opens none through a link.
    """
    try:
        if not read_only:
            if not path.parent.is_dir():
                _make_folder(path.parent)
            _make(path, access)
            connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        else:
            connection = _open_for_reading(path)
        try:
            patiently(partial(_set, connection, alone))
        except BaseException:
            connection.close()  # its locks would be in the way of whoever tries again
            raise
    except (*BROKEN, OSError) as error:
        raise failure_of(error, path) from error
    return connection


def _make_folder(folder: Path) -> None:
    from nectar.trust.folders import make_folders  # most homes are there

    if reason := make_folders(folder):
        raise UntrustedError(f"no catalog is made in {folder}: {reason}")


def _set(connection: sqlite3.Connection, alone: bool) -> None:
    if alone:  # before anything else, which would look for what is shared
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    connection.execute(f"PRAGMA synchronous={SYNCHRONOUS}")
    connection.execute("PRAGMA cache_size=-65536")
    # Not mapped: look-ups are hardly faster then, and a file that is cut off would end the process by a signal.
    connection.execute("PRAGMA mmap_size=0")
    connection.execute("PRAGMA temp_store=MEMORY")  # the disk may be full


def _make(path: Path, access: Access) -> None:
    """The file is there, plain and with the right mode; what has not been written to is an empty database."""
    try:
        os.close(create(path, access))
    except FileExistsError:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise CatalogFailure(
                f"the catalog {path} cannot be opened: it is a folder, a link or the like, and no plain file; move it"
            ) from None


def _open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that never writes; where not even the helper files of WAL can be made, the file as it lies there."""
    try:
        return patiently(partial(_checked, path, LOCKING))
    except sqlite3.OperationalError as error:
        if is_locked(error):
            raise
        return cast(sqlite3.Connection, Unlocked(path, partial(_checked, path)))  # as far as readers go


def _checked(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{Path(os.path.abspath(path)).as_uri()}?{mode}",
        uri=True,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except BROKEN:
        connection.close()
        raise
    return connection


def failure_of(error: BaseException, path: Path) -> CatalogFailure:
    """What is raised for an error of SQLite or of the system: whether it may pass, and what to do."""
    code = getattr(error, "sqlite_errorcode", None)
    said = any(each in str(error) for each in ("locked", "readonly"))
    passing = is_full(error, path.parent) or (code & 0xFF in _PASSING if code else said)
    return (CatalogUnavailableError if passing else CatalogFailure)(explain(error, path))


def explain(error: BaseException, path: Path) -> str:
    """What went wrong with the index, and what to do."""
    text = f"{error}{' (full)' if is_full(error, path.parent) else ''}".lower()
    for sign, advice in (
        ("full", "the disk is full: free some space, or lower the budget (NECTAR_BUDGET) and run `nectar gc --apply`"),
        ("locked", "another process kept it locked for too long: end that process, or try again"),
        ("readonly", "it may only be read: check its rights, or use another folder (NECTAR_HOME)"),
        ("unable to open", "it cannot be opened: check that its folder exists and may be written, or set NECTAR_HOME"),
        ("not a database", "it is no catalog: move the file away, and Nectar makes a new one"),
        ("malformed", "it is damaged: move the file away, and Nectar makes a new one; results are then computed anew"),
        (
            "can't decode",
            "it is damaged: move the file away, and Nectar makes a new one; results are then computed anew",
        ),
        ("permission", "access is denied: check the rights of its folder, or set NECTAR_HOME"),
    ):
        if sign in text:
            return f"the catalog {path} cannot be used: {advice} ({error})"
    return f"the catalog {path} cannot be used: {error}"
