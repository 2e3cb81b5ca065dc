"""Computations made from parts: of rows, of steps that are done once more over the parts, of aggregates.

In: a node of a program. Out: Parts, or why it is computed as a whole. Law: what is made from parts is what the engine
gives over everything, rows in any order; where the order of rows is promised, in that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from nectar.dialects.spark.incremental.aggregates import (
    LAYOUT,
    Apart,
    NotMerged,
    probe_of,
    taken_apart,
    without_name,
)  # fmt: skip
from nectar.dialects.spark.incremental.files import Folders
from nectar.dialects.spark.incremental.messages import renamed
from nectar.dialects.spark.incremental.plans import Plan
from nectar.dialects.spark.incremental.reading import Stream
from nectar.dialects.spark.incremental.row_wise import why_not_row_wise
from nectar.dialects.spark.incremental.separable import Separation
from nectar.dialects.spark.incremental.server import NotPutTogether, Server
from nectar.dialects.spark.incremental.streams import cut_of
from nectar.dialects.spark.incremental.tables import as_expected, as_state, chosen, together, type_of
from nectar.dialects.spark.keyed import Keyed
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of

_MOST_OF_LIMIT: Final = 100_000  # rows of a limit that are worth keeping for each part
_GUARDED: Final = "a value that is no number is compared with others, which engines do in several ways"


class Parts(Protocol):
    """How a node is made from parts of its stream."""

    @property
    def stream(self) -> Stream:
        """What is cut."""

    @property
    def step(self) -> int:
        """The last step, or one of those that do the same."""

    @property
    def program(self) -> bytes:
        """What parts have in common, whatever they are of."""

    @property
    def are_states(self) -> bool:
        """Whether parts are kept beside the result of the node, or are such results."""

    def key(self, start: int, end: int, which: int = 0) -> bytes:
        """The key of a run of parts."""

    def part(self, reads: dict[int, Any]) -> Any:
        """The relation that gives the part that these reads give."""

    def taken(self, table: pa.Table) -> pa.Table:
        """A part as it is kept, of what its relation gave. Raises NotPutTogether if it cannot be merged."""

    def merged(self, parts: Sequence[pa.Table]) -> pa.Table:
        """One part made of several."""

    def finished(self, part: pa.Table) -> Any:
        """The relation that gives the result, of the part of everything."""


@dataclass(frozen=True, slots=True)
class RowParts:
    """Rows, which are results of the same program over some of the files.

    step: the last one. expected: the result without its rows. again: whether the last steps are done once more over the
    rows of the parts, such as a sort. are_states: they are kept for themselves, and not only as a result.
    """

    stream: Stream
    step: int
    expected: pa.Table
    again: bool
    are_states: bool

    @property
    def program(self) -> bytes:
        """Parts are found by it."""
        program = self.stream.keyed.program.nodes[self.stream.keyed.node_of[self.step]].program
        if not self.are_states:
            return program
        return digest_of(joined(f"rows {LAYOUT}", program, self.stream.shape))

    def key(self, start: int, end: int, which: int = 0) -> bytes:
        """The key of a run of parts; that of a result, if they are results."""
        key = self.stream.keyed.key_over(self.step, self.stream.cut.keys_of(start, end, which), which)
        return digest_of(joined("rows of", self.program, key)) if self.are_states else key

    def part(self, reads: dict[int, Any]) -> Any:
        """The last step over these reads."""
        return self.stream.plan.relation(self.step, reads)

    def taken(self, table: pa.Table) -> pa.Table:
        """Rows as the result has them."""
        return as_expected(table, self.expected)

    def merged(self, parts: Sequence[pa.Table]) -> pa.Table:
        """All rows; the last steps are done once more, if they have to be."""
        rows = together(parts)
        return self.taken(self.stream.server.run(self._over(self.stream.relation(rows)))) if self.again else rows

    def finished(self, part: pa.Table) -> Any:
        """The rows; the last steps are done once more over them, if they have to be."""
        return self.stream.relation(part)

    def why_not(self) -> str:
        """Why the last steps cannot be done over what they give; empty if they can."""
        if not self.again:
            return ""
        try:
            same = self.stream.server.schema(self._over(self.stream.relation(self.expected))) == type_of(self.expected)
        except Exception as error:  # whatever the server says of it: the plan as it was written has no such mistake
            return f"its last steps need more than they give: {error}"
        return "" if same else "its last steps over the parts give other columns"

    def _over(self, rows: Any) -> Any:
        return self.stream.plan.relation(self.step, {self.stream.step: rows})


@dataclass(frozen=True, slots=True)
class StateParts:
    """Aggregates. step: whose. names: the columns of the result."""

    stream: Stream
    step: int
    names: tuple[str, ...]
    apart: Apart
    are_states: bool = True

    @property
    def program(self) -> bytes:
        """Parts are found by it."""
        keyed = self.stream.keyed
        program = keyed.program.nodes[keyed.node_of[self.step]].program
        return digest_of(joined(f"state {LAYOUT}", program, self.stream.shape))

    def key(self, start: int, end: int, which: int = 0) -> bytes:
        """The key of the state of a run of parts."""
        return digest_of(joined("state of", self.program, self.stream.key(start, end, which)))

    def part(self, reads: dict[int, Any]) -> Any:
        """The state of the rows that these reads give."""
        return self.apart.state_of(self.stream.plan.relation(self.stream.step, reads))

    def taken(self, table: pa.Table) -> pa.Table:
        """A state whose columns may all be null."""
        if any(True in table.column(name).unique().to_pylist() for name in self.apart.guards):
            raise NotPutTogether(_GUARDED)
        return as_state(table)

    def merged(self, parts: Sequence[pa.Table]) -> pa.Table:
        """The state of all rows that these are states of."""
        states = together(parts)
        merged = as_state(self.stream.server.run(self.apart.merged_of(self.stream.relation(states))))
        together([states.slice(0, 0), merged])  # otherwise the next would not be merged with it
        return merged

    def finished_here(self, part: pa.Table) -> pa.Table | None:
        """The aggregates, where they are nothing but columns of the state; None if the engine has to make them."""
        found = [each.unresolved_attribute.unparsed_identifier.strip("`") for each in self.apart.finishing]
        return None if "" in found else chosen(part, [*self.apart.key_names, *found], self.names)

    def finished(self, part: pa.Table) -> Any:
        """The aggregates."""
        return renamed(self.apart.finished_of(self.stream.relation(part)), self.names)


class Rules:
    """How the nodes of one query are made from parts."""

    def __init__(self, keyed: Keyed, plan: Plan, server: Server, folders: Folders, exact_floats: bool) -> None:
        self._keyed, self._plan, self._server, self._folders, self._exact = keyed, plan, server, folders, exact_floats
        self._separation = Separation(keyed, plan)
        self._wholes: dict[int, pa.Table] = {}

    def place_of(self, step: int) -> int:
        """The step whose place the result of a step takes in a plan: steps that order rows are done over it again."""
        while self._plan.steps[step].kind in ("deduplicate", "limit", "sort"):
            (step,) = self._plan.steps[step].inputs
        return step

    def parts_of(self, node: int, step: int) -> RowParts | StateParts | str:
        """How a node, which stands at a step, is made from parts; or why it is computed as a whole."""
        kind = self._plan.steps[step].kind
        is_root = node == self._keyed.program.root
        grouped = _grouped(self._plan, step)
        if grouped is not None:
            keys, aggregates = grouped
            return self._states(step, keys, aggregates)
        if kind == "deduplicate":
            return self._rows(step, [step]) if self._plan.body(step).all_columns_as_keys else "which rows stay is open"
        if kind == "limit":
            return self._top(step)
        if not is_root:
            return f"{kind} has no parts of its own"
        return self._rows(step, [step] if kind == "sort" else [], are_states=False)

    def _top(self, step: int) -> RowParts | str:
        (below,) = self._plan.steps[step].inputs
        if self._plan.steps[below].kind != "sort" or not self._plan.body(below).is_global:
            return "which rows a limit takes is open"
        if self._plan.body(step).limit > _MOST_OF_LIMIT:
            return "a limit of so many rows is not kept for each part"
        return self._rows(step, [step, below])

    def _rows(self, step: int, again: Sequence[int], *, are_states: bool = True) -> RowParts | str:
        """again: the last steps, from the top, which are done once more over the parts.

        are_states: whether parts are to be kept beside results; they have to be where results are known by more than
        the files that parts are known by.
        """
        below = self._plan.steps[again[-1]].inputs[0] if again else step
        why_not = next(filter(None, (why_not_row_wise(self._plan.body(each)) for each in again)), "")
        stream = why_not or self._stream(below)
        if isinstance(stream, str):
            return stream
        beside = are_states or stream.cut.has_tables
        parts = RowParts(stream, step, self._server.empty(self._plan.relation(step, {})), bool(again), beside)
        return parts.why_not() or parts

    def _states(self, step: int, keys: Sequence[Any], aggregates: Sequence[Any]) -> StateParts | str:
        rows = self._plan.steps[step].inputs[0]
        why_not = next(filter(None, map(why_not_row_wise, keys)), "")
        stream = why_not or self._stream(rows)
        if isinstance(stream, str):
            return stream
        try:
            probe, calls = probe_of(self._plan.relation(rows, {}), keys, aggregates)
            types = [field.dataType for field in self._server.schema(probe).fields]
            if len(types) != len(keys) + len(calls):
                return "the engine leaves out what it groups by"
            apart = taken_apart(keys, aggregates, calls, types)
        except NotMerged as reason:
            return str(reason)
        if self._exact and apart.sums:
            return "sums of floats depend on how files are cut, and exact_floats is set"
        names = tuple(self._server.schema(self._plan.relation(step, {})).names)
        if len(names) != len(keys) + len(aggregates):
            return "the engine leaves out what it groups by, or gives more"
        return StateParts(stream, step, names, apart)

    def _stream(self, step: int) -> Stream | str:
        found = self._separation.of(step)
        if isinstance(found, str):
            return found
        cut = cut_of(self._keyed, self._separation.holdings_of(found))
        if cut.count < 2:
            return "it reads one file"
        wholes = {node: self._whole(node, read) for read, node in cut.reads.items()}
        return Stream(self._keyed, self._plan, step, cut, wholes, self._server, self._folders)

    def _whole(self, node: int, read: int) -> pa.Table:
        """What a read gives over all its files, without rows."""
        if node not in self._wholes:
            self._wholes[node] = self._server.empty(self._plan.relation(read, {}))
        return self._wholes[node]


def _grouped(plan: Plan, step: int) -> tuple[list[Any], list[Any]] | None:
    """What a step groups by, and its aggregates; None if it has none."""
    kind, body = plan.steps[step].kind, plan.body(step)
    if kind == "project":  # a selection of aggregates, of all rows
        return ([], list(body.expressions)) if why_not_row_wise(body) else None
    if kind != "aggregate" or body.group_type != body.GROUP_TYPE_GROUPBY or body.HasField("pivot"):
        return None
    keys = [without_name(key) for key in body.grouping_expressions]
    if any(key.WhichOneof("expr_type") == "literal" for key in keys):  # it may stand for a position
        return None
    return keys, list(body.aggregate_expressions)
