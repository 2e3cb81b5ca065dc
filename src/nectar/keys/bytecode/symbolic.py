"""Blocks to operations on values: the stack machine run on symbols.

In: a code object. Out: for each block a list of operations whose operands are values: parameters, constants, names,
results of earlier operations, or merges of values where control joins. Loads, stores, copies and swaps of locals and
stack slots leave no trace. Every other instruction can have an effect for some type of operand, so that operations
keep their order.

Locals that an exception handler may read after a store inside the protected code are kept as slots in memory, with
loads and stores in order; all others are values.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from nectar.keys.bytecode.decode import Protected, parameter_names
from nectar.keys.bytecode.flow import NOTHING, Block, blocks_of
from nectar.keys.bytecode.operation import (
    CAUGHT,
    CELL,
    CONST,
    FREE,
    KNOWN_PYTHONS,
    MERGE,
    NULL,
    PARAM,
    PYTHON,
    RESULT,
    SINCE_312,
    UNBOUND,
    Operation,
    UnknownInstruction,
)  # fmt: skip
from nectar.keys.bytecode.rules import RULES


class Exit(Struct, eq=False):
    """One way out of a block: where to, and the stack there."""

    target: int
    stack: tuple[int, ...]


class Straight(Struct, eq=False):
    """A block after symbolic execution.

    merges: values that stand for what different predecessors bring, with the stack slot or local they come from.
    ending: how control leaves: ("goto", -1), ("return", value), ("stop", -1), ("next", value), ("send", value), or
    (what the value must be for the jump to be taken: "true", "false", "none", "some"; the value). exits: falling
    through first, then the jump. handler: where it is handled what this block raises, and the stack found there.
    """

    start: int
    merges: list[tuple[int, tuple[str, int]]]
    operations: list[Operation]
    ending: tuple[str, int]
    exits: list[Exit]
    locals: list[int]
    handler: tuple[int, tuple[int, ...]] | None


class Symbolic(Struct, eq=False):
    """A whole code object after symbolic execution."""

    code: types.CodeType
    kinds: list[int]
    data: list[Any]
    blocks: dict[int, Straight]
    incoming: dict[int, list[tuple[int, int]]]  # block -> (predecessor, number of its exit)
    doubtful: bool  # whether there are operations that may turn out not to matter
    slots: bool  # whether locals are kept in memory


_NO_LOCALS: Final[frozenset[int]] = frozenset()
_MAY_BE_UNBOUND: Final = (MERGE, UNBOUND)
_KEEPING: Final = {"JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP"}  # these leave the value on the stack when they jump


def run(code: types.CodeType) -> Symbolic:
    """The symbolic execution of every reachable block of code. Raises UnknownInstruction if Nectar cannot read it."""
    if PYTHON not in KNOWN_PYTHONS:
        newest, this = (".".join(map(str, version)) for version in (KNOWN_PYTHONS[-1], PYTHON))
        raise UnknownInstruction(f"this version of Nectar reads bytecode of Python up to {newest}, and this is {this}")
    return Machine(code).run()


class Machine:
    """The stack machine, run on symbols. Rules (rules.py) change its stack, locals and operations."""

    def __init__(self, code: types.CodeType) -> None:
        self.code = code
        self.kinds: list[int] = []
        self.data: list[Any] = []
        self.leaves: dict[tuple[int, object], int] = {}
        self.blocks = blocks_of(code)
        self.handlers = {row.target: row for block in self.blocks.values() if (row := block.handler) is not None}
        self.done: dict[int, Straight] = {}
        self.parameters = len(parameter_names(code))
        self.variables = code.co_varnames
        self.cells = code.co_cellvars
        if self.cells:
            self.variables += tuple(name for name in self.cells if name not in code.co_varnames)
        branches = len(self.blocks) > 1  # without, nothing asks for the following
        self.stored = self._stored_locals() if branches else _NO_LOCALS
        self.slots = self._slots() if branches else _NO_LOCALS
        self.stack: list[int] = []
        self.locals: list[int] = []
        self.operations: list[Operation] = []
        self.keywords: tuple[str, ...] = ()
        self.offset = 0
        self.doubtful = False

    # values

    def leaf(self, kind: int, data: object) -> int:
        """The value of a kind with this data: the same one whenever asked."""
        key = (kind, data)
        if key in self.leaves:
            return self.leaves[key]
        number = self.leaves[key] = len(self.kinds)
        self.kinds.append(kind)
        self.data.append(data)
        return number

    def value(self, kind: int, data: object) -> int:
        """A new value."""
        self.kinds.append(kind)
        self.data.append(data)
        return len(self.kinds) - 1

    def constant(self, index: int) -> int:
        """The constant with this index."""
        return self.leaf(CONST, index)

    def operate(
        self, name: str, arg: object, operands: tuple[int, ...], results: int = 1, droppable: bool = False
    ) -> int:
        """Appends an operation; returns the first of its results."""
        kinds = self.kinds
        first = len(kinds)
        operation = Operation(name, arg, operands, first, results, self.offset, droppable)
        self.operations.append(operation)
        if results == 1:
            kinds.append(RESULT)
            self.data.append(operation)
        elif results:
            kinds.extend([RESULT] * results)
            self.data.extend([operation] * results)
        if droppable:
            self.doubtful = True
        return first

    def pop(self, count: int) -> tuple[int, ...]:
        """The topmost values, taken off the stack."""
        if count == 0:
            return ()
        stack = self.stack
        taken = tuple(stack[-count:])
        if len(taken) != count:
            raise UnknownInstruction("its instructions take more from the stack than they put there")
        del stack[-count:]
        return taken

    # locals

    def _stored_locals(self) -> frozenset[int]:
        stored: set[int] = set()
        for block in self.blocks.values():
            for each in block.body:
                if each[1] in _STORES:
                    stored.update(_STORES[each[1]](each[2]))
        return frozenset(stored)

    def _slots(self) -> frozenset[int]:
        """Locals that code reachable from a handler loads, and that some code stores."""
        pending = [block.handler.target for block in self.blocks.values() if block.handler is not None]
        if not pending:
            return _NO_LOCALS
        seen: set[int] = set()
        loaded: set[int] = set()
        while pending:
            start = pending.pop()
            if start in seen:
                continue
            seen.add(start)
            block = self.blocks[start]
            pending.extend(block.successors)
            if block.handler is not None:
                pending.append(block.handler.target)
            for each in block.body:
                if each[1] in _LOADS:
                    loaded.update(_LOADS[each[1]](each[2]))
        return frozenset(index for index in loaded & self.stored if not self._is_cell(index))

    def initial_locals(self) -> list[int]:
        """Parameters, then locals without a value."""
        unbound = self.leaf(UNBOUND, None)
        found = [self.leaf(PARAM, at) for at in range(self.parameters)]
        found += [unbound] * (len(self.variables) - self.parameters)
        if self.cells:
            found = [self.leaf(CELL, at) if self._is_cell(at) else value for at, value in enumerate(found)]
        return found

    def load_local(self, index: int) -> None:
        """Puts a local on the stack."""
        if index in self.slots:
            self.stack.append(self.operate("LOAD_SLOT", index, ()))
        else:
            value = self.locals[index]
            if self.kinds[value] in _MAY_BE_UNBOUND:
                self.operate("CHECK_BOUND", None, (value,), 0)
                self.doubtful = True
            self.stack.append(value)

    def store_local(self, index: int) -> None:
        """Takes a local from the stack."""
        value = self.stack.pop()
        if index in self.slots:
            self.operate("STORE_SLOT", index, (value,), 0)
        else:
            self.locals[index] = value

    # blocks

    def run(self) -> Symbolic:
        """All blocks, each after those that lead to it where that is possible."""
        incoming = self._incoming()
        for start, block in self.blocks.items():
            self.done[start] = self._block(block, incoming[start])
        return Symbolic(self.code, self.kinds, self.data, self.done, incoming, self.doubtful, bool(self.slots))

    def _incoming(self) -> dict[int, list[tuple[int, int]]]:
        incoming: dict[int, list[tuple[int, int]]] = {start: [] for start in self.blocks}
        for start, block in self.blocks.items():
            for number, target in enumerate(block.successors):
                incoming[target].append((start, number))
        return incoming

    def _block(self, block: Block, incoming: list[tuple[int, int]]) -> Straight:
        merges: list[tuple[int, tuple[str, int]]] = []
        self.operations = []
        self._enter(block, incoming, merges)
        row = block.handler
        handler = None if row is None else (row.target, tuple(self.stack[: row.depth]))
        ending = ("goto", -1)
        rule_for = RULES.get
        for offset, name, arg, _ in block.body:
            rule = rule_for(name)
            if rule is not None:
                self.offset = offset
                ending = rule(self, arg) or ending
            elif name not in NOTHING:
                raise UnknownInstruction(f"instruction {name} is not known to this version of Nectar")
        return Straight(
            block.start, merges, self.operations, ending, self._exits(block, ending), list(self.locals), handler
        )

    def _enter(self, block: Block, incoming: list[tuple[int, int]], merges: list[tuple[int, tuple[str, int]]]) -> None:
        row = self.handlers.get(block.start)
        if row is not None:
            self._enter_handler(block, row)
        elif not incoming:
            self.stack, self.locals = [], self.initial_locals()
            self._fill_slots()
        elif len(incoming) == 1 and incoming[0][0] in self.done:
            before = self.done[incoming[0][0]]
            self.stack, self.locals = list(before.exits[incoming[0][1]].stack), list(before.locals)
        else:
            self._merge(incoming, merges)

    def _fill_slots(self) -> None:
        for index in sorted(self.slots):
            if index < self.parameters:
                self.operate("STORE_SLOT", index, (self.locals[index],), 0)

    def _enter_handler(self, block: Block, row: Protected) -> None:
        """At a handler the stack is as deep as its row says; locals are slots, or never stored."""
        self.stack = [self.value(CAUGHT, (block.start, at)) for at in range(row.depth + row.lasti)]
        self.stack.append(self.value(CAUGHT, (block.start, -1)))
        self.locals = self.initial_locals()
        for index in self.stored - self.slots:
            if not self._is_cell(index):
                self.locals[index] = self.leaf(UNBOUND, None)

    def _merge(self, incoming: list[tuple[int, int]], merges: list[tuple[int, tuple[str, int]]]) -> None:
        known = [(self.done[before], number) for before, number in incoming if before in self.done]
        complete = len(known) == len(incoming)
        first = known[0][0]

        def merged(kind: str, at: int, values: set[int], movable: bool) -> int:
            if len(values) == 1 and (complete or not movable):
                return next(iter(values))
            merge = self.value(MERGE, None)
            merges.append((merge, (kind, at)))
            return merge

        stacks = [before.exits[exit_number].stack for before, exit_number in known]
        self.stack = [merged("stack", at, {stack[at] for stack in stacks}, True) for at in range(len(stacks[0]))]
        self.locals = [
            merged("local", at, {before.locals[at] for before, _ in known}, at in self.stored and not self._is_cell(at))
            for at in range(len(first.locals))
        ]

    def _is_cell(self, index: int) -> bool:
        """Whether a variable is a cell, but for the comprehensions that use its place meanwhile and put it back."""
        return index < len(self.variables) and self.variables[index] in self.cells

    def _exits(self, block: Block, ending: tuple[str, int]) -> list[Exit]:
        if not block.successors:
            return []
        stack = tuple(self.stack)
        kind, value = ending
        if block.body[-1][1] in _KEEPING:
            return [Exit(block.successors[0], stack), Exit(block.successors[1], (*stack, value))]
        if kind == "next":
            after = stack[:-1] if not SINCE_312 else (*stack, self.leaf(NULL, None))
            return [Exit(block.successors[0], (*stack, value)), Exit(block.successors[1], after)]
        if kind == "send":
            after = (*stack[:-1], value) if not SINCE_312 else (*stack, value)
            return [Exit(block.successors[0], (*stack, value)), Exit(block.successors[1], after)]
        return [Exit(target, stack) for target in block.successors]

    # variables shared with other functions, and calls

    def variable(self, arg: int) -> str:
        """The name of the cell or free variable number arg."""
        return (*self.variables, *self.code.co_freevars)[arg]

    def dereference(self, arg: int) -> int:
        """The cell or free variable number arg."""
        own = len(self.variables)
        return self.leaf(CELL, arg) if arg < own else self.leaf(FREE, self.code.co_freevars[arg - own])

    def _loads_super(self, operation: Operation, callee: int) -> bool:
        """Whether this is `super()`, which looks at the first parameter as it is now."""
        return (
            operation.name == "LOAD_GLOBAL"
            and operation.result == callee
            and (self.data[operation.operands[0]] == "super" and self.parameters > 0)
        )

    def _first_argument(self) -> int:
        if self.variables[0] in self.cells:
            return self.leaf(CELL, 0)
        return self.operate("LOAD_SLOT", 0, ()) if 0 in self.slots else self.locals[0]

    def call(self, count: int) -> None:
        """Calls: below the arguments lie the callee and nothing, or a callee and its first argument."""
        operands = self.pop(count + 2)
        if self.kinds[operands[0]] == NULL:
            operands = operands[1:]
        elif self.kinds[operands[1]] == NULL:
            operands = (operands[0], *operands[2:])
        if len(operands) == 1 and self.operations and self._loads_super(self.operations[-1], operands[0]):
            self.operate("SUPER_OF", None, (self._first_argument(),), 0)
        self.stack.append(self.operate("CALL", self.keywords, operands))
        self.keywords = ()


def _one(arg: int) -> tuple[int, ...]:
    return (arg,)


def _two(arg: int) -> tuple[int, ...]:
    return arg >> 4, arg & 15


def _first(arg: int) -> tuple[int, ...]:
    return (arg >> 4,)


def _second(arg: int) -> tuple[int, ...]:
    return (arg & 15,)


# Which locals instructions load and store, given their argument.
_Locals = dict[str, Callable[[int], tuple[int, ...]]]
_LOADS: Final[_Locals] = {
    **dict.fromkeys(("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR", "DELETE_FAST"), _one),
    "LOAD_FAST_LOAD_FAST": _two,
    "STORE_FAST_LOAD_FAST": _second,
}
_STORES: Final[_Locals] = {
    **dict.fromkeys(("STORE_FAST", "STORE_FAST_MAYBE_NULL", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"), _one),
    "STORE_FAST_STORE_FAST": _two,
    "STORE_FAST_LOAD_FAST": _first,
}
