"""Texts that stand for a moment only a clock can tell: "now", "today", a time of day, a weekday, a day without a year.

Pandas, numpy and dateutil take such texts wherever they take dates. In: values that a walk meets. Out: the first such
text among them, or None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

_HALF: Final = r"[ap]\.?m\.?"
_ZONE: Final = r"(z|(?-i:[A-Z]{3,5})|[+-]\d{2}(:?\d{2})?)"
_TIME: Final = rf"\d{{1,2}}(:\d{{2}}(:\d{{2}}([.,]\d+)?)?|h\d{{0,2}})({_HALF})?{_ZONE}?"
_MONTH: Final = (
    r"(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?"
    r"|dec(ember)?)\.?"
)
_WEEKDAY: Final = r"(mon|tues?|wed(nes)?|thu(rs?)?|fri|sat(ur)?|sun)(day)?\.?"
_NUMBER: Final = rf"\d{{1,2}}(st|nd|rd|th|\.|{_HALF})?"
_PART: Final = rf"({_TIME}|{_MONTH}|{_WEEKDAY}|{_NUMBER}|{_HALF}|{_ZONE}|at|of)"
_TELLING: Final = rf"(.*(?<![+-])\b({_TIME}|{_MONTH}|{_WEEKDAY})|\d{{1,2}}\s*({_HALF})?$)"  # a zone alone is any word
_NOW: Final = rf"now|today|tomorrow|yesterday|(?={_TELLING}){_PART}([\s,]+{_PART})*"
_LONGEST: Final = 40
WITH_YEAR: Final = (
    r"^\d{4}|[^\d+\-.,]\d{4}|\d[\-.]\d{1,2}[\-.]\d{4}"  # finds no text for now, in any engine's expressions
)


def text_for_now(values: Iterable[object], widths: frozenset[str] = frozenset()) -> str | None:
    """The first text among values, and in tuples and sets of them, that means something else tomorrow.

    widths: texts that say how wide something is, where they are among the values themselves.
    """
    for value in values:
        kind = type(value)
        if kind is str:
            if _is_for_now(value) and value not in widths:  # type: ignore[arg-type]
                return value  # type: ignore[return-value]
        elif kind is bytes:
            found = text_for_now((value.decode(errors="replace"),))  # type: ignore[attr-defined]
            if found is not None:
                return found
        elif kind is tuple or kind is frozenset:
            found = text_for_now(value)  # type: ignore[arg-type]
            if found is not None:
                return found
    return None


def _is_for_now(text: str) -> bool:
    if len(text) > _LONGEST or _with_year().search(
        text
    ):  # the quick way for most dates, of which there may be millions
        return False
    return _for_now().fullmatch(text.strip()) is not None


@cache
def _with_year() -> re.Pattern[str]:
    return re.compile(WITH_YEAR)


@cache
def _for_now() -> re.Pattern[str]:
    """Compiled when a text is asked about: that takes a while, and many programs hold none."""
    return re.compile(_NOW, re.IGNORECASE)
