"""Work that nobody waits for: results are written after their computation has gone on.

Pieces of work run one after the other in a thread of their own, in the order they came, and not before a moment has
passed: whoever brings one is about to hand a result to the program, and Python does one thing at a time. What waits in
memory is bounded: beyond that, whoever brings more does its work first. The end of the process waits, but not for ever.

While the catalog cannot be used (waiting/health.py), what could not be written waits to be tried again, after pauses
that grow; what is too much for the memory meanwhile is dropped. Law: the program waits for none of that, and nothing
that work raises, be it a panic of a library or an interrupt, keeps other work from being done.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic, thread_time
from typing import Final, NamedTuple

from nectar.errors import EnvironmentFailure
from nectar.overhead.ledger import Ledger
from nectar.threads import started
from nectar.trust.secrets import logger
from nectar.waiting.answering import Steps, UnansweredError, ask, crowding, unhurried
from nectar.waiting.breaker import FIRST, LONGEST, TIMES
from nectar.waiting.health import Health, is_passing

_log: Final = logger("nectar.catalog")
MOST_BYTES: Final = 96 << 20  # of results that wait to be written
PAUSE: Final = 0.02  # seconds that the program has for itself after it brought something
_SLOW: Final = 20e6  # bytes a second, written by a disk that is well
_INTERRUPTS: Final = (KeyboardInterrupt, SystemExit)


def nothing() -> None:
    """Nobody minds."""


class _Piece(NamedTuple):
    """over: hears that nothing more is done about it, whether it was done, failed or was dropped."""

    work: Callable[[], object]
    size: int
    due: float
    over: Callable[[], object]


class Keeper:
    """A queue with one thread, started when there is something to do. health: of the catalog that it writes to."""

    def __init__(
        self,
        most_bytes: int = MOST_BYTES,
        pause: float = PAUSE,
        ledger: Ledger | None = None,
        health: Health | None = None,
    ) -> None:
        self._most, self._pause, self._ledger, self._health = most_bytes, pause, ledger or Ledger(), health
        self._changed = threading.Condition()
        self._waiting: deque[_Piece] = deque()
        self._hurried = 0  # how many wait for it
        self._held = 0  # bytes of what waits or is being written
        self._busy: _Piece | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._over = False  # nobody waits for what is left, and it was told
        self._failed = 0  # attempts in a row that came to nothing
        self._failures = 0  # all of them
        self._retry = 0.0  # when the next one is due
        self._lost = 0  # pieces that failed where the program ends
        self._dropped = 0  # pieces that were too much while the catalog could not be used
        self._steps = Steps()
        if health is not None:
            health.when_well(self.retry)

    def submit(self, work: Callable[[], object], size: int = 0, over: Callable[[], object] = nothing) -> None:
        """Does the work soon; at once, in this thread, if too much waits already, or no other can do it any more.

        Raises nothing: work that raises what may pass is done again later, if there is room for it to wait. over: hears
        that nothing more is done about it.
        """
        piece = _Piece(work, size, monotonic() + self._pause, over)
        with self._changed:
            if not self._closed and (self._held == 0 or self._held + size <= self._most) and self._has_thread():
                self._put_off(piece)
                return
            sick = self._health is not None and not self._health.is_well
            self._dropped += sick
        if sick:
            _call(over)
            return
        self._do_first(piece)  # whoever brought it accounts for the time

    def _do_first(self, piece: _Piece) -> None:
        if self._health is None:
            _finish(piece)
            return
        with suppress(UnansweredError):  # then the disk is slow, and the program goes on
            ask(partial(_finish, piece), self._health.patience + piece.size / _SLOW)

    def _has_thread(self) -> bool:
        self._thread = self._thread or started(self._run, "nectar-keeper")
        return self._thread is not None

    def _put_off(self, piece: _Piece) -> None:
        self._waiting.append(piece)
        self._held += piece.size
        self._changed.notify_all()

    # waiting

    def wait(self, timeout: float | None = None) -> bool:
        """Whether everything brought so far is done, after waiting so long at most.

        Without a time: as long as it can be done at all.
        """
        with self._changed, self._hurry() as failed:
            self._changed.wait_for(lambda: self._is_done() or (timeout is None and self._failures > failed), timeout)
            return self._is_done()

    def drain(self) -> None:
        """Everything brought before this call is done, or cannot be; what others bring meanwhile is not waited for."""
        done = threading.Event()
        with self._changed:
            if self._is_done():
                return
            # However much waits already: it is done when everything before it is.
            self._put_off(_Piece(done.set, 0, 0.0, nothing))
            with self._hurry() as failed:
                self._changed.wait_for(lambda: done.is_set() or self._is_done() or self._failures > failed)

    def _is_done(self) -> bool:
        return not self._waiting and self._busy is None

    @contextmanager
    def _hurry(self) -> Iterator[int]:
        """Within the block nothing is put off: somebody waits. What failed so often is tried once more at once."""
        self._hurried += 1
        self._retry = 0.0
        self._changed.notify_all()
        try:
            yield self._failures
        finally:
            self._hurried -= 1

    def retry(self) -> None:
        """What could not be done is tried again now: the catalog is well again."""
        with self._changed:
            self._retry = 0.0
            self._changed.notify_all()

    def close(self, timeout: float) -> bool:
        """Nothing is put off any more; whether all that was has been done within the time.

        A catalog that cannot be used, or a disk that does not answer, is not waited for.
        """
        with self._changed:
            self._closed = True
        until = monotonic() + timeout
        done = self._health is None and self.wait(timeout)
        while not done and self._health is not None and monotonic() < until:
            before = self._progress()
            done = self.wait(min(self._patience(self._health), until - monotonic()))
            if not done and (self._progress() == before or self._failures > before[0]):
                break
        with self._changed:
            left = len(self._waiting) + (self._busy is not None) + self._lost
            pieces = list(self._waiting)
            self._waiting.clear()
            self._over = True
            self._changed.notify_all()
        for piece in pieces:
            _call(piece.over)
        done = not left
        if not done:
            self._tell(left + self._dropped, timeout)
        return done

    def _progress(self) -> tuple[int, int, int]:
        return self._failures, self._steps.steps, len(self._waiting)

    def _patience(self, health: Health) -> float:
        """Seconds that a step of what is being written may take."""
        if not health.is_well:
            return health.left
        busy = self._busy
        return TIMES * health.patience * crowding() + (0 if busy is None else busy.size / _SLOW)

    def _tell(self, left: int, timeout: float) -> None:
        if self._health is not None and not self._health.is_well:
            self._health.tell_at_end()
        _log.log(
            logging.WARNING if self._health is None or self._health.is_well else logging.INFO,
            "%s not written after waiting up to %.0f s for it; it is computed again when asked for (setting: linger)",
            "a result was" if left <= 1 else f"{left} results were", timeout,
        )  # fmt: skip

    # the thread

    def _run(self) -> None:
        with unhurried(self._steps):
            while True:
                try:
                    piece = self._next()
                    if piece is None:
                        return
                    self._do(piece)
                except BaseException:  # a thread that ends here would leave everybody waiting who waits
                    _log.exception("what keeps results goes on after a failure")
                piece = None  # it may hold a large result

    def _do(self, piece: _Piece) -> None:
        begun = thread_time()  # and not the time on the clock: the program has the machine
        failure = None
        try:
            failure = _done(piece)
            self._ledger.spend("in the background", thread_time() - begun)
            self._tell_health(failure)
        finally:
            self._done_with(piece, failure)

    def _next(self) -> _Piece | None:
        """The next piece, once it is due; None if none will come."""
        with self._changed:
            while True:
                while not self._waiting:
                    if self._closed:
                        return None
                    self._changed.wait()
                while self._waiting and (left := self._left()) > 0:
                    self._changed.wait(left)
                if self._waiting:  # otherwise the end has come
                    self._busy = self._waiting.popleft()
                    return self._busy

    def _left(self) -> float:
        """Seconds until the next piece of work is due."""
        now = monotonic()
        if self._failed:
            return self._retry - now
        pressed = self._hurried or self._closed or self._held > self._most // 4
        return 0.0 if pressed else self._waiting[0].due - now

    def _tell_health(self, failure: BaseException | None) -> None:
        if self._over:
            return
        if failure is not None and self._health is not None:
            self._health.failed(self._health.writing, failure)
        elif self._health is not None:
            self._health.succeeded(self._health.writing)

    def _done_with(self, piece: _Piece, failure: BaseException | None) -> None:
        with self._changed:
            self._busy = None
            again = failure is not None and not self._closed
            if again:
                self._waiting.append(piece)  # others may need less room
                self._retry = monotonic() + min(LONGEST, FIRST * 2.0**self._failed)
                self._failed = min(self._failed + 1, 30)
                self._failures += 1
            else:
                self._failed = 0
                self._lost += failure is not None
                self._held -= piece.size
            self._changed.notify_all()
        if not again:
            _call(piece.over)


def _finish(piece: _Piece) -> None:
    """The piece is done, or will not be."""
    try:
        failure = _done(piece)
        if failure is not None:
            _log.info("a result could not be kept: %s", failure)
    finally:
        _call(piece.over)


def _done(piece: _Piece, again: bool = True) -> BaseException | None:
    """What went wrong, if trying again may help. again: work that was interrupted is done once more."""
    try:
        piece.work()
    except BaseException as error:  # a result that is not kept is computed again; the program goes on
        if is_passing(error):
            return error
        if _is_of_the_program(error):
            raise
        if again and isinstance(error, _INTERRUPTS):  # which was meant for the thread, and not for the work
            return _done(piece, again=False)
        _log.exception("a result could not be kept")
    return None


def _is_of_the_program(error: BaseException) -> bool:
    """Whether it is an interrupt that the program has to hear of: the system interrupts no other thread."""
    return isinstance(error, _INTERRUPTS) and threading.current_thread() is threading.main_thread()


def _call(over: Callable[[], object]) -> None:
    try:
        over()
    except EnvironmentFailure as failure:
        _log.info("others may wait for what is not kept: %s", failure)
    except BaseException as error:
        if _is_of_the_program(error):
            raise
        _log.exception("others may wait for what is not kept")
