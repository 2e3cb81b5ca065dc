"""Expander of objects that nobody has registered an expander for.

An instance is its class, its attributes by name, its slots, and, where its class extends a built-in type, what that
type holds. Objects that keep their state in native code are asked how they would be pickled. Methods of the object
that could lie about it are not called: what is read is what lies in memory.
"""

from __future__ import annotations

import enum
import functools
import types
import weakref
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from nectar.errors import UnencodableError
from nectar.keys.atoms import ATOMS
from nectar.keys.expansion import Expander, Expansion, WalkContext, joined
from nectar.keys.features import HOLDS_CACHES, WITHOUT_CACHES
from nectar.keys.library import named_library_object
from nectar.keys.origin import origin_of_class
from nectar.keys.remembered import remembers, rest_of
from nectar.keys.values import containers
from nectar.keys.values.opaque import may_lack_state
from nectar.keys.values.runtime import exception_parts
from nectar.keys.weak import reference_in
from nectar.model.origin import APPLICATION

_POINTER: Final = 8
_BOOST: Final = "Boost.Python"  # the module of the metaclass; what of an object is pickled is left to each class
_CACHED_HASH: Final = "_attrs_cached_hash"  # which attrs keeps in instances, another one in every process
_HASHES: Final = frozenset(
    {_CACHED_HASH, "_hash", "_hashvalue", "_cached_hash", "_hash_cache"}
)  # all but the first: where libraries do so
_SET_BY_ENUM: Final = frozenset({"_value_", "_name_", "__objclass__", "_sort_order_", "_inverted_"})

# How to read what a built-in type holds, without asking methods that a subclass may have replaced.
_HELD: Final[dict[type, Callable[[Any], Expansion]]] = {
    int: lambda value: Expansion("int", b"", (int.__int__(value),)),
    float: lambda value: Expansion("float", b"", (float.__float__(value),)),
    complex: lambda value: Expansion("complex", b"", (complex.__pos__(value),)),
    str: lambda value: Expansion("str", b"", (str.__str__(value),)),
    bytes: lambda value: Expansion("bytes", b"", (bytes(memoryview(value)),)),
    bytearray: lambda value: Expansion("bytearray", b"", (bytes(memoryview(value)),)),
    tuple: lambda value: Expansion("tuple", b"", tuple(tuple.__iter__(value))),
    list: lambda value: containers.sequence_parts("list", tuple(list.__iter__(value))),
    dict: lambda value: containers.mapping_parts("dict", tuple(dict.keys(value)), tuple(dict.values(value))),
    set: lambda value: Expansion("set", b"", (frozenset(set.__iter__(value)),)),
    frozenset: lambda value: Expansion("frozenset", b"", (frozenset(frozenset.__iter__(value)),)),
    BaseException: lambda value: _exception(value),
    types.ModuleType: lambda value: Expansion("module"),
    object: lambda value: Expansion("object"),
}


def _exception(value: BaseException) -> Expansion:
    names, parts = exception_parts(value)
    return Expansion("exception", joined(*names), parts, names)


class Layout(NamedTuple):
    """How instances of a class keep their state.

    held_by: the base that keeps state in native code, and how to read it; None if there is no way to read it.
    """

    held_by: Callable[[Any], Expansion] | None
    base_expander: Expander | None
    slots: tuple[tuple[str, Any], ...]


_layouts: dict[int, tuple[weakref.ref[type], Layout]] = {}  # slots of a class hold it all the same


def layout_of(cls: type, expander_for: Callable[[type], Expander | None]) -> Layout:
    """How instances of cls keep their state; remembered."""
    known = _layouts.get(id(cls))
    if known is None:
        known = _layouts[id(cls)] = (reference_in(_layouts, cls), _find_layout(cls, expander_for))
    return known[1]


def forget_layouts() -> None:
    """To be called when new expanders are registered."""
    _layouts.clear()


def _find_layout(cls: type, expander_for: Callable[[type], Expander | None]) -> Layout:
    slots: list[tuple[str, Any]] = []
    for base in cls.__mro__:
        held = _HELD.get(base)
        if held is not None:
            return Layout(held, None, tuple(slots))
        registered = expander_for(base)
        if registered is not None:
            return Layout(None, registered, tuple(slots))
        own = [(name, value) for name, value in vars(base).items() if type(value) is types.MemberDescriptorType]
        if not _is_explained(base, len(own)):
            return Layout(None, None, tuple(slots))
        slots.extend((f"{base.__name__}.{name}", value) for name, value in sorted(own) if name != _CACHED_HASH)
    return Layout(_HELD[object], None, tuple(slots))


def _is_explained(cls: type, slots: int) -> bool:
    """Whether slots, a dict and weak references account for all the memory a class adds to its base."""
    base = cls.__base__
    if base is None or len(cls.__bases__) > 1:
        base = max(cls.__bases__, key=lambda each: each.__basicsize__) if cls.__bases__ else object
    added = cls.__basicsize__ - base.__basicsize__ - _POINTER * slots
    own = vars(cls)
    optional = ("__dict__" in own) + ("__weakref__" in own)
    return 0 <= added <= _POINTER * optional


def make_expander(expander_for: Callable[[type], Expander | None]) -> Expander:
    """The expander of instances, given how to find the expander of a base class."""

    def expand_instance(value: object, walk: WalkContext) -> Expansion:
        cls = type(value)
        if issubclass(cls, enum.Enum):
            return _expand_member(value)  # type: ignore[arg-type]
        if issubclass(cls, types.ModuleType):
            from nectar.keys.library import expand_module

            return expand_module(value, walk)  # type: ignore[arg-type]
        layout = layout_of(cls, expander_for)
        if layout.base_expander is not None:
            return _extend(value, cls, layout, layout.base_expander(value, walk), walk)
        if layout.held_by is not None:
            return _extend(value, cls, layout, layout.held_by(value), walk)
        return named_library_object(value, walk) or _reduce(value, cls, walk)

    return expand_instance


def _extend(value: object, cls: type, layout: Layout, held: Expansion, walk: WalkContext) -> Expansion:
    """What the built-in base holds, and beside it the class, the attributes and the slots."""
    attributes = {} if held.attributes else _attributes(value)
    if remembers(cls, attributes):
        walk.observe(HOLDS_CACHES)
        if WITHOUT_CACHES in walk.observed:
            attributes = rest_of(cls, attributes)
    names = list(attributes) if "order" in walk.observed else sorted(attributes)
    filled = [(name, slot.__get__(value, cls)) for name, slot in layout.slots if _is_set(slot, value, cls)]
    slots = [(name, part) for name, part in filled if not _is_hash(name.rpartition(".")[2], part, cls)]
    children = [cls, *held.children, *(attributes[name] for name in names), *(content for _, content in slots)]
    held_labels = list(held.labels) + [f"[{at}]" for at in range(len(held.labels), len(held.children))]
    labels = ["class", *held_labels, *(f".{name}" for name in names), *(name for name, _ in slots)]
    payload = joined(held.tag, held.payload, *names, b"", *(name for name, _ in slots))
    found = Expansion("instance", payload, children, labels, held.buffers, hashed=held.hashed, texts=held.texts)
    if held.attributes and held.still is not None and not slots:
        return found._replace(still=held.still)
    unfilled = _cached_properties(cls) - attributes.keys()
    if unfilled and not slots and layout.held_by is _HELD[object]:
        return found._replace(still=_UnlessFilled(value, attributes, unfilled))
    return found


def _cached_properties(cls: type) -> frozenset[str]:
    return frozenset(
        name for base in cls.__mro__ for name, each in vars(base).items() if type(each) is functools.cached_property
    )


class _UnlessFilled:
    """Rechecks the attributes of an object. Cached properties that were filled since follow from the others."""

    __slots__ = ("filled", "then", "value")

    def __init__(self, value: object, attributes: dict[str, object], unfilled: frozenset[str]) -> None:
        self.value = value
        self.then = dict(attributes)
        self.filled = unfilled

    def __call__(self) -> bool:
        now = {name: part for name, part in _attributes(self.value).items() if name not in self.filled}
        return now.keys() == self.then.keys() and all(_is_same(now[name], part) for name, part in self.then.items())


def _is_same(now: object, then: object) -> bool:
    atom = ATOMS.get(type(now))
    return now is then or (atom is not None and type(now) is type(then) and atom(now) == atom(then))


def _attributes(value: object) -> dict[str, object]:
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    if not isinstance(found, dict) or not all(type(name) is str for name in found):
        raise UnencodableError(
            f"an object of type {type(value).__qualname__}", "its attributes", "not all names are strings"
        )
    hashes = [name for name, part in found.items() if _is_hash(name, part, type(value))]
    return {name: part for name, part in found.items() if name not in hashes} if hashes else found


def _is_hash(name: str, part: object, cls: type) -> bool:
    """Whether this is where an object keeps its hash, which is another one in every process."""
    if name not in _HASHES:
        return False
    if name == _CACHED_HASH:
        return True
    hashing: Any = cls.__hash__
    is_own = type(part) is int and type(hashing) is types.FunctionType and name in hashing.__code__.co_names
    return is_own and origin_of_class(cls) is not APPLICATION


def _is_set(slot: Any, value: object, cls: type) -> bool:
    try:
        slot.__get__(value, cls)
    except AttributeError:
        return False
    return True


def _expand_member(value: enum.Enum) -> Expansion:
    """A member of an enumeration: its class, name and value, and what the class gave it beside."""
    own = {name: part for name, part in vars(value).items() if name not in _SET_BY_ENUM}
    names = sorted(own)
    payload = joined(str(value._name_), *names)
    return Expansion(
        "enum member", payload, [type(value), value._value_, *(own[name] for name in names)], ["class", "value", *names]
    )


def _reduce(value: object, cls: type, walk: WalkContext) -> Expansion:
    """An object with state in native code: what pickle would keep of it."""
    if type(cls).__module__ == _BOOST:
        reason = "it keeps its state in native code, and its pickle may leave some of it out"
        raise UnencodableError(f"an object of type {cls.__module__}.{cls.__qualname__}", walk.path(), reason)
    try:
        reduced = value.__reduce_ex__(4)
    except Exception as error:
        raise UnencodableError(
            f"an object of type {cls.__module__}.{cls.__qualname__}",
            walk.path(),
            f"it keeps its state in native code and cannot be pickled ({error})",
        ) from error
    if isinstance(reduced, str):
        return Expansion("global", joined(str(getattr(value, "__module__", "")), reduced), (cls,), ("class",))
    if may_lack_state(cls, reduced):
        raise UnencodableError(
            f"an object of type {cls.__module__}.{cls.__qualname__}",
            walk.path(),
            "it keeps its state in native code, and what pickle shows of it may be a part only",
        )
    function, arguments, *rest = reduced
    state, items, pairs = (*rest, None, None, None)[:3]
    children = [cls, function, arguments, state, list(items or ()), [list(pair) for pair in pairs or ()]]
    labels = ["class", "made by", "arguments", "state", "items", "pairs"]
    if origin_of_class(cls) is APPLICATION and (attributes := _attributes(value)):  # which dates, for one, leave out
        return Expansion("pickled", b"", [*children, attributes], [*labels, "attributes"])
    return Expansion("pickled", b"", children, labels)
