"""What grows with its streams is made from parts that are known; what is learned on the way is kept.

Law: whatever goes wrong in here, the query is computed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import polars as pl

from nectar.catalog.service import Kept
from nectar.dialects.polars.incremental.advance import advance, rates
from nectar.dialects.polars.incremental.extension import Extension, extend
from nectar.dialects.polars.incremental.extents import files_of_lines
from nectar.dialects.polars.incremental.parts import Parts
from nectar.dialects.polars.incremental.rectangles import Rectangle, extend_rectangle
from nectar.dialects.polars.incremental.rules import Rules, rules_for, rules_for_one_stream
from nectar.dialects.polars.provenance import sources_of_state
from nectar.dialects.polars.query import Query, Run, about, changed
from nectar.dialects.polars.stored import StoredFrame
from nectar.errors import EnvironmentFailure
from nectar.model.entry import Span
from nectar.report.site import call_site
from nectar.rewrite.states import Piece
from nectar.trust.secrets import logger

_log: Final = logger("nectar.polars")


def grow(query: Query, run: Run) -> None:
    """What grows with its streams is made from what is known of their parts: the largest nodes that can be."""
    exact, inputs = query.session.settings.exact_floats, query.session.inputs
    rules = rules_for(query.keyed, query.catalog, exact, run, partial(_keep_facts, query), inputs.grown)
    seen: set[int] = set()
    pending = [query.keyed.program.root]
    while pending:
        number = pending.pop()
        if number in seen or number in query.known:
            continue
        seen.add(number)
        if number not in query.growing or not _advanced(query, number, rules, run):
            pending.extend(query.keyed.program.nodes[number].inputs)


def _advanced(query: Query, number: int, rules: Rules, run: Run) -> bool:
    """Whether a node is known now, because it could be put together."""
    parts = rules.parts_of(number)
    if isinstance(parts, str):
        _log.debug("%s is computed as a whole: %s", about(query, number), parts)
        return False
    query.parts[number] = parts
    query.runs(number, named=parts.cut.scans)
    if isinstance(parts, Rectangle):
        advanced = extend_rectangle(parts, query.keyed, query.catalog, run, query.sources())
    elif isinstance(parts, Extension):
        advanced = extend(parts, query.keyed, query.catalog, run, query.sources())
    else:
        advanced = advance(parts, query.keyed, query.catalog, run, query.sources())
    if advanced is None:
        return False
    query.known[number] = StoredFrame.of(advanced.frame)
    query.advanced[number] = advanced.used
    if advanced.estimate is not None:  # states add up what each run took to start, and many more runs than one
        query.spared[number] = max(0.0, advanced.estimate.whole - advanced.estimate.computing)
    same = not query.observed and query.keyed.runs_the_same(number)
    for piece in [*advanced.new, *advanced.merged] if same else []:
        _keep_state(query, parts, piece)
    query.session.keeper.submit(lambda: rates.remember(query.catalog))
    return True


def _keep_state(query: Query, parts: Parts, piece: Piece[pl.DataFrame]) -> None:
    spans = parts.cut.spans_of(piece.start, piece.end)
    count = max(span.count for span in spans)
    what = f"state of {about(query, parts.node)}, {count} file{'s' if count > 1 else ''}"
    key, site, size = parts.key(piece.start, piece.end), call_site(), int(piece.frame.estimated_size())
    looking = frozenset(query.looking)

    def write() -> None:
        if query.catalog.worth_keeping(piece.seconds, size) or changed(query, looking):
            return
        kept = query.catalog.keep(
            key, parts.program, piece.frame, table=True, seconds=piece.seconds, spans=spans, about=what,
            made=query.began, sources=lambda: sources_of_state(query.keyed, parts, piece, site),
        )  # fmt: skip
        if isinstance(kept, Kept):
            query.catalog.supersede(piece.supersedes)
            query.catalog.discard(piece.outgrown)
            watch(query)

    query.session.keeper.submit(write, size)


def _keep_facts(query: Query, key: bytes, facts: Callable[[], pl.DataFrame], what: str) -> None:
    """Keeps what was found out about streams, in the background, if they are still what they were."""

    def write() -> None:
        if not changed(query, ()):  # files were read by their names
            query.catalog.keep(key, key, facts(), table=True, about=what, made=query.began, replaces=True)

    query.session.keeper.submit(write)


def spans_of(query: Query, number: int) -> tuple[Span, ...]:
    """How a result is found again as a part of a larger one; empty if it cannot be."""
    exact = query.session.settings.exact_floats
    parts = query.parts.get(number) or rules_for_one_stream(query.keyed, query.catalog, exact).results_of(number)
    return () if isinstance(parts, str) or parts.are_states else parts.cut.spans_of(0, parts.cut.count)


def watch(query: Query) -> None:
    """Files of which something was kept are known again when they have grown."""
    try:
        query.session.inputs.watch(files_of_lines(query.keyed))
    except EnvironmentFailure as failure:
        _log.debug("files are new files when they have grown: %s", failure)
