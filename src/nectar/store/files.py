"""Files of a store: on this machine, with fsync, rename and memory maps; elsewhere through fsspec.

In: paths relative to the root, with forward slashes. Law: before each operation its name is announced through `reach`;
an operation that fails raises StoreFailure with the errno it met. A missing file is a value (None), no failure.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from nectar.errors import StoreFailure

if TYPE_CHECKING:
    from nectar.store.sinks import Sink
    from nectar.store.sources import Source

_ADVICE: Final = {
    errno.ENOSPC: "free space on the device, or lower the budget and run `nectar gc --apply`",
    errno.EDQUOT: "free space within your quota, or lower the budget and run `nectar gc --apply`",
    errno.EFBIG: "the file system takes no files of this size: move the store to another one",
    errno.EACCES: "give yourself the rights to this folder, or use another store",
    errno.EPERM: "give yourself the rights to this folder, or use another store",
    errno.EROFS: "results can be read from here but not kept: mount it writable, or use another store",
    errno.EIO: "the device failed: look into the system's log, then run `nectar check --repair`",
    errno.ESTALE: "the network file system has mislaid the file: try again, or mount it again",
    errno.EMFILE: "too many files are open: close results that are no longer used, or raise the limit (ulimit -n)",
    errno.ENFILE: "too many files are open on this machine: end what holds them, or raise the limit (fs.file-max)",
    errno.ENOMEM: "there is no room for it in memory: free some, or raise the limit (ulimit -v, vm.max_map_count)",
    errno.ENAMETOOLONG: "move the store to a folder with a shorter path",
}  # fmt: skip


def failure(error: OSError, doing: str, what: str) -> StoreFailure:
    """A StoreFailure that says what happened, to what, and what to do; the errno is kept."""
    reason = error.strerror or str(error) or type(error).__name__
    advice = _ADVICE.get(error.errno or 0, "see whether the store's folder or service can be reached")
    message = f"could not {doing} {what}: {reason}; {advice}"
    return StoreFailure(error.errno, message) if error.errno is not None else StoreFailure(message)


@contextmanager
def telling(doing: str, what: str) -> Iterator[None]:
    """Any OSError within becomes a StoreFailure."""
    try:
        yield
    except StoreFailure:
        raise
    except OSError as error:
        raise failure(error, doing, what) from error


class Item(Struct, frozen=True):
    """Something in a folder. plain: neither a link nor a device. modified: seconds since 1970."""

    name: str
    folder: bool
    plain: bool
    size: int
    modified: float


class Files(Protocol):
    """The operations a store is made of."""

    renames: bool  # whether a folder can be renamed in one step

    def show(self, path: str) -> str:
        """The path or address as other programs know it."""

    def make_folder(self, path: str) -> None:
        """The folder exists, and its name is durable."""

    def create(self, path: str, what: str) -> Sink:
        """A new file to write to; it must not exist yet."""

    def put(self, path: str, content: bytes, what: str) -> None:
        """The small file is there, whole, where the system can promise that, and durable."""

    def sync_folder(self, path: str) -> None:
        """The names in this folder are durable."""

    def sync_file(self, path: str) -> None:
        """The bytes of this file, which somebody else wrote, are durable."""

    def rename(self, old: str, new: str, step: str) -> bool:
        """The folder has its new name; False if there was none."""

    def read(self, path: str, what: str) -> bytes | None:
        """The whole content, or None if there is no such file."""

    def source(self, path: str, *, copied: bool = False) -> Source | None:
        """The file opened for reading, or None; once open it stays readable even if it is deleted.

        copied: it is held in memory, where nobody else can change it.
        """

    def list(self, path: str) -> list[Item]:
        """What is in a folder; nothing if there is no such folder."""

    def remove(self, path: str, what: str) -> bool:
        """The file is gone; whether it was this call that removed it."""

    def remove_folder(self, path: str) -> None:
        """The folder is gone, unless there is something in it."""

    def free_space(self) -> int | None:
        """Bytes free on the device, None if there is no telling."""
