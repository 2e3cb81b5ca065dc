"""Python collects no garbage while Nectar is loaded: modules are made of thousands of objects, all of which stay.

What that took is noted: most of Nectar is loaded before anybody keeps an account of its time. Law: afterwards the
collector is what the program made it, also where the program, in another thread, changes it meanwhile.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from nectar.forks import in_child

_MANY: Final = 1_000_003  # new objects until the next collection: more than loading makes; known again by its value
_lock = threading.RLock()
_depth = 0
_before: tuple[int, int, int] = gc.get_threshold()
_begun = _seconds = 0.0


@contextmanager
def uncollected() -> Iterator[None]:
    """Within the block no garbage is collected, unless somebody asks for it.

    By the threshold, and not by switching the collector off: whether it is on may be changed by the program meanwhile.
    """
    _pause()
    try:
        yield
    finally:
        _resume()


def take_seconds() -> float:
    """What these blocks have taken in this process, and nobody has asked for yet."""
    global _seconds
    seconds, _seconds = _seconds, 0.0
    return seconds


def _pause() -> None:
    global _depth, _before, _begun
    with _lock:
        if _depth == 0:
            _begun = time.perf_counter()
            _before = gc.get_threshold()
            if _before[0]:  # 0: the program collects when it likes
                gc.set_threshold(_MANY, *_before[1:])
        _depth += 1


def _resume() -> None:
    global _depth, _seconds
    with _lock:
        _depth = max(0, _depth - 1)  # in a child that was forked meanwhile this has been done
        if _depth == 0:
            _seconds += time.perf_counter() - _begun
        if _depth == 0 and gc.get_threshold()[0] == _MANY:
            gc.set_threshold(*_before)


@in_child
def _resume_in_child() -> None:
    """The threads that were loading are not there any more."""
    global _lock, _depth, _seconds
    _lock, _depth, _seconds = threading.RLock(), min(_depth, 1), 0.0
    if _depth:
        _resume()
