"""Sources: parts opened for reading, which stay readable while they are open, whatever happens to their names."""

from __future__ import annotations

import io
import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock
from typing import IO, Any, Final, Protocol

from nectar.faults import Reach
from nectar.store.files import telling

_STEP: Final = 1 << 20


class Source(Protocol):
    """A part opened for reading."""

    size: int

    @property
    def stamp(self) -> tuple[int, ...] | None:
        """What the file system says of the file, and what moves when it is changed; None if it says nothing."""

    def view(self) -> Any:
        """The content as a read-only buffer, without a copy where that is possible."""

    def file(self) -> IO[bytes]:
        """The content as a file of its own, to be closed by whoever asked for it."""

    def private(self) -> Any:
        """The content as a buffer that may be written to; nobody else sees what is written."""

    def ends(self, count: int) -> tuple[bytes, bytes]:
        """The first and the last bytes."""

    def read(self, offset: int, count: int) -> bytes:
        """So many bytes from there on, read now; fewer at the end, or if the system gives no more at once."""

    def close(self) -> None:
        """Nothing is held open any longer, except what somebody still uses."""


class LocalSource:
    """A file on this machine. The descriptor keeps it readable after its name is gone."""

    def __init__(self, fd: int, path: str, reach: Reach) -> None:
        self._fd, self._path, self._reach = fd, path, reach
        self._view: Any = None
        self._moving = Lock()  # the descriptor has one position, and not every system reads without it
        status = os.fstat(fd)
        self.size = status.st_size
        self.stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def view(self) -> Any:
        """The content, memory-mapped, read-only."""
        if self._view is None:
            self._view = self._map(mmap.ACCESS_READ)
        return self._view

    def file(self) -> IO[bytes]:
        """The content as a file; readable after its name is gone, and after this source is closed.

        Opened anew, or copied if the name is gone: duplicates of a descriptor share one position, and threads that read
        them at the same time would read from where another one is.
        """
        with telling("read", self._path):
            self._reach("open part again")
            with suppress(OSError):
                file = open(self._path, "rb")  # noqa: SIM115 - whoever asked for it closes it
                if os.path.sameopenfile(file.fileno(), self._fd):
                    return file
                file.close()
            return io.BytesIO(b"".join(self._pieces()))

    def private(self) -> Any:
        """The content, memory-mapped; pages that are written to become copies."""
        return self._map(mmap.ACCESS_COPY)

    def ends(self, count: int) -> tuple[bytes, bytes]:
        """The first and the last bytes."""
        with telling("read", self._path):
            self._reach("read ends of part")
            return self._at(0, count), self._at(max(0, self.size - count), count)

    def read(self, offset: int, count: int) -> bytes:
        """So many bytes from there on."""
        with telling("read", self._path):
            self._reach("read part")
            return self._at(offset, count)

    def close(self) -> None:
        """Descriptor and mapping are given back; tables and arrays that use the mapping keep it alive."""
        if isinstance(self._view, mmap.mmap):
            with suppress(BufferError):
                self._view.close()
        self._view = None
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def __del__(self) -> None:
        self.close()

    def _map(self, access: int) -> Any:
        if self.size == 0:  # nothing cannot be mapped
            return b""
        with telling("map", self._path):
            self._reach("map part")
            return mmap.mmap(self._fd, self.size, access=access)

    def _pieces(self) -> Iterator[bytes]:
        offset = 0
        while piece := self._at(offset, _STEP):
            yield piece
            offset += len(piece)

    def _at(self, offset: int, count: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._fd, count, offset)
        with self._moving:
            os.lseek(self._fd, offset, os.SEEK_SET)
            return os.read(self._fd, count)


class MemorySource:
    """A part that is in memory: fetched from elsewhere, or inline in the index."""

    stamp: None = None  # nobody else can change it

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.size = len(content)

    def view(self) -> Any:
        """The content."""
        return self._content

    def file(self) -> IO[bytes]:
        """The content as a file in memory."""
        return io.BytesIO(self._content)

    def private(self) -> Any:
        """A copy of the content."""
        return bytearray(self._content)

    def ends(self, count: int) -> tuple[bytes, bytes]:
        """The first and the last bytes."""
        return self._content[:count], self._content[-count:]

    def read(self, offset: int, count: int) -> bytes:
        """So many bytes from there on."""
        return self._content[offset : offset + count]

    def close(self) -> None:
        """Nothing: memory is given back when nobody uses it."""
