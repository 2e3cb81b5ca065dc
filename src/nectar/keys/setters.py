"""Whether calling something of a library changes what the library keeps for everybody.

In: a callable of a library, and what it was asked of. Out: yes or no. Bytecode tells, its own and that of the methods
of its class that it calls: whether they assign to, or change, a module, a class or an object that outlives the call.
What a library remembers to save time looks the same; so this is asked only of calls whose point must be that
something changes, because nobody takes what they give.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from nectar.keys.features import Features
from nectar.keys.folding import MISSING, imports
from nectar.keys.purity.analysis import examine
from nectar.keys.purity.facts import static_attribute

_DEEPEST: Final = 3  # methods that call methods
_CHANGES: Final = "mutation"  # the kind of refusal
_RUN_BY_BLOCKS: Final = ("__init__", "__enter__", "__aenter__")


class _Run(NamedTuple):
    """A function that runs. owner: the class that it is a method of. stays: its first argument outlives the call."""

    function: types.FunctionType
    owner: type | None = None
    stays: bool = False


def changes_library(value: object, receiver: object = None) -> bool:
    """Whether calling a value, or entering what calling it gives, changes what its library keeps.

    receiver: the module, class or object whose attribute the value is.
    """
    return any(_changes(run, _DEEPEST) for run in _run_by(value, receiver))


def _run_by(value: Any, receiver: object) -> Iterator[_Run]:
    kind = type(value)
    owner = (
        None if isinstance(receiver, types.ModuleType) else receiver if isinstance(receiver, type) else type(receiver)
    )
    if kind is types.FunctionType:
        is_method = receiver is not None and not isinstance(receiver, (types.ModuleType, type))
        yield _Run(_unwrapped(value), owner, is_method)
    elif kind is classmethod or kind is staticmethod:
        yield _Run(_unwrapped(value.__func__), owner, kind is classmethod)
    elif kind is types.MethodType:
        yield from _run_by(value.__func__, value.__self__)
    elif isinstance(value, type):
        for name in _RUN_BY_BLOCKS:
            method = static_attribute(value, name)
            if type(method) is types.FunctionType:
                yield _Run(_unwrapped(method), value)
    else:
        called = static_attribute(kind, "__call__")
        if type(called) is types.FunctionType:
            yield _Run(_unwrapped(called), kind, stays=True)


def _unwrapped(function: types.FunctionType) -> types.FunctionType:
    """The function within decorators, such as that of a block."""
    inner = vars(function).get("__wrapped__")
    return inner if type(inner) is types.FunctionType else function


@lru_cache(maxsize=1024)
def _changed_by(function: types.FunctionType) -> frozenset[int]:
    """The parameters that a function changes, by their positions; -1 for what outlives the call."""
    token = imports.set(False)  # nobody says that this code is ever run
    try:
        report = examine(function, Features(), {}).report
    except Exception:  # code that cannot be read: names of functions have to do
        return frozenset()
    finally:
        imports.reset(token)
    return report.changed | {-1 for each in report.refusals if each.kind == _CHANGES}


def _changes(run: _Run, deepest: int) -> bool:
    function, owner, stays = run
    changed = _changed_by(function)
    if -1 in changed or (stays and 0 in changed):
        return True
    if owner is None or not deepest:
        return False
    methods = (static_attribute(owner, name) for name in function.__code__.co_names)
    return any(_changes(each, deepest - 1) for method in methods for each in _methods_run_by(method, owner, stays))


def _methods_run_by(method: Any, owner: type, stays: bool) -> Iterator[_Run]:
    kind: object = type(method)
    if kind is types.FunctionType:
        yield _Run(_unwrapped(method), owner, stays)
    elif kind is classmethod:
        yield _Run(_unwrapped(method.__func__), owner, stays=True)


def resolved(path: str, modules: dict[str, types.ModuleType]) -> tuple[object, object]:
    """What a dotted path leads to, and what it was asked of; MISSING if only running something could tell."""
    head, *rest = path.split(".")
    found: object = modules.get(head, MISSING)
    receiver: object = None
    for name in rest:
        head = f"{head}.{name}"
        receiver, found = found, static_attribute(found, name)
        if found is MISSING and type(receiver) is types.ModuleType:
            found = modules.get(head, MISSING)
        if found is MISSING:
            break
    return found, receiver
