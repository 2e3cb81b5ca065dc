"""What a function or class shows to code that does not only call it: name, parameters, annotations.

Names and annotations are left out of fingerprints, because most code does not look at them. Where a function is
handed to code that might (`df.agg([mean])` names a column after it), it is exposed: these count then.
"""

from __future__ import annotations

import functools
import operator
import types

from msgspec import Struct

from nectar.keys.annotated import Meant, meanings_of, of_class, of_function
from nectar.keys.bytecode.decode import parameter_names
from nectar.keys.expansion import Expansion, WalkContext, always, joined
from nectar.keys.inspection import attributes_of, is_a
from nectar.keys.origin import origin_of_class, origin_of_function
from nectar.keys.patience import expect
from nectar.model.origin import APPLICATION


class Exposed(Struct, frozen=True, eq=False):
    """An object whose name and annotations reached code may look at."""

    value: object


def shows_anything(value: object) -> bool:
    """Whether exposing an object can matter: code of the application, or something that may hold such code."""
    kind = type(value)
    if kind is types.FunctionType:
        return origin_of_function(value) is APPLICATION  # type: ignore[arg-type]
    if is_a(value, type):
        return origin_of_class(value) is APPLICATION
    if kind in (list, tuple, set, frozenset, dict):
        members = _members(value)
        if _PLAIN.issuperset(map(type, members)):
            return False
        return any(shows_anything(member) for member in members if type(member) not in _PLAIN)
    if kind in _WRAPPERS:
        return True
    return not is_a(value, types.ModuleType) and origin_of_class(kind) is APPLICATION


_WRAPPERS = frozenset((types.MethodType, functools.partial, functools._lru_cache_wrapper))
_PLAIN = frozenset((int, float, str, bytes, bool, complex, type(None), list, tuple, dict, set, frozenset))


def _members(value: object) -> list[object]:
    expect(value)  # type: ignore[arg-type]
    return [*value, *value.values()] if is_a(value, dict) else list(value)  # type: ignore[call-overload]


def expand_exposed(exposed: Exposed, walk: WalkContext) -> Expansion:
    """Name, parameters and annotations of what is exposed."""
    value = exposed.value
    if not walk.expose(value):
        return Expansion("exposed before", by_value=True, still=always)
    if is_a(value, types.FunctionType):
        names = joined(value.__name__, value.__qualname__, *parameter_names(value.__code__))
        own = dict(value.__annotations__)
        children = (of_function(value),)
        return Expansion("exposed", names, children, ("annotations",), still=lambda: _unchanged(value, names, own))
    if is_a(value, type):
        names = _names_of_class(value)
        held = vars(value).get("__annotations__")
        shown = of_class(value, dict(held) if type(held) is dict else {})  # compilers have something else
        bases = [Exposed(base) for base in value.__bases__ if origin_of_class(base) is APPLICATION]
        still = lambda: _names_of_class(value) == names  # noqa: E731 - a def would not say more
        return Expansion("exposed", names, (shown, *bases), ("annotations",), still=still)
    order = b""
    if is_a(value, types.MethodType):
        parts: list[object] = [value.__func__, type(value.__self__)]
    elif is_a(value, functools.partial):
        parts = [value.func, *value.args, *value.keywords.values()]
    elif is_a(value, functools._lru_cache_wrapper):
        parts = [value.__wrapped__]
    elif is_a(value, (list, tuple, set, frozenset, dict)):
        parts = _members(value)
    else:
        own = attributes_of(value)
        order = joined(*(name for name in own if type(name) is str))
        parts = [type(value), *own.values()]
    if is_a(value, (set, frozenset)):
        parts.sort(key=walk.bytes_of)
    return Expansion("exposed", order, [Exposed(part) for part in parts if shows_anything(part)], still=always)


def expand_meant(meant: Meant, walk: WalkContext) -> Expansion:
    """What the names in the texts of an annotation stand for now; of classes and functions, what they show."""
    found = meanings_of(meant.annotation, meant.names)

    def is_still() -> bool:
        now = meanings_of(meant.annotation, meant.names)
        return len(now) == len(found) and all(map(operator.is_, now, found))

    children = [
        Exposed(each) if is_a(each, (type, types.FunctionType)) and shows_anything(each) else each for each in found
    ]
    return Expansion("annotation", b"", children, by_value=True, still=is_still)


def _names_of_class(cls: type) -> bytes:
    """Names of a class and of what its methods can be given by keyword."""
    methods = {name: value for name, value in vars(cls).items() if is_a(value, types.FunctionType)}
    signatures = (joined(name, *parameter_names(methods[name].__code__)) for name in sorted(methods))
    return joined(cls.__name__, cls.__qualname__, *signatures)


def _unchanged(value: types.FunctionType, names: bytes, before: dict[str, object]) -> bool:
    now = value.__annotations__
    return (
        joined(value.__name__, value.__qualname__, *parameter_names(value.__code__)) == names
        and len(now) == len(before)
        and all(now.get(name) is kind for name, kind in before.items())
    )
