"""Rows: results of parts, one after the other; and steps that are done once more over them.

Filters, selections, joins and whatever else is separable need nothing more. A sort, a head or a tail, and the removal
of duplicates, as the last steps, are done over each part, and again over what the parts gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl
from msgspec import Struct

from nectar.dialects.polars.elementwise import is_elementwise
from nectar.dialects.polars.incremental.cuts import Cut, Streams
from nectar.dialects.polars.incremental.parts import Sources
from nectar.dialects.polars.incremental.separable import Separation
from nectar.dialects.polars.keying import Keyed, key_over
from nectar.dialects.polars.plan import Plan, Step
from nectar.dialects.polars.stored import StoredFrame

_KEPT_OF_DUPLICATES: Final = frozenset({"First", "Last", "Any"})


class RowParts(Struct, frozen=True):
    """Rows of streams. closing: how many of the last steps are done again over the parts."""

    keyed: Keyed
    node: int
    cut: Cut
    closing: int
    are_states: bool = False

    @property
    def rows(self) -> int:
        """The step whose rows a part is made of."""
        number = self.step
        for _ in range(self.closing):
            (number,) = self.keyed.plan.steps[number].inputs
        return number

    @property
    def step(self) -> int:
        """The last step."""
        return self.keyed.step_of[self.node]

    @property
    def program(self) -> bytes:
        """Parts are results of the same program as the whole."""
        return self.keyed.program.nodes[self.node].program

    def key(self, start: int, end: int, which: int = 0) -> bytes:
        """The key that the node has over a run of parts."""
        return key_over(self.keyed, self.step, self.cut.names_of(start, end, which), which)

    def part(self, pieces: Sequence[Sources]) -> pl.LazyFrame:
        """The rows that come from these sources; the closing steps are done over each."""
        frames = [self.keyed.plan.frame(self.step, each) for each in pieces]
        return frames[0] if len(frames) == 1 else pl.concat(frames)

    def merged(self, parts: Sequence[pl.DataFrame]) -> pl.LazyFrame:
        """One after the other, and the closing steps once more."""
        together = pl.concat(parts) if len(parts) > 1 else parts[0]
        if not self.closing:
            return together.lazy()
        numbers = _row_index(self.keyed.plan.steps[self.step])
        if numbers is not None:  # rows are numbered anew
            together = together.drop(numbers)
        return self.keyed.plan.frame(self.step, {self.rows: StoredFrame.of(together).lazy()})

    def finished(self, part: pl.DataFrame) -> pl.LazyFrame:
        """Nothing is left to be done."""
        return part.lazy()


def row_parts(keyed: Keyed, node: int, separation: Separation, streams: Streams) -> RowParts | str:
    """A node as rows that can be computed in parts, or why it is none."""
    plan, number = keyed.plan, keyed.step_of[node]
    closing = _closing(plan, number)
    if closing is None:
        return _why_whole(plan.steps[number])
    below = number
    for _ in range(closing):
        (below,) = plan.steps[below].inputs
    found = separation.of(below)
    if isinstance(found, str):
        return found
    if not found.ordered:
        return "rows of parts, one after the other, would stand in another order"
    if plan.steps[number].kind == "Scan":
        return "it is a scan"
    cut = streams.cut(found.scans, found.aligned, found.in_turn)
    return "its streams cannot be cut together" if cut is None else RowParts(keyed, node, cut, closing)


def _closing(plan: Plan, number: int) -> int | None:
    """How many steps, this one the last, are done again over parts; None if that would give something else."""
    step = plan.steps[number]
    if step.kind == "Sort":
        return 1 if _is_plain_sort(step) else None
    if step.kind == "Distinct":
        options = step.body["options"]
        plain = all(map(is_elementwise, options["subset"] or ()))
        return 1 if plain and options["keep_strategy"] in _KEPT_OF_DUPLICATES else None
    if _row_index(step) is not None:
        return 1
    if step.kind == "Slice":
        if not _is_from_an_end(step):
            return None
        below = plan.steps[step.inputs[0]]
        return 2 if below.kind == "Sort" and _is_plain_sort(below) else 1
    return 0


def _why_whole(step: Step) -> str:
    """Why a last step cannot be done over parts and again over what they gave."""
    if step.kind == "Slice":
        return "which rows a slice from the middle takes depends on how many stand before it"
    if step.kind == "Distinct" and step.body["options"]["keep_strategy"] == "None":
        return "a row that has no duplicate in its part may have one in another, and parts do not keep those they drop"
    return f"{step.kind.lower()} needs all rows at once"


def _row_index(step: Step) -> str | None:
    """The column of numbers that a step adds; None if it adds none."""
    function = step.body["function"] if step.kind == "MapFunction" else None
    return str(function["RowIndex"]["name"]) if isinstance(function, dict) and "RowIndex" in function else None


def _is_plain_sort(step: Step) -> bool:
    return step.body.get("slice") is None and all(map(is_elementwise, step.body["by_column"]))


def _is_from_an_end(step: Step) -> bool:
    """Whether a slice is a head or a tail: then it is one of the heads, or tails, of the parts."""
    offset, length = step.body["offset"], step.body["len"]
    return bool(offset == 0 or (offset < 0 and length is not None and length == -offset))
