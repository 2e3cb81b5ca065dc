"""Credentials that are written into Python code: which literals they are, and the code without them.

In: the text of a module or a function. Out: the same with `...` in the place of each, or whether there is one. Names
are followed as Python binds them: in assignments, calls, defaults, tables and comparisons. A name of a variable of the
environment, or of a secret in a vault, is none.
"""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from nectar.trust.secrets import HIDDEN, is_secret_name, looks_secret, may_hold_secret, redacted

# Calls whose first argument is a value, and not the name of one.
_VALUES: Final = frozenset({
    "SecretStr", "SecretBytes", "Secret", "str", "bytes", "bytearray", "b64decode", "urlsafe_b64decode",
    "unhexlify", "fromhex", "Field", "field", "quote", "quote_plus", "unquote", "Fernet", "frozenset", "set",
})  # fmt: skip
_LOOKING_UP: Final = frozenset({"get", "getenv", "pop", "setdefault"})  # with a default behind the name
_SHORTEST: Final = 3
_BROKEN: Final = (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError)


@lru_cache(2048)
def code_without_secrets(text: str) -> str:
    """The text of code without what may be a credential, for people: it need not be code any more."""
    if not may_hold_secret(text):
        return text
    plain, indent = _dedented(text)
    try:
        found = list(secret_literals(ast.parse(plain)))
        pieces = _string_pieces(plain)
    except _BROKEN:
        return redacted(text)
    lines = io.StringIO(plain).readlines()
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    cuts = {(_at(lines, starts, each), _at(lines, starts, each, end=True)): f"'{HIDDEN}'" for each in found}
    for start, end in ((starts[a - 1] + b, starts[c - 1] + d) for (a, b), (c, d) in pieces):
        clean = redacted(plain[start:end])
        if clean != plain[start:end] and not any(first < end and start < last for first, last in cuts):
            cuts[start, end] = clean
    for (start, end), clean in sorted(cuts.items(), reverse=True):
        plain = plain[:start] + clean + plain[end:]
    return textwrap.indent(plain, indent) if cuts and indent else plain if cuts else text


@lru_cache(512)
def code_holds_secret(text: str) -> bool:
    """Whether a credential is written into code. Raises nothing: what cannot be read is searched as any text is."""
    try:
        tree = ast.parse(_dedented(text)[0])
    except _BROKEN:
        return looks_secret(text)
    if next(secret_literals(tree), None) is not None:
        return True
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    if any(isinstance(each, str | bytes) and looks_secret(each) for each in constants):
        return True
    return any(looks_secret(comment) for comment in _comments(text))


def secret_literals(tree: ast.AST) -> Iterator[ast.Constant]:
    """The literals in code that stand under the name of a credential."""
    for node in ast.walk(tree):
        for name, value in _bound(node):
            if is_secret_name(name):
                yield from _texts(value)


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
    """Names and the values that a node gives them."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _paired(target, node.value)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
        yield _name(node.target), node.value
    elif isinstance(node, ast.keyword):
        yield node.arg or "", node.value
    elif isinstance(node, ast.Dict):
        yield from ((_name(key), value) for key, value in zip(node.keys, node.values, strict=True) if key is not None)
    elif isinstance(node, ast.arguments):
        plain = [*node.posonlyargs, *node.args]
        yield from zip((each.arg for each in plain[len(plain) - len(node.defaults) :]), node.defaults, strict=True)
        yield from zip((each.arg for each in node.kwonlyargs), node.kw_defaults, strict=True)
    elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
        yield _name(node.left), node.comparators[0]
        yield _name(node.comparators[0]), node.left
    elif isinstance(node, ast.Call):
        yield from _given(node)


def _given(call: ast.Call) -> Iterator[tuple[str, ast.AST | None]]:
    """What a call is given by a name that is a text itself: `option("password", "...")`, `with_password("...")`."""
    texts = [each for each in call.args if not isinstance(each, ast.Starred)]
    if len(texts) == 2 and isinstance(texts[0], ast.Constant) and _name(call.func).lower() not in _LOOKING_UP:
        yield _name(texts[0]), texts[1]
    if len(texts) == 2 and _name(call.func) in _LOOKING_UP:
        yield _name(texts[0]), texts[1]
    if len(texts) == 3 and isinstance(texts[1], ast.Constant):  # `setattr(connection, "password", "...")`
        yield _name(texts[1]), texts[2]
    if len(texts) == 1 and _name(call.func).startswith(("with_", "set_", "SecretStr")):
        yield _name(call.func), texts[0]


def _paired(target: ast.AST, value: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for each, given in zip(target.elts, value.elts, strict=False):
            yield from _paired(each, given)
    else:
        yield _name(target), value


def _name(node: ast.AST) -> str:
    """What an expression is called, by its last part."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return _name(node.slice)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _texts(value: ast.AST | None) -> Iterator[ast.Constant]:
    """The literals that a value is made of; names by which it is looked up are none of them."""
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str | bytes) and _is_value(node.value):
                yield node
        elif isinstance(node, ast.Call):
            pending.extend(each.value for each in node.keywords if (each.arg or "").startswith(("default", "value")))
            if isinstance(node.func, ast.Attribute):
                pending.append(node.func.value)  # "...".encode()
            if _name(node.func) in _VALUES:
                pending.extend(node.args)
            elif _name(node.func) in _LOOKING_UP:
                pending.extend(node.args[1:])
        elif isinstance(node, ast.JoinedStr | ast.Tuple | ast.List | ast.Set):
            pending.extend(node.values if isinstance(node, ast.JoinedStr) else node.elts)
        elif isinstance(node, ast.BinOp):
            pending.extend((node.left, node.right))
        elif isinstance(node, ast.BoolOp):
            pending.extend(node.values)
        elif isinstance(node, ast.IfExp):
            pending.extend((node.body, node.orelse))
        elif isinstance(node, ast.Dict):
            pending.extend(node.values)


def _is_value(text: str | bytes) -> bool:
    """Whether a text under the name of a credential may be one, and not the name of another."""
    if isinstance(text, bytes):
        return len(text) >= _SHORTEST
    is_name = (
        text.replace("-", "_").replace(".", "_").isidentifier()
        and is_secret_name(text)
        and not any(map(str.isdigit, text))
    )
    return len(text) >= _SHORTEST and text != HIDDEN and not is_name


# places in the text


def _dedented(text: str) -> tuple[str, str]:
    plain = textwrap.dedent(text)
    first = next((line for line in text.splitlines() if line.strip()), "")
    return plain, first[: len(first) - len(first.lstrip())] if plain != text else ""


def _at(lines: list[str], starts: list[int], node: ast.Constant, *, end: bool = False) -> int:
    """Where a literal begins or ends, in characters; Python counts bytes."""
    number, column = (node.end_lineno or 0, node.end_col_offset or 0) if end else (node.lineno, node.col_offset)
    return starts[number - 1] + len(lines[number - 1].encode()[:column].decode())


def _string_pieces(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(each.start, each.end) for each in tokens if each.type in kinds]


def _comments(text: str) -> list[str]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except _BROKEN:
        return [text]
    return [each.string for each in tokens if each.type == tokenize.COMMENT]
