"""Which catalog is meant, and a result from it, made again if it was deleted.

People who name a dataset mean it, so names can be read where Nectar is off as well; a program that scans one carries
with it where the catalog is.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from nectar.catalog.embedded import INDEX, open_catalog
from nectar.catalog.holding import holding
from nectar.catalog.service import Catalog
from nectar.datasets.rebuild import made_again
from nectar.errors import CatalogFailure, DeletedError, EnvironmentFailure, UserError
from nectar.forks import in_child
from nectar.recipes.recipe import is_known
from nectar.session import current
from nectar.settings import Settings, load_settings
from nectar.store.read import Result
from nectar.trust.home import opened

_lock = threading.RLock()
_ATTEMPTS: Final = 5  # to open a result that others may delete
_opened: Final[dict[tuple[str, str], Catalog]] = {}
_inherited: Final[list[Catalog]] = []


class Place(Struct, frozen=True):
    """Where results are: the folder of the catalog, and the path or URL of the results if that is elsewhere."""

    home: str
    store: str = ""


def place_in_force() -> Place:
    """Where the names are that this program means."""
    session = current()
    return place_of(load_settings() if session is None else session.settings)


def place_of(settings: Settings) -> Place:
    """From the root: a program may go to another folder before it reads."""
    store = settings.store if not settings.store or "://" in settings.store else os.path.abspath(settings.store)
    return Place(os.path.abspath(settings.home), store)


def catalog_at(home: Path, store: str = "") -> Catalog:
    """The catalog in a folder: that of the session, if it is the same; otherwise one that is opened for reading it."""
    session = current()
    if session is not None and place_of(session.settings) == Place(str(home), store):
        catalog = session.catalog
        if catalog is not None:
            return catalog
    with _lock:
        key = (str(home), store)
        if key not in _opened:
            if not os.path.exists(home / INDEX):
                opened(home, reading=True)  # there is none, or this user may not look
                raise CatalogFailure(f"there is no catalog in {home}, so nothing has a name there: see NECTAR_HOME")
            _opened[key] = open_catalog(load_settings({"home": home, "store": store}))
        return _opened[key]


def catalog_knowing(key: bytes, place: Place) -> Catalog:
    """The catalog that has a result, or can make it: the one in force, or the one at the place where it was scanned.

    A recipe runs on other machines and for other catalogs than the one that its program scanned.
    """
    here = place_in_force()
    if here != place and os.path.exists(Path(here.home) / INDEX):
        catalog = catalog_at(Path(here.home), here.store)
        if catalog.index.lookup([key]) or is_known(catalog, key) or not os.path.exists(Path(place.home) / INDEX):
            return catalog
    return catalog_at(Path(place.home), place.store)


@in_child
def _forget_parent() -> None:
    """In a child process: catalogs of the parent are none of ours, nor ours to close."""
    global _lock
    _lock = threading.RLock()
    _inherited.extend(_opened.values())
    _opened.clear()


@atexit.register
def close_all() -> None:
    """Catalogs that were opened for reading are closed, and uses written down."""
    with _lock:
        while _opened:
            with suppress(EnvironmentFailure):
                _opened.popitem()[1].close()


def result_of(catalog: Catalog, key: bytes, label: str) -> Result:
    """The result of a key, whole; made again first if it was deleted."""
    for _ in range(_ATTEMPTS):
        entry = catalog.index.lookup([key]).get(key)
        if entry is not None:
            opened = catalog.open(entry)
        else:
            with holding(catalog, key):
                entry = made_again(catalog, key, label)
                opened = catalog.open(entry)
        if isinstance(opened, Result):
            break
    else:
        raise DeletedError(f"{label} was deleted each time before it could be opened: the budget may be too small")
    if not entry.is_table:
        opened.close()
        raise UserError(f"{label} is no table, but an object that a function gave: call the function")
    return opened
