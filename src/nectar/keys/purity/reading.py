"""Readings that would be fine if a parameter were a declared input: `open(file.path)`, `pd.read_csv(file)`.

In: the uses of a reader in a function. Out: an Excuse that names the parameter all of them are about and the steps that
lead from it to what is read, or None. Whether the argument is such an input is known only when the function is called.
Law: an excuse is about what is certainly read. A value that may come from two places has none.
"""

from __future__ import annotations

import dis
import io
import types
from typing import TYPE_CHECKING, Final

from nectar.keys.bytecode.operation import MERGE, PARAM, Operation
from nectar.keys.purity.facts import CONSTANT, PARAMETER, Fact, Facts
from nectar.keys.purity.readers import MODE, MODES, SOURCES
from nectar.model.refusal import ITEM, Excuse

if TYPE_CHECKING:
    from nectar.keys.purity.uses import Uses

_COMPREHENSIONS: Final = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_ITEMS: Final = ("FOR_ITER", "BINARY_SUBSCR", "UNPACK_SEQUENCE")
_LONGEST: Final = 8  # steps
_IN_MEMORY: Final = (io.BytesIO, io.StringIO)


def excuse_for_reader(function: types.FunctionType, uses: Uses, reader: int, mode_at: int | None) -> Excuse | None:
    """The excuse of a reader that is only called, each time to read what one parameter leads to."""
    found: set[Excuse | None] = set()
    for use, at in uses.of(reader):
        if use.name != "CALL" or at != 0 or not _only_reads(uses.facts, use, mode_at):
            return None
        source = _source(use)
        found.add(None if source is None else excuse_for(function, uses.facts, source))
    return found.pop() if len(found) == 1 else None


def reads_memory(uses: Uses, reader: int, mode_at: int | None) -> bool:
    """Whether a reader is only called, each time to read what the function itself has put into memory."""
    called = [use for use, at in uses.of(reader) if use.name == "CALL" and at == 0]
    return (
        len(called) == len(uses.of(reader)) > 0
        and all(_only_reads(uses.facts, use, mode_at) for use in called)
        and all(_is_made_in_memory(uses.facts, _source(use)) for use in called)
    )


def _is_made_in_memory(facts: Facts, value: int | None) -> bool:
    made = None if value is None else facts.maker(value)
    return made is not None and made.name == "CALL" and facts.part.known.get(made.operands[0]) in _IN_MEMORY


def excuse_for_helper(
    function: types.FunctionType, uses: Uses, value: int, helper: types.FunctionType, excuse: Excuse | None
) -> Excuse | None:
    """The excuse of a function that calls a helper, whose own excuse names a parameter of the helper."""
    assert excuse is not None
    found: set[Excuse | None] = set()
    for use, at in uses.of(value):
        given = _given(use, helper, excuse.parameter) if use.name == "CALL" and at == 0 else None
        here = None if given is None else excuse_for(function, uses.facts, given)
        found.add(None if here is None else Excuse(here.parameter, here.steps + excuse.steps))
    return found.pop() if len(found) == 1 else None


def excuse_for(function: types.FunctionType, facts: Facts, value: int) -> Excuse | None:
    """The excuse of reading a value: it was certainly reached from a parameter, by these steps."""
    led = _way_to(facts, value, frozenset())
    if led is None or len(led[1]) > _LONGEST:
        return None
    return Excuse(function.__code__.co_varnames[led[0]], led[1])


def _way_to(facts: Facts, value: int, inside: frozenset[int]) -> tuple[int, tuple[str, ...]] | None:
    """The parameter a value was certainly reached from, and the steps from there."""
    kind = facts.template.kinds[value]
    if value in inside or value in facts.part.known:
        return None
    if kind == PARAM:
        number: int = facts.template.data[value]  # type: ignore[assignment]
        return _way_into(facts) if facts.part.nested and number == 0 else None if facts.part.nested else (number, ())
    if kind == MERGE:
        ways = {_way_to(facts, brought, inside | {value}) for brought in facts.brought_to(value) if brought != value}
        return ways.pop() if len(ways) == 1 else None
    made = facts.maker(value)
    if made is None:
        return None
    if made.name == "GET_ITER":
        return _way_to(facts, made.operands[0], inside)
    if made.name in ("LOAD_CELL", "LOAD_FREE"):
        return _way_to_shared(facts, made.operands[0])
    step = str(made.arg) if made.name == "LOAD_ATTR" else ITEM if made.name in _ITEMS else None
    way = None if step is None else _way_to(facts, made.operands[0], inside)
    return None if way is None or step is None else (way[0], (*way[1], step))


def _way_into(facts: Facts) -> tuple[int, tuple[str, ...]] | None:
    """The way to what a comprehension runs over."""
    outer, code = facts.outer, facts.template.code
    if outer is None or code.co_name not in _COMPREHENSIONS:
        return None
    for call, at in outer.calls_with(code):
        if at == 0 and len(call.operands) == 2:
            return _way_to(outer, call.operands[1], frozenset())
    return None


def _way_to_shared(facts: Facts, cell: int) -> tuple[int, tuple[str, ...]] | None:
    """The way to a variable that inner functions share: a parameter that nobody ever assigns to."""
    outermost = facts
    while outermost.outer is not None:
        outermost = outermost.outer
    fact = facts.in_cell(cell)
    if fact.kind != PARAMETER:
        return None
    code = outermost.template.code
    return None if _is_assigned(code, code.co_varnames[fact.number]) else (fact.number, ())


def _is_assigned(code: types.CodeType, name: str) -> bool:
    """Whether code, or a function inside it, assigns to a variable of this name."""
    return any(
        each.argval == name and each.opname.startswith(("STORE_", "DELETE_")) for each in dis.get_instructions(code)
    ) or any(_is_assigned(inner, name) for inner in code.co_consts if isinstance(inner, types.CodeType))


def _given(call: Operation, helper: types.FunctionType, parameter: str) -> int | None:
    """The argument that a parameter of the helper gets."""
    keywords: tuple[str, ...] = call.arg  # type: ignore[assignment]
    arguments = call.operands[1:]
    positional = arguments[: len(arguments) - len(keywords)]
    if parameter in keywords:
        return arguments[len(positional) + keywords.index(parameter)]
    names = helper.__code__.co_varnames[: helper.__code__.co_argcount]
    position = names.index(parameter) if parameter in names else len(positional)
    return positional[position] if position < len(positional) else None


def _source(call: Operation) -> int | None:
    """What a call of a reader reads: its first argument, or one that is named as readers name it."""
    keywords: tuple[str, ...] = call.arg  # type: ignore[assignment]
    arguments = call.operands[1:]
    if len(arguments) > len(keywords):
        return arguments[0]
    return next((value for name, value in zip(keywords, arguments, strict=True) if name in SOURCES), None)


def _only_reads(facts: Facts, call: Operation, mode_at: int | None) -> bool:
    """Whether the call says, if at all, that it only reads."""
    keywords: tuple[str, ...] = call.arg  # type: ignore[assignment]
    arguments = call.operands[1:]
    positional = arguments[: len(arguments) - len(keywords)]
    modes = [value for name, value in zip(reversed(keywords), reversed(arguments), strict=False) if name == MODE]
    if mode_at is not None and len(positional) > mode_at:
        modes.append(positional[mode_at])
    return all(_is_reading_mode(facts.of(value)) for value in modes)


def _is_reading_mode(fact: Fact) -> bool:
    return fact.kind == CONSTANT and fact.root in MODES
