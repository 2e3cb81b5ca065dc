"""Whether what a function reads is what it was handed: refusals that declared inputs excuse.

A function that gives `file.path` to a reader is refused as long as nobody knows what `file` is. Here the arguments are
known. Law: a reading is excused only if everything in the argument that it could be about is a declared input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nectar.dialects.python.declared_inputs import File, Folder, Fresh
from nectar.keys.atoms import ATOMS
from nectar.model.refusal import Refusal

_LARGEST = 10_000  # objects looked at


def unexcused(refusals: tuple[Refusal, ...], arguments: Mapping[str, object]) -> tuple[Refusal, ...]:
    """The refusals that stand, given these arguments."""
    return tuple(refusal for refusal in refusals if not _is_excused(refusal, arguments))


def _is_excused(refusal: Refusal, arguments: Mapping[str, object]) -> bool:
    excuse = refusal.excuse
    if excuse is None or excuse.parameter not in arguments:
        return False
    kinds = (File, Folder, Fresh) if refusal.kind == "file" else (Fresh,)
    concerned = 0
    for count, value in enumerate(_reached(arguments[excuse.parameter])):
        if count > _LARGEST:
            return False
        if isinstance(value, kinds):
            concerned += 1
        elif not excuse.attribute or _may_have(value, excuse.attribute):
            return False
    return concerned > 0


def _reached(argument: object) -> Iterator[object]:
    """Everything in an argument that is no mere container."""
    pending, seen = [argument], set()
    while pending:
        value: Any = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if type(value) in (list, tuple, set, frozenset):
            pending.extend(value)
        elif type(value) is dict:
            pending.extend(value.values())
        else:
            yield value
            if not isinstance(value, File | Folder | Fresh | type) and type(value) not in ATOMS:
                pending.extend(getattr(value, "__dict__", {}).values())


def _may_have(value: object, attribute: str) -> bool:
    """Whether an object has an attribute; asked without running any of its code, and yes if that cannot tell."""
    if type(value) in ATOMS:
        return hasattr(type(value), attribute)
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict) and attribute in own:
        return True
    names = [vars(base) for base in type(value).__mro__]
    return any(attribute in each or "__getattr__" in each or "__getattribute__" in each for each in names[:-1])
