"""Expanders of what libraries bring: by origin and name instead of by content.

A function or class of an installed distribution is its distribution, version and name; of the standard library, its
name. Three things are looked at all the same: state a library function carries with it (a closure, attributes), code
of the application that was put in the place of library code, and whether the tables know the object to be impure.
"""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Iterator
from typing import Any, Final

from nectar.errors import UnencodableError
from nectar.keys.ambient import PROVIDERS
from nectar.keys.atoms import ATOMS
from nectar.keys.bytecode.decode import instructions
from nectar.keys.expansion import Expansion, WalkContext, always, joined
from nectar.keys.origin import (
    file_digest,
    is_native,
    module_of_globals,
    origin_of_builtin,
    origin_of_class,
    origin_of_module,
)
from nectar.keys.purity import tables
from nectar.keys.values.callables import dispatch_registry
from nectar.model.origin import APPLICATION, Origin
from nectar.model.refusal import Refusal

_COPYING: Final = frozenset({"copy", "copyreg", "pickle", "cloudpickle", "dill", "joblib", "multiprocessing"})
_HEAP_TYPE: Final = 1 << 9
_IMMUTABLE_TYPE: Final = 1 << 8
_clean: dict[int, object] = {}  # functions known to be of a library, alive so that their ids stay theirs


def refuse_if_impure(value: object, walk: WalkContext) -> None:
    """Refuses what the tables know to read a hidden input, unless the analysis of its caller has judged it."""
    found = tables.verdict(value)
    if found is None or walk.is_settled(value) or walk.at_key():
        return
    # a class that makes functions, lying somewhere in data, is there to be asked for, as isinstance does
    if not (isinstance(value, type) and found.kind == "dynamic code"):
        walk.refuse(Refusal(found.kind, f"reaches {found.reason}", walk.path()))


def expand_library_function(function: types.FunctionType, origin: Origin, walk: WalkContext) -> Expansion:
    """A Python function of a library: origin, name, and what it carries with it."""
    refuse_if_impure(function, walk)
    _touch(origin, walk)
    code = function.__code__
    registry = dispatch_registry(function)
    if registry is not None:
        return _expand_dispatcher(function, registry, origin)
    payload = joined("function", *_name(origin), code.co_qualname, *(() if _is_found(function) else _identity_of(code)))
    cells = [cell for cell in function.__closure__ or () if _holds(cell)]
    attributes = {
        name: value for name, value in vars(function).items() if name != "__wrapped__" and not callable(value)
    }
    module = module_of_globals(function.__globals__)
    patches = list(patches_of_module(module)) if module is not None else []
    children = [*(cell.cell_contents for cell in cells), *attributes.values(), *(value for _, value in patches)]
    labels = [*(f"captured {name}" for name in code.co_freevars), *attributes, *(name for name, _ in patches)]
    payload += joined(*attributes, *(name for name, _ in patches))
    if not _is_found(function):
        children.extend((function.__defaults__, function.__kwdefaults__))
    watched = _Snapshot(module) if module is not None else None
    return Expansion("library", payload, children, labels, by_value=not children, still=watched)


def _expand_dispatcher(function: types.FunctionType, registry: dict[type, Any], origin: Origin) -> Expansion:
    """A generic function: its implementations by type; the cache of earlier dispatches does not count."""
    items = tuple(registry.items())
    known = frozenset(items)

    def still() -> bool:
        return len(registry) == len(items) and all(registry.get(kind) is made for kind, made in items)

    return Expansion("generic function", joined(*_name(origin)), (known,), ("implementations",), still=still)


def _holds(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - reading is the question
    except ValueError:
        return False
    return True


def _identity_of(code: types.CodeType) -> tuple[bytes, ...]:
    """What tells apart functions of one name that a library makes at run time; docstrings do not."""
    steps = instructions(code)
    constants = [code.co_consts[step.arg] for step in steps if step.name in ("LOAD_CONST", "RETURN_CONST", "KW_NAMES")]
    return (
        str(code.co_firstlineno).encode(),
        *(step.name.encode() for step in steps if step.name != "NOP"),
        *(name.encode() for name in code.co_names),
        *(ATOMS[type(value)](value) for value in constants if type(value) in ATOMS),
    )


def _is_found(function: types.FunctionType) -> bool:
    """Whether the name of a function leads to it."""
    found: object = function.__globals__
    for part in function.__code__.co_qualname.split("."):
        if isinstance(found, dict):
            found = found.get(part)
        elif isinstance(found, type):
            found = vars(found).get(part)
        else:
            return False
        found = getattr(found, "__func__", found) if isinstance(found, (classmethod, staticmethod)) else found
    return found is function


def _touch(origin: Origin, walk: WalkContext) -> None:
    top = origin.module.partition(".")[0].lstrip("_")
    if top in PROVIDERS:
        walk.touch(top)
    if top in _COPYING:
        walk.observe("copies")


def _name(origin: Origin) -> tuple[str, ...]:
    return origin.kind, origin.name, origin.version, origin.module


def expand_library_class(cls: type, origin: Origin, walk: WalkContext) -> Expansion:
    """A class of a library: origin, name, and methods of the application that were put onto it."""
    refuse_if_impure(cls, walk)
    _touch(origin, walk)
    patches = [patch for base in cls.__mro__ for patch in patches_of_class(base)]
    payload = joined("class", *_name(origin), cls.__qualname__, *(name for name, _ in patches))
    still = always if not _is_open(cls) else _Snapshot(cls)
    return Expansion(
        "library",
        payload,
        [value for _, value in patches],
        [name for name, _ in patches],
        by_value=not patches,
        still=still,
    )


def expand_builtin(value: Any, walk: WalkContext) -> Expansion:
    """A function written in C: by origin and name, or bound to an object."""
    refuse_if_impure(value, walk)
    owner = value.__self__
    if owner is not None and not isinstance(owner, types.ModuleType):
        return Expansion("builtin method", joined(value.__name__), (owner,), ("bound to",), still=always)
    origin = origin_of_builtin(value)
    if origin is APPLICATION:
        return _expand_native(value, owner)
    _touch(origin, walk)
    return Expansion("library", joined("builtin", *_name(origin), value.__qualname__), by_value=True, still=always)


def _expand_native(value: Any, owner: object) -> Expansion:
    """A function of a native module of the application: the bytes of the file."""
    module = owner if isinstance(owner, types.ModuleType) else sys.modules.get(str(value.__module__))
    if module is None:
        raise UnencodableError(f"native function {value.__qualname__}", "its module", "its module is not loaded")
    return Expansion("native", joined(file_digest(module), value.__qualname__), by_value=True, still=always)


def named_library_object(value: object, walk: WalkContext) -> Expansion | None:
    """A callable object of a library that its own module and name lead to; None if they do not."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if type(name) is not str or module is None or not callable(value):
        return None
    origin = origin_of_module(module)
    found: object = module
    for part in name.split("."):
        found = vars(found).get(part) if isinstance(found, (types.ModuleType, type)) else None
    if origin is APPLICATION or found is not value:
        return None
    refuse_if_impure(value, walk)
    _touch(origin, walk)
    return Expansion("library", joined("object", *_name(origin), name), by_value=True, still=always)


def expand_module(module: types.ModuleType, walk: WalkContext) -> Expansion:
    """A module used as a value, so that nobody sees which of its names are read: all of them count."""
    origin = origin_of_module(module)
    if origin is not APPLICATION:
        verdict = tables.module_verdict(module)
        if verdict is not None and not walk.is_settled(module):
            walk.refuse(Refusal(verdict.kind, f"uses the module {verdict.reason}", walk.path()))
        _touch(origin, walk)
        return Expansion("library", joined("module", *_name(origin)), by_value=True, still=always)
    if is_native(module):
        return Expansion("native", joined("module", file_digest(module)), by_value=True, still=always)
    content = {name: value for name, value in vars(module).items() if not _is_import_machinery(name)}
    names = sorted(content)
    values = [content[name] for name in names]
    return Expansion("module", joined(*names), values, names)


def _is_import_machinery(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in ("__getattr__", "__all__", "__version__")


# code of the application in the place of library code


def patches_of_class(cls: type) -> Iterator[tuple[str, object]]:
    """Functions of the application that stand in a class of a library, by name."""
    if not _is_open(cls) or origin_of_class(cls) is APPLICATION:
        return
    for name, value in list(vars(cls).items()):
        for function in _functions_of(value):
            if _is_foreign(function):
                yield f"{cls.__qualname__}.{name}", function


def patches_of_module(module: types.ModuleType) -> Iterator[tuple[str, object]]:
    """Functions of the application that stand in a module of a library or in its classes, by name."""
    if origin_of_module(module) is APPLICATION:
        return
    for name, value in list(vars(module).items()):
        if type(value) is types.FunctionType and _is_foreign(value):
            yield name, value
        elif isinstance(value, type):
            yield from patches_of_class(value)


def _functions_of(value: object) -> Iterator[types.FunctionType]:
    kind = type(value)
    if kind is types.FunctionType:
        yield value  # type: ignore[misc]
    elif kind is classmethod or kind is staticmethod:
        yield from _functions_of(value.__func__)  # type: ignore[attr-defined]
    elif kind is property:
        for part in (value.fget, value.fset, value.fdel):  # type: ignore[attr-defined]
            yield from _functions_of(part)


def _is_foreign(function: types.FunctionType) -> bool:
    if id(function) in _clean:
        return False
    module = module_of_globals(function.__globals__)
    if module is not None and origin_of_module(module) is not APPLICATION:
        _clean[id(function)] = function
        return False
    # generated by a library (dataclass, namedtuple): private globals that no module of the application owns
    return module is not None


def _is_open(cls: type) -> bool:
    return bool(cls.__flags__ & _HEAP_TYPE) and not cls.__flags__ & _IMMUTABLE_TYPE


class _Snapshot:
    """Rechecks that nobody has put anything new into a library module or class."""

    __slots__ = ("spaces",)

    def __init__(self, owner: types.ModuleType | type) -> None:
        owners: list[Any] = [owner]
        if isinstance(owner, types.ModuleType):
            owners.extend(value for value in vars(owner).values() if isinstance(value, type) and _is_open(value))
        else:
            owners.extend(base for base in owner.__mro__[1:] if _is_open(base))
        self.spaces = [(vars(each), tuple(vars(each).values())) for each in owners]

    def __call__(self) -> bool:
        return all(
            len(space) == len(then) and all(map(operator.is_, space.values(), then)) for space, then in self.spaces
        )
