"""Where code comes from: the application, an installed distribution, or the standard library.

In: a module, a function or a class. Out: its Origin. Application code is fingerprinted by its body; a distribution
by name and version; the standard library by name (Python's feature version is in the frame of every fingerprint).

Law: whatever is not shown to be a distribution or the standard library is the application's. Names prove nothing:
a module belongs where its file lies, and a function where its globals and its code's file belong.
"""

# Plain os.path, because pathlib takes several times longer and this runs at every first fingerprint.

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.machinery import EXTENSION_SUFFIXES, BuiltinImporter, FrozenImporter, ModuleSpec
from types import (
    BuiltinFunctionType,
    FunctionType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any, Final, Literal

import blake3

if TYPE_CHECKING:
    from collections.abc import Iterator

_NATIVE_SUFFIXES: Final = tuple(EXTENSION_SUFFIXES)
_HASHED_UP_TO: Final = 8 << 20  # larger native files are compared by size and time only: hashing them takes too long

Kind = Literal["application", "distribution", "standard"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose code it is.

    name, version: of the distribution (the version says more than a number where a number does not identify the
    code); for the standard library the name of the module and no version. module: dotted name of the module by the
    place of its file, not by what it says of itself; empty for application code.
    """

    kind: Kind
    name: str = ""
    version: str = ""
    module: str = ""


APPLICATION: Final = Origin("application")

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
    # site-packages may lie inside the directory of the standard library, so distributions come first
    found = _distribution_of(path) or _standard_of(path)
    if found is None:
        resolved = os.path.realpath(path)
        if resolved != path:  # reached through a link
            found = _distribution_of(resolved) or _standard_of(resolved)
    return found or APPLICATION


def _standard_of(path: str) -> Origin | None:
    for directory in _standard_directories():
        if path.startswith(directory):
            name = _dotted_name(path[len(directory) :])
            if name.partition(".")[0] in sys.stdlib_module_names:
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
    return (getattr(_namespace(module).get("__spec__"), "origin", None) or "").endswith(_NATIVE_SUFFIXES)


def module_of_globals(namespace: dict[str, Any]) -> ModuleType | None:
    """The imported module whose namespace is this very dict, or None."""
    name = namespace.get("__name__")
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
    module = module_of_globals(function.__globals__)
    if module is None:
        return APPLICATION
    origin = origin_of_module(module)
    if origin.kind == "application":
        return origin
    written_in = function.__code__.co_filename
    file = _namespace(module).get("__file__")
    if written_in == file:
        return origin
    if origin.kind == "standard" and written_in.startswith("<frozen "):
        return origin
    return APPLICATION


def origin_of_class(cls: type) -> Origin:
    """Where a class comes from: the module it names, if it is found there; application otherwise."""
    known = _classes.get(id(cls))
    if known is None:
        known = _classes[id(cls)] = (cls, _find_class(cls))
    module = known[1]
    if module is None:
        return APPLICATION
    return _BUILTINS if module is _builtins else origin_of_module(module)


_classes: dict[int, tuple[type, ModuleType | None]] = {}
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
    name = own["__module__"] if "__module__" in own else _name_of_module(cls)
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


def _publishes(module: object, cls: type) -> bool:
    return (
        isinstance(module, ModuleType)
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
        owner = sys.modules.get(name) if type(name) is str else None
        if not isinstance(owner, ModuleType) or _namespace(owner).get(getattr(builtin, "__name__", "")) is not builtin:
            return APPLICATION
    return origin_of_module(owner)


# native extensions of the application

_digests: dict[str, tuple[tuple[int, int, int, int], bytes]] = {}


def file_digest(module: ModuleType) -> bytes:
    """BLAKE3 of the file a module was loaded from, read again only when it has changed. OSError without a file."""
    spec = _namespace(module).get("__spec__")
    path = getattr(spec, "origin", None) or _namespace(module).get("__file__")
    if not isinstance(path, str):
        raise FileNotFoundError(f"module {_namespace(module).get('__name__')!r} was not loaded from a file")
    return _digest_of_file(path)


def _digest_of_file(path: str) -> bytes:
    stat = os.stat(path)
    state = (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    known = _digests.get(path)
    if known is None or known[0] != state:
        known = _digests[path] = (state, blake3.blake3().update_mmap(path).digest())
    return known[1]


# distributions


class _Distribution:
    """One .dist-info or .egg-info of a directory on sys.path."""

    __slots__ = ("_identity", "_record", "directory", "name", "version", "written")

    def __init__(self, directory: str, entry: str) -> None:
        self.directory = os.path.join(directory, entry)
        stem = re.sub(r"(-py\d[\d.]*)?\.(dist|egg)-info$", "", entry)
        name, _, version = stem.rpartition("-")
        self.name = _canonical(name or stem)
        self.version = version if name else ""
        self.written = (0, 0)
        self._record: bytes | None = None
        self._identity: str | None = None

    @property
    def record(self) -> bytes:
        """RECORD as it is on disk, with a line end in front; empty where there is none."""
        if self._record is None:
            path = os.path.join(self.directory, "RECORD")
            self._record = _read(path)
            if self._record:
                self._record = b"\n" + self._record
                stat = os.stat(path)
                self.written = (stat.st_mtime_ns, max(stat.st_mtime_ns, stat.st_ctime_ns))
        return self._record

    def forget_record(self) -> None:
        """Frees the text of RECORD; it is read again when needed."""
        self._record = None

    def line(self, path: str) -> list[str] | None:
        """Hash and size RECORD gives for a file, or None if the file is not listed."""
        start = self.record.find(b"\n" + path.encode() + b",")
        if start < 0:
            return None
        end = self.record.find(b"\n", start + 1)
        fields = self.record[start + 1 : end if end >= 0 else None].decode().strip().split(",")
        return fields[-2:]

    def has_top(self, top: str) -> bool:
        """Whether anything of the top-level package or module is listed."""
        found = b"\n" + top.encode() + b"/" in self.record or b"\n" + top.encode() + b"." in self.record
        if not found:
            self.forget_record()
        return found

    @property
    def editable(self) -> bool:
        """Whether the distribution is worked on in place."""
        return b'"editable":true' in _read(os.path.join(self.directory, "direct_url.json")).replace(b" ", b"")

    @property
    def identity(self) -> str:
        """The version, with a digest of the listed files where the version alone does not tell the code.

        What is installed from a directory, a file or a repository does not get a new version with every change.
        """
        if self._identity is None:
            self._identity = self.version
            if _read(os.path.join(self.directory, "direct_url.json")):
                listed = [line for line in self.record.splitlines() if _is_code(line)]
                self._identity += "@" + blake3.blake3(b"\n".join(sorted(listed))).hexdigest()
        return self._identity


def _is_code(line: bytes) -> bool:
    elsewhere = line.startswith((b"..", b"/"))  # scripts, which name the environment they are installed in
    return bool(line) and not elsewhere and b".dist-info/" not in line and b"__pycache__" not in line


class _Directory:
    """What is installed in one directory of sys.path, as of its last change."""

    __slots__ = ("_all_owners", "_owners", "changed", "distributions", "eggs_count", "path")

    def __init__(self, path: str, changed: int) -> None:
        self.path = path
        self.changed = changed
        # in a source checkout an egg-info says nothing about the state of the files beside it
        self.eggs_count = os.path.basename(os.path.dirname(path)) in ("site-packages", "dist-packages")
        self.distributions: dict[str, list[_Distribution]] = {}
        self._owners: dict[str, list[_Distribution]] = {}
        self._all_owners: dict[str, list[_Distribution]] = {}
        with os.scandir(path) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
        for name in names:
            found = _Distribution(path, name)
            self.distributions.setdefault(found.name, []).append(found)

    def owners(self, top: str) -> list[_Distribution]:
        """The distributions of the first name found to list anything under a top-level name; likely names first."""
        known = self._owners.get(top)
        if known is None:
            known = self._owners[top] = next(filter(None, self._search(top)), [])
        return known

    def all_owners(self, top: str) -> list[_Distribution]:
        """Every distribution that lists anything under a top-level name."""
        known = self._all_owners.get(top)
        if known is None:
            known = self._all_owners[top] = [found for same_name in self._search(top) for found in same_name]
        return known

    def _search(self, top: str) -> Iterator[list[_Distribution]]:
        alike = _canonical(top).strip("-")

        def unlikeliness(name: str) -> tuple[bool, bool, str]:
            return name != alike, alike not in name and name not in alike, name

        for name in sorted(self.distributions, key=unlikeliness):
            yield [found for found in self.distributions[name] if found.has_top(top)]


_directories: dict[str, _Directory | None] = {}


def _distribution_of(path: str) -> Origin | None:
    """The distribution of a file; APPLICATION if it lies loose beside distributions; None if it lies elsewhere."""
    for base in _bases(path):
        directory = _directory(base)
        if directory is None or not (directory.distributions or directory.eggs_count):
            continue
        relative = path[len(base) :].replace(os.sep, "/")
        return _listed(directory, relative, path) or (APPLICATION if directory.eggs_count else None)
    return None


def _bases(path: str) -> list[str]:
    return [base for base in _import_directories(tuple(sys.path)) if path.startswith(base)]


@lru_cache(maxsize=4)
def _import_directories(entries: tuple[object, ...]) -> list[str]:
    named = [entry for entry in entries if type(entry) is str and entry]
    bases = {os.path.join(entry, "") for entry in (*named, *map(os.path.realpath, named))}
    return sorted(bases, key=len, reverse=True)


def _directory(base: str) -> _Directory | None:
    try:
        changed = os.stat(base).st_mtime_ns
        known = _directories.get(base)
        if known is None or known.changed != changed:
            known = _directories[base] = _Directory(base, changed)
    except OSError:  # a zip file, or gone
        return None
    return known


def _listed(directory: _Directory, relative: str, path: str) -> Origin | None:
    top = relative.partition("/")[0].partition(".")[0]
    candidates = directory.owners(top)
    listed = [found for found in candidates if found.line(relative) is not None]
    if not listed:  # a namespace package spans distributions
        listed = [found for found in directory.all_owners(top) if found.line(relative) is not None]
    unchanged = [found for found in listed if not found.editable and _is_as_installed(found, relative, path)]
    if unchanged:
        # the remains of a broken upgrade may list the same file: both versions then name it
        version = "|".join(sorted(found.identity for found in unchanged))
        return Origin("distribution", unchanged[0].name, version, _dotted_name(relative))
    if not listed and directory.eggs_count:
        return _without_record(directory, top, relative, path)
    return None


def _is_as_installed(found: _Distribution, relative: str, path: str) -> bool:
    """Whether a listed file is still the one that was installed. Hashed only if it is newer than its RECORD."""
    algorithm, _, expected = (found.line(relative) or ["", ""])[0].partition("=")
    size = (found.line(relative) or ["", ""])[1]
    try:
        stat = os.stat(path)
        if not expected or not size.isdecimal() or stat.st_size != int(size):
            return False
        if path.endswith(_NATIVE_SUFFIXES) and stat.st_size > _HASHED_UP_TO:
            return stat.st_mtime_ns <= found.written[0] or _has_hash(path, algorithm, expected)
        newest = max(stat.st_mtime_ns, stat.st_ctime_ns)
        return newest <= found.written[1] or _has_hash(path, algorithm, expected)
    except OSError:
        return False


def _has_hash(path: str, algorithm: str, expected: str) -> bool:
    import base64
    import hashlib

    with open(path, "rb") as file:
        try:
            digest = hashlib.file_digest(file, algorithm).digest()
        except ValueError:  # an algorithm this Python does not have
            return False
    return base64.urlsafe_b64encode(digest).rstrip(b"=") == expected.encode().rstrip(b"=")


def _without_record(directory: _Directory, top: str, relative: str, path: str) -> Origin | None:
    """Packages of the operating system often have no RECORD: what is known is a version, and the file itself."""
    for found in directory.distributions.get(_canonical(top), ()):
        if found.record or not found.version:
            continue
        version = f"{found.version}#{_digest_of_file(path).hex()}"
        return Origin("distribution", found.name, version, _dotted_name(relative))
    return None


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _dotted_name(relative: str) -> str:
    """The module a file holds, by its path below a directory of sys.path."""
    folder, _, file = relative.replace(os.sep, "/").rpartition("/")
    name = file.partition(".")[0]
    parts = [part for part in folder.split("/") if part]
    return ".".join(parts if name == "__init__" else [*parts, name])


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
