"""Frames that a session has cached at a server that remembers (`cache()`, `persist()`).

Their reads are sent with the state that their files had then (`fresh.py`), so that the server finds the frame it has
cached. When the files have changed since, the program sees the cached frame, as it would without Nectar, and nothing
is reused or kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nectar.dialects.spark.fresh import refreshed


class Frozen:
    """The cached frames of one session, by what the program sends."""

    def __init__(self) -> None:
        self._sent: dict[bytes, Any] = {}
        self._states: dict[bytes, dict[bytes, bytes]] = {}

    def persisted(self, relation: Any, states: Mapping[bytes, bytes]) -> Any:
        """The relation as it is sent to be cached. states: what its files hold now."""
        name = relation.SerializeToString(deterministic=True)
        if name not in self._sent:
            self._sent[name], self._states[name] = refreshed(relation, states), dict(states)
        return self._sent[name]

    def unpersisted(self, relation: Any) -> Any:
        """The relation as it was sent when it was cached; as it is, if it was not. From now on it is not cached."""
        name = relation.SerializeToString(deterministic=True)
        self._states.pop(name, None)
        return self._sent.pop(name, relation)

    def as_cached(self, relation: Any) -> Any:
        """The relation as it was sent when it was cached; as it is, if it was not."""
        return self._sent.get(relation.SerializeToString(deterministic=True), relation)

    def states(self) -> dict[bytes, bytes]:
        """What the files of cached frames held when they were cached, by read."""
        return {read: state for states in self._states.values() for read, state in states.items()}

    def have_changed(self, now: Mapping[bytes, bytes]) -> bool:
        """Whether files of a cached frame are not as they were. now: what the files of a query hold."""
        return any(now.get(read, state) != state for read, state in self.states().items())
