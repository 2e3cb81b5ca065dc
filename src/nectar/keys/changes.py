"""Where the application changes what a library keeps: registers something, or assigns to what lies in its modules.

In: the name of a top-level package. Out: the first place in the application's sources that does so, for people.
Results of the library may depend on it, and on whether it has happened yet; keys do not hold registries and tables of
libraries, which may be large, and are filled by the libraries themselves too. Read from sources: modules leave nothing
else of what they did when they were imported. What a call does is told by its name, or by its code (setters.py). What a
function sets and another gives is in keys (conventions.py).
"""

from __future__ import annotations

import ast
import os
import re
import sys
import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from nectar.keys.conventions import is_setting, is_told_by_a_getter
from nectar.keys.setters import changes_library, resolved

# First words of names of functions that are called to change something: if nobody takes what they give; or always.
_CHANGING: Final = (
    "activate add append bind configure deactivate define disable discard enable extend inline insert install override "
    "patch register remove seed set setdefault setup unbind uninstall unregister update use"
)
_IF_DISCARDED: Final = frozenset(_CHANGING.split())
_ALWAYS: Final = frozenset({"set", "register", "unregister"})
_AS_DECORATOR: Final = frozenset({"register"})
# Words in names of what is entered to change something for a while.
_FOR_A_WHILE: Final = frozenset(
    {"bound", "config", "context", "contextvars", "errstate", "option", "options", "override", "using"}
)
_WORDS: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_TELLING: Final = frozenset({"logging", "loguru", "structlog", "rich", "tqdm"})  # called to tell people something
_STANDARD: Final = (
    os.path.join(os.path.dirname(os.__file__), ""),
    os.path.join(os.path.dirname(os.path.dirname(__file__)), ""),
)
_INSTALLED: Final = ("site-packages", "dist-packages")
_LONGEST: Final = 4 << 20  # characters of a source; what is longer is data


def change_of(package: str) -> str:
    """The first place where the application changes what a package keeps, such as "main.py:3"; empty if it does not."""
    return _first_change(package, len(sys.modules), next(reversed(sys.modules)))


@lru_cache(maxsize=1024)
def _first_change(package: str, loaded: int, last: str) -> str:
    """loaded, last: how many modules there are of all, and the one that came last."""
    places = (_changes_in(module, package) for module in _modules_of_application(loaded, last))
    return next(filter(None, places), "")


@lru_cache(maxsize=1)
def _modules_of_application(loaded: int, last: str) -> list[types.ModuleType]:
    """Modules of the application, told by their paths: to ask whose each file is would take long."""
    found = [each for each in list(sys.modules.values()) if type(each) is types.ModuleType]
    return [each for each in found if _is_of_application(vars(each).get("__file__"))]


def _is_of_application(file: object) -> bool:
    return isinstance(file, str) and not file.startswith(_STANDARD) and not any(each in file for each in _INSTALLED)


def _changes_in(module: types.ModuleType, package: str) -> str:
    text = _source_of(module)
    return _places_in(module).get(package, "") if package in text else ""


@lru_cache(maxsize=1024)
def _source_of(module: types.ModuleType) -> str:
    """The source of a module; empty if there is none to be had."""
    file = vars(module).get("__file__")
    if not isinstance(file, str) or not file.endswith(".py"):
        return ""
    try:
        with open(file, "rb") as opened:
            return opened.read(_LONGEST).decode("utf-8", "replace")
    except OSError:
        return ""


@lru_cache(maxsize=1024)
def _places_in(module: types.ModuleType) -> dict[str, str]:
    """For each package that a module changes: where first."""
    try:
        tree = ast.parse(_source_of(module))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    name = str(vars(module)["__file__"]).replace("\\", "/").rpartition("/")[2]
    found: dict[str, str] = {}
    reader = _Reader(module, tree)
    for package, node in reader.changes(tree):
        found.setdefault(package, f"{name}:{node.lineno}")
    return found


class _Reader:
    """What a source changes. imported: by its names, where what they stand for lies."""

    def __init__(self, module: types.ModuleType, tree: ast.AST) -> None:
        self.space = vars(module)
        self.imported: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    top = each.name.partition(".")[0]
                    self.imported[each.asname or top] = each.name if each.asname else top
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self.imported.update((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)

    def changes(self, tree: ast.AST) -> Iterator[tuple[str, Any]]:
        """The packages that are changed, each with the node that does so."""
        for node in ast.walk(tree):
            for target in _targets(node):
                if isinstance(target, (ast.Attribute, ast.Subscript)):
                    yield from self._of(target.value, node)
            for call, words in _calls(node):
                if _is_named_for(call, words) or (words is not _ALWAYS and self._changes_by_its_code(call)):
                    yield from self._of(call, node)

    def _changes_by_its_code(self, call: ast.expr) -> bool:
        """Whether what is called, as far as names lead to it, changes its library: by its code, or it has a getter."""
        chain = _names(call) if _is_plain(call) else [""]
        path = self.imported.get(chain[0])
        top = None if path is None else sys.modules.get(path.partition(".")[0])
        if path is None or top is None or _is_of_application(vars(top).get("__file__")):
            return False
        if path.partition(".")[0] in _TELLING:
            return False
        value, module = resolved(".".join([path, *chain[1:]]), sys.modules)
        name = chain[-1]
        is_setter = name.startswith("set") and type(module) is types.ModuleType and "g" + name[1:] in vars(module)
        return is_setter or changes_library(value, module)

    def _of(self, node: ast.expr, at: Any) -> Iterator[tuple[str, Any]]:
        first, *names = _names(node)
        package, *below = [*self.imported.get(first, "").split("."), *names]
        if package and not self._is_told_by_a_getter(first, names) and not (below and is_setting(below[0])):
            yield package, at

    def _is_told_by_a_getter(self, first: str, names: list[str]) -> bool:
        """Whether a function sets what another one of its package gives, without arguments: keys ask that one."""
        module = self.space.get(first)
        if len(names) != 1 or not names[0].startswith("set") or not isinstance(module, types.ModuleType):
            return False
        return is_told_by_a_getter(module, names[0])


def _targets(node: ast.AST) -> list[ast.expr]:
    """What a statement assigns to, or deletes."""
    if isinstance(node, (ast.Assign, ast.Delete)):
        found = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        found = [node.target]
    else:
        return []
    return [part for each in found for part in (each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each])]


def _calls(node: ast.AST) -> Iterator[tuple[ast.expr, frozenset[str]]]:
    """What a node calls, each with the words that say it is called to change something."""
    if isinstance(node, ast.Expr):
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(value, ast.Call):
            yield value.func, _IF_DISCARDED
    elif isinstance(node, ast.Call):
        yield node.func, _ALWAYS
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            if isinstance(item.context_expr, ast.Call):
                yield item.context_expr.func, _IF_DISCARDED
                yield item.context_expr.func, _FOR_A_WHILE
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        for each in node.decorator_list:
            yield (each.func if isinstance(each, ast.Call) else each), _AS_DECORATOR


def _is_named_for(call: ast.expr, words: frozenset[str]) -> bool:
    """Whether the name of what is called says that it is called to change something."""
    parts = [each.lower() for each in _WORDS.findall(_names(call)[-1])]
    return bool(parts) and (parts[0] in words or (words is _FOR_A_WHILE and not words.isdisjoint(parts)))


def _is_plain(node: ast.expr) -> bool:
    """Whether an expression is nothing but names with dots between."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _names(node: ast.expr) -> list[str]:
    """The names in a chain of attributes, subscripts and calls; the first is empty if it begins otherwise."""
    found: list[str] = []
    while True:
        if isinstance(node, ast.Name):
            return [node.id, *reversed(found)]
        if isinstance(node, ast.Attribute):
            found.append(node.attr)
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return ["", *reversed(found)]
