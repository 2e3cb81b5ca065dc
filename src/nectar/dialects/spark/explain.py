"""What becomes of each part of a Spark query, and why: for those who watch, and for those who ask before it runs."""

from __future__ import annotations

from typing import Any, Final

from nectar.dialects.spark.keyed import Keyed
from nectar.dialects.spark.query import Query, query_of
from nectar.dialects.spark.reusing import looked_at
from nectar.errors import NectarError, UserError
from nectar.report.explanation import (
    Becomes,
    PlannedPart,
    QueryExplanation,
    of_entry,
    uncacheable,
    visible,
)
from nectar.report.run import Part
from nectar.report.watchers import watchers
from nectar.rewrite.choose import Choice
from nectar.session import Session
from nectar.trust.secrets import logger

_log: Final = logger("nectar.spark")
_PATIENCE: Final = 1.0  # seconds
_UNKNOWN: Final = "no result is known under its key"


def explained(session: Session, frame: Any) -> QueryExplanation:
    """What would become of a frame if its rows were asked for now; nothing is run. It counts as no use."""
    client = frame.sparkSession.client
    between = getattr(client, "_nectar", None)
    if between is None:
        raise UserError("its session was made before Nectar was switched on: make another one")
    session.settle(_PATIENCE)  # what is about to be written is known
    try:
        root = frame._plan.to_proto(client).root
        query = query_of(session, client, root, between.scope, Part("explained"))
    except NectarError as error:
        return uncacheable(str(error))
    return _explanation(query.keyed, looked_at(query))


def tell_watchers(query: Query | str) -> None:
    """Everybody who watches gets the explanation of a query that is about to run, which runs whatever goes wrong."""
    if not watchers:
        return
    try:
        found = uncacheable(query) if isinstance(query, str) else _told(query)
        for watcher in watchers:
            watcher(found)
    except Exception:
        _log.exception("a query could not be explained")


def _told(query: Query) -> QueryExplanation:
    if query.result is None:
        return _explanation(query.keyed, query.choice)
    note = "" if query.part.explain is None else query.part.explain()
    saved = sum(entry.seconds for entry in query.made_from)
    return QueryExplanation((PlannedPart(0, query.keyed.root.text, "", "put together", note, saved),))


def _explanation(found: Keyed, choice: Choice) -> QueryExplanation:
    program = found.program
    parts = tuple(_part(found, choice, number, depth, again) for number, depth, again in visible(program, choice.hits))
    reason = "" if program.root in choice.hits else found.root.refusal or _UNKNOWN
    return QueryExplanation(parts, reason)


def _part(found: Keyed, choice: Choice, number: int, depth: int, again: bool) -> PlannedPart:
    node = found.program.nodes[number]
    entry = choice.hits.get(number)
    if entry is not None:
        return PlannedPart(depth, node.text, "", "reused", of_entry(entry), 0.0 if again else entry.seconds)
    if node.refusal:
        return PlannedPart(depth, node.text, "", "not cached", "see above" if again else node.refusal)
    becomes: Becomes = "kept" if number in choice.keep else "computed"
    return PlannedPart(depth, node.text, "", becomes, "see above" if again else "")
