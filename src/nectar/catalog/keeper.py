"""Work that nobody waits for: results are written after their computation has gone on.

Pieces of work run one after the other in a thread of their own, in the order they came, and not before a moment has
passed: whoever brings one is about to hand a result to the program, and Python does one thing at a time. What waits in
memory is bounded: beyond that, whoever brings more does its work first. The end of the process waits, but not for ever.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, thread_time
from typing import Final

from nectar.overhead.ledger import Ledger
from nectar.threads import started

_log: Final = logging.getLogger("nectar.catalog")
MOST_BYTES: Final = 96 << 20  # of results that wait to be written
PAUSE: Final = 0.02  # seconds that the program has for itself after it brought something


class Keeper:
    """A queue with one thread, started when there is something to do."""

    def __init__(self, most_bytes: int = MOST_BYTES, pause: float = PAUSE, ledger: Ledger | None = None) -> None:
        self._most, self._pause, self._ledger = most_bytes, pause, ledger or Ledger()
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Callable[[], object], int, float]] = deque()  # work, its bytes, when it is due
        self._hurried = 0  # how many wait for it
        self._held = 0  # bytes of what waits or is being written
        self._busy = False
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, work: Callable[[], object], size: int = 0) -> None:
        """Does the work soon; at once, in this thread, if too much waits already, or no other can do it any more."""
        with self._changed:
            if not self._closed and (self._held == 0 or self._held + size <= self._most) and self._has_thread():
                self._put_off(work, size)
                return
        _do(work)  # whoever brought it accounts for the time

    def _has_thread(self) -> bool:
        self._thread = self._thread or started(self._run, "nectar-keeper")
        return self._thread is not None

    def _put_off(self, work: Callable[[], object], size: int) -> None:
        self._waiting.append((work, size, monotonic() + self._pause))
        self._held += size
        self._changed.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Whether everything brought so far is done, after waiting so long at most."""
        with self._changed, self._hurry():
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, timeout)

    def drain(self) -> None:
        """Everything brought before this call is done; what others bring meanwhile is not waited for."""
        done = threading.Event()
        with self._changed:
            if not self._waiting and not self._busy:
                return
            self._put_off(done.set, 0)  # however much waits already: it is done when everything before it is
            with self._hurry():
                self._changed.wait_for(lambda: done.is_set() or (not self._waiting and not self._busy))

    @contextmanager
    def _hurry(self) -> Iterator[None]:
        """Within the block nothing is put off: somebody waits."""
        self._hurried += 1
        self._changed.notify_all()
        try:
            yield
        finally:
            self._hurried -= 1

    def close(self, timeout: float) -> bool:
        """Nothing is put off any more; whether all that was has been done within the time."""
        with self._changed:
            self._closed = True
        done = self.wait(timeout)
        with self._changed:
            left = len(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        if not done:
            _log.warning(
                "%s not written after waiting %.0f s for it; it is computed again when asked for (setting: linger)",
                "a result was" if left <= 1 else f"{left} results were", timeout,
            )  # fmt: skip
        return done

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    if self._closed:
                        return
                    self._changed.wait()
                while self._waiting and (left := self._left()) > 0:
                    self._changed.wait(left)
                if not self._waiting:  # the end has come
                    continue
                work, size, _ = self._waiting.popleft()
                self._busy = True
            begun = thread_time()  # and not the time on the clock: the program has the machine
            _do(work)
            self._ledger.spend("in the background", thread_time() - begun)
            del work  # it may hold a large result
            with self._changed:
                self._held -= size
                self._busy = False
                self._changed.notify_all()

    def _left(self) -> float:
        """Seconds until the next piece of work is due."""
        pressed = self._hurried or self._closed or self._held > self._most // 4
        return 0.0 if pressed else self._waiting[0][2] - monotonic()


def _do(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:  # a result that is not kept is computed again; the program goes on
        _log.exception("a result could not be kept")
