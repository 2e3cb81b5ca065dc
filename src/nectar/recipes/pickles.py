"""What pickled bytes refer to, read without unpickling them: that would run code of the program."""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from typing import Any, Final

_IMPORTS: Final = "subimport"  # what cloudpickle calls with the name of a module


def names_in(pickled: bytes) -> Iterator[str]:
    """Texts in a pickle that may be names of modules: those it will import are among them."""
    for _, argument, _ in pickletools.genops(_body(pickled)):
        if isinstance(argument, str) and argument.replace(".", "").isidentifier():
            yield argument


def globals_in(pickled: bytes) -> Iterator[tuple[str, str]]:
    """Module and name of all that a pickle takes from modules; of a whole module, the name is empty.

    Raises ValueError if what is taken is not written in it as a text.
    """
    remembered: dict[int, Any] = {}
    before: Any = None  # what was put on the stack last, and before that: a text, a global, or anything else
    last: Any = None
    argument: Any
    for operation, argument, _ in pickletools.genops(_body(pickled)):
        name = operation.name
        if name == "FRAME":
            continue
        if name in ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"):
            remembered[len(remembered) if argument is None else int(argument)] = last
            continue
        made: Any = argument if isinstance(argument, str) else None
        if name in ("GET", "BINGET", "LONG_BINGET"):
            made = remembered.get(int(argument))
        elif name in ("GLOBAL", "INST"):
            made = tuple(argument.split(" ", 1))
            yield made
        elif name == "STACK_GLOBAL":
            if not (isinstance(before, str) and isinstance(last, str)):
                raise ValueError("a pickle takes something from a module by a name that is not written in it")
            made = before, last
            yield made
        elif isinstance(last, tuple) and last[1] == _IMPORTS and not isinstance(made, str):
            raise ValueError("a pickle imports a module whose name is not written in it")
        if isinstance(last, tuple) and last[1] == _IMPORTS and isinstance(made, str):
            yield made, ""
        before, last = last, made


def _body(pickled: bytes) -> bytes:
    """A pickle without what stands before it."""
    return pickled[pickled.find(b"\x80") :]
