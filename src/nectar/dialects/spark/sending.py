"""Requests of one client as they are sent to a server that remembers files.

A query that is recorded tells what its files hold now; frames that the session has cached are asked for as they were
cached. In and out: requests; the program's own stay as they are, since its client may send them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from nectar.dialects.spark.compressed import opened, with_relation
from nectar.dialects.spark.fresh import reads_in, refreshed, with_states
from nectar.dialects.spark.frozen import Frozen
from nectar.errors import UserError

_CACHING: Final = ("persist", "unpersist", "get_storage_level")


class Sending:
    """What a client has cached at its server, and how its requests are sent."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._frozen = Frozen()

    def expect_unchanged(self, states: Mapping[bytes, bytes]) -> None:
        """Raises UserError if the session has cached frames of files that hold something else now."""
        if self._frozen.have_changed(states):
            raise UserError("the session has cached a frame of files that have changed since")

    def recorded(self, request: Any, states: Mapping[bytes, bytes]) -> Any:
        """A request whose answer is recorded, as it is sent. states: what its files hold; none if nobody remembers."""
        if not states:
            return request
        root = opened(self._client, request.plan).root
        return with_relation(self._client, request, refreshed(root, states))

    def plain(self, request: Any) -> Any:
        """A request that is not reused, as it is sent: over cached frames, as they were when they were cached."""
        states = self._frozen.states()
        if not states:
            return request
        plan = opened(self._client, request.plan)
        if states.keys().isdisjoint(reads_in(plan)):
            return request
        if plan.HasField("root"):
            return with_relation(self._client, request, with_states(plan.root, states))
        return with_states(request, states)

    def taught(self, request: Any, states: Mapping[bytes, bytes]) -> Any:
        """A request that gives a name a meaning, as it is sent. states: what the files hold that it reads."""
        known = {**self._frozen.states(), **states}
        if not known:
            return request
        made = type(request)()
        made.CopyFrom(request)
        made.plan.CopyFrom(with_states(opened(self._client, request.plan), known))
        return made

    def analysed(self, request: Any, states_of: Callable[[Any], Mapping[bytes, bytes]]) -> Any:
        """A request to cache a frame, or about one, as it is sent. states_of: what the files of a relation hold now."""
        kind = request.WhichOneof("analyze")
        if kind not in _CACHING:
            return request
        relation = getattr(request, kind).relation
        if kind == "persist":
            states = states_of(relation)
            sent = self._frozen.persisted(relation, states) if states else relation
        else:
            sent = self._frozen.unpersisted(relation) if kind == "unpersist" else self._frozen.as_cached(relation)
        made = type(request)()
        made.CopyFrom(request)
        getattr(made, kind).relation.CopyFrom(sent)
        return made
