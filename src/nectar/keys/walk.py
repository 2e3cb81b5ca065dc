"""The walk: from a root object over everything it is made of, to canonical bytes.

In: a root and a look-up from type to expander. Out: a digest, the refusals met on the way, the features reached code
observes, and the rechecks that tell later whether anything changed. Depth-first, without recursion, so that deep
structures need no deep stack. Objects with identity are written once and referred to by their number afterwards;
values without identity are written wherever they stand. Sets are put in the order of their members' own digests.

Law: the bytes describe the object graph up to renaming of addresses, and nothing else.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from types import FunctionType
from typing import Any, Final, Protocol

import blake3
from msgspec.structs import replace

from nectar.errors import UnencodableError
from nectar.keys.atoms import ATOMS, in_unusual_order
from nectar.keys.expansion import Expander, Expansion, always, sized
from nectar.keys.features import MAKES_CATEGORIES, MOMENTS, NUMBERS, Features
from nectar.keys.held import ByExpanding
from nectar.keys.moments import text_for_now
from nectar.keys.origin import origin_of_class
from nectar.keys.patience import stop_if_over
from nectar.keys.scheme import digest_of
from nectar.model.origin import APPLICATION
from nectar.model.refusal import Refusal

FLUSH_AT: Final = 1 << 16
INLINE: Final = 64  # immutable tuples whose bytes are longer are represented by their digest
_SETTINGS: Final = "settings"  # the tag of what libraries keep for the process
_NODE, _END, _BACK, _SET = b"(", b")", b"@", b"{"
_CONTAINERS: Final = frozenset({"tuple", "list", "dict", "set", "frozenset"})
_OF_CATEGORIES: Final = {MAKES_CATEGORIES, NUMBERS}
_NO_MORE: Final = object()


class Observer(Protocol):
    """Told of every object the walk meets; traces are built this way."""

    def enter(self, value: object, label: str, expansion: Expansion) -> None:
        """An object with parts is met for the first time."""

    def leave(self) -> None:
        """All parts of the object entered last have been met."""

    def leaf(self, value: object, label: str, repeated: bool) -> None:
        """An atom, or an object met before, is met."""


class _Frame:
    __slots__ = ("children", "expansion", "label", "position", "value")

    def __init__(self, value: object, label: str, expansion: Expansion, children: Iterator[object]) -> None:
        self.value = value
        self.label = label
        self.expansion = expansion
        self.children = children
        self.position = -1

    def child_label(self) -> str:
        labels = self.expansion.labels
        return labels[self.position] if 0 <= self.position < len(labels) else f"[{self.position}]"


class Walk:
    """One traversal. Make a new one for every root."""

    def __init__(
        self,
        expander_for: Callable[[type], Expander],
        hasher: blake3.blake3,
        observed: Features | None = None,
        observer: Observer | None = None,
        closed: Callable[[object], bool] | None = None,
    ) -> None:
        self.observed = Features() if observed is None else observed
        self.noticed: set[str] = set()
        self.refusals: list[Refusal] = []
        self.rechecks: list[Callable[[], bool]] = []
        self.weight = 0
        self.examined: dict[tuple[int, bool], Any] = {}
        self._expander_for = expander_for
        self._hasher = hasher
        self._observer = observer
        self._closed = closed
        self._out = bytearray()
        self._stack: list[_Frame] = []
        self._seen: dict[int, int] = {}
        self._kept: list[object] = []  # alive while their ids are in use
        self._pure: dict[int, bytes | None] = {}
        self._nans: dict[int, int] = {}
        self._digests: dict[int, bytes] = {}
        self._ambiguous: dict[int, object] = {}  # numbers of objects only one of several equal members of a set reaches
        self._ties: list[object] = []  # the sets of equal members the walk is inside of
        self._above: Walk | None = None
        self.before: Walk | None = None  # the walk that this one continues; it keeps its objects alive
        self._by_number: dict[int, object] | None = None
        self._settled: set[tuple[int, int]] = set()
        self._excused: dict[int, list[Refusal]] = {}
        self._exposed: dict[int, object] = {}
        self.touched: set[str] = set()
        self.kinds: set[type] = set()  # of everything that was taken apart
        self.inputs: list[object] = []
        self.caches: list[Any] = []  # functions that remember their results
        self._parameters: list[tuple[str, ...]] = []
        self._keywords: set[str] = set()
        self._spreads = False
        self._tells_moments = MOMENTS in self.observed

    # what expanders ask for

    def observe(self, feature: str) -> None:
        """Reached code reads a feature that is otherwise left out."""
        self.noticed.add(feature)
        if feature in _OF_CATEGORIES and self.noticed >= _OF_CATEGORIES:
            reason = "makes categories and may look at their numbers, which each process gives anew"
            self.refuse(Refusal("categories", reason, self.path()))

    def refuse(self, refusal: Refusal) -> None:
        """Reached code cannot be cached."""
        if refusal not in self.refusals:
            self.refusals.append(refusal)

    def settle(self, user: object, value: object) -> None:
        """Whether user may use an impure object as it does has been judged."""
        self._settled.add((id(user), id(value)))

    def is_settled(self, value: object) -> bool:
        """Whether the way in which the walk came to an impure object has been judged."""
        return bool(self._stack) and (id(self._stack[-1].value), id(value)) in self._settled

    def at_root(self) -> bool:
        """Whether the walk has only just begun."""
        return not self._stack and len(self._seen) == 0

    def note_excused(self, function: object, refusals: list[Refusal]) -> None:
        """A function's refusals are excused only on the ways to it that have been judged: others may yet be met."""
        self._excused[id(function)] = refusals

    def at_key(self) -> bool:
        """Whether the walk is at a key of a dict, which is there to be looked up."""
        frame = self._stack[-1] if self._stack else None
        return frame is not None and frame.expansion.tag == "dict" and frame.position % 2 == 0

    def has_met(self, value: object) -> bool:
        """Whether the walk has come to an object with identity before, and holds it."""
        return id(value) in self._seen

    def within_library(self) -> bool:
        """Whether the object that the walk is taking apart, not counting containers, is an instance of a library."""
        inner = next((frame for frame in reversed(self._stack) if frame.expansion.tag not in _CONTAINERS), None)
        if inner is None or inner.expansion.tag != "instance":
            return False
        return origin_of_class(type(inner.value)) is not APPLICATION

    def expose(self, value: object) -> bool:
        """Reached code may look at the name and annotations of value; True the first time."""
        if id(value) in self._exposed:
            return False
        self._exposed[id(value)] = value
        return True

    def touch(self, library: str) -> None:
        """A library is reached, so that the settings it keeps count."""
        self.touched.add(library)

    def need(self, value: object) -> None:
        """An input is reached whose content is no part of the digest: whoever makes a key adds it."""
        self.inputs.append(value)

    def note_cache(self, cached: Any) -> None:
        """A function is reached that remembers its results."""
        self.caches.append(cached)

    def note_call_names(self, parameters: tuple[str, ...], keywords: frozenset[str], spreads: bool) -> None:
        """A function's parameters and the keywords its calls use: where they meet, names matter."""
        self._parameters.append(parameters)
        self._keywords |= keywords
        self._spreads = self._spreads or spreads

    def bytes_of(self, value: object) -> bytes:
        """A digest of value that depends on nothing outside it."""
        atom = self._atom_bytes(value)
        if atom is not None:
            return atom
        known = self._digests.get(id(value))
        if known is None:
            inner = Walk(self._expander_for, blake3.blake3(), self.observed, None, self._closed)
            inner._above = self
            inner._digests = self._digests
            inner._pure = self._pure
            inner._kept = self._kept
            inner.examined = self.examined
            known = self._digests[id(value)] = inner.run(value, "member of a set")
            self._kept.append(value)
            self.noticed |= inner.noticed
            self.kinds |= inner.kinds
            self.caches += inner.caches
        return known

    def continued(self, hasher: blake3.blake3, observed: frozenset[str]) -> Walk:
        """A walk that goes on where this one ended: what was met before is referred to by its number.

        This one stays as it is, and can be continued again. observed: what else is observed from here on.
        """
        walk = Walk(self._expander_for, hasher, self.observed.extended(observed), None, self._closed)
        walk._seen = self._seen.copy()
        walk._ambiguous = self._ambiguous.copy()
        walk._parameters = self._parameters.copy()
        walk._keywords = self._keywords.copy()
        walk._spreads = self._spreads
        walk.examined = self.examined.copy()  # what is examined from here on may change before the next time
        walk.before = self
        return walk

    def number_of(self, value: object) -> int | None:
        """Which of the objects with identity met so far this is; None also if a key does not tell which."""
        return None if (number := self._seen.get(id(value))) in self._ambiguous else number

    def numbered(self, number: int) -> object | None:
        """The object with identity that was met as the number-th."""
        if self._by_number is None:
            kept = self._kept if self.before is None else itertools.chain(self.before._kept, self._kept)
            self._by_number = {at: value for value in kept if (at := self._seen.get(id(value))) is not None}
        return self._by_number.get(number)

    # the traversal

    def run(self, root: object, label: str) -> bytes:
        """Walks over everything root is made of; returns the digest."""
        self.visit(root, label)
        return self.finish()

    def visit(self, root: object, label: str) -> None:
        """Walks over everything root is made of, after what was visited before."""
        self._meet(root, label)
        stack, observer = self._stack, self._observer
        while stack:
            frame = stack[-1]
            frame.position += 1
            child = next(frame.children, _NO_MORE)
            if child is _NO_MORE:
                stack.pop()
                self._out += _END
                if observer is not None:
                    observer.leave()
                continue
            atom = ATOMS.get(type(child))
            if atom is not None:
                self._out += atom(child)
                if child != child:  # NaN
                    self._out += self._number_of_nan(child)
                if observer is not None:
                    observer.leaf(child, frame.child_label(), repeated=False)
            else:
                self._meet(child, "" if observer is None else frame.child_label())
            if len(self._out) > FLUSH_AT:
                self._flush()

    def all_kinds(self) -> set[type]:
        """Classes of everything that was taken apart, by the walk that this one continues as well."""
        return self.kinds if self.before is None else self.before.all_kinds() | self.kinds

    def finish(self) -> bytes:
        """Returns the digest of all that was visited."""
        self._out += self._names_that_matter()
        self._flush()
        return self._hasher.digest()

    def _names_that_matter(self) -> bytes:
        """Parameters that some reached call could pass by keyword."""
        return b"".join(
            sized(b"%d.%d:%b" % (function, position, name.encode("utf-8", "surrogatepass")))
            for function, names in enumerate(self._parameters)
            for position, name in enumerate(names)
            if self._spreads or name in self._keywords
        )

    def path(self) -> str:
        """Where the walk stands, for people."""
        parts = [self._stack[0].label, *(frame.child_label() for frame in self._stack)] if self._stack else []
        shown = [*parts[:5], f"... {len(parts) - 10} more ...", *parts[-5:]] if len(parts) > 12 else parts
        return " -> ".join(shown) or "the value itself"

    def _number_of_nan(self, value: object) -> bytes:  # one that is looked for in a list is found if it is the same
        self._kept.append(value)
        return self._nans.setdefault(id(value), len(self._nans)).to_bytes(8, "little")

    def _meet(self, value: object, label: str) -> None:
        pure = self._atom_bytes(value)
        if pure is not None:
            self._out += pure
            if self._tells_moments and not self._is_of_settings():
                self._refuse_moments((value,), self._stack[-1].expansion.widths if self._stack else frozenset())
            if self._observer:
                self._observer.leaf(value, label, repeated=False)
            return
        number = self._seen.get(id(value))
        if number is not None:
            self._refer_back(value, label, number)
            return
        if self._above is not None:
            self._refuse_to_close_a_cycle(value)
        self._open(value, label, self._expand(value))

    def _is_of_settings(self) -> bool:
        """Whether what is met is what a library keeps for the process: no function hands it on as a moment."""
        return any(frame.expansion.tag == _SETTINGS for frame in self._stack)

    def _refer_back(self, value: object, label: str, number: int) -> None:
        tie = self._ambiguous.get(number)
        if tie is not None and not any(tie is each for each in self._ties):
            why = "it is one of several equal members of a set, and used elsewhere too"
            raise UnencodableError(describe_type(value), self.path(), why)
        if self._excused and not self.is_settled(value):
            for refusal in self._excused.get(id(value), ()):
                self.refuse(replace(refusal, excuse=None))
        if type(value) is FunctionType and any(frame.value is value for frame in self._stack):
            self.touched.add("recursion")  # how deep it may go decides whether it gives a result
        self._ambiguous.pop(number, None)  # reached from several of them, so it stays the same if they are exchanged
        self._out += _BACK + number.to_bytes(8, "little")
        if self._observer:
            self._observer.leaf(value, label, repeated=True)

    def _refuse_to_close_a_cycle(self, value: object) -> None:
        above = self._above
        while above is not None:
            if any(frame.value is value and frame.expansion.unordered for frame in above._stack):
                why = "it is a set that is reached from its own members"
                raise UnencodableError(describe_type(value), self.path(), why)
            above = above._above

    def _expand(self, value: object) -> Expansion:
        kind = type(value)
        self.kinds.add(kind)
        expander = self._expander_for(kind)
        told = len(self.refusals)
        try:
            expansion = expander(value, self)
        except (UnencodableError, RecursionError, MemoryError):
            raise
        except Exception as error:
            said = f"taking it apart raised {_say(error)}"
            raise UnencodableError(describe_type(value), self.path(), said) from error
        if self._closed is not None and self._closed(value):
            del self.refusals[told:]
        still = expansion.still
        if still is not always:
            self.rechecks.append(still or ByExpanding(expander, value, expansion._replace(texts=()), self))
        bulk = expansion.hashed
        if expansion.buffers:
            bulk += sum(len(memoryview(buffer)) for buffer in expansion.buffers)
        self.weight += len(expansion.children) + bulk // 64
        return expansion

    def _open(self, value: object, label: str, expansion: Expansion) -> None:
        if self._tells_moments and expansion.tag != _SETTINGS and not self._is_of_settings():
            texts = (set(each()) for each in expansion.texts)
            self._refuse_moments(itertools.chain(expansion.children or _members(value), *texts), expansion.widths)
        if not expansion.by_value:
            self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        if not len(self._kept) & 511:
            stop_if_over(self.path)
        self._out += _opening(expansion.tag) + sized(expansion.payload)
        self._out += len(expansion.buffers).to_bytes(4, "little")
        for buffer in expansion.buffers:
            self._absorb(buffer)
        if self._closed is not None and self._closed(value):
            expansion = expansion._replace(children=(), labels=(), unordered=False)
        if self._observer is not None:
            self._observer.enter(value, label, expansion)
        frame = _Frame(value, label, expansion, iter(expansion.children))
        self._stack.append(frame)
        if expansion.unordered:
            frame.children = self._in_order(frame)

    def _refuse_moments(self, values: Iterable[object], widths: frozenset[str]) -> None:
        """Refuses texts that reached code may take for the time it is."""
        text = text_for_now(values, widths)
        if text is not None:
            self.refuse(Refusal("clock", f"holds {text!r}, which libraries take for what time it is", self.path()))

    def _absorb(self, buffer: bytes | bytearray | memoryview) -> None:
        view = memoryview(buffer).cast("B") if not isinstance(buffer, bytes) else buffer
        self._out += len(view).to_bytes(8, "little")
        self._flush(len(view))
        self._hasher.update(view)

    def _flush(self, following: int = 0) -> None:
        if len(self._out) + following > FLUSH_AT:
            stop_if_over(self.path, following)
        self._hasher.update(self._out)
        self._out = bytearray()

    def _in_order(self, frame: _Frame) -> Iterator[object]:
        """The members of a set by their own digests; members that cannot be told apart may not be named elsewhere."""
        members = [
            (self.bytes_of(child), self._seen.get(id(child), len(self._seen)), child)
            for child in frame.expansion.children
        ]
        members.sort(key=lambda member: member[:2])
        self._out += _SET
        return self._members(members)

    def _members(self, members: list[tuple[bytes, int, object]]) -> Iterator[object]:
        for digest, group in itertools.groupby(members, key=lambda member: member[0]):
            tied = [child for _, _, child in group]
            tie = (digest, object())
            self._ties.append(tie)
            for child in tied:
                start = len(self._seen)
                yield child
                if len(tied) > 1:
                    self._ambiguous.update(dict.fromkeys(range(start, len(self._seen)), tie))
            self._ties.remove(tie)

    # immutable values without identity

    def _atom_bytes(self, value: object) -> bytes | None:
        kind = type(value)
        atom = ATOMS.get(kind)
        if atom is not None:
            return atom(value)
        if kind is tuple or kind is frozenset:
            return self._pure_bytes(value)  # type: ignore[arg-type]
        return None

    def _pure_bytes(self, value: tuple[object, ...] | frozenset[object]) -> bytes | None:
        """Bytes of a tuple or frozenset of immutable values, by content; None if anything in it has identity."""
        pure = self._pure
        pending: list[tuple[object, ...] | frozenset[object]] = [value]
        while pending:
            current = pending[-1]
            if id(current) in pure:
                pending.pop()
                continue
            parts: list[bytes] | None = []
            waiting = len(pending)
            for child in current:
                kind = type(child)
                atom = ATOMS.get(kind)
                if atom is not None and child == child:  # a NaN has identity
                    parts.append(atom(child))  # type: ignore[union-attr]
                elif kind is not tuple and kind is not frozenset:
                    parts = None
                    break
                elif id(child) not in pure:
                    pending.append(child)  # type: ignore[arg-type]
                else:
                    known = pure[id(child)]
                    if known is None:
                        parts = None
                        break
                    parts.append(known)  # type: ignore[union-attr]
            if parts is None:
                del pending[waiting:]
            elif len(pending) > waiting:
                continue
            pure[id(current)] = None if parts is None else _compact(current, parts)
            self._kept.append(current)
            pending.pop()
        return pure[id(value)]


def _members(value: object) -> Iterable[object]:
    """What lies in a list or dict that was taken apart as one block."""
    return (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()


@lru_cache(maxsize=256)
def _opening(tag: str) -> bytes:
    return _NODE + sized(tag.encode())


def _compact(value: Iterable[object], parts: list[bytes]) -> bytes:
    in_order = type(value) is tuple or in_unusual_order(value)
    tag = b"t" if type(value) is tuple else b"o" if in_order else b"z"
    data = tag + len(parts).to_bytes(8, "little") + b"".join(parts if in_order else sorted(parts))
    return data if len(data) <= INLINE else b"#" + digest_of(data)


def describe_type(value: object) -> str:
    """The type of an object, for people."""
    kind = type(value)
    return f"an object of type {getattr(kind, '__module__', '?')}.{getattr(kind, '__qualname__', kind)}"


def _say(error: Exception) -> str:
    with suppress(Exception):
        return f"{type(error).__name__}: {error}"[:200]
    return type(error).__name__
