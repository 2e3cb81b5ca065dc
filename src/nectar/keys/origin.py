"""Where code comes from: the application, an installed distribution, or the standard library.

In: a module, a function or a class. Out: its Origin. Application code is fingerprinted by its body; a distribution
by name and version; the standard library by name (Python's feature version is in the frame of every fingerprint).

Law: whatever is not shown to be a distribution or the standard library is the application's. Names prove nothing:
a module belongs where its file lies, and a function where its globals and its code's file belong.
"""

# Plain os.path, because pathlib takes several times longer and this runs at every first fingerprint.

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import cache
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any, Final

from nectar.keys.distributions import NATIVE_SUFFIXES, digest_of_file, distribution_of, dotted_name
from nectar.keys.scheme import SCHEME
from nectar.keys.weak import reference_in
from nectar.model.origin import APPLICATION, Origin

if TYPE_CHECKING:
    import weakref
    from collections.abc import Iterator


# Top-level packages or distributions that count as application code although they are installed.
application_packages: set[str] = set()


@contextmanager
def treat_as_application(*names: str) -> Iterator[None]:
    """Within the block the named installed packages (top-level or distribution names) are application code.

    Whatever was memoised about them outside the block must not be used inside it: make application_packages part of
    the key of such memos.
    """
    added = set(names) - application_packages
    application_packages.update(added)
    try:
        yield
    finally:
        application_packages.difference_update(added)


# modules

_namespace = vars(ModuleType)["__dict__"].__get__  # a subclass of ModuleType may answer __dict__ itself


class _Known:
    __slots__ = ("module", "origin", "spec")

    def __init__(self, module: ModuleType, spec: object, origin: Origin) -> None:
        self.module = module  # keeps the id in use
        self.spec = spec  # a reload makes a new one
        self.origin = origin


_modules: dict[int, _Known] = {}


def origin_of_module(module: ModuleType) -> Origin:
    """Where the module's code comes from. Remembered until the module is reloaded."""
    origin = _true_origin(module)
    if application_packages and origin.kind == "distribution" and _is_named(origin):
        return APPLICATION
    return origin


def is_module_of_application(name: str) -> bool:
    """Whether a module of this name is loaded from a file of the application."""
    module: Any = sys.modules.get(name)
    if not issubclass(type(module), ModuleType) or not isinstance(_namespace(module).get("__file__"), str):
        return False
    return origin_of_module(module) is APPLICATION


def is_installed(module: ModuleType) -> bool:
    """Whether a module is of the standard library or a distribution, even one that is treated as application code."""
    return _true_origin(module).kind != "application"


def _true_origin(module: ModuleType) -> Origin:
    known = _modules.get(id(module))
    spec = _namespace(module).get("__spec__")
    if known is None or known.spec is not spec:
        known = _modules[id(module)] = _Known(module, spec, _locate(module, spec))
    return known.origin


def _is_named(origin: Origin) -> bool:
    return origin.name in application_packages or origin.module.partition(".")[0] in application_packages


OWN_NAME: Final = "nectar-data"
_OWN: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_BUILD: Final = "_sysconfigdata_"  # begins the name of a module about how Python was built, one for each platform
_INTERPRETER: Final[tuple[object, ...]] = (BuiltinImporter, FrozenImporter)


def _locate(module: ModuleType, spec: object) -> Origin:
    if not isinstance(spec, ModuleSpec):
        return _of_native_parent(module)
    if spec.loader in _INTERPRETER:
        # a frozen application has its own modules among the frozen ones
        return _standard(spec.name) if spec.name.partition(".")[0] in sys.stdlib_module_names else APPLICATION
    path = spec.origin
    if not spec.has_location or not path or not os.path.isabs(path):
        return APPLICATION
    return _of_file(path)


def _of_file(path: str) -> Origin:
    if path.startswith(_OWN):
        # However Nectar is installed: what it does to results follows from the scheme.
        return Origin("distribution", OWN_NAME, f"scheme {SCHEME}", f"nectar.{dotted_name(path[len(_OWN) :])}")
    # site-packages may lie inside the directory of the standard library, so distributions come first
    found = distribution_of(path) or _standard_of(path)
    if found is None:
        resolved = os.path.realpath(path)
        if resolved != path:  # reached through a link
            found = distribution_of(resolved) or _standard_of(resolved)
    return found or APPLICATION


def _standard_of(path: str) -> Origin | None:
    for directory in _standard_directories():
        if path.startswith(directory):
            name = dotted_name(path[len(directory) :])
            if name.partition(".")[0] in sys.stdlib_module_names or name.startswith(_BUILD):
                return _standard(name)
    return None


def _standard(name: str) -> Origin:
    return Origin("standard", name, "", name)


def _of_native_parent(module: ModuleType) -> Origin:
    """Native extensions may register submodules that have neither a spec nor a file."""
    names = _namespace(module)
    parent_name, _, own_name = str(names.get("__name__", "")).rpartition(".")
    parent = sys.modules.get(parent_name)
    if "__file__" in names or not isinstance(parent, ModuleType) or _namespace(parent).get(own_name) is not module:
        return APPLICATION
    if not is_native(parent):
        return APPLICATION
    origin = origin_of_module(parent)
    if origin.kind == "application":
        return origin
    module_name = f"{origin.module}.{own_name}"
    return Origin(origin.kind, origin.name or module_name, origin.version, module_name)


@cache
def _standard_directories() -> list[str]:
    """What the standard library may lie in, longest first, each with a separator at its end."""
    home = getattr(sys, "_stdlib_dir", None) or os.path.dirname(os.__file__)
    tag = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    found = {
        home,
        os.path.join(home, "lib-dynload"),
        os.path.join(sys.base_exec_prefix, sys.platlibdir, tag, "lib-dynload"),
        os.path.join(sys.base_prefix, "lib", tag.replace(".", "") + ".zip"),
    }
    if os.name == "nt":
        found.add(os.path.join(sys.base_exec_prefix, "DLLs"))
        found.add(os.path.join(sys.base_prefix, tag.replace(".", "") + ".zip"))
    found |= {os.path.realpath(directory) for directory in found}
    return sorted((os.path.join(directory, "") for directory in found), key=len, reverse=True)


def is_native(module: ModuleType) -> bool:
    """Whether the module was loaded from a shared library."""
    return (getattr(_namespace(module).get("__spec__"), "origin", None) or "").endswith(NATIVE_SUFFIXES)


def module_of_globals(namespace: dict[str, Any]) -> ModuleType | None:
    """The imported module whose namespace is this very dict, or None."""
    spec = namespace.get("__spec__")
    for name in (namespace.get("__name__"), getattr(spec, "name", None)):  # modules may give themselves another name
        module = sys.modules.get(name) if type(name) is str else None
        if isinstance(module, ModuleType) and _namespace(module) is namespace:
            return module
    return None


# functions and classes


def origin_of_function(function: FunctionType) -> Origin:
    """Where a function comes from: the module that owns its globals, if its code lies in that module's file.

    Code that was generated or put there by somebody else (exec into a module, a replaced __code__) is application
    code: its body has to be looked at.
    """
    inner = made_when_called(function)
    module = module_of_globals(function.__globals__ if inner is None else inner.__globals__)
    if module is None:
        return _origin_of_copy(function)
    origin = origin_of_module(module)
    if origin.kind == "application":
        return origin
    written_in = (inner or function).__code__.co_filename
    file = _namespace(module).get("__file__")
    if written_in == file:
        return origin
    if origin.kind == "standard" and written_in.startswith("<frozen "):
        return origin
    if origin.name == "networkx" and written_in.startswith(_COMPILED_WHEN_CALLED):
        return origin
    return APPLICATION


_WRAPPINGS: Final = 8  # decorators on one function
_COMPILED_WHEN_CALLED: Final = "<class 'networkx.utils.decorators.argmap'> compilation"


def made_when_called(function: FunctionType) -> FunctionType | None:
    """The function that NetworkX makes another one of, and compiles that when it is first called; None for others."""
    inner: Any = function
    for _ in range(_WRAPPINGS):
        space = getattr(inner, "__dict__", {})
        if type(inner) is FunctionType and "__argmap__" not in space:
            return inner if inner is not function else None
        inner = space.get("__wrapped__")
    return None


def _origin_of_copy(function: FunctionType) -> Origin:
    """Where a function comes from that was pickled by value: a library, if code and globals are still the library's.

    A pickled class brings along what libraries have put into it, such as the __repr__ of a dataclass.
    """
    namespace, code = function.__globals__, function.__code__
    module = sys.modules.get(str(namespace.get("__name__")))
    if not isinstance(module, ModuleType) or _namespace(module).get("__file__") != code.co_filename:
        return APPLICATION
    origin = origin_of_module(module)
    if origin.kind == "application" or _code_named(module, code.co_qualname) != code:
        return APPLICATION
    own = _namespace(module)
    known = all(own.get(name) is value for name, value in namespace.items() if name not in _OF_MODULES)
    return origin if known else APPLICATION


_OF_MODULES: Final = frozenset({"__builtins__", "__name__", "__package__", "__path__", "__file__", "__doc__"})


def _code_named(module: ModuleType, qualified: str) -> object:
    """The code that a function of a module has, or that an inner function of one has."""
    found: Any = _namespace(module)
    for part in qualified.split("."):
        if part == "<locals>":
            found = getattr(found, "__code__", found)
        elif isinstance(found, dict):
            found = found.get(part)
        elif isinstance(found, CodeType):
            inner = [each for each in found.co_consts if isinstance(each, CodeType) and each.co_name == part]
            found = inner[0] if len(inner) == 1 else None
        else:
            found = vars(found).get(part) if isinstance(found, type) else None
    return getattr(found, "__code__", found)


def origin_of_class(cls: type) -> Origin:
    """Where a class comes from: the module it names, if it is found there; application otherwise."""
    known = _classes.get(id(cls))
    if known is None:
        known = _classes[id(cls)] = (reference_in(_classes, cls), _find_class(cls))
    module = known[1]
    if module is None:
        return APPLICATION
    return _BUILTINS if module is _builtins else origin_of_module(module)


_classes: Final[dict[int, tuple[weakref.ref[type], ModuleType | None]]] = {}
_builtins = sys.modules["builtins"]
_BUILTINS: Final = _standard("builtins")
_name_of_module = type.__dict__["__module__"].__get__
_name_of_class = type.__dict__["__qualname__"].__get__


def _find_class(cls: type) -> ModuleType | None:
    """The module a class is found in, by the name the class itself has; None if it cannot be found there."""
    if cls in _UNNAMED_BUILTIN_TYPES:
        return _builtins
    own = type.__getattribute__(cls, "__dict__")
    # static types have no entry of their own; the type's own descriptor takes the name from C
    name = own["__module__"] if "__module__" in own and cls.__flags__ & _HEAP_TYPE else _name_of_module(cls)
    module = sys.modules.get(name) if type(name) is str else None
    if not isinstance(module, ModuleType):
        return None
    found: object = _namespace(module)
    for part in _name_of_class(cls).split("."):
        if isinstance(found, type):
            found = type.__getattribute__(found, "__dict__").get(part)
        elif isinstance(found, dict):
            found = found.get(part)
        else:
            found = None
    if found is cls:
        return module
    # C code may publish a type under another name than its own, or not at all
    if not cls.__flags__ & _HEAP_TYPE and module is not _builtins:
        return module
    if module is _builtins:  # what C code says when it gives no module
        return next((native for native in list(sys.modules.values()) if _publishes(native, cls)), None)
    return module if any(value is cls for value in list(_namespace(module).values())) else None


def _publishes(module: Any, cls: type) -> bool:
    return (
        issubclass(type(module), ModuleType)
        and is_native(module)
        and any(value is cls for value in list(_namespace(module).values()))
    )


_HEAP_TYPE: Final = 1 << 9  # unset for types written as static C structures, whose names Python code cannot change


# Types of the interpreter that no module names, or names in another module than the type says.
def _interpreter_types() -> frozenset[type]:
    views: list[Any] = [{}.keys(), {}.values(), {}.items()]
    iterables: list[Any] = [(), [], "", "\u20ac", b"", bytearray(), range(0), range(1 << 70), {}, set(), *views]
    reversibles: list[Any] = [[], *views]
    descriptors: list[Any] = [object.__init__, str.join, vars(dict)["fromkeys"], vars(type)["__module__"]]
    functions: list[Any] = [lambda: None, (lambda: None).__code__, len, [].append, object().__str__]
    others: list[Any] = [None, ..., NotImplemented, sys, int | str, iter(int, 1), (_ for _ in ()), vars(int)]
    members: list[Any] = [vars(FunctionType)["__globals__"], vars(Origin)["kind"]]
    made = [*map(iter, iterables), *map(reversed, reversibles)]
    return frozenset(type(value) for value in (*views, *descriptors, *functions, *others, *members, *made))


_UNNAMED_BUILTIN_TYPES: Final = _interpreter_types()


def origin_of_builtin(builtin: BuiltinFunctionType | Any) -> Origin:
    """Where a function written in C (or Cython) comes from: the module it is bound to, or names and is found in."""
    owner = getattr(builtin, "__self__", None)
    if isinstance(owner, type):
        return origin_of_class(owner)
    if not isinstance(owner, ModuleType):
        name = getattr(builtin, "__module__", None)
        owner = sys.modules.get(name) if type(name) is str else _publisher_of(builtin)
        if not isinstance(owner, ModuleType) or _namespace(owner).get(getattr(builtin, "__name__", "")) is not builtin:
            return APPLICATION
    return origin_of_module(owner)


_publishers: dict[int, tuple[object, ModuleType]] = {}


def _publisher_of(builtin: Any) -> ModuleType | None:
    """The installed module in which a function is found that names none; None if several libraries have it.

    Nor is it the library's if a native module of the application has it, which may have put it there.
    """
    known = _publishers.get(id(builtin))
    if known is not None:
        return known[1]
    modules: list[Any] = list(sys.modules.values())  # cffi puts objects there that only say they are modules
    found: list[ModuleType] = [each for each in modules if issubclass(type(each), ModuleType)]
    having = [each for each in found if _namespace(each).get(builtin.__name__) is builtin]
    installed = sorted((each for each in having if is_installed(each)), key=lambda each: each.__name__)
    alone = len({_true_origin(each).name for each in installed}) == 1
    if not alone or any(is_native(each) for each in having if not is_installed(each)):
        return None
    _publishers[id(builtin)] = builtin, installed[0]
    return installed[0]


# native extensions of the application


def file_digest(module: ModuleType) -> bytes:
    """BLAKE3 of the file a module was loaded from, read again only when it has changed. OSError without a file."""
    spec = _namespace(module).get("__spec__")
    path = getattr(spec, "origin", None) or _namespace(module).get("__file__")
    if not isinstance(path, str):
        raise FileNotFoundError(f"module {_namespace(module).get('__name__')!r} was not loaded from a file")
    return digest_of_file(path)


def was_made_by_application(module: ModuleType) -> bool:
    """Whether a module was made by the application; libraries have modules without a file of their own."""
    if origin_of_module(module) is not APPLICATION or _is_compiled(module):
        return False
    top = sys.modules.get(str(module.__name__).partition(".")[0])
    return top is None or top is module or origin_of_module(top) is APPLICATION


def is_class_of_application(cls: type) -> bool:
    """Whether a class was made by the application; libraries have classes that no name leads to."""
    if not cls.__flags__ & _HEAP_TYPE or origin_of_class(cls) is not APPLICATION:
        return False
    name = str(cls.__module__)
    module = sys.modules.get(name) or sys.modules.get(name.partition(".")[0])
    return module is None or origin_of_module(module) is APPLICATION


def _is_compiled(module: ModuleType) -> bool:
    """Whether native code has made a module, as those of Rust make modules within theirs, which belong to no file."""
    name, values = _namespace(module).get("__name__"), list(_namespace(module).values())
    own = any(type(each) is BuiltinFunctionType and each.__module__ == name for each in values)
    return own and not any(type(each) is FunctionType for each in values)
