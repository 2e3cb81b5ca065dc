"""Cutting several streams together, so that no value of a column is in two parts.

In: for each stream the smallest and the largest value of each of its extents. Out: where to cut each stream. Extents
whose ranges overlap stay together; parts keep the order of every stream, and have something of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Range = tuple[Any, Any]  # the smallest and the largest value


def cut_together(streams: Sequence[Sequence[Range]]) -> list[tuple[int, ...]]:
    """For each stream the places to cut it, beginning with 0 and ending with its length; all lists are equally long."""
    together = _overlapping(streams)
    last = [{group: at for at, group in enumerate(groups)} for groups in together]
    ends = [0] * len(streams)
    cuts = [tuple(ends)]
    while any(end < len(stream) for end, stream in zip(ends, streams, strict=True)):
        first = next(number for number, stream in enumerate(streams) if ends[number] < len(stream))
        ends = _closed(ends, {together[first][ends[first]]}, together, last)
        if all(end > before for end, before in zip(ends, cuts[-1], strict=True)):
            cuts.append(tuple(ends))
    cuts[-1] = tuple(map(len, streams))
    return list(zip(*cuts, strict=True))


def _overlapping(streams: Sequence[Sequence[Range]]) -> list[list[int]]:
    """For each extent the number of its group: those that overlap, directly or through others, have the same."""
    extents = [(*span, number, at) for number, stream in enumerate(streams) for at, span in enumerate(stream)]
    groups = [[0] * len(stream) for stream in streams]
    group, reached = -1, None
    for smallest, largest, number, at in sorted(extents, key=lambda extent: extent[0]):
        if reached is None or smallest > reached:
            group, reached = group + 1, largest
        groups[number][at] = group
        reached = max(reached, largest)
    return groups


def _closed(
    ends: Sequence[int], wanted: set[int], together: Sequence[Sequence[int]], last: Sequence[Mapping[int, int]]
) -> list[int]:
    """The nearest ends with which these groups, and every group that has begun before them, are complete."""
    reached = list(ends)
    pending = list(wanted)
    seen = set(wanted)
    while pending:
        group = pending.pop()
        for number, groups in enumerate(together):
            end = last[number].get(group, -1) + 1
            new = {groups[at] for at in range(reached[number], end)} - seen
            reached[number] = max(reached[number], end)
            seen |= new
            pending.extend(new)
    return reached
