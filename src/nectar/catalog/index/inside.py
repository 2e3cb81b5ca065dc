"""Which threads are inside SQLite, so that a process is forked while none is.

SQLite has locks of its own. A child that is born while a thread holds one could never use SQLite again: nobody would
give it back. Law: whoever forks waits until no thread is inside, and none comes in until it has forked; where one does
not come out, since its disk does not answer, the child goes without SQLite. A thread that waits is not inside.
"""

from __future__ import annotations

from threading import get_ident
from time import monotonic, sleep
from typing import Final

from nectar.forks import Stage, before, in_child, in_parent

_PATIENCE: Final = 0.2  # seconds that a fork waits for threads that are inside
_PAUSE: Final = 5e-4  # seconds between two looks
# All without locks, which a child could find locked: what is noted of a thread is noted by that thread.
_inside: Final[dict[int, int]] = {}  # how deep each thread is inside
_forking: Final[set[int]] = set()
_stuck: Final[set[int]] = set()  # threads that fork though others are inside
_cut_off = False


class _Inside:
    """Within the block this thread is inside SQLite, or in a transaction."""

    __slots__ = ()

    def __enter__(self) -> None:
        me = get_ident()
        if me in _inside:
            _inside[me] += 1
        else:
            _inside[me] = 1
            if _forking:  # whoever forks notes that first, and then looks who is inside
                _come_in(me, 1)

    def __exit__(self, *_: object) -> None:
        me = get_ident()
        depth = _inside.pop(me, 0)  # a child that was forked in here has forgotten it
        if depth > 1:
            _inside[me] = depth - 1


inside: Final = _Inside()


def wait_outside(seconds: float) -> None:
    """So much time has passed, in which this thread was not inside. It must not be in a transaction."""
    me = get_ident()
    depth = _inside.pop(me, 0)
    try:
        sleep(seconds)
    finally:
        if depth:
            _come_in(me, depth)


def is_cut_off() -> bool:
    """Whether this process was forked while a thread was inside, so that it must not use SQLite."""
    return _cut_off


def _come_in(me: int, depth: int) -> None:
    _inside[me] = depth
    while _forking and me not in _forking:
        del _inside[me]
        while _forking:
            sleep(_PAUSE)
        _inside[me] = depth


@before(Stage.STOP)
def _close() -> None:
    me, until = get_ident(), monotonic() + _PATIENCE
    _forking.add(me)
    while any(thread != me for thread in tuple(_inside)):
        if monotonic() >= until:
            _stuck.add(me)
            return
        sleep(_PAUSE)


@in_parent
def _open() -> None:
    _forking.discard(get_ident())
    _stuck.discard(get_ident())


@in_child
def _begin_again() -> None:
    global _cut_off
    _cut_off = _cut_off or get_ident() in _stuck
    for noted in (_inside, _forking, _stuck):
        noted.clear()
