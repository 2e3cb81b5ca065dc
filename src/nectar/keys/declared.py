"""What people declare about functions: that one is pure, or what else it depends on.

A declaration is kept beside the function, so that builtins and methods can be declared too. Functions carry it with
them besides: an engine may get a copy of one, pickled by value. Law: what a copy depends on is what the function does.
"""

from __future__ import annotations

import types
from typing import Final, TypeVar

from msgspec import Struct

from nectar.errors import UserError
from nectar.keys.origin import origin_of_function
from nectar.model.origin import APPLICATION

_F = TypeVar("_F")
_METHODS: Final = (types.MethodType, classmethod, staticmethod)
_MARK: Final = "__nectar__"
MARKS: Final = frozenset({_MARK})
_pure: dict[int, object] = {}
_versions: list[None] = []
_dependencies: dict[int, tuple[object, tuple[object, ...]]] = {}


def _target(function: object) -> object:
    """What stays the same however a function is looked up: a method is made anew at every access.

    Only what is known to be a method is asked: other objects may answer in odd ways, or raise.
    """
    return function.__func__ if type(function) in _METHODS else function  # type: ignore[attr-defined]


class Declaration(Struct, frozen=True):
    """What a function carries with it. code: whose it is; wrappers take over the attributes of what they wrap."""

    code: types.CodeType
    dependencies: tuple[object, ...] = ()


def _declare(target: object, *more: object) -> None:
    """Somebody vouches for a function, and says what else it depends on."""
    dependencies = dependencies_of(target) + more
    _pure[id(target)] = target
    if dependencies:
        _dependencies[id(target)] = (target, dependencies)
    if type(target) is types.FunctionType:
        target.__dict__[_MARK] = Declaration(target.__code__, dependencies)
    _versions.append(None)


def _carried(function: object) -> Declaration | None:
    """What a function has brought with it, if it is a copy."""
    if type(function) is not types.FunctionType:
        return None
    found = function.__dict__.get(_MARK)
    return found if type(found) is Declaration and found.code == function.__code__ else None


def pure(function: _F) -> _F:
    """Declares that the result of a function depends on its arguments and on what its fingerprint sees, alone.

    Refusals inside it and inside what only it reaches are then ignored; its code and values still count. Returns the
    function, so that it can be used as a decorator.
    """
    _declare(_target(function))
    return function


def depends_on(function: _F, *values: object) -> _F:
    """Declares what else the result of a function depends on; these values then count as captured ones do.

    Whoever names the dependencies vouches that nothing else is missing, as with pure(). A second call adds more. It
    takes functions and methods of the application: of others nobody would look at what was declared.
    """
    target = _target(function)
    if type(target) is not types.FunctionType or origin_of_function(target) is not APPLICATION:
        raise UserError(
            f"depends_on is for functions and methods of your own, and not for {_told(function)}: declare it for the "
            "function that calls it, or for the method that does the work, such as __call__"
        )
    _declare(target, *values)
    return function


def _told(function: object) -> str:
    """What somebody gave, in words."""
    if isinstance(function, type):
        return f"the class {function.__qualname__}"
    return getattr(function, "__qualname__", None) or f"an object of the type {type(function).__qualname__}"


def is_pure(function: object) -> bool:
    """Whether somebody vouches for a function."""
    target = _target(function)
    return id(target) in _pure or _carried(target) is not None


def pure_code() -> frozenset[types.CodeType]:
    """The code of all functions that somebody vouches for."""
    return frozenset(each.__code__ for each in list(_pure.values()) if type(each) is types.FunctionType)


def dependencies_of(function: object) -> tuple[object, ...]:
    """The declared dependencies of a function."""
    target = _target(function)
    found = _dependencies.get(id(target))
    if found is not None:
        return found[1]
    carried = _carried(target)
    return () if carried is None else carried.dependencies


def version() -> int:
    """A number that grows with every declaration."""
    return len(_versions)
