"""Each rebuild at most once, however many ask: threads share one attempt, processes take turns by reservations.

Law: whoever asks while somebody is at it gets what comes of that attempt, an error included. An attempt whose process
died counts for nothing, and the next who asks makes a new one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from nectar.catalog.flights import Reservations
from nectar.catalog.service import Catalog
from nectar.errors import RebuildError
from nectar.model.entry import Entry, Reservation

_T = TypeVar("_T")
_FOLDER: Final = "rebuilds"  # in the home of a catalog: what came of attempts that failed
_under_way: Final[dict[tuple[str, bytes], Future[object]]] = {}
_lock = threading.Lock()


class _Failure(msgspec.Struct, frozen=True):
    """An attempt that failed, for those in other processes who waited for it."""

    at: float
    what: str
    reasons: tuple[str, ...]


def once(catalog: Catalog, home: Path, key: bytes, attempt: Callable[[], _T], present: Callable[[Entry], _T]) -> _T:
    """What an attempt to rebuild a key gave: this one, or that of somebody who is at it already.

    present: makes the answer from an entry that another process has made.
    """
    name = (str(home), key)
    with _lock:
        found = _under_way.get(name)
        if found is None:
            future: Future[object] = Future()
            _under_way[name] = future
    if found is not None:
        return found.result()  # type: ignore[return-value]
    try:
        answer = _among_processes(catalog, home, key, attempt, present)
    except BaseException as error:
        future.set_exception(error if isinstance(error, Exception) else RebuildError("it", ["it was interrupted"]))
        raise
    else:
        future.set_result(answer)
        return answer
    finally:
        with _lock:
            del _under_way[name]


def _among_processes(
    catalog: Catalog, home: Path, key: bytes, attempt: Callable[[], _T], present: Callable[[Entry], _T]
) -> _T:
    reservations = Reservations(catalog)
    asked = catalog.clock.now()
    try:
        while True:
            taken = reservations.take_or_wait(key)
            if isinstance(taken, Entry):
                return present(taken)
            if taken is not None:
                return _led(catalog, home, reservations, taken, attempt)
            failure = _told(home, key)
            if failure is not None and failure.at >= asked:
                raise RebuildError(failure.what, failure.reasons)
    finally:
        reservations.close()


def _led(
    catalog: Catalog, home: Path, reservations: Reservations, reservation: Reservation, attempt: Callable[[], _T]
) -> _T:
    """The attempt of this process; its error is there to be read before others may try."""
    note = _note(home, reservation.key)
    with suppress(OSError):  # an old one is known by its time
        note.unlink(missing_ok=True)
    try:
        answer = attempt()
    except BaseException as error:
        if isinstance(error, RebuildError):
            with suppress(OSError):  # then each of the others finds out by itself
                _tell(note, _Failure(catalog.clock.now(), error.what, error.reasons))
        reservations.give_back(reservation)
        raise
    reservations.give_back(reservation)  # unless it has gone with the new entry
    return answer


def _forget_parent() -> None:
    """In a child process: attempts of the parent's threads are none of ours."""
    global _lock
    _lock = threading.Lock()
    _under_way.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)


def _note(home: Path, key: bytes) -> Path:
    return home / _FOLDER / key.hex()


def _tell(note: Path, failure: _Failure) -> None:
    note.parent.mkdir(exist_ok=True)
    aside = note.with_suffix(f".{threading.get_ident()}")
    aside.write_bytes(msgspec.json.encode(failure))
    aside.replace(note)


def _told(home: Path, key: bytes) -> _Failure | None:
    try:
        return msgspec.json.decode(_note(home, key).read_bytes(), type=_Failure)
    except (OSError, msgspec.DecodeError):
        return None
