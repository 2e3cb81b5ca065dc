"""Raw bytecode to instructions.

In: a code object. Out: its instructions without caches, extended arguments and no-ops, and its exception table.
Read from the bytes themselves: `dis.get_instructions` takes thirty times as long. `co_code` is the unspecialised
form, so that running or tracing a function does not change what is read here.
"""

from __future__ import annotations

import dis
import inspect
import opcode
import types
from itertools import compress
from typing import Any, Final, NamedTuple

_VARARGS: Final = inspect.CO_VARARGS
_VARKEYWORDS: Final = inspect.CO_VARKEYWORDS
_EXTENDED: Final = dis.opmap["EXTENDED_ARG"]
_entries: Any = opcode._inline_cache_entries  # type: ignore[attr-defined]
# How many bytes an instruction takes together with its caches.
_WIDTHS: Final[list[int]] = [
    2 + 2 * (_entries.get(dis.opname[op], 0) if isinstance(_entries, dict) else _entries[op]) for op in range(256)
]
NAMES: Final[list[str]] = list(dis.opname[:256])


# One instruction: where it starts, what it is, its argument, and where the next one starts. A plain tuple, since there
# are more of these than of anything else.
Instruction = tuple[int, str, int, int]


class Protected(NamedTuple):
    """A row of the exception table: [start, end) is handled at target with depth values left on the stack."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


def instructions(code: types.CodeType) -> list[Instruction]:
    """The instructions of code, in order."""
    return decoded(code.co_code)


def decoded(raw: bytes) -> list[Instruction]:
    """The instructions that bytecode consists of, in order."""
    operations = raw[::2]
    if _EXTENDED in operations:
        return _extended_instructions(raw)
    names, widths = NAMES, _WIDTHS
    units = zip(range(0, len(raw), 2), operations, raw[1::2], strict=True)
    return [(at, names[op], arg, at + widths[op]) for at, op, arg in compress(units, operations)]  # caches are zeros


def _extended_instructions(raw: bytes) -> list[Instruction]:
    """The same where some arguments take more than a byte. An instruction starts where its argument does."""
    found = []
    at, start, extended, size = 0, 0, 0, len(raw)
    while at < size:
        op, arg = raw[at], raw[at + 1] | extended
        if op == _EXTENDED:
            extended = arg << 8
            at += 2
            continue
        at += _WIDTHS[op]
        found.append((start, NAMES[op], arg, at))
        start, extended = at, 0
    return found


def exception_table(code: types.CodeType) -> list[Protected]:
    """The rows of the exception table of code."""
    data = iter(code.co_exceptiontable)
    rows = []
    for first in data:
        start = _number(first, data) * 2
        length = _number(next(data), data) * 2
        target = _number(next(data), data) * 2
        depth_lasti = _number(next(data), data)
        rows.append(Protected(start, start + length, target, depth_lasti >> 1, bool(depth_lasti & 1)))
    return rows


def _number(first: int, rest: Any) -> int:
    value = first & 63
    while first & 64:
        first = next(rest)
        value = (value << 6) | (first & 63)
    return value


def parameter_names(code: types.CodeType) -> tuple[str, ...]:
    """All parameters by name, *args and **kwargs included."""
    flags = code.co_flags
    count = code.co_argcount + code.co_kwonlyargcount + bool(flags & _VARARGS) + bool(flags & _VARKEYWORDS)
    return code.co_varnames[:count]
