"""Methods that run without a call of their own: `t[k]`, `t.x`, `with t`, `f"{t}"`, `t + 1`, `for x in t`, `if t`.

In: an operation of a function and the objects it is done to. Out: notes in the report: a captured object is changed if
the method that Python runs changes what it was called on. What a method changes is found out by examining it, like any
other helper. Law: where the class of an object is known, the method that runs is known; nothing is run to find it.
"""

from __future__ import annotations

import functools
import sys
import types
from dataclasses import dataclass
from typing import Any, Final

from nectar.keys.atoms import ATOMS
from nectar.keys.bytecode.operation import Operation
from nectar.keys.bytecode.template import Template
from nectar.keys.folding import MISSING
from nectar.keys.inspection import attributes_of, is_a
from nectar.keys.origin import origin_of_class, origin_of_function
from nectar.keys.purity import mutators
from nectar.keys.purity.facts import (
    ATTRIBUTE,
    CONSTANT,
    DERIVED,
    FRESH,
    OBJECT,
    PARAMETER,
    PARTIAL,
    Fact,
    class_of,
    outside,
    static_attribute,
)
from nectar.keys.purity.findings import Findings, name_of
from nectar.keys.purity.report import Ran, Report
from nectar.keys.purity.uses import Uses
from nectar.keys.resolve import Part
from nectar.model.origin import APPLICATION

_ARITHMETIC: Final = [
    "add",
    "and",
    "floordiv",
    "lshift",
    "matmul",
    "mul",
    "mod",
    "or",
    "pow",
    "rshift",
    "sub",
    "truediv",
    "xor",
]  # by the argument of BINARY_OP; from 13 on the same in place
_COMPARISONS: Final = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_ITERATION: Final = ("__iter__", "__next__", "__getitem__", "__len__", "__aiter__", "__anext__")
_TRUTH: Final = ("__bool__", "__len__")
_TEXT: Final = ("__format__", "__str__", "__repr__")
_KEYS: Final = ("__hash__", "__eq__")
# Which methods an operation runs of which of its operands.
RUNS: Final[dict[str, tuple[tuple[int, tuple[str, ...]], ...]]] = {
    "BINARY_SUBSCR": ((0, ("__getitem__", "__missing__")), (1, (*_KEYS, "__index__"))),
    "CONTAINS_OP": ((0, _KEYS), (1, ("__contains__", *_ITERATION))),
    "COMPARE_OP": ((0, _COMPARISONS), (1, _COMPARISONS)),
    "UNARY_NOT": ((0, _TRUTH),),
    "UNARY_NEGATIVE": ((0, ("__neg__",)),),
    "UNARY_POSITIVE": ((0, ("__pos__",)),),
    "UNARY_INVERT": ((0, ("__invert__",)),),
    **dict.fromkeys(
        ("GET_ITER", "GET_AITER", "GET_YIELD_FROM_ITER", "UNPACK_SEQUENCE", "UNPACK_EX"), ((0, _ITERATION),)
    ),
    **dict.fromkeys(("LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE"), ((1, ("keys", *_ITERATION)),)),
    **dict.fromkeys(("BEFORE_WITH", "BEFORE_ASYNC_WITH"), ((0, ("__enter__", "__exit__", "__aenter__", "__aexit__")),)),
    **dict.fromkeys(("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE"), ((0, _TEXT),)),
    "GET_AWAITABLE": ((0, ("__await__",)),),
    "STORE_SUBSCR": ((2, _KEYS),),
    "SET_ADD": ((1, _KEYS),),
    "BINARY_OP": (),  # by its argument, see below
    "MATCH_CLASS": ((0, ()),),  # reads attributes
    **dict.fromkeys(("BUILD_SET", "BUILD_MAP"), tuple((at, _KEYS) for at in range(8))),
}
_OF_ARITHMETIC: Final = tuple(
    ((0, (f"__{name}__",)), (1, (f"__r{name}__", *(_TEXT if name == "mod" else ())))) for name in _ARITHMETIC
)
# What else instructions run, of values that nobody knows.
_OF_INSTRUCTIONS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("LOAD_ATTR", "LOAD_METHOD"), ("__getattr__", "__getattribute__")),
    **dict.fromkeys(("CALL", "CALL_KW", "CALL_FUNCTION_EX"), ("__call__",)),
    "BINARY_SLICE": ("__getitem__",),
    "STORE_SUBSCR": ("__setitem__",),
    "DELETE_SUBSCR": ("__delitem__",),
    "STORE_ATTR": ("__setattr__",),
}
_BY_BUILTINS: Final[dict[object, tuple[str, ...]]] = {
    **dict.fromkeys(
        (all, any, dict, enumerate, filter, frozenset, iter, list, map, max, min, next, set, sorted, sum, tuple, zip),
        (*_ITERATION, "__lt__", "__add__", "__radd__"),
    ),
    **dict.fromkeys((ascii, format, print, repr, str), _TEXT),
    reversed: ("__reversed__", *_ITERATION),
    len: ("__len__",),
    bool: _TRUTH,
    int: ("__int__", "__index__", "__trunc__"),
    float: ("__float__", "__index__"),
    complex: ("__complex__",),
    bytes: ("__bytes__",),
    abs: ("__abs__",),
    round: ("__round__",),
    pow: ("__pow__", "__rpow__"),
    divmod: ("__divmod__", "__rdivmod__"),
    hash: ("__hash__",),
    getattr: ("__getattr__", "__getattribute__"),
    hasattr: ("__getattr__", "__getattribute__"),
}
_NEW: Final = (FRESH, CONSTANT, DERIVED)
# What a library does to objects it is handed without anybody asking it to by name.
_BY_LIBRARIES: Final = (
    *_COMPARISONS, *_ITERATION, *_TRUTH, *_TEXT, "__hash__", "__getitem__", "__missing__", "__contains__", "__index__",
    "__int__", "__float__", "__complex__", "__bytes__", "__abs__", "__neg__", "__round__", "__array__",
    "__length_hint__", "__reversed__", "__enter__", "__exit__", "__fspath__", "__copy__", "__deepcopy__", "keys",
    *(f"__{beginning}{name}__" for name in _ARITHMETIC for beginning in ("", "r")),
)  # fmt: skip
_LOOK_ONLY: Final = frozenset(map(id, (isinstance, issubclass, type, callable, id)))
_WITH: Final = ("BEFORE_WITH", "BEFORE_ASYNC_WITH")
_MEMBERS: Final = 4096  # objects in a container that are looked at
_CONTAINERS: Final = (list, tuple, set, frozenset, dict)


IMPLICIT: Final = frozenset(
    name
    for names in (
        *(names for runs in (*RUNS.values(), *_OF_ARITHMETIC) for _, names in runs),
        *_OF_INSTRUCTIONS.values(), *_BY_BUILTINS.values(), _TRUTH,
    )
    for name in names
)  # fmt: skip


def names_run_by(instruction: str, number: int) -> tuple[str, ...]:
    """The special methods that an instruction of bytecode may run, of whatever it is done to."""
    if instruction == "BINARY_OP":
        return tuple(name for _, names in _OF_ARITHMETIC[number % len(_ARITHMETIC)] for name in names)
    if "JUMP" in instruction and instruction.endswith(("_TRUE", "_FALSE", "_TRUE_OR_POP", "_FALSE_OR_POP")):
        return _TRUTH
    run = (name for _, names in RUNS.get(instruction, ()) for name in names)
    return (*run, *_OF_INSTRUCTIONS.get(instruction, ()))


def names_run_by_builtin(value: object) -> tuple[str, ...]:
    """The special methods that a function or type of Python's own may run, of whatever it is handed."""
    is_builtin = getattr(value, "__module__", "") == "builtins" and type(value) in (type, types.BuiltinFunctionType)
    return _BY_BUILTINS.get(value, ()) if is_builtin else ()


@dataclass(slots=True)
class Handed:
    """What a function gives to a helper, and where it does. runs: how, where there is no call to be seen."""

    helper: types.FunctionType
    arguments: list[Fact]
    template: Template
    operation: Operation | None
    runs: bool


class Implicit(Findings):
    """Notes what methods do that operations run. handed: helpers still to be looked at."""

    part: Part
    uses: Uses
    handed: list[Any]
    given: set[object]  # what was given to which function: once is enough, and methods may run each other

    def run_methods(self, operation: Operation) -> None:
        """Notes what the methods do that Python runs for an operation, which is one of RUNS."""
        runs = RUNS[operation.name] or self._of_arithmetic(operation)
        for at, names in runs[: len(operation.operands)]:
            for fact in self.facts.gathered(operation.operands[at]):
                if fact.kind not in _NEW:
                    self.run_of(fact, names, own=operation.name in _WITH)
        if operation.name == "MATCH_CLASS":
            names_asked: object = self.facts.of(operation.operands[2]).root
            for name in names_asked if is_a(names_asked, tuple) else ():
                self.run_attribute(self.facts.of(operation.operands[0]), str(name), called=True)

    def _of_arithmetic(self, operation: Operation) -> tuple[tuple[int, tuple[str, ...]], ...]:
        return _OF_ARITHMETIC[operation.arg % len(_ARITHMETIC)] if is_a(operation.arg, int) else ()

    def test(self, value: int) -> None:
        """A value is tested for truth."""
        self.run_of(self.facts.of(value), _TRUTH)

    def hand_to_library(self, called: object, arguments: list[Fact]) -> None:
        """A callable of a library is given values: it may do with them what the language allows, and call functions."""
        if id(called) in _LOOK_ONLY:
            return
        others = [each for each in arguments if _outlives(each) and not _is_output(each.root)]
        for argument in others:
            self.run_of(argument, _BY_LIBRARIES)
        if others:
            for function in arguments:
                self._call_with_any(function, [other for other in others if other is not function])

    def _call_with_any(self, function: Fact, others: list[Fact]) -> None:
        """A callable is handed to a library together with values: it may be called with them, or with their members."""
        called = self.resolved(function, methods=True).root
        if type(called) is types.FunctionType:
            for other in others:
                self.give(called, [other] * called.__code__.co_argcount)
        elif callable(called) and any(position >= 0 for position in mutators.changed_arguments(called)):
            for other in others:
                self.change(other, f"hands to {name_of(called)}, which changes,")

    def run_of(self, fact: Fact, names: tuple[str, ...], own: bool = False) -> None:
        """Notes what methods of these names do to a value. own: libraries put back what theirs change."""
        fact = self.resolved(fact)
        key = (fact.kind, id(fact.root), fact.number, names)
        if (key in self.given and fact.kind != ATTRIBUTE) or not _outlives(fact):
            return
        self.given.add(key)
        if fact.kind == PARAMETER:
            self._note_ran(Ran(fact.number, names))
        for cls in self.classes_of(fact):
            if not own:
                for name in mutators.implicit_in(cls).intersection(names):
                    if name == "__next__" or not self._is_only_looked_up_in(fact.root):
                        self.change(fact, f"uses {name} of {cls.__name__}, which changes")
            if origin_of_class(cls).kind != "standard":
                for name in names:
                    self._run(static_attribute(cls, name), [fact])

    def _is_only_looked_up_in(self, container: object) -> bool:
        """Whether keys are looked up in a captured defaultdict, and nothing else is done with it in this function.

        It does not see then which keys were added. Whether any were is seen when the call is over.
        """
        found = False
        for part in self.resolution.parts:
            values = {value for value, known in part.known.items() if known is container}
            for block in part.template.blocks:
                leaving = {block.value, *block.handler_stack, *(value for edge in block.edges for value in edge.values)}
                if not leaving.isdisjoint(values):
                    return False
                for operation in block.operations:
                    places = [at for at, value in enumerate(operation.operands) if value in values]
                    if places and (operation.name != "BINARY_SUBSCR" or places != [0]):
                        return False
                    found = found or bool(places)
        return found

    def run_attribute(self, fact: Fact, name: str, called: bool) -> None:
        """Notes what is done to a value when an attribute is read: by properties, descriptors and __getattr__."""
        if fact.kind in _NEW:
            return
        fact = self.resolved(fact)
        if not _outlives(fact):
            return
        if fact.kind == PARAMETER:
            self._note_ran(Ran(fact.number, (name,), attribute=True))
        for cls in self.classes_of(fact):
            if origin_of_class(cls).kind == "standard":
                continue
            found = static_attribute(cls, name)
            self._run(static_attribute(cls, "__getattribute__"), [fact])
            if found is MISSING:
                held = fact.kind == OBJECT and static_attribute(fact.root, name) is not MISSING
                self._run(MISSING if held else static_attribute(cls, "__getattr__"), [fact])
            elif is_a(found, property):
                self._run(found.fget, [fact])
            elif type(found) is functools.cached_property:
                self._run(found.func, [fact])
            elif type(found) is not types.FunctionType:
                self._run(static_attribute(type(found), "__get__"), [Fact(OBJECT, found), fact])
            elif not called:  # a method as a value: somebody calls it
                self._run(found, [fact])

    def _note_ran(self, ran: Ran) -> None:
        if ran not in self.report.ran:
            self.report.ran.add(ran)
            default = self.defaults().get(ran.parameter)
            if default is not None:
                self.run_again(ran, Fact(OBJECT, default))

    def run_again(self, ran: Ran, fact: Fact) -> None:
        """What code does to its parameter is done to this value, or to what lies in it."""
        inside = [Fact(PARTIAL, fact.root)] if fact.kind == OBJECT else []
        for each in (fact, *inside):
            if ran.attribute:
                self.run_attribute(each, ran.names[0], called=False)
            else:
                self.run_of(each, ran.names)

    def _run(self, method: object, arguments: list[Fact]) -> None:
        if type(method) is types.FunctionType:
            self.give(method, arguments, runs=True)

    def resolved(self, fact: Fact, methods: bool = False) -> Fact:
        """The object that an attribute of a captured object is, where it simply lies there; or a method of a class."""
        if fact.kind != ATTRIBUTE or fact.owner is None:
            return fact
        owner = self.resolved(fact.owner)
        if owner.kind != OBJECT or is_a(owner.root, types.ModuleType):
            return fact
        found = static_attribute(owner.root, fact.name)
        bound = hasattr(type(found), "__get__") and not (methods and is_a(owner.root, type))
        return fact if found is MISSING or bound else Fact(OBJECT, found)

    def classes_of(self, fact: Fact) -> list[type]:
        """The classes a value may be an instance of, as far as they are known."""
        if fact.kind == PARTIAL:
            return _classes_inside(fact.root)
        if self.uses.is_self(fact):
            cls = self.uses.own_class()
            return [] if cls is None else [cls]
        known = class_of(fact)
        if known is None and fact.kind == OBJECT and is_a(fact.root, type):
            known = type(fact.root)
        return [] if known is None else [known]

    def give(self, called: object, arguments: list[Fact], runs: bool = False) -> None:
        """A function of the application gets values, which it may change."""
        if not is_a(called, types.FunctionType) or not any(map(_outlives, arguments)):
            return
        if origin_of_function(called) is not APPLICATION:
            return
        roots = [outside(argument) for argument in arguments]
        key = (id(called), *((root.kind, id(root.root), root.number) for root in roots))
        if key not in self.given:
            self.given.add(key)
            self.handed.append(Handed(called, arguments, self.template, self.operation, runs))

    def take_back(self, handed: Handed, report: Report) -> None:
        """A helper changes some of what it is given, or runs methods of it."""
        self.template, self.operation = handed.template, handed.operation
        changed = report.changed
        for ran in list(report.ran):  # its own, where it calls itself
            if ran.parameter < len(handed.arguments):
                self.run_again(ran, handed.arguments[ran.parameter])
        name = handed.helper.__code__.co_qualname
        verb = f"uses {name}, which changes" if handed.runs else f"hands to {name}(), which changes,"
        for position in sorted(changed):
            if 0 <= position < len(handed.arguments):
                self.change(handed.arguments[position], verb)


def _outlives(fact: Fact) -> bool:
    """Whether a value may be there after the call: captured, or handed in."""
    root = outside(fact)
    return root.kind == PARAMETER or (root.kind in (OBJECT, PARTIAL) and type(root.root) not in ATOMS)


def _is_output(value: object) -> bool:
    """Whether a value is where the program prints: what is printed is no part of a result."""
    return value is not None and any(value is each for each in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__))


def _classes_inside(container: object) -> list[type]:
    """The classes of what a captured object holds, two levels deep."""
    found: set[type] = set()
    pending: list[tuple[object, int]] = [(container, 2)]
    looked_at = 0
    while pending and looked_at < _MEMBERS:
        current, depth = pending.pop()
        if is_a(current, dict):
            members: list[object] = list(dict.values(current))
        elif is_a(current, _CONTAINERS):
            members = list(current)
        else:
            members = list(attributes_of(current).values()) if depth == 2 else []
        looked_at += len(members)
        kinds = {type(member) for member in members[:_MEMBERS]}
        found |= kinds
        if depth > 1 and not kinds <= ATOMS.keys():
            pending += [(member, depth - 1) for member in members[:_MEMBERS] if is_a(member, _CONTAINERS)]
    return [kind for kind in found if kind not in ATOMS]
