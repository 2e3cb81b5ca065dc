"""Which files belong to the code that is installed, so that reading them tells nothing new.

In: a path, or the frame of running code. Out: whether it is of the standard library, of an installed distribution or
of the operating system; their versions stand in fingerprints already.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import Final

_OF_SYSTEM: Final = (
    "/usr/share/", "/usr/lib/", "/usr/lib64/", "/System/Library/", "/Library/Fonts/",
    # How many processors there are, and which libraries are loaded: pools of threads ask, results do not depend on it.
    "/sys/devices/system/cpu/", "/sys/fs/cgroup/", "/proc/cpuinfo", "/proc/self/cgroup", "/proc/self/mountinfo",
    "/proc/self/maps",
)  # fmt: skip
_IN_PATH: Final = ("site-packages", "dist-packages")
_CODE: Final = (".py", ".pyc", ".pyi", ".so", ".pyd", ".dll", ".dylib", ".pth")


def is_installed(path: str) -> bool:
    """Whether a file is part of what is installed: code, and the data that comes with it."""
    return path.startswith(_roots(tuple(sys.path)))


def is_code(path: str) -> bool:
    """Whether a file holds code of a module that is loaded, or may be; tracebacks show its lines."""
    return path.endswith(_CODE)


@lru_cache(maxsize=8)
def _roots(entries: tuple[object, ...]) -> tuple[str, ...]:
    """Folders of the standard library, of distributions and of the system, each with a separator at its end."""
    found = {getattr(sys, "_stdlib_dir", None) or os.path.dirname(os.__file__), os.path.join(sys.prefix, "share")}
    found |= {each for each in entries if type(each) is str and os.path.basename(each) in _IN_PATH}
    tag = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    found |= {os.path.join(prefix, sys.platlibdir, tag) for prefix in (sys.base_prefix, sys.base_exec_prefix)}
    found |= {os.path.realpath(each) for each in found}
    return (*sorted(os.path.join(each, "") for each in found), *_OF_SYSTEM)
