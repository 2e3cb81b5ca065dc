"""What people declare about functions: that one is pure, or what else it depends on.

A declaration is kept beside the function, not on it, so that builtins and methods can be declared too and the
function itself stays as it was.
"""

from __future__ import annotations

import types
from typing import Final, TypeVar

_F = TypeVar("_F")
_METHODS: Final = (types.MethodType, classmethod, staticmethod)
MARKS: Final = frozenset({"__nectar__"})
_pure: dict[int, object] = {}
_versions: list[None] = []
_dependencies: dict[int, tuple[object, tuple[object, ...]]] = {}


def _target(function: object) -> object:
    """What stays the same however a function is looked up: a method is made anew at every access.

    Only what is known to be a method is asked: other objects may answer in odd ways, or raise.
    """
    return function.__func__ if type(function) in _METHODS else function  # type: ignore[attr-defined]


def pure(function: _F) -> _F:
    """Declares that the result of a function depends on its arguments and on what its fingerprint sees, alone.

    Refusals inside it and inside what only it reaches are then ignored; its code and values still count. Returns the
    function, so that it can be used as a decorator.
    """
    target = _target(function)
    _pure[id(target)] = target
    _versions.append(None)
    return function


def depends_on(function: _F, *values: object) -> _F:
    """Declares what else the result of a function depends on; these values then count as captured ones do.

    Whoever names the dependencies vouches that nothing else is missing, as with pure(). A second call adds more.
    """
    target = _target(function)
    before = _dependencies.get(id(target), (target, ()))[1]
    _dependencies[id(target)] = (target, before + values)
    _pure[id(target)] = target
    _versions.append(None)
    return function


def is_pure(function: object) -> bool:
    """Whether somebody vouches for a function."""
    return id(_target(function)) in _pure


def dependencies_of(function: object) -> tuple[object, ...]:
    """The declared dependencies of a function."""
    found = _dependencies.get(id(_target(function))) if _dependencies else None
    return () if found is None else found[1]


def version() -> int:
    """A number that grows with every declaration."""
    return len(_versions)
