"""Why a result cannot be opened: what is wrong with it, or that it is not there."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

What = Literal["manifest", "missing", "length", "ends", "checksum", "unreadable"]


class Problem(Struct, frozen=True):
    """What is wrong with a result, for people, and with which part of it."""

    what: What
    part: str
    reason: str


class Gone(Struct, frozen=True):
    """There is no such result: it was evicted, or never published."""

    location: str
    reason: str = "it is not in the store"


class Damaged(Struct, frozen=True):
    """The result is there, but not as it was written."""

    reason: str
    part: str
