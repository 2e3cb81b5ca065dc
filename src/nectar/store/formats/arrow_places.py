"""Where the columns of an Arrow file lie in it, told from the file itself.

In: a file of which any stretch can be read. Out: the stretches that whoever reads some of its columns looks at, those
that describe the file included. Law: None rather than a stretch too few: what is not understood is needed whole.
Nothing but the footer and the descriptions of batches is read, a few kilobytes, and no library is loaded.

Arrow describes its files with FlatBuffers: a table begins with the distance back to a list of where its fields are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from nectar.store.chunks import Range

Read = Callable[[int, int], bytes]  # from an offset, so many bytes

_HEAD: Final = 8  # six letters, and two bytes that fill up
_MESSAGE: Final = b"\xff\xff\xff\xff"  # before its length
_BLOCK: Final = "<qi4xq"  # where a message lies: from here, described in so many bytes, and so many of values
_TAIL: Final = 10  # the length of the footer, and six letters
_WITHOUT: Final = {1: 0, 13: 1, 16: 1}  # buffers of types whose values are in their children: null, lists, structs
_BATCH: Final = 3  # the number of batches among the kinds of messages
_VIEWS: Final = frozenset((23, 24))  # of bytes and of texts: as many buffers as a batch says
_TWO: Final = frozenset((2, 3, 6, 7, 8, 9, 10, 11, 15, 18))  # numbers, bool, decimal, times, bytes of one length
_THREE: Final = frozenset((4, 5, 19, 20))  # bytes and texts with offsets
_LISTS: Final = frozenset((12, 17, 21))  # lists and maps: offsets, and a child
_BUFFERS: Final[dict[int, int]] = {
    **_WITHOUT,
    **dict.fromkeys(_VIEWS | _TWO | _LISTS, 2),
    **dict.fromkeys(_THREE, 3),
}  # by number of the type; what is not here is not understood


def footer_range(read: Read, size: int) -> Range:
    """Where the footer lies, its length included."""
    length = int.from_bytes(read(size - _TAIL, 4), "little")
    return max(0, size - _TAIL - length), size


def as_stream(data: bytes) -> bytes | None:
    """The stream of messages that an Arrow file is made of, to be read as such; None if it cannot be told.

    Polars writes the first message, which describes the columns, without the length before it.
    """
    try:
        start, stop = footer_range(lambda at, count: data[at : at + count], len(data))
        footer = _root(data[start : stop - _TAIL])
        batches = [at for at, *_ in footer.numbers(3, _BLOCK)]
        if not batches or footer.length(2):  # what stands for values lies elsewhere
            return None
        messages = data[_HEAD:start]
        first = min(batches) - _HEAD
        return messages if messages.startswith(_MESSAGE) else _MESSAGE + first.to_bytes(4, "little") + messages
    except (struct.error, IndexError, ValueError, OverflowError):
        return None


class Places(Struct, frozen=True):
    """What a reader of some columns looks at. compressed: whether buffers are, so that it must not look at others."""

    ranges: Sequence[Range]
    compressed: bool


def places_of(read: Read, size: int, columns: Sequence[str]) -> Places | None:
    """What a reader of these columns looks at; None if that cannot be told."""
    try:
        start, stop = footer_range(read, size)
        footer = _root(read(start, stop - start - _TAIL))
        fields = _fields_of(footer)
        names = [name for name, _ in fields or ()]
        if fields is None or footer.length(2) or not set(columns) <= set(names) or len(set(names)) < len(names):
            return None
        found, compressed = [(0, 8), (start, stop)], False
        for at, described, length in footer.numbers(3, _BLOCK):
            batch, body = _batch_of(read(at, described)), at + described
            found.append((at, body))
            found += [(body + low, body + high) for low, high in _buffers_of(batch, length, fields, set(columns))]
            compressed = compressed or batch.table(3) is not None
        return Places(found, compressed)
    except (struct.error, IndexError, ValueError, UnicodeDecodeError):
        return None


class _Table:
    """A table of FlatBuffers."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self._list = at - self.number("<i", at)

    def number(self, form: str, at: int) -> int:
        value: int = struct.unpack_from(form, self.data, at)[0]
        return value

    def place(self, field: int) -> int | None:
        """Where a field is, if it is there."""
        entry = 4 + 2 * field
        if entry >= self.number("<H", self._list):
            return None
        offset = self.number("<H", self._list + entry)
        return self.at + offset if offset else None

    def small(self, field: int) -> int:
        """A field of one byte; 0 if it is not there."""
        place = self.place(field)
        return 0 if place is None else self.data[place]

    def table(self, field: int) -> _Table | None:
        """A field that is a table."""
        place = self.place(field)
        return None if place is None else _Table(self.data, place + self.number("<I", place))

    def _vector(self, field: int) -> int | None:
        place = self.place(field)
        return None if place is None else place + self.number("<I", place)

    def length(self, field: int) -> int:
        """How many there are in a field that holds several."""
        start = self._vector(field)
        return 0 if start is None else self.number("<I", start)

    def tables(self, field: int) -> list[_Table]:
        """A field that holds several tables."""
        start = self._vector(field)
        places = [] if start is None else [start + 4 + 4 * number for number in range(self.length(field))]
        return [_Table(self.data, place + self.number("<I", place)) for place in places]

    def text(self, field: int) -> str:
        """A field that is a text."""
        start = self._vector(field)
        return "" if start is None else self.data[start + 4 : start + 4 + self.length(field)].decode()

    def numbers(self, field: int, form: str) -> list[tuple[int, ...]]:
        """A field that holds several structs of numbers."""
        start, step = self._vector(field), struct.calcsize(form)
        places = [] if start is None else [start + 4 + step * number for number in range(self.length(field))]
        return [struct.unpack_from(form, self.data, place) for place in places]


def _root(data: bytes) -> _Table:
    return _Table(data, int(struct.unpack_from("<I", data, 0)[0]))


def _fields_of(footer: _Table) -> list[tuple[str, list[int]]] | None:
    """Names of the columns, and the types in each, in the order of their buffers; None if one is not understood."""
    schema = footer.table(1)
    if schema is None:
        return None
    found = []
    for column in schema.tables(1):
        types = list(_types_in(column))
        if not all(each in _BUFFERS for each in types):
            return None
        found.append((column.text(0), types))
    return found


def _types_in(field: _Table) -> Iterator[int]:
    yield -1 if field.table(4) is not None else field.small(2)  # a dictionary lies elsewhere
    for child in field.tables(5):
        yield from _types_in(child)


def _batch_of(message: bytes) -> _Table:
    """The description of a batch in a message. Raises ValueError if it is one of something else."""
    header = _root(message[8 if message[:4] == b"\xff\xff\xff\xff" else 4 :])
    batch = header.table(2)
    if header.small(1) != _BATCH or batch is None:
        raise ValueError("no batch")
    return batch


def _buffers_of(
    batch: _Table, length: int, fields: Sequence[tuple[str, list[int]]], wanted: set[str]
) -> Iterator[Range]:
    """Where the buffers of some columns are in the body of a batch."""
    buffers = iter(batch.numbers(2, "<qq"))
    variadic = iter(batch.numbers(4, "<q"))
    for name, types in fields:
        for each in types:
            for _ in range(_BUFFERS[each] + (next(variadic, (0,))[0] if each in _VIEWS else 0)):
                offset, size = next(buffers, (-1, 0))
                if not 0 <= offset <= offset + size <= length:
                    raise ValueError("a buffer outside of its batch")
                if name in wanted:
                    yield offset, offset + size
    if next(buffers, None) is not None:
        raise ValueError("more buffers than columns have")
