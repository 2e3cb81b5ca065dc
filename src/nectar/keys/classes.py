"""Expander of classes: by body, with metaclass, bases and everything the class holds.

Left out unless reached code looks at it: name, module, docstring, annotations. Left out always: what Python keeps for
itself (caches, weak references, line numbers).
"""

from __future__ import annotations

import enum
import functools
import operator
import sys
import types
from typing import Any, Final

from nectar.keys import annotated
from nectar.keys.abstract import registered_with
from nectar.keys.expansion import Expansion, WalkContext, joined
from nectar.keys.features import HOLDS_CACHES, WITHOUT_CACHES, Features
from nectar.keys.library import expand_library_class
from nectar.keys.origin import origin_of_class
from nectar.keys.remembered import is_made_by_metaclass, without_empty
from nectar.keys.special_methods import in_its_role
from nectar.model.origin import APPLICATION
from nectar.model.refusal import Refusal

_KEPT_BY_PYTHON: Final = frozenset({
    "__dict__", "__weakref__", "__slotnames__", "__firstlineno__", "__static_attributes__",
    "__annotate__", "__annotate_func__", "__annotations_cache__", "__classdictcell__", "_abc_impl", "_abc_registry",
    "_abc_cache", "_abc_negative_cache", "_abc_negative_cache_version",
    "_hashable_values_", "_unhashable_values_", "_unhashable_values_map_",  # caches of enum
})  # fmt: skip
# What pydantic makes of the rest of a class, with addresses in it, or fills as it goes. Its validator has all of it.
_VALIDATOR: Final = "__pydantic_validator__"
_MADE_BY_PYDANTIC: Final = frozenset({
    "__pydantic_core_schema__", "__pydantic_decorators__", "__pydantic_serializer__", "__pydantic_setattr_handlers__",
    "__pydantic_parent_namespace__", "__signature__",
})  # fmt: skip
_OBSERVABLE: Final = {
    "__doc__": "docs",
    "__module__": "modules",
    "__qualname__": "qualnames",
    "__annotations__": "annotations",
}
_MATCHED_AS: Final = 1 << 5 | 1 << 6  # a sequence, a mapping
_SLOT: Final = types.MemberDescriptorType
_BY_ADDRESS: Final = frozenset({"__array_interface__", "__array_struct__", "__cuda_array_interface__"})


def expand_class(cls: type, walk: WalkContext) -> Expansion:
    """A class: what it is derived from and what it holds, by name."""
    origin = origin_of_class(cls)
    if origin is not APPLICATION:
        return expand_library_class(cls, origin, walk)
    space = type.__getattribute__(cls, "__dict__")
    held = {name: value for name, value in space.items() if _counts(name, value, cls, walk.observed)}
    made = [name for name, value in held.items() if is_made_by_metaclass(cls, name, value)]
    in_part = bool(made) and WITHOUT_CACHES in walk.observed
    if made:
        walk.observe(HOLDS_CACHES)
    if in_part:
        held |= {name: without_empty(held[name]) for name in made}
    if not _BY_ADDRESS.isdisjoint(space):
        reason = "hands out memory by its address, and nobody sees what lies there"
        walk.refuse(Refusal("global state", reason, walk.path()))
    names = list(held) if "order" in walk.observed else sorted(held)
    slots = sorted(name for name, value in space.items() if type(value) is _SLOT)
    identity = _identity(cls, walk.observed)
    bases = type.__getattribute__(cls, "__bases__")
    children: list[object] = [type(cls), *bases, *(_child(name, held[name], cls) for name in names)]
    labels = ["metaclass", *(f"base {base.__name__}" for base in bases), *names]
    registered = registered_with(cls)
    if registered:
        children.append(registered)
        labels.append("registered subclasses")
    if _is_struct(cls):
        children.append(_struct_of(cls))
        labels.append("fields")
    payload = joined(len(bases).to_bytes(4, "little"), *names, b"", *slots, b"", *identity)
    inherited = functools.reduce(operator.or_, (base.__flags__ for base in bases), 0)
    if matched := cls.__flags__ & ~inherited & _MATCHED_AS:  # by a match statement
        payload += joined(b"", matched.to_bytes(4, "little"))
    # of copies nobody knows whether they are still right
    return Expansion("class", payload, children, labels, still=_never if in_part else _Recheck(cls, registered))


def _is_struct(cls: Any) -> bool:
    """Whether a class is a struct of msgspec, which keeps defaults and options natively, and decodes by annotations."""
    core = sys.modules.get("msgspec._core")
    return core is not None and isinstance(cls, core.StructMeta)


def _struct_of(cls: Any) -> list[object]:
    config = cls.__struct_config__
    options = [[name, getattr(config, name)] for name in sorted(dir(config)) if not name.startswith("_")]
    factory = sys.modules["msgspec._core"].Factory
    defaults = [["made by", each.factory] if type(each) is factory else each for each in cls.__struct_defaults__]
    return [list(cls.__struct_fields__), list(cls.__struct_encode_fields__), options, defaults]


def _never() -> bool:
    return False


def _child(name: str, value: object, cls: type) -> object:
    return annotated.of_class(cls, value) if name == "__annotations__" else in_its_role(name, value)


def _identity(cls: type, observed: Features) -> list[str]:
    """The name of a class, as far as reached code looks at it. Texts of instances and errors contain it."""
    texts = "texts" in observed or "errors" in observed
    found = [cls.__name__] if texts or "names" in observed else []
    if texts or "qualnames" in observed:
        found.append(cls.__qualname__)
    if "modules" in observed or (texts and "types" in observed):
        found.append(str(cls.__module__))
    return found


def _counts(name: str, value: object, cls: type, observed: Features) -> bool:
    if name in _KEPT_BY_PYTHON or type(value) is _SLOT or (name in _MADE_BY_PYDANTIC and _VALIDATOR in vars(cls)):
        return False
    if name == "_value2member_map_":  # flags add combinations to it when they are first asked for
        return not issubclass(cls, enum.Flag)
    if name == "__annotations__" and getattr(cls, "_is_protocol", False):
        return bool(value)  # they are what isinstance() asks for, and leaves behind empty where there are none
    feature = _OBSERVABLE.get(name)
    return feature is None or feature in observed or (name == "__annotations__" and _is_struct(cls))


class _Recheck:
    """Whether a class holds the very same objects as before."""

    __slots__ = ("bases", "cls", "flags", "kind", "name", "names", "registered", "values")

    def __init__(self, cls: type, registered: frozenset[type]) -> None:
        self.cls = cls
        self.kind = type(cls)
        self.flags = cls.__flags__ & _MATCHED_AS
        self.name = cls.__name__, cls.__qualname__
        self.bases = cls.__bases__
        space = vars(cls)
        self.names = tuple(space)
        self.values = tuple(space.values())
        self.registered = registered

    def __call__(self) -> bool:
        cls, space = self.cls, vars(self.cls)
        return (
            type(cls) is self.kind
            and cls.__flags__ & _MATCHED_AS == self.flags
            and cls.__bases__ is self.bases
            and (cls.__name__, cls.__qualname__) == self.name
            and len(space) == len(self.values)
            and all(map(operator.is_, space.values(), self.values))
            and tuple(space) == self.names
            and ("_abc_impl" not in space or registered_with(cls) == self.registered)
        )
