"""Places to keep a value under a name, as their users use them: Nectar's catalog, joblib.Memory, diskcache.

In: a folder. Out: an object with put, get and close. What a peer does not promise it is not asked for: only Nectar
syncs a table to disk before it says that it is kept, and verifies what it reads. Small objects are synced by nobody.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from blake3 import blake3

from nectar.catalog.embedded import open_catalog
from nectar.catalog.service import Catalog, Kept
from nectar.settings import load_settings
from nectar.store.read import Result


class Place(Protocol):
    """Keeps values by name."""

    def put(self, name: str, value: Any) -> None: ...

    def get(self, name: str) -> Any: ...

    def close(self) -> None: ...


def catalog_in(folder: Path, **settings: Any) -> Catalog:
    """A catalog that nothing outside this file has an influence on."""
    chosen = {"home": folder, "budget": "100TB", "reserve": 0, **settings}
    return open_catalog(load_settings(chosen, environment={}, folder=folder))


def key_of(name: str) -> bytes:
    return blake3(name.encode()).digest()


class Nectar:
    """The catalog; keys are known before, as they are when a program runs."""

    def __init__(self, folder: Path) -> None:
        self._catalog = catalog_in(folder)

    def put(self, name: str, value: Any) -> None:
        key = key_of(name)
        kept = self._catalog.keep(key, key, value, table=hasattr(value, "columns"), seconds=1.0)
        assert isinstance(kept, Kept), kept

    def get(self, name: str) -> Any:
        key = key_of(name)
        (known,) = self._catalog.lookup([key], [key])
        assert known.entry is not None
        opened = self._catalog.open(known.entry)
        assert isinstance(opened, Result), opened
        with opened:
            return opened.to_polars() if known.entry.kind == "arrow" else opened.to_object()

    def close(self) -> None:
        self._catalog.close()


class Joblib:
    """joblib.Memory: a decorated function is the way in, so the value reaches it beside its arguments."""

    def __init__(self, folder: Path) -> None:
        import joblib

        self._value: Any = None

        def result(name: str) -> Any:
            if self._value is None:
                raise LookupError(name)
            return self._value

        self._call = joblib.Memory(folder, verbose=0).cache(result)

    def put(self, name: str, value: Any) -> None:
        self._value = value
        self._call(name)
        self._value = None

    def get(self, name: str) -> Any:
        return self._call(name)

    def close(self) -> None:
        pass


class Diskcache:
    """diskcache.Cache with its defaults, but without a limit that these sizes would reach."""

    def __init__(self, folder: Path) -> None:
        import diskcache

        self._cache = diskcache.Cache(str(folder), size_limit=2**40)

    def put(self, name: str, value: Any) -> None:
        self._cache.set(name, value)

    def get(self, name: str) -> Any:
        return self._cache[name]

    def close(self) -> None:
        self._cache.close()


PLACES: Mapping[str, Callable[[Path], Place]] = {"nectar": Nectar, "joblib": Joblib, "diskcache": Diskcache}


def is_installed(place: str) -> bool:
    return place == "nectar" or importlib.util.find_spec(place) is not None
