"""Any other object, as pickle protocol 5 with its buffers beside it.

In: a value. Out: its pickle, and one file with the buffers of its arrays and tables, each at a multiple of 64 bytes so
that they can be used where they lie in a mapped file. Law: type and equality survive, or the value is refused. Arrays
come back read-only unless private copies are asked for; unpickling runs code, so only trusted results get here.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from nectar.errors import StoreFailure, UserError

ALIGNMENT: Final = 64  # what Arrow asks for, and a cache line
_PADDING: Final = bytes(ALIGNMENT)


class Pickled(NamedTuple):
    """A value taken apart: its pickle, and its buffers, which are the value's own unless they were copied."""

    data: bytes
    buffers: Sequence[memoryview]

    @property
    def size(self) -> int:
        """Bytes of all of it."""
        return len(self.data) + sum(buffer.nbytes for buffer in self.buffers)

    def copied(self) -> Pickled:
        """The same with buffers of its own, so that the value may change meanwhile."""
        return Pickled(self.data, [memoryview(bytes(buffer)) for buffer in self.buffers])


Reduce = Callable[[Any], Any]


def dump(value: object, reduce: Reduce | None = None) -> Pickled:
    """A value taken apart. Raises UserError if it cannot be.

    reduce: told of every class, function and instance; what it gives (as `__reduce__` does) is taken in its place.
    """
    buffers: list[pickle.PickleBuffer] = []
    sink = io.BytesIO()
    try:
        pickler = pickle.Pickler(sink, protocol=5, buffer_callback=buffers.append) if reduce is None else None
        (pickler or _Pickler(sink, buffers, reduce)).dump(value)
        return Pickled(sink.getvalue(), [buffer.raw() for buffer in buffers])
    except MemoryError:
        raise
    except Exception as error:  # whatever a __reduce__ of somebody else's raises
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise UserError(
            f"a value of type {kind} cannot be kept: {_said(error)}; return something that pickles"
        ) from error


class _Pickler(pickle.Pickler):
    """Asks about classes, functions and instances; pickle does numbers, texts and containers alone, which is fast."""

    def __init__(self, sink: io.BytesIO, buffers: list[pickle.PickleBuffer], reduce: Reduce | None) -> None:
        super().__init__(sink, protocol=5, buffer_callback=buffers.append)
        self._reduce = reduce

    def reducer_override(self, value: Any) -> Any:
        """What takes the place of a value, or NotImplemented."""
        return NotImplemented if self._reduce is None else self._reduce(value)


def laid_out(buffers: Sequence[memoryview]) -> tuple[tuple[tuple[int, int], ...], list[Any]]:
    """Offset and length of each buffer in one file, and the pieces to write, padding included."""
    places: list[tuple[int, int]] = []
    pieces: list[Any] = []
    offset = 0
    for buffer in buffers:
        if gap := -offset % ALIGNMENT:
            pieces.append(_PADDING[:gap])
            offset += gap
        places.append((offset, buffer.nbytes))
        pieces.append(buffer)
        offset += buffer.nbytes
    return tuple(places), pieces


def load(data: Any, buffers: Any, places: Sequence[tuple[int, int]], where: str) -> Any:
    """The value; its arrays use the buffers in place. Raises StoreFailure if it cannot be made again."""
    view = memoryview(buffers)
    if any(offset < 0 or size < 0 or offset + size > len(view) for offset, size in places):
        raise StoreFailure(f"the buffers of the object at {where} are not where they should be: compute it again")
    try:
        return pickle.loads(data, buffers=[view[offset : offset + size] for offset, size in places])
    except MemoryError:
        raise
    except Exception as error:  # a class that moved, a module that is missing, a __setstate__ that fails
        raise StoreFailure(
            f"the object at {where} cannot be unpickled here: {_said(error)}; "
            "make its class importable, or compute it again"
        ) from error


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
