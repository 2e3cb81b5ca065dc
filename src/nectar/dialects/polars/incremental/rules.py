"""Which rule makes a node from parts: the first that fits."""

from __future__ import annotations

from msgspec import Struct

from nectar.catalog.service import Catalog
from nectar.dialects.polars.incremental.cuts import Keep, Run, Streams
from nectar.dialects.polars.incremental.extents import Growth
from nectar.dialects.polars.incremental.groups import StateParts, state_parts
from nectar.dialects.polars.incremental.parts import Parts
from nectar.dialects.polars.incremental.rectangles import rectangle_of
from nectar.dialects.polars.incremental.rows import RowParts, row_parts
from nectar.dialects.polars.incremental.separable import Separation
from nectar.dialects.polars.incremental.touched import touched_parts
from nectar.dialects.polars.incremental.windows import window_parts
from nectar.dialects.polars.keying import Keyed
from nectar.rewrite.covering import LATEST


class Rules(Struct, frozen=True):
    """The rules for one query: they share what was found out about its streams."""

    keyed: Keyed
    catalog: Catalog
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

    def results_of(self, node: int) -> Parts | str:
        """How results of a node over some files serve the same node over more; states are left out."""
        rows = self.rows_of(node)
        if not isinstance(rows, str):
            return self._of_two(rows)
        if self.keyed.program.nodes[node].refusal:
            return rows
        for rule in (touched_parts, window_parts):
            found = rule(self.keyed, node, self.separation, self.streams, self.exact_floats)
            if not isinstance(found, str) and not found.are_states:
                return found
        return rows

    def parts_of(self, node: int) -> Parts | str:
        """How a node is made from parts, or why it is computed as a whole."""
        rows = self.rows_of(node)
        if self.keyed.program.nodes[node].refusal:
            return self.keyed.program.nodes[node].refusal
        if not isinstance(rows, str):
            return self._of_two(rows)
        states = state_parts(self.keyed, node, self.separation, self.streams, self.exact_floats)
        aggregates = self.keyed.plan.steps[self.keyed.step_of[node]].kind == "GroupBy"
        if not isinstance(states, str):
            return self._of_two(states)
        for rule in (touched_parts, window_parts):
            found = rule(self.keyed, node, self.separation, self.streams, self.exact_floats)
            if not isinstance(found, str):
                return found
        return states if aggregates else rows

    def _of_two(self, parts: RowParts | StateParts) -> Parts:
        """The same, or as a join of two streams, if that is what is known of it, or nothing is known yet."""
        rectangle = rectangle_of(parts, self.keyed, self.separation, self.streams)
        if rectangle is None:
            return parts
        entries = self.catalog.inquire([parts.program], LATEST)[parts.program]
        return rectangle if not entries or any(rectangle.known(entries)) else parts


def rules_for(
    keyed: Keyed, catalog: Catalog, exact_floats: bool, run: Run | None = None, keep: Keep | None = None,
    growth: Growth | None = None,
) -> Rules:  # fmt: skip
    """The rules for a query. run, keep, growth: how to find out more about its streams, and to remember it."""
    streams = Streams(keyed, catalog, run, keep, growth)
    return Rules(keyed, catalog, Separation(keyed, streams.alignable, streams.separates), streams, exact_floats)


def rules_for_one_stream(keyed: Keyed, catalog: Catalog, exact_floats: bool) -> Rules:
    """The rules as far as one stream is cut at a time, for which no file has to be looked at."""
    return Rules(keyed, catalog, Separation(keyed, None), Streams(keyed, catalog), exact_floats)
