"""Whether a path leads where it led before: no folder on the way was put there since.

Whoever moves a folder changes the folder that holds it, and the system notes the moment in both: as the time of the
change, which programs cannot set. A folder in which something else was changed is the same folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable


def leads_there_since(path: str, before: int, is_local: Callable[[str, int], bool]) -> bool:
    """Whether everything on the way to a file was there before a moment; no if there are links on the way.

    before: nanoseconds since 1970. is_local: whether what lies at a path, on a device, has the clock of this machine.
    Raises OSError if the path leads nowhere.
    """
    here, holder = "/", os.lstat("/")
    for name in path.split("/"):
        if name in ("", "."):
            continue
        here = os.path.join(here, name)
        found = os.lstat(here)
        if name == ".." or stat.S_ISLNK(found.st_mode) or not is_local(here, found.st_dev):
            return False
        if found.st_ctime_ns >= before and holder.st_ctime_ns >= before:
            return False
        holder = found
    return True
