"""Whether calling something of a library changes what the library keeps for everybody, or hands it out.

In: a callable of a library, and what it was asked of. Out: yes or no. Bytecode tells, its own and that of the methods
of its class that it calls: whether they assign to, or change, a module, a class or an object that outlives the call.
What a library remembers to save time looks the same; so this is asked only of calls whose point must be that
something changes, because nobody takes what they give.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from nectar.keys.bytecode.template import RETURN
from nectar.keys.features import Features
from nectar.keys.folding import MISSING, imports
from nectar.keys.purity.analysis import examine
from nectar.keys.purity.facts import (
    ATTRIBUTE,
    OBJECT,
    PARAMETER,
    PARTIAL,
    Fact,
    Facts,
    class_of,
    outside,
    static_attribute,
)
from nectar.keys.resolve import resolve_function

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


def changes_library_when_derived(cls: type) -> bool:
    """Whether deriving a class from a class of a library changes what the library keeps, such as a registry."""
    meta: type = type(cls)
    # __new__ is given the metaclass, which stays; the others the class that is made.
    hooks = ((cls, "__init_subclass__", False), (meta, "__new__", True), (meta, "__init__", False))
    for owner, name, stays in hooks:
        function = _hook_of_library(owner, name)
        if function is not None and _changes(_Run(function, owner, stays), _DEEPEST):
            return True
    return False


def changes_what_outlives(cls: type, name: str) -> bool:
    """Whether a method, or a function that it names, changes something besides its own object, such as a table."""
    method: Any = static_attribute(cls, name)
    function = getattr(method, "__func__", method)
    if type(function) is not types.FunctionType:
        return False
    run = _unwrapped(function)
    return _changes(_Run(run, cls), _DEEPEST) or any(-1 in changed_by(each) for each in _helpers_of(run))


def _helpers_of(function: types.FunctionType) -> Iterator[types.FunctionType]:
    """Functions of its module that a function, or one made in it, names."""
    pending = [function.__code__]
    for code in pending:
        pending += [each for each in code.co_consts if isinstance(each, types.CodeType)]
        named = (function.__globals__.get(name) for name in code.co_names)
        yield from (each for each in named if type(each) is types.FunctionType)


def class_made_by(value: object) -> type | None:
    """The class of what calling a value gives, where its code shows that."""
    if isinstance(value, type):
        return value
    facts = facts_of(value) if type(value) is types.FunctionType else None
    if facts is None:
        return None
    made = [class_of(facts.of(each)) for each in _returned(facts)]
    return made[0] if len(made) == 1 else None


def hands_out(value: object, receiver: object = None) -> bool:
    """Whether calling a value gives something that its library keeps: who changes that changes the library.

    What lies in a module or a class, or in an object that outlives the call; or what the library remembers.
    """
    if type(value) is _Remembering:
        return True
    return any(_hands_out(run, _DEEPEST) for run in _run_by(value, receiver) if not isinstance(value, type))


def _hands_out(run: _Run, deepest: int) -> bool:
    facts = facts_of(run.function)
    if facts is None:
        return False
    return any(_is_kept(value, facts, run, deepest) for value in _returned(facts))


def _returned(facts: Facts) -> list[int]:
    """The values that a function gives."""
    edges = [edge for block in facts.template.blocks for edge in block.edges]
    return [value for edge in edges if edge.target == RETURN for value in edge.values]


def _is_kept(value: int, facts: Facts, run: _Run, deepest: int) -> bool:
    """Whether a value of a function outlives its calls and can be changed."""
    values = facts.brought_to(value) or [value]
    return any(_outlives(facts.of(each), run) or _is_handed(each, facts, run, deepest) for each in values)


def _outlives(fact: Fact, run: _Run) -> bool:
    root = outside(fact)
    if root.kind == PARAMETER:
        return root.number == 0 and run.stays
    if root.kind not in (OBJECT, PARTIAL):
        return False
    return fact.kind in (ATTRIBUTE, PARTIAL) or not isinstance(fact.root, (*_PLAIN, *_CODE))


def _is_handed(value: int, facts: Facts, run: _Run, deepest: int) -> bool:
    """Whether a value is what another function, or another method of the same object, hands out."""
    made = facts.maker(value)
    if made is None or made.name != "CALL" or not deepest:
        return False
    callee = facts.of(made.operands[0])
    if callee.kind == OBJECT:
        runs = [each for each in _run_by(callee.root, None) if not isinstance(callee.root, type)]
        return type(callee.root) is _Remembering or any(_hands_out(each, deepest - 1) for each in runs)
    if callee.kind != ATTRIBUTE or callee.owner is None or run.owner is None or callee.owner.kind != PARAMETER:
        return False
    method = static_attribute(run.owner, callee.name)
    return any(_hands_out(each, deepest - 1) for each in _methods_run_by(method, run.owner, run.stays))


@lru_cache(maxsize=1024)
def facts_of(function: types.FunctionType) -> Facts | None:
    """What is known of the values of a function; None if its code cannot be read."""
    token = imports.set(False)  # nobody says that this code is ever run
    try:
        return Facts(resolve_function(function, Features())[0].parts[0])
    except Exception:  # code that cannot be read
        return None
    finally:
        imports.reset(token)


_Remembering: Final = type(functools.cache(len))
_CODE: Final = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)
_PLAIN: Final = (int, float, complex, str, bytes, tuple, frozenset, type(None))


def _hook_of_library(owner: type, name: str) -> types.FunctionType | None:
    """The first hook that a library has written; those of the standard library (Generic) hand on to the next."""
    for base in type.mro(owner):
        hook: Any = vars(base).get(name)
        function = getattr(hook, "__func__", hook)
        if type(function) is types.FunctionType:
            home = str(function.__globals__.get("__name__")).partition(".")[0]
            if home not in sys.stdlib_module_names:
                return function
    return None


def _run_by(value: Any, receiver: object) -> Iterator[_Run]:
    kind = type(value)
    owner = (
        None if isinstance(receiver, types.ModuleType) else receiver if isinstance(receiver, type) else type(receiver)
    )
    if kind is types.FunctionType:
        is_method = receiver is not None and not isinstance(receiver, (types.ModuleType, type))
        yield _Run(_unwrapped(value), owner, is_method)
    elif (kind is classmethod or kind is staticmethod) and type(value.__func__) is types.FunctionType:
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
def changed_by(function: types.FunctionType) -> frozenset[int]:
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
    changed = changed_by(function)
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
