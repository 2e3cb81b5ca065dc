"""From what a person names (a folder, a pattern, a file, a URL) to the files that are meant.

Law: the list is sorted and complete. A folder that cannot be listed is a failure, for the files in it would be missing
from every key. Left out are hidden files and folders (a name that begins with a dot) below what was named, and whatever
is neither a file nor a folder. Links to folders are followed, except back into a folder they lie in.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, Final

from nectar.errors import InputFailure
from nectar.keys.patience import expect_files
from nectar.store.inputs import failures
from nectar.store.inputs.address import Address, address_of
from nectar.store.inputs.remote import open_system, telling

_MOST_AGAIN: Final = 1000  # folders that links lead to although they are listed already: eleven can mean millions


def expand(source: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> list[str]:
    """The files of a folder and of the folders in it, those that match a pattern, or the one file that is named."""
    address = address_of(source)
    if address.local:
        return sorted(_local(address.given))
    return sorted(set(_remote(address, storage_options or {})))


def _local(path: str) -> Iterator[str]:
    if os.path.lexists(path):
        _refuse_two_meanings(path)
        yield from _named(path)
    elif glob.has_magic(path):
        yield from filter(os.path.isfile, glob.iglob(path, recursive=True))
    else:
        raise failures.missing(path)


def _refuse_two_meanings(path: str) -> None:
    if glob.has_magic(path) and any(found != path for found in glob.iglob(path, recursive=True)):
        raise InputFailure(f"{path} is a file, and as a pattern it means others too: rename it, or list the files")


def _named(path: str) -> Iterator[str]:
    with failures.telling(path):
        mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        yield from _below(path)
    elif stat.S_ISREG(mode):
        yield path
    else:
        raise failures.no_file(path)


def _below(root: str) -> Iterator[str]:
    folders = [(root, frozenset({_place(root)}))]
    met = listed = 0
    places: set[tuple[int, int]] = set()
    while folders:
        folder, above = folders.pop()
        met += 1
        places |= above
        if met > len(places) + _MOST_AGAIN:
            raise InputFailure(f"{root} has links that lead to the same folders again and again: name the files in it")
        with failures.telling(folder), os.scandir(folder) as entries:
            visible = [entry for entry in entries if not entry.name.startswith(".")]
        listed += len(visible)
        expect_files(listed)
        for entry in visible:
            if entry.is_file():
                yield entry.path
            elif entry.is_dir() and (place := _place(entry.path)) not in above:
                folders.append((entry.path, above | {place}))


def _place(folder: str) -> tuple[int, int]:
    with failures.telling(folder):
        status = os.stat(folder)
    return status.st_dev, status.st_ino


def _remote(address: Address, options: Mapping[str, Any]) -> Iterator[str]:
    system, path = open_system(address, options)
    with telling(address.url):
        system.invalidate_cache()  # others write there too
        if _is_pattern(address):
            found = [name for name, info in system.glob(path, detail=True).items() if info["type"] == "file"]
        elif system.info(path)["type"] != "directory":
            return iter((address.given,))
        else:
            found = [name for name in system.find(path) if not _is_hidden(name[len(path) :])]
    return iter([_given(address, system, path, name) for name in found])


def _is_pattern(address: Address) -> bool:
    """In the URL of a page a question mark and brackets belong to its name."""
    if address.url.startswith(("http://", "https://")):
        return "*" in address.url
    return glob.has_magic(address.url)


def _is_hidden(below: str) -> bool:
    return any(part.startswith(".") for part in below.split("/"))


def _given(address: Address, system: Any, root: str, name: str) -> str:
    """The URL of a file that was found, written as the one that was given: with its server, and what opens it."""
    if "::" not in address.given and address.given.endswith(root) and root:
        return address.given[: -len(root)] + name
    return str(system.unstrip_protocol(name))
