"""What the system says of a process, and of when this machine was started; empty where there is no telling."""

from __future__ import annotations

import os
from typing import NamedTuple


class Status(NamedTuple):
    """start: in ticks since the machine was started. state: a letter; T and t if it was stopped, Z, X and x if dead."""

    start: str = ""
    state: str = ""


def status_of(process: int) -> Status:
    """When a process was started, and its state."""
    fields = text_of(f"/proc/{process}/stat").rpartition(")")[2].split()  # its name may hold anything
    return Status(fields[19], fields[0]) if len(fields) > 19 else Status()


def is_there(process: int) -> bool | None:
    """Whether some process has this number; None if that may not be asked."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it lives, and belongs to somebody else
        return None
    return True


def boot() -> str:
    """What tells this start of the machine from all others."""
    return text_of("/proc/sys/kernel/random/boot_id")


def text_of(path: str) -> str:
    """What a file of the system says."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
