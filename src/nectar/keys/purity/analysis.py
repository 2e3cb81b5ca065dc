"""What makes a function uncacheable, and what it shows of other functions.

In: a function. Out: a report: refusals, each with place and reason; features the code observes; the objects whose names
or annotations it may look at; the parameters it changes. The tables beside this module say what is known of libraries;
this module only finds out what the code does with what. Helpers are examined on the way, because they may change what
they are given; their reports are kept for when the walk comes to them.
"""

from __future__ import annotations

import operator
import types
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nectar.keys.ambient import SETTINGS_OF_METHODS, TextCodec
from nectar.keys.atoms import ATOMS
from nectar.keys.bytecode.operation import CAUGHT, FREE, Operation
from nectar.keys.exposed import shows_anything
from nectar.keys.folding import MISSING
from nectar.keys.origin import origin_of_function
from nectar.keys.purity import asked, mutators, observers, order, tables
from nectar.keys.purity.facts import (
    ATTRIBUTE,
    CONSTANT,
    DERIVED,
    FRESH,
    OBJECT,
    PARAMETER,
    PARTIAL,
    Fact,
    Facts,
    class_of,
    outside,
    static_attribute,
)
from nectar.keys.purity.uses import Uses
from nectar.keys.resolve import REBINDS, Resolution, resolve_function
from nectar.model.origin import APPLICATION
from nectar.model.refusal import Refusal

_CHANGES: Final = {"STORE_SUBSCR": 1, "STORE_ATTR": 1, "DELETE_SUBSCR": 0, "DELETE_ATTR": 0}
_FORMATS: Final = {"FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE"}
_TEXTS: Final = (str, repr, format, ascii)
_IN_PLACE: Final = 13
_REMAINDERS: Final = (6, 19)  # BINARY_OP arguments of % and %=
_CALLED_OR_KEPT: Final = {("CALL", 0), ("STORE_CELL", 1), ("STORE_SLOT", 0), ("CALL_EX", 0)}
_LOADS: Final = {"LOAD_GLOBAL", "LOAD_FREE", "LOAD_ATTR", "IMPORT_FROM", "BINARY_SUBSCR", "CALL"}
# Names that change their receiver, whatever common container it is.
_CHANGING_METHODS: Final = frozenset().union(*(mutators.MUTATORS[kind] for kind in (list, dict, set))) - {"__init__"}
# Operations that use a value without anybody looking at its name; calls are looked at more closely.
_SILENT: Final = {
    "LOAD_ATTR", "COMPARE_OP", "IS_OP", "CONTAINS_OP", "CHECK_EXC_MATCH", "BEFORE_WITH", "GET_ITER", "BINARY_SUBSCR",
    "FOR_ITER", "UNPACK_SEQUENCE", "STORE_SLOT", "STORE_CELL", "UNPACK_EX", "MATCH_CLASS", "RAISE", "MAKE_FUNCTION",
    "LOAD_SUPER_ATTR", "STORE_NAME", "CHECK_BOUND", "LOAD_GLOBAL", "LOAD_FREE", "CALL", "CALL_EX", *_CHANGES,
}  # fmt: skip
_ABOUT_TYPES: Final = {"IS_OP", "COMPARE_OP", "CONTAINS_OP", "LOAD_ATTR"}  # what is done to a type without naming it
_OF_HANDLERS: Final = {
    "CHECK_EXC_MATCH",
    "CHECK_EG_MATCH",
    "PUSH_EXC_INFO",
    "POP_EXCEPT",
    "RERAISE",
    "WITH_EXCEPT_START",
}
_STOP_ITERATION: Final = ("CALL_INTRINSIC_1", 3)  # what every generator does with a StopIteration that leaves it
_ANY_ATTRIBUTE: Final = frozenset({"names", "qualnames", "modules", "docs", "annotations"})
_DEPTH: Final = 30  # how far helpers are followed ahead of the walk


@dataclass(slots=True)
class Report:
    """What was found out about a function."""

    refusals: list[Refusal] = field(default_factory=list)
    features: set[str] = field(default_factory=set)
    settled: list[object] = field(default_factory=list)  # impure objects whose use here has been judged
    exposed: dict[int, object] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)  # parameters, by position
    settings: set[str] = field(default_factory=set)  # of the process, that the code asks for by name
    codecs: dict[TextCodec, None] = field(default_factory=dict)


class Examined(NamedTuple):
    """A function with the objects it works with, what it does with them, and the report about it."""

    function: types.FunctionType
    resolution: Resolution
    skeleton: bytes
    report: Report


Known = dict[tuple[int, bool], Examined]


def examine(
    function: types.FunctionType, observed: frozenset[str], known: Known, *, hashing: bool = False, depth: int = 0
) -> Examined:
    """The report about a function of the application; from `known` if it is there.

    hashing: the function is the __hash__ of a class, reached through it, so that it may use hash().
    """
    found = known.get((id(function), hashing))
    if found is None:
        resolution, skeleton = resolve_function(function, observed)
        found = known[id(function), hashing] = Examined(function, resolution, skeleton, Report())
        _Examination(found, known, hashing, depth).run()
    return found


def _place(function: types.FunctionType, code: types.CodeType, operation: Operation | None) -> str:
    file = code.co_filename.replace("\\", "/").rpartition("/")[2]
    line = code.co_firstlineno
    if operation is not None:
        for start, end, number in code.co_lines():
            if start <= operation.offset < end and number is not None:
                line = number
    return f"{function.__code__.co_qualname} ({file}:{line})"


class _Examination:
    def __init__(self, subject: Examined, known: Known, hashing: bool, depth: int) -> None:
        self.function = subject[0]
        self.resolution = subject.resolution
        self.report = subject.report
        self.known = known
        self.hashing = hashing
        self.depth = depth

    def run(self) -> None:
        """Fills the report."""
        facts: dict[int, Facts] = {}
        for part in self.resolution.parts:
            outer = facts.get(id(part.outer))
            facts[id(part)] = self.facts = Facts(part, outer)
            self.part = part
            self.template = part.template
            self.uses = Uses(self.function, self.facts)
            self._examine_part()
        self._changed_defaults()
        for template, operation, name in self.resolution.unimportable:
            reason = f"imports {name}, which cannot be imported now"
            self.report.refusals.append(
                Refusal("dynamic code", reason, _place(self.function, template.code, operation))
            )

    def _examine_part(self) -> None:
        self.operation: Operation | None = None
        self._mentions()
        for block in self.template.blocks:
            for operation in block.operations:
                self.operation = operation
                self._examine(operation)
            for edge in block.edges:
                for value in edge.values if edge.target < 0 else ():
                    self._expose(self.facts.of(value))

    def refuse(self, kind: str, reason: str) -> None:
        """Notes a reason not to cache, with the place where the examination stands."""
        place = _place(self.function, self.template.code, self.operation)
        self.report.refusals.append(Refusal(kind, reason, place))

    def _changed_defaults(self) -> None:
        """A default that the function changes is state that outlives the call."""
        code, values = self.function.__code__, self.function.__defaults__ or ()
        by_keyword = self.function.__kwdefaults__ or {}
        defaults = dict(zip(range(code.co_argcount - len(values), code.co_argcount), values, strict=True))
        for at, name in enumerate(code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]):
            if name in by_keyword:
                defaults[code.co_argcount + at] = by_keyword[name]
        for position in sorted(self.report.changed & defaults.keys()):
            if type(defaults[position]) not in ATOMS and type(defaults[position]) is not tuple:
                reason = f"changes the default of its parameter {code.co_varnames[position]}, which outlives the call"
                self.report.refusals.append(Refusal("mutation", reason, _place(self.function, code, None)))

    # by name

    def _mentions(self) -> None:
        """Names of attributes that show something of a function or class beside what it does."""
        template = self.template
        for name in sorted(template.attributes & observers.ATTRIBUTE_FEATURES.keys()):
            feature = observers.ATTRIBUTE_FEATURES[name]
            if feature != observers.REFUSE:
                self.report.features.add(feature)
            elif not (name == "__hash__" and self.hashing):
                self.refuse("introspection", f"reads {name}, which shows more than what code computes")
        for name in template.strings & observers.ATTRIBUTE_FEATURES.keys():
            feature = observers.ATTRIBUTE_FEATURES[name]
            if feature != observers.REFUSE:
                self.report.features.add(feature)
        self.report.features.update(REBINDS + name for name in template.stored_global)
        if template.attributes & {"format", "format_map", "__format__", "__str__", "__repr__"}:
            self.report.features.add("texts")

    # by operation

    def _examine(self, operation: Operation) -> None:
        name = operation.name
        if name in _LOADS and operation.result in self.part.known:
            self._loaded(operation)
        elif name == "CALL" or name == "CALL_EX":
            self._call(operation)
        elif name == "LOAD_ATTR":
            self._attribute(operation)
        elif name in _CHANGES:
            verb = "assigns to" if "STORE" in name else "deletes"
            self._change(self.facts.of(operation.operands[_CHANGES[name]]), verb)
        elif name == "BINARY_OP":
            if isinstance(operation.arg, int) and operation.arg >= _IN_PLACE:
                self._change_in_place(self.facts.of(operation.operands[0]))
            if operation.arg in _REMAINDERS and self._may_be_text(self.facts.of(operation.operands[0])):
                self.report.features.add("texts")
        elif name == "MAKE_FUNCTION":
            self._made_function(operation)
        elif name in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            self.refuse("mutation", f"assigns to the global {operation.arg}")
        elif name in ("STORE_CELL", "DELETE_CELL"):
            self._store_cell(operation)
        elif name in _FORMATS:
            self._show_as_text(self.facts.of(operation.operands[0]))
        if name not in _SILENT:
            for value in operation.operands:
                self._expose(self.facts.of(value))
        self._look_at_errors(operation)

    def _look_at_errors(self, operation: Operation) -> None:
        """Code that does something with an error may show its message, which names functions and their parameters."""
        if operation.name in _OF_HANDLERS or (operation.name, operation.arg) == _STOP_ITERATION:
            return
        if any(self._is_error(value) for value in operation.operands):
            self.report.features.add("errors")

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
            self.report.features.add("names")

    def _may_be_text(self, fact: Fact) -> bool:
        """Whether % may mean formatting."""
        return fact.kind != CONSTANT or isinstance(fact.root, (str, bytes))

    def _store_cell(self, operation: Operation) -> None:
        target = operation.operands[0]
        name = self.template.data[target]
        if self.template.kinds[target] == FREE and name in self.function.__code__.co_freevars:
            self.report.features.add(f"{REBINDS}{name}")
            self.refuse("mutation", f"assigns to the captured variable {name}")

    def _loaded(self, operation: Operation) -> None:
        """Something known was read: is it known to be impure?"""
        value = self.part.known[operation.result]
        self._text_makers_as_values(value, operation.result)
        if operation.name == "LOAD_ATTR" or operation.name == "IMPORT_FROM":
            owner = self.part.known.get(operation.operands[0])
            if isinstance(owner, types.ModuleType):
                self._judge(tables.attribute_verdict(owner, str(operation.arg)), value, operation.result)
                return
        self._judge(tables.verdict(value), value, operation.result)

    def _text_makers_as_values(self, value: object, at: int) -> None:
        """str() and the like handed to others show whatever those give to them."""
        if any(value is each for each in _TEXTS) and any(
            use.name != "CALL" or pos != 0 for use, pos in self.uses.of(at)
        ):
            self.report.features |= {"texts", "names", "qualnames"}

    def _judge(self, found: tables.Verdict | None, value: object, at: int) -> None:
        if found is None or self.uses.folded_away(at):
            return
        self.report.settled.append(value)
        if value is hash and (self.hashing or self.uses.only_hashes_by_code(at) or self.uses.only_tries(at)):
            return
        if value is id and self.uses.only_tells_apart(at):
            return
        if isinstance(value, type) and self.uses.only_asked_for(at):
            return
        if found.unless is None or not self.uses.only_called_well(at, found.unless):
            self.refuse(found.kind, f"uses {found.reason}")

    # calls

    def _call(self, operation: Operation) -> None:
        callee = self.facts.of(operation.operands[0])
        arguments = [self.facts.of(value) for value in operation.operands[1:]]
        if callee.kind == OBJECT:
            self._call_object(callee.root, arguments)
        elif callee.kind == ATTRIBUTE and callee.owner is not None:
            self._call_method(callee.owner, callee.name, arguments, operation)
        if operation.name == "CALL":
            self._changing_keywords(operation, callee, arguments)
            if callee.name in asked.METHODS or id(callee.root) in asked.CALLABLES:
                self._call_with_texts(operation, callee, arguments)
        if callee.kind != OBJECT or not observers.is_safe(callee.root):
            for argument in arguments:
                self._expose(argument)

    def _call_with_texts(self, operation: Operation, callee: Fact, arguments: list[Fact]) -> None:
        """What a call does may depend on the process by the texts it is given."""
        if order.shows_order(operation, callee, self.uses):
            reason = "shows the order of a set of texts, which depends on the hash seed of the process"
            self.refuse("identity", reason)
        codec = asked.codec_asked_for(operation, callee, arguments)
        if codec is not None:
            self.report.codecs[codec] = None
        if asked.asks_for_local_seconds(callee, arguments):
            self.report.settings.add("local time")

    def _call_object(self, called: object, arguments: list[Fact]) -> None:
        if id(called) in tables.takes_words_for_now and asked.asks_for_now(arguments):
            self.refuse("clock", f"asks {_name(called)} for now, which reads the clock")
        features = observers.observed_by(called) or frozenset()
        if not arguments and "locals" in features:
            self.report.features.add("locals")
        if called is getattr and len(arguments) > 1:
            self._get_attribute(arguments[1])
            if self.operation is not None and self.operation.name == "CALL" and type(arguments[1].root) is str:
                self._attribute_of(arguments[0], arguments[1].root, self.operation)
        elif called is operator.attrgetter or called is operator.methodcaller:
            for argument in arguments or [Fact(FRESH)]:
                self._get_attribute(argument)
            if called is operator.methodcaller and arguments and self.operation is not None:
                self._call_unknown(Fact(FRESH), str(arguments[0].root), self.operation)
        elif called is vars or called is dir:
            self.report.features |= _ANY_ATTRIBUTE | {"order"}
        elif called is type and len(arguments) == 1 and self.operation is not None:
            uses = self.uses.of(self.operation.result)
            if any(use.name not in _ABOUT_TYPES and (use.name, at) != ("CALL", 0) for use, at in uses):
                self.report.features.add("types")
        for position in mutators.changed_arguments(called):
            if position == mutators.RECEIVER:
                self._change(Fact(OBJECT, getattr(called, "__self__", None)), "changes")
            elif 0 <= position < len(arguments):
                self._change(arguments[position], "changes")
        if type(called) is types.FunctionType:
            self._give(called, arguments)
        elif type(called) is types.MethodType:
            self._give(called.__func__, [Fact(OBJECT, called.__self__), *arguments])
        elif callable(called) and not isinstance(called, type):
            self._call_method(Fact(OBJECT, called), "__call__", arguments, None)
        if any(called is each for each in _TEXTS):
            for argument in arguments[:1]:
                self._show_as_text(argument)

    def _get_attribute(self, name: Fact) -> None:
        """getattr(): a name that is known now is like one that is written; any other may be any."""
        if name.kind in (CONSTANT, OBJECT) and isinstance(name.root, str):
            if name.root in SETTINGS_OF_METHODS:
                self.report.settings.add(SETTINGS_OF_METHODS[name.root])
            feature = observers.ATTRIBUTE_FEATURES.get(name.root)
            if feature == observers.REFUSE:
                self.refuse("introspection", f"reads {name.root}, which shows more than what code computes")
            elif feature is not None:
                self.report.features.add(feature)
        else:
            self.report.features |= _ANY_ATTRIBUTE

    def _call_method(self, owner: Fact, name: str, arguments: list[Fact], operation: Operation | None) -> None:
        if owner.kind == OBJECT and not isinstance(owner.root, types.ModuleType):
            found = static_attribute(owner.root, name)
            if not isinstance(owner.root, type) and name in mutators.mutators_of(type(owner.root)):
                self._change(owner, f"calls {name}(), which changes")
            elif type(found) is types.FunctionType:
                self._give(found, arguments if isinstance(owner.root, type) else [owner, *arguments])
            elif isinstance(owner.root, type) and not isinstance(found, (classmethod, staticmethod)):
                for position in mutators.changed_arguments(found):
                    if 0 <= position < len(arguments):
                        self._change(arguments[position], f"calls {name}(), which changes")
        elif name in _CHANGING_METHODS and (owner.kind == ATTRIBUTE or outside(owner).kind in (PARTIAL, PARAMETER)):
            self._change(owner, f"calls {name}(), which changes")
        if name in mutators.GUESSED and owner.kind != OBJECT and class_of(owner) is None and operation is not None:
            self._call_unknown(owner, name, operation)

    def _call_unknown(self, owner: Fact, name: str, operation: Operation) -> None:
        """A method of an object nobody knows is called: what it does is guessed from its name."""
        if name in mutators.RECEIVER_READS_FILE or (name in mutators.RECEIVER_IS_PATH and not self.uses.is_self(owner)):
            self.refuse("file", f"calls {name}() of an object that is not known, which reads or writes files")
        elif operation.name == "CALL" and not self.uses.is_self(owner):
            if name in mutators.RECEIVER_READS_CLOCK:
                self.refuse("clock", f"calls {name}() of an object that is not known, which reads the clock")
            elif mutators.draws_without_seed(name, operation):
                self.refuse("random", f"calls {name}() of an object that is not known, without a seed")

    def _changing_keywords(self, operation: Operation, callee: Fact, arguments: list[Fact]) -> None:
        keywords: tuple[str, ...] = operation.arg  # type: ignore[assignment]
        if not keywords:
            return
        by_name = dict(zip(reversed(keywords), reversed(arguments), strict=False))
        for keyword in mutators.INPLACE_KEYWORDS & by_name.keys():
            if by_name[keyword] != Fact(CONSTANT, False) and callee.kind == ATTRIBUTE and callee.owner is not None:
                self._change(callee.owner, f"calls {callee.name}({keyword}=...), which changes")
        for keyword in mutators.OUT_KEYWORDS & by_name.keys():
            self._change(by_name[keyword], f"writes ({keyword}=...) into")

    def _give(self, called: object, arguments: list[Fact]) -> None:
        """A function of the application is called: does it change what it is given?"""
        if not isinstance(called, types.FunctionType) or self.depth > _DEPTH or not any(map(_can_change, arguments)):
            return
        if origin_of_function(called) is not APPLICATION:
            return
        try:
            helper = examine(called, self.resolution.observed, self.known, depth=self.depth + 1)
        except Exception:  # the walk comes to the helper and says what is wrong with it
            return
        for position in sorted(helper.report.changed):
            if 0 <= position < len(arguments):
                self._change(arguments[position], f"hands to {called.__code__.co_qualname}(), which changes,")

    # changes

    def _change(self, target: Fact, verb: str) -> None:
        root = outside(target)
        if root.kind == PARAMETER:
            self.report.changed.add(root.number)
        elif root.kind in (OBJECT, PARTIAL) and type(root.root) not in ATOMS and not mutators.is_transient(root.root):
            self.refuse("mutation", f"{verb} {_name(root.root)} that outlives the call")

    def _change_in_place(self, target: Fact) -> None:
        root = outside(target)
        if root.kind == PARAMETER:
            self.report.changed.add(root.number)
        elif root.kind == PARTIAL or (root.kind == OBJECT and hasattr(type(root.root), "__iadd__")):
            self.refuse("mutation", f"changes {_name(root.root)} in place, which outlives the call")

    # looks

    def _attribute(self, operation: Operation) -> None:
        """An attribute of something that is no module."""
        self._attribute_of(self.facts.of(operation.operands[0]), str(operation.arg), operation)

    def _attribute_of(self, owner: Fact, name: str, operation: Operation) -> None:
        if name in SETTINGS_OF_METHODS and (owner.kind == OBJECT or self.uses.is_called(operation.result)):
            self.report.settings.add(SETTINGS_OF_METHODS[name])
        if owner.kind != OBJECT:
            if self.uses.is_self(owner):
                self._own_attribute(name, operation)
            elif (made := class_of(owner)) is not None:
                self._judge_attribute(static_attribute(made, name), operation)
            return
        if isinstance(owner.root, types.ModuleType):
            return
        if not isinstance(owner.root, type) and name in mutators.mutators_of(type(owner.root)):
            self._change(owner, f"uses {name}(), which changes")
        self._judge_attribute(static_attribute(owner.root, name), operation)

    def _own_attribute(self, name: str, operation: Operation) -> None:
        """A method uses an attribute of its own object: inherited from a library, or itself."""
        if name == self.function.__code__.co_name:
            self.report.settings.add("recursion")
        cls = self.uses.own_class()
        if cls is not None:
            self._judge_attribute(static_attribute(cls, name), operation)

    def _judge_attribute(self, found: object, operation: Operation) -> None:
        verdict = None if found is MISSING else tables.verdict(found)
        if verdict is None or (
            verdict.unless is not None and self.uses.only_called_well(operation.result, verdict.unless)
        ):
            return
        self.refuse(verdict.kind, f"uses {verdict.reason}")

    def _show_as_text(self, shown: Fact) -> None:
        if shown.kind != CONSTANT:
            self.report.features.add("texts")
        if shown.kind == OBJECT and not isinstance(shown.root, type):
            found = static_attribute(type(shown.root), "__repr__")
            text = static_attribute(type(shown.root), "__str__")
            if found is object.__repr__ and text is object.__str__:
                self.refuse("identity", f"shows {_name(shown.root)} as text, which contains its address in memory")

    def _expose(self, fact: Fact) -> None:
        if fact.kind == ATTRIBUTE and fact.owner is not None and fact.owner.kind == OBJECT:
            own = getattr(fact.owner.root, "__dict__", None)  # an attribute that lies there is shown, not its owner
            if isinstance(own, dict) and fact.name in own:
                fact = Fact(OBJECT, own[fact.name])
        root = outside(fact)
        shown = root.kind in (OBJECT, PARTIAL, DERIVED) and id(root.root) not in self.report.exposed
        if shown and shows_anything(root.root):
            self.report.exposed[id(root.root)] = root.root


def _can_change(fact: Fact) -> bool:
    root = outside(fact)
    return root.kind == PARAMETER or (root.kind in (OBJECT, PARTIAL) and type(root.root) not in ATOMS)


def _name(value: object) -> str:
    if isinstance(value, (types.FunctionType, type)):
        return f"{value.__qualname__}"
    if isinstance(value, types.ModuleType):
        return f"the module {value.__name__}"
    return f"a captured {type(value).__name__}"
