"""Where the values of a function come from: a small data-flow analysis over its resolved template.

In: one rendered part (a template and the objects its names stand for). Out: for each value a Fact: it is a certain
captured object, or was reached from one, or from a parameter, or is an attribute of such a value. What is not known
to come from outside counts as fresh.
"""

from __future__ import annotations

import functools
import pathlib
import sys
import types
from functools import cache
from typing import Final

from msgspec import Struct

from nectar.keys.bytecode.decode import parameter_names
from nectar.keys.bytecode.operation import CELL, CONST, FREE, MERGE, PARAM, RESULT, Operation
from nectar.keys.folding import MISSING, GlobalsView
from nectar.keys.inspection import attributes_of, is_a
from nectar.keys.resolve import Part

OBJECT, PARTIAL, PARAMETER, ATTRIBUTE, CONSTANT, FRESH = "object", "part", "parameter", "attribute", "constant", "fresh"
DERIVED = "derived"


class Fact(Struct):
    """What is known of a value.

    kind: OBJECT (value is `root`), PARTIAL (reached from `root`), PARAMETER (is or was reached from parameter
    `number`), ATTRIBUTE (attribute `name` of `owner`), CONSTANT (`root`), DERIVED (new, but may hold what `root` holds,
    such as a copy), FRESH. made: the class it was made of here, if that is known.
    """

    kind: str
    root: object = None
    number: int = -1
    name: str = ""
    owner: Fact | None = None
    made: type | None = None


_FRESH: Final = Fact(FRESH)
_REACHES: Final = {"BINARY_SUBSCR", "GET_ITER", "FOR_ITER", "UNPACK_SEQUENCE", "UNPACK_EX", "GET_AITER", "GET_ANEXT"}
_GATHERS: Final = {"BUILD_LIST", "BUILD_TUPLE", "BUILD_SET", "BUILD_MAP", "BUILD_CONST_KEY_MAP"}
_PLAIN: Final = frozenset({int, float, complex, str, bytes, bool, type(None), types.BuiltinFunctionType})
_READS_A_PART: Final = {"get", "values", "items", "keys", "setdefault", "pop", "__getitem__"}
# Callables that give what lies in their first argument: its attributes, or its members one after the other.
_PASSES_ON: Final = {id(each): each for each in (vars, iter, reversed, enumerate, zip)}
_COPIES: Final = {id(each): each for each in (list, tuple, sorted, set, frozenset, dict)}
_IN_PLACE: Final = 13  # BINARY_OP arguments from here on are +=, -= and so on
_DIVIDES: Final = (11, 24)  # BINARY_OP arguments of / and /=
# Attributes of paths, and methods, that lead to other paths.
_PATH_PARTS: Final = frozenset({"parent"})
_FUNCTIONS: Final = (types.FunctionType, types.BuiltinFunctionType)
_LOOPS: Final = frozenset({"get_running_loop", "get_event_loop", "new_event_loop"})
_PATH_METHODS: Final = frozenset(
    {"joinpath", "with_name", "with_stem", "with_suffix", "with_segments", "relative_to", "absolute", "resolve"}
)


class Facts:
    """The facts about one part."""

    def __init__(self, part: Part, outer: Facts | None = None) -> None:
        self.part = part
        self.outer = outer  # the facts about the code that makes this function, if it is an inner one
        self.template = part.template
        self._known: dict[int, Fact] = {}
        self._brought: dict[int, list[int]] | None = None
        self._stored: dict[tuple[str, object], list[int]] | None = None

    def brought_to(self, merge: int) -> list[int]:
        """The values that meet in a merge."""
        if self._brought is None:
            self._brought = {}
            blocks = self.template.blocks
            for edge in (edge for block in blocks for edge in block.edges if edge.target >= 0):
                for each, value in zip(blocks[edge.target].merges, edge.values, strict=True):
                    self._brought.setdefault(each, []).append(value)
        return self._brought.get(merge, [])

    def _stored_in(self, place: tuple[str, object]) -> list[int]:
        """The values that are stored in a slot or cell."""
        if self._stored is None:
            self._stored = {}
            for operation in (operation for block in self.template.blocks for operation in block.operations):
                if operation.name == "STORE_SLOT":
                    self._stored.setdefault(("slot", operation.arg), []).append(operation.operands[0])
                elif operation.name == "STORE_CELL":
                    self._stored.setdefault(("cell", operation.operands[0]), []).append(operation.operands[1])
        return self._stored.get(place, [])

    def of(self, value: int) -> Fact:
        """The fact about a value."""
        known = self._known.get(value)
        if known is None:
            self._known[value] = _FRESH  # what a cycle finds
            known = self._known[value] = self._find(value)
        return known

    def stored_in_slot(self, slot: object) -> list[int]:
        """Values that are stored in a local kept in memory."""
        return self._stored_in(("slot", slot))

    def maker(self, value: int) -> Operation | None:
        """The operation whose result a value is."""
        return self.template.data[value] if self.template.kinds[value] == RESULT else None  # type: ignore[return-value]

    def _find(self, value: int) -> Fact:
        kind = self.template.kinds[value]
        if kind == RESULT:
            found = self.part.known.get(value, MISSING)
            if found is MISSING:
                return self._result(self.template.data[value])  # type: ignore[arg-type]
            return Fact(OBJECT, found.source if is_a(found, GlobalsView) else found)
        if kind == PARAM:
            number: int = self.template.data[value]  # type: ignore[assignment]
            return self._given_by_outer(number) if self.part.nested else _parameter(number)
        if kind == CONST:
            return Fact(CONSTANT, self.template.code.co_consts[self.template.data[value]])  # type: ignore[call-overload]
        if kind == MERGE:
            return self._worst(self.brought_to(value))
        return _FRESH

    def _worst(self, values: list[int]) -> Fact:
        """Of several values that may meet, one that comes from outside, if any does."""
        facts = [self.of(value) for value in values]
        for kind in (OBJECT, PARTIAL, ATTRIBUTE, PARAMETER, DERIVED):
            for fact in facts:
                if fact.kind == kind:
                    return fact
        return next((fact for fact in facts if fact.made is not None), _FRESH)

    def _result(self, operation: Operation) -> Fact:
        name = operation.name
        if name == "LOAD_ATTR":
            return Fact(ATTRIBUTE, name=str(operation.arg), owner=self.of(operation.operands[0]))
        if name in _REACHES:
            return inside(self.of(self._before_copying(operation.operands[0])))
        if name == "CALL":
            callee = self.of(operation.operands[0])
            if callee.kind == ATTRIBUTE and callee.name in _READS_A_PART and callee.owner is not None:
                return inside(callee.owner)
            if callee.root is getattr and len(operation.operands) > 2:
                asked = self.of(operation.operands[2]).root
                if type(asked) is str:
                    return Fact(ATTRIBUTE, name=asked, owner=self.of(operation.operands[1]))
                return inside(self.of(operation.operands[1]))
            if id(callee.root) in _PASSES_ON:
                return inside(self._worst(list(operation.operands[1:])))
            found = self._derived(operation.operands[1:])
            if not is_a(callee.root, type) and callee.name not in _PATH_METHODS and not _gives_loop(callee.root):
                return found
            return Fact(found.kind, found.root, made=_made_by_calling(callee))
        if name == "BINARY_OP" and operation.arg in _DIVIDES:
            return Fact(FRESH, made=next(filter(None, map(_path_class, map(self.of, operation.operands))), None))
        if name in _GATHERS:
            return self._derived(operation.operands)
        if name == "BINARY_OP" and is_a(operation.arg, int) and operation.arg >= _IN_PLACE:
            return inside(self.of(operation.operands[0]))
        if name == "LOAD_SLOT":
            return self._worst(self._stored_in(("slot", operation.arg)))
        if name in ("LOAD_CELL", "LOAD_FREE"):
            return self.in_cell(operation.operands[0])
        return _FRESH

    def _before_copying(self, value: int) -> int:
        """What a value is a copy of, with the same members: list(x), sorted(x) and the like."""
        made = self.maker(value)
        if made is None or made.name != "CALL" or len(made.operands) < 2 or value in self.part.known:
            return value
        return made.operands[1] if id(self.of(made.operands[0]).root) in _COPIES else value

    def gathered(self, value: int) -> list[Fact]:
        """The fact about a value, or, if it is a container that is made here, about what lies in it."""
        made = self.maker(value)
        if made is None or made.name not in _GATHERS:
            return [self.of(value)]
        return [fact for operand in made.operands for fact in self.gathered(operand)]

    def _given_by_outer(self, number: int) -> Fact:
        """What a function that is made and called in the same code, or handed to a library there, may be given."""
        outer = self.outer
        if outer is None:
            return _FRESH
        found = [outer._given_in(call, at, number) for call, at in outer.calls_with(self.template.code)]
        return next((fact for fact in found if fact.kind != FRESH), _FRESH)

    def calls_with(self, code: types.CodeType) -> list[tuple[Operation, int]]:
        """The calls of a function made here of this code, and those it is handed to: where it stands among operands."""
        found = []
        for operation in (each for block in self.template.blocks for each in block.operations):
            if operation.name == "CALL":
                found += [(operation, at) for at, value in enumerate(operation.operands) if self._makes(value, code)]
        return found

    def _makes(self, value: int, code: types.CodeType) -> bool:
        made = self.maker(value)
        if made is None or made.name != "MAKE_FUNCTION":
            return False
        return self.template.code.co_consts[self.template.data[made.operands[0]]] is code  # type: ignore[call-overload]

    def _given_in(self, call: Operation, at: int, number: int) -> Fact:
        operands = call.operands
        if at == 0:
            return self.of(operands[number + 1]) if number + 1 < len(operands) - len(call.arg) else _FRESH  # type: ignore[arg-type]
        callee = self.of(operands[0]).root
        others = [operand for place, operand in enumerate(operands[1:], 1) if place != at]
        if callee is functools.reduce and number == 0 and len(others) > 1:
            return self.of(others[1])
        if callee is map or callee is functools.reduce:
            others = others[number : number + 1] if callee is map else others[:1]
        return inside(self._worst(others))

    def _derived(self, values: tuple[int, ...]) -> Fact:
        """Something new, made with values of which one may hold something from outside."""
        for value in values:
            root = outside(self.of(value))
            if root.kind in (OBJECT, PARTIAL, DERIVED) and _holds_objects(root.root):
                return Fact(DERIVED, root.root)
        return _FRESH

    def in_cell(self, cell: int) -> Fact:
        """What a variable that inner functions share may hold."""
        values = self._stored_in(("cell", cell))
        stored = self._worst(values)
        if stored.kind != FRESH or (len(values) == 1 and stored.made is not None):
            return stored
        data = self.template.data[cell]
        if self.template.kinds[cell] == FREE:
            known = self.outer is not None and data in self.part.captured
            return self.outer.in_cell(self.part.captured[data]) if known else _FRESH  # type: ignore[union-attr, index]
        if self.template.kinds[cell] != CELL:
            return _FRESH
        is_parameter = not self.part.nested and data < len(parameter_names(self.template.code))  # type: ignore[operator]
        return _parameter(data) if is_parameter else _FRESH


@cache
def _parameter(number: int) -> Fact:
    return Fact(PARAMETER, number=number)


def class_of(fact: Fact) -> type | None:
    """The class that a value is an instance of, where the code shows it."""
    if fact.made is not None:
        return fact.made
    if fact.kind == OBJECT and not is_a(fact.root, (types.ModuleType, type)):
        return type(fact.root)
    if fact.kind == ATTRIBUTE and fact.owner is not None and fact.name in _PATH_PARTS:
        return _path_class(fact.owner)
    return None


def _path_class(fact: Fact) -> type | None:
    found = class_of(fact)
    return found if found is not None and issubclass(found, pathlib.PurePath) else None


def _gives_loop(called: object) -> bool:
    """Whether a function gives the event loop that a coroutine runs in."""
    name = getattr(called, "__name__", None) if type(called) in _FUNCTIONS else None
    return name in _LOOPS and str(getattr(called, "__module__", "")).lstrip("_").startswith("asyncio")


def _made_by_calling(callee: Fact) -> type | None:
    """The class of what a call gives: a class that is called, that of a path whose method gives a path, a loop."""
    if _gives_loop(callee.root):
        return sys.modules["asyncio"].AbstractEventLoop  # type: ignore[no-any-return]
    if callee.kind == OBJECT and is_a(callee.root, type):
        return callee.root if callee.root is not type else None  # type(x) is any class
    if callee.kind == ATTRIBUTE and callee.owner is not None and callee.name in _PATH_METHODS:
        return _path_class(callee.owner)
    return None


def inside(fact: Fact) -> Fact:
    """Something reached from a value."""
    if fact.kind == ATTRIBUTE:
        assert fact.owner is not None
        return inside(fact.owner)
    if fact.kind == OBJECT:
        return Fact(PARTIAL, fact.root)
    return fact if fact.kind in (PARTIAL, PARAMETER, DERIVED) else _FRESH


def _holds_objects(value: object) -> bool:
    """Whether a value can hold functions, classes or instances, rather than plain data alone."""
    return type(value) not in _PLAIN and not is_a(value, types.ModuleType)


def outside(fact: Fact) -> Fact:
    """The fact about where a value was reached from: its owner's owner and so on."""
    while fact.kind == ATTRIBUTE:
        assert fact.owner is not None
        fact = fact.owner
    return fact


def static_attribute(owner: object, name: str) -> object:
    """What an attribute of an object refers to, without running anything; MISSING if only running could tell."""
    if is_a(owner, types.ModuleType):
        return vars(owner).get(name, MISSING)
    if is_a(owner, type):
        mro = type.__getattribute__(owner, "__mro__")
    else:
        mro = type(owner).__mro__
        own = attributes_of(owner)
        if name in own:
            return own[name]
    for base in mro:
        space = type.__getattribute__(base, "__dict__")
        if name in space:
            return space[name]
    return MISSING
