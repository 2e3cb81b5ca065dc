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
import sys
import types
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from nectar.keys.bytecode.decode import Instruction, Protected
from nectar.keys.bytecode.flow import GOTO, Block, blocks_of, target_of

PARAM, CONST, GLOBAL, FREE, CELL, CELLS, RESULT, MERGE, UNBOUND, NULL, CAUGHT = range(11)
_SINCE_312: Final = sys.version_info >= (3, 12)
_SINCE_313: Final = sys.version_info >= (3, 13)
_COMPARE_SHIFT: Final = 5 if _SINCE_313 else 4 if _SINCE_312 else 0


class UnknownInstruction(Exception):
    """The bytecode has an instruction this module has no rule for."""


class Operation(NamedTuple):
    """One effect: what is done, with a static argument, to which values; results are numbered from `result`."""

    name: str
    arg: object
    operands: tuple[int, ...]
    result: int
    count: int
    offset: int
    droppable: bool = False


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
_ADDS: Final = {"LIST_APPEND": 1, "LIST_EXTEND": 1, "SET_ADD": 1, "SET_UPDATE": 1, "DICT_UPDATE": 1, "DICT_MERGE": 1, "MAP_ADD": 2}
_NOTHING: Final = {"NOP", "RESUME", "PRECALL", "CACHE", "COPY_FREE_VARS", "TO_BOOL"}
_KEEPING: Final = {"JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP"}  # these leave the value on the stack when they jump
_TAKEN_WHEN: Final = (
    ("IF_NOT_NONE", "some"), ("IF_NONE", "none"), ("IF_TRUE", "true"), ("IF_FALSE", "false"),
    ("IF_TRUE_OR_POP", "true"), ("IF_FALSE_OR_POP", "false"),
)  # fmt: skip
_NAMED_LOADS: Final = {"LOAD_NAME", "LOAD_CLASSDEREF"}
_NAMED_STORES: Final = {"STORE_NAME", "STORE_GLOBAL", "STORE_ATTR", "DELETE_NAME", "DELETE_GLOBAL", "DELETE_ATTR"}


def run(code: types.CodeType) -> Symbolic:
    """The symbolic execution of every reachable block of code."""
    return _Machine(code).run()


class _Machine:
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
        self.stored = self._stored_locals()
        self.slots = self._slots()
        self.stack: list[int] = []
        self.locals: list[int] = []
        self.operations: list[Operation] = []
        self.keywords: tuple[str, ...] = ()
        self.offset = 0

    # values

    def leaf(self, kind: int, data: object) -> int:
        known = self.leaves.get((kind, data))
        if known is None:
            known = self.leaves[kind, data] = self.value(kind, data)
        return known

    def value(self, kind: int, data: object) -> int:
        self.kinds.append(kind)
        self.data.append(data)
        return len(self.kinds) - 1

    def constant(self, index: int) -> int:
        return self.leaf(CONST, index)

    def operate(
        self, name: str, arg: object, operands: tuple[int, ...], results: int = 1, droppable: bool = False
    ) -> int:
        first = len(self.kinds)
        for number in range(results):
            self.value(RESULT, number)
        self.operations.append(Operation(name, arg, operands, first, results, self.offset, droppable))
        return first

    def pop(self, count: int) -> tuple[int, ...]:
        if count == 0:
            return ()
        taken = tuple(self.stack[-count:])
        if len(taken) != count:
            raise UnknownInstruction("stack underflow")
        del self.stack[-count:]
        return taken

    # locals

    def _stored_locals(self) -> frozenset[int]:
        stored = set()
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
        return frozenset(loaded & self.stored)

    def initial_locals(self) -> list[int]:
        unbound = self.leaf(UNBOUND, None)
        return [self.leaf(PARAM, at) if at < self.parameters else unbound for at in range(len(self.variables))]

    def load_local(self, index: int) -> None:
        name = self.variables[index] if index < len(self.variables) else None
        if name is None or name in self.cells:
            self.stack.append(self.leaf(CELL, index))
        elif index in self.slots:
            self.stack.append(self.operate("LOAD_SLOT", index, ()))
        else:
            value = self.locals[index]
            if self.kinds[value] in (MERGE, UNBOUND):
                self.operate("CHECK_BOUND", None, (value,), 0)
            self.stack.append(value)

    def store_local(self, index: int) -> None:
        (value,) = self.pop(1)
        if index in self.slots:
            self.operate("STORE_SLOT", index, (value,), 0)
        else:
            self.locals[index] = value

    # blocks

    def run(self) -> Symbolic:
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
            self.offset = instruction.offset
            ended = self._step(instruction)
            if ended is not None:
                ending = ended
        return Straight(block.start, merges, self.operations, ending, self._exits(block, ending), list(self.locals), handler)

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
                self.operate("STORE_SLOT", index, (self.leaf(PARAM, index),), 0)

    def _enter_handler(self, block: Block, row: Protected) -> None:
        """At a handler the stack is as deep as its row says; locals are slots, or never stored."""
        self.stack = [self.value(CAUGHT, (block.start, at)) for at in range(row.depth + row.lasti)]
        self.stack.append(self.value(CAUGHT, (block.start, -1)))
        self.locals = self.initial_locals()
        for index in self.stored - self.slots:
            self.locals[index] = self.leaf(UNBOUND, None)

    def _merge(self, incoming: list[tuple[int, int]], merges: list[tuple[int, tuple[str, int]]]) -> None:
        known = [(self.done[before], number) for before, number in incoming if before in self.done]
        complete = len(known) == len(incoming)
        first, number = known[0]

        def merged(kind: str, at: int, values: set[int], movable: bool) -> int:
            if len(values) == 1 and (complete or not movable):
                return next(iter(values))
            merge = self.value(MERGE, None)
            merges.append((merge, (kind, at)))
            return merge

        stacks = [before.exits[exit_number].stack for before, exit_number in known]
        self.stack = [merged("stack", at, {stack[at] for stack in stacks}, True) for at in range(len(stacks[0]))]
        self.locals = [
            merged("local", at, {before.locals[at] for before, _ in known}, at in self.stored)
            for at in range(len(first.locals))
        ]

    def _exits(self, block: Block, ending: tuple[str, int]) -> list[Exit]:
        stack = tuple(self.stack)
        kind, value = ending
        if block.body[-1].name in _KEEPING:
            return [Exit(block.successors[0], stack), Exit(block.successors[1], (*stack, value))]
        if kind == "next":
            after = stack[:-1] if not _SINCE_312 else (*stack, self.leaf(NULL, None))
            return [Exit(block.successors[0], (*stack, value)), Exit(block.successors[1], after)]
        if kind == "send":
            after = (*stack[:-1], value) if not _SINCE_312 else (*stack, value)
            return [Exit(block.successors[0], (*stack, value)), Exit(block.successors[1], after)]
        return [Exit(target, stack) for target in block.successors]

    # instructions

    def _step(self, instruction: Instruction) -> tuple[str, int] | None:
        name, arg = instruction.name, instruction.arg
        rule = _RULES.get(name)
        if rule is not None:
            return rule(self, arg)
        if name in _NOTHING:
            return None
        if name in GOTO:
            return "goto", -1
        if target_of(instruction) is not None:
            return self._branch(name)
        if name in _WITH_ARGUMENT:
            pops, pushes = _WITH_ARGUMENT[name]
            self._push_results(name, arg, self.pop(pops), pushes)
        elif name in _PLAIN:
            pops, pushes = _PLAIN[name]
            self._push_results(name, None, self.pop(pops), pushes)
        elif name in _BUILDS:
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
            self.stack.append(self.operate("LOAD_CLASSDEREF", None, (self._dereference(arg),)))

    def _dereference(self, arg: int) -> int:
        """The cell or free variable number arg."""
        own = len(self.variables)
        return self.leaf(CELL, arg) if arg < own else self.leaf(FREE, self.code.co_freevars[arg - own])

    def _call(self, operands: tuple[int, ...]) -> None:
        """Calls: below the arguments lie the callee and nothing, or a callee and its first argument."""
        below = self.pop(2)
        empty = [self.kinds[value] == NULL for value in below]
        callee = (below[1],) if empty[0] else (below[0],) if empty[1] else below
        self.stack.append(self.operate("CALL", self.keywords, (*callee, *operands)))
        self.keywords = ()


_Rule = Callable[[_Machine, int], "tuple[str, int] | None"]
_RULES: Final[dict[str, _Rule]] = {}


def _rule(*names: str) -> Callable[[_Rule], _Rule]:
    def add(rule: _Rule) -> _Rule:
        for name in names:
            _RULES[name] = rule
        return rule

    return add


@_rule("LOAD_CONST")
def _load_const(machine: _Machine, arg: int) -> None:
    machine.stack.append(machine.constant(arg))


@_rule("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_CLOSURE")
def _load_fast(machine: _Machine, arg: int) -> None:
    if arg >= len(machine.variables):
        machine.stack.append(machine._dereference(arg))
    else:
        machine.load_local(arg)


@_rule("STORE_FAST", "STORE_FAST_MAYBE_NULL")
def _store_fast(machine: _Machine, arg: int) -> None:
    machine.store_local(arg)


@_rule("LOAD_FAST_LOAD_FAST")
def _load_two(machine: _Machine, arg: int) -> None:
    machine.load_local(arg >> 4)
    machine.load_local(arg & 15)


@_rule("STORE_FAST_STORE_FAST")
def _store_two(machine: _Machine, arg: int) -> None:
    machine.store_local(arg >> 4)
    machine.store_local(arg & 15)


@_rule("STORE_FAST_LOAD_FAST")
def _store_then_load(machine: _Machine, arg: int) -> None:
    machine.store_local(arg >> 4)
    machine.load_local(arg & 15)


@_rule("LOAD_FAST_AND_CLEAR")
def _load_and_clear(machine: _Machine, arg: int) -> None:
    if arg in machine.slots:
        machine.stack.append(machine.operate("TAKE_SLOT", arg, ()))
    else:
        machine.stack.append(machine.locals[arg])
        machine.locals[arg] = machine.leaf(UNBOUND, None)


@_rule("DELETE_FAST")
def _delete_fast(machine: _Machine, arg: int) -> None:
    if arg in machine.slots:
        machine.operate("DELETE_SLOT", arg, (), 0)
        return
    machine.load_local(arg)
    machine.stack.pop()
    machine.locals[arg] = machine.leaf(UNBOUND, None)


@_rule("COPY")
def _copy(machine: _Machine, arg: int) -> None:
    machine.stack.append(machine.stack[-arg])


@_rule("SWAP")
def _swap(machine: _Machine, arg: int) -> None:
    stack = machine.stack
    stack[-1], stack[-arg] = stack[-arg], stack[-1]


@_rule("POP_TOP")
def _pop_top(machine: _Machine, arg: int) -> None:
    machine.pop(1)


@_rule("END_FOR")
def _end_for(machine: _Machine, arg: int) -> None:
    machine.pop(1 if _SINCE_313 else 2)


@_rule("END_SEND")
def _end_send(machine: _Machine, arg: int) -> None:
    machine.stack.append(machine.pop(2)[1])


@_rule("PUSH_NULL", "RETURN_GENERATOR")
def _push_null(machine: _Machine, arg: int) -> None:
    machine.stack.append(machine.leaf(NULL, None))


@_rule("LOAD_GLOBAL")
def _load_global(machine: _Machine, arg: int) -> None:
    name = machine.leaf(GLOBAL, machine.code.co_names[arg >> 1])
    _push_callee(machine, machine.operate("LOAD_GLOBAL", None, (name,)), bool(arg & 1))


def _push_callee(machine: _Machine, value: int, with_null: bool) -> None:
    null = machine.leaf(NULL, None)
    machine.stack.extend([value] if not with_null else [value, null] if _SINCE_313 else [null, value])


@_rule("MAKE_CELL")
def _make_cell(machine: _Machine, arg: int) -> None:
    if machine.offset > 2 * len(machine.variables):  # not one of those at the start, which are as good as declarations
        machine.operate("MAKE_CELL", None, (machine._dereference(arg),), 0)


@_rule("LOAD_DEREF")
def _load_deref(machine: _Machine, arg: int) -> None:
    value = machine._dereference(arg)
    machine.stack.append(machine.operate("LOAD_CELL" if machine.kinds[value] == CELL else "LOAD_FREE", None, (value,)))


@_rule("STORE_DEREF")
def _store_deref(machine: _Machine, arg: int) -> None:
    machine.operate("STORE_CELL", None, (machine._dereference(arg), *machine.pop(1)), 0)


@_rule("DELETE_DEREF")
def _delete_deref(machine: _Machine, arg: int) -> None:
    machine.operate("DELETE_CELL", None, (machine._dereference(arg),), 0)


@_rule("LOAD_FROM_DICT_OR_DEREF")
def _load_from_dict_or_cell(machine: _Machine, arg: int) -> None:
    machine.stack.append(machine.operate("LOAD_CLASSDEREF", None, (*machine.pop(1), machine._dereference(arg))))


@_rule("LOAD_FROM_DICT_OR_GLOBALS")
def _load_from_dict_or_globals(machine: _Machine, arg: int) -> None:
    label = machine.code.co_names[arg]
    machine.stack.append(machine.operate("LOAD_NAME", label, (*machine.pop(1), machine.leaf(GLOBAL, label))))


@_rule("LOAD_ATTR")
def _load_attr(machine: _Machine, arg: int) -> None:
    label = machine.code.co_names[arg >> 1 if _SINCE_312 else arg]
    value = machine.operate("LOAD_ATTR", label, machine.pop(1))
    _push_callee(machine, value, _SINCE_312 and bool(arg & 1))


@_rule("LOAD_METHOD")
def _load_method(machine: _Machine, arg: int) -> None:
    value = machine.operate("LOAD_ATTR", machine.code.co_names[arg], machine.pop(1))
    machine.stack.extend((machine.leaf(NULL, None), value))


@_rule("LOAD_SUPER_ATTR")
def _load_super_attr(machine: _Machine, arg: int) -> None:
    value = machine.operate("LOAD_SUPER_ATTR", (machine.code.co_names[arg >> 2], bool(arg & 2)), machine.pop(3))
    _push_callee(machine, value, bool(arg & 1))


@_rule("COMPARE_OP")
def _compare(machine: _Machine, arg: int) -> None:
    machine.stack.append(machine.operate("COMPARE_OP", arg >> _COMPARE_SHIFT, machine.pop(2)))


@_rule("BINARY_SLICE")
def _binary_slice(machine: _Machine, arg: int) -> None:
    container, *bounds = machine.pop(3)
    cut = machine.operate("BUILD_SLICE", None, tuple(bounds), droppable=True)
    machine.stack.append(machine.operate("BINARY_SUBSCR", None, (container, cut)))


@_rule("STORE_SLICE")
def _store_slice(machine: _Machine, arg: int) -> None:
    value, container, *bounds = machine.pop(4)
    cut = machine.operate("BUILD_SLICE", None, tuple(bounds), droppable=True)
    machine.operate("STORE_SUBSCR", None, (value, container, cut), 0)


@_rule("BUILD_MAP")
def _build_map(machine: _Machine, arg: int) -> None:
    machine.stack.append(machine.operate("BUILD_MAP", None, machine.pop(2 * arg)))


@_rule("BUILD_CONST_KEY_MAP")
def _build_const_key_map(machine: _Machine, arg: int) -> None:
    machine.stack.append(machine.operate("BUILD_CONST_KEY_MAP", None, machine.pop(arg + 1)))


@_rule("FORMAT_VALUE")
def _format_value(machine: _Machine, arg: int) -> None:
    machine.stack.append(machine.operate("FORMAT_VALUE", arg & 3, machine.pop(2 if arg & 4 else 1)))


@_rule("UNPACK_SEQUENCE")
def _unpack(machine: _Machine, arg: int) -> None:
    first = machine.operate("UNPACK_SEQUENCE", arg, machine.pop(1), arg)
    machine.stack.extend(reversed(range(first, first + arg)))


@_rule("UNPACK_EX")
def _unpack_star(machine: _Machine, arg: int) -> None:
    count = (arg & 255) + (arg >> 8) + 1
    first = machine.operate("UNPACK_EX", arg, machine.pop(1), count)
    machine.stack.extend(reversed(range(first, first + count)))


@_rule("KW_NAMES")
def _kw_names(machine: _Machine, arg: int) -> None:
    machine.keywords = machine.code.co_consts[arg]


@_rule("CALL")
def _call(machine: _Machine, arg: int) -> None:
    machine._call(machine.pop(arg))


@_rule("CALL_KW")
def _call_kw(machine: _Machine, arg: int) -> None:
    (names,) = machine.pop(1)
    machine.keywords = machine.code.co_consts[machine.data[names]]
    machine._call(machine.pop(arg))


@_rule("CALL_FUNCTION_EX")
def _call_ex(machine: _Machine, arg: int) -> None:
    operands = machine.pop(2 if arg & 1 else 1)
    below = machine.pop(2)
    callee = below[1] if machine.kinds[below[0]] == NULL else below[0]
    machine.stack.append(machine.operate("CALL_EX", arg & 1, (callee, *operands)))


@_rule("MAKE_FUNCTION")
def _make_function(machine: _Machine, arg: int) -> None:
    (code,) = machine.pop(1)
    if _SINCE_313:
        arg = 0
    flags = [flag for flag in (8, 4, 2, 1) if arg & flag]
    parts = {flag: machine.pop(1)[0] for flag in flags}
    _emit_function(machine, code, parts)


def _emit_function(machine: _Machine, code: int, parts: dict[int, int]) -> None:
    flags = tuple(sorted(parts))
    operands = (code, *(parts[flag] for flag in flags))
    machine.stack.append(machine.operate("MAKE_FUNCTION", flags, operands, droppable=True))


@_rule("SET_FUNCTION_ATTRIBUTE")
def _set_function_attribute(machine: _Machine, arg: int) -> None:
    part, _ = machine.pop(2)
    made = machine.operations.pop()
    if made.name != "MAKE_FUNCTION":
        raise UnknownInstruction("SET_FUNCTION_ATTRIBUTE")
    parts = dict(zip(made.arg, made.operands[1:], strict=True))  # type: ignore[call-overload]
    _emit_function(machine, made.operands[0], {**parts, arg: part})


@_rule("IMPORT_NAME")
def _import_name(machine: _Machine, arg: int) -> None:
    level, names = (machine.code.co_consts[machine.data[value]] for value in machine.pop(2))
    machine.stack.append(machine.operate("IMPORT_NAME", (machine.code.co_names[arg], level, names or ()), ()))


@_rule("IMPORT_FROM")
def _import_from(machine: _Machine, arg: int) -> None:
    machine.stack.append(machine.operate("IMPORT_FROM", machine.code.co_names[arg], (machine.stack[-1],)))


@_rule("PUSH_EXC_INFO")
def _push_exc_info(machine: _Machine, arg: int) -> None:
    (caught,) = machine.pop(1)
    machine.stack.extend((machine.operate("PUSH_EXC_INFO", None, (caught,)), caught))


@_rule("CHECK_EXC_MATCH")
def _check_exc_match(machine: _Machine, arg: int) -> None:
    (kind,) = machine.pop(1)
    machine.stack.append(machine.operate("CHECK_EXC_MATCH", None, (machine.stack[-1], kind)))


@_rule("WITH_EXCEPT_START")
def _with_except_start(machine: _Machine, arg: int) -> None:
    machine.stack.append(machine.operate("WITH_EXCEPT_START", None, (machine.stack[-4], machine.stack[-1])))


@_rule("RETURN_VALUE")
def _return_value(machine: _Machine, arg: int) -> tuple[str, int]:
    return "return", machine.pop(1)[0]


@_rule("RETURN_CONST")
def _return_const(machine: _Machine, arg: int) -> tuple[str, int]:
    return "return", machine.constant(arg)


@_rule("RAISE_VARARGS")
def _raise(machine: _Machine, arg: int) -> tuple[str, int]:
    machine.operate("RAISE", None, machine.pop(arg), 0)
    return "stop", -1


@_rule("RERAISE")
def _reraise(machine: _Machine, arg: int) -> tuple[str, int]:
    machine.operate("RERAISE", None, machine.pop(1), 0)
    return "stop", -1


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
