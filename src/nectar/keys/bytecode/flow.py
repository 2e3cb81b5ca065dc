"""Instructions to basic blocks.

In: instructions and the exception table of one code object. Out: reachable blocks, each with its successors and the
handler that covers it. A block ends where control can leave or enter, and where the handler changes. Handlers that
only raise again what they caught are no handlers.
"""

from __future__ import annotations

import dis
import types
from dataclasses import dataclass, field
from typing import Final

from nectar.keys.bytecode.decode import Instruction, Protected, exception_table, instructions

_FORWARD: Final = {"JUMP_FORWARD", "JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP", "FOR_ITER", "SEND"}
_CONDITIONAL_PREFIX: Final = "POP_JUMP_"
GOTO: Final = {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}
ENDS: Final = {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"}
NOTHING: Final = frozenset({"NOP", "RESUME", "PRECALL", "CACHE", "COPY_FREE_VARS", "TO_BOOL"})
_SILENT: Final = {
    "NOP", "RESUME", "PRECALL", "CACHE", "MAKE_CELL", "COPY_FREE_VARS", "PUSH_NULL", "COPY", "SWAP", "POP_TOP",
    "LOAD_CONST", "STORE_FAST", "RETURN_VALUE", "RETURN_CONST", "KW_NAMES", "LOAD_CLOSURE",
    "STORE_FAST_STORE_FAST", "LOAD_FAST_AND_CLEAR", "END_FOR", "RETURN_GENERATOR", "POP_EXCEPT", *GOTO,
}  # fmt: skip


@dataclass(slots=True)
class Block:
    """Straight-line code: its instructions, where control goes next, and who handles what it raises."""

    start: int
    body: list[Instruction] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)  # offsets; for a branch: fall through, then jump
    handler: Protected | None = None

    def can_raise(self) -> bool:
        """Whether any instruction here could raise."""
        return any(instruction.name not in _SILENT for instruction in self.body)


def _direction(name: str) -> int:
    """1 for jumps forward, -1 for jumps back, 0 for instructions that do not jump."""
    if "BACKWARD" in name:
        return -1
    return 1 if name in _FORWARD or name.startswith(_CONDITIONAL_PREFIX) else 0


JUMPS: Final = {name: _direction(name) for name in dis.opmap if _direction(name)}


def target_of(instruction: Instruction) -> int | None:
    """Where instruction may jump to, or None."""
    direction = JUMPS.get(instruction.name)
    return None if direction is None else instruction.after + 2 * direction * instruction.arg


def blocks_of(code: types.CodeType) -> dict[int, Block]:
    """The blocks of code reachable from its start, by offset of their first instruction."""
    found = instructions(code)
    rows = exception_table(code)
    if not rows and not any(each.name in JUMPS for each in found):
        return {0: Block(0, found, [])}
    rows = _without_reraisers(rows, found)
    blocks = _split(found, rows)
    return {start: blocks[start] for start in sorted(_reachable(blocks))}


def _without_reraisers(rows: list[Protected], found: list[Instruction]) -> list[Protected]:
    """Rows with handlers that do more than raising again; what those raise again is handled where they stand."""
    by_offset = {instruction.offset: at for at, instruction in enumerate(found)}

    def raising(row: Protected) -> int | None:
        """Where the handler of a row raises again, if that is all it does."""
        at = by_offset[row.target]
        steps = found[at : at + 3]
        names = [(each.name, each.arg) for each in steps]
        if names[:2] == [("PUSH_EXC_INFO", 0), ("RERAISE", 0)]:
            return steps[1].offset
        return steps[2].offset if names == [("COPY", 3), ("POP_EXCEPT", 0), ("RERAISE", 1)] else None

    def effective(row: Protected) -> Protected | None:
        seen: set[int] = set()
        current: Protected | None = row
        while current is not None and (offset := raising(current)) is not None:
            if current.target in seen:
                return None
            seen.add(current.target)
            current = _innermost(rows, offset)
        return (
            None if current is None else row._replace(target=current.target, depth=current.depth, lasti=current.lasti)
        )

    return [better for row in rows if (better := effective(row)) is not None]


def _split(found: list[Instruction], rows: list[Protected]) -> dict[int, Block]:
    leaders = {0}
    for instruction in found:
        target = target_of(instruction)
        if target is not None:
            leaders.update((target, instruction.after))
        elif instruction.name in ENDS:
            leaders.add(instruction.after)
    for row in rows:
        leaders.update((row.start, row.end, row.target))
    blocks: dict[int, Block] = {}
    current = Block(0)
    for instruction in found:
        if instruction.offset in leaders:
            if blocks and not _closed(current):
                current.successors.append(instruction.offset)
            current = blocks[instruction.offset] = Block(
                instruction.offset, handler=_innermost(rows, instruction.offset)
            )
        current.body.append(instruction)
        target = target_of(instruction)
        if target is not None:
            current.successors = [target] if instruction.name in GOTO else [instruction.after, target]
    return blocks


def _closed(block: Block) -> bool:
    last = block.body[-1]
    return last.name in ENDS or target_of(last) is not None


def _innermost(rows: list[Protected], offset: int) -> Protected | None:
    return next((row for row in rows if row.start <= offset < row.end), None)


def _reachable(blocks: dict[int, Block]) -> set[int]:
    seen: set[int] = set()
    pending = [0]
    while pending:
        start = pending.pop()
        if start in seen:
            continue
        seen.add(start)
        block = blocks[start]
        pending.extend(block.successors)
        if block.handler is not None:
            if block.can_raise():
                pending.append(block.handler.target)
            else:
                block.handler = None
    return seen
