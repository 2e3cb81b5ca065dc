"""Whether a process that holds a reservation goes on: one that was stopped is not waited for.

In: the number of a process of this machine. Out: whether it runs, or could at any moment. Law: in doubt it does;
whoever waits for it waits for a sign of life (flights.py).
"""

from __future__ import annotations

from typing import Final

from nectar.catalog.process import is_there, status_of, text_of

_STILL: Final = frozenset("TtZXx")  # states of a process that is stopped, traced, or of which only its number is left


def is_running(process: int) -> bool:
    """Whether a process is there, and neither stopped (SIGSTOP, a debugger) nor frozen (a container that is paused)."""
    state = status_of(process).state
    if state:
        return state not in _STILL and not _is_frozen(process)
    return is_there(process) is not False


def _is_frozen(process: int) -> bool:
    group = text_of(f"/proc/{process}/cgroup").rpartition("0::")[2]
    return "frozen 1" in text_of(f"/sys/fs/cgroup{group}/cgroup.events") if group else False
