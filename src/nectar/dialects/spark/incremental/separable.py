"""Which relations can be computed file by file.

In: the steps of a plan. Out: for each step either a Separable, or why it is none. Law: the rows of a separable step
over the parts, taken together, are its rows over everything. In which order rows come is promised by no read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql.connect.proto import relations_pb2

from nectar.dialects.spark.incremental.delta import version_of
from nectar.dialects.spark.incremental.files import Files, Holding
from nectar.dialects.spark.incremental.plans import Plan
from nectar.dialects.spark.incremental.row_wise import why_not_row_wise
from nectar.dialects.spark.keyed import Keyed
from nectar.rewrite.consistency import run_dependent

Separable = frozenset[int]  # the reads that are cut, by the numbers of their steps

_ROW_BY_ROW: Final = frozenset({
    "project", "filter", "with_columns", "with_columns_renamed", "drop", "to_df", "to_schema", "subquery_alias", "hint",
    "unpivot", "fill_na", "drop_na", "replace", "repartition", "repartition_by_expression",
})  # fmt: skip
_Join = relations_pb2.Join
_LEFT_IS_CUT: Final = frozenset({
    _Join.JOIN_TYPE_INNER, _Join.JOIN_TYPE_LEFT_OUTER, _Join.JOIN_TYPE_LEFT_SEMI, _Join.JOIN_TYPE_LEFT_ANTI,
    _Join.JOIN_TYPE_CROSS,
})  # fmt: skip
_RIGHT_IS_CUT: Final = frozenset({_Join.JOIN_TYPE_INNER, _Join.JOIN_TYPE_RIGHT_OUTER, _Join.JOIN_TYPE_CROSS})


class Separation:
    """The steps of a plan, as far as they were asked for."""

    def __init__(self, keyed: Keyed, plan: Plan) -> None:
        self._keyed, self._plan = keyed, plan
        self._differs = run_dependent(keyed.program)[1]
        self._found: list[Separable | str] = []
        self._holdings: dict[int, Holding] = {}

    def holdings_of(self, reads: Separable) -> dict[int, Holding]:
        """What reads that are cut read, file by file."""
        return {read: self._holdings[read] for read in reads}

    def of(self, number: int) -> Separable | str:
        """A step as a separable one, or why it is none."""
        while len(self._found) <= number:
            self._found.append(self._examined(len(self._found)))
        return self._found[number]

    def _examined(self, number: int) -> Separable | str:
        kind = self._plan.steps[number].kind
        if kind == "read":
            return self._read(number)
        if kind == "join":
            return self._join(number)
        if kind == "set_op":
            return self._union(number)
        if kind not in _ROW_BY_ROW:
            return f"{kind} is not computed row by row"
        below = self._found[self._plan.steps[number].inputs[0]]
        if isinstance(below, str):
            return below
        return why_not_row_wise(self._plan.body(number)) or below

    def _read(self, number: int) -> Separable | str:
        read = self._plan.steps[number].read
        if number not in self._keyed.reads or read.WhichOneof("read_type") != "data_source":
            return "its files are not known"
        source, identities = self._keyed.reads[number]
        if any("=" in listing.root for listing in source.listings):
            return "its path may be part of its rows"
        holding = version_of(read, source, identities) if source.is_table else Files(source, identities)
        if isinstance(holding, str):
            return holding
        self._holdings[number] = holding
        return frozenset({number})

    def _union(self, number: int) -> Separable | str:
        operation = self._plan.body(number)
        if operation.set_op_type != operation.SET_OP_TYPE_UNION or not operation.is_all:
            return "rows of different parts may be the same"
        sides = [self._found[each] for each in self._plan.steps[number].inputs]
        why_not = next((side for side in sides if isinstance(side, str)), "")
        return why_not or frozenset().union(*(side for side in sides if not isinstance(side, str)))

    def _join(self, number: int) -> Separable | str:
        join, (left, right) = self._plan.body(number), self._plan.steps[number].inputs
        why_not = why_not_row_wise(join)
        if why_not:
            return why_not
        allowed = [(left, right)] if join.join_type in _LEFT_IS_CUT else []
        allowed += [(right, left)] if join.join_type in _RIGHT_IS_CUT else []
        sides = [(cut, other) for each, other in allowed if not isinstance(cut := self._found[each], str)]
        if not sides:
            return "a join below it needs all rows of what grows"
        cut, other = max(sides, key=lambda side: self._likely_to_grow(side[0]))
        if self._differs[self._keyed.node_of[other]]:
            return "it is joined with what two runs may give differently"
        if self._files(cut) & self._files(self._keyed.reads.keys() & set(self._plan.below(other))):
            return "it is joined with the very files that grow"
        return cut

    def _likely_to_grow(self, reads: Separable) -> tuple[bool, int]:
        """Several files before one, and much before little."""
        identities = [identity for read in reads for identity in self._keyed.reads[read][1]]
        return len(identities) > len(reads), sum(identity.size or 0 for identity in identities)

    def _files(self, reads: Iterable[int]) -> set[str]:
        return {file for read in reads for file in self._keyed.reads[read][0].files}
