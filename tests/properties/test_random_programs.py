"""Random programs under edits: what behaves differently differs in fingerprint; what only looks different does not.

500 programs by default with a fixed seed, each with edits at random depth. NECTAR_TEST_PROGRAMS asks for another
number of programs, NECTAR_TEST_SEED for others; `make test-deep` runs many more.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
import types
import warnings
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.properties.random_programs import NAMES, Maker, Node, behaviour, edited, source_of

import nectar
from nectar.keys import outcome

PROGRAMS = int(os.environ.get("NECTAR_TEST_PROGRAMS", "500"))
SEED = int(os.environ.get("NECTAR_TEST_SEED", "0"))
EDITS = 6
PLANS = range(24)

# Captured variables whose name an inlined comprehension uses too; the handler every generator has counts as a look.
# unraisable errors of abandoned generators are part of random programs
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def _compiled(source: str) -> Any:
    """f of the source, or None if the source is no Python (an edit may break it)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as `1 is x`
        try:
            code = compile(source, "<program>", "exec", dont_inherit=True)
        except SyntaxError:
            return None
    space: dict[str, Any] = {"__name__": "program"}
    exec(code, space)
    return space["f"]


def _programs(first: int, count: int, anonymous: bool = False) -> Iterator[tuple[Random, list[Node]]]:
    for seed in range(first, first + count):
        random = Random(seed)
        yield random, Maker(random, random.random() < 0.2, anonymous).function()


def _search(first: int, count: int) -> tuple[list[str], int]:
    """Texts of pairs that share a fingerprint and behave differently; and how many programs were looked at."""
    wrong: list[str] = []
    looked_at = 0
    known: dict[str, tuple[str, list[tuple[str, str]]]] = {}
    for random, tree in _programs(first, count):
        for variant in (tree, *(edited(tree, random) for _ in range(EDITS))):
            source = source_of(variant)
            f = _compiled(source)
            if f is None:
                continue
            looked_at += 1
            fingerprint = str(nectar.fingerprint(f))
            done = behaviour(f, PLANS, inspect.isgeneratorfunction(f))
            assert str(nectar.fingerprint(f)) == fingerprint, "calling it changed its fingerprint:\n" + source
            other, then = known.setdefault(fingerprint, (source, done))
            if then != done:
                wrong.append(f"{other}\n--- has the fingerprint of ---\n{source}")
        outcome.forget()
    return sorted(wrong, key=len), looked_at


def _report(wrong: list[str]) -> str:
    return f"{len(wrong)} pairs share a fingerprint and behave differently; the shortest:\n{wrong[0] if wrong else ''}"


def test_programs_that_behave_differently_have_different_fingerprints() -> None:
    wrong, looked_at = _search(SEED, PROGRAMS)
    assert looked_at > 5 * PROGRAMS
    assert not wrong, _report(wrong)


@pytest.mark.deep
@pytest.mark.parametrize("part", range(20))
def test_many_programs_that_behave_differently_have_different_fingerprints(part: int) -> None:
    wrong, _ = _search(1_000_000 + SEED + part * 1000, 1000)
    assert not wrong, _report(wrong)


# edits that change nothing


class _Rename(ast.NodeTransformer):
    """Locals that are not parameters get other names, in nested functions too."""

    names = {name: f"renamed_{name}" for name in NAMES if name not in ("a", "b")}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.names.get(node.arg, node.arg)
        return node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        node.names = [self.names.get(name, name) for name in node.names]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        node.name = self.names.get(node.name, node.name) if node.name else None
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.names.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> ast.AST:
        node.name = self.names.get(node.name, node.name) if node.name else None
        return self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> ast.AST:
        node.name = self.names.get(node.name, node.name) if node.name else None
        return node


class _AddConstants(ast.NodeTransformer):
    """Constants nobody reads stand before statements, and every function gets a docstring."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        body = getattr(node, "body", None)
        if not isinstance(body, list) or isinstance(node, ast.Module):
            return node
        # with nothing but a jump inside, a try is compiled in another way
        jumps = isinstance(node, ast.Try) and isinstance(body[0], (ast.Break, ast.Continue, ast.Return))
        if not jumps and self.random.random() < 0.5:
            text = ast.Constant(self.random.choice(("dead", 17, None)))
            body.insert(0, ast.Expr(text))
        return node


def _renamed(source: str, random: Random) -> str:
    return ast.unparse(ast.fix_missing_locations(_Rename().visit(ast.parse(source))))


def _reformatted(source: str, random: Random) -> str:
    lines = ast.unparse(ast.parse(source)).splitlines()
    return "# moved\n\n" + "".join(
        f"{line}  # {at}\n" if random.random() < 0.3 else f"{line}\n" for at, line in enumerate(lines)
    )


def _with_constants(source: str, random: Random) -> str:
    return ast.unparse(ast.fix_missing_locations(_AddConstants(random).visit(ast.parse(source))))


def _between_other_code(source: str, random: Random) -> str:
    before = "import math\nUNRELATED = [1]\ndef other(n):\n    return n + UNRELATED[0]\n"
    return f"{before}{source}\ndef another():\n    return math.pi\n"


@pytest.mark.parametrize("edit", [_renamed, _reformatted, _with_constants, _between_other_code])
def test_edits_that_change_nothing_keep_the_fingerprint(edit: Any) -> None:
    for random, tree in _programs(500_000 + SEED, max(PROGRAMS // 5, 1), anonymous=True):
        source = source_of(tree)
        f = _compiled(source)
        if f is None:
            continue
        new = edit(source, random)
        changed = _compiled(new)
        assert changed is not None, new
        assert str(nectar.fingerprint(changed)) == str(nectar.fingerprint(f)), f"{source}\n--- became ---\n{new}"


def test_a_helper_may_live_anywhere_and_change_its_name() -> None:
    for at, (_, tree) in enumerate(_programs(600_000 + SEED, max(PROGRAMS // 10, 1), anonymous=True)):
        body = source_of(tree)
        # What is kept on the stack over a handler counts as looking at the error, and so at names.
        if _compiled(body) is None or "finally" in body or "with" in body:
            continue
        caller = "def f(n):\n    return helper(n, 1, 2)\n"
        here = _module(f"here_{at}", body.replace("def f(", "def helper(", 1) + caller)
        away = _module(f"away_{at}", body.replace("def f(", "def assistant(", 1))
        user = _module(f"user_{at}", "def f(n):\n    return away.assistant(n, 1, 2)\n", away=away)
        assert str(nectar.fingerprint(here.f)) == str(nectar.fingerprint(user.f)), body
        for module in (here, away, user):
            del sys.modules[module.__name__]


def test_a_difference_at_any_depth_shows() -> None:
    for random, tree in _programs(700_000 + SEED, max(PROGRAMS // 10, 1)):
        body = source_of(tree)
        new = source_of(edited(tree, random))
        if _compiled(body) is None or _compiled(new) is None:
            continue
        depth = random.randint(1, 6)
        chain = "".join(f"def g{at}(*a):\n    return g{at + 1}(*a)\n" for at in range(depth))
        chain += f"g{depth} = f\n"
        one, other = _outer(body + chain), _outer(new + chain)
        same = str(nectar.fingerprint(_compiled(body))) == str(nectar.fingerprint(_compiled(new)))
        assert (str(nectar.fingerprint(one)) == str(nectar.fingerprint(other))) is same, f"{body}\n---\n{new}"


def _outer(source: str) -> Any:
    return vars(_module("program", source))["g0"]


def _module(name: str, source: str, **names: object) -> types.ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module
    vars(module).update(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(source, f"{name}.py", "exec", dont_inherit=True), vars(module))
    return module
