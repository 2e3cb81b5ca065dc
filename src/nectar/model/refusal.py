"""Refusal: one reason why a function cannot be cached, with the place in the code."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

ITEM: Final = "[]"
TEMPORARY, FILE = "temporary", "file"  # what is seen by whoever watches: making temporary files, using files


class Excuse(Struct, frozen=True):
    """What would make a reading fine: that it is about a declared input, handed over as a parameter.

    steps: from the parameter to what is read: names of attributes, and ITEM for any item of a container.
    """

    parameter: str
    steps: tuple[str, ...] = ()


class Refusal(Struct, frozen=True):
    """Why a function cannot be cached.

    kind: a short stable word for programs ("clock", "file", "random", "mutation", ...). reason: a sentence part for
    people, such as "calls time.time(), which reads the clock". place: function and line, such as "clean (etl.py:12)".
    seen: what whoever watches the call sees of it, if it is seen in whole.
    """

    kind: str
    reason: str
    place: str
    excuse: Excuse | None = None
    seen: str = ""

    def __str__(self) -> str:
        hint = f" (hand it {self.excuse.parameter} as a nectar.File to declare the input)" if self.excuse else ""
        return f"{self.place} {self.reason}{hint}"
