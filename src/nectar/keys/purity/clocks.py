"""Clocks that are read for nothing but a message: `log.info("took %.1f s", perf_counter() - start)`.

In: how values are used in one part of a function. Out: whether what its clocks show reaches only messages, and neither
the result, nor any state, nor a branch, nor code that is not known. Law: what a clock shows is followed through
arithmetic, rounding and formatting of numbers and texts alone; wherever else it goes, the answer is no.
"""

from __future__ import annotations

import builtins
import datetime
import logging
import sys
import time
import types
from typing import Final

from nectar.keys.bytecode.operation import CONST, MERGE, UNBOUND, Operation
from nectar.keys.purity.facts import CONSTANT, OBJECT
from nectar.keys.purity.uses import Uses

_OF_TIME: Final = tuple(
    getattr(time, name)
    for name in ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time",
                 "process_time_ns", "thread_time", "thread_time_ns")
    if hasattr(time, name)
)  # fmt: skip
_PLAIN: Final = (int, float, str)
_MAKES: Final = (round, int, float, str, repr, abs, format, datetime.timedelta)  # of numbers and texts
_LEVELS: Final = frozenset({"debug", "info", "warning", "error", "critical", "exception", "log"})
_LOGGING: Final = tuple(getattr(logging, name) for name in sorted(_LEVELS))
_LOGGERS: Final = (logging.Logger, logging.RootLogger)
_TEXT: Final = {"FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE", "BUILD_STRING"}
_COMPUTES: Final = _TEXT | {"BINARY_OP", "UNARY_NEGATIVE", "BUILD_TUPLE"}
_REMAINDER: Final = (6, 19)  # BINARY_OP arguments of % and %=
_SEES_LOCALS: Final = (builtins.locals, builtins.vars, builtins.dir, builtins.eval, builtins.exec, sys._getframe)


def only_in_messages(uses: Uses, at: int) -> bool:
    """Whether a clock is only called, and what the clocks of this part show goes into messages alone."""
    flow = _Flow(uses)
    if not flow.is_clock(at):  # what else reads a clock gives more than a reading, which nobody follows
        return False
    return all(use.name == "CALL" and position == 0 for use, position in uses.of(at)) and flow.is_harmless()


class _Flow:
    """What becomes of the readings of all clocks in one part."""

    def __init__(self, uses: Uses) -> None:
        self.uses, self.facts, self.template = uses, uses.facts, uses.part.template
        self.readings: set[int] = set()

    def is_clock(self, value: int) -> bool:
        """Whether a value is a clock whose readings are followed."""
        return self._is(value, _OF_TIME)

    def is_harmless(self) -> bool:
        """Whether all readings end in messages."""
        known = self.uses.part.known.values()
        if any(value is each for value in known for each in _SEES_LOCALS):
            return False
        operations = [operation for block in self.template.blocks for operation in block.operations]
        pending = [each.result for each in operations if each.name == "CALL" and self._is(each.operands[0], _OF_TIME)]
        followed: list[tuple[Operation, int]] = []
        while pending:
            value = pending.pop()
            if value in self.readings:
                continue
            self.readings.add(value)
            uses, merged = self.uses.directly(value)
            followed += uses
            pending += [*merged, *(use.result for use, _ in uses if self._makes_another(use))]
        return all(self._ends_well(*use) for use in followed) and all(map(self._is_reading_alone, self.readings))

    def _makes_another(self, use: Operation) -> bool:
        """Whether the result of an operation shows what the clock has shown."""
        return use.name in _COMPUTES or (use.name == "CALL" and (self._converts(use) or self._formats(use)))

    def _ends_well(self, use: Operation, at: int) -> bool:
        """Whether an operation does nothing with a reading but compute with it, or put it into a message."""
        if use.name == "BINARY_OP":
            formats = use.arg in _REMAINDER and type(self._constant(use.operands[0])) is str
            return formats or all(map(self._is_plain, use.operands))
        if use.name == "CALL":
            return at > 0 and (self._tells(use) or self._makes_another(use))
        if use.name in _TEXT:  # a format handed to an object of somebody's would tell it
            return at == 0 or use.name == "BUILD_STRING"
        return use.name in _COMPUTES or use.name == "CHECK_BOUND"

    def _is_reading_alone(self, value: int) -> bool:
        """Whether a value is a reading on every way on which control comes here, or a plain constant."""
        made = self.facts.maker(value)
        if self.template.kinds[value] == MERGE:
            sources = self.facts.brought_to(value)
        elif made is not None and made.name == "LOAD_SLOT":
            sources = self.facts.stored_in_slot(made.arg)
        else:
            return True
        return all(source in self.readings or self.template.kinds[source] in (CONST, UNBOUND) for source in sources)

    # who is called

    def _tells(self, call: Operation) -> bool:
        """Whether a call writes a message, to a log or to a standard stream."""
        callee = call.operands[0]
        if self._is(callee, _LOGGING):
            return True
        if self._is(callee, (print,)):
            return not call.arg or "file" not in call.arg or self._prints_to_a_standard_stream(call)  # type: ignore[operator]
        made = self.facts.maker(callee)
        return (
            made is not None and made.name == "LOAD_ATTR" and made.arg in _LEVELS and self._is_logger(made.operands[0])
        )

    def _prints_to_a_standard_stream(self, call: Operation) -> bool:
        names: tuple[str, ...] = call.arg  # type: ignore[assignment]
        given = call.operands[len(call.operands) - len(names) + names.index("file")]
        return self._is(given, (sys.stdout, sys.stderr))

    def _is_logger(self, value: int) -> bool:
        fact, made = self.facts.of(value), self.facts.maker(value)
        if fact.kind == OBJECT:
            return type(fact.root) in _LOGGERS
        return made is not None and made.name == "CALL" and self._is(made.operands[0], (logging.getLogger,))

    def _converts(self, call: Operation) -> bool:
        """Whether a call makes a number or a text of readings and constants."""
        return self._is(call.operands[0], _MAKES) and all(map(self._is_plain, call.operands[1:]))

    def _formats(self, call: Operation) -> bool:
        """Whether a call is that of format() of a constant text."""
        made = self.facts.maker(call.operands[0])
        if made is None or made.name != "LOAD_ATTR" or made.arg != "format":
            return False
        return type(self._constant(made.operands[0])) is str

    def _is(self, value: int, wanted: tuple[object, ...]) -> bool:
        fact = self.facts.of(value)
        return fact.kind == OBJECT and any(fact.root is each for each in wanted)

    def _is_plain(self, value: int) -> bool:
        return value in self.readings or type(self._constant(value)) in _PLAIN

    def _constant(self, value: int) -> object:
        fact = self.facts.of(value)
        return fact.root if fact.kind == CONSTANT else types
