"""Folders are made, with those above them, where nobody else decides what their paths lead to.

In: a path. Out: why nothing is made there, in words; nothing if it is there afterwards. The way is walked from folder
to folder by descriptors: each is judged as it was opened, and what is missing is made in it. Law: nothing is made
behind a link, or in a folder, that somebody else could have put on the way, be it while this looks; what is made is
private.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from typing import Final

from nectar.trust import files, people
from nectar.trust.places import LINKS, distrusted, remove_lists

_FOLDER: Final = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_PASSING: Final = getattr(os, "O_PATH", os.O_RDONLY) | _FOLDER  # who may pass through a folder may not look into each
_MOST_MADE: Final = 200  # folders on the way
_BY_DESCRIPTOR: Final = {os.open, os.mkdir, os.stat, os.readlink, os.chmod} <= os.supports_dir_fd


def make_folders(path: str | os.PathLike[str], group: int | None = None) -> str:
    """The folder is there, or the reason why it was not made is told. group: one that may write to those above it.

    Raises OSError if it cannot be made.
    """
    path = os.path.abspath(path)
    if os.path.isdir(path):
        return ""
    if not (people.KNOWN and _BY_DESCRIPTOR):
        for missing in reversed(_missing(path)):
            files.make_folder(missing)
        return ""
    walk = _Walk(group)
    try:
        return walk.to(path)
    finally:
        walk.end()


def _missing(path: str) -> list[str]:
    found = []
    while not os.path.lexists(path):
        found.append(path)
        path = os.path.dirname(path)
    return found


class _Walk:
    """A walk from the root. here: an open folder, and what it was come by."""

    def __init__(self, group: int | None) -> None:
        self._group, self._links, self._made = group, 0, 0
        self._here, self._path = os.open(os.path.sep, _PASSING), os.path.sep

    def end(self) -> None:
        """No folder is open any more."""
        os.close(self._here)

    def to(self, path: str) -> str:
        """Why a folder was not made; empty if it is there."""
        pending = deque((part, True) for part in path.split(os.path.sep) if part)  # and whether it may be made
        reason = self._distrust(os.fstat(self._here))
        while pending and not reason:
            name, may_be_made = pending.popleft()
            step = os.path.join(self._path, name)
            try:
                self._enter(name, step)
            except FileNotFoundError:
                if not may_be_made:
                    raise
                self._make(name, step)
                pending.appendleft((name, True))  # entered like any other: somebody else may have been faster
                continue
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                    raise
                reason, parts = self._follow(name, step)
                pending.extendleft((part, False) for part in reversed(parts))
                continue
            reason = self._distrust(os.fstat(self._here))
        return reason

    def _distrust(self, status: os.stat_result) -> str:
        return distrusted(self._path, status, self._group, None, last=False)

    def _enter(self, name: str, step: str) -> None:
        inner = os.open(name, _PASSING, dir_fd=self._here)
        os.close(self._here)
        self._here, self._path = inner, os.path.normpath(step)

    def _make(self, name: str, step: str) -> None:
        self._made += 1
        if self._made > _MOST_MADE:
            raise FileNotFoundError(errno.ENOENT, "somebody takes it away again and again", step)
        try:
            os.mkdir(name, 0o700, dir_fd=self._here)
        except FileExistsError:
            return
        os.chmod(name, 0o700, dir_fd=self._here)  # whatever the umask; nobody else can have replaced it
        remove_lists(step)

    def _follow(self, name: str, step: str) -> tuple[str, list[str]]:
        """Why a link is not followed; or what it leads through."""
        status = os.stat(name, dir_fd=self._here, follow_symlinks=False)
        if not stat.S_ISLNK(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "it is no folder", step)
        self._links += 1
        if self._links > LINKS:
            raise OSError(errno.ELOOP, "it leads through too many links", step)
        if reason := distrusted(step, status, self._group, None, last=False):
            return reason, []
        target = os.readlink(name, dir_fd=self._here)
        if os.path.isabs(target):
            root = os.open(os.path.sep, _PASSING)
            os.close(self._here)
            self._here, self._path = root, os.path.sep
        return "", [part for part in target.split(os.path.sep) if part not in ("", os.path.curdir)]
