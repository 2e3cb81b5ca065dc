"""The folders that Nectar keeps things in: made private, made tight, shared explicitly, or refused.

In: a folder. Out: who may use it, or UntrustedError, which says what is wrong with it and what to do. Law: what lies in
a home is unpickled, so a home is used only if it belongs to this user or to root and nobody else may write to it; or if
its owner has shared it with a group that this user is in, and this user has named it. Naming it is the act of trust.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from nectar.errors import CatalogFailure, UntrustedError, UserError
from nectar.trust import contents, files, people
from nectar.trust.contents import INDEX, MARK, close_to_others, doubt_what_was_open, ours, refuse_planted, strange_in
from nectar.trust.files import PRIVATE, Access
from nectar.trust.places import distrust, has_list, others_may_write, remove_lists

_WRITING: Final = stat.S_IWGRP | stat.S_IWOTH


class Home(NamedTuple):
    """A folder that may be used. owner: of a shared one. writable: whether this process may write there."""

    folder: Path
    access: Access
    owner: int | None
    writable: bool

    @property
    def open_until(self) -> float:
        """When others could write there last, or to its store; 0 if they never could."""
        return contents.open_until(self.folder, self.access, self.owner)

    def note_open(self) -> None:
        """Others can write there, or to its store, until now: files that they have open they can go on changing."""
        contents.note_open(self.folder, self.access)

    def refuse_strange(self, path: Path) -> None:
        """Raises UntrustedError if others than those who share this home decide what lies at a path in it."""
        inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.folder))
        if inside and self.access.writing:
            return  # any member may have made it
        group = self.access.group if self.access.writing else None
        reason = distrust(path, group=group, owner=self.owner, absent=True)
        if reason:
            raise UntrustedError(f"{path} is not used: {reason}")


def opened(folder: Path, *, reading: bool = False, tighten: bool = True, store: bool = False) -> Home:
    """The home in a folder, made if it is not there. reading: nothing is made. tighten: a loose one becomes private.

    store: it is a folder for results, which keeps its mode and may hold other things.
    """
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
    if access is None and status.st_uid == people.me() and tighten and not store:
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
    if not store:
        refuse_planted(folder, access=home.access, owner=home.owner)
        if tighten and home.writable:
            doubt_what_was_open(folder, home.access, home.owner)
    return home


def judge_again(home: Home, used: os.stat_result) -> None:
    """Raises UntrustedError if what was opened in the place of a home is not one that may be used."""
    group = home.access.group if home.access.writing else None
    _refuse(home.folder, distrust(home.folder, group=group, owner=home.owner, used=used))


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


def share(folder: Path, group: int, *, writing: bool, store: bool = False) -> Home:
    """The folder is a home that members of a group use, with everything that is in it; nothing else may be in it.

    writing: they may keep results and delete those of others; otherwise they may only read. store: it holds results.
    """
    if not people.KNOWN:
        raise UserError("homes can be shared by a group only where files belong to users and groups")
    if not people.is_member(group) and people.me() != people.ROOT:
        raise UserError(f"{folder} cannot be shared by {people.group_called(group)}: you are not in it")
    _refuse_to_share(folder, _make(folder, group if writing else None))
    status = _status(folder)
    _refuse_what_is_not_ours(folder, status, store)
    if _shared_access(folder, status) is None:
        _tighten(folder, status)
    refuse_planted(folder, access=_shared_access(folder, status) or PRIVATE, owner=status.st_uid)
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
    return opened(folder, store=store)


def _refuse_what_is_not_ours(folder: Path, status: os.stat_result, store: bool) -> None:
    """Raises UserError if a folder is not this user's, or has anything in it but a home, or a store if it is one."""
    if status.st_uid != people.me():
        raise UserError(f"{folder} belongs to {people.user_called(status.st_uid)}: only they can share it")
    if strange := strange_in(folder, store=store):
        raise UserError(
            f"{folder} cannot be shared: {strange} is in it, which is no part of a {'store' if store else 'home'}, and "
            "the group would be given that as well. Name another folder, or a new one"
        )


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
    if others_may_write(str(folder / MARK), mark):
        return None
    if status.st_uid != people.me() and not people.is_member(group):
        raise UntrustedError(
            f"the home {folder} is shared by {people.group_called(group)}, and you are not in it: ask to be let in, or "
            "use another home (NECTAR_HOME)"
        )
    return Access(group, writing)


# homes that earlier versions made


def _tighten(folder: Path, status: os.stat_result) -> None:
    """A folder of this user that others could look into, or write to, is private, with all that lies in it."""
    if status.st_mode & stat.S_ISVTX:
        return
    names = ours(folder)
    if not status.st_mode & 0o077:
        refuse_planted(folder)
        close_to_others(folder, False, _WRITING)  # what they could look at nobody can any more
        return
    if INDEX not in names and any(folder.iterdir()):
        return  # something else is in it as well: files of ours are private by themselves
    writers = others_may_write(str(folder), status)
    refuse_planted(folder, writers)
    try:
        os.chmod(folder, 0o700)
    except OSError:  # a file system that is only read, or has no modes
        return
    try:
        refuse_planted(folder, writers)  # what came meanwhile
    except UntrustedError:
        os.chmod(folder, stat.S_IMODE(status.st_mode))  # so that the next who comes refuses it as well
        raise
    close_to_others(folder, bool(writers and names))


def _tree(folder: Path) -> Iterator[tuple[str, bool]]:
    """Every plain file and folder below a folder, the deepest first; whether it is a folder."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            path = os.path.join(place, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                yield path, False
        if place != str(folder):
            yield place, True
