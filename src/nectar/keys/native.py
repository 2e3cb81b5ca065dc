"""Objects of libraries that keep their state in native code, where nobody sees what calling them changes.

In: classes and callables of libraries. Out: whether their instances, or what they give, are such objects. A setting of
the library may be the attribute of one (`Settings.instance().evaluationDate`), and what one is told may hold for all
others (`calendar.addHoliday(day)`). Law: of a library that no table knows nothing is taken for granted; what keys hold
the state of is no such object.
"""

from __future__ import annotations

import sys
import types
from functools import lru_cache
from typing import Any, Final, NamedTuple

from nectar.keys.bytecode.template import RETURN
from nectar.keys.called import words_in
from nectar.keys.purity.facts import OBJECT, Facts, static_attribute
from nectar.keys.purity.mutators import MUTATORS, mutators_of
from nectar.keys.purity.tables import KNOWN_PACKAGES
from nectar.keys.registry import KNOWN_LIBRARIES, has_unknown_layout
from nectar.keys.setters import facts_of

_OF_SWIG: Final = "thisown"
_SETTABLE: Final = (property, types.GetSetDescriptorType, types.MemberDescriptorType)
_METACLASSES: Final = ("Boost.Python", "pybind11_builtins", "nanobind")
_HOW_TO_PICKLE: Final = ("__reduce__", "__reduce_ex__", "__getstate__", "__getnewargs__", "__getnewargs_ex__")
_NATIVE: Final = (types.BuiltinFunctionType, types.MethodDescriptorType, types.ClassMethodDescriptorType)
_KNOWN: Final = KNOWN_LIBRARIES | KNOWN_PACKAGES | {"duckdb"}  # where each connection has settings of its own
# What is asked of an object about itself and the world around it, and of the containers that functions give.
_ASIDE: Final = (
    "close release commit rollback flush write save show draw start stop join wait cancel shutdown terminate"
)
_OF_ITSELF: Final = frozenset(_ASIDE.split())
_OF_CONTAINERS: Final = frozenset[str]().union(*map(mutators_of, MUTATORS))


class Made:
    """What a name stands for: what calling something of a library gives. cls: of which class, if that is known."""

    __slots__ = ("cls", "package")

    def __init__(self, cls: type | None, package: str) -> None:
        self.cls, self.package = cls, package

    def may_set_for_all(self) -> bool:
        """Whether assigning to an attribute may change the library: not of an object that is made anew."""
        return self.cls is None

    def may_change_all(self, method: str) -> bool:
        """Whether calling a method, of which nobody takes the result, may change the library.

        What a class makes anew is its own object (`digest.update(data)`), unless it stands for one of another language.
        """
        if method in _OF_ITSELF:
            return False
        return method not in _OF_CONTAINERS if self.cls is None else _is_proxy(self.cls)


def made_natively(path: str, value: object, cls: type | None) -> Made | None:
    """What calling a value gives, if that keeps its state in native code. cls: its class, if that is known."""
    package = path.partition(".")[0]
    if not is_unknown(package):
        return None
    if cls is not None:
        return Made(cls, package) if is_native(cls) else None
    return Made(None, package) if _gives_native(value) else None


def is_unknown(package: str) -> bool:
    """Whether a package is a library that no table knows."""
    return package not in sys.stdlib_module_names and package not in _KNOWN


@lru_cache(maxsize=4096)
def is_native(cls: type) -> bool:
    """Whether instances keep their state where keys cannot hold it."""
    if _is_proxy(cls):
        return True
    if any(static_attribute(cls, name) is not static_attribute(object, name) for name in _HOW_TO_PICKLE):
        return False
    return has_unknown_layout(cls)


def _is_proxy(cls: type) -> bool:
    """Whether a class stands for one of another language, as SWIG, Boost and pybind11 make them."""
    return any(_OF_SWIG in vars(base) for base in cls.__mro__) or str(type(cls).__module__) in _METACLASSES


def _gives_native(value: Any) -> bool:
    """Whether calling a value gives what native code has made, by itself or as the last thing that it does."""
    function = getattr(value, "__func__", value)
    if type(function) is not types.FunctionType:
        return isinstance(function, _NATIVE) or str(type(function).__module__) in _METACLASSES
    facts = facts_of(function)
    return facts is not None and any(map(_is_native_call, _returned_by(facts)))


def _returned_by(facts: Facts) -> list[object]:
    edges = [edge for block in facts.template.blocks for edge in block.edges if edge.target == RETURN]
    makers = [facts.maker(value) for edge in edges for value in edge.values]
    called = [facts.of(each.operands[0]) for each in makers if each is not None and each.name == "CALL"]
    return [fact.root for fact in called if fact.kind == OBJECT]


def _is_native_call(value: object) -> bool:
    return isinstance(value, types.BuiltinFunctionType) and is_unknown(str(value.__module__).partition(".")[0])


def is_changed_by_name(package: str, method: str) -> bool:
    """Whether a method of this name may change a library, of whatever object it is: its proxies have one."""
    return _is_telling(method) and is_unknown(package) and method in _of_proxies(package, len(sys.modules)).methods


def is_set_by_name(package: str, name: str) -> bool:
    """The same of an attribute that is assigned to."""
    return _is_telling(name) and is_unknown(package) and name in _of_proxies(package, len(sys.modules)).settable


def _is_telling(name: str) -> bool:
    """Whether a name has several words; of one word, other libraries have methods and attributes too."""
    return not name.startswith("_") and len(words_in(name)) > 1


class _Names(NamedTuple):
    methods: frozenset[str]
    settable: frozenset[str]


@lru_cache(maxsize=64)
def _of_proxies(package: str, loaded: int) -> _Names:
    """Names in the classes of a library that stand for those of another language. loaded: how many modules are."""
    space: dict[str, object] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package and type(module) is types.ModuleType:
            classes = [each for each in list(vars(module).values()) if isinstance(each, type) and _is_proxy(each)]
            for cls in classes:
                space.update(vars(cls))
    settable = {name for name, each in space.items() if type(each) in _SETTABLE}
    return _Names(frozenset(space.keys() - settable), frozenset(settable))
