"""Reads MessagePack without recursion, telling for every piece where it stands.

In: the bytes. Out: pieces in order; their spans, laid end to end, are the input. Law: nesting of any depth is read in
constant stack, and malformed input raises ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct

BYTES_FROM: Final = 8  # shorter arrays of small numbers are read one by one
OUTER: Final = 5  # of a long way, only the first keys
INNER: Final = 8  # and the last ones are kept


class Piece(Struct, frozen=True):
    """One piece: where it begins and ends, what it is, and the map keys above it, outermost first.

    Of more than OUTER + INNER keys those in the middle are left out.
    kind: "nil", "bool", "int", "float", "str", "bin", "ext", "array", "map", "key", or "bytes" for a whole array of
    numbers below 256, which is how bytes come out of some writers.
    """

    begin: int
    end: int
    kind: str
    value: object
    keys: tuple[str, ...]


class _Level:
    __slots__ = ("above", "is_map", "key", "left")

    def __init__(self, is_map: bool, left: int, above: tuple[str, ...]) -> None:
        self.is_map = is_map
        self.left = left
        self.above = above
        self.key: str | None = None

    def keys(self) -> tuple[str, ...]:
        """The keys above the value that is read next."""
        if self.key is None:
            return self.above
        keys = (*self.above, self.key)
        return keys if len(keys) <= OUTER + INNER else keys[:OUTER] + keys[-INNER:]


_SIZES: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
_NUMBERS: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8, 0xCA: 4, 0xCB: 8}
_EXTENSIONS: Final = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_FIXED_EXTENSIONS: Final = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


@lru_cache(maxsize=64)
def _small_numbers(count: int) -> re.Pattern[bytes]:
    return re.compile(rb"(?>[\x00-\x7f]|\xcc[\x80-\xff]){%d}+" % count, re.DOTALL)


_LARGE_PREFIX: Final = re.compile(rb"\xcc(.)", re.DOTALL)


def pieces(data: bytes) -> Iterator[Piece]:
    """The pieces of one MessagePack value that fills data."""
    levels: list[_Level] = []
    position = 0
    while levels or position == 0:
        is_key = _count_off(levels)
        begin = position
        kind, value, position, count = _read(data, position)
        keys = levels[-1].keys() if levels else ()
        if kind in ("array", "map"):
            if is_key:
                raise ValueError("a MessagePack map has a container as its key")
            run = _run_of_bytes(data, position, count) if kind == "array" else None
            if run is not None:
                value, position = run
                kind = "bytes"
            else:
                levels.append(_Level(kind == "map", 2 * count if kind == "map" else count, keys))
        if is_key:
            levels[-1].key = value if isinstance(value, str) else repr(value)
            kind = "key"
        yield Piece(begin, position, kind, value, keys)
        while levels and levels[-1].left == 0:
            levels.pop()
    if position != len(data):
        raise ValueError("there are bytes after the MessagePack value")


def end_of_value(data: bytes, begin: int) -> int:
    """Where the MessagePack value ends that begins here, whatever follows it."""
    left, position = 1, begin
    while left:
        kind, _, position, count = _read(data, position)
        left += (2 * count if kind == "map" else count) - 1
    return position


def _count_off(levels: list[_Level]) -> bool:
    """Takes one piece off the innermost level; tells whether it is a key."""
    if not levels:
        return False
    level = levels[-1]
    is_key = level.is_map and level.left % 2 == 0
    level.left -= 1
    if is_key:
        level.key = None
    return is_key


def _run_of_bytes(data: bytes, position: int, count: int) -> tuple[bytes, int] | None:
    if count < BYTES_FROM:
        return None
    found = _small_numbers(count).match(data, position)
    if found is None:
        return None
    return _LARGE_PREFIX.sub(rb"\1", found.group()), found.end()


def _read(data: bytes, position: int) -> tuple[str, object, int, int]:
    """Kind, value, position after it, and number of parts of the piece at position."""
    if position >= len(data):
        raise ValueError("the MessagePack value is cut off")
    head = data[position]
    position += 1
    if head <= 0x7F or head >= 0xE0:
        return "int", head if head <= 0x7F else head - 256, position, 0
    if head <= 0x8F:
        return "map", None, position, head & 0x0F
    if head <= 0x9F:
        return "array", None, position, head & 0x0F
    if head <= 0xBF:
        return _text(data, position, head & 0x1F)
    if head in (0xC0, 0xC2, 0xC3):
        return ("nil", None, position, 0) if head == 0xC0 else ("bool", head == 0xC3, position, 0)
    if head in _NUMBERS:
        return _number(data, position, head)
    if head in _FIXED_EXTENSIONS:
        return "ext", None, _within(data, position + 1 + _FIXED_EXTENSIONS[head]), 0
    return _sized(data, position, head)


def _sized(data: bytes, position: int, head: int) -> tuple[str, object, int, int]:
    width = _SIZES.get(head) or _EXTENSIONS.get(head)
    if width is None:
        raise ValueError(f"the byte {head:#x} has no meaning in MessagePack")
    begin = _within(data, position + width)
    size = int.from_bytes(data[position:begin], "big")
    if head in _EXTENSIONS:
        return "ext", None, _within(data, begin + 1 + size), 0
    if head <= 0xC6:
        end = _within(data, begin + size)
        return "bin", data[begin:end], end, 0
    if head <= 0xDB:
        return _text(data, begin, size)
    return "array" if head <= 0xDD else "map", None, begin, size


def _number(data: bytes, position: int, head: int) -> tuple[str, object, int, int]:
    end = _within(data, position + _NUMBERS[head])
    if head <= 0xCB:
        return "float", data[position:end], end, 0
    return "int", int.from_bytes(data[position:end], "big", signed=head >= 0xD0), end, 0


def _text(data: bytes, position: int, size: int) -> tuple[str, object, int, int]:
    end = _within(data, position + size)
    return "str", data[position:end].decode("utf-8", "surrogateescape"), end, 0


def _within(data: bytes, position: int) -> int:
    if position > len(data):
        raise ValueError("the MessagePack value is cut off")
    return position
