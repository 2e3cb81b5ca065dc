"""Expander of classes: by body, with metaclass, bases and everything the class holds.

Left out unless reached code looks at it: name, module, docstring, annotations. Left out always: what Python keeps for
itself (caches, weak references, line numbers).
"""

from __future__ import annotations

import operator
import types
from typing import Final

from nectar.keys.expansion import Expansion, WalkContext, joined
from nectar.keys.functions import ROLES, SpecialMethod
from nectar.keys.library import expand_library_class
from nectar.keys.origin import origin_of_class
from nectar.model.origin import APPLICATION

_KEPT_BY_PYTHON: Final = frozenset({
    "__dict__", "__weakref__", "__abstractmethods__", "__slotnames__", "__firstlineno__", "__static_attributes__",
    "__annotate__", "__annotate_func__", "__annotations_cache__", "__classdictcell__", "_abc_impl", "_abc_registry",
    "_abc_cache", "_abc_negative_cache", "_abc_negative_cache_version",
    "_value2member_map_", "_hashable_values_", "_unhashable_values_", "_unhashable_values_map_",  # caches of enum
})  # fmt: skip
_OBSERVABLE: Final = {
    "__doc__": "docs",
    "__module__": "modules",
    "__qualname__": "qualnames",
    "__annotations__": "annotations",
}
_SLOT: Final = types.MemberDescriptorType


def expand_class(cls: type, walk: WalkContext) -> Expansion:
    """A class: what it is derived from and what it holds, by name."""
    origin = origin_of_class(cls)
    if origin is not APPLICATION:
        return expand_library_class(cls, origin, walk)
    space = type.__getattribute__(cls, "__dict__")
    held = {name: value for name, value in space.items() if _counts(name, value, walk.observed)}
    names = sorted(held)
    slots = sorted(name for name, value in space.items() if type(value) is _SLOT)
    identity = [cls.__name__] if "names" in walk.observed else []
    if "qualnames" in walk.observed:
        identity.append(cls.__qualname__)
    bases = type.__getattribute__(cls, "__bases__")
    children: list[object] = [type(cls), *bases, *(_member(name, held[name]) for name in names)]
    labels = ["metaclass", *(f"base {base.__name__}" for base in bases), *names]
    registered = _registered(cls, space)
    if registered:
        children.append(registered)
        labels.append("registered subclasses")
    payload = joined(len(bases).to_bytes(4, "little"), *names, b"", *slots, b"", *identity)
    return Expansion("class", payload, children, labels, still=_Recheck(cls, registered))


def _member(name: str, value: object) -> object:
    role = ROLES.get(name)
    return value if role is None or type(value) is not types.FunctionType else SpecialMethod(value, role)


def _counts(name: str, value: object, observed: frozenset[str]) -> bool:
    if name in _KEPT_BY_PYTHON or type(value) is _SLOT:
        return False
    feature = _OBSERVABLE.get(name)
    return feature is None or feature in observed


def _registered(cls: type, space: types.MappingProxyType[str, object]) -> frozenset[type]:
    """Classes that were registered with an abstract base class by hand."""
    if "_abc_impl" not in space:
        return frozenset()
    from _abc import _get_dump  # type: ignore[import-not-found]

    return frozenset(found for reference in _get_dump(cls)[0] if (found := reference()) is not None)


class _Recheck:
    """Whether a class holds the very same objects as before."""

    __slots__ = ("bases", "cls", "kind", "names", "registered", "values")

    def __init__(self, cls: type, registered: frozenset[type]) -> None:
        self.cls = cls
        self.kind = type(cls)
        self.bases = cls.__bases__
        space = vars(cls)
        self.names = tuple(space)
        self.values = tuple(space.values())
        self.registered = registered

    def __call__(self) -> bool:
        cls, space = self.cls, vars(self.cls)
        return (
            type(cls) is self.kind
            and cls.__bases__ is self.bases
            and len(space) == len(self.values)
            and all(map(operator.is_, space.values(), self.values))
            and tuple(space) == self.names
            and ("_abc_impl" not in space or _registered(cls, space) == self.registered)
        )
