"""Files on this machine: fsync, rename, memory maps."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress

from nectar.faults import Reach
from nectar.store.files import Item, telling
from nectar.store.sinks import LocalSink
from nectar.store.sources import LocalSource


class LocalFiles:
    """A folder of this machine, or of a network file system mounted on it."""

    renames = True

    def __init__(self, root: str, reach: Reach) -> None:
        self._root, self._reach = os.path.abspath(root), reach

    def show(self, path: str) -> str:
        """The absolute path."""
        return os.path.join(self._root, *path.split("/"))

    def make_folder(self, path: str) -> None:
        """The folder and those above it exist; new names are durable."""
        full = self.show(path)
        missing = []
        while not os.path.isdir(full):
            missing.append(full)
            full = os.path.dirname(full)
        for folder in reversed(missing):
            with telling("make the folder", folder):
                self._reach("make folder")
                with suppress(FileExistsError):  # another process was faster
                    os.mkdir(folder)
                self._sync(os.path.dirname(folder))

    def create(self, path: str, what: str) -> LocalSink:
        """A new file to write to."""
        return LocalSink(self.show(path), what, self._reach)

    def put(self, path: str, content: bytes, what: str) -> None:
        """The file is there and durable."""
        sink = self.create(path, what)
        try:
            sink.write(content)
            sink.finish()
        finally:
            sink.abandon()

    def sync_folder(self, path: str) -> None:
        """The names in this folder are durable."""
        full = self.show(path)
        with telling("make durable", full):
            self._sync(full)

    def sync_file(self, path: str) -> None:
        """The bytes of this file, which somebody else wrote, are durable."""
        full = self.show(path)
        with telling("make durable", full):
            self._reach("fsync part")
            fd = os.open(full, os.O_RDWR | getattr(os, "O_BINARY", 0))
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def rename(self, old: str, new: str, step: str) -> bool:
        """The folder has its new name; False if there was none. A folder with something in it is never replaced."""
        with telling(f"{step}:", self.show(new)):
            self._reach(step)
            try:
                os.rename(self.show(old), self.show(new))
            except FileNotFoundError:
                if os.path.isdir(os.path.dirname(self.show(new))):
                    return False
                raise
        return True

    def read(self, path: str, what: str) -> bytes | None:
        """The whole content, or None if there is no such file."""
        full = self.show(path)
        with telling("read", full):
            self._reach(f"read {what}")
            try:
                with open(full, "rb") as file:
                    return file.read()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def source(self, path: str) -> LocalSource | None:
        """The file opened for reading, or None."""
        full = self.show(path)
        with telling("open", full):
            self._reach("open part")
            try:
                fd = os.open(full, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
            except (FileNotFoundError, NotADirectoryError):
                return None
            return LocalSource(fd, full, self._reach)

    def list(self, path: str) -> list[Item]:
        """What is in a folder, by name; nothing if there is no such folder, or only a link to one.

        data/ itself may be a link to where there is more space. A link further down was put there by someone else, and
        what it leads to is not ours to delete.
        """
        full = self.show(path)
        if "/" in path and os.path.islink(full):
            return []
        items = []
        with telling("list", full):
            self._reach("list folder")
            with suppress(FileNotFoundError, NotADirectoryError), os.scandir(full) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):  # deleted meanwhile
                        items.append(_item(entry))
        return sorted(items, key=lambda item: item.name)

    def remove(self, path: str, what: str) -> bool:
        """The file is gone; whether it was this call that removed it."""
        full = self.show(path)
        with telling("remove", full):
            self._reach(f"remove {what}")
            try:
                os.unlink(full)
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True

    def remove_folder(self, path: str) -> None:
        """The folder is gone, unless there is something in it."""
        full = self.show(path)
        with telling("remove the folder", full):
            self._reach("remove folder")
            with suppress(OSError):  # not empty, or gone already; what is left is shown by `locations`
                os.rmdir(full)

    def free_space(self) -> int | None:
        """Bytes free for us on the device that holds the root, or will."""
        folder = self._root
        while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
            folder = os.path.dirname(folder)
        with telling("ask for the free space of", folder):
            self._reach("ask for free space")
            return shutil.disk_usage(folder).free

    def _sync(self, full: str) -> None:
        self._reach("fsync folder")
        if not hasattr(os, "O_DIRECTORY"):  # Windows has no such thing as a folder to sync
            return
        fd = os.open(full, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _item(entry: os.DirEntry[str]) -> Item:
    status = entry.stat(follow_symlinks=False)
    folder = entry.is_dir(follow_symlinks=False)
    return Item(
        name=entry.name,
        folder=folder,
        plain=folder or entry.is_file(follow_symlinks=False),
        size=0 if folder else status.st_size,
        modified=status.st_mtime,
    )
