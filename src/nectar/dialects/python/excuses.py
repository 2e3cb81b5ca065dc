"""Whether what a function reads is what it was handed: refusals that declared inputs excuse.

A function that gives `file.path` to a reader is refused as long as nobody knows what `file` is. Here the arguments are
known. Law: a reading is excused only if everything that its steps can lead to is, or is a part of, a declared input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nectar.dialects.python.declared_inputs import File, Folder, Fresh
from nectar.model.refusal import ITEM, TEMPORARY, Refusal

# What may be asked of a declared input: it is still that input which is read.
_PARTS: Final = frozenset({"path", "paths", "files", "source", ITEM})


def unexcused(refusals: tuple[Refusal, ...], arguments: Mapping[str, object]) -> tuple[Refusal, ...]:
    """The refusals that stand, given these arguments.

    Files that are used by functions which make temporary ones are left to whoever watches the call.
    """
    watched = makes_temporary_files(refusals)
    return tuple(each for each in refusals if not (watched and each.seen) and not _is_excused(each, arguments))


def makes_temporary_files(refusals: tuple[Refusal, ...]) -> bool:
    """Whether a function makes temporary files, as far as its code shows."""
    return any(refusal.seen == TEMPORARY for refusal in refusals)


def _is_excused(refusal: Refusal, arguments: Mapping[str, object]) -> bool:
    excuse = refusal.excuse
    if excuse is None or excuse.parameter not in arguments:
        return False
    kinds = (File, Folder, Fresh) if refusal.kind == "file" else (Fresh,)
    return _leads_to(arguments[excuse.parameter], excuse.steps, kinds)


def _leads_to(value: Any, steps: tuple[str, ...], kinds: tuple[type, ...]) -> bool:
    """Whether the steps lead from a value to nothing but declared inputs."""
    if isinstance(value, kinds):
        return _PARTS.issuperset(steps)
    if not steps:
        return False
    if steps[0] == ITEM:
        if type(value) not in (list, tuple, set, frozenset, dict):
            return False
        items = value.values() if type(value) is dict else value
        return all(_leads_to(item, steps[1:], kinds) for item in items)
    own = getattr(value, "__dict__", None)
    if type(own) is not dict or steps[0] not in own or _is_computed(type(value), steps[0]):
        return False
    return _leads_to(own[steps[0]], steps[1:], kinds)


def _is_computed(kind: type, name: str) -> bool:
    """Whether the class has a say in what an attribute is, so that what lies in the instance may not count."""
    names = [vars(base) for base in kind.__mro__[:-1]]
    return any("__getattribute__" in each or hasattr(type(each.get(name)), "__set__") for each in names)
