"""The statements of a module, and what each does to the rest of it: names that it binds, names that it speaks of.

In: a text. Out: Statements. Law: a statement that may do more than bind names when it is run counts as one that has to
be run.
"""

from __future__ import annotations

import ast
import builtins
import re
import typing
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import resolve_name
from typing import Final, Literal

Role = Literal["run", "bind", "import", "idle"]

# Decorators that do nothing but make another function or class of one.
_DECORATORS: Final = frozenset(
    {"lru_cache", "cache", "cached_property", "wraps", "contextmanager", "asynccontextmanager", "dataclass", "property",
     "staticmethod", "classmethod", "total_ordering", "overload", "override", "final", "memo", "pure", "depends_on",
     "setter", "getter", "deleter", "abstractmethod", "singledispatch", "runtime_checkable", "unique"}
)  # fmt: skip
# Calls that do nothing but make a value.
_MAKERS: Final = frozenset(
    {"get", "getenv", "compile", "getLogger", "Path", "PurePath", "TypeVar", "NewType", "namedtuple", "frozenset",
     "set", "dict", "list", "tuple", "str", "bytes", "int", "float", "bool", "len", "range", "sorted", "min", "max",
     "sum", "object", "MappingProxyType", "Decimal", "Fraction", "date", "datetime", "timedelta",
     "SecretStr", "encode", "split", "join", "lower", "upper", "strip", "format", "items", "keys", "values"}
)  # fmt: skip
_BASES: Final = frozenset({*dir(builtins), *typing.__all__, "Enum", "IntEnum", "StrEnum", "Flag", "ABC"})
_NAME: Final = re.compile(r"[^\W\d]\w*")
# Who speaks of these can get at anything by its name.
DYNAMIC: Final = frozenset(
    {"globals", "vars", "locals", "eval", "exec", "dir", "__dict__", "__import__", "import_module", "modules",
     "getmembers", "__subclasses__", "__init_subclass__", "_getframe", "get_type_hints"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Taken:
    """What an import takes: name from module, under another name. name: empty if it takes the module itself."""

    module: str
    name: str
    bound: str


@dataclass(frozen=True, slots=True)
class Statement:
    """Lines of a module that stand or go together.

    role: "run" if it does more than binding names, "idle" if it does nothing. with_: it matters as soon as one of these
    names does. star: modules of which everything is taken.
    """

    first: int
    last: int
    role: Role
    binds: frozenset[str] = frozenset()
    mentions: frozenset[str] = frozenset()
    with_: frozenset[str] = frozenset()
    taken: tuple[Taken, ...] = ()
    star: tuple[str, ...] = ()
    node: ast.stmt | None = field(default=None, compare=False)


@lru_cache(256)  # most recipes of a process are made of the same modules
def statements_of(text: str, package: str, own: frozenset[str]) -> tuple[Statement, ...]:
    """The statements of a module. own: modules of the application. Raises SyntaxError and the like."""
    found: list[Statement] = []
    body = ast.parse(text).body
    here = {name: imported for node in body for name, imported in _bound_by(node, package, own)}
    spoken: dict[str, frozenset[str]] = {}
    for node in body:
        for name in _targets(node):
            spoken[name] = spoken.get(name, frozenset()) | (mentions_of(node) & here.keys())
    for number, node in enumerate(body):
        each = _Reading(package, own, here, spoken).statement(node, is_first=number == 0)
        if found and each.first <= found[-1].last:  # on one line with the one before
            each = _united(found.pop(), each)
        found.append(each)
    return tuple(found)


def _united(one: Statement, other: Statement) -> Statement:
    role: Role = "idle" if one.role == other.role == "idle" else "run"
    return Statement(
        one.first, other.last, role, one.binds | other.binds, one.mentions | other.mentions, frozenset(),
        (*one.taken, *other.taken), (*one.star, *other.star),
    )  # fmt: skip


def _bound_by(node: ast.stmt, package: str, own: Container[str]) -> Iterator[tuple[str, bool]]:
    """Names that a statement binds, and whether it takes them from a library."""
    if isinstance(node, ast.Import):
        yield from ((each.asname or each.name.partition(".")[0], each.name not in own) for each in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = absolute(node, package)
        yield from ((each.asname or each.name, base not in own) for each in node.names)
    else:
        yield from ((name, False) for name in _targets(node))


def _targets(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
        return
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield each.name


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads the statements of one module.

    here: names that it binds, and whether they come from a library. spoken: of those that it makes itself, the names of
    the module of which they speak.
    """

    package: str
    own: Container[str]
    here: dict[str, bool]
    spoken: dict[str, frozenset[str]]

    def statement(self, node: ast.stmt, *, is_first: bool) -> Statement:
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)])
        last = node.end_lineno or node.lineno
        if isinstance(node, ast.Import | ast.ImportFrom):
            return self._import(node, first, last)
        role, with_ = self._role(node)
        if is_first and _is_text(node):
            return Statement(first, last, "bind", frozenset({"__doc__"}))
        if role == "idle":
            return Statement(first, last, role)
        taken = tuple(each for inner in ast.walk(node) for each in self._taken(inner))
        star = tuple(each for inner in ast.walk(node) for each in self._star(inner))
        return Statement(first, last, role, frozenset(_targets(node)), mentions_of(node), with_, taken, star)

    def _import(self, node: ast.Import | ast.ImportFrom, first: int, last: int) -> Statement:
        taken, star = tuple(self._taken(node)), tuple(self._star(node))
        if star or len(taken) < len(node.names):  # of libraries, or of everything
            return Statement(
                first, last, "run", mentions=frozenset(each.name for each in taken), taken=taken, star=star
            )
        return Statement(first, last, "import", frozenset(each.bound for each in taken), taken=taken, node=node)

    def _taken(self, node: ast.AST) -> Iterator[Taken]:
        """What an import takes from modules of the application."""
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.name in self.own:
                    yield Taken(each.name, "", each.asname or each.name.partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node, self.package) or ""
            for each in node.names:
                if each.name != "*" and (base in self.own or f"{base}.{each.name}" in self.own):
                    yield Taken(base, each.name, each.asname or each.name)

    def _star(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.ImportFrom) and any(each.name == "*" for each in node.names):
            base = absolute(node, self.package)
            if base in self.own:
                yield str(base)

    # what a statement does

    def _role(self, node: ast.stmt) -> tuple[Role, frozenset[str]]:
        if _is_text(node) or isinstance(node, ast.Pass) or _is_never_run(node):
            return "idle", frozenset()
        if isinstance(node, ast.Assign):
            named = all(isinstance(part, ast.Name) for each in node.targets for part in _parts(each))
            return ("bind" if named and _is_plain(node.value) else "run"), frozenset()
        if isinstance(node, ast.AnnAssign):
            named = isinstance(node.target, ast.Name)
            return ("bind" if named and _is_plain(node.value) else "run"), frozenset()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return self._definition(node.decorator_list, [*node.args.defaults, *node.args.kw_defaults])
        if isinstance(node, ast.ClassDef):
            role, with_ = self._definition(node.decorator_list, [])
            if node.keywords or not all(map(self._is_plain_in_class, node.body)):
                return "run", frozenset()
            for base in node.bases:
                root = _root(base)
                if not root or (root not in _BASES and self.here.get(root, True)):
                    return "run", frozenset()  # a base of a library, which may note its subclasses
                with_ |= {root} - _BASES
            return role, with_
        return "run", frozenset()

    def _definition(
        self, decorators: Iterable[ast.expr], values: Iterable[ast.expr | None]
    ) -> tuple[Role, frozenset[str]]:
        with_: set[str] = set()
        for each in decorators:
            call = each.func if isinstance(each, ast.Call) else each
            last = call.attr if isinstance(call, ast.Attribute) else call.id if isinstance(call, ast.Name) else ""
            if last in _DECORATORS:
                continue
            root = _root(call)
            if root not in self.spoken:  # of another module, which may note what it is given
                return "run", frozenset()
            with_ |= self._within_reach(root)
        return ("bind" if all(map(_is_plain, values)) else "run"), frozenset(with_)

    def _within_reach(self, name: str) -> set[str]:
        """The names of the module that what has this name may change when it is called."""
        found, pending = {name}, [name]
        while pending:
            new = self.spoken.get(pending.pop(), frozenset()) - found
            found |= new
            pending.extend(new)
        return found

    def _is_plain_in_class(self, node: ast.stmt) -> bool:
        role, with_ = self._role(node)
        return role in ("bind", "idle") and not with_ - _BASES


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_never_run(node: ast.stmt) -> bool:
    """A block that is run in the script itself, or for type checkers."""
    if not isinstance(node, ast.If) or node.orelse:
        return False
    test = node.test
    if isinstance(test, ast.Name | ast.Attribute):
        return (test.id if isinstance(test, ast.Name) else test.attr) == "TYPE_CHECKING"
    return ast.unparse(test) in ("__name__ == '__main__'", "'__main__' == __name__")


def _is_plain(value: ast.AST | None) -> bool:
    """Whether a value is made without doing anything else."""
    if value is None:
        return True
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name not in _MAKERS and not _is_inside_function(value, node):
                return False
        elif isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
            return False
    return True


def _is_inside_function(value: ast.AST, call: ast.Call) -> bool:
    """Whether a call is one of a lambda, which is not run now."""
    return any(isinstance(each, ast.Lambda) and call in set(ast.walk(each.body)) for each in ast.walk(value))


def _parts(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from _parts(each)
    else:
        yield target


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


# names


def mentions_of(node: ast.AST) -> frozenset[str]:
    """All names that code speaks of, in whatever sense: more than it needs, and never less."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            found.add(each.id)
        elif isinstance(each, ast.Attribute):
            found.add(each.attr)
        elif isinstance(each, ast.Global | ast.Nonlocal):
            found.update(each.names)
        elif isinstance(each, ast.alias):
            found.update((*each.name.split("."), each.asname or ""))
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.isidentifier():
            found.add(each.value)
        elif isinstance(each, ast.arg | ast.AnnAssign | ast.FunctionDef | ast.AsyncFunctionDef):
            annotation = each.returns if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) else each.annotation
            if annotation is not None:
                found.update(_NAME.findall(ast.unparse(annotation)))
    return frozenset(found)


def absolute(node: ast.ImportFrom, package: str) -> str | None:
    """The module that names are taken from; None if that would be outside of the package."""
    try:
        return resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module
    except ImportError:
        return None
