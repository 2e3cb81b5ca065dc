"""Sinks: files being written, hashed on the way.

Law: what `finish` returns is the length and BLAKE3 digest of exactly the bytes that were handed to the operating
system, and on a local file system they are durable then.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, Final, Protocol

from msgspec import Struct

from nectar.faults import Reach
from nectar.store.chunks import ChunkHash
from nectar.store.files import telling
from nectar.trust.files import PRIVATE, Access, create

_BUFFERED: Final = 1 << 20  # Arrow writes many pieces of a few bytes; each system call costs more than it moves


class Written(Struct, frozen=True):
    """A finished file: its length and BLAKE3 digest, and the digests of its chunks if there are several."""

    size: int
    digest: bytes
    chunks: bytes = b""


class Sink(Protocol):
    """A file being written."""

    def write(self, data: Any) -> int:
        """The bytes are taken; how many."""

    def finish(self) -> Written:
        """Everything is written and durable, and the file closed."""

    def abandon(self) -> None:
        """The file is closed; what it contains is of no value."""


class HashingSink(ABC):
    """Gathers small pieces, hashes them, hands them on in large ones. Looks like a file, for those who want one."""

    closed = False  # for Arrow, which asks

    def __init__(self) -> None:
        self._pending = bytearray()
        self._hash = ChunkHash()
        self._size = 0
        self.error: BaseException | None = None  # libraries in between may replace the exception by one that says less

    def write(self, data: Any) -> int:
        """The bytes are taken: written, or gathered to be written with the next ones."""
        try:
            view = memoryview(data).cast("B")
            if len(view) < _BUFFERED:
                self._pending += view
                if len(self._pending) >= _BUFFERED:
                    self._drain()
            else:
                self._drain()
                self._pass_on(view)
        except BaseException as error:
            self.error = self.error or error
            raise
        self._size += len(view)
        return len(view)

    def finish(self) -> Written:
        """Everything is written and durable, and the file closed."""
        self._drain()
        self._end()
        return Written(self._size, *self._hash.digests())

    def abandon(self) -> None:  # noqa: B027 - there may be no file
        """The file is closed; what it contains is of no value."""

    def tell(self) -> int:
        """How many bytes were taken."""
        return self._size

    def flush(self) -> None:  # noqa: B027 - that is all it does
        """Nothing: only `finish` promises anything."""

    def close(self) -> None:  # noqa: B027 - that is all it does
        """Nothing: libraries close what they are given, but the file ends with `finish`."""

    def readable(self) -> bool:
        """No."""
        return False

    def writable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """No: hashing goes forward only."""
        return False

    def _drain(self) -> None:
        if self._pending:
            pending, self._pending = self._pending, bytearray()
            self._pass_on(memoryview(pending))

    def _pass_on(self, view: memoryview) -> None:
        self._hash.update(view)
        self._put(view)

    @abstractmethod
    def _put(self, view: memoryview) -> None:
        """Writes bytes."""

    @abstractmethod
    def _end(self) -> None:
        """Everything is durable, and the file closed."""


class LocalSink(HashingSink):
    """A file on this machine."""

    def __init__(self, path: str, what: str, reach: Reach, access: Access = PRIVATE) -> None:
        super().__init__()
        self._path, self._what, self._reach = path, what, reach
        self._fd = -1
        with telling(f"create a {what} at", path):
            reach(f"create {what}")
            self._fd = create(path, access)

    def abandon(self) -> None:
        """The file is closed."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def _put(self, view: memoryview) -> None:
        while view:
            with telling(f"write a {self._what} to", self._path):
                self._reach(f"write {self._what}")
                view = view[os.write(self._fd, view) :]

    def _end(self) -> None:
        with telling(f"make a {self._what} durable at", self._path):
            self._reach(f"fsync {self._what}")
            os.fsync(self._fd)
            fd, self._fd = self._fd, -1
            os.close(fd)  # a network file system may report a failed write only here


class RemoteSink(HashingSink):
    """A file behind fsspec."""

    def __init__(self, system: Any, path: str, what: str, reach: Reach) -> None:
        super().__init__()
        self._path, self._what, self._reach = path, what, reach
        with telling(f"create a {what} at", path):
            reach(f"create {what}")
            self._file = system.open(path, "wb")

    def abandon(self) -> None:
        """The file is closed; a partial file may be left, and without a manifest it is not there."""
        with telling("close", self._path):
            self._file.close()

    def _put(self, view: memoryview) -> None:
        with telling(f"write a {self._what} to", self._path):
            self._reach(f"write {self._what}")
            self._file.write(view)

    def _end(self) -> None:
        with telling(f"finish a {self._what} at", self._path):
            self._reach(f"close {self._what}")
            self._file.close()


class MemorySink(HashingSink):
    """A file in memory, for results that lie inline in the index. Not hashed: whoever takes its content does that."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    @property
    def content(self) -> bytes:
        """Everything that was written."""
        return b"".join(self._pieces)

    def write(self, data: Any) -> int:
        """The bytes are taken."""
        piece = bytes(data)
        self._pieces.append(piece)
        self._size += len(piece)
        return len(piece)

    def finish(self) -> Written:
        """Everything is there."""
        return Written(self._size, b"")

    def _put(self, view: memoryview) -> None:
        pass

    def _end(self) -> None:
        pass
