"""Blocks to operations on values: the stack machine run on symbols.

In: a code object. Out: for each block a list of operations whose operands are values: parameters, constants, names,
results of earlier operations, or merges of values where control joins. Loads, stores, copies and swaps of locals and
stack slots leave no trace. Every other instruction can have an effect for some type of operand, so that operations
keep their order.

Locals that an exception handler may read after a store inside the protected code are kept as slots in memory, with
loads and stores in order; all others are values.
"""

from __future__ import annotations

import inspect
import types
from typing import Any, Final, NamedTuple

from nectar.keys.bytecode.decode import Instruction, Protected
from nectar.keys.bytecode.flow import GOTO, JUMPS, NOTHING, Block, blocks_of
from nectar.keys.bytecode.operation import (
    CAUGHT,
    CELL,
    CELLS,
    CONST,
    FREE,
    GLOBAL,
    MERGE,
    NULL,
    PARAM,
    RESULT,
    SINCE_312,
    UNBOUND,
    Operation,
    UnknownInstruction,
)  # fmt: skip
from nectar.keys.bytecode.rules import RULES


class Exit(NamedTuple):
    """One way out of a block: where to, and the stack there."""

    target: int
    stack: tuple[int, ...]


class Straight(NamedTuple):
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


class Symbolic(NamedTuple):
    """A whole code object after symbolic execution."""

    code: types.CodeType
    kinds: list[int]
    data: list[Any]
    blocks: dict[int, Straight]
    incoming: dict[int, list[tuple[int, int]]]  # block -> (predecessor, number of its exit)


# Instructions that only take operands from the stack and put results back: name -> (pops, pushes) given the argument.
_PLAIN: Final[dict[str, tuple[int, int]]] = {
    "UNARY_POSITIVE": (1, 1), "UNARY_NEGATIVE": (1, 1), "UNARY_NOT": (1, 1), "UNARY_INVERT": (1, 1),
    "BINARY_SUBSCR": (2, 1), "STORE_SUBSCR": (3, 0), "DELETE_SUBSCR": (2, 0),
    "GET_ITER": (1, 1), "GET_AITER": (1, 1), "GET_YIELD_FROM_ITER": (1, 1),
    "LIST_TO_TUPLE": (1, 1), "ASYNC_GEN_WRAP": (1, 1), "YIELD_VALUE": (1, 1), "PREP_RERAISE_STAR": (2, 1),
    "LOAD_BUILD_CLASS": (0, 1), "LOAD_ASSERTION_ERROR": (0, 1), "SETUP_ANNOTATIONS": (0, 0), "LOAD_LOCALS": (0, 1),
    "POP_EXCEPT": (1, 0), "BEFORE_WITH": (1, 2), "BEFORE_ASYNC_WITH": (1, 2), "END_ASYNC_FOR": (2, 0),
    "CHECK_EG_MATCH": (2, 2), "CLEANUP_THROW": (3, 2), "FORMAT_SIMPLE": (1, 1), "FORMAT_WITH_SPEC": (2, 1),
}  # fmt: skip
_WITH_ARGUMENT: Final[dict[str, tuple[int, int]]] = {
    "BINARY_OP": (2, 1), "IS_OP": (2, 1), "CONTAINS_OP": (2, 1), "CONVERT_VALUE": (1, 1), "GET_AWAITABLE": (1, 1),
    "CALL_INTRINSIC_1": (1, 1), "CALL_INTRINSIC_2": (2, 1), "MATCH_CLASS": (3, 1),
}  # fmt: skip
# Instructions that look at a value and leave it: how many values they look at; each pushes one.
_PEEKS: Final = {"GET_LEN": 1, "MATCH_MAPPING": 1, "MATCH_SEQUENCE": 1, "MATCH_KEYS": 2, "GET_ANEXT": 1}
_BUILDS: Final = {"BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_SLICE"}
_WITHOUT_EFFECT: Final = {"BUILD_TUPLE", "BUILD_LIST", "BUILD_SLICE", "BUILD_STRING"}
# Instructions that add to a collection further down the stack.
_ADDS: Final = {
    "LIST_APPEND": 1,
    "LIST_EXTEND": 1,
    "SET_ADD": 1,
    "SET_UPDATE": 1,
    "DICT_UPDATE": 1,
    "DICT_MERGE": 1,
    "MAP_ADD": 2,
}
_TAKEN: Final[dict[str, tuple[int, int, bool]]] = {
    **{name: (*effect, False) for name, effect in _PLAIN.items()},
    **{name: (*effect, True) for name, effect in _WITH_ARGUMENT.items()},
}
_KEEPING: Final = {"JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP"}  # these leave the value on the stack when they jump
_TAKEN_WHEN: Final = (
    ("IF_NOT_NONE", "some"), ("IF_NONE", "none"), ("IF_TRUE", "true"), ("IF_FALSE", "false"),
    ("IF_TRUE_OR_POP", "true"), ("IF_FALSE_OR_POP", "false"),
)  # fmt: skip
_NAMED_LOADS: Final = {"LOAD_NAME", "LOAD_CLASSDEREF"}
_NAMED_STORES: Final = {"STORE_NAME", "STORE_GLOBAL", "STORE_ATTR", "DELETE_NAME", "DELETE_GLOBAL", "DELETE_ATTR"}


def run(code: types.CodeType) -> Symbolic:
    """The symbolic execution of every reachable block of code."""
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
        self.parameters = (
            code.co_argcount
            + code.co_kwonlyargcount
            + bool(code.co_flags & inspect.CO_VARARGS)
            + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        )
        self.variables = code.co_varnames + tuple(name for name in code.co_cellvars if name not in code.co_varnames)
        self.cells = frozenset(code.co_cellvars)
        self.stored = self._stored_locals() if len(self.blocks) > 1 else frozenset()  # only merges ask
        self.slots = self._slots()
        self.stack: list[int] = []
        self.locals: list[int] = []
        self.operations: list[Operation] = []
        self.keywords: tuple[str, ...] = ()
        self.offset = 0

    # values

    def leaf(self, kind: int, data: object) -> int:
        """The value of a kind with this data: the same one whenever asked."""
        known = self.leaves.get((kind, data))
        if known is None:
            known = self.leaves[kind, data] = self.value(kind, data)
        return known

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
        kinds, data = self.kinds, self.data
        first = len(kinds)
        if results == 1:
            kinds.append(RESULT)
            data.append(0)
        else:
            kinds.extend([RESULT] * results)
            data.extend(range(results))
        self.operations.append(Operation(name, arg, operands, first, results, self.offset, droppable))
        return first

    def pop(self, count: int) -> tuple[int, ...]:
        """The topmost values, taken off the stack."""
        stack = self.stack
        if count == 0:
            return ()
        if count == 1:
            return (stack.pop(),)
        taken = tuple(stack[-count:])
        if len(taken) != count:
            raise UnknownInstruction("stack underflow")
        del stack[-count:]
        return taken

    # locals

    def _stored_locals(self) -> frozenset[int]:
        stored: set[int] = set()
        for block in self.blocks.values():
            for each in block.body:
                stored.update(_stores(each))
        return frozenset(stored)

    def _slots(self) -> frozenset[int]:
        """Locals that code reachable from a handler loads, and that some code stores."""
        pending = [block.handler.target for block in self.blocks.values() if block.handler is not None]
        if not pending:
            return frozenset()
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
                loaded.update(_loads(each))
        return frozenset(index for index in loaded & self.stored if not self._is_cell(index))

    def initial_locals(self) -> list[int]:
        """Parameters, then locals without a value."""
        unbound = self.leaf(UNBOUND, None)
        return [
            self.leaf(CELL, at) if name in self.cells else self.leaf(PARAM, at) if at < self.parameters else unbound
            for at, name in enumerate(self.variables)
        ]

    def load_local(self, index: int) -> None:
        """Puts a local on the stack."""
        if index in self.slots:
            self.stack.append(self.operate("LOAD_SLOT", index, ()))
        else:
            value = self.locals[index]
            if self.kinds[value] in (MERGE, UNBOUND):
                self.operate("CHECK_BOUND", None, (value,), 0)
            self.stack.append(value)

    def store_local(self, index: int) -> None:
        """Takes a local from the stack."""
        (value,) = self.pop(1)
        if index in self.slots:
            self.operate("STORE_SLOT", index, (value,), 0)
        else:
            self.locals[index] = value

    # blocks

    def run(self) -> Symbolic:
        """All blocks, each after those that lead to it where that is possible."""
        order = _reverse_postorder(self.blocks)
        incoming = self._incoming()
        for start in order:
            self.done[start] = self._block(self.blocks[start], incoming[start])
        return Symbolic(self.code, self.kinds, self.data, self.done, incoming)

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
        for instruction in block.body:
            if instruction.name in NOTHING:
                continue
            self.offset = instruction.offset
            ended = self._step(instruction)
            if ended is not None:
                ending = ended
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
        stack = tuple(self.stack)
        kind, value = ending
        if block.body[-1].name in _KEEPING:
            return [Exit(block.successors[0], stack), Exit(block.successors[1], (*stack, value))]
        if kind == "next":
            after = stack[:-1] if not SINCE_312 else (*stack, self.leaf(NULL, None))
            return [Exit(block.successors[0], (*stack, value)), Exit(block.successors[1], after)]
        if kind == "send":
            after = (*stack[:-1], value) if not SINCE_312 else (*stack, value)
            return [Exit(block.successors[0], (*stack, value)), Exit(block.successors[1], after)]
        return [Exit(target, stack) for target in block.successors]

    # instructions

    def _step(self, instruction: Instruction) -> tuple[str, int] | None:
        name, arg = instruction.name, instruction.arg
        rule = RULES.get(name)
        if rule is not None:
            return rule(self, arg)
        taken = _TAKEN.get(name)
        if taken is not None:
            pops, pushes, with_argument = taken
            self._push_results(name, arg if with_argument else None, self.pop(pops), pushes)
            return None
        return self._rare_step(name, arg)

    def _rare_step(self, name: str, arg: int) -> tuple[str, int] | None:
        if name in GOTO:
            return "goto", -1
        if name in JUMPS:
            return self._branch(name)
        if name in _BUILDS:
            self._build(name, arg)
        elif name in _PEEKS:
            self.stack.append(self.operate(name, None, tuple(self.stack[-_PEEKS[name] :])))
        elif name in _ADDS:
            added = self.pop(_ADDS[name])
            self.operate(name, None, (self.stack[-arg], *added), 0)
        elif name in _NAMED_LOADS:
            self._load_name(name, arg)
        elif name in _NAMED_STORES:
            pops = {"STORE_ATTR": 2, "DELETE_ATTR": 1, "STORE_NAME": 1, "STORE_GLOBAL": 1}.get(name, 0)
            self.operate(name, self.code.co_names[arg], self.pop(pops), 0)
        else:
            raise UnknownInstruction(name)
        return None

    def _push_results(self, name: str, arg: object, operands: tuple[int, ...], pushes: int) -> None:
        first = self.operate(name, arg, operands, pushes)
        self.stack.extend(range(first, first + pushes))

    def _branch(self, name: str) -> tuple[str, int]:
        """Conditional jumps, as Straight.ending tells them."""
        if name == "FOR_ITER":
            return "next", self.operate("FOR_ITER", None, (self.stack[-1],))
        if name == "SEND":
            (sent,) = self.pop(1)
            return "send", self.operate("SEND", None, (self.stack[-1], sent))
        (value,) = self.pop(1)
        for ending, taken in _TAKEN_WHEN:
            if name.endswith(ending):
                return taken, value
        raise UnknownInstruction(name)

    def _build(self, name: str, arg: int) -> None:
        operands = self.pop(arg)
        if name == "BUILD_TUPLE" and operands and all(self.kinds[value] in (CELL, FREE) for value in operands):
            self.stack.append(self.leaf(CELLS, operands))
            return
        self.stack.append(self.operate(name, None, operands, droppable=name in _WITHOUT_EFFECT))

    def _load_name(self, name: str, arg: int) -> None:
        if name == "LOAD_NAME":
            label = self.code.co_names[arg]
            self.stack.append(self.operate("LOAD_NAME", label, (self.leaf(GLOBAL, label),)))
        else:
            self.stack.append(self.operate("LOAD_CLASSDEREF", self._variable(arg), (self.dereference(arg),)))

    def _variable(self, arg: int) -> str:
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

    def call(self, operands: tuple[int, ...]) -> None:
        """Calls: below the arguments lie the callee and nothing, or a callee and its first argument."""
        below = self.pop(2)
        empty = [self.kinds[value] == NULL for value in below]
        callee = (below[1],) if empty[0] else (below[0],) if empty[1] else below
        if not operands and len(callee) == 1 and self.operations and self._loads_super(self.operations[-1], callee[0]):
            self.operate("SUPER_OF", None, (self._first_argument(),), 0)
        self.stack.append(self.operate("CALL", self.keywords, (*callee, *operands)))
        self.keywords = ()


def _loads(instruction: Instruction) -> tuple[int, ...]:
    name, arg = instruction.name, instruction.arg
    if name in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR", "DELETE_FAST"):
        return (arg,)
    if name == "LOAD_FAST_LOAD_FAST":
        return (arg >> 4, arg & 15)
    return (arg & 15,) if name == "STORE_FAST_LOAD_FAST" else ()


def _stores(instruction: Instruction) -> tuple[int, ...]:
    name, arg = instruction.name, instruction.arg
    if name in ("STORE_FAST", "STORE_FAST_MAYBE_NULL", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
        return (arg,)
    if name == "STORE_FAST_STORE_FAST":
        return (arg >> 4, arg & 15)
    return (arg >> 4,) if name == "STORE_FAST_LOAD_FAST" else ()


def _reverse_postorder(blocks: dict[int, Block]) -> list[int]:
    order: list[int] = []
    seen: set[int] = {0}
    stack = [(0, iter(_next_blocks(blocks[0])))]
    while stack:
        start, following = stack[-1]
        for target in following:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(_next_blocks(blocks[target]))))
                break
        else:
            order.append(start)
            stack.pop()
    order.reverse()
    return order


def _next_blocks(block: Block) -> list[int]:
    # Handlers first: they come last in the reversed order, after the code they protect.
    targets = [] if block.handler is None else [block.handler.target]
    return [*targets, *reversed(block.successors)]
