"""The relations of a plan by the numbers of their steps; parts of it, with others in the place of some.

In: the root relation of a plan, and its steps. Out: relations to be sent. Law: what is sent is a copy; the plan of the
program stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nectar.dialects.spark.incremental.messages import Relation, messages_in
from nectar.dialects.spark.relations import Step

_RELATION: Final = "spark.connect.Relation"
_COMMON: Final = frozenset({"spark.connect.RelationCommon", "spark.connect.ExpressionCommon"})


@dataclass(frozen=True, slots=True)
class Plan:
    """relations: by the number of the step, as the program has sent them."""

    steps: Sequence[Step]
    relations: tuple[Any, ...]

    @classmethod
    def of(cls, root: Any, steps: Sequence[Step]) -> Plan:
        """The plan that these are the steps of."""
        found: dict[int, Any] = {}
        pending = [(root, len(steps) - 1)]
        while pending:
            relation, number = pending.pop()
            found[number] = relation
            pending.extend(zip(_inputs(relation), steps[number].inputs, strict=True))
        return cls(steps, tuple(found[number] for number in range(len(steps))))

    def body(self, number: int) -> Any:
        """What a relation does."""
        relation = self.relations[number]
        return getattr(relation, relation.WhichOneof("rel_type"))

    def relation(self, number: int, instead: Mapping[int, Any]) -> Any:
        """A relation, in which others stand in the place of some below it, or of itself; they take over the plan ids."""
        made = Relation()
        made.CopyFrom(self.relations[number])
        pending = [(made, number)]
        while pending:
            relation, at = pending.pop()
            if at in instead:
                relation.CopyFrom(instead[at])
                relation.ClearField("common")
                if self.relations[at].common.HasField("plan_id"):
                    relation.common.plan_id = self.relations[at].common.plan_id
            else:
                pending.extend(zip(_inputs(relation), self.steps[at].inputs, strict=True))
        return made

    def below(self, number: int) -> set[int]:
        """A step and everything it is made from."""
        found, pending = {number}, [number]
        while pending:
            new = set(self.steps[pending.pop()].inputs) - found
            found |= new
            pending.extend(new)
        return found

    def why_not_replaced(self, numbers: Sequence[int]) -> str:
        """Why other relations cannot stand in the place of these; empty if they can."""
        inside = set().union(*map(self.below, numbers))
        outside = [self.relations[at] for at in range(len(self.steps)) if at not in inside]
        hidden = {
            self.relations[at].common.plan_id
            for at in inside.difference(numbers)
            if self.relations[at].common.HasField("plan_id")
        }
        words = list(_words_in(outside))
        if any(name == "plan_id" and value in hidden for name, value in words):
            return "what is above refers to a relation within it"
        # A name such as a.id may speak of an alias that the relation would no longer have.
        qualified = any(isinstance(value, str) and "." in value for name, value in words if name in _NAMING)
        if qualified and any(self.steps[at].kind == "subquery_alias" for at in inside):
            return "what is above may refer to an alias within it"
        return ""


_NAMING: Final = frozenset({"unparsed_identifier", "unparsed_target", "expression", "col_name", "column_names"})


def _inputs(relation: Any) -> list[Any]:
    """The relations that a relation is made from, in the order in which steps have them."""
    body = getattr(relation, relation.WhichOneof("rel_type"))
    return [each for each in messages_in(body) if each.DESCRIPTOR.full_name == _RELATION]


def _words_in(relations: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """All numbers and strings of relations with the names of their fields; what they are made from is left out."""
    pending = [getattr(relation, relation.WhichOneof("rel_type")) for relation in relations]
    while pending:
        message = pending.pop()
        for descriptor, value in message.ListFields():
            if descriptor.message_type is None:
                yield from ((descriptor.name, each) for each in (value if descriptor.is_repeated else (value,)))
        left_out = {_RELATION, *_COMMON}
        pending.extend(each for each in messages_in(message) if each.DESCRIPTOR.full_name not in left_out)
