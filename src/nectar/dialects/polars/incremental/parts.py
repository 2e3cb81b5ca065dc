"""A computation made from parts: what the rules give, and what putting together needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import polars as pl

from nectar.dialects.polars.incremental.cuts import Cut
from nectar.dialects.polars.plan import Plan
from nectar.dialects.polars.scans import segment

Sources = Mapping[int, pl.LazyFrame]  # what stands in for the results of steps


class Parts(Protocol):
    """How a node is made from parts of its streams."""

    @property
    def node(self) -> int:
        """The node."""

    @property
    def cut(self) -> Cut:
        """Its streams, and where they are cut."""

    @property
    def rows(self) -> int:
        """The step whose rows a part is made of."""

    @property
    def program(self) -> bytes:
        """What parts have in common, whatever they are of."""

    @property
    def are_states(self) -> bool:
        """Whether parts are no results of the node, but states: merged, and finished in the end."""

    def key(self, start: int, end: int, which: int = 0) -> bytes:
        """The key of a run of parts."""

    def part(self, pieces: Sequence[Sources]) -> pl.LazyFrame:
        """The part over the rows that come from these sources, one after the other."""

    def merged(self, parts: Sequence[pl.DataFrame]) -> pl.LazyFrame:
        """One part made of several, which stand in the order of the streams."""

    def finished(self, part: pl.DataFrame) -> pl.LazyFrame:
        """The result, of the part of everything."""


def scans_of(plan: Plan, cut: Cut, start: int, end: int) -> dict[int, pl.LazyFrame] | None:
    """Sources that read a run of parts of the streams; None if their files cannot be read alone."""
    found: dict[int, pl.LazyFrame] = {}
    for scan in cut.scans:
        files = cut.files_of(scan, start, end)
        frame = segment(plan, scan, files or [cut.extents[scan][0].path], without_rows=not files)
        if frame is None:
            return None
        found[scan] = frame
    return found


def way_of(plan: Plan, scans: Sequence[int], number: int) -> set[int]:
    """The steps between scans and a step: what is known of them is of everything, and not of a part."""
    way = set(scans)
    for at in range(min(scans), number + 1):
        if not way.isdisjoint(plan.steps[at].inputs):
            way.add(at)
    return way
