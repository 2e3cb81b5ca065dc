"""What makes a function uncacheable, and what it shows of other functions.

In: a function and its resolution. Out: refusals told to the walk, each with place and reason; features the code
observes; and the objects whose names or annotations it may look at. The tables beside this module say what is known of
libraries; this module only finds out what the code does with what.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Protocol

from nectar.keys.atoms import ATOMS
from nectar.keys.bytecode.operation import FREE, Operation
from nectar.keys.exposed import Exposed, shows_anything
from nectar.keys.folding import MISSING
from nectar.keys.purity import mutators, observers, tables
from nectar.keys.purity.facts import (
    ATTRIBUTE,
    CONSTANT,
    OBJECT,
    PARAMETER,
    PARTIAL,
    Fact,
    Facts,
    outside,
    static_attribute,
)
from nectar.keys.resolve import Part, Resolution
from nectar.model.refusal import Refusal

if TYPE_CHECKING:
    from nectar.keys.expansion import WalkContext


class Judge(Protocol):
    """What the examination tells: the walk, or nobody."""

    observed: frozenset[str]
    summaries: dict[int, tuple[object, frozenset[int]]]

    def observe(self, feature: str) -> None:
        """Reached code reads a feature that is otherwise left out."""

    def refuse(self, refusal: Refusal) -> None:
        """The function cannot be cached."""

    def settle(self, user: object, value: object) -> None:
        """Whether user may use an impure object as it does has been judged."""


_CHANGES: Final = {"STORE_SUBSCR": 1, "STORE_ATTR": 1, "DELETE_SUBSCR": 0, "DELETE_ATTR": 0}
_FORMATS: Final = {"FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE"}
_TEXTS: Final = (str, repr, format, ascii)
_IN_PLACE: Final = 13
_LOADS: Final = {"LOAD_GLOBAL", "LOAD_FREE", "LOAD_ATTR", "IMPORT_FROM", "BINARY_SUBSCR", "CALL"}
# Names that change their receiver, whatever common container it is.
_CHANGING_METHODS: Final = frozenset().union(*(mutators.MUTATORS[kind] for kind in (list, dict, set))) - {"__init__"}
# Roles in which a value is used without anybody looking at its name: called, asked for an attribute, compared.
_SILENT: Final = {
    "LOAD_ATTR", "COMPARE_OP", "IS_OP", "CONTAINS_OP", "CHECK_EXC_MATCH", "BEFORE_WITH", "GET_ITER", "BINARY_SUBSCR",
    "FOR_ITER", "UNPACK_SEQUENCE", "STORE_SLOT", "STORE_CELL", "UNPACK_EX", "MATCH_CLASS", "RAISE", "MAKE_FUNCTION",
    "LOAD_SUPER_ATTR", "STORE_NAME", "CHECK_BOUND",
}  # fmt: skip
# Observers that are everywhere: they count only for what is given to them, not for the whole program.
_COMMON_OBSERVERS: Final = frozenset({str, repr, format, ascii, getattr, vars, dir})
_DEPTH: Final = 30  # how far helpers are followed to see whether they change an argument


def examine(function: types.FunctionType, resolution: Resolution, walk: WalkContext) -> list[object]:
    """Tells the walk what makes a function uncacheable; returns what the function exposes."""
    exposed: dict[int, object] = {}
    for part in resolution.parts:
        examination = _Examination(function, part, walk)
        examination.run()
        exposed.update(examination.exposed)
        if not part.nested:
            _refuse_changed_defaults(function, examination, walk)
    for template, operation, name in resolution.unimportable:
        place = _place(function, template.code, operation)
        walk.refuse(Refusal("dynamic code", f"imports {name}, which cannot be imported now", place))
    return [Exposed(value) for value in exposed.values()]


def _refuse_changed_defaults(function: types.FunctionType, examination: _Examination, walk: WalkContext) -> None:
    """A default that the function changes is state that outlives the call."""
    code, values = function.__code__, function.__defaults__ or ()
    by_keyword = function.__kwdefaults__ or {}
    defaults = dict(zip(range(code.co_argcount - len(values), code.co_argcount), values, strict=True))
    for at, name in enumerate(code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]):
        if name in by_keyword:
            defaults[code.co_argcount + at] = by_keyword[name]
    for position in examination.changed & defaults.keys():
        if type(defaults[position]) not in ATOMS and type(defaults[position]) is not tuple:
            reason = f"changes the default of its parameter {code.co_varnames[position]}, which outlives the call"
            walk.refuse(Refusal("mutation", reason, _place(function, code, None)))


def _place(function: types.FunctionType, code: types.CodeType, operation: Operation | None) -> str:
    file = code.co_filename.replace("\\", "/").rpartition("/")[2]
    line = code.co_firstlineno
    if operation is not None:
        for start, end, number in code.co_lines():
            if start <= operation.offset < end and number is not None:
                line = number
    return f"{function.__code__.co_qualname} ({file}:{line})"


class _Examination:
    def __init__(self, function: types.FunctionType, part: Part, walk: Judge, depth: int = 0) -> None:
        self.function = function
        self.part = part
        self.template = part.template
        self.walk = walk
        self.facts = Facts(part)
        self.exposed: dict[int, object] = {}
        self.changed: set[int] = set()  # parameters the function changes
        self.depth = depth
        self.operation: Operation | None = None

    def run(self) -> None:
        self._mentions()
        for block in self.template.blocks:
            for operation in block.operations:
                self.operation = operation
                self._examine(operation)
            for edge in block.edges:
                for value in edge.values if edge.target < 0 else ():
                    self._expose(self.facts.of(value))

    def refuse(self, kind: str, reason: str) -> None:
        self.walk.refuse(Refusal(kind, reason, _place(self.function, self.template.code, self.operation)))

    # by name

    def _mentions(self) -> None:
        """Names of attributes that show something of a function or class beside what it does."""
        template = self.template
        for name in template.attributes & observers.ATTRIBUTE_FEATURES.keys():
            feature = observers.ATTRIBUTE_FEATURES[name]
            if feature == observers.REFUSE:
                self.refuse("introspection", f"reads {name}, which shows more than what code computes")
            else:
                self.walk.observe(feature)
        for name in template.strings & observers.ATTRIBUTE_FEATURES.keys():
            feature = observers.ATTRIBUTE_FEATURES[name]
            if feature != observers.REFUSE:
                self.walk.observe(feature)
        if template.stored_global:
            self.walk.observe("rebinding")

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
            self._change(
                self.facts.of(operation.operands[_CHANGES[name]]), "assigns to" if "STORE" in name else "deletes"
            )
        elif name == "BINARY_OP" and isinstance(operation.arg, int) and operation.arg >= _IN_PLACE:
            self._change_in_place(self.facts.of(operation.operands[0]))
        elif name in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            self.refuse("mutation", f"assigns to the global {operation.arg}")
        elif name in ("STORE_CELL", "DELETE_CELL"):
            self._store_cell(operation)
        elif name in _FORMATS:
            self._show_as_text(self.facts.of(operation.operands[0]))
        if name not in _SILENT and name not in ("CALL", "CALL_EX") and name not in _CHANGES:
            for value in operation.operands:
                self._expose(self.facts.of(value))

    def _store_cell(self, operation: Operation) -> None:
        target = operation.operands[0]
        name = self.template.data[target]
        if self.template.kinds[target] == FREE and name in self.function.__code__.co_freevars:
            self.walk.observe("rebinding")
            self.refuse("mutation", f"assigns to the captured variable {name}")

    def _loaded(self, operation: Operation) -> None:
        """Something known was read: is it known to be impure?"""
        value = self.part.known[operation.result]
        if operation.name == "LOAD_ATTR" or operation.name == "IMPORT_FROM":
            owner = self.part.known.get(operation.operands[0])
            if isinstance(owner, types.ModuleType):
                found = tables.attribute_verdict(owner, str(operation.arg))
                self._judge(found, value, operation)
                return
        self._judge(tables.verdict(value), value, operation)

    def _judge(self, found: tables.Verdict | None, value: object, operation: Operation) -> None:
        if found is None or self._is_folded_away(value, operation):
            return
        self.walk.settle(self.function, value)
        if value is hash and self._only_hashes_by_code(operation.result):
            return
        if found.unless is None or not self._only_called_well(operation.result, found.unless):
            self.refuse(found.kind, f"uses {found.reason}")

    def _is_folded_away(self, value: object, operation: Operation) -> bool:
        """Whether every use of an impure object had a known result, such as os.environ["X"] or globals()["X"]."""
        uses = list(self._uses(operation.result))
        return bool(uses) and all(use.result in self.part.known or id(use) in self.part.inlined for use, _ in uses)

    def _only_hashes_by_code(self, value: int) -> bool:
        """Whether hash() is only asked of captured objects whose class computes it in code that is looked at."""
        arguments = [
            self.facts.of(use.operands[1]) for use, at in self._uses(value) if len(use.operands) == 2 and at == 0
        ]
        return len(arguments) == len(list(self._uses(value))) and all(
            fact.kind == OBJECT and type(static_attribute(type(fact.root), "__hash__")) is types.FunctionType
            for fact in arguments
        )

    def _uses(self, value: int) -> Iterator[tuple[Operation, int]]:
        for block in self.template.blocks:
            for operation in block.operations:
                for at, operand in enumerate(operation.operands):
                    if operand == value:
                        yield operation, at
            for edge in block.edges:
                if value in edge.values:
                    yield _ESCAPES, 0

    def _only_called_well(self, value: int, condition: object) -> bool:
        uses = list(self._uses(value))
        return bool(uses) and all(use.name == "CALL" and at == 0 and self._is_met(use, condition) for use, at in uses)

    def _is_met(self, call: Operation, condition: object) -> bool:
        keywords: tuple[str, ...] = call.arg  # type: ignore[assignment]
        arguments = call.operands[1:]
        positional = arguments[: len(arguments) - len(keywords)]
        given = None
        if condition.position is not None and condition.position < len(positional):  # type: ignore[attr-defined]
            given = positional[condition.position]  # type: ignore[attr-defined]
        elif condition.keyword in keywords:  # type: ignore[attr-defined]
            given = arguments[len(positional) + keywords.index(condition.keyword)]  # type: ignore[attr-defined]
        present = given is not None and self.facts.of(given) != Fact(CONSTANT, None)
        return present is condition.given  # type: ignore[attr-defined]

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
        if callee.kind != OBJECT or not _is_safe(callee.root):
            for argument in arguments:
                self._expose(argument)

    def _call_object(self, called: object, arguments: list[Fact]) -> None:
        features = observers.observed_by(called)
        if features:
            if not _is_common(called):
                for feature in features:
                    self.walk.observe(feature)
            elif not arguments and "locals" in features:
                self.walk.observe("locals")
        for position in mutators.changed_arguments(called):
            if position == mutators.RECEIVER:
                self._change(Fact(OBJECT, getattr(called, "__self__", None)), "changes")
            elif position < len(arguments):
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
        if owner.kind != OBJECT and name in mutators.RECEIVER_READS_FILE:
            self.refuse("file", f"calls {name}() of an object that is not known, which reads or writes files")

    def _changing_keywords(self, operation: Operation, callee: Fact, arguments: list[Fact]) -> None:
        keywords: tuple[str, ...] = operation.arg  # type: ignore[assignment]
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
        for position in changed_parameters(called, self.walk, self.depth):
            if position < len(arguments):
                self._change(arguments[position], f"hands to {called.__code__.co_qualname}(), which changes,")

    # changes

    def _change(self, target: Fact, verb: str) -> None:
        root = outside(target)
        if root.kind == PARAMETER:
            self.changed.add(root.number)
        elif root.kind in (OBJECT, PARTIAL) and type(root.root) not in ATOMS:
            self.refuse("mutation", f"{verb} {_name(root.root)} that outlives the call")

    def _change_in_place(self, target: Fact) -> None:
        root = outside(target)
        if root.kind == PARAMETER:
            self.changed.add(root.number)
        elif root.kind == PARTIAL or (root.kind == OBJECT and hasattr(type(root.root), "__iadd__")):
            self.refuse("mutation", f"changes {_name(root.root)} in place, which outlives the call")

    # looks

    def _attribute(self, operation: Operation) -> None:
        """An attribute of something that is no module."""
        owner = self.facts.of(operation.operands[0])
        if owner.kind != OBJECT or isinstance(owner.root, types.ModuleType):
            return
        found = static_attribute(owner.root, str(operation.arg))
        if found is not MISSING:
            verdict = tables.verdict(found)
            if verdict is None or (
                verdict.unless is not None and self._only_called_well(operation.result, verdict.unless)
            ):
                return
            self.refuse(verdict.kind, f"uses {verdict.reason}")

    def _show_as_text(self, shown: Fact) -> None:
        if shown.kind == OBJECT and not isinstance(shown.root, type):
            found = static_attribute(type(shown.root), "__repr__")
            text = static_attribute(type(shown.root), "__str__")
            if found is object.__repr__ and text is object.__str__:
                self.refuse("identity", f"shows {_name(shown.root)} as text, which contains its address in memory")

    def _expose(self, fact: Fact) -> None:
        root = outside(fact)
        if root.kind in (OBJECT, PARTIAL) and id(root.root) not in self.exposed and shows_anything(root.root):
            self.exposed[id(root.root)] = root.root


def changed_parameters(called: types.FunctionType, walk: Judge, depth: int) -> frozenset[int]:
    """Positions of the parameters a function of the application changes, through its helpers too."""
    known = walk.summaries.get(id(called))
    if known is not None:
        return known[1]
    walk.summaries[id(called)] = (called, frozenset())
    found = frozenset(_find_changed(called, walk, depth))
    walk.summaries[id(called)] = (called, found)
    return found


def _find_changed(called: types.FunctionType, walk: Judge, depth: int) -> set[int]:
    from nectar.keys import functions  # the two look at each other: a function is examined by way of its helpers
    from nectar.keys.origin import origin_of_function
    from nectar.model.origin import APPLICATION

    if origin_of_function(called) is not APPLICATION:
        return set()
    try:
        resolution = functions.resolve(called, walk.observed)[0]
    except Exception:
        return set()
    examination = _Examination(called, resolution.parts[0], _Deaf(walk), depth + 1)
    examination.run()
    return examination.changed


class _Deaf:
    """Told nothing: for looking at helpers, which the real walk reaches by itself."""

    def __init__(self, walk: Judge) -> None:
        self.observed = walk.observed
        self.summaries = walk.summaries

    def observe(self, feature: str) -> None:
        pass

    def refuse(self, refusal: Refusal) -> None:
        pass

    def settle(self, user: object, value: object) -> None:
        pass


_ESCAPES: Final = Operation("ESCAPE", None, (), -1, 0, 0)


def _can_change(fact: Fact) -> bool:
    root = outside(fact)
    return root.kind == PARAMETER or (root.kind in (OBJECT, PARTIAL) and type(root.root) not in ATOMS)


def _is_safe(called: object) -> bool:
    try:
        return called in observers.SAFE_CALLEES
    except Exception:
        return False


def _is_common(called: object) -> bool:
    return any(called is each for each in _COMMON_OBSERVERS)


def _name(value: object) -> str:
    if isinstance(value, (types.FunctionType, type)):
        return f"{value.__qualname__}"
    if isinstance(value, types.ModuleType):
        return f"the module {value.__name__}"
    return f"a captured {type(value).__name__}"
