"""Queries that run together: which are answered from the store, and how the others run beside them.

In: queries, each with what is known of it. Out: a Together. Law: they agree with each other as they do in plain Polars,
which runs what several have in common once. So what is answered is handed to all who contain it; and either all are
put together anew, or all that could differ from run to run are run as they were given, because Polars finds nothing in
common between a frame that was used before and a new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from nectar.dialects.polars.query import Query
from nectar.rewrite.consistency import answerable, is_determined


@dataclass(frozen=True, slots=True)
class Together:
    """By their places: answers, which are known; frames, which run; given, those of them that run as given."""

    answers: dict[int, Query]
    frames: dict[int, pl.LazyFrame]
    given: frozenset[int]


def as_given(lfs: Sequence[pl.LazyFrame]) -> Together:
    """All run as they were given."""
    return Together({}, dict(enumerate(lfs)), frozenset(range(len(lfs))))


def together(queries: Sequence[Query | str], lfs: Sequence[pl.LazyFrame]) -> Together:
    """How queries run together, with what is known of them."""
    some_as_given = any(isinstance(query, str) or query.acts for query in queries)
    answers = _answers(queries, some_as_given)
    in_common = _in_common(
        [query for at, query in enumerate(queries) if isinstance(query, Query) and at not in answers]
    )
    frames: dict[int, pl.LazyFrame] = {}
    given: set[int] = set()
    for at, (query, lf) in enumerate(zip(queries, lfs, strict=True)):
        if at in answers:
            continue
        if isinstance(query, str) or query.acts or (some_as_given and not is_determined(query.keyed.program)):
            frames[at] = lf
            given.add(at)
            continue
        query.forget_known()
        query.take_over(answers.values())
        query.runs(query.keyed.program.root)
        # Not the resolved one: Polars has to resolve them together.
        frames[at] = query.frame_of(query.keyed.program.root, in_common)
    return Together(answers, frames, frozenset(given))


def _in_common(queries: Sequence[Query]) -> frozenset[bytes]:
    """The keys of what several queries compute."""
    users = Counter(
        key for query in queries for key in {node.key for node in query.keyed.program.nodes if not node.refusal}
    )
    return frozenset(key for key, count in users.items() if count > 1)


def _answers(queries: Sequence[Query | str], some_as_given: bool) -> dict[int, Query]:
    readable = {at: query for at, query in enumerate(queries) if isinstance(query, Query)}
    allowed = answerable([query.keyed.program for query in readable.values()], beside_given=some_as_given)
    return {
        at: query
        for (at, query), good in zip(readable.items(), allowed, strict=True)
        if good and query.result() is not None
    }
