"""Frames that were made from results with names: which, so that what is computed from them can be traced.

A frame is known by the plan id that the client gave it. Nothing is decided by it: such frames count by their rows.
"""

from __future__ import annotations

from typing import Any, Final

from nectar.dialects.spark.messages import messages_in, named

_results: Final[dict[int, bytes]] = {}  # keys, by the plan ids of frames of this process


def remember(frame: Any, key: bytes) -> None:
    """The frame has the rows of the result of a key."""
    _results[frame._plan._plan_id] = key


def results_in(relation: Any) -> tuple[bytes, ...]:
    """The keys of results that a relation was made from, by name."""
    if not _results:
        return ()
    ids = (each.common.plan_id for each in messages_in(relation) if named(each, "Relation"))
    return tuple(dict.fromkeys(_results[each] for each in ids if each in _results))
