"""How the values of a template are used: questions whose answer makes an impure object harmless.

In: a template and the facts about its values. Out: yes or no. `hash` that only feeds a hash method, `id` that only
tells objects apart, a class that is only asked for, a generator that is always given a seed: these do not show.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Final

from nectar.keys.bytecode.operation import Operation
from nectar.keys.features import Features
from nectar.keys.purity import mutators
from nectar.keys.purity.facts import ATTRIBUTE, CONSTANT, OBJECT, PARAMETER, Fact, Facts, static_attribute
from nectar.keys.resolve import resolve_function

if TYPE_CHECKING:
    from nectar.keys.purity.deny import Condition

# Where an operation takes a key, by position; the container stands before it.
_AS_KEY: Final = {("BINARY_SUBSCR", 1), ("STORE_SUBSCR", 2), ("DELETE_SUBSCR", 1)}
_KEY_METHODS: Final = frozenset({"add", "discard", "remove", "get", "pop", "__contains__"})
_ESCAPES: Final = Operation("ESCAPE", None, (), -1, 0, 0)


class Uses:
    """The uses of values in one part of a function."""

    def __init__(self, function: types.FunctionType, facts: Facts) -> None:
        self.function = function
        self.facts = facts
        self.part = facts.part
        self._by_value: dict[int, list[tuple[Operation, int]]] | None = None
        self._merged: dict[int, set[int]] = {}

    def of(self, value: int) -> list[tuple[Operation, int]]:
        """The operations that take a value, each with its position; ESCAPE where it is tested or returned."""
        if self._by_value is None:
            self._by_value, self._merged = self._collect()
        found: list[tuple[Operation, int]] = []
        pending, seen = [value], {value}
        while pending:
            current = pending.pop()
            found.extend(self._by_value.get(current, ()))
            more = self._merged.get(current, set()) - seen
            seen |= more
            pending.extend(more)
        return found

    def directly(self, value: int) -> tuple[list[tuple[Operation, int]], set[int]]:
        """The operations that take this very value, and the values it becomes where ways of control meet."""
        if self._by_value is None:
            self._by_value, self._merged = self._collect()
        return self._by_value.get(value, []), self._merged.get(value, set())

    def _collect(self) -> tuple[dict[int, list[tuple[Operation, int]]], dict[int, set[int]]]:
        found: dict[int, list[tuple[Operation, int]]] = {}
        merged: dict[int, set[int]] = {}
        blocks = self.part.template.blocks
        loaded: dict[object, set[int]] = {}  # locals kept in memory: the results of loading each
        for block in blocks:
            for operation in block.operations:
                if operation.name == "LOAD_SLOT":
                    loaded.setdefault(operation.arg, set()).add(operation.result)
        for block in blocks:
            for operation in block.operations:
                if operation.name == "STORE_SLOT":
                    merged.setdefault(operation.operands[0], set()).update(loaded.get(operation.arg, ()))
                    continue
                for at, operand in enumerate(operation.operands):
                    found.setdefault(operand, []).append((operation, at))
            leaving = {block.value, *block.handler_stack}
            for edge in block.edges:
                if edge.target < 0:
                    leaving.update(edge.values)
                else:
                    for merge, brought in zip(blocks[edge.target].merges, edge.values, strict=True):
                        merged.setdefault(brought, set()).add(merge)
            for each in leaving:
                found.setdefault(each, []).append((_ESCAPES, 0))
        return found, merged

    def is_self(self, fact: Fact) -> bool:
        """Whether a value is, or was reached from, what a method was called on."""
        return fact.number == 0 and fact.kind == PARAMETER and self._is_method()

    def _is_method(self) -> bool:
        scope, dot, _ = self.function.__code__.co_qualname.rpartition(".")
        return bool(dot) and not scope.endswith("<locals>")

    def own_class(self) -> type | None:
        """The class whose method the function is, where its name leads there."""
        *scopes, name = self.function.__code__.co_qualname.split(".")
        found: object = self.function.__globals__.get(scopes[0])
        for scope in scopes[1:]:
            found = vars(found).get(scope) if isinstance(found, type) else None
        return found if isinstance(found, type) and vars(found).get(name) is self.function else None

    def is_called(self, value: int) -> bool:
        """Whether a value is called somewhere."""
        return any(use.name in ("CALL", "CALL_EX") and at == 0 for use, at in self.of(value))

    def is_only_called(self, value: int) -> bool:
        """Whether a value is called, and nothing else is done with it."""
        return all(use.name in ("CALL", "CALL_EX") and at == 0 for use, at in self.of(value))

    def only_tries(self, value: int) -> bool:
        """Whether the results of calling a value are never used: it is called to see whether it raises."""
        uses = self.of(value)
        return bool(uses) and all(use.name == "CALL" and at == 0 and not self.of(use.result) for use, at in uses)

    def folded_away(self, value: int) -> bool:
        """Whether every use had a known result, such as os.environ["X"] or globals()["X"]."""
        uses = self.of(value)
        known, inlined = self.part.known, self.part.inlined
        return bool(uses) and all(use.result in known or id(use) in inlined for use, _ in uses)

    def only_hashes_by_code(self, value: int) -> bool:
        """Whether hash() is only asked of captured objects whose class computes it in code that is looked at."""
        arguments = [self.facts.of(use.operands[1]) for use, at in self.of(value) if len(use.operands) == 2 and at == 0]
        return len(arguments) == len(self.of(value)) and all(
            fact.kind == OBJECT and self._hashes_alone(static_attribute(type(fact.root), "__hash__"))
            for fact in arguments
        )

    def _hashes_alone(self, method: object) -> bool:
        """Whether a __hash__ is code that does not ask hash() itself."""
        if type(method) is not types.FunctionType:
            return False
        parts = resolve_function(method, Features())[0].parts
        return not any(value is hash for part in parts for value in part.known.values())

    def only_tells_apart(self, value: int) -> bool:
        """Whether addresses are only put into local sets and dicts, and looked for there: that is `is`, for many."""
        calls = [use for use, at in self.of(value) if use.name == "CALL" and at == 0 and len(use.operands) == 2]
        return len(calls) == len(self.of(value)) > 0 and all(self._is_only_a_key(call.result) for call in calls)

    def _is_only_a_key(self, value: int) -> bool:
        holders = []
        for use, at in self.of(value):
            if use.name == "CONTAINS_OP" and at == 0:
                holders.append(use.operands[1])
            elif (use.name, at) in _AS_KEY:
                holders.append(use.operands[at - 1])
            elif use.name == "CALL" and at == 1 and (holder := self._holder(use)) is not None:
                holders.append(holder)
            elif use.name != "BUILD_SET" or not self._guards_recursion():
                return False
        return all(self._keeps_keys_to_itself(holder) for holder in holders)

    def _guards_recursion(self) -> bool:
        """Whether this is a generated __repr__ that notes which objects are being shown, as long as they are."""
        return self.function.__code__.co_name == "__repr__" and any(
            map(mutators.is_transient, self.part.known.values())
        )

    def _holder(self, call: Operation) -> int | None:
        """The set or dict whose method is called with a key; None if the method might do more with it."""
        made = self.facts.maker(call.operands[0])
        if made is None or made.name != "LOAD_ATTR" or made.arg not in _KEY_METHODS:
            return None
        return made.operands[0]

    def _keeps_keys_to_itself(self, holder: int) -> bool:
        fact = self.facts.of(holder)
        if fact.kind == ATTRIBUTE and fact.owner is not None and fact.owner.kind == OBJECT:
            return mutators.is_transient(fact.owner.root)
        made = self.facts.maker(holder)
        if made is not None and made.name == "LOAD_SLOT":
            stored = self.facts.stored_in_slot(made.arg)
            return bool(stored) and all(self._keeps_keys_to_itself(value) for value in stored)
        if made is None or not self._makes_empty(made):
            return False
        for use, at in self.of(holder):
            if use.name == "CONTAINS_OP" and at == 1:
                continue
            if (
                use.name == "LOAD_ATTR"
                and use.arg in _KEY_METHODS
                and all(each == 0 for _, each in self.of(use.result))
            ):
                continue
            if use.name in ("BINARY_SUBSCR", "DELETE_SUBSCR") and at == 0:
                continue
            if use.name == "STORE_SUBSCR" and at == 1:
                continue
            return False
        return True

    def _makes_empty(self, made: Operation) -> bool:
        if made.name in ("BUILD_MAP", "BUILD_SET"):
            return not made.operands
        fact = self.facts.of(made.operands[0]) if made.name == "CALL" and len(made.operands) == 1 else None
        return fact is not None and fact.kind == OBJECT and (fact.root is set or fact.root is dict)

    def only_asked_for(self, value: int) -> bool:
        """Whether a class is only compared, or asked whether something is of it."""
        uses = self.of(value)
        return bool(uses) and all(
            use.name in ("IS_OP", "COMPARE_OP")
            or (use.name == "CALL" and at == 2 and not use.arg and self._asks_for_class(use.operands[0]))
            for use, at in uses
        )

    def _asks_for_class(self, callee: int) -> bool:
        fact = self.facts.of(callee)
        return fact.kind == OBJECT and (fact.root is isinstance or fact.root is issubclass)

    def only_called_well(self, value: int, condition: Condition) -> bool:
        """Whether a callable is only called, each time with what makes the call fine."""
        uses = self.of(value)
        return bool(uses) and all(use.name == "CALL" and at == 0 and self._is_met(use, condition) for use, at in uses)

    def _is_met(self, call: Operation, condition: Condition) -> bool:
        keywords: tuple[str, ...] = call.arg  # type: ignore[assignment]
        arguments = call.operands[1:]
        positional = arguments[: len(arguments) - len(keywords)]
        given = None
        if condition.position is not None and condition.position < len(positional):
            given = positional[condition.position]
        elif condition.keyword in keywords:
            given = arguments[len(positional) + keywords.index(condition.keyword)]
        present = given is not None and not self._may_be_none(self.facts.of(given))
        return present is condition.given

    def _may_be_none(self, fact: Fact) -> bool:
        """Whether a value is None, or a parameter that is None unless the caller says otherwise."""
        if fact == Fact(CONSTANT, None) or fact == Fact(OBJECT, None):
            return True
        function = self.function
        code, values = function.__code__, function.__defaults__ or ()
        if fact.kind != PARAMETER or self.part.nested:
            return False
        if fact.number < code.co_argcount:
            at = fact.number - (code.co_argcount - len(values))
            return at >= 0 and values[at] is None
        name = code.co_varnames[fact.number]
        return (function.__kwdefaults__ or {}).get(name, function) is None
