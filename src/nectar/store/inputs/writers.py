"""Who may change a file without its times showing it.

A file that is mapped into memory for writing gets a new time with the first write to a page only; what is written to
that page afterwards shows in no time, until the system has written the page to the disk. And a single call that writes
for long sets the times when it begins. In both cases the file is open for writing, also where the program that mapped
it has closed it. Linux tells so: it grants a lease to read only on files that nobody can write to.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any, Final

from nectar.trust.held import is_held

try:
    import fcntl
except ImportError:  # not a Unix
    _fcntl: Any = None
else:
    _fcntl = fcntl

_OPEN: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


def may_be_written(path: str) -> bool:
    """Whether some process has the file open for writing, or mapped; False where the system does not tell.

    It tells the owner of a file, on file systems of this machine.
    """
    if not hasattr(_fcntl, "F_SETLEASE"):
        return False
    if is_held(path):
        return True
    try:
        fd = os.open(path, _OPEN)
    except OSError:
        return False
    try:
        return _is_refused_lease(fd)
    finally:
        os.close(fd)


def _is_refused_lease(fd: int) -> bool:
    try:
        # Who opens the file for writing at this moment waits until the lease is given back, and the kernel sends a
        # signal: not the usual one, which would end the process.
        _fcntl.fcntl(fd, _fcntl.F_SETSIG, signal.SIGURG)
        _fcntl.fcntl(fd, _fcntl.F_SETLEASE, _fcntl.F_RDLCK)
    except BlockingIOError:
        return True
    except OSError:  # the file is somebody else's, or lies where there are no leases
        return False
    with suppress(OSError):
        _fcntl.fcntl(fd, _fcntl.F_SETLEASE, _fcntl.F_UNLCK)
    return False
