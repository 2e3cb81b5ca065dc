"""Which of the objects that a walk meets may be credentials: by what they are called, where they lie, how they look.

In: a walk, object by object, with the labels by which it reaches them. Out: whether a text or a number may be one.
"""

from __future__ import annotations

import ast
import textwrap
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from nectar.keys.sources import text_of
from nectar.trust.secrets import is_secret_name, looks_secret

_CODE: Final = (types.FunctionType, types.ModuleType, type)


class Suspicion:
    """Follows one walk."""

    def __init__(self) -> None:
        self._called: list[bool] = [
            False
        ]  # of each open object: it is called like a credential, or lies in one that is
        self._constants: frozenset[object] = frozenset()  # of the functions met: those that may be credentials

    def enter(self, value: object, label: str) -> None:
        """An object with parts."""
        if isinstance(value, types.FunctionType):
            self._constants |= secret_constants(value.__code__)
        self._called.append(not isinstance(value, _CODE) and (self._called[-1] or is_secret_name(label)))

    def leave(self) -> None:
        """All parts of the object entered last have been met."""
        self._called.pop()

    def falls_on(self, value: object, label: str) -> bool:
        """Whether an object without parts may be a credential."""
        if isinstance(value, str | bytes):
            return bool(value) and (self._is_called_so(label) or value in self._constants or looks_secret(value))
        if isinstance(value, tuple | frozenset):
            return any(self.falls_on(each, label) for each in value)
        return type(value) in (int, float) and self._is_called_so(label)

    def _is_called_so(self, label: str) -> bool:
        return self._called[-1] or (label != "constant" and is_secret_name(label))


@lru_cache(4096)
def secret_constants(code: types.CodeType) -> frozenset[str | bytes]:
    """The constants of code, and of the functions in it, that may be credentials.

    Where its text is not known, all texts count as soon as anything in it is called like one.
    """
    constants = {each for part in _parts(code) for each in _texts_in(part.co_consts)}
    found = {each for each in constants if looks_secret(each)}
    names = {name for part in _parts(code) for name in (*part.co_names, *part.co_varnames, *part.co_cellvars)}
    names.update(each for each in constants if isinstance(each, str) and each.isidentifier())
    if any(map(is_secret_name, names)):
        from nectar.trust.literals import secret_literals  # takes long to load

        tree = _tree_of(code)
        found |= (
            constants
            if tree is None
            else {each.value for each in secret_literals(tree) if isinstance(each.value, str | bytes)}
        )
    return frozenset(found)


def _texts_in(constants: Iterable[object]) -> Iterator[str | bytes]:
    for each in constants:
        if isinstance(each, str | bytes) and each:
            yield each
        elif isinstance(each, tuple | frozenset):
            yield from _texts_in(each)


def _parts(code: types.CodeType) -> Iterator[types.CodeType]:
    pending = [code]
    while pending:
        part = pending.pop()
        yield part
        pending.extend(each for each in part.co_consts if isinstance(each, types.CodeType))


def _tree_of(code: types.CodeType) -> ast.Module | None:
    try:
        text = text_of(code)
        return ast.parse(textwrap.dedent(text)) if text else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a lambda within a call that goes on
        return None
