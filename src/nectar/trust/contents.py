"""Whether what lies in a home is of its users' own making: the index, what was verified, notes.

In: a home, whatever its mode is now. Out: UntrustedError, by the name of the file, or what is to be doubted. Law:
closing takes nothing back. Who could write to an index once may have changed any row of it, and may hold it open still:
it is refused until another file has taken its place. Results are doubted, not refused: the index has their digests.
"""

from __future__ import annotations

import math
import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from nectar.errors import UntrustedError
from nectar.trust import files, people
from nectar.trust.files import PRIVATE, Access
from nectar.trust.places import others_may_write

INDEX: Final = "catalog.db"
MARKS: Final = re.compile(r"verified-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # one for each start of a machine
_OURS: Final = frozenset(("results", "programs", "rebuilds", "holders"))  # names in a home, beside those of the index
_FOLDERS: Final = ("results", "results/data", "results/staging", "results/trash", "programs", "rebuilds")
_OPEN_BEFORE: Final = "was-open"  # others could write there until the time of this file
_INDEX_OPEN: Final = "index-was-open"  # holds the number of an index that others could write to
MARK: Final = "shared.json"  # its owner shares it
_ASIDE: Final = re.compile(r"\.[0-9a-f]{32}")  # behind the name of a file that is being written (files.replace)
_RESULTS: Final = frozenset(("data", "staging", "trash"))  # what a store has in its folder
_SPARE: Final = f"{INDEX}-spare"  # holds nothing


def ours(folder: Path) -> list[str]:
    """The names in a folder that are those of a home."""
    return [name for name in os.listdir(folder) if name in _OURS or name.startswith(INDEX) or MARKS.fullmatch(name)]


def strange_in(folder: Path, *, store: bool = False) -> str:
    """What lies in a folder and is no part of a home, or of a store if it is one; empty if all is.

    A folder that happens to have a name of ours is part of a home only beside what a home has and nothing else.
    """
    names = os.listdir(folder)
    is_home = INDEX in names or "holders" in names
    for name in names:
        is_part = name in _RESULTS if store else is_home and (name in _OURS or name.startswith(INDEX))
        if not is_part and not _is_note(_ASIDE.sub("", name)):
            return str(folder / name)
    results = folder / "results"
    return strange_in(results, store=True) if not store and results.is_dir() and not results.is_symlink() else ""


def _is_note(name: str) -> bool:
    return name in (MARK, _OPEN_BEFORE, _INDEX_OPEN) or MARKS.fullmatch(name) is not None


def refuse_planted(folder: Path, writers: str = "", access: Access = PRIVATE, owner: int | None = None) -> None:
    """Raises UntrustedError if somebody else may have put a file of a home there, or changed its index.

    writers: who could write to the folder; empty if nobody else can now. access, owner: of a shared home.
    """
    for name in ours(folder):
        path = str(folder / name)
        try:
            status = os.lstat(path)
        except FileNotFoundError:  # SQLite deletes what it needs no more
            continue
        if reason := _planted(name, path, status, bool(writers), access, owner):
            if name.startswith(INDEX):
                _note_index(folder, access)
            _refuse(folder, path, writers, reason)
    if _is_noted(folder):
        path = str(folder / INDEX)
        _refuse(folder, path, writers, "others could write to it before, and may have it open still")


def _refuse(folder: Path, path: str, writers: str, reason: str) -> None:
    could = f"{writers} could write there, and " if writers else ""
    raise UntrustedError(
        f"the home {folder} is not used: {could}{path} may not be yours: {reason}. "
        "Use another folder (NECTAR_HOME), or move this one away and begin anew"
    )


def _planted(name: str, path: str, status: os.stat_result, was_open: bool, access: Access, owner: int | None) -> str:
    """Why a file may not be of the making of who uses the home; empty if it is."""
    of_member = access.writing and status.st_gid == access.group
    if status.st_uid not in (people.me(), people.ROOT, owner) and not of_member:
        return f"it belongs to {people.user_called(status.st_uid)}"
    is_index = name.startswith(INDEX) and name != _SPARE
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1 and (is_index or was_open):
        return "it has another name elsewhere"
    if not is_index:
        return ""
    if not stat.S_ISREG(status.st_mode):
        return "it is no plain file"
    changers = others_may_write(path, status, access.group if access.writing else None)
    return f"{changers} may write to it" if changers else ""


# closing


def close_to_others(folder: Path, was_open: bool, rights: int = 0o077) -> None:
    """What lies in a private home is private too. was_open: whoever could write there could have changed any result.

    rights: those of others that are taken away.
    """
    names = ours(folder)
    if was_open or any(_is_open(folder / name) for name in _FOLDERS) or _has_open_marks(folder, names):
        note_open(folder, PRIVATE)
        _forget_marks(folder, names)
    for name in names:
        _close(folder / name, stat.S_ISREG, rights)
    for name in _FOLDERS:
        _close(folder / name, stat.S_ISDIR, rights)


def doubt_what_was_open(folder: Path, access: Access, owner: int | None) -> None:
    """What others may have said was verified counts as not verified. access, owner: of a shared home."""
    names = ours(folder)
    if math.isinf(open_until(folder, access, owner)):
        note_open(folder, access)
    if _has_open_marks(folder, names, access.group if access.writing else None):
        note_open(folder, access)
        _forget_marks(folder, names)


def _is_open(path: Path, group: int | None = None) -> bool:
    """Whether others may write to what lies there."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return not stat.S_ISLNK(status.st_mode) and bool(others_may_write(str(path), status, group))


def _has_open_marks(folder: Path, names: list[str], group: int | None = None) -> bool:
    return any(_is_open(folder / name, group) for name in names if MARKS.fullmatch(name))


def _forget_marks(folder: Path, names: list[str]) -> None:
    for name in names:
        if MARKS.fullmatch(name):  # they could have said that anything was
            with suppress(OSError):
                (folder / name).unlink()


def _close(path: Path, kind: Callable[[int], bool], rights: int) -> None:
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        if kind(mode) and mode & rights:
            path.chmod(0o700 if stat.S_ISDIR(mode) else 0o600)


# what is remembered


def open_until(folder: Path, access: Access, owner: int | None) -> float:
    """When others could write to a home last, or to its store; 0 if never, infinite if it is theirs to say."""
    try:
        status = os.lstat(folder / _OPEN_BEFORE)
    except OSError:
        return 0.0
    of_user = not people.KNOWN or access.writing or status.st_uid in (people.me(), people.ROOT, owner)
    return status.st_mtime if of_user and stat.S_ISREG(status.st_mode) else math.inf


def note_open(folder: Path, access: Access) -> None:
    """Others could write there, or to its store, until now; whatever lay in the place of this note."""
    with suppress(OSError):  # where nothing can be written
        files.replace(folder / _OPEN_BEFORE, b"", access)
        now = time.time()  # file systems stamp by a clock that may be a tick behind: what was just made would be newer
        os.utime(folder / _OPEN_BEFORE, (now, now), follow_symlinks=False)


def _note_index(folder: Path, access: Access) -> None:
    """The index that lies there is not used any more, also after its rights were mended."""
    with suppress(OSError):
        files.replace(folder / _INDEX_OPEN, b"%d" % os.lstat(folder / INDEX).st_ino, access)


def _is_noted(folder: Path) -> bool:
    """Whether the index that lies there is one that others could write to; a note on another one is deleted."""
    try:
        number = int(files.read(folder / _INDEX_OPEN, most=64))
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        number = None
    try:
        there = os.lstat(folder / INDEX).st_ino
    except OSError:
        there = 0
    if there and number in (there, None):
        return True
    with suppress(OSError):
        os.unlink(folder / _INDEX_OPEN)
    return False
