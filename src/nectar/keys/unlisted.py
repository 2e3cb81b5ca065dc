"""Code of the application that no entry of `sys.modules` leads to: plugins loaded from files, texts and files it runs.

In: sources of modules. Out: modules that were loaded from files and are in no list, and the texts that a source runs
(`exec`, `runpy`). What such code changes in libraries is looked for as in any other (changes.py).
"""

from __future__ import annotations

import ast
import gc
import re
import sys
import types
from collections.abc import Iterator
from typing import Final

_RUNS: Final = re.compile(r"\b(?:exec|run_path|run_module)\b")
_LONGEST: Final = 4 << 20  # characters of a source; what is longer is data


def loaded_from_files() -> list[types.ModuleType]:
    """Modules that are there and in no `sys.modules`: plugins, which libraries load too. Goes through all objects."""
    listed = {id(each) for each in list(sys.modules.values())}
    kind = types.ModuleType  # a name of its own: there may be millions of objects
    found = [each for each in gc.get_objects() if type(each) is kind]
    return [each for each in found if id(each) not in listed and isinstance(vars(each).get("__file__"), str)]


def runs_any(source: str) -> bool:
    """Whether a source may run texts or files."""
    return _RUNS.search(source) is not None


def run_by(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Texts that a source runs, as far as they stand in it or in files that it names, each with the call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _runs(node):
            yield from ((text, node) for text in _texts_in(node))


def run_unseen(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls of a module, outside its functions, that run what stands neither in its source nor in a file it names."""
    pending: list[ast.AST] = list(tree.body)
    for node in pending:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Call) and _runs(node) and not any(_texts_in(node)):
            yield node
        pending += ast.iter_child_nodes(node)


def _runs(call: ast.Call) -> bool:
    called = getattr(call.func, "id", "") or getattr(call.func, "attr", "")
    return bool(call.args) and called in ("exec", "run_path")


def _texts_in(call: ast.Call) -> Iterator[str]:
    """What is run: constants in what is handed over, and what lies in files that they name."""
    inside = [each.value for each in ast.walk(call.args[0]) if isinstance(each, ast.Constant)]
    for text in (each for each in inside if isinstance(each, str)):
        found = _text_of(text)
        if found is not None:
            yield found
        elif getattr(call.func, "id", "") == "exec" and call.args[0].__class__ in _WRITTEN:
            yield text


_WRITTEN: Final = (ast.Constant, ast.IfExp, ast.BinOp, ast.JoinedStr)


def _text_of(path: str) -> str | None:
    try:
        with open(path, "rb") as opened:
            return opened.read(_LONGEST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
