"""The folders that Nectar keeps things in: made private, made tight, shared explicitly, or refused.

In: a folder. Out: who may use it, or UntrustedError, which says what is wrong with it and what to do. Law: what lies in
a home is unpickled, so a home is used only if it belongs to this user or to root and nobody else may write to it; or if
its owner has shared it with a group that this user is in, and this user has named it. Naming it is the act of trust.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from nectar.errors import CatalogFailure, UntrustedError, UserError
from nectar.trust import files, people
from nectar.trust.files import PRIVATE, Access
from nectar.trust.places import distrust, has_list, others_may_write, remove_lists

MARK: Final = "shared.json"  # in a home: its owner shares it
INDEX: Final = "catalog.db"
MARKS: Final = re.compile(r"verified-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # one for each start of a machine
_OURS: Final = frozenset(("results", "programs", "rebuilds", "holders"))  # names in a home, beside those of the index
_OPEN_BEFORE: Final = "was-open"  # in a home: others could write there until the time of this file
_FOLDERS: Final = ("results", "results/data", "results/staging", "results/trash", "programs", "rebuilds")


class Home(NamedTuple):
    """A folder that may be used. owner: of a shared one. writable: whether this process may write there."""

    folder: Path
    access: Access
    owner: int | None
    writable: bool

    @property
    def open_until(self) -> float:
        """When others could write there last, or to its store; 0 if they never could."""
        try:
            return os.lstat(self.folder / _OPEN_BEFORE).st_mtime
        except OSError:
            return 0.0

    def note_open(self) -> None:
        """Others can write there, or to its store, until now: files that they have open they can go on changing."""
        _note_open(self.folder, self.access)

    def refuse_strange(self, path: Path) -> None:
        """Raises UntrustedError if others than those who share this home decide what lies at a path in it."""
        inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.folder))
        if inside and self.access.writing:
            return  # any member may have made it
        group = self.access.group if self.access.writing else None
        reason = distrust(path, group=group, owner=self.owner, absent=True)
        if reason:
            raise UntrustedError(f"{path} is not used: {reason}")


def opened(folder: Path, *, reading: bool = False, tighten: bool = True) -> Home:
    """The home in a folder, made if it is not there. reading: nothing is made. tighten: a loose one becomes private."""
    folder = Path(os.path.abspath(folder))
    if not os.path.lexists(folder):
        _refuse(folder, distrust(folder, absent=True))
        if reading:
            _refuse(folder, distrust(_nearest(folder)))  # where others may make things, they will decide what is in it
            return Home(folder, PRIVATE, None, False)
    if not reading:
        _refuse(folder, _make(folder))
    if not people.KNOWN:
        return Home(folder, PRIVATE, None, not reading)
    status = _status(folder)
    access = _shared_access(folder, status)
    if access is None and status.st_uid == people.me() and tighten:
        _tighten(folder, status)
        status = _status(folder)
    home = Home(folder, access or PRIVATE, None if access is None else status.st_uid, _may_write(folder))
    group = home.access.group if home.access.writing else None
    _refuse(folder, distrust(folder, group=group, owner=home.owner, used=status))
    if access is not None:
        # From here on nobody else can exchange the folder: is it the same that was looked into?
        again = _status(folder)
        _refuse(folder, "" if _shared_access(folder, again) == access else f"{folder / MARK} was changed meanwhile")
        listed = "a list of rights (see getfacl) lets in others than the group: setfacl -R -b -k removes it"
        _refuse(folder, listed if has_list(folder) else "")
    return home


def _nearest(path: Path) -> Path:
    """The nearest above that is there."""
    return next(each for each in path.parents if os.path.lexists(each))


def _refuse(folder: Path, reason: str) -> None:
    """Raises UntrustedError if there is a reason not to use a home."""
    if reason:
        raise UntrustedError(
            f"the home {folder} is not used: {reason}. Use another folder (NECTAR_HOME) that belongs to you, where "
            "nobody else may write; or share it explicitly with a group: nectar init --shared-by GROUP"
        )


def access_of(folder: Path) -> Access | None:
    """Who may use the home in a folder; None if it is not there, or cannot be used."""
    if not folder.is_dir():
        return None
    try:
        home = opened(folder, reading=True, tighten=False)
    except (CatalogFailure, UntrustedError):
        return None
    return home.access if home.writable else None


def share(folder: Path, group: int, *, writing: bool) -> Home:
    """The folder is a home that members of a group use, with everything that is in it.

    writing: they may keep results and delete those of others; otherwise they may only read.
    """
    if not people.KNOWN:
        raise UserError("homes can be shared by a group only where files belong to users and groups")
    if not people.is_member(group) and people.me() != people.ROOT:
        raise UserError(f"{folder} cannot be shared by {people.group_called(group)}: you are not in it")
    _refuse_to_share(folder, _make(folder, group if writing else None))
    status = _status(folder)
    if status.st_uid != people.me():
        raise UserError(f"{folder} belongs to {people.user_called(status.st_uid)}: only they can share it")
    if _shared_access(folder, status) is None:
        _tighten(folder, status)
    access = Access(group, writing)
    remove_lists(folder)  # which a project's folder hands on to all that is made in it
    _refuse_to_share(folder, distrust(folder, group=group if writing else None))
    for path, folder_mode in _tree(folder):
        remove_lists(path)
        files.grant(path, access.of_folders if folder_mode else access.of_files, access)
    mark = json.dumps({"group": group, "writing": writing}).encode()
    files.replace(folder / MARK, mark, Access(group))
    files.grant(folder, access.of_folders, access)
    if not _shared_access(folder, _status(folder)):
        raise CatalogFailure(
            f"{folder} could not be given to {people.group_called(group)}: can its file system do that?"
        )
    return opened(folder)


def _refuse_to_share(folder: Path, reason: str) -> None:
    if reason:
        raise UserError(f"{folder} cannot be shared: {reason}, so that others would decide what is in it")


def _make(folder: Path, group: int | None = None) -> str:
    """The folder is there; or why it was not made."""
    if folder.is_dir():
        return ""
    from nectar.trust.folders import make_folders  # most homes are there

    try:
        reason = make_folders(folder, group)
    except OSError as error:
        raise CatalogFailure(
            f"the folder {folder} cannot be made ({error.strerror}): check its rights, or name another with NECTAR_HOME"
        ) from error
    if not reason and not folder.is_dir():
        raise CatalogFailure(f"{folder} cannot be a home: it is no folder. Name another with NECTAR_HOME")
    return reason


def _status(folder: Path) -> os.stat_result:
    try:
        return os.stat(folder)
    except OSError as error:
        raise CatalogFailure(f"the home {folder} cannot be looked at: {error.strerror}; check its rights") from error


def _may_write(folder: Path) -> bool:
    known = os.access in os.supports_effective_ids
    index = folder / INDEX
    paths = [folder, index] if os.path.lexists(index) else [folder]
    return all(os.access(path, os.W_OK, effective_ids=known) for path in paths)


def _shared_access(folder: Path, status: os.stat_result) -> Access | None:
    """Who shares a folder, as its owner has said; None if nobody does."""
    try:
        mark = os.lstat(folder / MARK)
        said = json.loads(files.read(folder / MARK))
        group, writing = int(said["group"]), bool(said["writing"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    # What its owner gave to the group is shared: a member may put another mark there, but not change the folder.
    if mark.st_uid not in (status.st_uid, people.ROOT) or status.st_gid != group or not status.st_mode & stat.S_IRGRP:
        return None
    if status.st_uid != people.me() and not people.is_member(group):
        raise UntrustedError(
            f"the home {folder} is shared by {people.group_called(group)}, and you are not in it: ask to be let in, or "
            "use another home (NECTAR_HOME)"
        )
    return Access(group, writing)


# homes that earlier versions made


def _tighten(folder: Path, status: os.stat_result) -> None:
    """A folder of this user that others could look into, or write to, is private."""
    if not status.st_mode & 0o077 or status.st_mode & stat.S_ISVTX:
        return
    ours = _ours(folder)
    if INDEX not in ours and any(folder.iterdir()):
        return  # something else is in it as well: files of ours are private by themselves
    writers = others_may_write(str(folder), status)
    _refuse_planted(folder, ours, writers)
    try:
        os.chmod(folder, 0o700)
    except OSError:  # a file system that is only read, or has no modes
        return
    try:
        _refuse_planted(folder, _ours(folder), writers)  # what came meanwhile
    except UntrustedError:
        os.chmod(folder, stat.S_IMODE(status.st_mode))  # so that the next who comes refuses it as well
        raise
    _close_to_others(folder, bool(writers and ours))


def _ours(folder: Path) -> list[str]:
    """The names in a folder that are those of a home."""
    return [name for name in os.listdir(folder) if name in _OURS or name.startswith(INDEX) or MARKS.fullmatch(name)]


def _close_to_others(folder: Path, was_open: bool) -> None:
    """What lies in a home is private too. was_open: whoever could write there could have changed any result."""
    if was_open:
        _note_open(folder, PRIVATE)
    for name in _ours(folder):
        path = folder / name
        with suppress(OSError):
            if MARKS.fullmatch(name) and was_open:
                path.unlink()  # they could have said that anything was
            elif stat.S_ISREG(os.lstat(path).st_mode):
                path.chmod(0o600)
    for name in _FOLDERS:
        with suppress(OSError):
            if stat.S_ISDIR(os.lstat(folder / name).st_mode):
                (folder / name).chmod(0o700)


def _note_open(folder: Path, access: Access) -> None:
    path = folder / _OPEN_BEFORE
    with suppress(OSError):  # where nothing can be written
        os.close(files.append(path, access))
        os.utime(path)


def _refuse_planted(folder: Path, names: list[str], writers: str) -> None:
    """Raises UntrustedError if those who could write to a home may have put one of these files there, or changed it."""
    for name in names if writers else ():
        path = str(folder / name)
        if reason := _planted(name, path, os.lstat(path)):
            raise UntrustedError(
                f"the home {folder} is not used: {writers} could write there, and {path} may not be yours: {reason}. "
                "Use another folder (NECTAR_HOME), or move this one away and begin anew"
            )


def _planted(name: str, path: str, status: os.stat_result) -> str:
    """Why a file may not be of this user's making; empty if it is."""
    if status.st_uid not in (people.me(), people.ROOT):
        return f"it belongs to {people.user_called(status.st_uid)}"
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        return "it has another name elsewhere"
    if not name.startswith(INDEX) or name == f"{INDEX}-spare":  # which holds nothing
        return ""
    if not stat.S_ISREG(status.st_mode):
        return "it is no plain file"
    changers = others_may_write(path, status)
    return f"{changers} may write to it" if changers else ""


def _tree(folder: Path) -> Iterator[tuple[str, bool]]:
    """Every plain file and folder below a folder, the deepest first; whether it is a folder."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            path = os.path.join(place, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                yield path, False
        if place != str(folder):
            yield place, True
