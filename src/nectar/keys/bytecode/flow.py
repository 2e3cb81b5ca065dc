"""Instructions to basic blocks.

In: instructions and the exception table of one code object. Out: reachable blocks, each with its successors and the
handler that covers it. A block ends where control can leave or enter, and where the handler changes. Handlers that
only raise again what they caught are no handlers.
"""

from __future__ import annotations

import dis
import types
from typing import Final

from msgspec import Struct

from nectar.keys.bytecode.decode import Instruction, Protected, decoded, exception_table

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


class Block(Struct):
    """Straight-line code: its instructions, where control goes next, and who handles what it raises."""

    start: int
    body: list[Instruction]
    successors: list[int]  # offsets; for a branch: fall through, then jump
    handler: Protected | None = None

    def can_raise(self) -> bool:
        """Whether any instruction here could raise."""
        return any(name not in _SILENT for _, name, _, _ in self.body)


def _direction(name: str) -> int:
    """1 for jumps forward, -1 for jumps back, 0 for instructions that do not jump."""
    if "BACKWARD" in name:
        return -1
    return 1 if name in _FORWARD or name.startswith(_CONDITIONAL_PREFIX) else 0


JUMPS: Final = {name: _direction(name) for name in dis.opmap if _direction(name)}


_JUMPING: Final = frozenset(dis.opmap[name] for name in JUMPS)
_LEAVING: Final = frozenset({*JUMPS, *ENDS})


def blocks_of(code: types.CodeType) -> dict[int, Block]:
    """The blocks of code reachable from its start, by offset; each after those that lead to it, but for loops."""
    raw = code.co_code  # put together at every access
    found = decoded(raw)
    if not code.co_exceptiontable and _JUMPING.isdisjoint(raw[::2]):
        return {0: Block(0, found, [])}
    rows = exception_table(code)
    if rows:
        rows = _without_reraisers(rows, found)
    blocks = _split(found, rows)
    return {start: blocks[start] for start in _reverse_postorder(blocks)}


def _without_reraisers(rows: list[Protected], found: list[Instruction]) -> list[Protected]:
    """Rows with handlers that do more than raising again; what those raise again is handled where they stand."""
    by_offset = {instruction[0]: at for at, instruction in enumerate(found)}

    def raising(row: Protected) -> int | None:
        """Where the handler of a row raises again, if that is all it does."""
        at = by_offset[row.target]
        steps = found[at : at + 3]
        names = [(name, arg) for _, name, arg, _ in steps]
        if names[:2] == [("PUSH_EXC_INFO", 0), ("RERAISE", 0)]:
            return steps[1][0]
        return steps[2][0] if names == [("COPY", 3), ("POP_EXCEPT", 0), ("RERAISE", 1)] else None

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
    leaving: dict[int, list[int]] = {found[-1][0]: []}  # where control goes from instructions it does not go on from
    for instruction in found:
        if instruction[1] in _LEAVING:
            offset, name, arg, after = instruction
            leaving[offset] = _targets(name, arg, after)
            leaders.add(after)
            leaders.update(leaving[offset])
    for row in rows:
        leaders.update((row.start, row.end, row.target))
    starts = [at for at, instruction in enumerate(found) if instruction[0] in leaders]
    blocks = {}
    for at, end in zip(starts, [*starts[1:], len(found)], strict=True):
        start, last = found[at][0], found[end - 1]
        handler = _innermost(rows, start) if rows else None
        blocks[start] = Block(start, found[at:end], leaving.get(last[0], [last[3]]), handler)
    return blocks


def _targets(name: str, arg: int, after: int) -> list[int]:
    """Where control goes from a jump or an end; falling through first."""
    if name in ENDS:
        return []
    target = after + 2 * JUMPS[name] * arg
    return [target] if name in GOTO else [after, target]


def _innermost(rows: list[Protected], offset: int) -> Protected | None:
    return next((row for row in rows if row.start <= offset < row.end), None)


def _reverse_postorder(blocks: dict[int, Block]) -> list[int]:
    order: list[int] = []
    seen: set[int] = {0}
    pending = [(0, iter(_next_blocks(blocks[0])))]
    while pending:
        start, following = pending[-1]
        for target in following:
            if target not in seen:
                seen.add(target)
                pending.append((target, iter(_next_blocks(blocks[target]))))
                break
        else:
            order.append(start)
            pending.pop()
    order.reverse()
    return order


def _next_blocks(block: Block) -> list[int]:
    """Where control may go from a block; a handler that never gets anything to do is forgotten."""
    if block.handler is not None and not block.can_raise():
        block.handler = None
    # Handlers first: they come last in the reversed order, after the code they protect.
    targets = [] if block.handler is None else [block.handler.target]
    return [*targets, *reversed(block.successors)]
