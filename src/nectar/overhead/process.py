"""When this process began."""

from __future__ import annotations

import os
import time
from pathlib import Path


def began() -> float:
    """Seconds since 1970; 0 where the system does not tell."""
    try:
        after_name = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        ticks = int(after_name[19])  # since the machine was started, of which the file has the same clock as uptime
        uptime = float(Path("/proc/uptime").read_text().split()[0])
        return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
