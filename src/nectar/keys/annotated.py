"""Annotations that are texts, as all are under `from __future__ import annotations`: what their names stand for counts.

In: annotations of a function or class, and the names of its module. Out: the same with what the texts refer to, for
keys (exposed.py). Names that cannot be found there, such as those of a type checker only, stand for nothing.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, ForwardRef

_NONE: Final[dict[str, Any]] = {}


class Meant:
    """An annotation that is or holds texts, which are evaluated where somebody asks for the type it stands for."""

    __slots__ = ("annotation", "names")

    def __init__(self, annotation: object, names: Mapping[str, Any]) -> None:
        self.annotation, self.names = annotation, names


def of_class(cls: type, annotations: object) -> object:
    """The annotations of a class."""
    module = sys.modules.get(cls.__module__)
    return _with_meanings(annotations, _NONE if module is None else vars(module))


def of_function(function: types.FunctionType) -> object:
    """The annotations of a function."""
    return _with_meanings(dict(function.__annotations__), function.__globals__)


def _with_meanings(annotations: object, names: Mapping[str, Any]) -> object:
    if type(annotations) is not dict:
        return annotations
    meant = [Meant(value, names) for value in annotations.values() if meanings_of(value, names)]
    return (annotations, *meant) if meant else annotations  # the dict itself, which may be changed in place


def meanings_of(annotation: object, names: Mapping[str, Any]) -> list[object]:
    """What the names in the texts of an annotation stand for, as far as that is known; nothing for modules."""
    texts = _texts_in(annotation)
    found = [_value_of(path, names) for text in texts for path in _paths_in(text)]
    return [value for value in found if value is not None and not isinstance(value, types.ModuleType)]


def _texts_in(annotation: object) -> list[str]:
    """The texts in an annotation such as "Row", list["Row"] or what typing makes of these."""
    texts: list[str] = []
    pending = [annotation]
    for each in pending:
        if type(each) is str:
            texts.append(each)
        elif type(each) is ForwardRef:
            texts.append(each.__forward_arg__)
        elif type(each) not in (type, types.FunctionType) and type(inside := getattr(each, "__args__", ())) is tuple:
            pending += inside
    return texts


def _value_of(path: tuple[str, ...], names: Mapping[str, Any]) -> object:
    value: object = names.get(path[0])
    for name in path[1:]:
        if not isinstance(value, types.ModuleType):
            break  # a member of a class, which is walked over
        value = vars(value).get(name)
    return value


@lru_cache(maxsize=4096)
def _paths_in(text: str) -> tuple[tuple[str, ...], ...]:
    """Names with dots in a text, each once; those within quotes too."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: dict[tuple[str, ...], None] = {}
    pending: list[ast.AST] = [tree.body]
    for node in pending:
        path = _path_of(node)
        if path:
            found[path] = None
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != text:
            found.update(dict.fromkeys(_paths_in(node.value)))
        else:
            pending += ast.iter_child_nodes(node)
    return tuple(found)


def _path_of(node: ast.AST) -> tuple[str, ...]:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return (node.id, *reversed(names)) if isinstance(node, ast.Name) else ()
