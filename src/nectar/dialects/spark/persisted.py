"""Relations that somebody has asked to keep, with `cache()` or `persist()`.

The word of a person: the first query that computes such a relation has it computed by itself and kept, whatever it is
worth; other programs and processes find it in the catalog. `unpersist()` takes the word back, and deletes nothing:
others may use what was kept. Remembered by what is computed, not by what it reads: new files do not need new words.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from nectar.forks import in_child

_MOST: Final = 1024  # relations; a program that caches more forgets the first
_lock = threading.Lock()
_programs: Final[OrderedDict[bytes, None]] = OrderedDict()


@in_child
def _forget_parent() -> None:
    """A thread of the parent that held the lock is not here to give it back."""
    global _lock
    _lock = threading.Lock()


def ask_for(program: bytes) -> None:
    """From now on this program is kept when it is computed."""
    with _lock:
        _programs[program] = None
        _programs.move_to_end(program)
        while len(_programs) > _MOST:
            _programs.popitem(last=False)


def ask_no_more(program: bytes) -> None:
    """From now on this program is like any other."""
    with _lock:
        _programs.pop(program, None)


def is_asked_for(program: bytes) -> bool:
    """Whether somebody wants this program to be kept."""
    with _lock:
        return program in _programs


def is_anything_asked_for() -> bool:
    """Whether somebody wants any program to be kept."""
    return bool(_programs)
