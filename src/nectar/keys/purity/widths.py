"""Texts of code that say how wide something is, such as the "4h" of `series.resample("4h")`.

In: a function as it was resolved. Out: those of its texts that look like an hour of the day and that it does nothing
with but hand them to what takes widths. Law: a text that the function uses in any other way is not among them, nor is
one that is handed to a method of a name that the application may have given to something of its own.
"""

from __future__ import annotations

import re
import types
from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Final

from nectar.keys.bytecode.operation import CONST, Operation
from nectar.keys.purity.facts import ATTRIBUTE, OBJECT, Fact, Facts
from nectar.keys.purity.uses import Uses
from nectar.keys.resolve import Part, Resolution
from nectar.keys.texts import program_texts, version_of_program

_HOURS: Final = re.compile(r"\d{1,2}[hH]")
# By the names of methods of frames and columns: the keywords under which they take widths. The first argument of each
# is one as well, but of those that begin with a number.
_WIDTHS: Final = {
    "resample": {"rule"}, "rolling": {"window", "period", "offset"}, "asfreq": {"freq"}, "floor": {"freq"},
    "ceil": {"freq"}, "round": {"freq"}, "to_period": {"freq"},
}  # fmt: skip
_BY_KEYWORD: Final = {
    "shift": {"freq"}, "Grouper": {"freq"}, "group_by_dynamic": {"every", "period", "offset"},
    "upsample": {"every"},
}  # fmt: skip
_NO_WIDTHS: Final = frozenset({"origin", "start", "end", "loffset"})
_OF_PANDAS: Final = frozenset({"Timedelta", "to_timedelta", "to_offset"})


def widths_in(function: types.FunctionType, resolution: Resolution) -> frozenset[str]:
    """The texts that look like hours among the operands of a function and are nothing but widths there."""
    found = {each for each in resolution.operands if type(each) is str and _HOURS.fullmatch(each)}
    if not found:
        return frozenset()
    for uses in _uses_in(function, resolution):
        for text in {text for text in found if not _is_width(text, uses)}:
            found.discard(text)
    return frozenset(found)


def _uses_in(function: types.FunctionType, resolution: Resolution) -> Iterator[Uses]:
    facts: dict[int, Facts] = {}
    for part in resolution.parts:
        facts[id(part)] = Facts(part, facts.get(id(part.outer)))
        yield Uses(function, facts[id(part)])


def _is_width(text: str, uses: Uses) -> bool:
    """Whether a part of a function does nothing with a text but hand it to what takes a width."""
    values = [value for value in range(len(uses.part.template.kinds)) if _stands_for(value, text, uses.part)]
    return all(_takes_width(uses.facts, use, at) for value in values for use, at in uses.of(value))


def _stands_for(value: int, text: str, part: Part) -> bool:
    template = part.template
    if template.kinds[value] == CONST:
        return template.code.co_consts[template.data[value]] == text  # type: ignore[call-overload, no-any-return]
    known = part.known.get(value)
    return type(known) is str and known == text


def _takes_width(facts: Facts, use: Operation, at: int) -> bool:
    if use.name != "CALL" or not at:
        return False
    keywords: tuple[str, ...] = use.arg  # type: ignore[assignment]
    place = at - (len(use.operands) - len(keywords))
    return _is_for_width(facts.of(use.operands[0]), at if place < 0 else 0, keywords[place] if place >= 0 else "")


def _is_for_width(callee: Fact, position: int, keyword: str) -> bool:
    """Whether a callable takes a width there. position: counted from one, zero for arguments by keyword."""
    if callee.kind == OBJECT:
        package, _, _ = str(getattr(callee.root, "__module__", "")).partition(".")
        named = str(getattr(callee.root, "__name__", ""))
        return package == "pandas" and (keyword == "freq" or (position == 1 and named in _OF_PANDAS))
    if callee.kind != ATTRIBUTE or _may_be_own(callee.name, version_of_program()):
        return False
    if callee.name == "resample" and keyword:  # xarray takes the dimension for a keyword
        return keyword not in _NO_WIDTHS
    if callee.name in _BY_KEYWORD:
        return keyword in _BY_KEYWORD[callee.name]
    return callee.name in _WIDTHS and (position == 1 or keyword in _WIDTHS[callee.name])


@lru_cache(maxsize=256)
def _may_be_own(name: str, version: Hashable) -> bool:
    """Whether the application may have given the name of a method to something of its own."""
    given = re.compile(rf"\bdef\s+{name}\b|\b{name}\s*(?::[^=\n]*)?=(?!=)|['\"]{name}['\"]|\bas\s+{name}\b")
    return any(given.search(each.source) for each in program_texts(version))
