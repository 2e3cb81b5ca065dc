"""Operations whose result is known when a fingerprint is taken: names, attributes of modules, imports.

In: a renderer (resolve.py) and one operation. Out: the object the operation gives, or MISSING where only running the
code could tell. What is folded leaves the skeleton and becomes an operand.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from nectar.keys.ambient import EnvironmentVariable
from nectar.keys.bytecode.decode import instructions, parameter_names
from nectar.keys.bytecode.operation import Operation, UnknownInstruction
from nectar.keys.bytecode.template import template_of
from nectar.keys.inspection import is_a
from nectar.keys.origin import origin_of_module
from nectar.model.origin import APPLICATION

if TYPE_CHECKING:
    from nectar.keys.resolve import Renderer

MISSING: Final = object()
_ENVIRONMENT_GET: Final = os.environ.get


class GlobalsView:
    """Stands for `globals()` or a module's `__dict__`, as long as only constant names are looked up there."""

    __slots__ = ("namespace", "source")

    def __init__(self, namespace: dict[str, object], source: object) -> None:
        self.namespace = namespace
        self.source = source


def _global(renderer: Renderer, operation: Operation) -> object:
    name: str = renderer.template.data[operation.operands[0]]  # type: ignore[assignment]
    renderer.label(operation, f"global {name}")
    return renderer.resolution.read_global(name)


def _free(renderer: Renderer, operation: Operation) -> object:
    name: str = renderer.template.data[operation.operands[0]]  # type: ignore[assignment]
    renderer.label(operation, f"captured {name}")
    if name in renderer.template.stored_free:
        return MISSING
    return renderer.cells.get(name, MISSING)


def _attribute(renderer: Renderer, operation: Operation) -> object:
    owner = renderer.known.get(operation.operands[0], MISSING)
    name: str = operation.arg  # type: ignore[assignment]
    if owner is os.environ and name == "get":
        return _ENVIRONMENT_GET
    if not is_a(owner, types.ModuleType):
        return MISSING
    said = renderer.labels.get(operation.operands[0], owner.__name__).removeprefix("global ")
    renderer.label(operation, f"{said}.{name}")
    return GlobalsView(vars(owner), owner) if name == "__dict__" else _of_module(renderer, owner, name)


def _of_module(renderer: Renderer, module: types.ModuleType, name: str) -> object:
    """An attribute of a module.

    Libraries may load theirs when first asked; they are asked, so that it does not matter who asked before.
    """
    library = origin_of_module(module) is not APPLICATION
    if type(module) is not types.ModuleType and not library:
        return MISSING  # its class may answer for it
    found = renderer.resolution.read_attribute(module, name)
    if library and (found is MISSING or type(module) is not types.ModuleType):
        try:
            return getattr(module, name, MISSING)
        except Exception:
            return MISSING
    return found


def _import_name(renderer: Renderer, operation: Operation) -> object:
    request: tuple[str, int, tuple[str, ...]] = operation.arg  # type: ignore[assignment]
    name, level, names = request
    module = _import(renderer, operation, name, level)
    if module is MISSING or names:
        return module
    return module if level else renderer.resolution.read(sys.modules, name.partition(".")[0])  # type: ignore[arg-type]


def _import(renderer: Renderer, operation: Operation, name: str, level: int) -> object:
    try:
        full = importlib.util.resolve_name("." * level + name, _package(renderer)) if level else name
        renderer.label(operation, full)
        _loaded(full)
        return renderer.resolution.read(sys.modules, full)  # type: ignore[arg-type]
    except Exception:
        renderer.resolution.unimportable.append((renderer.template, operation, name))
        return MISSING


# Code that a program is about to run imports its modules anyway; for other code nothing is imported.
imports: Final[ContextVar[bool]] = ContextVar("nectar_imports", default=True)


def _loaded(name: str) -> types.ModuleType:
    if imports.get() or name in sys.modules:
        return importlib.import_module(name)
    raise ImportError(f"{name} is not loaded")


def _package(renderer: Renderer) -> str:
    namespace = renderer.resolution.namespace
    package = namespace.get("__package__")
    return str(package or str(namespace.get("__name__", "")).rpartition(".")[0])


def _import_from(renderer: Renderer, operation: Operation) -> object:
    owner = renderer.known.get(operation.operands[0], MISSING)
    if not is_a(owner, types.ModuleType):
        return MISSING
    name: str = operation.arg  # type: ignore[assignment]
    renderer.label(operation, f"{owner.__name__}.{name}")
    found = _of_module(renderer, owner, name)
    if found is not MISSING:
        return found
    try:
        return _loaded(f"{owner.__name__}.{name}")
    except Exception:
        return MISSING


def _subscript(renderer: Renderer, operation: Operation) -> object:
    owner = renderer.known.get(operation.operands[0], MISSING)
    key = renderer.constant(operation.operands[1])
    if type(key) is not str:
        return MISSING
    if is_a(owner, GlobalsView):
        renderer.label(operation, f"global {key}")
        return renderer.resolution.read(owner.namespace, key)
    if owner is sys.modules:
        renderer.label(operation, f"module {key}")
        return renderer.resolution.read(sys.modules, key)  # type: ignore[arg-type]
    if owner is os.environ:
        renderer.part.inlined[id(operation)] = EnvironmentVariable(key)
    return MISSING


def _call(renderer: Renderer, operation: Operation) -> object:
    callee = renderer.known.get(operation.operands[0], MISSING)
    fold = _CALLS.get(id(callee))
    return MISSING if fold is None or operation.arg else fold(renderer, operation)


def _call_globals(renderer: Renderer, operation: Operation) -> object:
    return GlobalsView(renderer.resolution.namespace, globals) if len(operation.operands) == 1 else MISSING


def _call_eval(renderer: Renderer, operation: Operation) -> object:
    """`eval("n + 1")`: code like any other, if the names in it mean parameters that keep their value, or globals."""
    text = renderer.constant(operation.operands[1]) if len(operation.operands) == 2 else None
    if type(text) is not str:
        return MISSING
    try:
        template = template_of(compile(text, "<eval>", "eval"))
    except (SyntaxError, ValueError, UnknownInstruction):
        return MISSING
    loaded = {each.arg for block in template.blocks for each in block.operations if each.name == "LOAD_NAME"}
    changing = {*renderer.code.co_varnames, *renderer.code.co_cellvars, *renderer.code.co_freevars} - set(
        _constant_parameters(renderer)
    )
    if not loaded & changing:
        renderer.part.inlined[id(operation)] = template
    return MISSING


def _constant_parameters(renderer: Renderer) -> tuple[str, ...]:
    """The parameters, if this code assigns to no local at all."""
    names = {name for _, name, _, _ in instructions(renderer.code)}
    assigns = any(name.startswith(("STORE_FAST", "STORE_DEREF", "DELETE_FAST", "DELETE_DEREF")) for name in names)
    return () if assigns or renderer.part.nested else parameter_names(renderer.code)


def _call_getattr(renderer: Renderer, operation: Operation) -> object:
    if len(operation.operands) < 3:
        return MISSING
    owner, name = renderer.known.get(operation.operands[1], MISSING), renderer.constant(operation.operands[2])
    if not is_a(owner, types.ModuleType) or type(name) is not str:
        return MISSING
    renderer.label(operation, f"{owner.__name__}.{name}")
    return _of_module(renderer, owner, name)


def _call_import(renderer: Renderer, operation: Operation) -> object:
    name = renderer.constant(operation.operands[1]) if len(operation.operands) == 2 else None
    if type(name) is not str or name.startswith("."):
        return MISSING
    module = _import(renderer, operation, name, 0)
    if renderer.known[operation.operands[0]] is builtins.__import__ and module is not MISSING:
        return sys.modules.get(name.partition(".")[0], MISSING)
    return module


def _call_getenv(renderer: Renderer, operation: Operation) -> object:
    """`os.getenv("X")`, with or without a default."""
    name = renderer.constant(operation.operands[1]) if len(operation.operands) in (2, 3) else None
    if type(name) is str:
        renderer.part.inlined[id(operation)] = EnvironmentVariable(name)
    return MISSING


FOLDS: Final[dict[str, Callable[[Renderer, Operation], object]]] = {
    "LOAD_GLOBAL": _global,
    "LOAD_FREE": _free,
    "LOAD_ATTR": _attribute,
    "IMPORT_NAME": _import_name,
    "IMPORT_FROM": _import_from,
    "BINARY_SUBSCR": _subscript,
    "CALL": _call,
}
_CALLS: Final[dict[int, Callable[[Renderer, Operation], object]]] = {
    id(callee): fold
    for callee, fold in (
        (eval, _call_eval),
        (globals, _call_globals),
        (getattr, _call_getattr),
        (builtins.__import__, _call_import),
        (importlib.import_module, _call_import),
        (os.getenv, _call_getenv),
        (_ENVIRONMENT_GET, _call_getenv),
    )
}
