"""What each instruction does to the symbolic machine, where that is more than taking and giving values.

In: the machine (symbolic.py) and the argument of the instruction. Out: changes of its stack, locals and operations; an
ending for instructions that end a block. One function per instruction, in the table RULES by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from nectar.keys.bytecode.flow import GOTO, JUMPS
from nectar.keys.bytecode.operation import (
    CELL,
    CELLS,
    CONST,
    FREE,
    GLOBAL,
    NULL,
    SINCE_312,
    SINCE_313,
    UNBOUND,
    UnknownInstruction,
)

if TYPE_CHECKING:
    from nectar.keys.bytecode.symbolic import Machine

_COMPARE_SHIFT: Final = 5 if SINCE_313 else 4 if SINCE_312 else 0

_Rule = Callable[["Machine", int], "tuple[str, int] | None"]
RULES: Final[dict[str, _Rule]] = {}
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
# Instructions that make something new of values: whether nobody notices if it is not made.
_BUILDS: Final = {"BUILD_LIST": True, "BUILD_SET": False, "BUILD_STRING": True, "BUILD_SLICE": True}
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
_TAKEN_WHEN: Final = (
    ("IF_NOT_NONE", "some"), ("IF_NONE", "none"), ("IF_TRUE", "true"), ("IF_FALSE", "false"),
    ("IF_TRUE_OR_POP", "true"), ("IF_FALSE_OR_POP", "false"),
)  # fmt: skip
# Instructions that change a name: how many values they take from the stack.
_NAMED_STORES: Final = {
    "STORE_NAME": 1, "STORE_GLOBAL": 1, "STORE_ATTR": 2, "DELETE_NAME": 0, "DELETE_GLOBAL": 0, "DELETE_ATTR": 1,
}  # fmt: skip


def _rule(*names: str) -> Callable[[_Rule], _Rule]:
    def add(rule: _Rule) -> _Rule:
        for name in names:
            RULES[name] = rule
        return rule

    return add


@_rule("LOAD_CONST")
def _load_const(machine: Machine, arg: int) -> None:
    machine.stack.append(machine.leaf(CONST, arg))


@_rule("LOAD_CLOSURE")
def _load_closure(machine: Machine, arg: int) -> None:
    machine.stack.append(machine.dereference(arg))


@_rule("LOAD_FAST", "LOAD_FAST_CHECK")
def _load_fast(machine: Machine, arg: int) -> None:
    if arg >= len(machine.variables):
        machine.stack.append(machine.dereference(arg))
    else:
        machine.load_local(arg)


@_rule("STORE_FAST", "STORE_FAST_MAYBE_NULL")
def _store_fast(machine: Machine, arg: int) -> None:
    machine.store_local(arg)


@_rule("LOAD_FAST_LOAD_FAST")
def _load_two(machine: Machine, arg: int) -> None:
    machine.load_local(arg >> 4)
    machine.load_local(arg & 15)


@_rule("STORE_FAST_STORE_FAST")
def _store_two(machine: Machine, arg: int) -> None:
    machine.store_local(arg >> 4)
    machine.store_local(arg & 15)


@_rule("STORE_FAST_LOAD_FAST")
def _store_then_load(machine: Machine, arg: int) -> None:
    machine.store_local(arg >> 4)
    machine.load_local(arg & 15)


@_rule("LOAD_FAST_AND_CLEAR")
def _load_and_clear(machine: Machine, arg: int) -> None:
    if arg in machine.slots:
        machine.stack.append(machine.operate("TAKE_SLOT", arg, ()))
    else:
        machine.stack.append(machine.locals[arg])
        machine.locals[arg] = machine.leaf(UNBOUND, None)


@_rule("DELETE_FAST")
def _delete_fast(machine: Machine, arg: int) -> None:
    if arg in machine.slots:
        machine.operate("DELETE_SLOT", arg, (), 0)
        return
    machine.load_local(arg)
    machine.stack.pop()
    machine.locals[arg] = machine.leaf(UNBOUND, None)


@_rule("COPY")
def _copy(machine: Machine, arg: int) -> None:
    machine.stack.append(machine.stack[-arg])


@_rule("SWAP")
def _swap(machine: Machine, arg: int) -> None:
    stack = machine.stack
    stack[-1], stack[-arg] = stack[-arg], stack[-1]


@_rule("POP_TOP")
def _pop_top(machine: Machine, arg: int) -> None:
    machine.stack.pop()


@_rule("END_FOR")
def _end_for(machine: Machine, arg: int) -> None:
    machine.pop(1 if SINCE_313 else 2)


@_rule("END_SEND")
def _end_send(machine: Machine, arg: int) -> None:
    machine.stack.append(machine.pop(2)[1])


@_rule("PUSH_NULL", "RETURN_GENERATOR")
def _push_null(machine: Machine, arg: int) -> None:
    machine.stack.append(machine.leaf(NULL, None))


@_rule("LOAD_GLOBAL")
def _load_global(machine: Machine, arg: int) -> None:
    name = machine.leaf(GLOBAL, machine.code.co_names[arg >> 1])
    _push_callee(machine, machine.operate("LOAD_GLOBAL", None, (name,)), bool(arg & 1))


def _push_callee(machine: Machine, value: int, with_null: bool) -> None:
    if not with_null:
        machine.stack.append(value)
    else:
        null = machine.leaf(NULL, None)
        machine.stack += (value, null) if SINCE_313 else (null, value)


@_rule("MAKE_CELL")
def _make_cell(machine: Machine, arg: int) -> None:
    if machine.offset > 2 * len(machine.variables):  # not one of those at the start, which are as good as declarations
        machine.operate("MAKE_CELL", None, (machine.dereference(arg),), 0)
        machine.locals[arg] = machine.dereference(arg)


@_rule("LOAD_DEREF")
def _load_deref(machine: Machine, arg: int) -> None:
    value = machine.dereference(arg)
    machine.stack.append(machine.operate("LOAD_CELL" if machine.kinds[value] == CELL else "LOAD_FREE", None, (value,)))


@_rule("STORE_DEREF")
def _store_deref(machine: Machine, arg: int) -> None:
    machine.operate("STORE_CELL", None, (machine.dereference(arg), *machine.pop(1)), 0)


@_rule("DELETE_DEREF")
def _delete_deref(machine: Machine, arg: int) -> None:
    machine.operate("DELETE_CELL", None, (machine.dereference(arg),), 0)


@_rule("LOAD_FROM_DICT_OR_DEREF")
def _load_from_dict_or_cell(machine: Machine, arg: int) -> None:
    name = machine.variable(arg)
    machine.stack.append(machine.operate("LOAD_CLASSDEREF", name, (*machine.pop(1), machine.dereference(arg))))


@_rule("LOAD_FROM_DICT_OR_GLOBALS")
def _load_from_dict_or_globals(machine: Machine, arg: int) -> None:
    label = machine.code.co_names[arg]
    machine.stack.append(machine.operate("LOAD_NAME", label, (*machine.pop(1), machine.leaf(GLOBAL, label))))


@_rule("LOAD_ATTR")
def _load_attr(machine: Machine, arg: int) -> None:
    label = machine.code.co_names[arg >> 1 if SINCE_312 else arg]
    value = machine.operate("LOAD_ATTR", label, (machine.stack.pop(),))
    _push_callee(machine, value, SINCE_312 and bool(arg & 1))


@_rule("LOAD_METHOD")
def _load_method(machine: Machine, arg: int) -> None:
    value = machine.operate("LOAD_ATTR", machine.code.co_names[arg], (machine.stack.pop(),))
    machine.stack.extend((machine.leaf(NULL, None), value))


@_rule("LOAD_SUPER_ATTR")
def _load_super_attr(machine: Machine, arg: int) -> None:
    value = machine.operate("LOAD_SUPER_ATTR", (machine.code.co_names[arg >> 2], bool(arg & 2)), machine.pop(3))
    _push_callee(machine, value, bool(arg & 1))


@_rule("COMPARE_OP")
def _compare(machine: Machine, arg: int) -> None:
    machine.stack.append(machine.operate("COMPARE_OP", arg >> _COMPARE_SHIFT, machine.pop(2)))


@_rule("BINARY_SLICE")
def _binary_slice(machine: Machine, arg: int) -> None:
    container, *bounds = machine.pop(3)
    cut = machine.operate("BUILD_SLICE", None, tuple(bounds), droppable=True)
    machine.stack.append(machine.operate("BINARY_SUBSCR", None, (container, cut)))


@_rule("STORE_SLICE")
def _store_slice(machine: Machine, arg: int) -> None:
    value, container, *bounds = machine.pop(4)
    cut = machine.operate("BUILD_SLICE", None, tuple(bounds), droppable=True)
    machine.operate("STORE_SUBSCR", None, (value, container, cut), 0)


@_rule("BUILD_MAP")
def _build_map(machine: Machine, arg: int) -> None:
    machine.stack.append(machine.operate("BUILD_MAP", None, machine.pop(2 * arg)))


@_rule("BUILD_CONST_KEY_MAP")
def _build_const_key_map(machine: Machine, arg: int) -> None:
    machine.stack.append(machine.operate("BUILD_CONST_KEY_MAP", None, machine.pop(arg + 1)))


@_rule("FORMAT_VALUE")
def _format_value(machine: Machine, arg: int) -> None:
    machine.stack.append(machine.operate("FORMAT_VALUE", arg & 3, machine.pop(2 if arg & 4 else 1)))


@_rule("UNPACK_SEQUENCE")
def _unpack(machine: Machine, arg: int) -> None:
    first = machine.operate("UNPACK_SEQUENCE", arg, machine.pop(1), arg)
    machine.stack.extend(reversed(range(first, first + arg)))


@_rule("UNPACK_EX")
def _unpack_star(machine: Machine, arg: int) -> None:
    count = (arg & 255) + (arg >> 8) + 1
    first = machine.operate("UNPACK_EX", arg, machine.pop(1), count)
    machine.stack.extend(reversed(range(first, first + count)))


@_rule("KW_NAMES")
def _kw_names(machine: Machine, arg: int) -> None:
    machine.keywords = machine.code.co_consts[arg]


@_rule("CALL")
def _call(machine: Machine, arg: int) -> None:
    machine.call(arg)


@_rule("CALL_KW")
def _call_kw(machine: Machine, arg: int) -> None:
    (names,) = machine.pop(1)
    machine.keywords = machine.code.co_consts[machine.data[names]]
    machine.call(arg)


@_rule("CALL_FUNCTION_EX")
def _call_ex(machine: Machine, arg: int) -> None:
    operands = machine.pop(2 if arg & 1 else 1)
    below = machine.pop(2)
    callee = below[1] if machine.kinds[below[0]] == NULL else below[0]
    machine.stack.append(machine.operate("CALL_EX", arg & 1, (callee, *operands)))


@_rule("MAKE_FUNCTION")
def _make_function(machine: Machine, arg: int) -> None:
    (code,) = machine.pop(1)
    if SINCE_313:
        arg = 0
    flags = [flag for flag in (8, 4, 2, 1) if arg & flag]
    parts = {flag: machine.pop(1)[0] for flag in flags}
    _emit_function(machine, code, parts)


def _emit_function(machine: Machine, code: int, parts: dict[int, int]) -> None:
    flags = tuple(sorted(parts))
    operands = (code, *(parts[flag] for flag in flags))
    machine.stack.append(machine.operate("MAKE_FUNCTION", flags, operands, droppable=True))


@_rule("SET_FUNCTION_ATTRIBUTE")
def _set_function_attribute(machine: Machine, arg: int) -> None:
    part, _ = machine.pop(2)
    made = machine.operations.pop()
    if made.name != "MAKE_FUNCTION":
        raise UnknownInstruction("SET_FUNCTION_ATTRIBUTE does not follow MAKE_FUNCTION")
    parts = dict(zip(made.arg, made.operands[1:], strict=True))  # type: ignore[call-overload]
    _emit_function(machine, made.operands[0], {**parts, arg: part})


@_rule("IMPORT_NAME")
def _import_name(machine: Machine, arg: int) -> None:
    level, names = (machine.code.co_consts[machine.data[value]] for value in machine.pop(2))
    machine.stack.append(machine.operate("IMPORT_NAME", (machine.code.co_names[arg], level, names or ()), ()))


@_rule("IMPORT_FROM")
def _import_from(machine: Machine, arg: int) -> None:
    machine.stack.append(machine.operate("IMPORT_FROM", machine.code.co_names[arg], (machine.stack[-1],)))


@_rule("PUSH_EXC_INFO")
def _push_exc_info(machine: Machine, arg: int) -> None:
    (caught,) = machine.pop(1)
    machine.stack.extend((machine.operate("PUSH_EXC_INFO", None, (caught,)), caught))


@_rule("CHECK_EXC_MATCH")
def _check_exc_match(machine: Machine, arg: int) -> None:
    (kind,) = machine.pop(1)
    machine.stack.append(machine.operate("CHECK_EXC_MATCH", None, (machine.stack[-1], kind)))


@_rule("WITH_EXCEPT_START")
def _with_except_start(machine: Machine, arg: int) -> None:
    machine.stack.append(machine.operate("WITH_EXCEPT_START", None, (machine.stack[-4], machine.stack[-1])))


@_rule("RETURN_VALUE")
def _return_value(machine: Machine, arg: int) -> tuple[str, int]:
    return "return", machine.stack.pop()


@_rule("RETURN_CONST")
def _return_const(machine: Machine, arg: int) -> tuple[str, int]:
    return "return", machine.constant(arg)


@_rule("RAISE_VARARGS")
def _raise(machine: Machine, arg: int) -> tuple[str, int]:
    machine.operate("RAISE", None, machine.pop(arg), 0)
    return "stop", -1


@_rule("RERAISE")
def _reraise(machine: Machine, arg: int) -> tuple[str, int]:
    machine.operate("RERAISE", None, machine.pop(1), 0)
    return "stop", -1


@_rule("FOR_ITER")
def _for_iter(machine: Machine, arg: int) -> tuple[str, int]:
    return "next", machine.operate("FOR_ITER", None, (machine.stack[-1],))


@_rule("SEND")
def _send(machine: Machine, arg: int) -> tuple[str, int]:
    (sent,) = machine.pop(1)
    return "send", machine.operate("SEND", None, (machine.stack[-1], sent))


@_rule(*GOTO)
def _jump(machine: Machine, arg: int) -> tuple[str, int]:
    return "goto", -1


@_rule("LOAD_NAME")
def _load_name(machine: Machine, arg: int) -> None:
    label = machine.code.co_names[arg]
    machine.stack.append(machine.operate("LOAD_NAME", label, (machine.leaf(GLOBAL, label),)))


@_rule("LOAD_CLASSDEREF")
def _load_classderef(machine: Machine, arg: int) -> None:
    machine.stack.append(machine.operate("LOAD_CLASSDEREF", machine.variable(arg), (machine.dereference(arg),)))


@_rule("BUILD_TUPLE")
def _build_tuple(machine: Machine, arg: int) -> None:
    operands = machine.pop(arg)
    if operands and all(machine.kinds[value] in (CELL, FREE) for value in operands):
        machine.stack.append(machine.leaf(CELLS, operands))
    else:
        machine.stack.append(machine.operate("BUILD_TUPLE", None, operands, droppable=True))


# rules that differ in names and numbers only


def _takes(name: str, pops: int, pushes: int, with_argument: bool) -> _Rule:
    def take(machine: Machine, arg: int) -> None:
        first = machine.operate(name, arg if with_argument else None, machine.pop(pops), pushes)
        if pushes == 1:
            machine.stack.append(first)
        else:
            machine.stack.extend(range(first, first + pushes))

    return take


def _builds(name: str, droppable: bool) -> _Rule:
    def build(machine: Machine, arg: int) -> None:
        machine.stack.append(machine.operate(name, None, machine.pop(arg), droppable=droppable))

    return build


def _peeks(name: str, count: int) -> _Rule:
    def peek(machine: Machine, arg: int) -> None:
        machine.stack.append(machine.operate(name, None, tuple(machine.stack[-count:])))

    return peek


def _adds(name: str, count: int) -> _Rule:
    def add(machine: Machine, arg: int) -> None:
        added = machine.pop(count)
        machine.operate(name, None, (machine.stack[-arg], *added), 0)

    return add


def _stores(name: str, pops: int) -> _Rule:
    def store(machine: Machine, arg: int) -> None:
        machine.operate(name, machine.code.co_names[arg], machine.pop(pops), 0)

    return store


def _branches(taken: str) -> _Rule:
    """A conditional jump, which is taken if the topmost value is as Straight.ending tells."""

    def branch(machine: Machine, arg: int) -> tuple[str, int]:
        return taken, machine.stack.pop()

    return branch


RULES.update(
    {
        **{name: _takes(name, *effect, with_argument=False) for name, effect in _PLAIN.items()},
        **{name: _takes(name, *effect, with_argument=True) for name, effect in _WITH_ARGUMENT.items()},
        **{name: _builds(name, droppable) for name, droppable in _BUILDS.items()},
        **{name: _peeks(name, count) for name, count in _PEEKS.items()},
        **{name: _adds(name, count) for name, count in _ADDS.items()},
        **{name: _stores(name, pops) for name, pops in _NAMED_STORES.items()},
        **{name: _branches(taken) for name in JUMPS for ending, taken in _TAKEN_WHEN if name.endswith(ending)},
    }
)
