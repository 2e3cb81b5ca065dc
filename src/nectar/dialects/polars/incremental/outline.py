"""What would be put together of a query, and from what; nothing is run."""

from __future__ import annotations

from collections.abc import Container

from msgspec import Struct

from nectar.catalog.service import Catalog
from nectar.dialects.polars.incremental.advance import covering_of
from nectar.dialects.polars.incremental.extension import Extension, runs_of
from nectar.dialects.polars.incremental.parts import Parts
from nectar.dialects.polars.incremental.rectangles import Rectangle
from nectar.dialects.polars.incremental.rules import Rules
from nectar.quantities import show_duration
from nectar.rewrite.cost import Estimate


class Outline(Struct, frozen=True):
    """How a node would be put together. known, files: how many of its files are known. saved: seconds, if told."""

    known: int
    files: int
    estimate: Estimate | None = None

    @property
    def saved(self) -> float:
        """Seconds that it is thought to save."""
        return 0.0 if self.estimate is None else max(self.estimate.whole - self.estimate.segments, 0.0)

    def __str__(self) -> str:
        told = f"{self.known:,} of {self.files:,} file{'s' if self.files > 1 else ''} known"
        if self.estimate is None:
            return told
        whole, segments = show_duration(self.estimate.whole), show_duration(self.estimate.segments)
        return f"{told}; about {segments}, as a whole about {whole}"


def outlines(rules: Rules, growing: Container[int], known: Container[int]) -> dict[int, Outline]:
    """The largest nodes that would be put together. growing: those that were asked for before; known: not needed."""
    found: dict[int, Outline] = {}
    seen: set[int] = set()
    pending = [rules.keyed.program.root]
    while pending:
        number = pending.pop()
        if number in seen or number in known:
            continue
        seen.add(number)
        outline = _outline(rules.parts_of(number), rules.catalog) if number in growing else None
        if outline is None:
            pending.extend(rules.keyed.program.nodes[number].inputs)
        else:
            found[number] = outline
    return found


def growth(rules: Rules) -> str:
    """What becomes of a query when files are added to its streams."""
    reason = ""
    pending = [rules.keyed.program.root]
    while pending:  # from the result downwards, as far as there is one way
        number = pending.pop()
        parts = rules.parts_of(number)
        if not isinstance(parts, str):
            text = rules.keyed.program.nodes[number].text
            return "only what is new is computed" if not reason else f"only what is new is computed, up to {text}"
        reason = reason or parts
        inputs = rules.keyed.program.nodes[number].inputs
        pending = list(inputs) if len(inputs) == 1 else []
    return f"everything is computed again: {reason}"


def _outline(parts: Parts | str, catalog: Catalog) -> Outline | None:
    if isinstance(parts, str):
        return None
    files = sum(map(len, parts.cut.extents.values()))
    entries = catalog.inquire([parts.program])[parts.program]
    if isinstance(parts, Rectangle):
        sides = next(((one, other) for one, other, _ in parts.known(entries)), None)
        return None if sides is None else Outline(sum(end - start for start, end in sides), files)
    if isinstance(parts, Extension):
        longest = max((end - start for start, end, _ in runs_of(parts, entries)), default=0)
        return Outline(longest, files) if longest else None
    covering = covering_of(parts, catalog)
    if not covering.known or not covering.is_worth_it:
        return None
    spans = [parts.cut.spans_of(run.start, run.end) for run in covering.known]
    return Outline(sum(span.count for each in spans for span in each), files, covering.estimate)
