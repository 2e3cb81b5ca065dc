"""Settings of libraries that no table lists, found by how libraries usually name what can be set for the process.

In: the name of a top-level package. Out: what can be set there, as plain data. Looked at are values of `get_x()` where
there is a `set_x()`, plain values that lie in the package, and dicts and objects that are called config, options and
the like, in the package and in its modules of such names. Anything that is not plain is left out, and so are absolute
paths: they say where something lies, and reading it is noticed otherwise. What to look at is found once for each state
of the modules; a look afterwards costs microseconds.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import inspect
import marshal
import operator
import os
import sys
import threading
import types
from collections.abc import Callable, Iterable
from typing import Any, Final

from nectar.keys.origin import origin_of_function
from nectar.model.origin import APPLICATION

_NAMES: Final = frozenset(
    {"config", "configuration", "conf", "options", "settings", "rcparams", "defaults", "preferences", "theme", "themes"}
)
_KINDS: Final = ("Config", "Configuration", "Options", "Settings", "Registry")  # ends of names of classes
_MODULES: Final = ("config", "_config", "configuration", "conf", "options", "_options", "settings", "defaults", "theme")
# Getters of these start something, cost much or tell what the machine has, and none of it shows in results.
_NOT_ASKED: Final = ("thread", "process", "rng", "seed", "state", "session", "client", "logger", "device", "worker")
_OF_THE_MACHINE: Final = ("thread", "cpu", "cores")
_SCALARS: Final = frozenset({bool, int, float, complex, str, bytes, type(None)})
_CODE: Final = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_FEW: Final = 64  # more constants in one module are its tables
_MOST: Final = 300  # parts of one setting; what has more is data
_DEEPEST: Final = 4


class _Looker:
    """What can be set in a package, for one state of its modules."""

    def __init__(self, package: types.ModuleType) -> None:
        self.name = package.__name__
        self.package = package
        self.size = len(vars(package))
        self.names = [f"{self.name}.{each}" for each in _MODULES]
        self.modules = tuple(map(sys.modules.get, self.names))
        self.getters = _getters(package)
        self.constants: list[tuple[dict[str, Any], str]] = []
        self.holders: list[tuple[str, dict[str, Any], str]] = []
        self.values: tuple[object, ...] = ()
        self.texts: list[object] = []
        self.known: dict[str, tuple[bytes, list[object]]] = {}
        self.large: set[str] = set()
        for name, place in dict(zip((*self.names, self.name), (*self.modules, package), strict=True)).items():
            if isinstance(place, types.ModuleType):
                self._search(name, vars(place))

    def _search(self, place: str, space: dict[str, Any]) -> None:
        constants = [name for name, value in list(space.items()) if _is_constant(name, value)]
        self.constants += [(space, name) for name in constants] if len(constants) <= _FEW else []
        self.holders += [
            (f"{place}.{name}", space, name)
            for name, value in list(space.items())
            if (is_setting(name) or type(value).__name__.endswith(_KINDS)) and not issubclass(type(value), _CODE)
        ]

    def is_current(self) -> bool:
        """Whether the package is in the same state of its modules."""
        return (
            sys.modules.get(self.name) is self.package
            and len(vars(self.package)) == self.size
            and all(map(operator.is_, map(sys.modules.get, self.names), self.modules))
        )

    def look(self) -> list[object]:
        """What is set now. Functions of the application are told as they are, anything else by its text."""
        values = tuple([space.get(name) for space, name in self.constants])
        if len(values) != len(self.values) or not all(map(operator.is_, values, self.values)):
            texts = zip((name for _, name in self.constants), map(_text, values), strict=True)
            self.values, self.texts = values, [(name, text) for name, text in texts if text not in (None, "None")]
        found = self.texts.copy()
        for name, getter in self.getters:
            found += self._parts_of_bundle(name, _answer(getter))
        for label, space, name in self.holders:
            value = space.get(name)
            bundles = _attributes(value) if _is_object_of(value, self.name) else [("", value)]
            for attribute, each in bundles:
                found += self._parts_of_bundle(f"{label}.{attribute}", each)
        return found

    def _parts_of_bundle(self, label: str, value: Any) -> list[object]:
        """The plain parts of a bundle of settings, found anew only where its bytes are others than the last time."""
        if label in self.large:
            return []
        content = None
        with contextlib.suppress(ValueError):  # something in it is not plain
            content = marshal.dumps(value)
        known = self.known.get(label)
        if known is not None and content is not None and known[0] == content:
            return known[1]
        parts = _plain_parts(self.name, label, value)
        if parts is None:
            self.large.add(label)
            return []
        if content is not None:
            self.known[label] = (content, parts)
        return parts


def is_setting(name: str) -> bool:
    """Whether what lies under this name in a package is looked at."""
    return name.lower().strip("_") in _NAMES


def shows(value: Any, package: str, name: str = "") -> bool:
    """Whether a change of a setting can be seen in what is looked at. name: of the attribute that is assigned to.

    Objects may keep what they are given elsewhere, as those whose classes have descriptors for their options do.
    """
    kind: Any = type(value)
    if kind in _SCALARS or kind is threading.local or issubclass(kind, (dict, list, tuple, set, frozenset, enum.Enum)):
        return True
    if not _is_object_of(value, package):
        return False
    member = inspect.getattr_static(kind, name, None) if name else None
    if name and kind.__setattr__ is object.__setattr__ and (member is None or not hasattr(type(member), "__set__")):
        return True
    parts: Any = _plain_parts(package, "", value) or ()
    shown = {str(label).rpartition(".")[2].strip("_") for label, _ in parts}
    return name.strip("_") in shown if name else bool(shown)


_lookers: dict[str, _Looker] = {}


def settings_of(package: str) -> list[object]:
    """What is set now in a top-level package; nothing if it is not loaded or nothing in it can be set."""
    looker = _lookers.get(package)
    if looker is None or not looker.is_current():
        module = sys.modules.get(package)
        if not isinstance(module, types.ModuleType):
            return []
        looker = _lookers[package] = _Looker(module)
    return looker.look()


def _getters(package: types.ModuleType) -> list[tuple[str, Callable[[], object]]]:
    """Functions of a package that give, without arguments, what other functions of it set."""
    space = vars(package)
    pairs = (
        (name, space.get("g" + name[1:])) for name in list(space) if name.startswith("set") and callable(space[name])
    )
    return [
        (name, getter)
        for name, getter in pairs
        if callable(getter) and not any(word in name.lower() for word in _NOT_ASKED) and _needs_nothing(getter)
    ]


def is_told_by_a_getter(module: types.ModuleType, setter: str) -> bool:
    """Whether what a function sets is looked at: its getter is one of a package, and gives something plain."""
    getter = dict(_getters(module)).get(setter) if "." not in module.__name__ else None
    if getter is None:
        return False
    answer = _answer(getter)
    return answer is None or bool(_plain_parts(module.__name__, setter, answer))


def _needs_nothing(getter: Callable[..., object]) -> bool:
    """Whether a function can be called without arguments; one that does not say so is not called."""
    try:
        parameters = inspect.signature(getter).parameters.values()
    except (TypeError, ValueError):
        return False
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return all(each.default is not each.empty or each.kind in optional for each in parameters)


def _answer(getter: Callable[[], object]) -> object:
    try:
        return getter()
    except Exception:  # nothing is set that could be told
        return None


def _is_constant(name: str, value: object) -> bool:
    """Whether a name of a module is one that programs may assign another plain value to."""
    if name.startswith("_") or any(word in name for word in _OF_THE_MACHINE):
        return False
    return type(value) in _SCALARS or issubclass(type(value), enum.Enum)  # an object may lie about its class


def _plain_parts(package: str, name: str, value: object) -> list[object] | None:
    """The plain parts of a value by their names; None if it is too large to be settings."""
    found: dict[str, object] = {}
    pending: list[tuple[str, Any, int]] = [(name, value, 0)]
    looked_at = 0
    while pending:
        label, current, depth = pending.pop()
        looked_at += 1
        if looked_at + len(pending) > _MOST:
            return None
        text = _text(current)
        if text is not None:
            found[label] = text
        elif type(current) is types.FunctionType:
            if origin_of_function(current) is APPLICATION:
                found[label] = current
        elif depth < _DEEPEST:
            pending += [(f"{label}.{_label(key)}", each, depth + 1) for key, each in _parts(current, package)]
    return [(label, found[label]) for label in sorted(found)]


def _label(key: object) -> str:
    return str(key) if type(key) in _SCALARS else type(key).__qualname__


def _parts(value: Any, package: str) -> Iterable[tuple[object, object]]:
    """What a container holds, or an object of the library itself."""
    kind = type(value)
    if kind is list or kind is tuple:
        return enumerate(value)
    if kind is set or kind is frozenset:
        return [(text, text) for text in map(_text, list(value))]
    if issubclass(kind, dict):
        return list(dict.items(value))
    if kind is threading.local:
        return list(vars(value).items())
    return _attributes(value) if _is_object_of(value, package) else ()


def _is_object_of(value: object, package: str) -> bool:
    """Whether a value is an object of a class of the library itself."""
    kind = type(value)
    return kind.__module__.partition(".")[0] == package and not issubclass(kind, (*_CODE, enum.Enum))


def _attributes(value: object) -> list[tuple[str, object]]:
    """What an object holds, by what lies in it: it may answer in other ways if it is asked."""
    found: dict[str, object] = {}
    kind: Any = type(value)
    for name, member in _slots(kind):
        with contextlib.suppress(AttributeError):  # not assigned yet
            found[name] = member.__get__(value)
    with contextlib.suppress(AttributeError):
        found.update(object.__getattribute__(value, "__dict__"))
    return list(found.items())


@functools.lru_cache(maxsize=1024)
def _slots(kind: Any) -> list[tuple[str, Any]]:
    members = [(name, each) for base in kind.__mro__ for name, each in vars(base).items()]
    return [(name, each) for name, each in members if type(each) is types.MemberDescriptorType]


def _text(value: Any) -> str | None:
    """A plain value as a text; None if it is not plain, or an absolute path."""
    kind = type(value)
    if kind is str:
        return None if value and value[0] in "/~\\" and os.path.isabs(value) else repr(value)
    if kind in _SCALARS:
        return repr(value)
    if issubclass(kind, enum.Enum):
        return f"{kind.__qualname__}.{value._name_}={value._value_!r}" if type(value._value_) in _SCALARS else None
    return None
