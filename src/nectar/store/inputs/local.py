"""Files of this machine: what the file system says of them, and their content.

In: absolute paths. Links are followed, so a link that leads elsewhere is another input, while the path stays the one
that was given: programs see the path. The device's number is no part of a stamp: it changes when a network file system
is mounted again, and path, inode and change time to the nanosecond already tell files apart.

The time of a change comes from the file system's clock (for NFS: the server's), "now" from ours. While ours is ahead by
more than the guard less the granularity, a file that is not quiet yet looks so; the guard has to exceed the difference
between the clocks. Two kinds of writers leave the times of their file as they are while its bytes change: one that goes
on writing through a shared memory map, and one that overwrites a file in place by a single call that takes longer than
the guard. A file that was changed lately and may still be written to is therefore read; on a file system of this
machine, and if the file is the user's own, since the system does not tell more (`writers.py`). Files that grow, or are
renamed into place, have no such moment.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import blake3

from nectar.clock import Clock
from nectar.keys.expansion import joined
from nectar.keys.hashing import threads_for
from nectar.store.inputs import failures
from nectar.store.inputs.identity import Reading, Seen, Trust, stamp_of
from nectar.store.inputs.mounts import ASK_BY_OPENING, KEEP_CHANGE_TIME, OF_THIS_MACHINE, Mounts
from nectar.store.inputs.paths import leads_there_since
from nectar.store.inputs.writers import may_be_written
from nectar.trust import people
from nectar.trust.held import refuse
from nectar.trust.places import Way, distrust_in, way_into

if TYPE_CHECKING:
    from nectar.overhead.allowance import Allowance
    from nectar.store.inputs.stretches import Stretch

_BLOCK = 8 << 20
# After so many nanoseconds a system has written pages of mapped files to the disk: usually that takes half a minute.
_UNWRITTEN = 180 * 10**9
_NEVER_WRITTEN = frozenset({"tmpfs"})  # there is no disk
_SECONDS_KNOWN = 5.0  # for which what was said of the way into a folder holds
_MOST_FOLDERS = 4096  # of which it is known
_SEVERAL_THREADS_FROM = 64 << 20  # below, starting the threads costs what they save
_HOLLOW_FROM = 16 << 30  # bytes; zeros are hashed in some ten seconds up to there
_UNTOLD = 8 << 20  # bytes that are read at most where a system says that all files are empty, as of /proc
_OPEN = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


class LocalInputs:
    """Files of this machine, or of a network file system mounted on it."""

    def __init__(self, clock: Clock, host: str, shared: Sequence[str], guard: float, mounts: Mounts) -> None:
        self._clock, self._guard, self._mounts = clock, int(guard * 1e9), mounts
        self._host = b"h" + joined(host)
        self._folders: dict[str, tuple[Way, float]] = {}  # what leads to what is in them; asked when
        self._shared = tuple(os.path.abspath(path).rstrip("/") + "/" for path in shared)

    def look(self, path: str, now: float) -> Seen:
        """What the file system says of the file; now is a moment before this call."""
        try:
            status = status_at(path)
            kind = self._mounts.kind(path, status.st_dev, now)
            if kind in ASK_BY_OPENING and stat.S_ISREG(status.st_mode):
                status = _status_by_opening(path)
        except (OSError, ValueError) as error:
            raise failures.unreadable(path, error) from error
        return self._seen(path, status, kind, now)

    def read(self, path: str, allowance: Allowance | None = None, most: int | None = None) -> Reading:
        """The content of the file, which did not change while it was read.

        Raises UnreadInputError if it changes, if the allowance does not grant it, or if it has more bytes than `most`.
        """
        for attempt in range(failures.ATTEMPTS):
            reading = self._read_once(path, allowance, most, again=attempt > 0)
            if reading is not None:
                return reading
        raise failures.restless(path)

    def _read_once(self, path: str, allowance: Allowance | None, most: int | None, again: bool) -> Reading | None:
        now = self._clock.now()
        with failures.telling(path):
            fd = _opened(path)
            try:
                before = status_of(fd)
                if _is_hollow(before):
                    raise failures.hollow(path)
                seen = self._seen(path, before, self._mounts.kind(path, before.st_dev, now), now)
                expected = before.st_size
                if not expected and seen.trust is Trust.NEVER:
                    expected = _UNTOLD
                if most is not None and before.st_size > most:
                    raise failures.restless(path)
                if allowance is not None and not allowance.take(before.st_size):
                    raise failures.restless(path) if again else failures.too_large(path)
                digest, size = _digest(fd, expected, path, allowance)
            finally:
                os.close(fd)
        if size > expected or self.look(path, now).stamp != seen.stamp:
            return None
        return Reading(Seen(seen.url, size, seen.stamp, seen.trust), digest)

    def is_exposed(self, path: str) -> bool:
        """Whether others can change what lies there: the file, or what leads to it."""
        if not people.KNOWN:
            return False
        folder, now = os.path.dirname(path), self._clock.now()
        known = self._folders.get(folder)
        if known is None or not 0 <= now - known[1] < _SECONDS_KNOWN:
            if len(self._folders) >= _MOST_FOLDERS:
                self._folders.clear()
            known = self._folders[folder] = (way_into(folder), now)
        return bool(distrust_in(known[0], path))

    def is_older(self, path: str, moment: float) -> bool:
        """Whether neither the file was touched since a moment in the past, nor what leads to it; no if in doubt.

        Only where that moment and those of changes are of one clock, and long enough before it that nothing is left
        which somebody wrote through a memory map.
        """
        before = int(moment * 1e9) - self._guard
        try:
            if not os.path.isabs(path) or may_be_written(path) or not leads_there_since(path, before, self._is_own):
                return False
            status = status_at(path)
            return stat.S_ISREG(status.st_mode) and max(status.st_mtime_ns, status.st_ctime_ns) < before - _UNWRITTEN
        except (OSError, ValueError):
            return False

    def _is_own(self, path: str, device: int) -> bool:
        """Whether what lies there has the clock of this machine, and a disk."""
        return self._mounts.kind(path, device, self._clock.now()) in OF_THIS_MACHINE - _NEVER_WRITTEN

    def place(self, path: str) -> bytes:
        """32 bytes that stand for where a file lies, whatever it holds."""
        try:
            return stamp_of(b"place" + self._place(path, status_at(path).st_dev) + joined(path))
        except (OSError, ValueError) as error:
            raise failures.unreadable(path, error) from error

    def read_stretches(
        self, path: str, known: Mapping[int, Collection[bytes]], quoted: bool
    ) -> tuple[Reading, list[Stretch]] | None:
        """A file cut at the ends that are known; None if it begins with nothing that is known, or changes."""
        from nectar.store.inputs.stretches import stretches

        now = self._clock.now()
        with failures.telling(path):
            fd = _opened(path)
            try:
                before = status_of(fd)
                seen = self._seen(path, before, self._mounts.kind(path, before.st_dev, now), now)
                found = stretches(fd, before.st_size, known, quoted)
            finally:
                os.close(fd)
        if len(found) < 2 or self.look(path, now).stamp != seen.stamp:
            return None
        return Reading(seen, found[-1].upto), found

    def _seen(self, path: str, status: os.stat_result, kind: str, now: float) -> Seen:
        if not stat.S_ISREG(status.st_mode):
            raise failures.folder(path) if stat.S_ISDIR(status.st_mode) else failures.no_file(path)
        size, modified, changed = status.st_size, status.st_mtime_ns, status.st_ctime_ns
        numbers = b"%d %d %d %d" % (size, modified, changed, status.st_ino)
        if kind not in KEEP_CHANGE_TIME:
            trust = Trust.NEVER
        elif self._is_quiet(path, kind, int(now * 1e9) - max(modified, changed)):
            trust = Trust.NOW
        else:
            trust = Trust.LATER
        return Seen(path, size, stamp_of(b"local" + self._place(path, status.st_dev) + joined(path, numbers)), trust)

    def _is_quiet(self, path: str, kind: str, age: int) -> bool:
        """Whether the next change of a file will show in its times. age: of the last one, in nanoseconds."""
        if age < self._guard:
            return False
        unwritten = age < _UNWRITTEN or kind in _NEVER_WRITTEN
        return not (unwritten and kind in OF_THIS_MACHINE and may_be_written(path))

    def _place(self, path: str, device: int) -> bytes:
        """The host, unless the file lies on a shared mount: a link on it may lead to the host's own files."""
        for mount in self._shared:
            with suppress(OSError):
                if path.startswith(mount) and status_at(mount).st_dev == device:
                    return b"s"
        return self._host


def status_at(path: str) -> os.stat_result:
    """What the system says of the file that path leads to."""
    return os.stat(path)


def status_of(fd: int) -> os.stat_result:
    """What the system says of an open file."""
    return os.fstat(fd)


def _opened(path: str) -> int:
    refuse(path)
    return os.open(path, _OPEN)


def _status_by_opening(path: str) -> os.stat_result:
    fd = _opened(path)
    try:
        return status_of(fd)
    finally:
        os.close(fd)


def _is_hollow(status: os.stat_result) -> bool:
    """Whether a file is large and nearly all of it holes: zeros take hours to read, and engines skip them.

    It matters where there is no limit of time: somebody else makes such a file in a moment.
    """
    held = getattr(status, "st_blocks", None)
    return held is not None and status.st_size > _HOLLOW_FROM and held * 512 < status.st_size // 10


def _digest(fd: int, expected: int, path: str = "", allowance: Allowance | None = None) -> tuple[bytes, int]:
    """BLAKE3 of an open file, and how many bytes it had; one more than expected if it has grown, however far.

    Read and not mapped: a mapped file that is truncated meanwhile ends the process. Who writes to it decides where it
    ends, so that is not waited for.
    """
    hasher = blake3.blake3(max_threads=threads_for(expected, _SEVERAL_THREADS_FROM))
    buffer = bytearray(min(_BLOCK, max(expected, 4095) + 1))
    view, size = memoryview(buffer), 0
    with open(fd, "rb", buffering=0, closefd=False) as file:
        while size <= expected and (got := file.readinto(view[: expected + 1 - size])):
            hasher.update(view[:got])
            size += got
            if size < expected and allowance is not None and allowance.is_over():
                raise failures.too_slow(path)
    return hasher.digest(), size
