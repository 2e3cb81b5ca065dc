"""Where the application changes what a library keeps: registers something, or assigns to what lies in its modules.

In: the name of a top-level package. Out: the first place in the application's sources that does so, for people.
Results of the library may depend on it, and on whether it has happened yet; keys do not hold registries and tables of
libraries, which may be large, and are filled by the libraries themselves too. Read from sources: modules leave nothing
else of what they did when they were imported. What a call does is told by its name, or by its code (setters.py). What a
function sets and another gives is in keys (conventions.py).
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
import types
from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from nectar.keys import unlisted
from nectar.keys.called import ALWAYS, IF_DISCARDED, bases_in, calls_in, is_named_for
from nectar.keys.conventions import is_setting, is_told_by_a_getter, shows
from nectar.keys.executed import is_of_application
from nectar.keys.native import Made, is_changed_by_name, is_set_by_name, made_natively
from nectar.keys.program_text import ANY, MAYBE, ProgramText
from nectar.keys.purity.mutators import MUTATORS, mutators_of
from nectar.keys.setters import (
    changed_by,
    changes_library,
    changes_library_when_derived,
    changes_what_outlives,
    class_made_by,
    hands_out,
    resolved,
)
from nectar.keys.syntax import (
    GIVE_PARTS,
    IMPORTERS,
    alternatives,
    asked_of,
    ending,
    innermost,
    is_inside,
    is_plain,
    module_by_name,
    names_in,
    parameters_changed,
    scopes,
    targets_of,
)
from nectar.keys.texts import program_texts, version_of_program

_PATCHES: Final = frozenset({"patch", "setattr", "delattr", "setitem", "delitem"})  # of mock, pytest and setattr's like
_TELLING: Final = frozenset({"logging", "loguru", "structlog", "rich", "tqdm"})  # called to tell people something
_CONTAINERS: Final = (dict, list, set)
_VIEWS: Final = frozenset({"values", "items"})
_SELF: Final = "self"
_OWN: Final = frozenset({_SELF, "cls"})
# What changes its first argument, by its last names: `mock.patch.dict(table, ...)`, `operator.setitem(table, ...)`.
_CHANGERS: Final = (
    "patch.dict setattr delattr object.__setattr__ object.__delattr__ type.__setattr__ type.__delattr__ setitem "
    "delitem operator.setitem operator.delitem"
)
_CHANGE_THEIR_ARGUMENT: Final = frozenset(_CHANGERS.split()) | {
    f"{kind.__name__}.{name}" for kind in MUTATORS for name in mutators_of(kind)
}


def change_of(package: str) -> str:
    """The first place where the application changes what a package keeps, such as "main.py:3"; empty if it does not."""
    return _first_place(package, False, version_of_program())


def patch_of(package: str) -> str:
    """The first place where the application patches a package by its name, or puts something into its tables; or ""."""
    return _first_place(package, True, version_of_program())


def assignment_to(module: str) -> str:
    """The first place where the application assigns to something in a module of the standard library; else empty."""
    return _first_assignment(module, version_of_program())


@lru_cache(maxsize=1024)
def _first_assignment(module: str, now: Hashable) -> str:
    """Texts in which nothing looks like such an assignment are not parsed: every program names these modules.

    What lies in a module that is not Python's is read by nobody but the program, whose fingerprint holds it.
    """
    if not str(getattr(sys.modules.get(module), "__file__", "")).endswith(".py"):
        return ""
    assigns = re.compile(rf"\b{module}\.[\w.]+\s*(\[[^\]\n]*\]\s*)*{_IN_PLACE}=(?!=)|\bimport {module} as ")
    for text in program_texts(now):
        if why := text.may_change(module, patched=True):
            return why
        if assigns.search(text.source) and (place := _first_of(_places_in(text).assigned, module)):
            return place
    return ""


@lru_cache(maxsize=1024)
def _first_place(package: str, patched: bool, now: Hashable) -> str:
    """patched: patches by name and tables alone. now: the version of the program's texts."""
    return next(filter(None, (_changes_in(text, package, patched) for text in program_texts(now))), "")


def _changes_in(text: ProgramText, package: str, patched: bool) -> str:
    source = text.source
    if why := text.may_change(package, patched):
        return why
    if package not in source and not any(each in source for each in IMPORTERS) and not _runs_any(text):
        return ""
    patch = _patches_in(text).get(package, "")
    if patch or (patched and not _may_fill(source, package)):
        return patch
    found = _places_in(text).filled if patched else _places_in(text).changed
    return _first_of(found, package)


def _first_of(places: dict[str, str], package: str) -> str:
    return places.get(package, "") or places.get(ANY, "")


@lru_cache(maxsize=1024)
def _runs_any(text: ProgramText) -> bool:
    return unlisted.runs_any(text.source)


def _may_fill(source: str, package: str) -> bool:
    """Whether a source may put something into a table of a package, so that it is worth to take it apart."""
    return _FILLS.search(source) is not None or re.search(rf"\bfrom {package}\b[\w.]* import ", source) is not None


_CODE: Final = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_IN_PLACE: Final = r"(?:[-+*/%&|^@]|//|\*\*|<<|>>)?"
_FILLS: Final = re.compile(
    r"\b(?!self\b|cls\b)\w+\.[\w.]+(?:\[[^\]\n]*\])+\s*(?:=(?!=)|[-+|]=)|\bdel \w+\.|\b(?:exec|run_path)\b"
)


class _Places(NamedTuple):
    """For each package that a module changes, assigns to, or puts into a table of: where first."""

    changed: dict[str, str]
    assigned: dict[str, str]
    filled: dict[str, str]


@lru_cache(maxsize=1024)
def _places_in(text: ProgramText) -> _Places:
    found = _Places({}, {}, {})
    tree = _tree_of(text)
    if tree is None:
        why = f"{MAYBE}{text.place(1).rpartition(':')[0]} cannot be taken apart"
        return _Places({ANY: why}, {ANY: why}, {ANY: why})
    if _runs_any(text):
        _add_what_is_run(tree)
    reader = _Reader(text, tree)
    for package, node in reader.changes(tree):
        found.changed.setdefault(package, text.place(node.lineno))
        if not all(map(reader.holds_code, targets_of(node))):
            found.assigned.setdefault(package, text.place(node.lineno))
        if any(map(reader.is_in_table, targets_of(node))):
            found.filled.setdefault(package, text.place(node.lineno))
    for call in unlisted.run_unseen(tree):
        found.changed.setdefault(ANY, text.place(call.lineno))
        found.filled.setdefault(ANY, text.place(call.lineno))
    return found


@lru_cache(maxsize=1024)
def _patches_in(text: ProgramText) -> dict[str, str]:
    """For each package that a text patches by its name: where first. Most have no word for that."""
    source = text.source
    is_named = not source.isascii() or any(each in source for each in _PATCHES)  # letters may have several forms
    tree = _tree_of(text) if is_named else None
    found: dict[str, str] = {}
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.Call) and (package := _patched_by_name(node)):
            found.setdefault(package, text.place(node.lineno))
    return found


def _tree_of(text: ProgramText) -> ast.Module | None:
    """A text taken apart; None if it cannot be."""
    try:
        return ast.parse(text.source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _add_what_is_run(tree: ast.Module) -> None:
    """Takes in texts that a source runs, as if they stood where they are run."""
    for text, call in list(unlisted.run_by(tree)):
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            found = ast.parse(text).body
            for node in (inner for each in found for inner in ast.walk(each)):
                if hasattr(node, "lineno"):
                    node.lineno = call.lineno
            tree.body += found


class _Reader:
    """What a source changes. imported: by its names, where what they stand for lies."""

    def __init__(self, text: ProgramText, tree: ast.AST) -> None:
        self.space = text.space
        self.imported: dict[str, str] = {}
        self.attributes: dict[str, str] = {}  # of objects of the application
        self.given: dict[str, str] = {}  # by functions of the source
        self.made: dict[str, tuple[type, str]] = {}  # classes of libraries that names of the module are instances of
        self.functions: dict[str, list[Any]] = {}  # by name, wherever they are defined
        self.native: dict[str, Made] = {}  # what names stand for that keeps its state in native code
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    top = each.name.partition(".")[0]
                    self.imported[each.asname or top] = each.name if each.asname else top
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                for target in node.targets:
                    self.functions.setdefault(names_in(target)[-1], []).append(node.value)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self.imported.update((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)

    def changes(self, tree: ast.AST) -> Iterator[tuple[str, Any]]:
        """The packages that are changed, each with the node that does so."""
        (_, module), *functions = scopes(tree)
        self.imported |= self._aliases(module)
        known = self.imported
        inside = [(module, known)]
        for name, nodes in functions:
            given = {each.arg for each in nodes if isinstance(each, ast.arg)}
            self.imported = {each: path for each, path in known.items() if each not in given}
            self.imported |= self._aliases(nodes)
            inside.append((nodes, self.imported))
            returned = (each.value for each in nodes if isinstance(each, ast.Return) and each.value is not None)
            if name and (path := next(filter(None, map(self._part_of_library, returned)), "")):
                self.given[name] = path
        for nodes, names in inside:
            self.imported = names
            self.imported = names | self._aliases(nodes)  # by now it is known what functions give, and objects hold
            yield from self._changes_of(nodes)

    def _aliases(self, nodes: list[ast.AST]) -> dict[str, str]:
        """Names that a scope gives to parts of libraries, as in `formats = library.FORMATS`, and where those lie."""
        found: dict[str, str] = {}
        for node in nodes:
            for target, path in self._named_parts(node, found):
                if isinstance(target, ast.Name):
                    found[target.id] = path
                elif isinstance(target, ast.Attribute) and names_in(target)[0] == _SELF:
                    self.attributes[target.attr] = path
        return found

    def _named_parts(self, node: ast.AST, found: dict[str, str]) -> Iterator[tuple[ast.expr, str]]:
        """The targets of an assignment or a loop that become a part of a library, and where it lies."""
        if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            looped = node.iter
            if isinstance(looped, ast.Call) and isinstance(looped.func, ast.Attribute) and looped.func.attr in _VIEWS:
                looped = looped.func.value
            path = self._path_of(names_in(looped), found) if is_plain(looped) else self._part_of_library(looped, found)
            targets = [node.target]
        elif isinstance(node, (ast.Assign, ast.NamedExpr, ast.AnnAssign)) and node.value is not None:
            path = self._part_of_library(node.value, found)
            self._note_class(node)
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        else:
            return
        for target in targets if path else ():
            for each in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                yield each, path

    def _note_class(self, node: ast.Assign | ast.NamedExpr | ast.AnnAssign) -> None:
        """Remembers of what class of a library something is that gets a name, if a call makes it."""
        path = self._path_in_library(node.value.func) if isinstance(node.value, ast.Call) else ""
        value = resolved(path, sys.modules)[0] if path else None
        made = class_made_by(value) if path else None
        native = self._made_natively(node.value)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target]) if made or native else ():
            if isinstance(target, ast.Name) and made:
                self.made[target.id] = made, path.partition(".")[0]
            if native:
                self.native[names_in(target)[-1]] = native

    def _part_of_library(self, node: ast.expr, found: dict[str, str] | None = None) -> str:
        """Where a part of a library lies that an expression gives; empty if it gives none. found: aliases so far."""
        for each in alternatives(node):
            if path := self._part_of_library(each, found):
                return path
        inner = node
        while True:
            inner = asked_of(inner)
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in GIVE_PARTS:
                inner = inner.func
            if module := module_by_name(inner):
                return module
            if not isinstance(inner, (ast.Attribute, ast.Subscript)):
                break
            inner = inner.value
        if isinstance(inner, ast.Name):
            return "" if inner is node else self._path_of(names_in(node), found or {})
        return self._handed_out(inner) if isinstance(inner, ast.Call) else ""

    def _handed_out(self, call: ast.Call) -> str:
        """Where something that a call gives is kept by a library; empty if it is new, as far as one can tell."""
        if isinstance(call.func, ast.Name) and call.func.id in self.given:
            return self.given[call.func.id]
        path = self._path_in_library(call.func)
        return f"{path}()" if path and hands_out(*resolved(path, sys.modules)) else ""

    def _path_of(self, names: list[str], found: dict[str, str] | None = None) -> str:
        """Where what a chain of names stands for lies, if it begins with something of a library; else empty."""
        first, *rest = names
        if first == _SELF and rest and rest[0] in self.attributes:
            return ".".join([self.attributes[rest[0]], *rest[1:]])
        root = (found or {}).get(first) or self.imported.get(first) or self.given.get(first)
        return ".".join([root, *rest]) if root else ""

    def _changes_of(self, nodes: list[ast.AST]) -> Iterator[tuple[str, Any]]:
        for node in nodes:
            for target in targets_of(node):
                if isinstance(target, (ast.Attribute, ast.Subscript)):
                    yield from self._of(target.value, node, target.attr if isinstance(target, ast.Attribute) else "")
                if isinstance(target, ast.Attribute):
                    yield from self._set_natively(target, node)
            bases = bases_in(node)
            if any(map(self._registers_subclasses, bases)):
                yield from (found for base in bases for found in self._of(base, node))
            if isinstance(node, ast.Call):
                yield from (found for given in self._given_to_be_changed(node) for found in self._of(given, node))
            for call, words in calls_in(node):
                if (
                    is_named_for(call, words)
                    or (words is not ALWAYS and self._changes_by_its_code(call))
                    or (words is IF_DISCARDED and self._calls_what_was_given(call))
                ):
                    yield from self._of(call, node)
                first, *method = names_in(call)
                if first in self.made and len(method) == 1 and words is not ALWAYS:
                    cls, package = self.made[first]
                    if changes_what_outlives(cls, method[0]):
                        yield package, node
                if isinstance(node, ast.Expr) and isinstance(call, ast.Attribute):
                    yield from self._called_natively(call, node)

    def _set_natively(self, target: ast.Attribute, node: Any) -> Iterator[tuple[str, Any]]:
        """The library that an assignment may change by an attribute of a native object."""
        made = self._made_natively(target.value)
        if made is not None and made.may_set_for_all():
            yield made.package, node
        elif made is None and names_in(target)[0] not in _OWN:
            yield from ((each, node) for each in self._packages() if is_set_by_name(each, target.attr))

    def _called_natively(self, call: ast.Attribute, node: Any) -> Iterator[tuple[str, Any]]:
        """The library that a method may change of an object which keeps its state natively."""
        made = self._made_natively(call.value)
        if made is not None and made.may_change_all(call.attr):
            yield made.package, node
        elif made is None and is_named_for(call, IF_DISCARDED):
            yield from ((each, node) for each in self._packages() if is_changed_by_name(each, call.attr))

    def _made_natively(self, node: ast.expr | None) -> Made | None:
        """What an expression gives, if a call has made it and it keeps its state in native code."""
        if isinstance(node, ast.Call):
            path = self._path_in_library(node.func)
            value = resolved(path, sys.modules)[0] if path else None
            return made_natively(path, value, class_made_by(value)) if path else None
        return self.native.get(names_in(node)[-1]) if node is not None and is_plain(node) else None

    def _packages(self) -> set[str]:
        return {path.partition(".")[0] for path in self.imported.values()}

    def _changes_by_its_code(self, call: ast.expr) -> bool:
        """Whether what is called, as far as names lead to it, changes its library: by its code, or it has a getter."""
        path = self._path_in_library(call)
        if not path or path.partition(".")[0] in _TELLING:
            return False
        value, owner = resolved(path, sys.modules)
        name = path.rpartition(".")[2]
        is_setter = name.startswith("set") and type(owner) is types.ModuleType and "g" + name[1:] in vars(owner)
        is_mutator = type(owner) in _CONTAINERS and name in mutators_of(type(owner))
        return is_setter or is_mutator or changes_library(value, owner)

    def _calls_what_was_given(self, call: ast.expr) -> bool:
        """Whether what a library gave is called, and nobody takes the result: `library.checks("even")(is_even)`."""
        return isinstance(call, ast.Call) and bool(self._path_in_library(call.func))

    def holds_code(self, target: ast.expr) -> bool:
        """Whether code lies where a source assigns to: keys hold what the application puts into modules and classes."""
        first, *names = names_in(target)
        value, owner = resolved(".".join([self.imported.get(first, ""), *names]), sys.modules)
        return isinstance(value, _CODE) and isinstance(owner, (type, types.ModuleType))

    def is_in_table(self, target: ast.expr) -> bool:
        """Whether an assignment puts something into a table of a library that is not one of settings."""
        if not isinstance(target, ast.Subscript) or not is_inside(target):
            return False
        path = self._path_of(names_in(target)).split(".")
        return not any(_is_looked_at(".".join(path[:at]), path[at:]) for at in range(len(path)))

    def _given_to_be_changed(self, call: ast.Call) -> list[ast.expr]:
        """Parts of libraries that are handed to a function of the application which changes its parameter."""
        parts = [at for at, each in enumerate(call.args) if self._is_of_library(each)]
        if 0 in parts and ending(call.func) in _CHANGE_THEIR_ARGUMENT:
            return [call.args[0]]
        function: Any = self._function_called(call.func) if parts else None
        if type(function) is types.FunctionType:
            return [call.args[at] for at in parts if at in changed_by(function)]
        defined = self.functions.get(ending(call.func), []) if parts else []  # in another function, perhaps
        return [call.args[at] for at in parts if any(at in parameters_changed(each) for each in defined)]

    def _is_of_library(self, node: ast.expr) -> bool:
        """Whether an expression is something that was imported, a part of it, or what it hands out."""
        if isinstance(node, ast.Name) or is_inside(node):
            return bool(self._path_of(names_in(node)))
        return bool(self._part_of_library(node))

    def _function_called(self, node: ast.expr) -> object:
        """What a name, or a name in a module of the application, stands for; None if nobody knows before it runs."""
        first, *names = names_in(node) if is_plain(node) else [""]
        found = self.space.get(first)
        for name in names:
            found = vars(found).get(name) if isinstance(found, types.ModuleType) else None
        return found

    def _registers_subclasses(self, base: ast.expr) -> bool:
        """Whether a class of a library changes what the library keeps when a class is derived from it."""
        path = self._path_in_library(base)
        if not path or path.partition(".")[0] in sys.stdlib_module_names:
            return False
        value, _ = resolved(path, sys.modules)
        return isinstance(value, type) and changes_library_when_derived(value)

    def _path_in_library(self, node: ast.expr) -> str:
        """Where what a name with dots stands for lies, if a library is imported under it; else empty."""
        chain = names_in(node) if is_plain(node) else [""]
        path = self.imported.get(chain[0])
        top = None if path is None else sys.modules.get(path.partition(".")[0])
        if path is None or top is None or is_of_application(vars(top).get("__file__")):
            return ""
        return ".".join([path, *chain[1:]])

    def _of(self, node: ast.expr, at: Any, attribute: str = "") -> Iterator[tuple[str, Any]]:
        first, *names = chain = names_in(node)
        if module := module_by_name(innermost(node)):
            yield module.partition(".")[0], at
            return
        if self._is_made_anew(node):
            return
        package, *below = self._path_of(chain).split(".")
        is_called = any(isinstance(each, ast.Call) for each in ast.walk(node))
        is_looked_at = not is_called and _is_looked_at(package, below, attribute)
        if package and not self._is_told_by_a_getter(first, names) and not is_looked_at:
            yield package, at

    def _is_made_anew(self, node: ast.expr) -> bool:
        """Whether a chain begins with an instance that it makes, as in `library.Word("a").set_name("b")`."""
        made: ast.expr | None = None
        while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
            made, node = (node.func, node.func) if isinstance(node, ast.Call) else (made, node.value)
        path = "" if made is None else self._path_in_library(made)
        kind, _ = resolved(path, sys.modules) if path else (None, None)
        if not isinstance(kind, type) or type(kind).__call__ is not type.__call__:
            return False
        return not any("__new__" in vars(base) for base in kind.__mro__[:-1])

    def _is_told_by_a_getter(self, first: str, names: list[str]) -> bool:
        """Whether a function sets what another one of its package gives, without arguments: keys ask that one."""
        module = self.space.get(first)
        if len(names) != 1 or not names[0].startswith("set") or not isinstance(module, types.ModuleType):
            return False
        return is_told_by_a_getter(module, names[0])


def _is_looked_at(package: str, below: list[str], attribute: str = "") -> bool:
    """Whether keys hold what lies in a package, or a part of it, under these names, as one of its settings.

    attribute: that is assigned to, of what lies there.
    """
    if not below or not is_setting(below[0]):
        return False
    value, _ = resolved(f"{package}.{below[0]}", sys.modules)
    if isinstance(value, types.ModuleType):
        return len(below) == 1 or is_setting(below[1])
    top = package.partition(".")[0]
    if len(below) == 1 or not attribute:
        return shows(value, top, attribute)
    return shows(value, top) and shows(resolved(".".join([package, *below]), sys.modules)[0], top, attribute)


def _patched_by_name(call: ast.Call) -> str:
    """The package that a call patches by a text such as `mock.patch("package.name")`; empty if it is no such call."""
    text = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    if not isinstance(text, str) or _PATCHES.isdisjoint(names_in(call.func)) or "." not in text:
        return ""
    return text.partition(".")[0]
