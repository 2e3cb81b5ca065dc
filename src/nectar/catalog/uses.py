"""Uses and look-ups, gathered in memory and written down now and then.

Law: a hit writes nothing by itself, and nobody who looks up or opens fails, or waits, because a count could not be
written down. What is lost with a process is a count.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from nectar.errors import CatalogFailure
from nectar.trust.secrets import logger
from nectar.waiting.health import is_passing

if TYPE_CHECKING:
    from nectar.catalog.index.base import Index
    from nectar.clock import Clock

_log: Final = logger("nectar.catalog")
_AFTER: Final = 4096  # uses and look-ups gathered before they are written down: many may share a page
_EVERY: Final = 5.0  # seconds


class Uses:
    """What was used and looked up since it was last written down."""

    def __init__(self, index: Index, clock: Clock, read_only: bool) -> None:
        self._index, self._clock, self._read_only = index, clock, read_only
        self._lock = threading.RLock()  # a signal handler may come in between and ask as well
        self._uses: dict[bytes, tuple[int, float]] = {}
        self._counts: dict[bytes, int] = {}
        self._flushed = clock.elapsed()

    def used(self, key: bytes) -> None:
        """A result was opened."""
        now = self._clock.now()
        with self._lock:
            used = self._uses.get(key)
            self._uses[key] = (1 if used is None else used[0] + 1, now)

    def looked_up(self, programs: Sequence[bytes], before: Mapping[bytes, int]) -> dict[bytes, int]:
        """Programs were looked up. Returns how often those of `before` had been, with what is not written down yet."""
        with self._lock:
            counts = self._counts
            known = {program: times + counts.get(program, 0) for program, times in before.items()} if before else {}
            for program in programs:
                counts[program] = counts.get(program, 0) + 1
        return known

    def is_due(self) -> bool:
        """Whether it is time to write down what was gathered; whoever is told so does it."""
        late = self._clock.elapsed() - self._flushed >= _EVERY
        if not late and len(self._uses) + len(self._counts) < _AFTER:
            return False
        self._flushed = self._clock.elapsed()
        return True

    def flush(self) -> None:
        """Writes down what was gathered so far."""
        with self._lock:
            uses, self._uses = self._uses, {}
            counts, self._counts = self._counts, {}
            self._flushed = self._clock.elapsed()
        if self._read_only:
            return
        if uses:
            self._index.touch(uses)
        if counts:
            self._index.count_lookups(counts, self._clock.now())

    def try_to_flush(self) -> None:
        """The same; if it fails, the counts are lost."""
        try:
            self.flush()
        except CatalogFailure as failure:
            _log.log(
                logging.INFO if is_passing(failure) else logging.WARNING,
                "uses and look-ups could not be written down: %s", failure,
            )  # fmt: skip
