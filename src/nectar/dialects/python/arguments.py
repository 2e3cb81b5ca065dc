"""Which parameter gets which argument, as Python itself would have it.

In: a callable, and what it is called with. Out: arguments by the name of their parameter, in the order of the
parameters, however they were passed; or None if Python would refuse the call, so that it can do so itself.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

from nectar.errors import UserError
from nectar.keys.atoms import ATOMS


class Parameters:
    """The parameters of one callable. ignore: names of those that make no difference to the result."""

    def __init__(self, function: Callable[..., Any], ignore: tuple[str, ...] = ()) -> None:
        self._ignored = frozenset(ignore)
        names, self._rest, self._spare = self._read(function)
        unknown = self._ignored - {*names, self._rest, self._spare}
        if unknown:
            raise UserError(
                f"{_name(function)} has no parameter {', '.join(sorted(unknown))} to ignore; it has: {', '.join(names)}"
            )

    def _read(self, function: Callable[..., Any]) -> tuple[list[str], str, str]:
        """Takes over the signature; names of all parameters, and of those that take what is left over."""
        if type(function) is types.FunctionType:
            signature = inspect.signature(function, follow_wrapped=False)
        else:
            try:
                signature = inspect.signature(function)
            except (TypeError, ValueError):  # something built in that does not say
                signature = inspect.signature(_anything)
        self.positional: list[str] = []
        self.by_keyword: set[str] = set()
        self.required: list[str] = []
        self.defaults: dict[str, object] = {}
        rest = spare = ""
        for name, parameter in signature.parameters.items():
            kind = parameter.kind
            if kind is parameter.VAR_POSITIONAL:
                rest = name
                continue
            if kind is parameter.VAR_KEYWORD:
                spare = name
                continue
            if kind is not parameter.KEYWORD_ONLY:
                self.positional.append(name)
            if kind is not parameter.POSITIONAL_ONLY:
                self.by_keyword.add(name)
            if parameter.default is parameter.empty:
                self.required.append(name)
            elif type(parameter.default) in ATOMS:
                # Other defaults may be told apart by identity from whatever a caller passes, so they are left out:
                # they are in the fingerprint of the function.
                self.defaults[name] = parameter.default
        self._order = [*signature.parameters]
        return self._order, rest, spare

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, object] | None:
        """Arguments by parameter; those that are ignored are left out, and so are defaults with an identity."""
        positional = self.positional
        if len(args) > len(positional) and not self._rest:
            return None
        bound: dict[str, object] = dict(zip(positional, args, strict=False))
        left: dict[str, object] = {}
        for name, value in kwargs.items():
            if name in self.by_keyword:
                if name in bound:
                    return None
                bound[name] = value
            elif self._spare:
                left[name] = value
            else:
                return None
        for name in self.required:
            if name not in bound:
                return None
        bound = self.defaults | bound
        if self._rest:
            bound[self._rest] = args[len(positional) :]
        if self._spare:
            bound[self._spare] = left
        return {name: bound[name] for name in self._order if name in bound and name not in self._ignored}


def _anything(*args: object, **kwargs: object) -> None:
    """Stands for a callable that does not tell its parameters."""


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)
