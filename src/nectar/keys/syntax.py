"""Sources of programs: what expressions in them begin with and lead to, by their names.

In: nodes of a syntax tree. Out: names, and what stands where. Nothing is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

GIVE_PARTS: Final = frozenset({"get", "setdefault"})
_ASKING: Final = frozenset({"getattr", "getattr_static", "__getattribute__"})
_GETTERS: Final = frozenset({"attrgetter", "itemgetter"})
_PASSING: Final = frozenset({"getitem", "next", "iter", "cast"})
IMPORTERS: Final = frozenset({"import_module", "__import__"})


def scopes(tree: ast.AST) -> Iterator[tuple[str, list[ast.AST]]]:
    """The nodes of a module outside its functions, in their order, then those of each function with its name."""
    pending = [tree]
    for scope in pending:
        nodes: list[ast.AST] = []
        inside = list(reversed(list(ast.iter_child_nodes(scope))))
        while inside:
            node = inside.pop()
            nodes.append(node)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                pending.append(node)
            else:
                inside += reversed(list(ast.iter_child_nodes(node)))
        yield getattr(scope, "name", ""), nodes


def asked_of(node: ast.expr) -> ast.expr:
    """`getattr(a, "b")` and the like as the attribute or part that they ask for; any other expression as it is."""
    if not isinstance(node, ast.Call) or not node.args:
        return node
    called, given = names_in(node.func)[-1], node.args
    if isinstance(node.func, ast.Call):  # attrgetter("b")(a)
        maker = names_in(node.func.func)[-1]
        return ast.Attribute(given[0], _text(node.func.args), ast.Load()) if maker in _GETTERS else node
    if called in _ASKING and len(given) > 1:
        return ast.Attribute(given[0], _text(given[1:]), ast.Load())
    if called == "reduce" and len(given) > 2 and names_in(given[0])[-1] in (*_ASKING, "getitem"):
        return ast.Attribute(given[2], _text(given[1:2]), ast.Load())
    if called in _PASSING:
        return ast.Attribute(given[-1] if called == "cast" else given[0], "", ast.Load())
    return node


def _text(nodes: list[ast.expr]) -> str:
    """The text that is written down as the first of several expressions, or as all that a list consists of."""
    first = nodes[0] if nodes else None
    parts = first.elts if isinstance(first, (ast.List, ast.Tuple)) else [first]
    texts = [each.value for each in parts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return ".".join(texts)


def alternatives(node: ast.expr) -> list[ast.expr]:
    """The expressions of which one gives what an expression gives, or what lies in a list that is written down."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return node.elts
    return [node.value] if isinstance(node, (ast.NamedExpr, ast.Starred, ast.Await)) else []


def is_inside(node: ast.expr) -> bool:
    """Whether an expression is a part of something that has a name: attributes, subscripts, `get()` of a table."""
    if isinstance(node, ast.Name):
        return False
    while not isinstance(node, ast.Name):
        node = asked_of(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in GIVE_PARTS:
            node = node.func
        if not isinstance(node, (ast.Attribute, ast.Subscript)):
            return False
        node = node.value
    return True


def module_by_name(node: ast.expr) -> str:
    """The module that an expression such as `sys.modules["a.b"]` gives; empty if its name is not written there.

    Names that are computed are those of plugins, and hardly ever of libraries: if any could be meant, nothing
    would be cached.
    """
    if isinstance(node, ast.Subscript) and names_in(node.value)[-2:] == ["sys", "modules"]:
        named: ast.expr = node.slice
    elif isinstance(node, ast.Call) and node.args and names_in(node.func)[-1] in IMPORTERS:
        named = node.args[0]
    else:
        return ""
    return named.value if isinstance(named, ast.Constant) and isinstance(named.value, str) else ""


def innermost(node: ast.expr) -> ast.expr:
    """What a chain of attributes begins with: `import_module("a")` in `import_module("a").TABLE.update`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)) and not module_by_name(node):
        node = node.value
    return node


def ending(node: ast.expr) -> str:
    """A name that stands alone, or the last two of a chain."""
    return ".".join(names_in(node)[-2:])


def targets_of(node: ast.AST) -> list[ast.expr]:
    """What a statement assigns to, or deletes."""
    if isinstance(node, (ast.Assign, ast.Delete)):
        found = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        found = [node.target]
    else:
        return []
    return [part for each in found for part in (each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each])]


def is_plain(node: ast.expr) -> bool:
    """Whether an expression is nothing but names with dots between."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def names_in(node: ast.expr) -> list[str]:
    """The names in a chain of attributes, subscripts and calls; the first is empty if it begins otherwise."""
    found: list[str] = []
    while True:
        if isinstance(node, ast.Call):
            node = asked_of(node)
        if isinstance(node, ast.Name):
            return [node.id, *reversed(found)]
        if isinstance(node, ast.Attribute):
            found.append(node.attr)
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call):
            is_vars = isinstance(node.func, ast.Name) and node.func.id == "vars" and len(node.args) == 1
            node = node.args[0] if is_vars else node.func
        else:
            return ["", *reversed(found)]


def parameters_changed(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[int]:
    """The positions of parameters that a function may change, as far as its text tells; rather one too many.

    What gets another name, or is handed on by a call whose result nobody takes, may be changed.
    """
    given = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    changed: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            changed.update(names_in(target)[0] for target in targets_of(node))
            if isinstance(node, (ast.Assign, ast.NamedExpr)) and isinstance(node.value, ast.Name):
                changed.add(node.value.id)
            call = node.value if isinstance(node, ast.Expr) else node if node in body else None
            if isinstance(call, ast.Call):
                changed.update(names_in(each)[0] for each in (call.func, *call.args))
    return {at for at, name in enumerate(given) if name in changed}
