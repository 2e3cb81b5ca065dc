"""Chunks: parts are hashed piece by piece while they are written, and verified piece by piece before they are read.

Law: what a `Checked` hands out had the digests of its manifest when it was looked at, under the time stamps that its
file has had since the part was opened. Verified by reading, not through a map: a device that fails, or a file that was
cut off, is an error then and not a signal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import IO, Any, Final

from blake3 import blake3

from nectar.store.loss import DamagedError, is_loss
from nectar.store.manifest import CHUNK, DIGEST, Part
from nectar.store.problem import What
from nectar.store.sources import Source

Range = tuple[int, int]  # of bytes: from the first up to, and without, the last
_STEP: Final = 1 << 20  # bytes read at once of a part that has no chunks


class DamagedPartError(DamagedError):
    """Bytes of a part are not those that were written, or the device has lost them."""

    def __init__(self, part: str, reason: str, what: What = "checksum") -> None:
        super().__init__(f"the part {part} is damaged: {reason}; compute the result again")
        self.part, self.reason, self.what = part, reason, what


class ChunkHash:
    """Digests of what is handed to it: of each chunk, and of all of it."""

    def __init__(self) -> None:
        self._hash = blake3()
        self._room = CHUNK
        self._digests: list[bytes] = []

    def update(self, view: memoryview) -> None:
        """These bytes follow."""
        while view:
            piece, view = view[: self._room], view[self._room :]
            self._hash.update(piece)
            self._room -= len(piece)
            if not self._room:
                self._next()

    def digests(self) -> tuple[bytes, bytes]:
        """The digest of everything, and those of its chunks if there are several; nothing follows."""
        if self._room < CHUNK or not self._digests:
            self._next()
        if len(self._digests) == 1:
            return self._digests[0], b""
        chunks = b"".join(self._digests)
        return blake3(chunks).digest(), chunks

    def _next(self) -> None:
        self._digests.append(self._hash.digest())
        self._hash, self._room = blake3(), CHUNK


class Checked:
    """A part whose bytes are verified before they are handed out."""

    def __init__(self, source: Source, part: Part, chunk: int) -> None:
        self._source, self._part = source, part
        self._chunk = chunk if part.chunks else max(1, part.size)
        self._lock = threading.Lock()
        self.size = source.size
        self.sound = bytearray(max(1, -(-part.size // self._chunk)))  # of each chunk, whether it was verified

    @property
    def stamp(self) -> tuple[int, ...] | None:
        """What the file system said of the file when it was opened; None if it has nothing to say."""
        return self._source.stamp

    @property
    def is_sound(self) -> bool:
        """Whether all of it was verified."""
        return all(self.sound)

    def check(self, ranges: Iterable[Range] | None = None, halted: Callable[[], bool] = bool) -> None:
        """These bytes are right, or all of them; unless it was halted. Raises DamagedPartError if they are not.

        Raises StoreFailure if they cannot be read now, which says nothing about them.
        """
        with self._lock:
            for number in self._asked(ranges):
                if halted():
                    return
                if not self.sound[number]:
                    self._verify(number)
                    self.sound[number] = 1

    def read(self, offset: int, count: int) -> bytes:
        """These bytes, verified."""
        self.check([(offset, offset + count)])
        return self._source.read(offset, count)

    def view(self, ranges: Iterable[Range] | None = None) -> Any:
        """The content, of which these bytes are verified, or all; nobody may look at others."""
        self.check(ranges)
        return self._source.view()

    def file(self, ranges: Iterable[Range] | None = None) -> IO[bytes]:
        """The same as a file of its own, to be closed by whoever asked for it."""
        self.check(ranges)
        return self._source.file()

    def private(self) -> Any:
        """The content, verified, as a buffer that may be written to; nobody else sees what is written."""
        self.check()
        return self._source.private()

    def ends(self, count: int) -> tuple[bytes, bytes]:
        """The first and the last bytes, as they are."""
        return self._source.ends(count)

    def close(self) -> None:
        """Nothing is held open any longer, except what somebody still uses."""
        self._source.close()

    def _asked(self, ranges: Iterable[Range] | None) -> Iterable[int]:
        if ranges is None:
            return range(len(self.sound))
        last = len(self.sound)
        return (
            number
            for start, stop in ranges
            if start < stop
            for number in range(max(0, start // self._chunk), min(last, -(-stop // self._chunk)))
        )

    def _verify(self, number: int) -> None:
        start = number * self._chunk
        stop = min(self._part.size, start + self._chunk)
        hashed = blake3()
        try:
            while start < stop and (piece := self._source.read(start, min(_STEP, stop - start))):
                hashed.update(piece)
                start += len(piece)
        except OSError as error:
            if not is_loss(error):
                raise
            raise DamagedPartError(self._part.name, f"it cannot be read: {error}", "unreadable") from error
        if start != stop or hashed.digest() != self._expected(number):
            raise DamagedPartError(self._part.name, "its bytes are not those that were written")

    def _expected(self, number: int) -> bytes:
        chunks = self._part.chunks
        return chunks[number * DIGEST : (number + 1) * DIGEST] if chunks else bytes.fromhex(self._part.blake3)


def digests_of(source: Source) -> tuple[bytes, bytes]:
    """The digest of a file that is there already, and those of its chunks."""
    hashed = ChunkHash()
    for start in range(0, source.size, _STEP):
        hashed.update(memoryview(source.read(start, _STEP)))
    return hashed.digests()
