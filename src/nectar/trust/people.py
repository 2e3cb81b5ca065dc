"""Users and groups of this machine: who this process is, who else is in a group, what they are called.

Where the system knows no numbers of users (Windows), everybody is taken for the user: its own rules protect folders.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Final

ROOT: Final = 0
KNOWN: Final = hasattr(os, "geteuid")  # whether files have owners and modes here


def me() -> int:
    """The user as whom this process opens files."""
    return os.geteuid() if KNOWN else ROOT


def is_member(group: int) -> bool:
    """Whether this process is in a group."""
    return group == os.getegid() or group in os.getgroups()


def user_called(user: int) -> str:
    """What a user is called in messages."""
    import pwd

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def group_called(group: int) -> str:
    """What a group is called in messages."""
    import grp

    try:
        return f"the group {grp.getgrgid(group).gr_name}"
    except KeyError:
        return f"the group {group}"


def group_named(text: str) -> int | None:
    """The number of a group, given by its name or number; None if there is no such group."""
    import grp

    try:
        return grp.getgrnam(text).gr_gid
    except KeyError:
        return int(text) if text.isascii() and text.isdigit() else None


@lru_cache(maxsize=256)
def harmless(group: int, user: int) -> bool:
    """Whether a group is that of root, or the private one of this user: the same name, and nobody else in it.

    Membership alone does not tell: directories of a network list those in a group, and not whose first group it is.
    """
    import grp
    import pwd

    try:
        found = grp.getgrgid(group)
        owner = pwd.getpwuid(ROOT if group == ROOT else user)
    except KeyError:
        return False
    names = {owner.pw_name, pwd.getpwuid(ROOT).pw_name}
    others = any(each.pw_gid == group and each.pw_uid not in (user, ROOT) for each in pwd.getpwall())
    return owner.pw_gid == group and owner.pw_name == found.gr_name and names >= set(found.gr_mem) and not others


@lru_cache(maxsize=1)
def stand_in_for_root() -> int:
    """Who root appears to be: another number in a container that maps this user alone."""
    try:
        mapped = [line.split() for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()]
        if any(int(first) == ROOT for first, _, _ in mapped):
            return ROOT
        return int(Path("/proc/sys/kernel/overflowuid").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return ROOT
