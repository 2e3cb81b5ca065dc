"""Canonical bytes of values that have no parts and no identity.

In: a value of one of the types in ATOMS (exactly that type). Out: bytes that begin with a tag and carry their own
length. Only types written in C: the classes of others can be changed, so that they have to be looked at. Law: equal
bytes if and only if same type and same value, sign of zero and bits of NaN included.
"""

from __future__ import annotations

import datetime
import re
import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from nectar.keys.expansion import joined, sized

PACK_FROM: Final = 16  # shorter sequences are cheaper one by one, and read better in traces
_NUMBERS: Final = frozenset({int, float, bool, complex})
_MANY: Final = 100_000
_DOUBLE = struct.Struct("<d").pack
_COMPLEX = struct.Struct("<dd").pack


def _int(value: int) -> bytes:
    return b"i" + sized(value.to_bytes((value.bit_length() + 8) // 8, "little", signed=True))


def _str(value: str) -> bytes:
    return b"s" + sized(value.encode("utf-8", "surrogatepass"))


def _delta(value: datetime.timedelta) -> bytes:
    return b"dd" + joined(*(_int(part) for part in (value.days, value.seconds, value.microseconds)))


ATOMS: Final[dict[type, Callable[[Any], bytes]]] = {
    type(None): lambda _: b"N",
    bool: lambda value: b"T" if value else b"F",
    int: _int,
    float: lambda value: b"f" + _DOUBLE(value),
    complex: lambda value: b"c" + _COMPLEX(value.real, value.imag),
    str: _str,
    bytes: lambda value: b"b" + sized(value),
    type(...): lambda _: b".",
    type(NotImplemented): lambda _: b"!",
    datetime.date: lambda value: b"da" + sized(value.isoformat().encode()),
    datetime.timedelta: _delta,
    range: lambda value: b"r" + joined(_int(value.start), _int(value.stop), _int(value.step)),
}


def _little(numbers: array[Any]) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def pack(values: Sequence[object]) -> bytes | None:
    """One block of bytes for a long sequence of atoms of one type, or None where that does not fit."""
    if len(values) < PACK_FROM:
        return None
    kinds = set(map(type, values))
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    if kind is int:
        try:
            return b"q" + _little(array("q", values))
        except OverflowError:
            return None
    if kind is float:
        return b"d" + _little(array("d", values))
    if kind is str:
        return b"s" + _pack_strings(values)  # type: ignore[arg-type]
    return None


def _pack_strings(values: Sequence[str]) -> bytes:
    lengths = array("Q", map(len, values))
    return sized(_little(lengths)) + "".join(values).encode("utf-8", "surrogatepass")


def in_unusual_order(members: Iterable[object]) -> bool:
    """Whether numbers come out of a set in another order than if they had been put into it by size.

    Where numbers lie in a set depends on which came first. Programs see that, in every process alike; of texts, each
    process has an order of its own.
    """
    found = tuple(members)
    if len(found) < 2 or not all(map(_is_number, found)):
        return False
    if len(found) > _MANY:  # the order as it is costs hits, and no time
        return True
    try:
        by_size = sorted(found)  # type: ignore[type-var]
    except TypeError:  # of complex numbers, and of numbers beside tuples
        by_size = sorted(found, key=repr)
    return tuple(set(by_size)) != found


def choice_in_order(value: re.Pattern[Any]) -> str | bytes:
    """The text of a pattern; of a choice of single characters, such as one of a set of them, in the order of these."""
    text: str | bytes = value.pattern
    choices = text.split("|") if isinstance(text, str) and not value.flags & re.VERBOSE else []
    is_choice = len(choices) > 1 and all(len(each) == 1 and each not in _SPECIAL for each in choices)
    return "|".join(sorted(choices)) if is_choice else text


_SPECIAL: Final = frozenset("^$.*+?()[]{}\\")  # what means more than itself in a pattern


def _is_number(value: object) -> bool:
    """Whether a value is a number, or made of nothing but numbers: it has the same hash in every process."""
    return type(value) in _NUMBERS or (type(value) is tuple and all(map(_is_number, value)))
