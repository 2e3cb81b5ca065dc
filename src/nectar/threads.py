"""Threads, where they can be had. Law: whatever a thread was wanted for can be done without it, or be left undone.

At the end of a process Python starts no more threads, on some versions not even for threads of the program that go on
after its main thread; an executor takes no work then. Systems have limits too. So nobody but this module starts a
thread, and everybody who asks for one says what happens without it.
"""

from __future__ import annotations

import importlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, TypeVar

from nectar.forks import Stage, before, in_child

if TYPE_CHECKING:  # loaded with the first future
    from concurrent.futures import Future

_In = TypeVar("_In")
_Out = TypeVar("_Out")


_own: Final[weakref.WeakSet[threading.Thread]] = weakref.WeakSet()


def is_of_nectar(thread: threading.Thread) -> bool:
    """Whether a thread works for Nectar, and not for the program."""
    return thread in _own


@contextmanager
def loading() -> Iterator[None]:
    """Within the block a thread of Nectar loads a library, which changes what the process keeps."""
    with _loading:
        yield


def wait_for_loading() -> None:
    """What Nectar loads is loaded; nobody waits for long."""
    if _loading.acquire(timeout=_PATIENCE):
        _loading.release()


_loading = threading.RLock()
_PATIENCE: Final = 1.0  # seconds


@before(Stage.WAIT)
def _wait_for_imports() -> None:
    """No other thread is in the middle of loading a part of Nectar: in the child it would never be loaded.

    Python has a lock for each module that is being loaded, and gives those of other threads back to nobody.
    """
    until = monotonic() + _PATIENCE
    while any(name.partition(".")[0] == "nectar" for name in list(_module_locks)) and monotonic() < until:
        sleep(_PAUSE)


@in_child
def _forget_parent() -> None:
    global _loading
    _loading = threading.RLock()


_module_locks: Final[dict[str, Any]] = getattr(importlib._bootstrap, "_module_locks", {})
_PAUSE: Final = 5e-4  # seconds


def started(work: Callable[[], object], name: str) -> threading.Thread | None:
    """A new thread that does the work, and that the end of the process does not wait for; None if there can be none."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    _own.add(thread)
    try:
        thread.start()
    except RuntimeError:  # the process ends, or has as many threads as it may have
        return None
    return thread


def future_of(work: Callable[[], _Out], name: str) -> Future[_Out] | None:
    """What the work will give or raise, done in a new thread; None if there can be none."""
    from concurrent.futures import Future

    future: Future[_Out] = Future()
    future.set_running_or_notify_cancel()  # who stops waiting for it does not stop it

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    return None if started(run, name) is None else future


def each(function: Callable[[_In], _Out], items: Sequence[_In], at_once: int, name: str) -> list[_Out]:
    """What the function gives for each, in order. This thread does its share, others help if there can be any.

    Raises what the function raises; what has not begun by then is left undone.
    """
    done: dict[int, _Out] = {}
    failures: list[BaseException] = []
    numbered = enumerate(items)
    taking = threading.Lock()

    def work() -> None:
        while not failures:
            with taking:
                number, item = next(numbered, (-1, None))
            if number < 0:
                return
            try:
                done[number] = function(item)  # type: ignore[arg-type]
            except BaseException as error:
                failures.append(error)

    others = [started(work, name) for _ in range(min(at_once, len(items)) - 1)]
    try:
        work()
    except BaseException as error:  # an interrupt, between two items
        failures.append(error)
    for other in others:
        if other is not None:
            other.join()
    if failures:
        raise failures[0]
    return [done[number] for number in range(len(items))]
