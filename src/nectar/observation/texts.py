"""The texts that a computation holds: among its arguments, in its code, and in what that captured.

In: values and functions. Out: texts that may name files. Values are looked at to a small depth and number: what lies
deeper is read by the program, piece by piece, and not handed over as a name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Final

_MOST: Final = 200  # values that are looked at
_CONTAINERS: Final = (list, tuple, set, frozenset)


def texts_in(values: Iterable[object]) -> Iterator[str]:
    """Texts and paths among values, and in containers and objects among them."""
    pending = list(values)
    for at in range(_MOST):
        if at >= len(pending):
            return
        value = pending[at]
        if isinstance(value, str):
            yield value
        elif isinstance(value, os.PathLike):
            path = os.fspath(value)
            yield path if isinstance(path, str) else os.fsdecode(path)
        elif type(value) in _CONTAINERS:
            pending += list(value)[:_MOST]  # type: ignore[call-overload]
        elif type(value) is dict:
            pending += list(value.values())[:_MOST]
        elif type(getattr(value, "__dict__", None)) is dict and not isinstance(value, (type, FunctionType)):
            pending += list(vars(value).values())[:_MOST]


def texts_of(functions: Iterable[FunctionType]) -> Iterator[str]:
    """Texts in the code of functions, and in what they captured, that look like a path."""
    for function in functions:
        for text in texts_in(_held_by(function)):
            if "." in text or "/" in text:
                yield text


def _held_by(function: FunctionType) -> Iterator[object]:
    pending = [function.__code__]
    while pending:
        code = pending.pop()
        yield from (each for each in code.co_consts if isinstance(each, (str, tuple)))
        pending += [each for each in code.co_consts if isinstance(each, CodeType)]
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, (str, os.PathLike)):
            yield value
    yield from function.__defaults__ or ()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not yet filled
            continue
