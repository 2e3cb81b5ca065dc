"""Who holds a lease or a reservation, and whether they are gone.

In: the text in the row of a lease or reservation. Out: whether the process that wrote it has ended. A process is known
by its machine, the start of that machine, its number and its own start, so that nobody is taken for a later process of
the same number. Of a process in another container, whose number means nothing here, a lock tells: it holds a byte of a
file in the home as long as it lives. Law: nobody is taken for gone who may live; in doubt the time of the row counts.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from blake3 import blake3

from nectar.catalog.life import is_running
from nectar.catalog.process import boot, is_there, status_of, text_of
from nectar.forks import in_child
from nectar.trust.files import PRIVATE, Access, create
from nectar.trust.held import hold

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FILE: Final = "holders"  # in a home: each process locks a byte of it, and writes none
_ATTEMPTS: Final = 8  # to find a byte that nobody has
_MOST_BYTES: Final = 1 << 30  # all file systems know places up to there
_MACHINE: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_SPACES: Final = ("pid", "time")  # namespaces in which the number and the start of a process mean something
_DEAD: Final = frozenset("ZXx")  # states of a process of which only its number is left


class Holder(NamedTuple):
    """A process. machine, boot, space: digests; empty if there is no telling. start: in ticks. byte: 0 if it has none.

    space: the namespaces in which its number and its start mean something.
    """

    host: str
    process: int
    machine: str = ""
    boot: str = ""
    space: str = ""
    start: str = ""
    byte: int = 0

    def __str__(self) -> str:
        return "/".join((f"{self.host}:{self.process}", *self[2:6], str(self.byte)))


def parsed(holder: str) -> Holder | None:
    """Whom a row names; None if it says too little, such as one of an older Nectar."""
    named, *rest = holder.split("/")
    host, _, process = named.rpartition(":")
    if len(rest) != 5 or not process.isdecimal() or not rest[4].isdecimal():
        return None
    machine, boot, space, start, byte = rest
    return Holder(host, int(process), machine, boot, space, start, int(byte) % _MOST_BYTES)


class Presence:
    """This process, as it shows in one home, and what can be said of the others. folder: None if it shows in none."""

    def __init__(self, folder: Path | None = None, access: Access = PRIVATE) -> None:
        self._path = None if folder is None else folder / FILE
        self._access = access
        self._lock: _Lock | None = None
        self._name = (0, "")

    @property
    def name(self) -> str:
        """What this process writes into its rows. A child that was forked has a name of its own."""
        process, name = self._name
        if process != os.getpid():
            lock = self._locked()
            name = str(_this_process(os.getpid())._replace(byte=0 if lock is None else lock.byte()))
            self._name = (os.getpid(), name)
        return name

    def has_gone(self, holder: str) -> bool:
        """Whether the process of a row has ended; False in doubt."""
        them = None if holder == self.name else parsed(holder)
        if them is None:
            return False
        here = _this_process(os.getpid())
        if (them.boot, them.boot or them.host) != (here.boot, here.boot or here.host):
            # Another machine, of which nothing is known; or this one, and it was started again since.
            return bool(them.boot and here.boot and them.machine and them.machine == here.machine)
        if them.space and them.space == here.space:
            alive = _lives(them)
            if alive is not None:
                return not alive
        lock = self._locked() if them.byte else None
        return lock is not None and lock.is_free(them.byte)

    def runs(self, holder: str) -> bool | None:
        """Whether the process of a row is there and could go on at any moment, and was not stopped or paused.

        None if there is no telling: it is on another machine, or in another container.
        """
        them, here = parsed(holder), _this_process(os.getpid())
        if them is None or (them.boot, them.boot or them.host) != (here.boot, here.boot or here.host):
            return None
        if them.space != here.space:
            return None
        return not self.has_gone(holder) and is_running(them.process)

    def close(self) -> None:
        """This process shows in this home no longer, unless it has opened it once more."""
        self._name = (0, "")
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.leave()

    def _locked(self) -> _Lock | None:
        if self._lock is None and self._path is not None and fcntl is not None:
            with suppress(OSError):  # where no file can be made, the number of the process has to do
                self._lock = _Lock.of(self._path, self._access)
        return self._lock

    def __del__(self) -> None:
        with suppress(Exception):  # the interpreter may be ending
            self.close()


# processes of this machine


@lru_cache(maxsize=1)
def _this_process(process: int) -> Holder:
    host = os.uname().nodename if hasattr(os, "uname") else socket.gethostname()
    machine = next((found for path in _MACHINE if (found := text_of(path))), "")
    spaces = [_link(f"/proc/self/ns/{each}") for each in _SPACES]
    space = _digest("".join(spaces)) if spaces[0] else ""  # older kernels have no namespaces of time
    start = status_of(process).start
    return Holder(host, process, _digest(machine), _digest(boot()), space if start else "", start)


def _lives(them: Holder) -> bool | None:
    """Whether a process of this space is still there; None if there is no telling."""
    start, state = status_of(them.process)
    if start:
        return start == them.start and state not in _DEAD
    return False if is_there(them.process) is False else None  # somebody has this number, whoever that is


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _digest(text: str) -> str:
    """What stands for an identity that is nobody else's business."""
    return blake3(f"nectar {text}".encode()).hexdigest(8) if text else ""


# locks

_guard = threading.RLock()


@in_child
def _forget_parent() -> None:
    """In a child: a thread of the parent that held the guard is not here to give it back."""
    global _guard
    _guard = threading.RLock()


class _Lock:
    """The file in a home of whose bytes each process locks one.

    A process loses all of its locks on a file as soon as it closes any descriptor of it. So there is one in a process,
    whoever asks, and it is closed by the last who leaves.
    """

    _open: Final[dict[tuple[int, int], _Lock]] = {}

    def __init__(self, fd: int, identity: tuple[int, int]) -> None:
        self._fd, self._identity = fd, identity
        self._let_go: Callable[[], object] = bool
        self._users = 0
        self._mine = (0, 0)

    @classmethod
    def of(cls, path: Path, access: Access) -> _Lock:
        """The lock file at a path. Raises OSError if it cannot be opened or made."""
        with _guard:
            lock = cls._known(path)
            if lock is None:
                fd = _opened(path, access)
                lock = cls._open[_identity(os.fstat(fd))] = cls(fd, _identity(os.fstat(fd)))
                lock._let_go = hold(path)
            lock._users += 1
            return lock

    @classmethod
    def _known(cls, path: Path) -> _Lock | None:
        with suppress(OSError):
            return cls._open.get(_identity(os.lstat(path)))
        return None

    def byte(self) -> int:
        """The byte that this process has locked; 0 if it can have none."""
        with _guard:
            if self._mine[0] != os.getpid():  # a forked child has none of its parent's locks
                self._mine = (os.getpid(), self._take())
            return self._mine[1]

    def _take(self) -> int:
        for _ in range(_ATTEMPTS):
            byte = int.from_bytes(os.urandom(4), "big") % (_MOST_BYTES - 1) + 1
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            except OSError as error:
                if error.errno in (errno.EACCES, errno.EAGAIN):  # somebody has this one
                    continue
                return 0
            return byte
        return 0

    def is_free(self, byte: int) -> bool:
        """Whether nobody has locked a byte any more."""
        if self._mine == (os.getpid(), byte):
            return False
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, byte)
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, byte)
        except OSError:
            return False
        return True

    def leave(self) -> None:
        """One of those who asked for it needs it no longer."""
        with _guard:
            self._users -= 1
            if self._users == 0:
                del self._open[self._identity]
                os.close(self._fd)
                self._let_go()


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _opened(path: Path, access: Access) -> int:
    """A descriptor of the lock file, made if it is not there; never through a link, and of a plain file."""
    try:
        return create(path, access, os.O_RDWR)
    except FileExistsError:
        fd = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise
        return fd
