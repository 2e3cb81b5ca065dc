"""Files that change all the time, such as logs: they were read in vain, and are left alone for a while.

Law: a file that is left alone has no identity until it is quiet, so nothing is made of it and nothing kept. Of small
files nothing is noted: reading them again costs nothing to speak of.
"""

from __future__ import annotations

from typing import Final

from nectar.clock import Clock

_SMALL: Final = 8 << 20  # bytes that are read within milliseconds
_ALONE: Final = 60.0  # seconds
_TIMES: Final = 2  # that a file may have changed under a result before it is left alone
_MOST: Final = 1_000


class Restless:
    """What one session has seen."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[int, float]] = {}

    def note(self, url: str, times: int = 1) -> None:
        """The file changed, so that it was read in vain."""
        if len(self._seen) >= _MOST:
            self._seen.clear()
        self._seen[url] = self._times(url) + times, self._clock.now()

    def note_at_once(self, url: str) -> None:
        """The file changed however often it was read, or took too long to read."""
        self.note(url, _TIMES)

    def is_left_alone(self, url: str, size: int | None) -> bool:
        """Whether a file of so many bytes is not to be read now."""
        return (size is None or size > _SMALL) and self._times(url) >= _TIMES

    def _times(self, url: str) -> int:
        times, last = self._seen.get(url, (0, 0.0))
        return times if 0 <= self._clock.now() - last < _ALONE else 0
