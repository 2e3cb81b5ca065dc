"""Which library code a computation may run that reads the clock, random bytes, the environment or a context.

In: functions of the application, and the classes of what they are given. Out: code of libraries that holds such a
source and that they reach by the names in their bytecode. It is a reason to look closer while the computation runs
(reading.py) and no reason against it: most code that holds a source never comes to it.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.util
import itertools
import sys
import types
from collections.abc import Iterable, Iterator
from contextvars import ContextVar, copy_context
from threading import local
from typing import Any, Final, NamedTuple

from msgspec import Struct

from nectar.keys.bytecode.decode import instructions
from nectar.keys.folding import MISSING
from nectar.keys.origin import is_installed
from nectar.keys.preferences import PREFERENCES
from nectar.keys.purity import tables
from nectar.keys.purity.facts import static_attribute
from nectar.keys.purity.guesses import SEEDS, guess, is_native
from nectar.keys.purity.implicit import IMPLICIT, names_run_by, names_run_by_builtin

_BY_TABLES: Final = (
    "builtins os posixpath ntpath genericpath pathlib random secrets time datetime uuid _collections_abc collections "
    "functools contextlib freezegun"
)
_BY_THEMSELVES: Final = (
    "nectar numpy pandas polars pyarrow duckdb joblib loky threadpoolctl tqdm loguru structlog cloudpickle pytest "
    "_pytest abc argparse "
    "asyncio concurrent copy dataclasses enum importlib inspect logging multiprocessing queue re selectors socket "
    "sysconfig subprocess tempfile threading types typing unittest warnings weakref _strptime _weakrefset "
    "traceback linecache"
)
JUDGED: Final = frozenset(_BY_TABLES.split())  # where the application calls them; what libraries do with them counts
SILENT: Final = frozenset(_BY_THEMSELVES.split())  # known in whole, or their clocks do not show in results
_EXEMPT: Final = JUDGED | SILENT
STATE: Final = "reads a state of the thread"
CONTEXT: Final = "reads a context variable"
IMPORTS: Final = "imports a module by its name"
_IMPORTING_LOADERS: Final = frozenset({"Loader", "CLoader", "UnsafeLoader", "CUnsafeLoader"})
_IMPORTERS: Final = (builtins.__import__, importlib.import_module, importlib.__import__)
WORDS: Final = {
    "clock": "reads the clock",
    "random": "draws random numbers",
    "environment": "reads the environment",
}
_MOST: Final = 10_000  # functions that are looked at
_BY_CLASSES: Final = frozenset({"LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})  # how bodies of classes load globals
_CAPTURED_BY_CLASSES: Final = ("LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_OF_SUPER: Final = "LOAD_SUPER_ATTR"
_ATTRIBUTES: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD", _OF_SUPER})
# Bits of the number that tell something else than the name.
_UNUSED_BITS: Final = {} if sys.version_info < (3, 12) else {"LOAD_ATTR": 1, _OF_SUPER: 2}
_RUN_BY_CLASSES: Final = ("__init__", "__new__", "__post_init__")
# Special methods of an object that is there already which no operation of a program runs by itself.
_NEVER_IMPLICIT: Final = frozenset({
    *_RUN_BY_CLASSES, "__class_getitem__", "__del__", "__dir__", "__getnewargs__", "__getnewargs_ex__", "__getstate__",
    "__init_subclass__", "__prepare__", "__reduce__", "__reduce_ex__", "__set_name__", "__setstate__", "__sizeof__",
    "__subclasshook__",
})  # fmt: skip
_OF_INTERVALS: Final = ("time.perf_counter", "time.monotonic", "time.process_time", "time.thread_time", "time.sleep")
_SELF: Final = object()
_OF_ITSELF: Final = frozenset(
    {"__getitem__", "__iter__", "__contains__", "__getattr__", "__enter__"}
)  # what methods run
_BUILTINS: Final = (type, types.BuiltinFunctionType)
_Remembering: Final = type(functools.cache(len))
_HOLD_CODE: Final = frozenset({types.FunctionType, types.MethodType, functools.partial})
_TABLES: Final = (dict, list, tuple)
_MOST_IN_TABLE: Final = 100  # what holds more is data
_NO_CODE: Final = (int, float, str, bytes, tuple, list, dict, set, frozenset)


class Source(Struct, frozen=True, eq=False):
    """Code of a library that holds a source, and what it does with it. Told by identity: equal code may lie in two.

    state: what it keeps for each thread, if that is the source.
    """

    code: types.CodeType
    what: str
    always: bool = False  # whether it is taken to be read whenever the code runs: nobody sees it
    state: object = None


class _Reached(NamedTuple):
    """A callable that code has in its hands, and the class that it is a method of, if that is known."""

    value: Any
    owner: type | None = None


class _Load(NamedTuple):
    """An object that code loads by its name, and the class that it was found in, if it is an attribute."""

    value: Any
    code: types.CodeType
    owner: type | None


def sources_reached(functions: Iterable[types.FunctionType], kinds: Iterable[type]) -> frozenset[Source]:
    """Library code that holds a source, as far as these functions reach it, also by methods of these classes.

    kinds: of what the functions hold or are given. Which operation meets which of them, nobody knows.
    """
    names: set[str] = set()
    packages: set[str] = set()
    roots: list[_Reached] = []
    for kind in kinds:
        packages.add(_package_of(kind))
        roots += _implicit_methods(kind)
    for function in functions:
        for value, _, owner in _loaded(function, None, names):
            packages |= {_package_of(base) for base in value.__mro__} if _is_class(value) else {_package_of(value)}
            roots += _code_of(value, owner)
    for package in packages - _EXEMPT:
        methods = _methods(package, sys.modules.get(package), len(sys.modules))
        # What operations run of the program's own classes is judged where the program is.
        wanted = names if _is_library(package) else names - IMPLICIT
        roots += [each for name in wanted & methods.keys() for each in methods[name]]
    return _sources_of(frozenset(root for root in roots if _package_of(root.value) not in _EXEMPT))


def _is_library(package: str) -> bool:
    module = sys.modules.get(package)
    return isinstance(module, types.ModuleType) and is_installed(module)


@functools.lru_cache(maxsize=1024)
def _sources_of(roots: frozenset[_Reached]) -> frozenset[Source]:
    """Code that is reached from callables and holds a source."""
    found: set[Source] = set()
    pending, seen = list(roots), set[_Reached]()
    while pending and len(seen) < _MOST:
        reached = pending.pop()
        if reached not in seen:
            seen.add(reached)
            sources, called = _inside(reached)
            found |= sources
            pending += called
    return frozenset(found)


@functools.lru_cache(maxsize=1 << 16)
def _inside(reached: _Reached) -> tuple[frozenset[Source], tuple[_Reached, ...]]:
    """The sources that a function or class holds itself, and what it calls."""
    value, owner = reached
    package = _package_of(value)
    if isinstance(value, type):
        if package == "yaml" and value.__name__ in _IMPORTING_LOADERS:  # it finds its functions in tables
            return frozenset({Source(_inside.__wrapped__.__code__, IMPORTS)}), ()  # any code: nothing is followed
        run = [each for name in _RUN_BY_CLASSES for each in _code_of(static_attribute(value, name), value)]
        return frozenset(), tuple(each for each in run if _package_of(each.value) not in _EXEMPT)
    sources: set[Source] = set()
    called: dict[_Reached, None] = {}
    names: set[str] = set()
    for loaded, code, found_in in _loaded(value, owner, names):
        what = source(loaded)
        unseen = "" if what else _guessed(loaded, code)
        if unseen:
            sources.add(Source(code, unseen, always=True))
        elif not what:
            called.update(dict.fromkeys(_code_of(loaded, found_in or owner)))
        elif what not in (STATE, CONTEXT) or package not in PREFERENCES:  # which stand in keys
            sources.add(Source(code, what, always=what == STATE, state=loaded if what == STATE else None))
    called.update(dict.fromkeys(_by_name(names, package, owner)))
    if owner is not None and _package_of(owner) == package:  # it may call what was put into its object then
        called.update(dict.fromkeys(_code_of(static_attribute(owner, "__init__"), owner)))
    return frozenset(sources), tuple(each for each in called if _package_of(each.value) not in _EXEMPT)


def _by_name(names: set[str], package: str, owner: type | None) -> Iterator[_Reached]:
    """What methods of these names may be, asked of values that nobody knows: of the package, or of a base (super)."""
    methods = _methods(package, sys.modules.get(package), len(sys.modules))
    for name in names:
        if not name.startswith("__"):
            yield from methods.get(name, ())
        elif owner is not None and (name in _OF_ITSELF or name not in IMPLICIT):
            for base in owner.__mro__:
                yield from _code_of(vars(base).get(name, MISSING), base)


def source(value: Any) -> str:
    """What is read by calling or asking an object, such as "reads the clock"; empty if it is no source."""
    if isinstance(value, local):
        return STATE
    if isinstance(value, ContextVar) or value is copy_context:
        return CONTEXT
    if any(value is each for each in _IMPORTERS):
        return IMPORTS
    found = next(filter(None, map(tables.verdict, value.__mro__)), None) if _is_class(value) else tables.verdict(value)
    if found is None or found.guessed or found.reason.startswith(_OF_INTERVALS):
        return ""
    return WORDS.get(found.kind, "")


def _guessed(value: object, code: types.CodeType) -> str:
    """What a function that is not Python's reads by its name, unless the code that calls it has a seed to hand on."""
    found = guess(value) if is_native(value) else None
    if found is None or (found[1] is not None and not SEEDS.isdisjoint(code.co_varnames)):
        return ""
    return WORDS[found[0]]


@functools.lru_cache(maxsize=64)
def _methods(package: str, module: object, loaded: int) -> dict[str, list[_Reached]]:
    """Methods and properties of the classes of a package, by name. loaded: how many modules there are of all."""
    found: dict[str, list[_Reached]] = {}
    below = package + "."
    for name, each_module in list(sys.modules.items()):
        if (name != package and not name.startswith(below)) or not isinstance(each_module, types.ModuleType):
            continue
        classes = [
            each for each in list(vars(each_module).values()) if isinstance(each, type) and each.__module__ == name
        ]
        for cls in classes:
            for attribute, value in list(vars(cls).items()):
                code = [each for each in _code_of(value, cls) if _package_of(each.value) == package]
                found.setdefault(attribute, []).extend(code)
    return found


@functools.lru_cache(maxsize=1024)
def _implicit_methods(kind: type) -> tuple[_Reached, ...]:
    """The methods that operations on an instance run without a name in the bytecode: `config["a"]`, `config.a`."""
    if _package_of(kind) in _EXEMPT:
        return ()
    special = [
        _code_of(value, kind)
        for base in kind.__mro__
        for name, value in list(vars(base).items())
        if name.startswith("__") and name.endswith("__") and name not in _NEVER_IMPLICIT
    ]
    return tuple(itertools.chain.from_iterable(special))


def _code_of(value: Any, owner: type | None = None) -> list[_Reached]:
    """The functions and classes that run when a value is called, or read as an attribute."""
    kind = type(value)
    if kind is types.FunctionType:
        named = MISSING if owner is None else static_attribute(owner, value.__name__)
        is_method = getattr(named, "__func__", named) is value or (type(named) is property and named.fget is value)
        return [_Reached(value, owner if is_method else None)]
    if isinstance(value, type):
        return [_Reached(value)]
    if kind in (classmethod, staticmethod):
        return _code_of(value.__func__, owner)
    if kind is types.MethodType:
        receiver = value.__self__
        return _code_of(value.__func__, receiver if isinstance(receiver, type) else type(receiver))
    if kind is property:
        return _code_of(value.fget, owner)
    if kind in (functools.cached_property, functools.partial):
        return _code_of(value.func, owner)
    if kind in _TABLES and 0 < len(value) <= _MOST_IN_TABLE:  # such as the functions for each mode
        parts = list(value.values() if kind is dict else value)
        return [found for each in parts if type(each) in _HOLD_CODE for found in _code_of(each)]
    if value is MISSING or kind is types.ModuleType or issubclass(kind, _NO_CODE):
        return []
    if kind is _Remembering:
        return _code_of(value.__wrapped__, owner)
    called = static_attribute(kind, "__call__")
    if type(called) is not types.FunctionType:
        return []
    try:
        held = object.__getattribute__(value, "__dict__").values()
    except AttributeError:
        held = ()
    inside = [found for each in list(held) if type(each) in _HOLD_CODE for found in _code_of(each)]
    return [_Reached(called, kind), *inside]


def _package_of(value: object) -> str:
    """The top-level package whose code a value is, or whose class it is an instance of."""
    if type(value) is types.FunctionType:
        name: object = value.__globals__.get("__name__")
    elif isinstance(value, types.ModuleType):
        name = vars(value).get("__name__")
    elif type(value) is types.MethodType:
        return _package_of(value.__func__)
    else:
        cls = value if isinstance(value, type) else type(value)
        name = type.__getattribute__(cls, "__dict__").get("__module__")
    return name.partition(".")[0] if isinstance(name, str) else "builtins"


def _loaded(function: types.FunctionType, owner: type | None, unknown: set[str]) -> Iterator[_Load]:
    """What the code of a function loads by name: globals, captured values, imports, and attributes of those.

    owner: the class that it is a method of. unknown: gets the names of attributes of other values, and of the methods
    that operations run.
    """
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    held: dict[str, Any] = {}  # what variables were assigned last, such as a module that is imported here
    pending = [function.__code__]
    while pending:
        code = pending.pop()
        pending += [each for each in code.co_consts if isinstance(each, types.CodeType)]
        value: Any = MISSING
        member: Any = MISSING
        constants: list[Any] = [0, None]
        for _, operation, number, _ in instructions(code):
            found_in = None
            if operation in _ATTRIBUTES:
                name = code.co_names[number >> _UNUSED_BITS.get(operation, 0)]
                if value is MISSING or (value is _SELF and owner is None) or operation == _OF_SUPER:
                    unknown.add(name)
                    value = MISSING
                else:
                    found_in = None if value is _SELF or _is_module(value) else _class_of(value)
                    value = _attribute(value, owner, name)
                    if value is MISSING and found_in is not None:  # what lies there now is not what will
                        unknown.add(name)
            elif operation == "IMPORT_FROM":
                member = _attribute(value, owner, code.co_names[number])
                yield _Load(member, code, None)
                continue
            elif operation.startswith("STORE_"):
                stored = _variable(code, operation, number)
                if stored:
                    held[stored] = member if member is not MISSING else MISSING if value is _SELF else value
                member = MISSING
                if operation == "STORE_FAST_LOAD_FAST":
                    value = _named(function, code, cells, held, "LOAD_FAST", number & 15)
                elif isinstance(value, types.ModuleType):
                    continue  # between the names of one import
            elif operation == "IMPORT_NAME":
                value = _module(function, code.co_names[number], *constants[-2:])
            else:
                if operation == "LOAD_CONST":
                    constants.append(code.co_consts[number])
                value = _named(function, code, cells, held, operation, number)
            if run := _names_run_by(operation, number if operation == "BINARY_OP" else 0):
                unknown.update(run)
            if value is not MISSING and value is not _SELF:
                if type(value) in _BUILTINS:
                    unknown.update(names_run_by_builtin(value))
                yield _Load(value, code, found_in)


@functools.cache
def _names_run_by(instruction: str, number: int) -> frozenset[str]:
    return frozenset(names_run_by(instruction, number))


def _variable(code: types.CodeType, operation: str, number: int) -> str:
    """The variable of a function that an instruction assigns the value on top of the stack; empty if it is none."""
    if operation.startswith(("STORE_FAST_LOAD", "STORE_FAST_STORE")):
        number >>= 4
    is_variable = operation.startswith(("STORE_FAST", "STORE_DEREF"))
    return code._varname_from_oparg(number) if is_variable else ""  # type: ignore[attr-defined]


def _named(
    function: types.FunctionType,
    code: types.CodeType,
    cells: dict[str, types.CellType],
    held: dict[str, Any],
    operation: str,
    number: int,
) -> Any:
    """The object that an instruction loads by its name; the receiver of a method stands for itself."""
    if operation == "LOAD_GLOBAL":
        name, space = code.co_names[number >> 1], function.__globals__
        return space.get(name, getattr(builtins, name, MISSING))
    if operation in _BY_CLASSES:
        name = code.co_names[number]
        return function.__globals__.get(name, getattr(builtins, name, MISSING))
    if not operation.startswith(("LOAD_FAST", "LOAD_DEREF", *_CAPTURED_BY_CLASSES)):
        return MISSING
    if operation == "LOAD_FAST_LOAD_FAST":
        number &= 15
    name = code._varname_from_oparg(number)  # type: ignore[attr-defined]
    if name in held:
        return held[name]
    if operation in ("LOAD_DEREF", *_CAPTURED_BY_CLASSES):
        cell = cells.get(name)
        try:
            return MISSING if cell is None else cell.cell_contents
        except ValueError:  # nothing is assigned to it yet
            return MISSING
    return _SELF if number == 0 and code.co_argcount > 0 else MISSING


def _module(function: types.FunctionType, name: str, level: int, wanted: object) -> Any:
    """What an import gives, if that is loaded: the module, or its package where nothing is wanted from it."""
    if level:
        try:
            name = importlib.util.resolve_name("." * level + name, function.__globals__.get("__package__"))
        except ImportError:  # as the import itself would
            return MISSING
    return sys.modules.get(name if wanted else name.partition(".")[0], MISSING)


def _attribute(value: Any, owner: type | None, name: str) -> Any:
    if value is _SELF:
        return MISSING if owner is None else static_attribute(owner, name)
    found = static_attribute(value, name)
    return sys.modules.get(f"{value.__name__}.{name}", MISSING) if found is MISSING and _is_module(value) else found


def _class_of(value: Any) -> type:
    return value if _is_class(value) else type(value)


def _is_class(value: object) -> bool:
    return issubclass(type(value), type)


def _is_module(value: object) -> bool:
    return type(value) is types.ModuleType
