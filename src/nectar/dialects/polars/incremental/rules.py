"""Which rule makes a node from parts: the first that fits."""

from __future__ import annotations

from dataclasses import dataclass

from nectar.catalog.service import Catalog
from nectar.dialects.polars.incremental.cuts import Keep, Run, Streams
from nectar.dialects.polars.incremental.extents import Growth
from nectar.dialects.polars.incremental.groups import state_parts
from nectar.dialects.polars.incremental.parts import Parts
from nectar.dialects.polars.incremental.rows import RowParts, row_parts
from nectar.dialects.polars.incremental.separable import Separation
from nectar.dialects.polars.keying import Keyed


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for one query: they share what was found out about its streams."""

    keyed: Keyed
    separation: Separation
    streams: Streams
    exact_floats: bool

    def rows_of(self, node: int) -> RowParts | str:
        """How a node is made from rows of parts, or why it is not."""
        if self.keyed.program.nodes[node].refusal:
            return self.keyed.program.nodes[node].refusal
        if self.keyed.program.nodes[node].is_input:
            return "it is a source"
        return row_parts(self.keyed, node, self.separation, self.streams)

    def parts_of(self, node: int) -> Parts | str:
        """How a node is made from parts, or why it is computed as a whole."""
        rows = self.rows_of(node)
        if not isinstance(rows, str) or self.keyed.program.nodes[node].refusal:
            return rows
        states = state_parts(self.keyed, node, self.separation, self.streams, self.exact_floats)
        aggregates = self.keyed.plan.steps[self.keyed.step_of[node]].kind == "GroupBy"
        return states if aggregates or not isinstance(states, str) else rows


def rules_for(
    keyed: Keyed, catalog: Catalog, exact_floats: bool, run: Run | None = None, keep: Keep | None = None,
    growth: Growth | None = None,
) -> Rules:  # fmt: skip
    """The rules for a query. run, keep, growth: how to find out more about its streams, and to remember it."""
    streams = Streams(keyed, catalog, run, keep, growth)
    return Rules(keyed, Separation(keyed, streams.alignable, streams.separates), streams, exact_floats)


def rules_for_one_stream(keyed: Keyed, catalog: Catalog, exact_floats: bool) -> Rules:
    """The rules as far as one stream is cut at a time, for which no file has to be looked at."""
    return Rules(keyed, Separation(keyed, None), Streams(keyed, catalog), exact_floats)
