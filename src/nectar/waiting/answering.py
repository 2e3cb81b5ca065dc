"""Asking what may never answer: a thread does the work, and whoever asked goes on without it after a while.

In: work that may block in a system call, and how long the caller may wait. Out: what the work gives or raises, or
UnansweredError; the work then goes on by itself. Law: the caller waits no longer than a step of the work may take;
work that goes on step by step is waited for; and an answer that the caller does not get is told of as late, also where
an interrupt came in between. Threads of Nectar that do their work beside the program wait as long as it takes, and do
it themselves.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic
from typing import Any, Final, TypeVar, cast

from nectar.forks import in_child
from nectar.threads import started

_T = TypeVar("_T")


class UnansweredError(Exception):
    """The work was not done in time. seconds: that the caller has waited."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:.3f} s")
        self.seconds = seconds


class _Question:
    """A piece of work. patience: seconds that a step of it may take. late: hears of what it gave after all.

    settled: taken by whoever comes first: the work when it is done, or the caller who goes on without it. So an answer
    is either the caller's or late, and never both.
    """

    __slots__ = ("answer", "done", "error", "late", "patience", "settled", "steps", "work")

    def __init__(self, work: Callable[[], Any], patience: float) -> None:
        self.work, self.patience = work, patience
        self.steps = 0
        self.answer: Any = None
        self.error: BaseException | None = None
        self.late: Callable[[Any, BaseException | None], object] | None = None
        self.settled = threading.Lock()
        self.done = threading.Lock()
        self.done.acquire()


class _Answerer:
    """A thread that does one piece of work after another, for whoever asks next."""

    def __init__(self) -> None:
        self._asked = threading.Lock()
        self._asked.acquire()
        self._question: _Question | None = None

    def start(self) -> bool:
        """Whether it runs."""
        return started(self._run, "nectar-answers") is not None

    def take(self, question: _Question) -> None:
        """It does this from now on."""
        self._question = question
        self._asked.release()

    def _run(self) -> None:
        while True:
            self._asked.acquire()
            question, self._question = cast(_Question, self._question), None
            _here.question = question
            try:
                question.answer = question.work()
            except BaseException as error:
                question.error = error
            _here.question = None
            in_time = question.settled.acquire(blocking=False)
            question.done.release()
            if not in_time:
                _tell(question)
            del question  # it may hold a large result
            _idle.append(self)


class _Here(threading.local):
    """What a thread does. question: that it answers. unhurried: how far its own work has come.

    patience: with which it asks by itself. asked_for: somebody waits for its work, however long it takes.
    """

    question: _Question | None = None
    unhurried: Steps | None = None
    patience: float | None = None
    asked_for = False


_here: Final = _Here()
_idle: Final[list[_Answerer]] = []
_stuck: Final[list[_Question]] = []  # that nobody waits for any more
_LOAD: Final = "/proc/loadavg"
_MOST_CROWDING: Final = 10.0
_BACKGROUND: Final = 1.0  # seconds that a thread of Nectar waits for a lock before it lets others do something


class Steps:
    """How far a thread has come that works beside the program."""

    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps = 0


def ask(
    work: Callable[[], _T],
    patience: float,
    late: Callable[[Any, BaseException | None], object] | None = None,
) -> _T:
    """What the work gives or raises. Raises UnansweredError if a step of it takes longer than `patience` seconds.

    late: hears of what it gave, or raised, if nobody waited for it any more.
    """
    if is_unhurried() or _here.question is not None:
        answer = work()
        step()
        return answer
    question = _Question(work, patience)
    question.late = late or _nobody
    if not _put(question):  # no more threads can be had, as where the process ends
        if _stuck:
            raise UnansweredError(0.0)
        return work()
    try:
        waited = _waited_in_vain(question)
    except BaseException:  # an interrupt
        if not _is_left(question):  # which came a moment after the answer
            ask_later(partial(question.late, question.answer, question.error), _nobody)
        raise
    if waited and _is_left(question):
        raise UnansweredError(waited)
    if question.error is not None:
        raise question.error
    return cast(_T, question.answer)


def _waited_in_vain(question: _Question) -> float:
    """Seconds for which no step was made, if they are too many; 0 if the answer is there."""
    begun, seen = monotonic(), 0
    while not question.done.acquire(timeout=question.patience):
        # On a machine with too much to do a step takes longer, and whatever the program does as well.
        if question.steps == seen and monotonic() - begun >= question.patience * crowding():
            return monotonic() - begun
        if question.steps != seen:
            seen, begun = question.steps, monotonic()
    return 0.0


def _is_left(question: _Question) -> bool:
    """Whether nobody waits for it any more from now on; otherwise the answer is there, and the caller's."""
    _stuck.append(question)
    if question.settled.acquire(blocking=False):
        return True
    _stuck.remove(question)
    return False


def ask_here(work: Callable[[], _T], patience: float) -> _T:
    """What the work gives or raises, done by this thread: it waits no longer than so many seconds for a lock."""
    before = _here.patience
    _here.patience = patience
    try:
        answer = work()
    finally:
        _here.patience = before
    step()
    return answer


def ask_later(work: Callable[[], object], late: Callable[[Any, BaseException | None], object]) -> bool:
    """The work is done by a thread, and nobody waits for it; False if no thread can be had."""
    question = _Question(work, 0.0)
    question.late = late
    question.settled.acquire()
    return _put(question)


def step() -> None:
    """The work that this thread does has come a step further."""
    under_way = _here.question or _here.unhurried
    if under_way is not None:
        under_way.steps += 1


def patience_here(otherwise: float) -> float:
    """Seconds that a step of what this thread does may take, if somebody waits for it."""
    question = _here.question
    if question is not None:
        return question.patience * crowding()
    if is_unhurried():
        return min(otherwise, _BACKGROUND)
    if is_asked_for():
        return otherwise
    return otherwise if _here.patience is None else _here.patience * crowding()


def is_unhurried() -> bool:
    """Whether this thread works beside the program, which does not wait for it."""
    return _here.unhurried is not None


@contextmanager
def unhurried(steps: Steps | None = None) -> Iterator[None]:
    """Within the block this thread waits as long as it takes: no program waits for it."""
    before = _here.unhurried
    _here.unhurried = steps or Steps()
    try:
        yield
    finally:
        _here.unhurried = before


def is_asked_for() -> bool:
    """Whether somebody wants done what this thread does, and waits for it."""
    return _here.asked_for


@contextmanager
def asked_for() -> Iterator[None]:
    """Within the block this thread waits as long as it takes: somebody wants it done, and is told of it when it is."""
    before = is_asked_for()
    _here.asked_for = True
    try:
        yield
    finally:
        _here.asked_for = before


def crowding() -> float:
    """How many want to run for each processor at this moment; 1 at least, 10 at most, 1 if there is no telling.

    A step takes longer where many want to run, as everything does that the program does itself.
    """
    try:
        with open(_LOAD) as file:
            running = int(file.read().split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return 1.0
    return min(_MOST_CROWDING, max(1.0, running / (os.cpu_count() or 1)))


def _put(question: _Question) -> bool:
    try:
        answerer = _idle.pop()
    except IndexError:
        answerer = _Answerer()
        if not answerer.start():
            return False
    answerer.take(question)
    return True


def _tell(question: _Question) -> None:
    with suppress(ValueError):
        _stuck.remove(question)
    with suppress(BaseException):  # nobody waits for it, and others wait for this thread
        cast(Callable[..., object], question.late)(question.answer, question.error)


def _nobody(answer: Any, error: BaseException | None) -> None:
    """Nobody wants to know."""


@in_child
def _forget_parent() -> None:
    _idle.clear()  # threads of the parent
    _stuck.clear()
    _here.__dict__.clear()
