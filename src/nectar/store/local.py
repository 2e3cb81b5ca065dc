"""Files on this machine: fsync, rename, memory maps."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from nectar.errors import StoreFailure
from nectar.faults import Reach
from nectar.store.files import Item, telling
from nectar.store.loss import DamagedError
from nectar.trust import people
from nectar.trust.files import PRIVATE, Access, grant, make_folder, opened, read
from nectar.trust.places import others_may_write

if TYPE_CHECKING:
    from nectar.store.sinks import LocalSink
    from nectar.store.sources import LocalSource, MemorySource

_T = TypeVar("_T")
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)


class LocalFiles:
    """A folder of this machine, or of a network file system mounted on it."""

    renames = True

    def __init__(self, root: str, reach: Reach, access: Access = PRIVATE) -> None:
        self._root, self._reach, self._access = os.path.abspath(root), reach, access

    def show(self, path: str) -> str:
        """The absolute path."""
        return os.path.join(self._root, *path.split("/"))

    def _own(self, path: str) -> str:
        """The absolute path, once it is known that no link on the way leads elsewhere: somebody else has put it there.

        data/ itself may be a link to where there is more space; whoever opens the store looks at where that leads.
        """
        full = self.show(path)
        folder = os.path.dirname(full)
        while len(folder) > len(self._root) + 1 and os.path.dirname(folder) != self._root:
            if os.path.islink(folder):
                raise StoreFailure(errno.ELOOP, f"{full} is not touched: {folder} is a link; remove it")
            folder = os.path.dirname(folder)
        return full

    def make_folder(self, path: str) -> None:
        """The folder and those above it exist; new names are durable."""
        full = self._own(path)
        missing = []
        while not os.path.isdir(full):
            missing.append(full)
            full = os.path.dirname(full)
        for folder in reversed(missing):
            with telling("make the folder", folder):
                self._reach("make folder")
                make_folder(folder, self._access)  # unless another process was faster
                self._sync(os.path.dirname(folder))

    def create(self, path: str, what: str) -> LocalSink:
        """A new file to write to."""
        from nectar.store.sinks import LocalSink

        return LocalSink(self._own(path), what, self._reach, self._access)

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
        full = self._own(path)
        with telling("make durable", full):
            self._reach("fsync part")
            fd = os.open(full, os.O_RDWR | _NO_LINK | getattr(os, "O_BINARY", 0))
            try:
                grant(fd, self._access.of_files, self._access)
                os.fsync(fd)
            finally:
                os.close(fd)

    def rename(self, old: str, new: str, step: str) -> bool:
        """The folder has its new name; False if there was none. A folder with something in it is never replaced."""
        with telling(f"{step}:", self.show(new)):
            self._reach(step)
            try:
                os.rename(self._own(old), self._own(new))
            except FileNotFoundError:
                if os.path.isdir(os.path.dirname(self.show(new))):
                    return False
                raise
        return True

    def read(self, path: str, what: str) -> bytes | None:
        """The whole content, or None if there is no such file."""
        full = self._own(path)
        with telling("read", full):
            self._reach(f"read {what}")
            try:
                return _readable(full, read)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def source(self, path: str, *, copied: bool = False) -> LocalSource | MemorySource | None:
        """The file opened for reading, or None. copied, or if others could change it: what it holds now, in memory."""
        from nectar.store.sources import LocalSource, MemorySource

        full = self._own(path)
        with telling("open", full):
            self._reach("open part")
            try:
                fd = _readable(full, opened)
            except (FileNotFoundError, NotADirectoryError):
                return None
            if copied or self._others_may_change(fd, full):
                with open(fd, "rb") as file:
                    return MemorySource(file.read())
            return LocalSource(fd, full, self._reach)

    def _others_may_change(self, fd: int, path: str) -> bool:
        """Whether others than those who share the store may write to an open file, or have it under another name.

        They could change it after it was verified, through a map of it even without a trace in its time stamps.
        """
        if not people.KNOWN:
            return False
        status, group = os.fstat(fd), self._access.group
        owned = group is not None or status.st_uid in (people.me(), people.ROOT)
        return not owned or status.st_nlink > 1 or bool(others_may_write(path, status, group))

    def list(self, path: str) -> list[Item]:
        """What is in a folder, by name; nothing if there is no such folder, or only a link to one.

        data/ itself may be a link to where there is more space. A link further down was put there by someone else, and
        what it leads to is not ours to delete.
        """
        full = self._own(path)
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
        full = self._own(path)
        with telling("remove", full):
            self._reach(f"remove {what}")
            try:
                os.unlink(full)
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True

    def remove_folder(self, path: str) -> None:
        """The folder is gone, unless there is something in it."""
        full = self._own(path)
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
            import shutil  # asked for by those who write

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


def _readable(path: str, read: Callable[[str], _T]) -> _T:
    """What reading a file gives. Raises DamagedError if something else has taken its place: a link, a folder, a pipe.

    Nobody but Nectar writes there, so what was written is lost, and is made again beside it. What has taken its place
    is neither followed nor deleted. A file of this user that has lost the right to be read gets it back.
    """
    try:
        return read(path)
    except OSError as error:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            raise DamagedError(errno.EINVAL, f"{path} is a link, a folder or the like, and no file any more") from error
        if not isinstance(error, PermissionError) or status.st_uid != people.me() or status.st_mode & stat.S_IRUSR:
            raise
        os.chmod(path, stat.S_IMODE(status.st_mode) | stat.S_IRUSR)
        return read(path)


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
