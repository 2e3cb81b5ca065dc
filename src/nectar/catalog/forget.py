"""Forgetting for good what names a file, a person or a text: rows, results, what is known of programs.

In: a catalog and what is to be forgotten. Out: what is gone, and what is left and why. Results and rows go first, then
files beside the catalog; at last every byte of the home is looked at. Law: it is never said to be gone while a byte of
it is found in the home.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from nectar.catalog.embedded import INDEX
from nectar.errors import EnvironmentFailure
from nectar.store.problem import Damaged, Gone
from nectar.store.store import local_root

if TYPE_CHECKING:
    from nectar.catalog.service import Catalog
    from nectar.model.entry import Entry
    from nectar.model.forgetting import Asked, Forgotten

_PIECE: Final = 1 << 20
_NOTES: Final = ("programs", "rebuilds")  # folders of a home whose files are helps, and nothing depends on them


def forget(catalog: Catalog, home: Path, asked: Asked, *, apply: bool) -> Forgotten:
    """What is asked for is gone; or, unless it is applied, what would go."""
    catalog.flush()
    holding, unread = _results_holding(catalog, asked) if asked.words else ([], [])
    asked = replace(asked, keys=tuple(entry.key for entry in holding))
    done = catalog.index.forget(asked, catalog.person, catalog.clock.now(), apply)
    notes = [path for path in _files(home) if path.parent.name in _NOTES and _holds(path, asked.forms)]
    left = list(unread)
    if apply:
        for path in notes:
            path.unlink(missing_ok=True)
        left += _delete_results(catalog)
        if not catalog.index.erase():
            left.append(f"the log of {home / INDEX}: another process is reading it; end it and do this again")
        left += [f"{path}: it holds it" for path in _files(home) if _holds(path, asked.forms)]
    if local_root(catalog.settings.store if catalog.settings and catalog.settings.store else str(home)) is None:
        left.append("earlier versions and backups of objects in the remote store, which it keeps by rules of its own")
    return replace(done, files=tuple(map(str, notes)), left=tuple(left))


def _results_holding(catalog: Catalog, asked: Asked) -> tuple[list[Entry], list[str]]:
    """The results that hold one of the texts, and those of which nobody can tell."""
    from nectar.store.search import holds

    found, unread = [], []
    for entry in list(catalog.index.entries()):
        try:
            opened = catalog.store.open(entry, verify="length")
            if isinstance(opened, Gone | Damaged):
                continue  # it goes as all do that are damaged
            with opened:
                if holds(opened, asked.forms):
                    found.append(entry)
        except EnvironmentFailure as failure:
            unread.append(f"the result {entry.key.hex()[:12]}: it cannot be read ({failure})")
    return found, unread


def _delete_results(catalog: Catalog) -> list[str]:
    """The files of results that are gone are deleted; what cannot be deleted now, and why."""
    try:
        catalog.collector.end_abandoned()
        catalog.collector.delete_doomed()
    except EnvironmentFailure as failure:
        return [f"files of results: {failure}"]
    waiting = catalog.index.usage(catalog.clock.now()).doomed
    return [f"{waiting:,} bytes of results that somebody is reading: end that and do this again"] if waiting else []


def _files(home: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(home):
        yield from (Path(folder, name) for name in sorted(names))


def _holds(path: Path, forms: Sequence[bytes]) -> bool:
    """Whether a file holds any of these bytes; read piece by piece, so that none is cut in two."""
    if not forms:
        return False
    overlap = max(map(len, forms)) - 1
    before = b""
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                plain = before + piece
                if any(form in plain for form in forms):
                    return True
                before = plain[len(plain) - overlap :] if overlap else b""
    except OSError:  # it is gone, or no plain file
        return False
    return False
