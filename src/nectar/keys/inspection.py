"""Looking at objects without running their code: isinstance(), vars() and getattr() ask `__getattribute__`.

A program that counts, records or answers such questions would see that somebody asked, and get another result.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from builtins import isinstance as is_a
else:

    def is_a(value, kinds):
        """Whether the type of a value is one of these kinds, or derived from one; `__class__` is not asked."""
        return issubclass(type(value), kinds)


__all__ = ["attributes_of", "is_a"]
_DESCRIPTORS: Final = (types.GetSetDescriptorType, types.MemberDescriptorType)


def attributes_of(value: object) -> dict[Any, Any]:
    """The attributes that lie in an object; none if it keeps them elsewhere."""
    for base in type.__getattribute__(type(value), "__mro__"):
        found = type.__getattribute__(base, "__dict__").get("__dict__")
        if found is not None:
            own = found.__get__(value) if type(found) in _DESCRIPTORS else None  # a property is code of the program
            return own if type(own) is dict else {}
    return {}
