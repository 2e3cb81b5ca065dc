"""Computing once: whoever asks for a key that somebody is computing waits for the result.

Among threads and tasks of one process by a table of flights; among processes by reservations in the catalog, which
are renewed as long as the computation lasts and end with the process that made them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from nectar.catalog.service import Catalog
from nectar.catalog.state import Granted, Present
from nectar.errors import CatalogFailure
from nectar.model.entry import Entry, Reservation
from nectar.threads import started
from nectar.trust.secrets import logger
from nectar.waiting.breaker import TIMES

if TYPE_CHECKING:  # loaded with the first flight
    from concurrent.futures import Future

_log: Final = logger("nectar.catalog")
HOLD: Final = 30.0  # seconds a reservation lasts unless it is renewed
_RENEW: Final = 10.0
_LOOK_AT_LEADER: Final = 0.1  # seconds between looks at the thread that leads a flight
_IDLE_LOOKS: Final = 5  # so often found waiting, it is taken to wait for us
_WAITING_MODULES: Final = frozenset({"threading", "queue", "concurrent.futures._base", "concurrent.futures.thread"})
_SIGN: Final = 0.05  # seconds to wait for a sign of life of a holder that cannot be looked at
_MOST_SIGNS: Final = 1000
_FIRST_LOOK, _LAST_LOOK = 0.002, 0.02  # seconds between looks at what another process computes
_ASK_AGAIN: Final = 0.1  # seconds of looking after which its reservation is looked at

_led: ContextVar[frozenset[bytes]] = ContextVar("nectar_led", default=frozenset())


class Flight:
    """One computation under way, or landed and not yet in the catalog. Its result is a way to make a copy, or None."""

    __slots__ = ("future", "key", "thread")

    def __init__(self, key: bytes) -> None:
        from concurrent.futures import Future

        self.key = key
        self.future: Future[Any] = Future()
        self.thread = threading.get_ident()  # who leads it


class Flights:
    """The computations of one process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may come in between and ask as well
        self._flights: dict[bytes, Flight] = {}
        self._waiting: dict[bytes, bytes] = {}  # from the key a computation leads to the key it waits for

    def find(self, key: bytes) -> Flight | None:
        """The flight of a key, if it is one to wait for: not if it is this computation, or waits for it."""
        flight = self._flights.get(key)
        if flight is None or flight.future.done():
            return flight
        led = _led.get()
        if not led:
            return flight
        with self._lock:
            at: bytes | None = key
            while at is not None:
                if at in led:
                    return None
                at = self._waiting.get(at)
        return flight

    def begin(self, key: bytes) -> Flight | None:
        """A new flight, led by the caller; None if there is one already, whoever leads it."""
        with self._lock:
            if key in self._flights:
                return None
            flight = self._flights[key] = Flight(key)
            return flight

    def begin_anew(self, key: bytes) -> Flight:
        """A new flight in the place of one that may be there: those who come from now on wait for this one."""
        with self._lock:
            flight = self._flights[key] = Flight(key)
            return flight

    def wait_for(self, flight: Flight) -> Any:
        """The result of a flight; None if its leader seems to wait for somebody itself, which might be us."""
        with self.waiting_for(flight):
            idle = 0
            while not flight.future.done():
                try:
                    return flight.future.result(timeout=_LOOK_AT_LEADER)
                except TimeoutError:
                    idle = idle + 1 if _is_waiting(flight.thread) else 0
                    if idle >= _IDLE_LOOKS:
                        return None
            return flight.future.result()

    @contextmanager
    def waiting_for(self, flight: Flight) -> Iterator[None]:
        """Within the block, the computations this one is part of wait for a flight."""
        led = _led.get()
        with self._lock:
            self._waiting.update(dict.fromkeys(led, flight.key))
        try:
            yield
        finally:
            with self._lock:
                for key in led:
                    self._waiting.pop(key, None)

    def land(self, flight: Flight, result: Any) -> None:
        """Those who wait get the result, or compute it themselves if it is None."""
        if not flight.future.done():
            flight.future.set_result(result)
        if result is None:
            self.end(flight)

    def end(self, flight: Flight) -> None:
        """The result is in the catalog, or nowhere."""
        with self._lock:
            if self._flights.get(flight.key) is flight:
                del self._flights[flight.key]


def _is_waiting(thread: int) -> bool:
    """Whether a thread waits for another one; a computation that does may wait for us without saying so."""
    frame = sys._current_frames().get(thread)
    return frame is not None and frame.f_globals.get("__name__") in _WAITING_MODULES


class leading:  # noqa: N801 - read as a word: `with leading(key):`
    """Within the block, a call for the same key is part of the computation and does not wait for it."""

    __slots__ = ("_key", "_token")

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __enter__(self) -> None:
        self._token = _led.set(_led.get() | {self._key})

    def __exit__(self, *_: object) -> None:
        _led.reset(self._token)


def is_leading() -> bool:
    """Whether this is called by a computation that is under way, in its thread or its task."""
    return bool(_led.get())


class Reservations:
    """Reservations of this process, renewed in the background until they are given back."""

    def __init__(self, catalog: Catalog, pause: Callable[[float], object] | None = None) -> None:
        self._catalog = catalog
        self._held: dict[str, tuple[Reservation, int]] = {}  # with the thread that took each
        self._signs: dict[str, tuple[float, float]] = {}  # by token: until when it holds, and since when that is known
        self._lost = 0.0  # seconds waited for those who showed no sign of life
        self._stop = threading.Event()
        self._pause = self._stop.wait if pause is None else pause
        self._thread: threading.Thread | None = None

    def take_or_wait(self, key: bytes) -> Reservation | Entry | None:
        """The right to compute a key; or its entry, once another process has made it; or None: compute it anyway.

        None after another process gave up: its result was not kept, so that queueing up would only cost time. None,
        too, if the other shows no sign of life. Raises CatalogUnavailableError if the catalog does not answer in time,
        or has been so slow that asking costs more than it is worth (waiting/health.py: `worth`).
        """
        waited = False
        while True:
            answer = self._catalog.reserve(key, HOLD)
            if isinstance(answer, Present):
                return answer.entry
            if isinstance(answer, Granted):
                if waited:
                    self._catalog.release(answer.reservation)
                    return None
                self._hold(answer.reservation)
                return answer.reservation
            standing = answer.reservation
            if self._held.get(standing.token, (None, 0))[1] == threading.get_ident():
                return None  # this thread would wait for itself
            if self._catalog.has_gone(standing):
                self._catalog.release(standing)
                continue
            patience = self._patience(standing)
            if not patience:
                return None
            waited = True
            found = self._wait(standing, patience)
            if found is not None:
                return found

    def _wait(self, standing: Reservation, patience: float) -> Entry | None:
        """The entry, if it is there soon enough; None if it is time to look at the reservation again."""
        begun, look, looked = self._now(), _FIRST_LOOK, 0.0
        while not self._stop.is_set():
            self._pause(min(look, patience))
            entry = self._catalog.index.lookup([standing.key]).get(standing.key)
            if entry is not None:
                return entry
            waited = self._now() - begun
            looked += look
            if looked >= _ASK_AGAIN or waited >= patience:
                if self._catalog.runs(standing) is None:
                    self._lost += waited
                return None
            look = min(look * 1.5, _LAST_LOOK)
        return None

    def _patience(self, standing: Reservation) -> float:
        """Seconds until the next look at a reservation; 0 if nobody waits for its holder any more.

        One of this machine is waited for while it runs and renews its reservation. Of others only a renewal shows that
        they live, and nobody waits long for one. Both by a clock that nobody sets.
        """
        now = self._now()
        until, since = self._signs.get(standing.token, (None, now))
        if until != standing.until:
            self._signs[standing.token] = standing.until, now
            since = now
        if until is None and len(self._signs) > _MOST_SIGNS:
            self._signs.pop(next(iter(self._signs)))
        runs = self._catalog.runs(standing)
        if runs is not None:
            return _ASK_AGAIN if runs and now - since < HOLD else 0.0
        health = self._catalog.health
        each = _SIGN if health is None else health.patience
        silent = now - since >= each or self._lost >= TIMES * each
        return 0.0 if silent else each - (now - since)

    def _now(self) -> float:
        return self._catalog.clock.elapsed()

    def give_back(self, reservation: Reservation) -> None:
        """The computation has ended without a result to wait for. If nobody can be told, it ends with its time."""
        self._held.pop(reservation.token, None)
        try:
            self._catalog.release(reservation)
        except CatalogFailure as failure:
            _log.info("others may wait for what is not kept: %s", failure)

    def done(self, reservation: Reservation) -> None:
        """The result is in the catalog, and the reservation has gone with it."""
        self._held.pop(reservation.token, None)

    def close(self) -> None:
        """Nothing is renewed any more."""
        self._stop.set()

    def _hold(self, reservation: Reservation) -> None:
        self._held[reservation.token] = (reservation, threading.get_ident())
        if self._thread is None:
            self._thread = started(self._renew, "nectar-reservations")

    def _renew(self) -> None:
        while not self._stop.wait(_RENEW):
            for reservation, _ in list(self._held.values()):
                try:
                    self._catalog.prolong(reservation, HOLD)
                except CatalogFailure:  # others may then compute it as well: a cost, and no more
                    continue
                except BaseException:  # without this thread nothing would be renewed any more
                    _log.exception("a reservation could not be renewed")
