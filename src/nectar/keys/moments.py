"""Texts that stand for a moment only a clock can tell: "now", "today", a time of day, a day without a year.

Pandas, numpy and dateutil take such texts wherever they take dates. In: values that a walk meets. Out: the first such
text among them, or None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_TIME: Final = r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s*([ap]\.?m\.?)?"
_MONTH: Final = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_NOW: Final = re.compile(rf"now|today|{_TIME}|{_MONTH}( \d{{1,2}})?|\d{{1,2}}\.? {_MONTH}", re.IGNORECASE)
_LONGEST: Final = 20


def text_for_now(values: Iterable[object]) -> str | None:
    """The first text among values, and in tuples and sets of them, that means something else tomorrow."""
    for value in values:
        kind = type(value)
        if kind is str:
            if len(value) <= _LONGEST and _NOW.fullmatch(value.strip()):  # type: ignore[arg-type, attr-defined]
                return value  # type: ignore[return-value]
        elif kind is tuple or kind is frozenset:
            found = text_for_now(value)  # type: ignore[arg-type]
            if found is not None:
                return found
    return None
