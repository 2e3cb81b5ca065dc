"""Files behind fsspec: object stores and whatever else has a URL. No rename, no fsync, no memory maps."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from nectar.faults import Reach
from nectar.store.files import Item, telling
from nectar.store.sinks import RemoteSink
from nectar.store.sources import MemorySource


class RemoteFiles:
    """A folder behind a URL."""

    renames = False

    def __init__(self, url: str, reach: Reach) -> None:
        core = import_module("fsspec.core")  # only who uses a URL needs it
        _refuse_local(url)
        self._system, self._root = core.url_to_fs(url)
        _refuse_local(url, self._system)
        self._reach = reach

    def show(self, path: str) -> str:
        """The address."""
        return str(self._system.unstrip_protocol(self._at(path)))

    def make_folder(self, path: str) -> None:
        """The folder exists, where there is such a thing as a folder."""
        with telling("make the folder", self._at(path)):
            self._reach("make folder")
            self._system.makedirs(self._at(path), exist_ok=True)

    def create(self, path: str, what: str) -> RemoteSink:
        """A new file to write to."""
        return RemoteSink(self._system, self._at(path), what, self._reach)

    def put(self, path: str, content: bytes, what: str) -> None:
        """The file is there; in one step where the system can, as object stores do."""
        with telling(f"write the {what} to", self._at(path)):
            self._reach(f"write {what}")
            self._system.pipe_file(self._at(path), content)

    def sync_folder(self, path: str) -> None:
        """Nothing: an object that was put is there."""

    def sync_file(self, path: str) -> None:
        """Nothing: an object that was put is there."""

    def rename(self, old: str, new: str, step: str) -> bool:
        """Never."""
        raise OSError(errno.ENOTSUP, "no rename here", self.show(old))

    def read(self, path: str, what: str) -> bytes | None:
        """The whole content, or None if there is no such file."""
        with telling("read", self._at(path)):
            self._reach(f"read {what}")
            try:
                return bytes(self._system.cat_file(self._at(path)))
            except (FileNotFoundError, IsADirectoryError):
                return None

    def source(self, path: str, *, copied: bool = False) -> MemorySource | None:
        """The file, fetched, or None: held in memory, it cannot vanish while it is used."""
        content = self.read(path, "part")
        return None if content is None else MemorySource(content)

    def list(self, path: str) -> list[Item]:
        """What is in a folder, by name; nothing if there is no such folder."""
        with telling("list", self._at(path)):
            self._reach("list folder")
            self._system.invalidate_cache()  # other processes write here too
            try:
                found = self._system.ls(self._at(path), detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return []
        # Some systems list the folder itself, or a marker for it, as its own member.
        items = [_item(info) for info in found if str(info["name"]).rstrip("/") != self._at(path)]
        return sorted(items, key=lambda item: item.name)

    def remove(self, path: str, what: str) -> bool:
        """The file is gone; whether it was this call that removed it, as far as the system tells."""
        with telling("remove", self._at(path)):
            self._reach(f"remove {what}")
            try:
                self._system.rm_file(self._at(path))
            except FileNotFoundError:
                return False
        return True

    def remove_folder(self, path: str) -> None:
        """The folder is gone, unless there is something in it."""
        with telling("remove the folder", self._at(path)):
            self._reach("remove folder")
            with suppress(OSError, NotImplementedError):
                self._system.rmdir(self._at(path))

    def free_space(self) -> int | None:
        """There is no telling."""
        return None

    def _at(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}"


def _item(info: Mapping[str, Any]) -> Item:
    name = str(info["name"]).rstrip("/").rpartition("/")[2]
    folder = info["type"] == "directory"
    modified = next((info[key] for key in ("LastModified", "last_modified", "mtime", "created") if info.get(key)), 0.0)
    if isinstance(modified, datetime):
        modified = (modified if modified.tzinfo else modified.replace(tzinfo=UTC)).timestamp()
    return Item(
        name,
        folder,
        plain=info["type"] in ("file", "directory"),
        size=int(info.get("size") or 0),
        modified=float(modified),
    )


def _refuse_local(url: str, system: Any = None) -> None:
    """Raises ValueError if a URL leads to files of this machine, through whatever: nobody would look whose they are."""
    *chain, last = url.split("::")
    local = bool(chain) and last.partition("://")[0] in ("file", "local", last)
    while system is not None and not local:
        protocol = getattr(system, "protocol", ())
        local = "file" in ((protocol,) if isinstance(protocol, str) else protocol)
        system = getattr(system, "fs", None)
    if local:
        raise ValueError("it leads to files of this machine: name their folder by its path")
