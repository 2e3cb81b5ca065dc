"""What makes a function uncacheable, and what it shows of other functions.

In: a function. Out: a report: refusals, each with place and reason; features the code observes; the objects whose names
or annotations it may look at; the parameters it changes. The tables beside this module say what is known of libraries;
this module only finds out what the code does with what. Helpers are examined on the way, because they may change what
they are given; their reports are kept for when the walk comes to them.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from nectar.keys import declared
from nectar.keys.bytecode.operation import CAUGHT, CONST, FREE, PARAM, Operation
from nectar.keys.features import COPIED, IDENTITIES, MOMENTS, REBINDS, Features
from nectar.keys.origin import origin_of_function
from nectar.keys.purity import observers, tables, watched
from nectar.keys.purity.calls import TEXTS, Calls
from nectar.keys.purity.clocks import only_in_messages
from nectar.keys.purity.facts import CONSTANT, OBJECT, Fact, Facts
from nectar.keys.purity.implicit import RUNS, Handed
from nectar.keys.purity.reading import excuse_for_helper, excuse_for_reader, reads_memory
from nectar.keys.purity.report import Examined, Known, Report, place_of
from nectar.keys.purity.uses import Uses
from nectar.keys.resolve import resolve_function
from nectar.keys.wrappers import function_called
from nectar.model.origin import APPLICATION
from nectar.model.refusal import Refusal

_CHANGES: Final = {"STORE_SUBSCR": 1, "STORE_ATTR": 1, "DELETE_SUBSCR": 0, "DELETE_ATTR": 0}
_FORMATS: Final = {"FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE"}
_IN_PLACE: Final = 13
_REMAINDERS: Final = (6, 19)  # BINARY_OP arguments of % and %=
_NAMELESS: Final = (PARAM, CONST)
_CALLED_OR_KEPT: Final = {("CALL", 0), ("STORE_CELL", 1), ("STORE_SLOT", 0), ("CALL_EX", 0)}
_LOADS: Final = {"LOAD_GLOBAL", "LOAD_FREE", "LOAD_ATTR", "IMPORT_FROM", "BINARY_SUBSCR", "CALL"}
# Operations that use a value without anybody looking at its name; calls are looked at more closely.
_SILENT: Final = {
    "LOAD_ATTR", "COMPARE_OP", "IS_OP", "CONTAINS_OP", "CHECK_EXC_MATCH", "BEFORE_WITH", "GET_ITER", "BINARY_SUBSCR",
    "FOR_ITER", "UNPACK_SEQUENCE", "STORE_SLOT", "STORE_CELL", "UNPACK_EX", "MATCH_CLASS", "RAISE", "MAKE_FUNCTION",
    "LOAD_SUPER_ATTR", "STORE_NAME", "CHECK_BOUND", "LOAD_GLOBAL", "LOAD_FREE", "CALL", "CALL_EX", *_CHANGES,
}  # fmt: skip
_OF_HANDLERS: Final = {
    "CHECK_EXC_MATCH", "CHECK_EG_MATCH", "PUSH_EXC_INFO", "POP_EXCEPT", "RERAISE", "WITH_EXCEPT_START",
}  # fmt: skip
_DATES_OF_NUMPY: Final = ("datetime64", "M8[", "<M8", ">M8")
_STOP_ITERATION: Final = ("CALL_INTRINSIC_1", 3)  # what every generator does with a StopIteration that leaves it
_TEXT_METHODS: Final = frozenset({"format", "format_map", "__format__", "__str__", "__repr__"})


@dataclass(slots=True)
class _Loaded:
    """A helper that a function has in its hands, and where."""

    helper: types.FunctionType
    value: object
    at: int
    uses: Uses


def examine(function: types.FunctionType, observed: Features, known: Known, *, hashing: bool = False) -> Examined:
    """The report about a function of the application; from `known` if it is there.

    hashing: the function is the __hash__ of a class, reached through it, so that it may use hash(). Helpers are
    examined one after the other and not inside one another, so that long chains of them need no deep stack.
    """
    key = (id(function), hashing)
    pending = [] if key in known else [_begin(function, observed, known, hashing=hashing)]
    while pending:
        helper = pending[-1].next_helper()
        if helper is None:
            pending.pop().finish()
            continue
        try:
            pending.append(_begin(helper, observed, known))
        except Exception:  # the walk comes to the helper and says what is wrong with it
            pending[-1].handed.pop()
    return known[key]


def _begin(function: types.FunctionType, observed: Features, known: Known, *, hashing: bool = False) -> _Examination:
    """An examination that has found out everything but what helpers do."""
    resolution, skeleton = resolve_function(function, observed)
    found = Examined(function, resolution, skeleton, Report())
    examination = _Examination(found, known, hashing)
    examination.run()
    known[id(function), hashing] = found
    return examination


class _Examination(Calls):
    def __init__(self, subject: Examined, known: Known, hashing: bool) -> None:
        super().__init__(subject)
        self.known = known
        self.hashing = hashing
        self.handed: list[Handed | _Loaded] = []  # the next one last
        self.given = set()

    def run(self) -> None:
        """Fills the report with what the function does by itself."""
        facts: dict[int, Facts] = {}
        for part in self.resolution.parts:
            outer = facts.get(id(part.outer))
            facts[id(part)] = self.facts = Facts(part, outer)
            self.part = part
            self.template = part.template
            self.uses = Uses(self.function, self.facts)
            self._examine_part()
        self.handed.reverse()

    def next_helper(self) -> types.FunctionType | None:
        """The next helper of which nothing is known; what those before it change has been noted."""
        while self.handed:
            known = self.known.get((id(self.handed[-1].helper), False))
            if known is None:
                return self.handed[-1].helper
            handed = self.handed.pop()
            if isinstance(handed, _Loaded):
                self._readings_of(handed, known.report)
            elif known.report.changed or known.report.ran:
                self.take_back(handed, known.report)
        return None

    def finish(self) -> None:
        """Fills the report with what follows from what helpers do."""
        if self.report.changed:
            self.note_changed_defaults()
        for template, operation, name in self.resolution.unimportable:
            reason = f"imports {name}, which cannot be imported now"
            self.report.refusals.append(
                Refusal("dynamic code", reason, place_of(self.function, template.code, operation))
            )

    def _examine_part(self) -> None:
        self.operation: Operation | None = None
        self._mentions()
        known = self.part.known
        catches = CAUGHT in self.template.kinds
        for block in self.template.blocks:
            for operation in block.operations:
                self.operation = operation
                name = operation.name
                if name in _LOADS and operation.result in known:
                    self._loaded(operation)
                else:
                    if name in _EXAMINERS:
                        _EXAMINERS[name](self, operation)
                    if name in RUNS:
                        self.run_methods(operation)
                if name not in _SILENT:
                    for value in operation.operands:
                        self.expose_value(value)
                if catches:
                    self._look_at_errors(operation)
            if block.test == "truth":
                self.test(block.value)
            for edge in block.edges:
                for value in edge.values if edge.target < 0 else ():
                    self.expose_value(value)

    # by name

    def _mentions(self) -> None:
        """Names of attributes that show something of a function or class beside what it does."""
        template = self.template
        telling = observers.ATTRIBUTE_FEATURES
        if not telling.keys().isdisjoint(template.attributes):
            for name in sorted(template.attributes & telling.keys()):
                feature = telling[name]
                if feature != observers.REFUSE:
                    self.report.features |= {feature}
                elif not (name == "__hash__" and self.hashing):
                    self.refuse("introspection", f"reads {name}, which shows more than what code computes")
        if not telling.keys().isdisjoint(template.strings):
            features = {telling[name] for name in template.strings & telling.keys()}
            self.report.features |= features - {observers.REFUSE}
        if template.code.co_name in template.code.co_freevars:  # a function made within another calls itself
            self.report.settings |= {"recursion"}
        if _name_dates(template.strings):
            self.report.features |= {MOMENTS}
        if template.stored_global:
            self.report.features |= {REBINDS + name for name in template.stored_global}
        if not template.attributes.isdisjoint(_TEXT_METHODS):
            self.report.features |= {"texts"}

    # by operation

    def _examine_change(self, operation: Operation) -> None:
        """Assigning to or deleting a part of something."""
        verb = "assigns to" if "STORE" in operation.name else "deletes"
        self.change(self.facts.of(operation.operands[_CHANGES[operation.name]]), verb)

    def _examine_arithmetic(self, operation: Operation) -> None:
        """+= and the like may change a value in place, % may be formatting."""
        if isinstance(operation.arg, int) and operation.arg >= _IN_PLACE:
            self._change_inplace_of(self.facts.of(operation.operands[0]))
        if operation.arg in _REMAINDERS and self._may_be_text(self.facts.of(operation.operands[0])):
            self.report.features |= {"texts"}

    def _compare_identity(self, operation: Operation) -> None:
        """Equal texts and numbers may be one object or several, as it happens."""
        found = [self.facts.of(operand) for operand in operation.operands]
        if any(fact.kind == CONSTANT and _may_be_copied(fact.root) for fact in found):
            self.refuse("introspection", "asks with `is` for a text, number or tuple, of which there may be copies")
        elif not any(fact.kind in (OBJECT, CONSTANT) and not _may_be_copied(fact.root) for fact in found):
            self.report.features |= {IDENTITIES}

    def _store_global(self, operation: Operation) -> None:
        self.refuse("mutation", f"assigns to the global {operation.arg}")

    def _format(self, operation: Operation) -> None:
        self.show_as_text(self.facts.of(operation.operands[0]))

    def _look_at_errors(self, operation: Operation) -> None:
        """Code that does something with an error may show its message, which names functions and their parameters."""
        if operation.name in _OF_HANDLERS or (operation.name, operation.arg) == _STOP_ITERATION:
            return
        if any(self._is_error(value) for value in operation.operands):
            self.report.features |= {"errors"}

    def _is_error(self, value: int) -> bool:
        """Whether a value is what a handler has caught; other values lie below it on the stack."""
        return self.template.kinds[value] == CAUGHT and self.template.data[value][1] == -1  # type: ignore[index]

    def _made_function(self, operation: Operation) -> None:
        """A function made here shows its name to whoever gets it; nobody sees it if it is only called."""
        code = self.template.code.co_consts[self.template.data[operation.operands[0]]]  # type: ignore[call-overload]
        if code.co_name.startswith("<") or "names" in self.report.features:
            return
        uses = self.uses.of(operation.result)
        if any((use.name, at) not in _CALLED_OR_KEPT for use, at in uses):
            self.report.features |= {"names"}

    def _may_be_text(self, fact: Fact) -> bool:
        """Whether % may mean formatting."""
        return fact.kind != CONSTANT or isinstance(fact.root, (str, bytes))

    def _store_cell(self, operation: Operation) -> None:
        target = operation.operands[0]
        name = self.template.data[target]
        if self.template.kinds[target] == FREE and name in self.function.__code__.co_freevars:
            self.report.features |= {f"{REBINDS}{name}"}
            self.refuse("mutation", f"assigns to the captured variable {name}")

    def _loaded(self, operation: Operation) -> None:
        """Something known was read: is it known to be impure?"""
        value = self.part.known[operation.result]
        if id(value) in tables.takes_words_for_now and not self._is_told_the_day(value, operation.result):
            self.report.features |= {MOMENTS}
        if id(value) in TEXTS:
            self._text_maker_as_value(operation.result)
        if value is RecursionError:
            self.report.settings |= {"recursion"}
        helper = function_called(value)
        if helper is not None and origin_of_function(helper) is APPLICATION and not declared.is_pure(helper):
            self.handed.append(_Loaded(helper, value, operation.result, self.uses))
        if operation.name == "LOAD_ATTR" or operation.name == "IMPORT_FROM":
            owner = self.part.known.get(operation.operands[0])
            if isinstance(owner, types.ModuleType):
                self._judge(tables.attribute_verdict(owner, str(operation.arg)), value, operation.result)
                return
        found = tables.verdict(value)
        if found is not None:
            self._judge(found, value, operation.result)

    def _is_told_the_day(self, value: object, at: int) -> bool:
        """Whether what completes dates is always told by what date it shall do so."""
        told_by = tables.told_the_day_by.get(id(value))
        return told_by is not None and self.uses.only_called_well(at, told_by)

    def _text_maker_as_value(self, at: int) -> None:
        """str() and the like handed to others show whatever those give to them."""
        if any(use.name != "CALL" or position != 0 for use, position in self.uses.of(at)):
            self.report.features |= {"texts", "names", "qualnames"}

    def _judge(self, found: tables.Verdict | None, value: object, at: int) -> None:
        if found is None or self.uses.folded_away(at):
            return
        self.report.settled.append(value)
        if value is hash and (self.hashing or self.uses.only_hashes_by_code(at) or self.uses.only_tries(at)):
            return
        if (value is id and self.uses.only_tells_apart(at)) or (
            isinstance(value, type) and self.uses.only_asked_for(at)
        ):
            return
        if found.kind == "clock" and only_in_messages(self.uses, at):
            return
        if found.reader is not None and reads_memory(self.uses, at, found.reader.mode_at):
            return
        if not self.is_fine(found, at) and not self._is_of_own(found, at):
            excuse = None
            if found.reader is not None:
                excuse = excuse_for_reader(self.function, self.uses, at, found.reader.mode_at)
            self.refuse(found.kind, f"uses {found.reason}", excuse, watched.seen_as(found.reason))

    def _is_of_own(self, found: tables.Verdict, at: int) -> bool:
        """Whether each call is about something temporary, or in memory, of the function itself."""
        uses = self.uses.of(at)
        called = [use for use, position in uses if use.name == "CALL" and position == 0]
        return len(called) == len(uses) > 0 and all(
            watched.is_of_own(self.facts, call, found.reason) for call in called
        )

    def _readings_of(self, loaded: _Loaded, report: Report) -> None:
        """A helper that reads what it is handed: what is it handed here?"""
        excused = [refusal for refusal in report.refusals if refusal.excuse is not None]
        if excused:
            self.report.settled.append(loaded.value)
        for refusal in excused:
            excuse = excuse_for_helper(self.function, loaded.uses, loaded.at, loaded.helper, refusal.excuse)
            self.report.refusals.append(replace(refusal, excuse=excuse))


def _may_be_copied(value: object) -> bool:
    """Whether there may be several objects of a value; small integers are one for the whole process."""
    return type(value) in COPIED and not (type(value) is int and -5 <= value <= 256)


@lru_cache(maxsize=4096)
def _name_dates(strings: frozenset[str]) -> bool:
    """Whether one of the texts names a type of dates of numpy."""
    return any(each.startswith(_DATES_OF_NUMPY) for each in strings)


# What is looked at in operations, where nothing is known of their result.
_EXAMINERS: Final[dict[str, Callable[[_Examination, Operation], None]]] = {
    "CALL": _Examination.call,
    "CALL_EX": _Examination.call,
    "LOAD_ATTR": _Examination.attribute,
    **dict.fromkeys(_CHANGES, _Examination._examine_change),
    "BINARY_OP": _Examination._examine_arithmetic,
    "IS_OP": _Examination._compare_identity,
    "MAKE_FUNCTION": _Examination._made_function,
    **dict.fromkeys(("STORE_GLOBAL", "DELETE_GLOBAL"), _Examination._store_global),
    **dict.fromkeys(("STORE_CELL", "DELETE_CELL"), _Examination._store_cell),
    **dict.fromkeys(_FORMATS, _Examination._format),
}
