"""What code may change, where nobody has its text: what was typed at a console, came through a pipe, or was compiled.

In: code of modules, in the order in which it ran. Out: the packages that it may change: every library that it uses,
and modules of the standard library where it assigns to a part of one, such as `json.encoder.X = 1`, also by way of
other names. Where bytecode does not tell, all names that the code has count. Law: too much is a cost, too little a lie.
"""

from __future__ import annotations

import builtins
import dis
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from nectar.keys.executed import is_of_application
from nectar.keys.program_text import ANY

_BEHIND: Final = {"STORE_SUBSCR": 1, "DELETE_SUBSCR": 1, "STORE_SLICE": 2, "STORE_ATTR": 0, "DELETE_ATTR": 0}
_NAMES: Final = frozenset({"LOAD_NAME", "LOAD_GLOBAL"})
_PARTS: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_STORES: Final = frozenset({"STORE_NAME", "STORE_GLOBAL"})
# What runs or imports something that only running it shows; modules: `sys.modules["library"]`.
_RUN_ANYTHING: Final = frozenset({"exec", "__import__", "import_module", "run_path", "run_module", "modules"})
_PATCHES: Final = frozenset({"patch", "setattr", "delattr", "setitem", "delitem", "__dict__"})
_ANY: Final = frozenset({ANY})
_CHANGED_BY_MANY: Final = {"os", "sys"}  # `os.environ`, `sys.path`: whoever reads those is refused, or keyed by them


class Changed(NamedTuple):
    """The packages that code may change, ANY among them if nobody knows which. assigned: by assigning to parts."""

    used: frozenset[str]
    assigned: frozenset[str]


def changed_by_code(found: Sequence[types.CodeType], space: dict[str, Any]) -> Changed:
    """What code may change. space: what its names stand for."""
    every = [inside for code in found for inside in _all_in(code)]
    named = frozenset().union(*(code.co_names for code in every))
    if not named.isdisjoint(_RUN_ANYTHING):
        return Changed(_ANY, _ANY)
    steps = [step for code in every for step in dis.get_instructions(code)]
    given = {step.argval for step in steps if step.opname in _STORES}
    packages_by_name = {
        name: _packages_of(name, space) for name in {step.argval for step in steps if step.opname in _NAMES} - given
    }
    imported = _imported_by(steps)
    used = set().union(*imported.values(), *packages_by_name.values())
    libraries = frozenset(each for each in used if each == ANY or _is_library(each))
    if not named.isdisjoint(_PATCHES):
        return Changed(libraries, libraries | (used & sys.stdlib_module_names))
    roots = assigned_to(found)
    assigned = set().union(
        *(packages_by_name.get(each, ()) for each in roots), *(imported.get(each, ()) for each in roots)
    )
    return Changed(libraries, frozenset(assigned & (libraries | sys.stdlib_module_names)) - _CHANGED_BY_MANY)


def _imported_by(steps: Sequence[dis.Instruction]) -> dict[str, set[str]]:
    """The top-level packages that code imports something of, by the name that this gets; "" if that is not known."""
    found: dict[str, set[str]] = {}
    package = ""
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if step.opname == "IMPORT_NAME":
            package = step.argval.partition(".")[0]  # empty if it is relative
            found.setdefault("", set()).add(package)
        if step.opname in ("IMPORT_NAME", "IMPORT_FROM") and following is not None:
            name = following.argval if following.opname.startswith("STORE_") else ""
            found.setdefault(str(name), set()).add(package)
    return found


def _packages_of(name: str, space: dict[str, Any]) -> set[str]:
    """Whose is what a name stands for that the code has not given itself; ANY if it may be anybody's."""
    if name not in space:
        return set() if hasattr(builtins, name) else {ANY}
    value = space[name]
    kind = type(value)
    if kind in _HELD_BY_ANYBODY:
        return {ANY}
    if isinstance(value, types.ModuleType):
        return {str(vars(value).get("__name__")).partition(".")[0]}
    named = value if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)) else kind
    return {str(getattr(named, "__module__", "") or "").partition(".")[0]}


_HELD_BY_ANYBODY: Final = (dict, list, set, bytearray)


def _is_library(package: str) -> bool:
    if not package or package in sys.stdlib_module_names or package in ("nectar", "__main__"):
        return False
    module = sys.modules.get(package)
    return module is None or not is_of_application(vars(module).get("__file__"))


def assigned_to(found: Iterable[types.CodeType]) -> set[str]:
    """The names at the beginning of what is assigned to."""
    others: dict[str, str] = {}  # what stands for a part of something under another name
    names: set[str] = set()
    for code in found:
        for inside in _all_in(code):
            steps = list(dis.get_instructions(inside))
            others.update(_other_names(steps))
            names.update(*(_roots(steps, at, inside) for at, step in enumerate(steps) if step.opname in _BEHIND))
    for name in list(names):
        seen: set[str] = set()
        while name in others and name not in seen:
            seen.add(name)
            name = others[name]
            names.add(name)
    return names


def _all_in(code: types.CodeType) -> list[types.CodeType]:
    """Code, and that of the functions and classes in it."""
    found = [code]
    for each in found:
        found += [constant for constant in each.co_consts if isinstance(constant, types.CodeType)]
    return found


def _roots(steps: Sequence[dis.Instruction], at: int, code: types.CodeType) -> Iterable[str]:
    end: int | None = at
    for _ in range(_BEHIND[steps[at].opname]):  # the subscript, or the ends of a slice
        end = None if end is None else _start_of(steps, end)
    start = None if end is None else _start_of(steps, end)
    while start is not None and steps[start].opname == "PUSH_NULL":
        start += 1
    if start is None or steps[start].opname not in _NAMES:
        return code.co_names
    return [steps[start].argval]


def _start_of(steps: Sequence[dis.Instruction], end: int) -> int | None:
    """Where the expression begins that ends before a step; None if it is not computed straight on."""
    needed = 1
    for at in range(end - 1, -1, -1):
        step = steps[at]
        if steps[at + 1].is_jump_target or step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
            return None
        needed -= dis.stack_effect(step.opcode, step.arg)
        if needed <= 0:
            return at
    return None


def _other_names(steps: Sequence[dis.Instruction]) -> Iterator[tuple[str, str]]:
    """Names that stand for a part of something, and the name of that."""
    for at, step in enumerate(steps):
        if step.opname not in ("STORE_NAME", "STORE_GLOBAL"):
            continue
        start = _start_of(steps, at)
        if start is None or steps[start].opname not in _NAMES:
            continue
        if all(each.opname in _PARTS for each in steps[start + 1 : at]):
            yield step.argval, steps[start].argval
