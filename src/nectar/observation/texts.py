"""The texts that a computation holds: among its arguments, in its code, and in what that captured.

In: values and functions. Out: texts that may name files. Values are looked at to a small depth and number: what lies
deeper is read by the program, piece by piece, and not handed over as a name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from types import CodeType, FunctionType, ModuleType
from typing import Final

from nectar.keys.inspection import attributes_of, is_a

_MOST: Final = 200  # values that are looked at
_CONTAINERS: Final = (list, tuple, set, frozenset)


def texts_in(values: Iterable[object]) -> Iterator[str]:
    """Texts and paths among values, and in containers and objects among them."""
    pending = list(values)
    for at in range(_MOST):
        if at >= len(pending):
            return
        value = pending[at]
        if is_a(value, str):
            yield value
        elif is_a(value, PurePath):
            yield PurePath.__str__(value)
        elif type(value) in _CONTAINERS:
            pending += list(value)[:_MOST]  # type: ignore[call-overload]
        elif type(value) is dict:
            pending += list(value.values())[:_MOST]
        elif not is_a(value, (type, FunctionType, ModuleType)):
            pending += list(attributes_of(value).values())[:_MOST]


def texts_of(functions: Iterable[FunctionType]) -> Iterator[str]:
    """Texts in the code of functions, and in what they captured, that look like a path."""
    for function in functions:
        for text in texts_in(_held_by(function)):
            if "." in text or "/" in text or is_query(text):
                yield text


def is_query(text: str) -> bool:
    """Whether a text may be SQL."""
    return "select" in text or "SELECT" in text


def moment_in(texts: Iterable[str]) -> str:
    """What a query among texts calls that is another thing each time: the clock, or a draw; empty if nothing does.

    Engines read the clock without telling anybody.
    """
    found = (_OF_THE_MOMENT.search(text) for text in texts if is_query(text))
    return next((each.group() for each in found if each is not None), "")


_OF_THE_MOMENT: Final = re.compile(
    r"\b(?:now|today|random|rand|uuid|gen_random_uuid|getdate|sysdate|current_\w+|localtime\w*)\s*\(\s*\)"
    r"|\b(?:current_(?:date|time|timestamp|user)|localtime(?:stamp)?)\b",
    re.IGNORECASE,
)


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
