"""`nectar://`: named results as files, for whatever reads fsspec URLs. Read-only.

A name team/top_urls shows as team/top_urls.parquet and team/top_urls.arrow. The Arrow file is the one of the store; if
the result consists of several, they are put together. The Parquet file is made when somebody looks at it, and stays in
memory for a while; listings do not make it, so they leave its size open. team/top_urls@2.parquet is a version. Opening
a result that was deleted makes it again.
"""

from __future__ import annotations

import builtins
import io
import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from fsspec.spec import AbstractFileSystem

from nectar.catalog.service import Catalog
from nectar.datasets.access import Place, catalog_at, place_in_force, result_of
from nectar.datasets.dataset import Meant, meant
from nectar.datasets.reference import SUFFIXES, checked_name
from nectar.errors import CatalogFailure, UnknownNameError
from nectar.forks import in_child
from nectar.model.entry import Name
from nectar.store.export import FORMATS, encoded
from nectar.store.read import Result

_MOST_BYTES: Final = 256 << 20  # of files that are held in memory; the latest is held whatever its size


class _Held:
    """Files that were made for readers, the latest used last. A key never means anything else, so nothing gets old."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._renew()
        in_child(self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()  # a thread of a parent that held it is not here to give it back
        self._files: OrderedDict[tuple[bytes, str], bytes] = OrderedDict()

    def get(self, key: tuple[bytes, str]) -> bytes | None:
        with self._lock:
            if key in self._files:
                self._files.move_to_end(key)
            return self._files.get(key)

    def put(self, key: tuple[bytes, str], content: bytes) -> None:
        with self._lock:
            self._files[key] = content
            while len(self._files) > 1 and sum(map(len, self._files.values())) > self._most:
                self._files.popitem(last=False)


_held: Final = _Held(_MOST_BYTES)


class NectarFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Named results as Parquet and Arrow files. home, store: where the catalog is, if not where settings say."""

    protocol = "nectar"
    root_marker = ""
    cachable = False  # names move

    def __init__(self, home: str = "", store: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._place = Place(str(Path(home).expanduser().absolute()), store) if home else None

    # what is there

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """The files and folders in a folder; a file alone."""
        path = self._strip_protocol(path).strip("/")
        found = [self.info(path)] if path.endswith(SUFFIXES) else self._folder(path)
        return found if detail else [each["name"] for each in found]

    def _folder(self, path: str) -> list[dict[str, Any]]:
        prefix = f"{path}/" if path else ""
        names = [name for name in self._names() if name.name.startswith(prefix)]
        if not names and path:
            raise FileNotFoundError(f"nectar://{path}: there is no such name")
        found: dict[str, dict[str, Any]] = {}
        for name in names:
            first, slash, _ = name.name[len(prefix) :].partition("/")
            if slash:
                found[prefix + first] = _folder_info(prefix + first)
            else:
                found |= {each["name"]: each for each in self._files_of(name)}
        return [found[each] for each in sorted(found)]

    def _files_of(self, name: Name) -> list[dict[str, Any]]:
        return [_file_info(f"{name.name}{suffix}", name, self._size_if_known(name, suffix)) for suffix in SUFFIXES]

    def _size_if_known(self, name: Name, suffix: str) -> int | None:
        content = _held.get((name.key, suffix))
        return None if content is None else len(content)

    def _names(self) -> list[Name]:
        try:
            return self._catalog().index.names()
        except CatalogFailure:
            return []  # nothing was named yet

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """What is known of a file, its size included; of a folder, that there is one."""
        return self._described(path, self._size)

    def glance(self, path: str) -> dict[str, Any]:
        """The same, and nothing is run for it: of a file that was deleted the size is 0 until somebody opens it."""
        return self._described(path, self._size_if_kept)

    def _described(self, path: str, size: Callable[[Meant, str], int]) -> dict[str, Any]:
        path = self._strip_protocol(path).strip("/")
        if not path:
            return _folder_info("")
        if path.endswith(SUFFIXES):
            found = self._meant(path)
            assert found.bound is not None  # paths hold names, and no pointer
            return _file_info(path, found.bound, size(found, Path(path).suffix))
        self._folder(path)
        return _folder_info(path)

    def created(self, path: str) -> datetime:
        """When the name began to point to this result."""
        return datetime.fromtimestamp(self.info(path).get("created", 0.0), UTC)

    def modified(self, path: str) -> datetime:
        """The same: a file is never changed, a name points to another."""
        return self.created(path)

    def ukey(self, path: str) -> str:
        """What changes when the content does: the key of the result."""
        return self._meant(self._strip_protocol(path).strip("/")).key.hex()

    # reading

    def _open(self, path: str, mode: str = "rb", *_: Any, **__: Any) -> Any:
        if mode != "rb":
            raise PermissionError(
                f"nectar://{path} can only be read: the way to a named result is to compute it, and nectar.save()"
            )
        path = path.strip("/")
        if not path.endswith(SUFFIXES):
            raise IsADirectoryError(f"nectar://{path} is no file: those end with {' or '.join(SUFFIXES)}")
        found, suffix = self._meant(path), Path(path).suffix
        held = _held.get((found.key, suffix))
        if held is not None:
            return io.BytesIO(held)
        with result_of(found.catalog, found.key, found.label) as result:
            if _is_there_already(result, suffix):
                return builtins.open(result.paths[0], "rb")  # stays readable when it is deleted
            return io.BytesIO(_content(result, found.key, suffix))

    def _size(self, found: Meant, suffix: str) -> int:
        held = _held.get((found.key, suffix))
        if held is not None:
            return len(held)
        with result_of(found.catalog, found.key, found.label) as result:
            return _length(result, found.key, suffix)

    def _size_if_kept(self, found: Meant, suffix: str) -> int:
        held = _held.get((found.key, suffix))
        if held is not None:
            return len(held)
        entry = found.catalog.index.lookup([found.key]).get(found.key)
        opened = None if entry is None or not entry.is_table else found.catalog.open(entry)
        if not isinstance(opened, Result):
            return 0
        with opened:
            return _length(opened, found.key, suffix)

    def _meant(self, path: str) -> Meant:
        try:
            # A path that is no name leads nowhere: neither upwards, nor through a pointer file.
            text = path[: -len(Path(path).suffix)]
            checked_name(text.partition("@")[0])
            return meant(text, self._place or place_in_force())
        except UnknownNameError as error:
            raise FileNotFoundError(f"nectar://{path}: {error}") from error

    def _catalog(self) -> Catalog:
        place = self._place or place_in_force()
        return catalog_at(Path(place.home), place.store)


def _length(result: Result, key: bytes, suffix: str) -> int:
    """How long the file is that a result shows as."""
    if _is_there_already(result, suffix):
        return len(memoryview(result.tables()[0]))
    return len(_content(result, key, suffix))


def _content(result: Result, key: bytes, suffix: str) -> bytes:
    """The file that a result shows as, made now and held for a while."""
    content = encoded(result, FORMATS[suffix])
    _held.put((key, suffix), content)
    return content


def _is_there_already(result: Result, suffix: str) -> bool:
    """Whether a file that lies in the store is the one that is asked for."""
    return suffix == ".arrow" and result.kind == "arrow" and len(result.paths) == 1 and "://" not in result.paths[0]


def _folder_info(path: str) -> dict[str, Any]:
    return {"name": path, "size": 0, "type": "directory"}


def _file_info(path: str, name: Name, size: int | None) -> dict[str, Any]:
    return {
        "name": path, "size": size, "type": "file", "created": name.since, "mtime": name.since,
        "version": name.version, "key": name.key.hex(),
    }  # fmt: skip
