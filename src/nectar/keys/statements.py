"""What code assigns to parts of, where nobody has its text: what was typed at a console, or came through a pipe.

In: code of modules, in the order in which it ran. Out: the names at the beginning of what is assigned to, such as
`rich` for `rich.table["a"] = 1`, also by way of other names (`table = rich.table`). Where bytecode does not tell, all
names that the code has count: it is too much, and a cost.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

_BEHIND: Final = {"STORE_SUBSCR": 1, "DELETE_SUBSCR": 1, "STORE_SLICE": 2, "STORE_ATTR": 0, "DELETE_ATTR": 0}
_NAMES: Final = frozenset({"LOAD_NAME", "LOAD_GLOBAL"})
_PARTS: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD"})


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
