"""Spare room: a file of no meaning that is given up when the disk is full, so that something can still be deleted.

SQLite needs room to forget a row. Without any, nobody could make room, except by deleting what is not ours.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from nectar.faults import Reach

_SIZE: Final = 256 * 1024  # what forgetting one entry takes, several times over


class Spare:
    """The spare room beside an index."""

    def __init__(self, index: Path, reach: Reach) -> None:
        self._path = index.with_name(f"{index.name}-spare")
        self._reach = reach

    def hold(self) -> None:
        """The room is held, unless there is none."""
        if self._path.exists():
            return
        with suppress(OSError):
            self._reach("write spare")
            self._path.write_bytes(os.urandom(_SIZE))  # zeros would take no room on some file systems

    def give_up(self) -> bool:
        """The room is free; False if none was held."""
        try:
            self._reach("remove spare")
            self._path.unlink()
        except OSError:
            return False
        return True
