"""Whether a process that holds a reservation goes on: one that was stopped is not waited for.

In: the number of a process of this machine. Out: whether it runs, or could at any moment. Law: in doubt it does;
whoever waits for it waits for a sign of life (flights.py).
"""

from __future__ import annotations

import os
from typing import Final

_STILL: Final = frozenset("TtZXx")  # states of a process that is stopped, traced, or of which only its number is left


def is_running(process: int) -> bool:
    """Whether a process is there, and neither stopped (SIGSTOP, a debugger) nor frozen (a container that is paused)."""
    status = _text(f"/proc/{process}/stat")
    if status:
        state = status.rpartition(")")[2].split()[:1]  # its name may hold anything
        return not _STILL.intersection(state) and not _is_frozen(process)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it lives, and belongs to somebody else
        return True
    return True


def _is_frozen(process: int) -> bool:
    group = _text(f"/proc/{process}/cgroup").rpartition("0::")[2].strip()
    return "frozen 1" in _text(f"/sys/fs/cgroup{group}/cgroup.events") if group else False


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
