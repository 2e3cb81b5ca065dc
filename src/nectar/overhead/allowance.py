"""What reading files may take, where they have to be read to be known.

In: seconds. Out: for each file whether there is time to read it. Told by what is read, at a speed that any file in
memory has, so that a busy machine changes nothing; by the clock only where a disk or server is slower than is thought
of any. Threads that read files for one look share it. Law: who gets no for an answer has read nothing in vain.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import inf
from time import perf_counter
from typing import Final

from nectar.waiting.answering import crowding

_SPEED: Final = 2e9  # bytes a second that are read from memory, and hashed
_FILE: Final = 4e-5  # seconds that a file takes, however little is in it
_HICCUP: Final = 0.25  # seconds that a disk may take longer than is thought


class Allowance:
    """So many seconds, for all files of a look together."""

    def __init__(self, seconds: float, timer: Callable[[], float] = perf_counter) -> None:
        self._seconds = self._left = seconds
        self._timer, self._begun = timer, inf
        self._lock = threading.Lock()

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._left

    def grants(self, size: int, files: int = 1) -> bool:
        """Whether there is time for so many bytes in so many files."""
        return size / _SPEED + files * _FILE <= self._left

    def take(self, size: int) -> bool:
        """Whether there is time for a file of so many bytes; if so, there is that much less from now on."""
        with self._lock:
            if not self.grants(size):
                return False
            self._left -= size / _SPEED + _FILE
            self._begun = min(self._begun, self._timer())
            return True

    def is_over(self) -> bool:
        """Whether reading takes longer, by the clock, than it does from any good disk."""
        waited, most = self._timer() - self._begun, self._seconds + _HICCUP
        return waited > most and waited > most * crowding()
