"""Modules of the application that library code imports by their names: what runs then is no part of a key.

In: texts that a computation holds, the modules that are loaded. Out: the first module that one of the texts names, and
those that came while it ran. Whether library code imports by names at all is told by reach.py.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable
from itertools import islice
from types import FunctionType
from typing import Final

from nectar.keys.origin import is_module_of_application
from nectar.observation.reach import IMPORTS, Source
from nectar.observation.texts import all_texts_of

_LONGEST: Final = 10_000  # characters of a text that is looked at
_NAME: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_DOTTED: Final = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


def followed(sources: Collection[Source]) -> Collection[Source]:
    """The sources without those that only import something."""
    return [each for each in sources if each.what != IMPORTS]


def module_named(sources: Collection[Source], functions: Iterable[FunctionType], given: Iterable[object]) -> str:
    """A module of the application that library code may import by a text; empty if there is none."""
    if not any(each.what == IMPORTS for each in sources):
        return ""
    return next(filter(None, map(_module_in, all_texts_of(functions, given))), "")


def modules_that_came(before: int) -> list[str]:
    """Modules of the application that were imported since there were so many modules in all."""
    new = max(len(sys.modules) - before, 0)
    return [name for name in islice(reversed(list(sys.modules)), new) if is_module_of_application(name)]


def _module_in(text: str) -> str:
    """The module that a text names: all of it, or a name with dots somewhere in it (which YAML and JSON hold)."""
    whole = text.replace(":", ".")
    named = [whole] if _NAME.fullmatch(whole) else []
    if len(text) > _LONGEST:
        return ""
    for name in [*named, *_DOTTED.findall(text)]:
        parts = name.split(".")
        begins = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
        if found := next(filter(is_module_of_application, begins), ""):
            return found
    return ""
