"""Housekeeping beside the work: a thread that keeps the budget and sweeps, now and then, while programs run.

`keep` makes room by itself when it must. This looks after what nobody waits for: entries that grew too old, a disk
that others fill, files of writers that died. One thread at most, started when somebody pokes and it is due; it ends by
itself.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from nectar.catalog.collect import Collector
from nectar.clock import Clock
from nectar.threads import started
from nectar.trust.secrets import logger
from nectar.waiting.answering import unhurried
from nectar.waiting.health import is_passing

_log: Final = logger("nectar.catalog")
EVERY: Final = 60.0  # seconds between looks at the budget


class Housekeeper:
    """Runs the collector in the background."""

    def __init__(self, collector: Collector, clock: Clock) -> None:
        self._collector = collector
        self._clock = clock
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._looked = float("-inf")
        self._closed = False

    def poke(self) -> bool:
        """Starts a pass if one is due and a thread can be had; whether it did."""
        now = self._clock.elapsed()
        with self._lock:
            busy = self._thread is not None and self._thread.is_alive()
            if self._closed or busy or now - self._looked < EVERY:
                return False
            self._looked = now
            self._thread = started(self._run, "nectar-housekeeping")
            return self._thread is not None

    def _run(self) -> None:
        try:
            with unhurried():
                self._pass()
        except BaseException as error:  # nobody waits for it: the next pass may do better
            _log.log(
                logging.INFO if is_passing(error) else logging.WARNING, "housekeeping did not finish: %s", error
            )  # fmt: skip

    def _pass(self) -> None:
        self._collector.enforce()
        self._collector.sweep_if_due(lambda: self._closed)

    def close(self, timeout: float = 10.0) -> None:
        """No pass begins any more; one that is under way is waited for, but not for ever."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None:
            thread.join(timeout)
