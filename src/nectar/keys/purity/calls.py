"""What calls and attributes do: what is changed, read or looked at by what is called, and by what it is given.

In: calls and attributes in a function under examination. Out: notes in its report.
"""

from __future__ import annotations

import functools
import operator
import types
from typing import Any, Final

from nectar.keys.ambient import SETTINGS_OF_METHODS
from nectar.keys.bytecode.operation import Operation
from nectar.keys.folding import MISSING
from nectar.keys.inspection import is_a
from nectar.keys.origin import origin_of_function
from nectar.keys.purity import asked, mutators, named, observers, order, tables, watched
from nectar.keys.purity.facts import (
    ATTRIBUTE,
    CONSTANT,
    FRESH,
    OBJECT,
    PARAMETER,
    PARTIAL,
    Fact,
    class_of,
    inside,
    outside,
    static_attribute,
)
from nectar.keys.purity.findings import name_of
from nectar.keys.purity.implicit import Implicit
from nectar.keys.purity.reading import excuse_for
from nectar.model.origin import APPLICATION
from nectar.model.refusal import Excuse

TEXTS: Final = frozenset(map(id, (str, repr, format, ascii)))
# Names that change their receiver, whatever common container it is.
_CHANGING_METHODS: Final = frozenset().union(*(mutators.MUTATORS[kind] for kind in (list, dict, set))) - {"__init__"}
_ABOUT_TYPES: Final = {"IS_OP", "COMPARE_OP", "CONTAINS_OP", "LOAD_ATTR"}  # what is done to a type without naming it
_MAKERS_OF_CALLABLES: Final = (functools.partial, operator.methodcaller, operator.attrgetter, operator.itemgetter)
_ANY_ATTRIBUTE: Final = frozenset({"names", "qualnames", "modules", "docs", "annotations", "any attribute"})


class Calls(Implicit):
    """Notes what calls and attributes do."""

    def call(self, operation: Operation) -> None:
        """Something is called."""
        callee = self.facts.of(operation.operands[0])
        arguments = [self.facts.of(value) for value in operation.operands[1:]]
        if callee.made in _MAKERS_OF_CALLABLES:
            self._call_made(operation.operands[0], arguments)
        else:
            self._call_fact(callee, arguments, operation)
        if arguments and (callee.kind != OBJECT or not _is_of_application(callee.root)):
            held = [fact for value in operation.operands[1:] for fact in self.facts.gathered(value)]
            self.hand_to_library(callee.root, held)
            for value, argument in zip(operation.operands[1:], arguments, strict=True):
                if argument.made in _MAKERS_OF_CALLABLES:
                    for fact in held:
                        self._call_made(value, [inside(fact)])
        self._names_in_texts(operation, callee, arguments)
        if operation.name == "CALL":
            self._changing_keywords(operation, callee, arguments)
            if callee.kind == OBJECT and type(callee.root) is types.FunctionType and not self.uses.of(operation.result):
                self._refuse_if_set(callee.root)
            if callee.name in asked.METHODS or id(callee.root) in asked.CALLABLES:
                self._call_with_texts(operation, callee, arguments)
        if callee.kind != OBJECT or not observers.is_safe(callee.root):
            for argument in arguments:
                self.expose(argument)

    def _refuse_if_set(self, function: types.FunctionType) -> None:
        """What a library function gives is not used: if it changes the library, that is what it is called for."""
        from nectar.keys.setters import changes_library  # which examines functions itself

        if _is_of_application(self.function) and not _is_of_application(function) and changes_library(function):
            self.refuse("mutation", f"calls {function.__qualname__}, which changes what {function.__module__} keeps")

    def _call_fact(self, callee: Fact, arguments: list[Fact], operation: Operation | None) -> None:
        if callee.kind == OBJECT:
            self._call_object(callee.root, arguments)
        elif callee.kind == ATTRIBUTE and callee.owner is not None:
            self._call_method(callee.owner, callee.name, arguments, operation)

    def _call_made(self, callable_made: int, arguments: list[Fact]) -> None:
        """What a partial, a methodcaller or a getter that was made here is called with."""
        made = self.facts.maker(callable_made)
        if made is None or made.name != "CALL" or len(made.operands) < 2:
            return
        maker, first, *given = map(self.facts.of, made.operands)
        if maker.root is functools.partial:
            self._call_fact(first, [*given, *arguments], None)
        elif arguments and first.root is not None:
            self._call_caller(maker.root, first.root, arguments[0], [*given, *arguments[1:]])

    def _call_caller(self, kind: object, asked_for: object, receiver: Fact, arguments: list[Fact]) -> None:
        """A methodcaller, attrgetter or itemgetter asks a value for something."""
        if kind is not operator.itemgetter:
            self._judge_asked(self.resolved(receiver), str(asked_for).partition(".")[0])
        if kind is operator.methodcaller:
            self._call_method(receiver, str(asked_for), arguments, None)
        elif kind is operator.attrgetter:
            self.run_attribute(receiver, str(asked_for).partition(".")[0], called=True)
        else:
            self.run_of(receiver, ("__getitem__", "__missing__"))

    def _judge_asked(self, owner: Fact, name: str) -> None:
        """What is asked for by a name that stands in an object, and not in the code."""
        held = owner.root if owner.kind == OBJECT else class_of(owner)
        found = MISSING if held is None else static_attribute(held, name)
        verdict = None if found is MISSING else tables.verdict(found)
        if verdict is not None:
            self.refuse(verdict.kind, f"uses {verdict.reason}", None, watched.seen_as(verdict.reason))
        elif held is None and name in mutators.RECEIVER_READS_CLOCK:
            self.refuse("clock", f"calls {name}() of an object that is not known, which reads the clock")

    def _call_with_texts(self, operation: Operation, callee: Fact, arguments: list[Fact]) -> None:
        """What a call does may depend on the process by the texts it is given."""
        if order.shows_order(operation, callee, self.uses):
            reason = "shows the order of a set of texts, which depends on the hash seed of the process"
            self.refuse("identity", reason)
        codec = asked.codec_asked_for(operation, callee, arguments)
        if codec is not None:
            self.report.codecs[codec] = None
        if asked.asks_for_any_codec(operation, callee, arguments):
            self.report.settings |= {"any codec"}
        if asked.asks_for_local_seconds(callee, arguments):
            self.report.settings |= {"local time"}
        if asked.asks_for_warnings(operation, callee, arguments):
            self.report.settings |= {"warnings that are recorded"}

    def _call_object(self, called: object, arguments: list[Fact]) -> None:
        if (
            isinstance(called, (types.FunctionType, types.BuiltinFunctionType))
            and called.__name__ in SETTINGS_OF_METHODS
        ):
            self.report.settings |= {SETTINGS_OF_METHODS[called.__name__]}
        if not arguments and "locals" in (observers.observed_by(called) or ()):
            self.report.features |= {"locals"}
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
                self.report.features |= {"types"}
        for position in mutators.changed_arguments(called):
            if position == mutators.RECEIVER:
                self.change(Fact(OBJECT, getattr(called, "__self__", None)), "changes")
            elif 0 <= position < len(arguments):
                self.change(arguments[position], "changes")
        if type(called) is types.FunctionType:
            self.give(called, arguments)
        elif type(called) is types.MethodType:
            self.give(called.__func__, [Fact(OBJECT, called.__self__), *arguments])
        elif type(called) is functools.partial:
            self._call_object(called.func, [*(Fact(OBJECT, each) for each in called.args), *arguments])
        elif type(called) in _MAKERS_OF_CALLABLES and arguments:
            caller: Any = called
            for each in caller.__reduce__()[1][: 1 if type(called) is operator.methodcaller else None]:
                self._call_caller(type(called), each, arguments[0], arguments[1:])
        elif callable(called) and not is_a(called, type):
            self._call_method(Fact(OBJECT, called), "__call__", arguments, None)
        if id(called) in TEXTS:
            for argument in arguments[:1]:
                self.show_as_text(argument)

    def _get_attribute(self, name: Fact) -> None:
        """getattr(): a name that is known now is like one that is written; any other may be any."""
        if name.kind in (CONSTANT, OBJECT) and is_a(name.root, str):
            if name.root in SETTINGS_OF_METHODS:
                self.report.settings |= {SETTINGS_OF_METHODS[name.root]}
            feature = observers.ATTRIBUTE_FEATURES.get(name.root)
            if feature == observers.REFUSE:
                self.refuse("introspection", f"reads {name.root}, which shows more than what code computes")
            elif feature is not None:
                self.report.features |= {feature}
        else:
            self.report.features |= _ANY_ATTRIBUTE

    def _call_method(self, owner: Fact, name: str, arguments: list[Fact], operation: Operation | None) -> None:
        owner = self.resolved(owner)
        if owner.kind == OBJECT and not is_a(owner.root, types.ModuleType):
            found = static_attribute(owner.root, name)
            if not is_a(owner.root, type) and name in mutators.mutators_of(type(owner.root)):
                self.change(owner, f"calls {name}(), which changes")
            elif type(found) is types.FunctionType:
                self.give(found, arguments if is_a(owner.root, type) else [owner, *arguments])
            elif not is_a(found, (classmethod, staticmethod)):
                given = arguments if is_a(owner.root, type) else [owner, *arguments]
                for position in mutators.changed_arguments(found):
                    if 0 <= position < len(given):
                        self.change(given[position], f"calls {name}(), which changes")
        elif name in _CHANGING_METHODS and (owner.kind == ATTRIBUTE or outside(owner).kind in (PARTIAL, PARAMETER)):
            self.change(owner, f"calls {name}(), which changes")
        else:
            for cls in self.classes_of(owner):
                self.give(static_attribute(cls, name), [owner, *arguments])
        if name in mutators.GUESSED and owner.kind != OBJECT and class_of(owner) is None and operation is not None:
            self._call_unknown(owner, name, operation)

    def _call_unknown(self, owner: Fact, name: str, operation: Operation) -> None:
        """A method of an object nobody knows is called: what it does is guessed from its name."""
        if name in mutators.RECEIVER_READS_FILE or (name in mutators.RECEIVER_IS_PATH and not self.uses.is_self(owner)):
            if self._is_of_own_receiver(name, operation):
                return
            reason = f"calls {name}() of an object that is not known, which reads or writes files"
            self.refuse("file", reason, self._excuse_of_receiver(operation), watched.seen_of_method(name))
        elif operation.name == "CALL" and not self.uses.is_self(owner):
            if name in mutators.RECEIVER_READS_CLOCK:
                self.refuse("clock", f"calls {name}() of an object that is not known, which reads the clock")
            elif mutators.draws_without_seed(name, operation):
                self.refuse("random", f"calls {name}() of an object that is not known, without a seed")

    def _is_of_own_receiver(self, name: str, operation: Operation) -> bool:
        """Whether a method is asked of a database in memory, or of the path of something temporary."""
        made = self.facts.maker(operation.operands[0])
        if made is None:
            return False
        if name.startswith("fetch"):
            return watched.comes_of_memory(self.facts, made.operands[0])
        return name in ("exists", "is_file", "is_dir") and watched.comes_of_temporary(self.facts, made.operands[0])

    def _excuse_of_receiver(self, operation: Operation) -> Excuse | None:
        made = self.facts.maker(operation.operands[0])
        return None if made is None else excuse_for(self.function, self.facts, made.operands[0])

    def _names_in_texts(self, operation: Operation, callee: Fact, arguments: list[Fact]) -> None:
        """Variables that a text given to the call names are read: of this function, or of its module."""
        if callee.kind == ATTRIBUTE and callee.owner is not None and named.takes_query(callee.owner, callee.name):
            names, what = named.names_in_query(operation, self.facts), f"{callee.name}()"
        elif (handed := named.handed_on(callee, arguments)) is not None:
            names, what = None, f"{handed}()"
        else:
            called = self.resolved(callee, methods=True).root
            if not named.takes_formula(called):
                return
            names, what = named.names_in_formula(operation, self.facts), name_of(called)
        if names is None:
            self.refuse(named.KIND, f"gives {what} a text that is not known beforehand, which may name any variable")
            return
        code = self.template.code
        for name in sorted(names):
            first = name.partition(".")[0]
            if first in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
                self.report.features |= {"code"}  # values of variables that nothing else uses are left out otherwise
            else:
                self.resolution.read_global(first)
                self.report.named.update((name, each) for each in named.meaning(name, self.function.__globals__))

    def _changing_keywords(self, operation: Operation, callee: Fact, arguments: list[Fact]) -> None:
        keywords: tuple[str, ...] = operation.arg  # type: ignore[assignment]
        if not keywords:
            return
        by_name = dict(zip(reversed(keywords), reversed(arguments), strict=False))
        for keyword in mutators.INPLACE_KEYWORDS & by_name.keys():
            if by_name[keyword] != Fact(CONSTANT, False) and callee.kind == ATTRIBUTE and callee.owner is not None:
                self.change(callee.owner, f"calls {callee.name}({keyword}=...), which changes")
        for keyword in mutators.OUT_KEYWORDS & by_name.keys():
            self.change(by_name[keyword], f"writes ({keyword}=...) into")

    def attribute(self, operation: Operation) -> None:
        """An attribute of something that is no module."""
        self._attribute_of(self.facts.of(operation.operands[0]), str(operation.arg), operation)

    def _attribute_of(self, owner: Fact, name: str, operation: Operation) -> None:
        owner = self.resolved(owner)
        self.run_attribute(owner, name, called=self.uses.is_only_called(operation.result))
        if name in SETTINGS_OF_METHODS and (owner.kind == OBJECT or self.uses.is_called(operation.result)):
            self.report.settings |= {SETTINGS_OF_METHODS[name]}
        if owner.kind != OBJECT:
            if self.uses.is_self(owner):
                self._own_attribute(name, operation)
            elif (made := class_of(owner)) is not None:
                self._judge_attribute(static_attribute(made, name), operation)
            return
        if is_a(owner.root, types.ModuleType):
            return
        if not is_a(owner.root, type) and name in mutators.mutators_of(type(owner.root)):
            self.change(owner, f"uses {name}(), which changes")
        self._judge_attribute(static_attribute(owner.root, name), operation)

    def _own_attribute(self, name: str, operation: Operation) -> None:
        """A method uses an attribute of its own object: inherited from a library, or itself."""
        if name == self.function.__code__.co_name:
            self.report.settings |= {"recursion"}
        cls = self.uses.own_class()
        if cls is not None:
            self._judge_attribute(static_attribute(cls, name), operation)

    def _judge_attribute(self, found: object, operation: Operation) -> None:
        verdict = None if found is MISSING else tables.verdict(found)
        if verdict is None or self.is_fine(verdict, operation.result):
            return
        calls = [use for use, at in self.uses.of(operation.result) if use.name == "CALL" and at == 0]
        if calls and all(watched.is_of_own(self.facts, call, verdict.reason) for call in calls):
            return
        self.refuse(verdict.kind, f"uses {verdict.reason}", None, watched.seen_as(verdict.reason))

    def is_fine(self, verdict: tables.Verdict, at: int) -> bool:
        """Whether an impure object is only called, each time in a way that is fine, or that is looked at elsewhere."""
        if verdict.unless is not None:
            return self.uses.only_called_well(at, verdict.unless)
        return verdict.takes_names and self.uses.is_only_called(at)


def _is_of_application(value: object) -> bool:
    return type(value) is types.FunctionType and origin_of_function(value) is APPLICATION
