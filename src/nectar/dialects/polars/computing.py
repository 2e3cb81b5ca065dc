"""Computing what is not known of a query."""

from __future__ import annotations

from typing import Final

import polars as pl

from nectar.dialects.polars.keeping import keep
from nectar.dialects.polars.query import Query, Run
from nectar.dialects.polars.stored import StoredFrame
from nectar.trust.secrets import logger

_log: Final = logger("nectar.polars")


def computed(query: Query, run: Run) -> pl.DataFrame:
    """The result, computed with what is known; parts that are asked for often are kept on the way."""
    if query.growing:
        from nectar.dialects.polars.growth import grow  # takes long to load

        try:
            grow(query, run)
        except (Exception, pl.exceptions.PanicException) as error:  # then it is computed as a whole
            _log.info("what is known of parts of a stream could not be used: %s", error)
    needed = set(query.keyed.program.below(query.keyed.program.root, query.known)) - set(query.known)
    for number in [each for each in query.choice.keep if each in needed]:
        _compute_part(query, number, run)
    return run(query.remaining())


def _compute_part(query: Query, number: int, run: Run) -> None:
    """A part is known now, and kept; unless it fails, which the whole may not: it need not read every column."""
    shared = query.session.steering.queries
    begun = shared.passed
    query.runs(number)
    try:
        frame = run(query.frame_of(number))
    except (Exception, pl.exceptions.PanicException) as error:
        _log.info("%s is not computed by itself: %s", query.keyed.program.nodes[number].text, error)
        return
    keep(query, number, frame, shared.passed - begun)
    if query.stands_for(number, frame.schema):
        query.known[number] = StoredFrame.of(frame)
