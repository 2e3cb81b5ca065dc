"""Whether others could change what lies at a path, or put something else in its place.

In: a path. Out: why it cannot be trusted, in words; nothing if it can. Every folder on the way counts, and every link:
whoever may write to one of them decides what the path leads to. A folder with the sticky bit, such as /tmp, is fine on
the way, since nobody but its owner can replace what lies in it; not as the end.

Law: each step is looked at only after those before it were found good, so that nobody else can exchange what leads to
it. What is not there is a reason: who may make things there could have taken it away for as long as it was looked at.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from nectar.trust import people

LINKS = 40  # that are followed, as the kernel does
_LISTS = ("system.posix_acl_access", "system.posix_acl_default")  # of a file; of what will be made in a folder


class Way(NamedTuple):
    """What leads to all that lies in a folder, the folder included.

    reason: why it cannot be trusted; empty if it can. open_to_all: the folder, if everybody may make something in it.
    """

    reason: str
    open_to_all: str = ""


def way_into(folder: str) -> Way:
    """What is known of the way to all that lies in a folder, asked once for all of it."""
    open_to_all, end = "", False
    try:
        for step, status, last in _steps(os.path.abspath(folder)):
            reason = distrusted(step, status, None, None, last=False)
            if reason:
                return Way(reason)
            open_to_all, end = _open_to_all(step, status), last
    except OSError as error:
        return Way(f"{error.filename or folder} cannot be looked at: {error.strerror or error}")
    return Way("", open_to_all) if end else Way(f"{folder} is not there any more")


def distrust_in(way: Way, path: str) -> str:
    """Why others could change what lies at a path, given the way into its folder; empty if nobody can."""
    if way.reason:
        return way.reason
    try:
        status = os.lstat(path)
    except OSError as error:
        return f"{path} cannot be looked at: {error.strerror or error}"
    if stat.S_ISLNK(status.st_mode):
        return distrust(path)
    return distrusted(path, status, None, None, last=True) or _linked_to(path, status, way.open_to_all)


def distrust(
    path: str | os.PathLike[str],
    *,
    group: int | None = None,
    owner: int | None = None,
    used: os.stat_result | None = None,
    absent: bool = False,
) -> str:
    """Why others could change what lies at a path, or replace it; empty if nobody can.

    group, owner: who else may, because this home was explicitly shared by them. used: what the system said of what was
    opened, which has to lie there still. absent: nothing need be there, because it is yet to be made.
    """
    if not people.KNOWN:
        return ""
    open_to_all, end = "", None  # the folder before, if everybody may make something in it; what the path means
    try:
        for step, status, last in _steps(os.path.abspath(path)):
            # Where everybody may make a folder, this user has not named that of a colleague, but of whoever was first.
            reason = distrusted(step, status, group, None if open_to_all else owner, last=last)
            if reason:
                squatted = open_to_all and owner is not None
                return f"{reason}, and everybody may make something in {open_to_all}" if squatted else reason
            if last:
                end = status
                if reason := _linked_to(step, status, open_to_all):
                    return reason
            open_to_all = _open_to_all(step, status)
    except OSError as error:
        return f"{error.filename or path} cannot be looked at: {error.strerror or error}"
    if end is None:
        return "" if absent else f"{path} is not there any more"
    if used is None:
        return ""
    # Its number alone says little: that of a file which is gone is given to the next.
    reason = distrusted(os.fspath(path), used, group, owner, last=True)
    return reason or ("" if os.path.samestat(end, used) else f"{path} was exchanged while it was looked at")


def _open_to_all(step: str, status: os.stat_result) -> str:
    return step if status.st_mode & stat.S_IWOTH and not stat.S_ISLNK(status.st_mode) else ""


def _linked_to(path: str, status: os.stat_result, open_to_all: str) -> str:
    """Why a file may not be what this user has put there: anybody can give a file another name, where they may."""
    if not open_to_all or not stat.S_ISREG(status.st_mode) or status.st_nlink < 2:
        return ""
    return f"{path} has another name elsewhere, and everybody may make something in {open_to_all}"


def others_may_write(path: str, status: os.stat_result, group: int | None = None) -> str:
    """Who else may write to a file or folder, by its mode; empty if nobody. group: one that may."""
    if status.st_mode & stat.S_IWOTH:
        return "everybody"
    if not status.st_mode & stat.S_IWGRP:
        return ""
    if has_list(path):  # of which the rights of the group are a summary
        return f"{people.group_called(status.st_gid)}, or others in its list of rights (see getfacl),"
    if status.st_gid == group or people.harmless(status.st_gid, people.me()):
        return ""
    return people.group_called(status.st_gid)


def distrusted(path: str, status: os.stat_result, group: int | None, owner: int | None, *, last: bool) -> str:
    """Why others could change what a step of a path means, of which the system said so; empty if nobody can."""
    trusted = {people.me(), people.ROOT, owner}
    if not last:
        trusted.add(people.stand_in_for_root())
    if status.st_uid not in trusted:
        return f"{path} belongs to {people.user_called(status.st_uid)}"
    if stat.S_ISLNK(status.st_mode) or (not last and status.st_mode & stat.S_ISVTX):
        return ""
    writers = others_may_write(path, status, group)
    return f"{writers} may write to {path}" if writers else ""


def has_list(path: str | os.PathLike[str]) -> bool:
    """Whether others have rights by a list, of which the mode shows a summary; or will have, to what is made there."""
    return any(_is_listed(path, name) for name in _LISTS)


def remove_lists(path: str | os.PathLike[str]) -> None:
    """What this user has made has the rights of its mode alone."""
    for name in _LISTS:
        with suppress(OSError, AttributeError):  # there is none, or no such thing here
            os.removexattr(path, name, follow_symlinks=False)


def _is_listed(path: str | os.PathLike[str], name: str) -> bool:
    try:
        return bool(os.getxattr(path, name, follow_symlinks=False))
    except (OSError, AttributeError):
        return False


def _steps(path: str) -> Iterator[tuple[str, os.stat_result, bool]]:
    """What is met on the way to a path, links and what they lead to included; and whether it is what the path means."""
    here, links, told = os.path.sep, 0, False
    pending = deque(part for part in path.split(os.path.sep) if part)
    yield here, os.lstat(here), False
    while pending:
        part = pending.popleft()
        if part == os.path.pardir:
            here, told = os.path.dirname(here), False
            continue
        step = os.path.join(here, part)
        try:
            status = os.lstat(step)
        except (FileNotFoundError, NotADirectoryError):
            return
        link = stat.S_ISLNK(status.st_mode)
        told = not pending and not link
        yield step, status, told
        if not link:
            here = step
            continue
        links += 1
        if links > LINKS:
            raise OSError(f"{path} leads through too many links")
        target = os.readlink(step)
        here = os.path.sep if os.path.isabs(target) else here
        pending.extendleft(reversed([each for each in target.split(os.path.sep) if each not in ("", os.path.curdir)]))
    if not told:  # the root, or what a link means that ends with dots
        yield here, os.lstat(here), True
