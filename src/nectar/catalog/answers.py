"""What a catalog says when it is asked or given something, and what it is told of a result."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nectar.model.entry import Entry, Span


class Known(Struct, frozen=True):
    """The answer to a look-up: the entry, or, if there is none, how often its program has been looked up before."""

    entry: Entry | None
    lookups: int


class Kept(Struct, frozen=True):
    """The result is kept under its key."""

    entry: Entry


class NotKept(Struct, frozen=True):
    """The result is not kept, and why. The caller has it all the same."""

    reason: str


class Origin(Struct, frozen=True):
    """What is known of a result besides its value."""

    key: bytes
    program: bytes
    seconds: float
    made_from: Sequence[Entry]
    spans: tuple[Span, ...]
    recipe: bytes | None
    rebuildable: bool
    about: str
    replaces: bool
    made: float | None

    @property
    def subject(self) -> str:
        """What its manifest says that it is the result of."""
        from nectar.store.manifest import subject_of

        return subject_of(self.key, self.program, self.spans)
