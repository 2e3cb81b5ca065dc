"""Computing what is not known of a query."""

from __future__ import annotations

import logging
import time
from typing import Final

import polars as pl

from nectar.dialects.polars.growth import grow
from nectar.dialects.polars.keeping import keep
from nectar.dialects.polars.query import Query, Run
from nectar.dialects.polars.stored import StoredFrame

_log: Final = logging.getLogger("nectar.polars")


def computed(query: Query, run: Run) -> pl.DataFrame:
    """The result, computed with what is known; parts that are asked for often are kept on the way."""
    if query.growing:
        try:
            grow(query, run)
        except (Exception, pl.exceptions.PanicException) as error:  # then it is computed as a whole
            _log.info("what is known of parts of a stream could not be used: %s", error)
    needed = set(query.keyed.program.below(query.keyed.program.root, query.known)) - set(query.known)
    for number in [each for each in query.choice.keep if each in needed]:
        begun = time.perf_counter()
        frame = run(query.frame_of(number))
        keep(query, number, frame, time.perf_counter() - begun)
        if query.stands_for(number, frame):
            query.known[number] = StoredFrame(frame)
    rewritten = query.rewritten()
    return run(query.frame_of(query.keyed.program.root) if rewritten is None else rewritten)
