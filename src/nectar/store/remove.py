"""Removal, and what there is to remove.

Law: a result leaves in one step (its folder is renamed to trash/, or its manifest removed), then its files go. A crash
in between leaves garbage that `find` shows. Files that Nectar does not write are shown and never removed.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

from msgspec import Struct

from nectar.errors import StoreFailure
from nectar.store.files import Files, Item
from nectar.store.layout import (
    DATA,
    MANIFEST,
    STAGING,
    TRASH,
    WRITTEN,
    data_folder,
    is_fan,
    is_name,
    is_ours,
    location_of,
    staging_folder,
    trash_folder,
)


class Found(Struct, frozen=True):
    """Something in the store's folders.

    location: of one of our folders; of a foreign thing, its path relative to the root. staged: it is no published
    result. trashed: its deletion began. foreign: not ours. modified: when the last of its files was.
    """

    location: str
    staged: bool
    size: int
    files: int
    modified: float
    foreign: bool = False
    trashed: bool = False


def remove(files: Files, location: str) -> int:
    """Nothing of the location is left, neither published nor staged nor half deleted; bytes freed by this call."""
    freed = 0
    data, staging, trash = data_folder(location), staging_folder(location), trash_folder(location)
    items = files.list(data) if files.renames else []
    if items and _all_ours(items):
        # No fsync: if the rename is lost in a crash, the result is back and unreferenced, or damaged and detected.
        try:
            files.make_folder(TRASH)
            files.rename(data, trash, "rename to trash")
        except StoreFailure as error:
            # A full disk must not keep anybody from making room: then the files go where they lie, manifest first.
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
    for folder in (data, staging, trash):
        freed += empty(files, folder)
    return freed


def empty(files: Files, folder: str) -> int:
    """Our files in a folder are gone, and the folder too unless others are in it; bytes freed by this call."""
    items = files.list(folder)
    freed = 0
    # The manifest first: without it the others do not count.
    for item in sorted(items, key=lambda item: item.name != MANIFEST):
        if _is_of_an_engine(folder, item):
            freed += clear(files, f"{folder}/{item.name}")
        elif _is_our_file(item):
            what = "manifest" if item.name == MANIFEST else "part"
            freed += item.size if files.remove(f"{folder}/{item.name}", what) else 0
    if all(_is_our_file(item) or _is_of_an_engine(folder, item) for item in items):
        files.remove_folder(folder)
    return freed


def clear(files: Files, folder: str) -> int:
    """Everything that an engine wrote to a folder of its own is gone, and the folder too; bytes freed by this call."""
    freed = 0
    for item in files.list(folder):
        path = f"{folder}/{item.name}"
        if item.folder:
            freed += clear(files, path)
        else:
            freed += item.size if files.remove(path, "part") else 0
    files.remove_folder(folder)
    return freed


def _is_of_an_engine(folder: str, item: Item) -> bool:
    return item.folder and item.name == WRITTEN and folder.startswith(f"{STAGING}/")


def _written(files: Files, folder: str) -> list[Item]:
    """Files that an engine wrote to a folder of its own, and to those in it."""
    found: list[Item] = []
    for item in files.list(folder):
        found += _written(files, f"{folder}/{item.name}") if item.folder else [item]
    return found


def _sorted_out(files: Files, folder: str) -> tuple[list[Item], list[Item]]:
    """Our files in a folder, those that an engine wrote for us included; and what is not ours."""
    ours: list[Item] = []
    foreign: list[Item] = []
    for item in files.list(folder):
        if _is_of_an_engine(folder, item):
            ours += _written(files, f"{folder}/{item.name}")
        else:
            (ours if _is_our_file(item) else foreign).append(item)
    return ours, foreign


def _is_our_file(item: Item) -> bool:
    return item.plain and not item.folder and is_ours(item.name)


def _all_ours(items: list[Item]) -> bool:
    return all(map(_is_our_file, items))


def find(files: Files) -> Iterator[Found]:
    """Everything in data/, staging/ and trash/, ours and foreign; what is deleted meanwhile may be left out."""
    for fan in files.list(DATA):
        if not (fan.folder and is_fan(fan.name)):
            yield _foreign(f"{DATA}/{fan.name}", fan)
            continue
        for item in files.list(f"{DATA}/{fan.name}"):
            if item.name[:2] == fan.name:
                yield from _in_folder(files, f"{DATA}/{fan.name}", item)
            else:
                yield _foreign(f"{DATA}/{fan.name}/{item.name}", item)
    for place in (STAGING, TRASH):
        for item in files.list(place):
            yield from _in_folder(files, place, item)


def measure(files: Files, location: str) -> Found | None:
    """What lies at a location, published or not, or None if nothing does."""
    for folder in (data_folder(location), staging_folder(location), trash_folder(location)):
        parent, _, name = folder.rpartition("/")
        items, _ = _sorted_out(files, folder)
        if items:
            return _ours(parent, name, items, 0.0)
    return None


def _in_folder(files: Files, parent: str, item: Item) -> Iterator[Found]:
    path = f"{parent}/{item.name}"
    if not (item.folder and is_name(item.name)):
        yield _foreign(path, item)
        return
    ours, foreign = _sorted_out(files, path)
    if ours or not foreign:  # an empty folder is what a crash between two steps leaves
        yield _ours(parent, item.name, ours, item.modified)
    for each in foreign:
        yield _foreign(f"{path}/{each.name}", each)


def _ours(parent: str, name: str, items: list[Item], modified: float) -> Found:
    published = parent.startswith(DATA) and any(item.name == MANIFEST for item in items)
    return Found(
        location=location_of(name),
        staged=not published,
        size=sum(item.size for item in items),
        files=len(items),
        modified=max([modified, *(item.modified for item in items)]),
        trashed=parent == TRASH,
    )


def _foreign(path: str, item: Item) -> Found:
    return Found(
        path, staged=False, size=item.size, files=0 if item.folder else 1, modified=item.modified, foreign=True
    )
