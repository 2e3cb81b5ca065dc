"""Verification: the full checksum of every result, once on each machine, beside the work.

Which results were verified is remembered by location and manifest in a file of this machine, not in the store: a
store may be shared, and another machine's reading proves nothing about this one's. The file only ever gains lines; one
that is torn or lost costs a verification, never more. After an unclean end the caller forgets everything.
"""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from nectar.model.entry import Entry
from nectar.store.read import Problem
from nectar.threads import started

OnDamage = Callable[[Entry, Problem], None]

_LINE: Final = re.compile(r"([0-9a-f]{2}/[0-9a-f]{2,128}-[0-9a-f]{16}) ([0-9a-f]{64})")
_WAITING: Final = 1000  # results; who is turned away is verified after another opening


def unheard(entry: Entry, problem: Problem) -> None:
    """Nobody listens."""


class Verified:
    """Which results were verified on this machine. With a path it outlives the process; without it does not."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else os.fspath(path)
        self._lock = threading.Lock()
        self._known = self._load()

    def __contains__(self, entry: Entry) -> bool:
        return self._known.get(entry.location) == entry.manifest

    def __len__(self) -> int:
        return len(self._known)

    def add(self, entry: Entry) -> None:
        """The entry counts as verified; on disk as well, unless that cannot be written."""
        with self._lock:
            if entry in self:
                return
            self._known[entry.location] = entry.manifest
            with suppress(OSError):  # not remembered is verified again
                self._append(f"{entry.location} {entry.manifest.hex()}\n")

    def forget(self) -> None:
        """Nothing counts as verified: the machine stopped without writing everything down."""
        with self._lock:
            self._known.clear()
            if self._path is not None:
                with suppress(FileNotFoundError):
                    os.unlink(self._path)

    def keep(self, alive: Callable[[str], bool]) -> None:
        """Only locations that are alive are remembered; the file is written anew."""
        with self._lock:
            self._known = {location: manifest for location, manifest in self._known.items() if alive(location)}
            if self._path is None:
                return
            aside = f"{self._path}.{os.getpid()}"
            with suppress(OSError):
                with open(aside, "w", encoding="ascii") as file:
                    file.writelines(f"{location} {manifest.hex()}\n" for location, manifest in self._known.items())
                os.replace(aside, self._path)

    def _load(self) -> dict[str, bytes]:
        if self._path is None:
            return {}
        try:
            with open(self._path, encoding="ascii", errors="replace") as file:
                found = [_LINE.fullmatch(line.rstrip("\n")) for line in file]
        except OSError:
            return {}
        return {match[1]: bytes.fromhex(match[2]) for match in found if match}

    def _append(self, line: str) -> None:
        if self._path is None:
            return
        # One write of a short line to the end of a file is not mixed with those of other processes.
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(fd, line.encode("ascii"))
        finally:
            os.close(fd)


class Verifier:
    """A thread of low priority that verifies what it is given. The thread ends when there is nothing to do."""

    def __init__(self, examine: Callable[[Entry], None], limit: int = _WAITING) -> None:
        self._examine, self._limit = examine, limit
        self._waiting: deque[Entry] = deque()
        self._busy: set[str] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, entry: Entry) -> bool:
        """The entry will be verified, unless too many wait already or no thread can be had; whether it will."""
        with self._changed:
            if entry.location in self._busy:
                return True
            if self._closed or len(self._waiting) >= self._limit:
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
        """Nothing more will be verified; what is being verified is finished."""
        with self._changed:
            self._closed = True
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
                self._examine(entry)
            except Exception:  # a verifier that dies would verify nothing; the next opening tries again
                pass
            finally:
                with self._changed:
                    self._busy.discard(entry.location)
                    self._changed.notify_all()
