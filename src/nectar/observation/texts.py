"""The texts that a computation holds: among its arguments, in its code, and in what that captured.

In: values and functions. Out: texts that may name files. Values are looked at to a small depth and number. Of what
holds many there is a sample: if that names files, so may the rest, and the folders of these files stand for all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import PurePath
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from nectar.keys.inspection import attributes_of, is_a
from nectar.observation.columns import SAMPLE, every, sample_of

LONGEST: Final = 1024  # characters of a text that is looked at
_MOST: Final = 400  # values that are looked at
_FEW: Final = 32  # values of a container that are looked at one by one
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
        elif type(value) in _CONTAINERS or type(value) is dict:
            held: Any = value.values() if type(value) is dict else value
            if len(held) <= _FEW:
                pending += held
            else:
                yield from _folders_of(_some_of(held))
        elif (sample := sample_of(value)) is not None:
            yield from _folders_of(sample)
        elif not is_a(value, (type, FunctionType, ModuleType)):
            pending += list(attributes_of(value).values())[:_MOST]


def _some_of(held: Any) -> Iterable[object]:
    """A sample of what a container holds, evenly spread where that takes no time."""
    return held[:: every(len(held))] if type(held) in (list, tuple) else islice(held, SAMPLE)


def _folders_of(sample: Iterable[object]) -> Iterator[str]:
    """Patterns for all that lies beside the files which texts in a sample name."""
    found: set[str] = set()
    for text in texts_in(sample):
        if text not in found and _looks_like_path(text) and os.path.exists(text):
            found.add(text)
            yield os.path.join(os.path.dirname(text), "*")


def _looks_like_path(text: str) -> bool:
    """Whether a text has the signs of a path; those alone are in use for other things."""
    return ("." in text or "/" in text) and len(text) <= LONGEST and "\0" not in text and text.strip("./") != ""


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
        if is_a(value, (str, PurePath)) or type(value) in (*_CONTAINERS, dict):
            yield value
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not yet filled
            continue
