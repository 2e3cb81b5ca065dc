"""What an expander makes of one object: its kind, its own content, and the objects it is made of.

Expanders come in as plain functions `expand(value, walk) -> Expansion`; the walk (walk.py) turns expansions into
canonical bytes, traces and rechecks. The law: two objects that a program can tell apart have different expansions,
after the same has been said of their children.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from nectar.keys.features import Features
    from nectar.model.refusal import Refusal

Buffer = bytes | bytearray | memoryview


def always() -> bool:
    """The recheck of objects that cannot change."""
    return True


class Expansion(NamedTuple):
    """One object taken apart.

    tag: the kind of node. payload: its own content. buffers: bulk content, hashed without a copy.
    children: what it is made of, in an order that is the same in every process. labels: one per child, for people
    only, never hashed. unordered: the children are a set. by_value: equal content is the same object, so no
    back-reference is made (only for immutable objects without identity). still: a cheap recheck that tells whether
    expanding again would give the same payload, buffers and the very same children; None means: expand again and
    compare; `always` for immutable objects. hashed: how many bytes were hashed to make the payload. attributes:
    whether those of the object are among the children already. texts: give the texts that are in the
    payload as bulk, without those that name a year (moments.py) where that is quicker. widths: children that are
    texts and look like moments, but are not used as such.
    """

    tag: str
    payload: bytes = b""
    children: Sequence[object] = ()
    labels: Sequence[str] = ()
    buffers: tuple[Buffer, ...] = ()
    unordered: bool = False
    by_value: bool = False
    still: Callable[[], bool] | None = None
    hashed: int = 0
    attributes: bool = False
    texts: tuple[Callable[[], Iterable[object]], ...] = ()
    widths: frozenset[str] = frozenset()


class WalkContext(Protocol):
    """What an expander may ask of the walk it takes part in."""

    observed: Features
    examined: dict[tuple[int, bool], Any]  # reports about functions, see purity/analysis.py

    def observe(self, feature: str) -> None:
        """Says that reached code reads a feature (such as "names") that is otherwise left out."""

    def refuse(self, refusal: Refusal) -> None:
        """Says that reached code cannot be cached, and why."""

    def settle(self, user: object, value: object) -> None:
        """Says that it has been judged whether user may use an impure object as it does."""

    def is_settled(self, value: object) -> bool:
        """Whether the way in which the walk came to an impure object has been judged."""

    def at_root(self) -> bool:
        """Whether the walk has only just begun."""

    def note_excused(self, function: object, refusals: list[Refusal]) -> None:
        """Says that a function's refusals are excused only on the ways to it that have been judged."""

    def at_key(self) -> bool:
        """Whether the walk is at a key of a dict, which is there to be looked up."""

    def has_met(self, value: object) -> bool:
        """Whether the walk has come to an object with identity before, and holds it."""

    def within_library(self) -> bool:
        """Whether the walk is taking an instance of a class of a library apart, or containers in one."""

    def expose(self, value: object) -> bool:
        """Says that reached code may look at the name and annotations of value; True the first time."""

    def note_call_names(self, parameters: tuple[str, ...], keywords: frozenset[str], spreads: bool) -> None:
        """Tells a function's parameters and the keywords its calls use."""

    def touch(self, library: str) -> None:
        """Says that a library is reached, so that the settings it keeps count."""

    def note_cache(self, cached: Any) -> None:
        """Says that a function is reached that remembers its results."""

    def need(self, value: object) -> None:
        """Says that an input is reached whose content is added by whoever makes a key."""

    def bytes_of(self, value: object) -> bytes:
        """A context-free digest of value, to order things that have no order of their own."""

    def path(self) -> str:
        """Where the walk stands, for people."""


Expander = Callable[[Any, WalkContext], Expansion]


def sized(data: bytes) -> bytes:
    """Data with its length in front."""
    return len(data).to_bytes(8, "little") + data


def joined(*parts: bytes | str) -> bytes:
    """Parts with their lengths, so that no two lists of parts give the same bytes."""
    out: list[bytes] = []
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        out += len(data).to_bytes(8, "little"), data
    return b"".join(out)
