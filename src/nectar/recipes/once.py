"""Each rebuild at most once, however many ask: threads share one attempt, processes take turns by reservations.

Law: whoever asks while somebody is at it gets what comes of that attempt, an error included. An attempt whose process
died counts for nothing, and the next who asks makes a new one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from nectar.catalog.flights import Reservations
from nectar.catalog.service import Catalog
from nectar.errors import RebuildError
from nectar.forks import in_child
from nectar.model.entry import Entry, Reservation
from nectar.trust.files import make_folder, read, replace
from nectar.trust.home import access_of
from nectar.trust.secrets import redacted
from nectar.waiting.health import worth

_T = TypeVar("_T")
_FOLDER: Final = "rebuilds"  # in the home of a catalog: what came of attempts that failed
_under_way: Final[dict[tuple[str, bytes, str], Future[object]]] = {}
_lock = threading.Lock()


class _Failure(msgspec.Struct, frozen=True):
    """An attempt that failed, for those in other processes who waited for it."""

    at: float
    what: str
    reasons: tuple[str, ...]


# Made now: two threads that decode a type for the first time may crash msgspec.
_decode: Final = msgspec.json.Decoder(_Failure).decode


class Attempt(msgspec.Struct, Generic[_T], frozen=True):
    """What is to be done for a key at most once at a time.

    variant: attempts of another one may come to another end. run: the attempt itself. present: what is answered if
    another process has made the entry.
    """

    home: Path
    key: bytes
    variant: str
    run: Callable[[], _T]
    present: Callable[[Entry], _T]

    @property
    def name(self) -> tuple[str, bytes, str]:
        """What all who want the same share."""
        return str(self.home), self.key, self.variant

    @property
    def note(self) -> Path:
        """Where the reasons of a failure are left for those who wait in other processes."""
        return self.home / _FOLDER / f"{self.key.hex()}{self.variant}"


def once(catalog: Catalog, attempt: Attempt[_T]) -> _T:
    """What an attempt to rebuild a key gave: this one, or that of somebody who is at it already."""
    with _lock:
        found = _under_way.get(attempt.name)
        if found is None:
            future: Future[object] = Future()
            _under_way[attempt.name] = future
    if found is not None:
        return found.result()  # type: ignore[return-value]
    try:
        answer = _among_processes(catalog, attempt)
    except BaseException as error:
        future.set_exception(error if isinstance(error, Exception) else RebuildError("it", ["it was interrupted"]))
        raise
    else:
        future.set_result(answer)
        return answer
    finally:
        with _lock:
            del _under_way[attempt.name]


def _among_processes(catalog: Catalog, attempt: Attempt[_T]) -> _T:
    reservations = Reservations(catalog)
    asked = catalog.clock.now()
    try:
        while True:
            with worth(inf):  # somebody has asked for it
                taken = reservations.take_or_wait(attempt.key)
            if isinstance(taken, Entry):
                return attempt.present(taken)
            if taken is not None:
                return _led(catalog, reservations, taken, attempt)
            failure = _told(attempt.note)
            if failure is not None and failure.at >= asked:
                raise RebuildError(failure.what, failure.reasons)
    finally:
        reservations.close()


def _led(catalog: Catalog, reservations: Reservations, reservation: Reservation, attempt: Attempt[_T]) -> _T:
    """The attempt of this process; its error is there to be read before others may try."""
    with suppress(OSError):  # an old one is known by its time
        attempt.note.unlink(missing_ok=True)
    try:
        return attempt.run()
    except RebuildError as error:
        with suppress(OSError):  # then each of the others finds out by itself
            _tell(attempt.note, _Failure(catalog.clock.now(), error.what, error.reasons))
        raise
    finally:
        reservations.give_back(reservation)  # unless it has gone with the new entry


@in_child
def _forget_parent() -> None:
    """In a child process: attempts of the parent's threads are none of ours."""
    global _lock
    _lock = threading.Lock()
    _under_way.clear()


def _tell(note: Path, failure: _Failure) -> None:
    access = access_of(note.parent.parent)
    if access is not None:
        make_folder(note.parent, access)
        clean = _Failure(failure.at, redacted(failure.what), tuple(map(redacted, failure.reasons)))
        replace(note, msgspec.json.encode(clean), access)


def _told(note: Path) -> _Failure | None:
    try:
        return _decode(read(note))
    except (OSError, msgspec.DecodeError):
        return None
