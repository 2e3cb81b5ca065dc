"""Whether what comes back from a pickle is what went in.

In: an object. Out: False if it comes back as it was for certain; True if code that pickle calls has a say in it, such
as a `__getstate__` that leaves something out or a `__new__` that converts what it is given. Classes of the application
are doubted, and those of libraries that pickle in a way of their own, but for the well-known ones.
"""

from __future__ import annotations

import copyreg
import dataclasses
import enum
import types
from typing import TYPE_CHECKING, Any, Final

from nectar.keys.origin import origin_of_class
from nectar.keys.values.bulk import added_attributes
from nectar.keys.weak import reference_in
from nectar.model.origin import APPLICATION

if TYPE_CHECKING:
    import weakref

_AS_OBJECT: Final = ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs_ex__")
_OF_CONTAINERS: Final = ("__setitem__", "__iter__", "__len__", "items", "append", "extend")
_GENERATED: Final = frozenset(
    found
    for name in ("_dataclass_getstate", "_dataclass_setstate")
    if (found := getattr(dataclasses, name, None)) is not None
)
_TRUSTED: Final = frozenset(
    ["numpy", "pandas", "polars", "pyarrow", "scikit-learn", "scipy", "xarray", "xgboost", "torch", "pydantic", "attrs"]
)
_WAYS_OF_THEIR_OWN: Final = ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__")
_known: Final[dict[int, tuple[weakref.ref[type], bool]]] = {}


def is_doubtful(value: object) -> bool:
    """Whether an object may come back from a pickle as another one."""
    return not _pickles_exactly(type(value)) or bool(added_attributes(value))


def _pickles_exactly(cls: type) -> bool:
    """Whether instances of a class come back from a pickle as they were, whatever they hold."""
    known = _known.get(id(cls))
    if known is None:
        known = _known[id(cls)] = (reference_in(_known, cls), _judged(cls))
    return known[1]


def _judged(cls: Any) -> bool:
    if issubclass(cls, enum.Enum):
        return True
    origin = origin_of_class(cls)
    if origin is not APPLICATION:
        pickles_itself = any(_replaced(cls, name) for name in _WAYS_OF_THEIR_OWN)
        return origin.kind != "distribution" or origin.name in _TRUSTED or not pickles_itself
    if type(vars(cls).get("__module__")) is not str:
        return True  # not made by a class statement: a kind of function that some compiler has made
    if cls in copyreg.dispatch_table:
        return False
    if any(_replaced(cls, name) for name in _AS_OBJECT) or _written_in_python(cls.__setattr__):
        return False
    if issubclass(cls, dict | list) and any(_written_in_python(getattr(cls, name, None)) for name in _OF_CONTAINERS):
        return False
    return not hasattr(cls, "__getnewargs__") or not _converts(cls.__new__)


def _replaced(cls: type, name: str) -> bool:
    found = getattr(cls, name, None)
    return found is not getattr(object, name, None) and found not in _GENERATED


def _written_in_python(method: object) -> bool:
    return isinstance(method, types.FunctionType)


def _converts(new: object) -> bool:
    """Whether a __new__, which is handed what the object holds, is other code than that of a built-in type."""
    return isinstance(new, types.FunctionType) and "_tuple_new" not in new.__globals__
