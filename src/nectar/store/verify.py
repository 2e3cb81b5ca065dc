"""Verification: which results were verified on this machine, and when; and what verifies them beside the work.

Law: a mark says that every byte of a result was right while its files had the time stamps that they have now. It holds
for a week of the same start of the machine, and for files that were at rest when they were read: of one that was
changed a moment ago the next change may not show in its stamps. Marks lie in a file of this machine, not in the store:
a store may be shared, and another machine's reading proves nothing about this one's. The file only ever gains lines;
one that is torn, changed or lost costs a verification, never more. After an unclean end the caller forgets everything.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from blake3 import blake3

from nectar.model.entry import Entry
from nectar.store.problem import Problem
from nectar.threads import started
from nectar.trust.files import PRIVATE, Access, append, read, replace
from nectar.waiting.answering import unhurried

if TYPE_CHECKING:
    from nectar.store.chunks import Checked

OnDamage = Callable[[Entry, Problem], None]
Stamps = tuple[tuple[int, ...], ...]  # of the files of a result, in the order of its parts

_LINE: Final = r"([0-9a-f]{2}/[0-9a-f]{2,128}-[0-9a-f]{16}) ([0-9]{1,12}) ([0-9a-f]{64})"
_WAITING: Final = 1000  # results; who is turned away is verified after another opening
LASTS: Final = 7 * 86400.0  # seconds that a mark holds: disks lose bits without a word
_RENEWED: Final = LASTS / 2  # when a result is verified again in the background, so that nobody waits for it
_AT_REST: Final = 50_000_000  # nanoseconds: clocks of file systems tick every 10 ms at most
_AT_REST_COARSE: Final = 2_500_000_000  # the same where stamps have whole seconds, or two
_MOST_PARTLY: Final = 1000  # results of which is known which chunks were verified


def unheard(entry: Entry, problem: Problem) -> None:
    """Nobody listens."""


class _Mark(msgspec.Struct, frozen=True):
    """When a result was verified. proof: a digest of what was, and when, so that no damaged line is taken for it."""

    at: int
    proof: str


class _Partly(msgspec.Struct, frozen=True):
    """Which chunks of each part were verified by this process, since when, and under which stamps."""

    stamps: Stamps
    since: float
    sound: list[bytearray]


class Verified:
    """Which results were verified on this machine. With a path it outlives the process; without it does not.

    path: or what tells it, asked when the first result is opened. wall: the time by which file systems stamp files, in
    nanoseconds.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Callable[[], os.PathLike[str] | None] | None = None,
        access: Access = PRIVATE,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        self._where, self._access, self._wall = path, access, wall
        self._lock = threading.Lock()
        self._partly: OrderedDict[str, _Partly] = OrderedDict()
        self._loaded: dict[str, _Mark] | None = None

    @property
    def _path(self) -> str | None:
        if callable(self._where):
            self._where = self._where()
        return None if self._where is None else os.fspath(self._where)

    @property
    def _known(self) -> dict[str, _Mark]:
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def __len__(self) -> int:
        return len(self._known)

    def recall(self, entry: Entry, parts: Sequence[Checked], now: float) -> Literal["sound", "aged", "unknown"]:
        """What was verified of these parts, whoever opened them, counts from now on; whether that is everything."""
        stamps = _stamps_of(parts)
        if stamps is None:
            return "unknown"
        mark = self._known.get(entry.location)
        if mark is not None and mark.proof == _proof(entry, stamps, mark.at) and -60.0 <= now - mark.at < LASTS:
            for part in parts:
                part.sound[:] = b"\1" * len(part.sound)
            return "sound" if now - mark.at < _RENEWED else "aged"
        if not self._at_rest(stamps):
            return "unknown"
        with self._lock:
            self._known.pop(entry.location, None)
            known = self._partly.pop(entry.location, None)
            if known is None or known.stamps != stamps or now - known.since >= _RENEWED:
                known = _Partly(stamps, now, [part.sound for part in parts])
            self._partly[entry.location] = known
            if len(self._partly) > _MOST_PARTLY:
                self._partly.popitem(last=False)
        for part, sound in zip(parts, known.sound, strict=True):
            part.sound = sound
        return "unknown"

    def add(self, entry: Entry, parts: Sequence[Checked], now: float) -> None:
        """The entry counts as verified if its files are at rest; on disk as well, unless that cannot be written."""
        stamps = _stamps_of(parts)
        if stamps is None or not self._at_rest(stamps):
            return
        mark = _Mark(int(now), _proof(entry, stamps, int(now)))
        with self._lock:
            self._partly.pop(entry.location, None)
            if self._known.get(entry.location) == mark:
                return
            self._known[entry.location] = mark
            with suppress(OSError):  # not remembered is verified again
                self._append(_line(entry.location, mark))

    def doubt(self, entry: Entry) -> None:
        """The entry counts as verified no longer, for this process."""
        with self._lock:
            self._known.pop(entry.location, None)
            self._partly.pop(entry.location, None)

    def forget(self) -> None:
        """Nothing counts as verified: the machine stopped without writing everything down."""
        with self._lock:
            self._known.clear()
            self._partly.clear()
            if self._path is not None:
                with suppress(FileNotFoundError):
                    os.unlink(self._path)

    def locations(self) -> list[str]:
        """Where the results lie that count as verified, those included that other processes have verified."""
        with self._lock:
            self._loaded = {**(self._loaded or {}), **self._load()}
            return list(self._loaded)

    def keep(self, alive: Callable[[str], bool]) -> None:
        """Only locations that are alive are remembered; the file is written anew.

        What another process adds meanwhile is lost, and verified once more.
        """
        with self._lock:
            self._loaded = {location: mark for location, mark in self._known.items() if alive(location)}
            if self._path is None:
                return
            lines = [_line(location, mark) for location, mark in self._known.items()]
            with suppress(OSError):
                replace(self._path, "".join(lines).encode("ascii"), self._access)

    def _at_rest(self, stamps: Stamps) -> bool:
        """Whether the next change of any of these files will show in its stamps.

        The last two numbers of a stamp are the times of the last changes.
        """
        changed = [each for stamp in stamps for each in stamp[-2:]]
        coarse = all(each % 1_000_000_000 == 0 for each in changed)
        return self._wall() - max(changed, default=0) >= (_AT_REST_COARSE if coarse else _AT_REST)

    def _load(self) -> dict[str, _Mark]:
        if self._path is None:
            return {}
        try:
            found = [re.fullmatch(_LINE, line) for line in read(self._path).decode("ascii", "replace").splitlines()]
        except OSError:
            return {}
        return {match[1]: _Mark(int(match[2]), match[3]) for match in found if match}

    def _append(self, line: str) -> None:
        if self._path is None:
            return
        # One write of a short line to the end of a file is not mixed with those of other processes.
        fd = append(self._path, self._access)
        try:
            os.write(fd, line.encode("ascii"))
        finally:
            os.close(fd)


def _line(location: str, mark: _Mark) -> str:
    return f"{location} {mark.at} {mark.proof}\n"


def _proof(entry: Entry, stamps: Stamps, at: int) -> str:
    return blake3(msgspec.msgpack.encode((entry.location, entry.manifest, stamps, at))).hexdigest()


def _stamps_of(parts: Sequence[Checked]) -> Stamps | None:
    """The stamps of all files; None if some have none: they are in memory, fetched anew each time."""
    stamps = tuple(part.stamp for part in parts if part.stamp is not None)
    return stamps if len(stamps) == len(parts) else None


class Verifier:
    """A thread of low priority that verifies what it is given. The thread ends when there is nothing to do."""

    def __init__(self, examine: Callable[[Entry], None], limit: int = _WAITING) -> None:
        self._examine, self._limit = examine, limit
        self._waiting: deque[Entry] = deque()
        self._busy: set[str] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self.closed = False

    def submit(self, entry: Entry) -> bool:
        """The entry will be verified, unless too many wait already or no thread can be had; whether it will."""
        with self._changed:
            if entry.location in self._busy:
                return True
            if self.closed or len(self._waiting) >= self._limit:
                return False
            self._thread = self._thread or started(self._run, "nectar-verify")
            if self._thread is None:
                return False
            self._busy.add(entry.location)
            self._waiting.append(entry)
        return True

    def drain(self, timeout: float | None = None) -> bool:
        """Everything submitted so far is verified; False if that took longer than the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy, timeout)

    def close(self) -> None:
        """Nothing more will be verified; what is being verified ends with the next chunk."""
        with self._changed:
            self.closed = True
            self._busy -= {entry.location for entry in self._waiting}
            self._waiting.clear()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        # On Linux each thread has a priority of its own; elsewhere this would slow down the whole process.
        if hasattr(os, "sched_setaffinity"):
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        while True:
            with self._changed:
                if not self._waiting:
                    self._thread = None
                    return
                entry = self._waiting.popleft()
            try:
                with unhurried():
                    self._examine(entry)
            except BaseException:  # a verifier that dies would verify nothing; the next opening tries again
                pass
            finally:
                with self._changed:
                    self._busy.discard(entry.location)
                    self._changed.notify_all()
