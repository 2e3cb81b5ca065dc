"""The texts that a computation holds: among its arguments, in its code, and in what that captured.

In: values and functions. Out: texts that may name files. Values are looked at to a small depth and number. Of what
holds many there is a sample: if that names files, so may the rest, and the folders of these files stand for all.
Where code puts names of files together from pieces, the folders where these could lie stand for them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from opcode import opmap
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

from nectar.keys.inspection import attributes_of, is_a
from nectar.observation.columns import SAMPLE, every, sample_of

LONGEST: Final = 1024  # characters of a text that is looked at
_MOST: Final = 400  # values that are looked at
_FEW: Final = 32  # values of a container that are looked at one by one
_CONTAINERS: Final = (list, tuple, set, frozenset)
_WITHOUT_TEXTS: Final = (FunctionType, ModuleType, BuiltinFunctionType, int, float, bytes)


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
            yield os.path.join(text if os.path.isdir(text) else os.path.dirname(text), "*")


def _looks_like_path(text: str) -> bool:
    """Whether a text has the signs of a path; those alone are in use for other things."""
    return ("." in text or "/" in text) and len(text) <= LONGEST and "\0" not in text and text.strip("./") != ""


def texts_of(functions: Iterable[FunctionType], given: Iterable[object] = ()) -> list[str]:
    """Texts among given values, and those in the code of functions and in what they captured that may name files."""
    inside = [(function, _codes_of(function)) for function in functions]
    documented = any(not _ASKS_FOR_DOCSTRINGS.isdisjoint(code.co_names) for _, codes in inside for code in codes)
    given_texts = list(texts_in(given))
    texts = [text for function, codes in inside for text in texts_in(_held_by(function, codes, documented))]
    if any(map(_is_end_of_name, texts)):
        return [*given_texts, *texts, os.curdir, *_folders_in([*given_texts, *texts])]
    texts = [text for text in texts if "." in text or "/" in text or may_be_sql(text)]
    return [*given_texts, *texts, *_folders_in(texts)]


def all_texts_of(functions: Iterable[FunctionType], given: Iterable[object] = ()) -> Iterator[str]:
    """Texts among given values, and all of those in the code of functions and in what they captured."""
    yield from texts_in(given)
    for function in functions:
        yield from texts_in(_held_by(function, _codes_of(function), documented=False))


def _is_end_of_name(text: str) -> bool:
    """Whether a text may be the end of a file's name, or all but its end, that code puts together: ".csv", "part."."""
    return len(text) <= LONGEST and _END_OF_NAME.search(text) is not None


_END_OF_NAME: Final = re.compile(r"^(?:\.|[_-]\S*\.|\S*[%{]\S*\.)[A-Za-z][A-Za-z0-9]{0,9}$|^\S*[\w-]\.$")


def _folders_in(texts: Iterable[str]) -> Iterator[str]:
    """The folders in texts that begin paths, such as "out" in "out/part-"."""
    return (os.path.dirname(text) for text in texts if "/" in text and len(text) <= LONGEST)


def may_be_sql(text: str) -> bool:
    """Whether a text may be SQL, or the part of it that asks for the time."""
    return "select" in text or "SELECT" in text or "'now'" in text or _OTHER_SQL.search(text) is not None


_OTHER_SQL: Final = re.compile(r"\b(?:create|insert|update|values|default)\b", re.IGNORECASE)


def moment_in(texts: Iterable[str]) -> str:
    """What a query among texts calls that is another thing each time: the clock, or a draw; empty if nothing does.

    Engines read the clock without telling anybody.
    """
    found = (_OF_THE_MOMENT.search(text) for text in texts if may_be_sql(text))
    return next((each.group() for each in found if each is not None), "")


_OF_THE_MOMENT: Final = re.compile(
    r"\b(?:now|today|random|rand|uuid|gen_random_uuid|getdate|sysdate|current_\w+|localtime\w*)\s*\(\s*\)"
    r"|\b(?:current_(?:date|time|timestamp|user)|localtime(?:stamp)?)\b"
    r"|\b(?:date|time|datetime|julianday|unixepoch)\s*\(\s*(?:'now'|'subsec|\))"
    r"|\bstrftime\s*\([^,()]*,\s*'now'|\brandomblob\s*\(",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def _constants_of(code: CodeType) -> tuple[object, ...]:
    """The constants of code that it loads: a docstring stands first, and is loaded only if it is used as a text too."""
    raw = code.co_code
    first = any(operation in _LOADS and at == 0 for operation, at in zip(raw[::2], raw[1::2], strict=True))
    return code.co_consts if first else code.co_consts[1:]


_LOADS: Final = frozenset(opmap[name] for name in ("LOAD_CONST", "RETURN_CONST") if name in opmap)
_ASKS_FOR_DOCSTRINGS: Final = frozenset({"__doc__", "getdoc"})


def _is_of_nectar(kind: type) -> bool:
    """Whether a class is one of ours, such as that of memoised functions, whose texts the program does not see."""
    return str(kind.__module__).startswith("nectar.")


def _codes_of(function: FunctionType) -> list[CodeType]:
    found = [function.__code__]
    for code in found:
        found += [each for each in code.co_consts if isinstance(each, CodeType)]
    return found


def _held_by(function: FunctionType, codes: list[CodeType], documented: bool) -> Iterator[object]:
    for code in codes:
        constants = code.co_consts if documented else _constants_of(code)
        yield from (each for each in constants if isinstance(each, (str, tuple)))
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if is_a(value, (str, PurePath)) or type(value) in (*_CONTAINERS, dict):
            yield value
        elif value is not None and not is_a(value, (type, *_WITHOUT_TEXTS)) and not _is_of_nectar(type(value)):
            yield from (each for each in attributes_of(value).values() if is_a(each, (str, PurePath)))
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not yet filled
            continue
