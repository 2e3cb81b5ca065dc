"""Whether a path leads where it led before: no folder or link on the way was put there since.

Whoever moves a folder or makes a link changes the folder that holds it, and the system notes the moment in both. A
folder in which something else was changed is the same folder.
"""

from __future__ import annotations

import os
import stat
from typing import Final

_MOST_LINKS: Final = 40  # as the system follows


def leads_there_since(path: str, before: int) -> bool:
    """Whether everything on the way to a file, links and what they lead to included, was there before a moment.

    before: nanoseconds since 1970. Raises OSError if the path leads nowhere.
    """
    here, holder = "/", os.lstat("/")
    rest = [name for name in reversed(os.path.join(os.getcwd(), path).split("/")) if name not in ("", ".")]
    links = 0
    while rest:
        name = rest.pop()
        if name == "..":
            here = os.path.dirname(here)
            holder = os.lstat(here)
            continue
        at = os.path.join(here, name)
        found = os.lstat(at)
        if found.st_ctime_ns >= before and holder.st_mtime_ns >= before:
            return False
        if not stat.S_ISLNK(found.st_mode):
            here, holder = at, found
            continue
        links += 1
        target = os.readlink(at)
        if links > _MOST_LINKS:
            return False
        rest += [each for each in reversed(target.split("/")) if each not in ("", ".")]
        if target.startswith("/"):
            here, holder = "/", os.lstat("/")
    return True
