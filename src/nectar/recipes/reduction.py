"""Modules without what nobody needs who runs a recipe: the parts of their texts that captured code can get at.

In: the texts of modules as a program has them, the names and the functions it reached. Out: the same modules, each line
where it was, and blank if nothing needs it: statements that only bind names which nothing speaks of, imports of them,
comments, and what is run in the script alone. Modules that nothing imports any more are left out.

Law: what is run when a module is imported stays, unless it only binds names; so do all statements of a name that kept
code speaks of, in whatever sense. Where code can get at anything by its name, everything stays. Whoever runs the recipe
computes its fingerprint anew: code that lacks something has another one, or none.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType

from nectar.recipes.statements import DYNAMIC, Statement, Taken, statements_of


@dataclass(frozen=True, slots=True)
class Given:
    """A module as it is. package: what its relative imports begin in. codes: of functions of it that are reached."""

    text: str
    package: str
    codes: Sequence[CodeType] = ()


@dataclass(slots=True)
class _Module:
    """A module on the way. kept: statements by number. taken: of imports, the names that are needed."""

    given: Given
    statements: Sequence[Statement]
    kept: set[int] = field(default_factory=set)
    taken: dict[int, set[Taken]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reached:
    """What a program comes to by itself.

    imported: modules that it imports. modules: those of which it reaches functions, by whatever way. names: of which
    these speak. spoken: of which its pickles speak, which look up nothing by itself.
    """

    imported: Collection[str]
    modules: Collection[str]
    names: Collection[str] = ()
    spoken: Collection[str] = ()


def reduced(modules: Mapping[str, Given], program: Reached) -> dict[str, str]:
    """The texts of the modules that are needed."""
    try:
        own = frozenset(modules)
        found = {name: _Module(given, statements_of(given.text, given.package, own)) for name, given in modules.items()}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {name: given.text for name, given in modules.items()}
    need = _Need(found, program)
    if not need.settled():
        return {name: given.text for name, given in modules.items()}
    return {name: _text_of(found[name]) for name in need.live}


class _Need:
    """What is needed, and what that needs, until nothing is added any more."""

    def __init__(self, modules: Mapping[str, _Module], program: Reached) -> None:
        self._modules, self._reached = modules, program.modules
        self._names = {*program.names, *program.spoken}
        self._dynamic = not DYNAMIC.isdisjoint(program.names)
        self._whole: set[str] = set()  # modules of which everything is taken
        self._imported: set[str] = set()
        self.live: set[str] = set()
        for name in program.imported:
            self._import(name)

    def settled(self) -> bool:
        """True once everything is known; False if code can get at anything by its name."""
        before = (-1, -1, -1)
        while before != (now := self._extent()):
            before = now
            for name in sorted(self.live):
                self._look(name, self._modules[name])
            if before == self._extent():
                self._import_what_is_reached()
        return not self._dynamic

    def _import_what_is_reached(self) -> None:
        """Of a module that nothing imports so far, and of which functions are reached all the same, one import stays.

        Perhaps it has put them somewhere when it was imported.
        """
        for name in sorted(set(self._reached) - self._imported):
            if name in self._modules:
                if not self._keep_an_import_of(name):
                    self._import(name)
                return

    def _keep_an_import_of(self, name: str) -> bool:
        for here in sorted(self.live):
            module = self._modules[here]
            for number, statement in enumerate(module.statements):
                meant = [each for each in statement.taken if name in (each.module, f"{each.module}.{each.name}")]
                if statement.role == "import" and meant:
                    self._keep_taken(module, number, meant[0])
                    return True
        return False

    def _extent(self) -> tuple[int, int, int]:
        kept = sum(len(each.kept) + sum(map(len, each.taken.values())) for each in self._modules.values())
        return kept, len(self._names), len(self.live) + len(self._whole)

    def _import(self, name: str) -> None:
        while name:
            if name in self._modules:
                self.live.add(name)
                self._imported.add(name)
            name = name.rpartition(".")[0]

    def _look(self, name: str, module: _Module) -> None:
        for number, statement in enumerate(module.statements):
            if statement.role == "import":
                self._look_at_import(name, module, number, statement)
            elif number not in module.kept and self._is_needed(name, module, statement):
                module.kept.add(number)
                self._names |= statement.mentions
                self._dynamic |= not DYNAMIC.isdisjoint(statement.mentions)
                for taken in statement.taken:
                    self._take(taken)
                for each in statement.star:
                    self._whole.add(each)
                    self._import(each)

    def _is_needed(self, name: str, module: _Module, statement: Statement) -> bool:
        if statement.role == "idle":
            return False
        if statement.role == "run" or name in self._whole:
            return True
        if any(each.startswith("__") and each != "__doc__" for each in statement.binds):
            return True
        if not self._names.isdisjoint(statement.binds | statement.with_):
            return True
        lines = range(statement.first, statement.last + 1)
        return any(code.co_firstlineno in lines for code in module.given.codes)

    def _look_at_import(self, name: str, module: _Module, number: int, statement: Statement) -> None:
        known = module.taken.setdefault(number, set())
        for taken in statement.taken:
            if taken not in known and self._is_import_needed(name, module, taken):
                self._keep_taken(module, number, taken)

    def _keep_taken(self, module: _Module, number: int, taken: Taken) -> None:
        module.taken.setdefault(number, set()).add(taken)
        module.kept.add(number)
        self._names.add(taken.bound)
        self._take(taken)

    def _is_import_needed(self, name: str, module: _Module, taken: Taken) -> bool:
        if name in self._whole or taken.bound in self._names:
            return True
        # A module that is imported, and of which nothing here speaks, is imported for what it does.
        is_module = not taken.name or f"{taken.module}.{taken.name}" in self._modules
        return is_module and not any(taken.bound in each.mentions for each in module.statements)

    def _take(self, taken: Taken) -> None:
        if taken.name:
            self._names.add(taken.name)
            self._import(f"{taken.module}.{taken.name}")
        self._import(taken.module)


# texts


def _text_of(module: _Module) -> str:
    """The text with the statements that are kept where they were; and with no comments."""
    lines = io.StringIO(module.given.text).readlines()
    blank = [_ending(line) for line in lines]
    for number in module.kept:
        statement = module.statements[number]
        inside = range(statement.first - 1, statement.last)
        if statement.node is not None and len(module.taken[number]) < len(statement.taken):
            blank[statement.first - 1] = _import_of(statement.node, module.taken[number]) + _ending(lines[inside[0]])
            continue
        for each in inside:
            blank[each] = lines[each]
    return _without_comments("".join(blank))


def _ending(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _import_of(node: ast.stmt, taken: Collection[Taken]) -> str:
    bound = {each.bound for each in taken}
    assert isinstance(node, ast.Import | ast.ImportFrom), "only imports are cut"
    names = [each for each in node.names if (each.asname or each.name.partition(".")[0]) in bound]
    if isinstance(node, ast.Import):
        return ast.unparse(ast.Import(names))
    return ast.unparse(ast.ImportFrom(node.module, names, node.level))


@lru_cache(256)
def _without_comments(text: str) -> str:
    lines = io.StringIO(text).readlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip() + _ending(lines[row - 1])
    return "".join(lines)
