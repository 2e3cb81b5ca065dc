"""Classes that were registered with abstract base classes by hand: isinstance() asks for them.

In: an abstract base class. Out: what was registered with it, and what of that others did than whoever wrote the class.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from decimal import Decimal
from pathlib import PurePath
from types import MappingProxyType, NoneType
from typing import Any, Final

from nectar.keys.origin import origin_of_class
from nectar.model.origin import APPLICATION

_PLAIN: Final[frozenset[Any]] = frozenset(
    {int, float, complex, bool, str, bytes, bytearray, list, tuple, dict, set, frozenset, range, memoryview, NoneType}
)
# What the standard library registers itself, by the name of the abstract class; elsewhere it registers nothing plain.
_USUAL: Final[dict[str, frozenset[Any]]] = {
    "Complex": frozenset({complex}),
    "Real": frozenset({float}),
    "Integral": frozenset({int}),
    "Sequence": frozenset({tuple, str, range, memoryview}),
    "ByteString": frozenset({bytes, bytearray}),
    "MutableSequence": frozenset({list, bytearray}),
    "Set": frozenset({frozenset}),
    "MutableSet": frozenset({set}),
    "MutableMapping": frozenset({dict}),
}
# Not plain, and registered by the modules that bring them.
_LOCALS: Final[Any] = type((lambda: sys._getframe().f_locals)())  # from Python 3.13 on, a class that no module names
_BROUGHT: Final[frozenset[Any]] = frozenset({array, deque, Decimal, PurePath, MappingProxyType, _LOCALS})


def registered_with(cls: type) -> frozenset[type]:
    """Classes that were registered with an abstract base class by hand."""
    if "_abc_impl" not in vars(cls):
        return frozenset()
    from _abc import _get_dump  # type: ignore[import-not-found]

    return frozenset(found for reference in _get_dump(cls)[0] if (found := reference()) is not None)


def registered_by_others(cls: type) -> frozenset[type]:
    """Classes that a program has registered with one of a library: its own, and those of Python."""
    return frozenset(each for each in registered_with(cls) if _is_by_program(each, cls))


def _is_by_program(each: type, cls: type) -> bool:
    if each in _PLAIN:
        return each not in _USUAL.get(cls.__name__, ())
    if each in _BROUGHT:
        return False
    origin = origin_of_class(each)
    if origin is APPLICATION:
        return True
    is_hidden = origin.module == "builtins" or origin.module.startswith(("_", "importlib", "io"))
    return origin.kind == "standard" and not is_hidden
