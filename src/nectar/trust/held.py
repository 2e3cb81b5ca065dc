"""Files of which this process holds locks: those of catalogs, and the file `holders` of a home.

In: from those who lock files, which they are. Out: whether a path leads to one of them. Law: a process loses all of its
locks on a file as soon as it closes any descriptor of it, whoever has opened that one. Other processes then take it for
gone, and may delete what it is using. So whoever opens files of any kind refuses these first. SQLite knows its own.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple


class _Held(NamedTuple):
    """Files by device and number, and how they are called."""

    numbers: frozenset[tuple[int, int]]
    names: frozenset[str]


_held: Final[dict[object, _Held]] = {}  # without a lock: each change is one step, and may be made while a process forks


def hold(*paths: str | os.PathLike[str]) -> Callable[[], object]:
    """Those of the files that are there are refused to all others, until what is given back is called."""
    numbers = set()
    for path in paths:
        with suppress(OSError):
            numbers.add(_number(os.stat(path)))
    holding = object()
    _held[holding] = _Held(frozenset(numbers), frozenset(os.path.basename(path) for path in paths))
    return partial(_held.pop, holding, None)


def is_held(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads to one of these files, whatever it is called there."""
    if not _held:
        return False
    try:
        number = _number(os.stat(path))
    except OSError:
        return False
    return any(number in each.numbers for each in list(_held.values()))


def refuse(path: str | os.PathLike[str], *, links: bool = True) -> None:
    """Raises OSError if a path leads to one of these files.

    links: it may be a link to one; otherwise the system is asked only about what is called like one.
    """
    name = os.path.basename(path)
    if (links or any(name in each.names for each in list(_held.values()))) and is_held(path):
        raise OSError(errno.EBUSY, "this process uses it, and would lose its locks on it", os.fspath(path))


def _number(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
