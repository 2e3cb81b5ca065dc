"""When this process began, and whether its clock and its file systems are still those of then.

Loaded with the session, so that what is noted here is as early as can be.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

_STEP: Final = 1.0  # seconds by which a clock may be put right without anybody noticing


def began() -> float:
    """Seconds since 1970, and never later than it was; 0 where that cannot be told, or not be trusted any more."""
    if _noted != _note() or abs(_offset() - _OFFSET) > _STEP:
        return 0.0
    try:
        after_name = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        age = _since_boot() - int(after_name[19]) / os.sysconf("SC_CLK_TCK")
        return min(_LOADED, time.time() - age) if age > 0 else 0.0
    except (AttributeError, OSError, ValueError, IndexError):
        return 0.0


def _note() -> tuple[int, bytes]:
    """Which process this is, which is another after a fork; and what is mounted where."""
    try:
        return os.getpid(), Path("/proc/self/mountinfo").read_bytes()
    except OSError:
        return os.getpid(), b""


def _since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _offset() -> float:
    """Changes when somebody sets the clock."""
    try:
        return time.time() - _since_boot()
    except AttributeError:
        return 0.0


_LOADED: Final = time.time()
_OFFSET: Final = _offset()
_noted: Final = _note()
