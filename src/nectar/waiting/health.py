"""The health of a catalog, as one program sees it: asked while it is well, left alone and probed while it is not.

In: work that asks the catalog. Out: its answer, or CatalogUnavailableError at once or after a moment. What reads and
what writes fails by itself: while somebody holds the lock of writers, results are still found. Law: a program loses a
moment each time and four in all (breaker.py), and says so once; what probes runs beside the program. Answers to what
writes count as well, by what they take longer than usual: colleagues may be busy, or hold the lock again and again.
Reading leaves some of its time to whoever finds something; what looks cost is accounted for elsewhere (overhead/).

Going through another thread takes some 25 us. On a disk of this machine, what is asked so soon after another answer
that this would be more than a hundredth is asked directly: a disk that stops answering in that very moment is waited
for, once.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from nectar.clock import Clock
from nectar.errors import CatalogUnavailableError, EnvironmentFailure, StoreFailure
from nectar.trust.secrets import logger
from nectar.waiting.answering import UnansweredError, ask, ask_later, crowding, is_asked_for, is_unhurried
from nectar.waiting.breaker import TIMES, Allowance, Breaker

_T = TypeVar("_T")
_FRESH: Final = 2.5e-3  # seconds after an answer in which nobody expects that the next one takes long
_USUAL: Final = 0.01  # seconds that writing takes at most, where not more want to run than there are processors
_SHARE: Final = 0.02  # of the time of a program that looks may take while nothing can be kept
_log: Final = logger("nectar.catalog")
_PASSING: Final = frozenset(
    number
    for name in ("EAGAIN", "EDQUOT", "EHOSTDOWN", "EIO", "ENOLCK", "ENOSPC", "ENOTCONN", "EROFS", "ESTALE", "ETIMEDOUT")
    if (number := getattr(errno, name, None)) is not None
)


def is_passing(failure: BaseException) -> bool:
    """Whether a failure says something of the machine at this moment, so that trying again later makes sense."""
    if isinstance(failure, CatalogUnavailableError):
        return True
    return isinstance(failure, StoreFailure) and failure.errno in _PASSING


def say(failure: BaseException, health: Health | None, message: str, *values: object) -> None:
    """A warning in the log; of what may pass people are told once, by the health if there is one."""
    _log.log(logging.INFO if health is not None and is_passing(failure) else logging.WARNING, message, *values)


class _Worth(threading.local):
    """What an answer may save whoever asks in this thread."""

    seconds = 0.0


_worth: Final = _Worth()


@contextmanager
def worth(seconds: float) -> Iterator[None]:
    """Within the block an answer may save the program so many seconds: a small part of them may be spent on each."""
    before = _worth.seconds
    _worth.seconds = seconds
    try:
        yield
    finally:
        _worth.seconds = before


class Health:
    """Of one catalog. where: what people know it by. patience: seconds that the program waits for one answer."""

    def __init__(self, where: str, patience: float, clock: Clock) -> None:
        self._where, self._clock = where, clock
        self._allowance = Allowance(patience)
        # Writing leaves one moment to reading: results are found while others hold the lock of writers.
        self.reading, self.writing = Breaker(self._allowance), Breaker(self._allowance, TIMES - 1)
        self.later: Callable[[Callable[[], object], int], object] | None = None  # does work beside the program
        self._listeners: list[Callable[[], object]] = []
        self.is_remote = True  # whether anything may happen between this machine and the disk
        self._answered = float("-inf")
        self._looking = self._since = 0.0
        self.is_well = True  # it is asked, and takes what is to be written
        self._probes: dict[Breaker, Callable[[], object]] = {}
        self._lock = threading.Lock()
        self._reason = ""
        self._told = False

    @property
    def patience(self) -> float:
        """Seconds that the program waits for one answer."""
        return self._allowance.each

    @property
    def left(self) -> float:
        """Seconds that the program may still lose now."""
        return self._allowance.left

    def probe_with(self, reading: Callable[[], object], writing: Callable[[], object]) -> None:
        """What shows whether it can be read, and written to, while nobody asks it anything else."""
        self._probes = {self.reading: reading, self.writing: writing}

    def when_well(self, listener: Callable[[], object]) -> None:
        """Hears of it whenever the catalog is well again."""
        self._listeners.append(listener)

    def looks(self) -> bool:
        """Whether the program looks for results at all, and has what it computes kept.

        While the catalog is not well that takes little of its time, unless what is found pays for it.
        """
        if self.is_well:
            return True
        for breaker in (self.reading, self.writing):
            if breaker.state == "open":
                self._look_after(breaker)
        return self._looking <= _SHARE * (self._clock.elapsed() - self._since)

    def looked(self, seconds: float, saved: float) -> None:
        """A look took so long, and saved so much."""
        if not self.is_well:
            self._looking += seconds - saved

    # asking

    def expects_answer(self) -> bool:
        """Whether a short question may be asked directly: the last one was answered a moment ago, on this machine.

        It is asked then, and whoever asks the next one within a moment of this one has got its answer.
        """
        now = self._clock.elapsed()
        if now - self._answered >= _FRESH or self.reading.state != "closed" or self.is_remote:
            return False
        self._answered = now
        return True

    def ask(
        self,
        work: Callable[[], _T],
        breaker: Breaker,
        late: Callable[[Any, BaseException | None], object] | None = None,
    ) -> _T:
        """What the work gives. Raises CatalogUnavailableError if it does not come in time, or would not.

        late: hears of what it gave after nobody waited any more.
        """
        if is_unhurried() or is_asked_for():
            return work()
        now = self._clock.elapsed()
        patience = breaker.patience(now, _worth.seconds)
        if not patience:
            if breaker.state == "closed":
                raise CatalogUnavailableError(f"{self._where} answers too slowly for the program to wait for it")
            self._look_after(breaker)
            raise CatalogUnavailableError(self._reason)
        if self.writing.state == "open" and breaker is self.reading:  # a program may write nothing for long
            self._look_after(self.writing)
        try:
            answer = ask(work, patience, partial(self._answered_late, breaker, late))
            self._answered = ended = self._clock.elapsed()
            if ended - now > _USUAL and breaker is self.writing:
                self._came_slowly(ended, ended - now)
            return answer
        except UnansweredError as none:
            waited = max(none.seconds, self._clock.elapsed() - now)  # it may have made steps before
            self._failed(breaker, f"{self._where} did not answer within {none.seconds * 1000:.0f} ms", waited)
        except EnvironmentFailure as failure:
            if is_passing(failure):
                self.failed(breaker, failure, self._clock.elapsed() - now)
            raise
        raise CatalogUnavailableError(self._reason)

    def _came_slowly(self, now: float, seconds: float) -> None:
        with self._lock:
            spent = self.writing.cost(now, seconds - _USUAL * crowding(), _worth.seconds)
        if spent:
            _log.info("%s answers slowly: what can be written later is, and the program does not wait", self._where)

    def failed(self, breaker: Breaker, failure: BaseException, waited: float = 0.0) -> None:
        """Something that may pass went wrong, after such a wait: said once, and it is left alone for a while."""
        self._failed(breaker, str(failure), waited)
        self._tell()

    def succeeded(self, breaker: Breaker) -> None:
        """It was asked beside the program, and is well."""
        if breaker.state == "closed":
            return
        with self._lock:
            closed = breaker.succeed(self._clock.elapsed())
            self.is_well = self.reading.state == "closed" == self.writing.state
        if closed:
            _log.info("%s answers again", self._where)
            for listener in self._listeners:
                listener()

    # while it is not well

    def _failed(self, breaker: Breaker, reason: str, waited: float = 0.0) -> None:
        with self._lock:
            self._reason = reason
            if self.is_well:
                self._since, self._looking = self._clock.elapsed(), 0.0
            breaker.fail(self._clock.elapsed(), waited)
            self.is_well = False

    def _answered_late(
        self, breaker: Breaker, late: Callable[[Any, BaseException | None], object] | None, answer: Any,
        error: BaseException | None,
    ) -> None:  # fmt: skip
        with self._lock:
            if error is None or not is_passing(error):
                breaker.hurry(self._clock.elapsed())
        if late is not None:
            late(answer, error)

    def _look_after(self, breaker: Breaker) -> None:
        """It is probed if that is due; the program does not wait for it."""
        now = self._clock.elapsed()
        probe = self._probes.get(breaker)
        # A machine that was busy for a moment is nothing to tell of.
        if now - breaker.since >= TIMES * self._allowance.each:
            self._tell()
        if probe is None:
            return
        with self._lock:
            due = breaker.probes(now)
        if due and not ask_later(probe, partial(self._probed, breaker, now)):
            with self._lock:
                breaker.fail(now)

    def _probed(self, breaker: Breaker, begun: float, answer: Any, error: BaseException | None) -> None:
        now = self._clock.elapsed()
        if error is None and now - begun <= self._allowance.each * crowding():
            self.succeeded(breaker)
            return
        with self._lock:
            if error is not None and is_passing(error):
                self._reason = str(error)
            breaker.fail(now)

    def tell_at_end(self) -> None:
        """It was said if the catalog is not well where the program ends."""
        if not self.is_well:
            self._tell()

    def _tell(self) -> None:
        with self._lock:
            told, self._told = self._told, True
        if not told:
            _log.warning(
                "%s; the program goes on without it, what it computes meanwhile waits in memory, and it is tried again "
                "later", self._reason,
            )  # fmt: skip
