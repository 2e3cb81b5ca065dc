"""Spare room: a file of no meaning that is given up when the disk is full, so that something can still be deleted.

SQLite needs room to open a file, and to forget a row. Whoever finds no spare room either deletes files before rows.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from blake3 import blake3

from nectar.faults import Reach
from nectar.trust.files import PRIVATE, Access, create

_SIZE: Final = 256 * 1024  # what forgetting one entry takes, several times over
_WRITTEN: Final = 60.0  # seconds after which nobody is still writing it
_LITTLE: Final = 128 * 1024  # bytes free on the disk; SQLite does not always say that it is full
_FULL: Final = frozenset({"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_WRITE"})  # the last: of a quota


def lacks_room(failure: BaseException, folder: Path | None = None) -> bool:
    """Whether something could not be opened, or written down, because the disk is full."""
    error = failure.__cause__
    return isinstance(error, sqlite3.Error) and is_full(error, folder)


def is_full(error: BaseException, folder: Path | None = None) -> bool:
    """Whether SQLite found no room. folder: where; what it says of an input or output error does not always tell."""
    name = getattr(error, "sqlite_errorname", "")
    if name in _FULL or "full" in str(error):
        return True
    return folder is not None and name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")) and _is_full(folder)


def _is_full(folder: Path) -> bool:
    if not hasattr(os, "statvfs"):
        return False
    with suppress(OSError):
        status = os.statvfs(folder)
        return status.f_bavail * status.f_frsize < _LITTLE or (status.f_files > 0 and status.f_favail == 0)
    return False


class Spare:
    """The spare room beside an index."""

    def __init__(self, index: Path, reach: Reach, access: Access = PRIVATE) -> None:
        self._path = index.with_name(f"{index.name}-spare")
        self._reach, self._access = reach, access
        self._given_up = False

    def hold(self) -> None:
        """The room is held, unless there is none."""
        if self._given_up or self._is_held():
            return
        try:
            self._reach("write spare")
            # Zeros would take no room on some file systems; asking the system for so much at random takes longer.
            with os.fdopen(create(self._path, self._access), "wb") as file:
                file.write(blake3(os.urandom(32)).digest(length=_SIZE))
        except FileExistsError:  # another process holds it
            return
        except OSError:  # half of it would be taken for all
            with suppress(OSError):
                self._path.unlink()

    def _is_held(self) -> bool:
        """Whether all of it is there; what a process has left that could not write all of it is gone."""
        with suppress(OSError):
            if os.lstat(self._path).st_size >= _SIZE:
                return True
            if time.time() - os.lstat(self._path).st_mtime > _WRITTEN:
                self._path.unlink()
        return os.path.lexists(self._path)

    def give_up(self) -> bool:
        """The room is free; False if none was held. This object does not hold it again: others need it now."""
        self._given_up = True
        try:
            self._reach("remove spare")
            self._path.unlink()
        except OSError:
            return False
        return True
