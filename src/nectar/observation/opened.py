"""Who opens or changes files, as Linux tells it (inotify).

In: paths. Out: which of them, or of the files in them, were opened or changed since. Law: closing what the system
tells through waits for all its processors, which takes milliseconds; so it stays open, one for each computation that
is under way at the same time, and is used again. The program may close it, and open something else of the same number;
nothing is read from that, unless it is of the same kind.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from nectar.forks import in_child

_OPENED, _MODIFIED, _TOO_MANY = 0x20, 0x2, 0x4000  # IN_OPEN, IN_MODIFY, IN_Q_OVERFLOW
_OF_FOLDER: Final = 0x40000000  # IN_ISDIR
_EVENT: Final = struct.Struct("iIII")
_AT_A_TIME: Final = 1 << 16  # bytes
_MOST_IDLE: Final = 4  # a user has some hundred of them, for all processes


class Listener:
    """Tells of files from the moment they are added to it. Nobody else uses it until it is given back."""

    __slots__ = ("_by_number", "_descriptor", "_libc", "_process")

    def __init__(self, libc: Any, descriptor: int) -> None:
        self._libc, self._descriptor, self._process = libc, descriptor, os.getpid()
        self._by_number: dict[int, str] = {}

    def add(self, path: str) -> bool:
        """Whether it tells of a file, or of the files of a folder, from now on."""
        number = int(self._libc.inotify_add_watch(self._descriptor, os.fsencode(path), _OPENED | _MODIFIED))
        if number >= 0:
            self._by_number[number] = path
        return number >= 0

    def heard(self) -> Iterator[tuple[str, str]]:
        """What was opened or changed: a path that was added, and for a folder the name of the file in it.

        Raises OverflowError if there was more than the system could tell of, OSError if somebody has closed it.
        """
        for number, kind, name in self._events():
            if kind & _TOO_MANY:
                raise OverflowError
            path = self._by_number.get(number)
            if path is not None and not (name and kind & _OF_FOLDER):  # a folder in a folder says nothing of files
                yield path, name

    def give_back(self) -> None:
        """It tells of nothing any more, and is there for others."""
        if not self.is_open():
            return
        if len(_idle) >= _MOST_IDLE:
            os.close(self._descriptor)
            return
        for number in self._by_number:
            self._libc.inotify_rm_watch(self._descriptor, number)
        self._by_number = {}
        with suppress(OSError):
            for _ in self._events():  # what it has still to tell is nobody's business
                pass
            _idle.append(self)

    def is_open(self) -> bool:
        """Whether nobody has closed it, and this is not a forked process, which shares it with the one that made it."""
        try:
            kind = os.readlink(f"/proc/self/fd/{self._descriptor}")
        except OSError:
            return False
        return kind == "anon_inode:inotify" and self._process == os.getpid()

    def _events(self) -> Iterator[tuple[int, int, str]]:
        """What the system tells: the number of what was added, what happened, and to which file in a folder.

        Raises OSError if it was closed.
        """
        if not self.is_open():
            raise OSError(errno.EBADF, "somebody has closed the descriptor of the listener")
        with suppress(BlockingIOError):
            while data := os.read(self._descriptor, _AT_A_TIME):
                at = 0
                while at < len(data):
                    number, kind, _, length = _EVENT.unpack_from(data, at)
                    name = os.fsdecode(data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0"))
                    at += _EVENT.size + length
                    yield number, kind, name


_idle: Final[list[Listener]] = []
_libc: Any = None


def new_listener() -> Listener | None:
    """One that nobody uses; None where the system does not tell."""
    global _libc
    while _idle:
        with suppress(IndexError):  # another thread may take the last one
            listener = _idle.pop()
            if listener.is_open():
                return listener
    if sys.platform != "linux":
        return None
    try:
        _libc = _libc or ctypes.CDLL(None, use_errno=True)
        descriptor = int(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    except (OSError, AttributeError):
        return None
    return Listener(_libc, descriptor) if descriptor >= 0 else None


in_child(_idle.clear)  # the parent reads from the same ones
