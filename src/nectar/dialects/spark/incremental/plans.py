"""Relations of a plan by the numbers of their steps, with others in the place of some.

In: the steps of a plan. Out: relations to be sent. Law: what is sent is a copy; the plan stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nectar.dialects.spark.incremental.messages import Relation
from nectar.dialects.spark.messages import children_of
from nectar.dialects.spark.relations import Step

_RELATION: Final = "spark.connect.Relation"


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a plan, and relations that stand in the place of some, by the number of the step.

    known: results over all files; what is made of other files is not made from them.
    """

    steps: Sequence[Step]
    known: Mapping[int, Any]

    def body(self, number: int) -> Any:
        """What a relation does."""
        relation = self.steps[number].message
        return getattr(relation, relation.WhichOneof("rel_type"))

    def relation(self, number: int, instead: Mapping[int, Any]) -> Any:
        """A relation in which others stand in the place of some below it, or of itself; they take over the plan ids."""
        known = {at: each for at, each in self.known.items() if instead.keys().isdisjoint(self.below(at))}
        placed = {**known, **instead}
        made = Relation()
        made.CopyFrom(self.steps[number].message)
        pending = [(made, number)]
        while pending:
            relation, at = pending.pop()
            if at in placed:
                relation.CopyFrom(placed[at])
                relation.ClearField("common")
                common = self.steps[at].message.common
                if common.HasField("plan_id"):
                    relation.common.plan_id = common.plan_id
            else:
                pending.extend(zip(_inputs(relation), self.steps[at].inputs, strict=True))
        return made

    def below(self, number: int) -> range:
        """A step and everything it is made from."""
        return range(number - self.steps[number].size + 1, number + 1)


def _inputs(relation: Any) -> list[Any]:
    """The relations that a relation is made from, in the order in which steps have them."""
    kind = relation.WhichOneof("rel_type")
    body = getattr(relation, kind)
    if kind == "with_relations" and body.root.WhichOneof("rel_type") == "sql":  # a text is read together with them
        return list(body.references)
    return [each for each in children_of(body) if each.DESCRIPTOR.full_name == _RELATION]
