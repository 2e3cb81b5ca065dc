"""Expanders of what libraries bring: by origin and name instead of by content.

A function or class of an installed distribution is its distribution, version and name; of the standard library, its
name. Three things are looked at all the same: state a library function carries with it (a closure, attributes), code
of the application that was put in the place of library code, and whether the tables know the object to be impure.
"""

from __future__ import annotations

import operator
import re
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, Final

from nectar.errors import UnencodableError
from nectar.keys.abstract import registered_by_others
from nectar.keys.ambient import PROVIDERS, SET_BY_ALL, STANDARD, TABLES
from nectar.keys.atoms import ATOMS, choice_in_order
from nectar.keys.bytecode.decode import instructions
from nectar.keys.expansion import Expansion, WalkContext, always, joined
from nectar.keys.features import HANDED_ON
from nectar.keys.origin import (
    OWN_NAME,
    file_digest,
    is_class_of_application,
    is_native,
    made_when_called,
    module_of_globals,
    origin_of_builtin,
    origin_of_class,
    origin_of_function,
    origin_of_module,
    was_made_by_application,
)
from nectar.keys.plugins import without_plugins
from nectar.keys.purity import observers, tables
from nectar.keys.purity.analysis import examine
from nectar.keys.purity.findings import name_of
from nectar.keys.purity.mutators import RECEIVER, changed_arguments
from nectar.keys.remembered import captured_by
from nectar.keys.resolve import contents
from nectar.keys.special_methods import in_its_role
from nectar.keys.values.callables import dispatch_registry, expand_method, expand_method_wrapper
from nectar.model.origin import APPLICATION, Origin
from nectar.model.refusal import Refusal

_COPYING: Final = frozenset({"copy", "copyreg", "pickle", "cloudpickle", "dill", "joblib", "multiprocessing"})
_WITHOUT_NUMBERS: Final = frozenset({"nectar", "numpy", "polars"})  # of categories: they show none unasked
_WITHOUT_SETTINGS: Final = frozenset({OWN_NAME, "pyarrow"})  # none that show in results
_HEAP_TYPE: Final = 1 << 9
_IMMUTABLE_TYPE: Final = 1 << 8
_PLAIN_CONTAINERS: Final = frozenset({tuple, list, dict, set, frozenset})
_FEW: Final = 64  # larger ones are tables of the library, not something to set
_clean: dict[int, object] = {}  # functions known to be of a library, alive so that their ids stay theirs


def notice(value: object, walk: WalkContext) -> None:
    """Tells the walk what the tables know of a library object: that it is impure, or looks at more than others.

    Refuses what reads a hidden input, unless the analysis of its caller has judged it.
    """
    found = tables.verdict(value)
    if observers.is_rare(value):
        for feature in observers.observed_by(value) or ():
            walk.observe(feature)
    if found is None or walk.is_settled(value) or walk.at_key():
        return
    # a class that makes functions, lying somewhere in data, is there to be asked for, as isinstance does
    if not (isinstance(value, type) and found.kind == "dynamic code"):
        walk.refuse(Refusal(found.kind, f"reaches {found.reason}", walk.path()))


def expand_library_function(function: types.FunctionType, origin: Origin, walk: WalkContext) -> Expansion:
    """A Python function of a library: origin, name, what it carries with it, and what was done to its surroundings."""
    notice(function, walk)
    _touch(origin, walk)
    function = made_when_called(function) or function
    code = function.__code__
    registry = dispatch_registry(function)
    if registry is not None:
        return _expand_dispatcher(function, registry, origin)
    found = _is_found(function)
    state = captured_by(function, walk)
    attributes = {
        name: value for name, value in vars(function).items() if name != "__wrapped__" and not callable(value)
    }
    state += attributes.values()
    if not found:
        state += [function.__defaults__, function.__kwdefaults__]
    state += [value for value in _defaults(function) if _stands_in(value)]
    owners = surroundings(module_of_globals(function.__globals__))
    patches, aliases = _scan(owners, walk)
    payload = joined("function", *_name(origin), code.co_qualname, *(() if found else _identity_of(code)))
    payload += joined(*attributes, b"", *map(_default_in_brief, _defaults(function)), b"", *aliases)
    snapshot = _Snapshot(owners, function)
    still = snapshot if owners else lambda: snapshot() and origin_of_function(function) == origin  # a copy may change
    return _with_patches(payload, patches, still, *state)


def _defaults(function: types.FunctionType) -> list[object]:
    return [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


def _default_in_brief(value: object) -> bytes:
    """A default by value, or by name where it is a function or class; anything else is the library's own."""
    atom = ATOMS.get(type(value))
    if atom is not None:
        return atom(value)
    return str(getattr(value, "__qualname__", "-")).encode("utf-8", "surrogatepass") if callable(value) else b"-"


def _expand_dispatcher(function: types.FunctionType, registry: dict[type, Any], origin: Origin) -> Expansion:
    """A generic function: its implementations by type; the cache of earlier dispatches does not count."""
    items = tuple(registry.items())
    # In an order of their own and not as a set, whose members must not lead back to it: implementations may dispatch.
    ordered = sorted(items, key=lambda item: (str(item[0].__module__), item[0].__qualname__))

    def still() -> bool:
        return len(registry) == len(items) and all(registry.get(kind) is made for kind, made in items)

    return Expansion("generic function", joined(*_name(origin)), ordered, still=still)


def _identity_of(code: types.CodeType) -> tuple[bytes, ...]:
    """What tells apart functions of one name that a library makes at run time; docstrings do not."""
    steps = instructions(code)
    constants = [code.co_consts[arg] for _, name, arg, _ in steps if name in ("LOAD_CONST", "RETURN_CONST", "KW_NAMES")]
    return (
        str(code.co_firstlineno).encode(),
        *(name.encode() for _, name, _, _ in steps if name != "NOP"),
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


def touch_module(module: types.ModuleType | None, walk: WalkContext) -> None:
    """Says that something was taken from a module: functions that are not Python's do not say where they belong."""
    if module is not None and (origin := origin_of_module(module)) is not APPLICATION:
        _touch(origin, walk)


def _touch(origin: Origin, walk: WalkContext) -> None:
    top = origin.module.partition(".")[0].lstrip("_")
    for name in {top, origin.module}:
        if name in PROVIDERS or name in TABLES:
            walk.touch(name)
    if origin.kind == "distribution" and top not in PROVIDERS and origin.name not in _WITHOUT_SETTINGS:
        walk.touch(top)
    if origin.kind == "distribution" and top not in _WITHOUT_NUMBERS:
        walk.observe(HANDED_ON)
    if origin.kind == "standard" and top not in SET_BY_ALL:
        walk.touch(STANDARD + top)
    if top in _COPYING:
        walk.observe("copies")
        walk.touch("copyreg")


def _name(origin: Origin) -> tuple[str, ...]:
    return origin.kind, origin.name, origin.version, origin.module


def expand_library_class(cls: type, origin: Origin, walk: WalkContext) -> Expansion:
    """A class of a library: origin, name, and what the application has put onto it or registered with it."""
    notice(cls, walk)
    _touch(origin, walk)
    payload = joined("class", *_name(origin), cls.__qualname__)
    owners: list[types.ModuleType | type] = [base for base in cls.__mro__ if _is_open(base) and _is_of_library(base)]
    if not owners and "_abc_impl" not in vars(cls):
        return Expansion("library", payload, by_value=True, still=always)
    home = sys.modules.get(cls.__module__)
    if home is not None and origin_of_module(home) is not APPLICATION:
        owners.append(home)
    patches, aliases = _scan(owners, walk)
    registered = registered_by_others(cls)
    snapshot = _Snapshot(owners)

    def still() -> bool:
        return snapshot() and registered == registered_by_others(cls)

    return _with_patches(payload + joined(*aliases), patches, still, *([registered] if registered else []))


def _is_of_library(cls: type) -> bool:
    return origin_of_class(cls) is not APPLICATION


def expand_builtin(value: Any, walk: WalkContext) -> Expansion:
    """A function written in C: by origin and name, or bound to an object."""
    notice(value, walk)
    owner = value.__self__
    if owner is not None and not isinstance(owner, types.ModuleType):
        if RECEIVER in changed_arguments(value):
            _refuse_change(value, walk)
        return Expansion("builtin method", joined(value.__name__), (owner,), ("bound to",), still=always)
    origin = origin_of_builtin(value)
    if origin is APPLICATION:
        return _expand_native(value, owner)
    _touch(origin, walk)
    return Expansion("library", joined("builtin", *_name(origin), value.__qualname__), by_value=True, still=always)


def expand_bound_method(value: types.MethodType, walk: WalkContext) -> Expansion:
    """A bound method: its function and its object, which may be one that every method of is impure."""
    if walk.is_settled(value):
        walk.settle(value, value.__func__)
    elif tables.verdict(value.__func__) is None:
        notice(value, walk)
    function, owner = value.__func__, value.__self__
    if type(function) is types.FunctionType and not isinstance(owner, type) and _is_foreign(function):
        try:
            report = examine(function, walk.observed, walk.examined).report
        except UnencodableError:  # the walk comes to the function and says what is wrong with it
            return expand_method(value, walk)
        if 0 in report.changed:
            _refuse_change(value, walk)
    return expand_method(value, walk)


def expand_bound_special(value: types.MethodWrapperType, walk: WalkContext) -> Expansion:
    """A bound special method of a built-in type: `counter.__next__` changes what it is bound to."""
    if RECEIVER in changed_arguments(value):
        _refuse_change(value, walk)
    return expand_method_wrapper(value, walk)


def _refuse_change(method: Any, walk: WalkContext) -> None:
    """A method that changes its object may be called by whoever gets it; the objects of libraries know what they do."""
    if walk.within_library():
        return
    reason = f"uses {method.__qualname__}, which changes {name_of(method.__self__)} that outlives the call"
    walk.refuse(Refusal("mutation", reason, walk.path()))


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
    notice(value, walk)
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
        patches, aliases = _scan([module], walk)
        payload = joined("module", *_name(origin), *aliases, b"", *_plain_data(module))
        return _with_patches(payload, patches, _Snapshot([module]))
    if is_native(module):
        return Expansion("native", joined("module", file_digest(module)), by_value=True, still=always)
    content = {name: value for name, value in vars(module).items() if name not in _IMPORT_MACHINERY}
    names = sorted(content)
    values = [type(module), *(content[name] for name in names)]
    return Expansion("module", joined(*names), values, ["class", *names])


def _plain_data(module: types.ModuleType) -> list[bytes]:
    """Public constants of a module, which anybody can assign to."""
    return [
        joined(name, ATOMS[type(value)](value))
        for name, value in sorted(vars(module).items())
        if not name.startswith("_") and type(value) in ATOMS
    ]


_IMPORT_MACHINERY: Final = frozenset(
    {"__name__", "__file__", "__loader__", "__spec__", "__package__", "__path__", "__cached__", "__builtins__"}
)


# code of the application in the place of library code

Patches = list[tuple[str, object]]
_OWN: Final = "nectar."


def foreign_in(owner: types.ModuleType | type) -> tuple[Patches, list[str]]:
    """What the application has put into a module or class of a library, and functions under other names than their own.

    A class shows its plain public values too, and a module its constants: changing them is how people set up libraries.
    """
    known = _scanned.get(id(owner))
    values = tuple(vars(owner).values())
    if known is not None and len(known[1]) == len(values) and all(map(operator.is_, known[1], values)):
        return known[2]
    found = _look_into(owner)
    _scanned[id(owner)] = (owner, values, found)
    return found


_scanned: dict[int, tuple[object, tuple[object, ...], tuple[Patches, list[str]]]] = {}


def _look_into(owner: types.ModuleType | type) -> tuple[Patches, list[str]]:
    patches: Patches = []
    aliases: list[str] = []
    prefix = owner.__name__
    is_class = isinstance(owner, type)
    replaceable = isinstance(owner, types.ModuleType) and not is_native(owner)
    for name, found in _by_name(vars(owner).items()):
        value = _without_wrapper(found)
        if value is None and found is not None:
            continue  # Nectar has added it
        kind = type(value)
        if kind is types.FunctionType:
            if _is_foreign(value):
                patches.append((f"{prefix}.{name}", in_its_role(name, value) if is_class else value))
            elif value.__name__ != name:
                aliases.append(f"{prefix}.{name}={value.__code__.co_qualname}")
        elif not name.startswith("_") and (is_class or name.isupper()) and (plain := _plain(value)) is not None:
            aliases.append(f"{prefix}.{name}={plain.hex()}")
        elif kind not in ATOMS and (
            _holds_foreign(value) if is_class else replaceable and not name.startswith("__") and _stands_in(value)
        ):
            patches.append((f"{prefix}.{name}", value))
    return patches, aliases


def _without_wrapper(value: Any) -> Any:
    """What was there before Nectar put a function around it, which gives the same; None if there was nothing."""
    while type(value) is types.FunctionType and str(value.__globals__.get("__name__")).startswith(_OWN):
        value = value.__dict__.get("__wrapped__")
    return value


def _by_name(attributes: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Attributes in an order of their own: libraries give some to their classes in that of a set, by hashes."""
    return sorted(attributes, key=operator.itemgetter(0))


def _plain(value: Any) -> bytes | None:
    """The bytes of plain data: an atom, a pattern, or a few atoms in a container; None if it is anything else."""
    kind = type(value)
    atom = ATOMS.get(kind)
    if atom is not None:
        return atom(value)
    if kind is re.Pattern:
        return joined("pattern", ATOMS[type(value.pattern)](choice_in_order(value)), str(value.flags))
    if kind not in _PLAIN_CONTAINERS or len(value) > _FEW:
        return None
    parts = [part for pair in value.items() for part in pair] if kind is dict else list(value)
    if any(type(part) not in ATOMS for part in parts):
        return None
    found = [ATOMS[type(part)](part) for part in parts]
    return joined(kind.__name__, *(sorted(found) if kind in (set, frozenset) else found))


def _stands_in(value: object) -> bool:
    """Whether a function, class, module or other object is of the application, where a library has its own.

    Classes without functions say nothing: native code makes some that belong to no module.
    """
    if type(value) is types.FunctionType:
        return _is_foreign(value)
    if type(value) is types.ModuleType:
        return was_made_by_application(value)
    cls: Any = value if issubclass(type(value), type) else type(value)
    return is_class_of_application(cls) and any(type(each) is types.FunctionType for each in vars(cls).values())


def _holds_foreign(value: object) -> bool:
    """Whether a class attribute is code of the application, or a descriptor that holds some."""
    kind = type(value)
    if kind is types.FunctionType:
        return _is_foreign(value)  # type: ignore[arg-type]
    if isinstance(value, type):
        return is_class_of_application(value)
    if kind in (classmethod, staticmethod):
        return _holds_foreign(value.__func__)  # type: ignore[attr-defined]
    if kind is property:
        return any(_holds_foreign(part) for part in (value.fget, value.fset, value.fdel))  # type: ignore[attr-defined]
    if is_class_of_application(kind):
        return True
    try:
        inside = object.__getattribute__(value, "__dict__")  # what the object itself would answer proves nothing
    except AttributeError:
        return False
    if not isinstance(inside, dict) or isinstance(value, types.ModuleType):
        return False
    return any(isinstance(part, (types.FunctionType, type)) and _holds_foreign(part) for part in inside.values())


def _is_foreign(function: types.FunctionType) -> bool:
    if id(function) in _clean:
        return False
    module = module_of_globals(function.__globals__)
    if module is None or origin_of_module(module) is APPLICATION:
        return True
    _clean[id(function)] = function
    return False


def surroundings(module: types.ModuleType | None) -> list[types.ModuleType | type]:
    """A library module with the open classes in it, and the modules of the same library those come from."""
    if module is None or origin_of_module(module) is APPLICATION:
        return []
    found: dict[int, types.ModuleType | type] = {id(module): module}
    top = module.__name__.partition(".")[0]
    for value in list(vars(module).values()):
        if isinstance(value, type) and _is_open(value) and origin_of_class(value) is not APPLICATION:
            found[id(value)] = value
            home = sys.modules.get(value.__module__)
            if home is not None and home.__name__.partition(".")[0] == top:
                found[id(home)] = home
    return list(found.values())


def _scan(owners: list[types.ModuleType | type], walk: WalkContext) -> tuple[Patches, list[str]]:
    patches: Patches = []
    aliases: list[str] = []
    for owner in owners:
        more, also = foreign_in(owner)
        patches += more
        aliases += also
    return patches, without_plugins(aliases, walk)


def _with_patches(payload: bytes, patches: Patches, still: Callable[[], bool], *more: object) -> Expansion:
    children = [*more, *(value for _, value in patches)]
    labels = [*("state" for _ in more), *(name for name, _ in patches)]
    payload += joined(*(name for name, _ in patches))
    return Expansion("library", payload, children, labels, by_value=not children, still=still)


def _is_open(cls: type) -> bool:
    return bool(cls.__flags__ & _HEAP_TYPE) and not cls.__flags__ & _IMMUTABLE_TYPE


class _Snapshot:
    """Rechecks that modules and classes of a library, and a function of it, hold what they held."""

    __slots__ = ("function", "held", "spaces")

    def __init__(self, owners: list[types.ModuleType | type], function: types.FunctionType | None = None) -> None:
        spaces: list[Any] = [vars(owner) for owner in owners]
        if function is not None:
            spaces.append(vars(function))
        self.spaces = [(space, tuple(space.values())) for space in spaces]
        self.function = function
        self.held = () if function is None else _held_by(function)

    def __call__(self) -> bool:
        if self.function is not None and not _same(_held_by(self.function), self.held):
            return False
        return all(_same(tuple(space.values()), then) for space, then in self.spaces)


def _same(now: tuple[object, ...], then: tuple[object, ...]) -> bool:
    return len(now) == len(then) and all(map(operator.is_, now, then))


def _held_by(function: types.FunctionType) -> tuple[object, ...]:
    """What can be replaced in a function: its code, its defaults, what its cells hold."""
    held = contents(function).values()
    return function.__code__, function.__defaults__, *(function.__kwdefaults__ or {}).values(), *held
