"""Expanders of the standard library's values: one table, put together from one module per kind."""

from __future__ import annotations

import collections
import decimal
import pathlib
import re
import struct
import uuid
from array import array
from typing import Any

from nectar.keys.ambient import raised_signals
from nectar.keys.atoms import ATOMS
from nectar.keys.expansion import Expander, Expansion, WalkContext, always, joined
from nectar.keys.values import annotations as of_types
from nectar.keys.values import callables, runtime, temporal
from nectar.keys.values.bulk import content
from nectar.keys.values.callables import attributes


def expand_pattern(value: re.Pattern[Any], walk: WalkContext) -> Expansion:
    """A compiled regular expression: its text and flags."""
    return Expansion("pattern", joined(repr(value.flags)), (value.pattern,), ("pattern",), by_value=True, still=always)


def expand_match(value: re.Match[Any], walk: WalkContext) -> Expansion:
    """A match: pattern and text, and what was found where."""
    spans = joined(repr(value.regs), repr(value.lastindex), repr(value.pos), repr(value.endpos))
    return Expansion("match", spans, (value.re, value.string), ("pattern", "text"), still=always)


def expand_slice(value: slice, walk: WalkContext) -> Expansion:
    """A slice: its three bounds."""
    bounds = (value.start, value.stop, value.step)
    plain = all(type(bound) in ATOMS for bound in bounds)
    return Expansion("slice", b"", bounds, ("start", "stop", "step"), by_value=plain, still=always)


def expand_struct(value: struct.Struct, walk: WalkContext) -> Expansion:
    """A binary record layout: its format."""
    return Expansion("struct", joined(value.format), by_value=True, still=always)


def expand_memoryview(value: memoryview, walk: WalkContext) -> Expansion:
    """A view of memory: format, shape and the bytes seen through it, in C order."""
    shape = [] if value.shape is None else value.shape
    plain = value.c_contiguous and value.nbytes > 0
    seen = content(value.cast("B") if plain else value.tobytes())
    payload = joined(value.format, repr(value.itemsize), repr(list(shape)), repr(value.readonly), seen)
    return Expansion("memoryview", payload)


def expand_array(value: array[Any], walk: WalkContext) -> Expansion:
    """An array.array: type code and content."""
    seen = content(memoryview(value).cast("B") if len(value) else b"")
    return Expansion("array", joined(value.typecode, repr(value.itemsize), seen))


def expand_ordered_dict(value: collections.OrderedDict[Any, Any], walk: WalkContext) -> Expansion:
    """An OrderedDict: items in its own order (which the dict below does not have), own attributes."""
    names, own = attributes(value)
    items = [part for pair in collections.OrderedDict.items(value) for part in pair]
    return Expansion("OrderedDict", joined(*names), (*own, *items), names)


def expand_counter(value: collections.Counter[Any], walk: WalkContext) -> Expansion:
    """A Counter: counts in order of insertion, own attributes."""
    names, own = attributes(value)
    items = [part for pair in dict.items(value) for part in pair]
    return Expansion("Counter", joined(*names), (*own, *items), names)


def expand_dict_view(value: Any, walk: WalkContext) -> Expansion:
    """A view of a dict's keys, values or items: the dict behind it, as far as the view shows it."""
    return Expansion(type(value).__name__, b"", _flat(value))


def _flat(view: Any) -> list[object]:
    if type(view).__name__.endswith("items"):
        return [part for pair in view for part in pair]
    return list(view)


_CONTEXT = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")


def expand_uuid(value: uuid.UUID, walk: WalkContext) -> Expansion:
    """A UUID: its bytes, and whether it is known to be unique."""
    return plain_value("uuid", value, value.hex, value.is_safe.name)


def expand_path(value: pathlib.PurePath, walk: WalkContext) -> Expansion:
    """A path: its class and its text. What lies there is not looked at."""
    return plain_value("path", value, str(value))


def plain_value(tag: str, value: object, *texts: str) -> Expansion:
    """A value without identity, of a class written in Python."""
    return Expansion(tag, joined(*texts), (type(value),), ("class",), by_value=True, still=always)


def expand_decimal(value: decimal.Decimal, walk: WalkContext) -> Expansion:
    """A decimal number: sign, digits and exponent. Arithmetic with it depends on the current context."""
    walk.touch("decimal")
    return Expansion("decimal", joined(str(value)), by_value=True, still=always)


def expand_decimal_context(value: decimal.Context, walk: WalkContext) -> Expansion:
    """A decimal context: precision, rounding, limits and traps; signals raised so far where code asks for flags."""
    traps = sorted(signal.__name__ for signal, on in value.traps.items() if on)
    raised = ["raised", *raised_signals(value)] if "flags" in walk.observed else []
    return Expansion("decimal context", joined(*(repr(getattr(value, name)) for name in _CONTEXT), *traps, *raised))


EXPANDERS: dict[type, Expander] = {
    **temporal.EXPANDERS,
    **callables.EXPANDERS,
    **of_types.EXPANDERS,
    **runtime.EXPANDERS,
    re.Pattern: expand_pattern,
    re.Match: expand_match,
    slice: expand_slice,
    struct.Struct: expand_struct,
    memoryview: expand_memoryview,
    array: expand_array,
    collections.OrderedDict: expand_ordered_dict,
    collections.Counter: expand_counter,
    type({}.keys()): expand_dict_view,
    type({}.values()): expand_dict_view,
    type({}.items()): expand_dict_view,
    uuid.UUID: expand_uuid,
    **dict.fromkeys(
        (pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.PosixPath, pathlib.WindowsPath), expand_path
    ),
    decimal.Decimal: expand_decimal,
    decimal.Context: expand_decimal_context,
}
