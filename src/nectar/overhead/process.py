"""When this process began."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

_LOADED: Final = time.time()


def began() -> float:
    """Seconds since 1970, and never later than it was; 0 where the system does not tell."""
    try:
        after_name = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        since_boot = int(after_name[19]) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot
        return min(_LOADED, time.time() - age) if age > 0 else 0.0
    except (AttributeError, OSError, ValueError, IndexError):
        return 0.0
