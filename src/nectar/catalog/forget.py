"""Forgetting for good what names a file, a person or a text: rows, results, what is known of programs.

In: a catalog and what is to be forgotten. Out: what is gone, and what is left and why. Results and rows go first, then
files beside the catalog; at last every byte of the home is looked at. Law: it is never said to be gone while a byte of
it is found in the home; and what is not applied changes nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from msgspec.structs import replace

from nectar.catalog.embedded import INDEX
from nectar.catalog.tidying import notes
from nectar.errors import EnvironmentFailure
from nectar.model.wanted import Wanted
from nectar.store.problem import Damaged, Gone, Problem
from nectar.store.store import local_root
from nectar.trust.files import opened

if TYPE_CHECKING:
    from nectar.catalog.service import Catalog
    from nectar.model.entry import Entry
    from nectar.model.forgetting import Asked, Forgotten

_PIECE: Final = 1 << 20


def forget(catalog: Catalog, home: Path, asked: Asked, *, apply: bool) -> Forgotten:
    """What is asked for is gone, and the catalog is closed; or, unless it is applied, what would go."""
    if apply:
        catalog.flush()
    now = catalog.clock.now()
    others = catalog.index.forget(asked, catalog.person, now, False).others if asked.files else ()
    wanted = Wanted(asked.files, asked.texts, others)
    holding, damaged, left = _results_holding(catalog, wanted) if wanted else ([], [], [])
    asked = replace(asked, keys=tuple(entry.key for entry in holding), others=others)
    done = catalog.index.forget(asked, catalog.person, now, apply)
    named = [path for path in notes(home) if wanted and _names(path, wanted) is True]
    if apply:
        for path in named:
            path.unlink(missing_ok=True)
        for entry, problem in damaged:
            catalog.losses.damaged(entry, problem)
        left += _delete_results(catalog)
        if not catalog.index.erase():
            left.append(f"the log of {home / INDEX}: another process is reading it; end it and do this again")
        catalog.close()  # whose files this process may neither open nor close while it uses them
        # Here other names are sure: whatever names one of these is gone from all that the catalog reads.
        left += _left(home, Wanted(asked.files, asked.texts, others, enough=1)) if wanted else []
    if local_root(catalog.settings.store if catalog.settings and catalog.settings.store else str(home)) is None:
        left.append("earlier versions and backups of objects in the remote store, which it keeps by rules of its own")
    keys = tuple(entry.key for entry, _ in damaged)
    return replace(done, files=tuple(map(str, named)), damaged=keys, left=tuple(left))


def _results_holding(catalog: Catalog, wanted: Wanted) -> tuple[list[Entry], list[tuple[Entry, Problem]], list[str]]:
    """The results that hold one of them; those that are damaged, so that nobody can tell; and those out of reach."""
    from nectar.store.search import holds

    found, damaged, unread = [], [], []
    store = catalog.store.for_looking()
    for entry in list(catalog.index.entries()):
        try:
            result = store.open(entry, verify="length")
            if isinstance(result, Gone):
                continue
            if isinstance(result, Damaged):
                damaged.append((entry, Problem("checksum", result.part, result.reason)))
                continue
            with result:
                if holds(result, wanted):
                    found.append(entry)
        except EnvironmentFailure as failure:
            unread.append(f"the result {entry.key.hex()[:12]}: it cannot be read ({failure})")
    return found, damaged, unread


def _delete_results(catalog: Catalog) -> list[str]:
    """The files of results that are gone are deleted; what cannot be deleted now, and why."""
    try:
        catalog.collector.end_abandoned()
        catalog.collector.delete_doomed()
    except EnvironmentFailure as failure:
        return [f"files of results: {failure}"]
    waiting = catalog.index.usage(catalog.clock.now()).doomed
    return [f"{waiting:,} bytes of results that somebody is reading: end that and do this again"] if waiting else []


def _left(home: Path, wanted: Wanted) -> Iterator[str]:
    """Files that still name one of them, or that cannot be looked at, and why."""
    for folder, _, names in os.walk(home):
        for name in sorted(names):
            path = Path(folder, name)
            found = _names(path, wanted)
            if found:
                yield f"{path}: it holds it" if found is True else f"{path}: it cannot be looked at ({found})"


def _names(path: Path, wanted: Wanted) -> bool | str:
    """Whether the content of a file names one of them; or why there is no telling."""
    try:
        with open(opened(path, links=True), "rb") as file:
            size = max(_PIECE, 4 * wanted.margin)
            content = file.read(size)
            if len(content) < size:
                return wanted.in_content(content)
            return _is_in_pieces(file, content, wanted, size)
    except OSError as error:
        # It is gone; or a pipe or the like, in which nothing lies.
        return False if error.errno in (errno.ENOENT, errno.EINVAL, errno.ENXIO) else str(error.strerror)


def _is_in_pieces(file: BinaryIO, content: bytes, wanted: Wanted, size: int) -> bool:
    """Whether one of them is named in what was read of a file or in the rest, wherever it is cut into pieces."""
    margin, begin = wanted.margin, 0
    while piece := file.read(size):
        end = len(content) - margin  # what begins behind is looked at with the next piece
        if wanted.in_bytes(content, begin, end):
            return True
        content, begin = content[end - margin :] + piece, margin
    return wanted.in_bytes(content, begin)
