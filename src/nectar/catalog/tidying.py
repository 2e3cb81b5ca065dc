"""Small files in a home, beside the catalog and the results: what processes left of them goes.

In: a home, its index and its store. Law: only files go whose names Nectar gives, and that nobody writes any more; what
is lost with them is made again, at the cost of time.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from nectar.catalog.index.base import Index
from nectar.store.store import Store

_ASIDE: Final = re.compile(r".+\.[0-9a-f]{32}")  # being written, to take the place of another (trust.files.replace)
_NOTE: Final = re.compile(r"[0-9a-f]{2,128}(-allowed)?")  # of an attempt to rebuild that failed
_WRITTEN: Final = 3600.0  # seconds after which nobody is still writing a file
_READ: Final = 86400.0  # and after which nobody waits for the reasons of a failure
_FOLDERS: Final = ("", "programs", "rebuilds")
_LONG: Final = 64 << 10  # bytes of a file of marks that are worth writing it anew for


def tidy(home: Path, index: Index, store: Store, now: float) -> int:
    """Deletes what was left in a home, and marks of results that are gone; how many files went."""
    old = [
        path
        for folder in _FOLDERS
        for path, modified in _files(home / folder)
        if (_ASIDE.fullmatch(path.name) and modified < now - _WRITTEN)
        or (folder == "rebuilds" and _NOTE.fullmatch(path.name) and modified < now - _READ)
    ]
    for path in old:
        with suppress(OSError):
            path.unlink()
    if any(path.name.startswith("verified-") and path.stat().st_size > _LONG for path, _ in _files(home)):
        _forget_marks(index, store)
    return len(old)


def _forget_marks(index: Index, store: Store) -> None:
    locations = store.verified.locations()
    alive = index.referred(locations)
    store.verified.keep(alive.__contains__)


def _files(folder: Path) -> Iterator[tuple[Path, float]]:
    """Plain files in a folder, and when they were changed."""
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(folder)
    for name in names:
        with suppress(OSError):
            status = os.lstat(folder / name)
            if stat.S_ISREG(status.st_mode):
                yield folder / name, status.st_mtime
