"""What libraries keep for each thread (`threading.local` in their modules), as it is in this thread.

In: the name of a package. Out: its states, as plain data that stand in keys like settings. So what a computation reads
there is what its key says, or what it has written itself: guards against recursion are set and put back. Law: a state
of which something is not plain is told in part only, and is not read without being noticed.
"""

from __future__ import annotations

import sys
import threading
import types
from functools import lru_cache
from typing import Any, Final, NamedTuple

_SCALARS: Final = frozenset({bool, int, float, complex, str, bytes, type(None)})
_CONTAINERS: Final = frozenset({list, tuple, set, frozenset, dict})
_DEEPEST: Final = 4
_NOT_PLAIN: Final = "not plain"
# Guards against recursion that are read alike whether they are empty or not there; so their code was read.
_GUARDS: Final = frozenset({"attr._compat.repr_context"})


class _Local(NamedTuple):
    label: str
    value: threading.local


def has_states(package: str) -> bool:
    """Whether a package may keep something for each thread."""
    return bool(_locals_of(package, len(sys.modules)))


def states_of(package: str, in_part: bool = False) -> list[object]:
    """What a package keeps for this thread. in_part: without the empty containers that reading leaves behind."""
    return [
        ("thread", local.label, name, _text(value))
        for local in _locals_of(package, len(sys.modules))
        for name, value in sorted(vars(local.value).items())
        if not ((in_part or local.label in _GUARDS) and type(value) in _CONTAINERS and not value)
    ]


def stands_in_keys(value: object, package: str) -> bool:
    """Whether an object keeps something for each thread, and all that it keeps for this one is among the states."""
    known = any(each.value is value for each in _locals_of(package, len(sys.modules)))
    return known and not any(_NOT_PLAIN in _text(each) for each in vars(value).values())


@lru_cache(maxsize=256)
def _locals_of(package: str, loaded: int) -> tuple[_Local, ...]:
    """loaded: how many modules there are of all."""
    found: dict[int, _Local] = {}
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] == package and isinstance(module, types.ModuleType):
            for attribute, value in list(vars(module).items()):
                if type(value) is threading.local:
                    found.setdefault(id(value), _Local(f"{name}.{attribute}", value))
    return tuple(found.values())


def _text(value: Any, depth: int = 0) -> str:
    """A state as a text; of what is not plain there is the class."""
    kind = type(value)
    if kind in _SCALARS:
        return repr(value)
    if kind not in _CONTAINERS or depth > _DEEPEST:
        return f"{_NOT_PLAIN}: {kind.__module__}.{kind.__qualname__}"
    held = [part for pair in value.items() for part in pair] if kind is dict else list(value)
    parts = [_text(each, depth + 1) for each in held]
    return f"{kind.__name__}({', '.join(sorted(parts) if kind in (set, frozenset) else parts)})"
