"""Opening an SQLite file, and saying what went wrong with it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from nectar.errors import CatalogFailure

_WAIT: Final = 30.0  # seconds to wait for another writer before giving up


def connect(path: Path, read_only: bool) -> sqlite3.Connection:
    """A connection to the file, made if it is not there and may be written."""
    try:
        if not read_only:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
        else:
            connection = _open_for_reading(path)
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA cache_size=-65536")
        connection.execute("PRAGMA mmap_size=1073741824")
    except (sqlite3.Error, OSError) as error:
        raise CatalogFailure(explain(error, path)) from error
    return connection


def _open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that never writes; where not even the helper files of WAL can be made, the file as it lies there."""
    for mode in ("mode=ro", "immutable=1"):
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=_WAIT, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            connection.close()
            if mode == "immutable=1" or not isinstance(error, sqlite3.OperationalError):
                raise
        else:
            break
    return connection


def explain(error: BaseException, path: Path) -> str:
    """What went wrong with the index, and what to do."""
    text = str(error).lower()
    for sign, advice in (
        ("full", "the disk is full: free some space, or lower the budget (NECTAR_BUDGET) and run `nectar gc --apply`"),
        ("locked", "another process kept it locked for too long: end that process, or try again"),
        ("readonly", "it may only be read: check its rights, or use another folder (NECTAR_HOME)"),
        ("unable to open", "it cannot be opened: check that its folder exists and may be written, or set NECTAR_HOME"),
        ("not a database", "it is no catalog: move the file away, and Nectar makes a new one"),
        ("malformed", "it is damaged: move the file away, and Nectar makes a new one; results are then computed anew"),
        ("permission", "access is denied: check the rights of its folder, or set NECTAR_HOME"),
    ):
        if sign in text:
            return f"the catalog {path} cannot be used: {advice} ({error})"
    return f"the catalog {path} cannot be used: {error}"
