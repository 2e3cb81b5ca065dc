"""Windows over a sorted stream: those that were complete stay as they are (`group_by_dynamic`, `rolling`).

A window is complete if everything new lies behind it. The others, at the end of what is known, are computed again from
the files that reach into them. Law: no window is cut, and where windows begin does not depend on the first row. So
windows of `group_by_dynamic` must not overlap and stand on a grid of their own, and those of `rolling` look back.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import polars as pl
from msgspec import Struct

from nectar.dialects.polars.behaviour import depends_on
from nectar.dialects.polars.incremental.cuts import Cut, Streams
from nectar.dialects.polars.incremental.extension import CannotBeExtended, Known, Reading
from nectar.dialects.polars.incremental.grouplocal import is_group_local
from nectar.dialects.polars.incremental.parts import Sources
from nectar.dialects.polars.incremental.separable import Origin, Separable, Separation
from nectar.dialects.polars.keying import Keyed, key_over
from nectar.dialects.polars.plan import Plan, Step
from nectar.rewrite.alignment import Range

_KEEP_ORDER: Final = frozenset({"Filter", "Select", "HStack", "Scan"})
_LONGEST_MONTH: Final = 31
_WIDTHS: Final = ("months", "weeks", "days", "nsecs")


class Windows(Struct, frozen=True):
    """What a step says of its windows. look_back: no window that has a row begins further before it."""

    index: str
    look_back: int | timedelta
    labelled_by_begin: bool


class WindowParts(Struct, frozen=True):
    """Aggregates of windows over one sorted stream. ranges: of its files, by the column that orders it."""

    keyed: Keyed
    node: int
    cut: Cut
    windows: Windows
    keys: tuple[str, ...]
    ranges: tuple[Range, ...]
    are_states: bool = False
    from_start: bool = True

    @property
    def rows(self) -> int:
        """The step whose rows are in the windows."""
        return self.keyed.plan.steps[self.step].inputs[0]

    @property
    def step(self) -> int:
        """The step that makes the windows."""
        return self.keyed.step_of[self.node]

    @property
    def program(self) -> bytes:
        """What is known are results of the node over other files."""
        return self.keyed.program.nodes[self.node].program

    def key(self, start: int, end: int, which: int = 0) -> bytes:
        """The key that the node has over a run of parts."""
        return key_over(self.keyed, self.step, self.cut.names_of(start, end, which), which)

    def part(self, pieces: Sequence[Sources]) -> pl.LazyFrame:
        """The windows over the rows that come from these sources."""
        (sources,) = pieces
        return self.keyed.plan.frame(self.step, sources)

    def merged(self, parts: Sequence[pl.DataFrame]) -> pl.LazyFrame:
        """Windows of parts tell nothing of those that reach into two."""
        raise CannotBeExtended

    def finished(self, part: pl.DataFrame) -> pl.LazyFrame:
        """Nothing is left to be done."""
        return part.lazy()

    def extended(self, known: Known, reading: Reading) -> pl.DataFrame | None:
        """Complete windows, and behind them those that are computed again."""
        index, new = self.windows.index, self.ranges[known.end][0]
        reached = new - self.windows.look_back
        first = next(at for at, (_, largest) in enumerate(self.ranges) if largest >= reached)
        again = reading.over(self.step, first, self.cut.count, pl.col(index) >= reached)
        open_from = reached if self.windows.labelled_by_begin else new
        complete = known.frame.filter(pl.col(index) < open_from)
        both = pl.concat([complete, reading.run(again.filter(pl.col(index) >= open_from))])
        if not self.keys:
            return both
        # Groups stand in the order of their keys; where nulls stand depends on their types.
        if sum(both.select(self.keys).null_count().row(0)):
            return None
        return both.sort(self.keys, maintain_order=True)


def window_parts(
    keyed: Keyed, node: int, separation: Separation, streams: Streams, exact_floats: bool
) -> WindowParts | str:
    """A node as windows over a sorted stream, or why it is none."""
    plan, step = keyed.plan, keyed.plan.steps[keyed.step_of[node]]
    windows = _windows(step) if step.kind == "GroupBy" else "it has no windows"
    if isinstance(windows, str):
        return windows
    if step.body["apply"] is not None or step.body["options"]["slice"] or step.body.get("predicates"):
        return "its windows are handed to a function, or only some of them are asked for"
    why_not = _not_alone(plan, step, exact_floats, keyed.step_of[node])
    below = separation.of(step.inputs[0])
    if why_not or isinstance(below, str):
        return why_not or str(below)
    origin = _origin(plan, step, below, windows)
    ranges = None if origin is None else streams.sorted_ranges(origin)
    cut = streams.cut(below.scans, frozenset())
    if ranges is None or cut is None:
        return "its stream is not known to be sorted by what its windows are over"
    keys = tuple(str(key["Column"]) for key in step.body["keys"])
    return WindowParts(keyed, node, cut, windows, keys, tuple(ranges))


def _windows(step: Step) -> Windows | str:
    """The windows of a step, or why some that are complete might change."""
    dynamic, rolling = step.body["options"].get("dynamic"), step.body["options"].get("rolling")
    if rolling:
        if rolling["offset"] != {**rolling["period"], "negative": True}:
            return "its windows do not end where their rows are"
        return Windows(rolling["index_column"], _width(rolling["period"]), False)
    if not dynamic:
        return "it has no windows"
    if dynamic["period"] != dynamic["every"]:
        return "its windows overlap, or leave rows out"
    if dynamic["closed_window"] != "Left" or dynamic["start_by"] != "WindowBound":
        return "where its windows begin depends on the first row"
    moved = any(dynamic["offset"][width] for width in _WIDTHS)
    if moved and dynamic["every"]["months"]:
        return "where its windows begin depends on the first row"  # months are added to it, and differ in length
    if dynamic["offset"]["months"] or dynamic["label"] not in ("Left", "Right"):
        return "its windows are not known by their beginnings or ends"
    return Windows(dynamic["index_column"], _width(dynamic["every"]), dynamic["label"] == "Left")


def _width(duration: dict[str, Any]) -> int | timedelta:
    """How long a window is at most."""
    if duration["parsed_int"]:
        return int(duration["nsecs"])
    days = duration["months"] * _LONGEST_MONTH + duration["weeks"] * 7 + duration["days"]
    return timedelta(days=days + 1, microseconds=duration["nsecs"] // 1000 + 1)


def _not_alone(plan: Plan, step: Step, exact_floats: bool, number: int) -> str:
    """Why windows cannot be computed one by one; empty if they can."""
    if not all(isinstance(key, dict) and set(key) == {"Column"} for key in step.body["keys"]):
        return "what it groups by is not computed row by row"
    types = plan.frame(step.inputs[0]).collect_schema()
    if any(not (types[key["Column"]].is_integer() or types[key["Column"]] == pl.String) for key in step.body["keys"]):
        return "it groups by values whose order is not known"
    if not all(map(is_group_local, step.body["aggs"])):
        return "one of its aggregates may look at other windows"
    inexact = depends_on(step.body["aggs"])[1]
    slides = bool(step.body["options"].get("rolling"))
    # What slides over rows adds and takes away floats, so that each sum depends on those before it.
    if inexact and (exact_floats or (slides and any(map(_has_floats, plan.frame(number).collect_schema().dtypes())))):
        return "its aggregates may differ in the last bits"
    return ""


def _has_floats(dtype: Any) -> bool:
    return "Float" in repr(dtype)  # within lists and structures too


def _origin(plan: Plan, step: Step, below: Separable, windows: Windows) -> Origin | None:
    """The column of a scan that orders the rows; None if it is none, or they are not in its order any more."""
    number = step.inputs[0]
    while plan.steps[number].inputs:
        if plan.steps[number].kind not in _KEEP_ORDER or len(plan.steps[number].inputs) != 1:
            return None
        (number,) = plan.steps[number].inputs
    origin = (below.columns or {}).get(windows.index)
    if origin is None or len(below.scans) != 1:
        return None
    dtype: Any = plan.frame(origin[0]).collect_schema()[origin[1]]
    if dtype.is_integer():
        return origin if isinstance(windows.look_back, int) else None
    exact = dtype == pl.Date or (dtype == pl.Datetime and dtype.time_zone is None and dtype.time_unit != "ns")
    return origin if exact and isinstance(windows.look_back, timedelta) else None
