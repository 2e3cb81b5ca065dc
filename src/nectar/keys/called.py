"""What sources call to change something: by the words of its name, and because nobody takes what it gives.

In: nodes of a syntax tree. Out: what they call, and which words in its name say that it is called to change something.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from nectar.keys.syntax import alternatives, names_in

# First words of names of functions that are called to change something: if nobody takes what they give; or always.
_CHANGING: Final = (
    "activate add append bind configure deactivate define disable discard enable extend inline insert install override "
    "patch provide register remove seed set setdefault setup unbind uninstall unregister update use"
)
IF_DISCARDED: Final = frozenset(_CHANGING.split())
ALWAYS: Final = frozenset({"set", "register", "unregister"})
_AS_DECORATOR: Final = frozenset({"register"})
# Words in names of what is entered to change something for a while.
_FOR_A_WHILE: Final = frozenset(
    {"bound", "config", "context", "contextvars", "errstate", "option", "options", "override", "using"}
)
_WORDS: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def bases_in(node: ast.AST) -> list[ast.expr]:
    """The bases of a class statement, or those that a call such as `type("Name", (Base,), {})` is given."""
    if isinstance(node, ast.ClassDef):
        return node.bases
    if not isinstance(node, ast.Call):
        return []
    given = [*node.args[1:], *(each.value for each in node.keywords if each.arg == "bases")]
    return [base for each in given if isinstance(each, ast.Tuple) for base in each.elts]


def calls_in(node: ast.AST) -> Iterator[tuple[ast.expr, frozenset[str]]]:
    """What a node calls, each with the words that say it is called to change something."""
    if isinstance(node, ast.Expr):
        yield from ((call.func, IF_DISCARDED) for call in discarded(node.value))
    elif isinstance(node, ast.Call):
        yield node.func, ALWAYS
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            if isinstance(item.context_expr, ast.Call):
                yield item.context_expr.func, IF_DISCARDED
                yield item.context_expr.func, _FOR_A_WHILE
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        for each in node.decorator_list:
            yield (each.func if isinstance(each, ast.Call) else each), _AS_DECORATOR


def discarded(value: ast.expr) -> Iterator[ast.Call]:
    """The calls in an expression of a statement whose results nobody takes."""
    if isinstance(value, ast.Call):
        yield value
    elif isinstance(value, ast.Await):
        yield from discarded(value.value)
    elif isinstance(value, (ast.ListComp, ast.SetComp)):
        yield from discarded(value.elt)
    elif isinstance(value, (ast.IfExp, ast.BoolOp)):
        yield from (call for each in alternatives(value) for call in discarded(each))


def words_in(name: str) -> list[str]:
    """The words of a name such as `add_unit` or `addUnit`."""
    return [each.lower() for each in _WORDS.findall(name)]


def is_named_for(call: ast.expr, words: frozenset[str]) -> bool:
    """Whether the name of what is called says that it is called to change something."""
    parts = words_in(names_in(call)[-1])
    return bool(parts) and (parts[0] in words or (words is _FOR_A_WHILE and not words.isdisjoint(parts)))
