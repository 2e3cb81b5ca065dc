"""Small files in a home, beside the catalog and the results: what processes left of them goes.

In: a home, its index and its store. Law: only files go whose names Nectar gives, and that nobody writes any more; what
is lost with them is made again, at the cost of time.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from nectar.catalog.index.base import Index
from nectar.store.store import Store
from nectar.store.verify import LASTS
from nectar.trust.contents import MARK, MARKS

_ASIDE: Final = re.compile(r"(.+)\.[0-9a-f]{32}")  # being written, to take the place of another (trust.files.replace)
_NAMES: Final = {  # by folder: of files that are replaced
    "": re.compile(rf"{re.escape(MARK)}|{MARKS.pattern}"),
    "programs": re.compile(r"[0-9a-f]{32}\.json"),  # of sites
    "rebuilds": re.compile(r"[0-9a-f]{2,128}(-allowed)?"),  # of attempts to rebuild that failed
}
_WRITTEN: Final = 3600.0  # seconds after which nobody is still writing a file
_READ: Final = 86400.0  # and after which nobody waits for the reasons of a failure
_LONG: Final = 64 << 10  # bytes of a file of marks that are worth writing it anew for


def tidy(home: Path, index: Index, store: Store, now: float) -> int:
    """Deletes what was left in a home, and marks of results that are gone; how many files went."""
    old = [
        path
        for folder in _NAMES
        for path, modified in _files(home / folder)
        if modified < now - _lasts(folder, path.name)
    ]
    for path in old:
        with suppress(OSError):
            path.unlink()
    if any(MARKS.fullmatch(path.name) and path.stat().st_size > _LONG for path, _ in _files(home)):
        _forget_marks(index, store)
    return len(old)


def notes(home: Path) -> list[Path]:
    """Files in a home that help, and that nothing depends on: about programs, and of rebuilds that failed."""
    return [
        path
        for folder in _NAMES
        if folder
        for path, _ in _files(home / folder)
        if _NAMES[folder].fullmatch(_settled_name(path.name))
    ]


def _lasts(folder: str, name: str) -> float:
    """Seconds since its last change after which a file is needed no more; infinite if it is not one of ours."""
    settled = _settled_name(name)
    if not _NAMES[folder].fullmatch(settled):
        return math.inf
    if settled != name:
        return _WRITTEN
    if folder == "rebuilds":
        return _READ
    return LASTS if MARKS.fullmatch(name) else math.inf  # of an earlier start, or another machine: no mark in it holds


def _settled_name(name: str) -> str:
    """The name that a file has once it is written."""
    aside = _ASIDE.fullmatch(name)
    return aside[1] if aside else name


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
