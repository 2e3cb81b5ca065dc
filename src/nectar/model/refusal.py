"""Refusal: one reason why a function cannot be cached, with the place in the code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a function cannot be cached.

    kind: a short stable word for programs ("clock", "file", "random", "mutation", ...). reason: a sentence part for
    people, such as "calls time.time(), which reads the clock". place: function and line, such as "clean (etl.py:12)".
    """

    kind: str
    reason: str
    place: str

    def __str__(self) -> str:
        return f"{self.place} {self.reason}"
