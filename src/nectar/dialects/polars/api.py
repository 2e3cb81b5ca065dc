"""What Polars programs can ask of Nectar by name: collect, explain, save, scan."""

from __future__ import annotations

import polars as pl

from nectar.datasets.dataset import Dataset, meant
from nectar.dialects.polars.derived import ResultReader, scan_of, schema_in
from nectar.dialects.polars.engine import PolarsEngine
from nectar.dialects.polars.explain import explained
from nectar.dialects.polars.save import saved
from nectar.errors import UserError
from nectar.report.explanation import QueryExplanation, uncacheable
from nectar.session import current


def collect(lf: pl.LazyFrame, engine: str | pl.Engine = "auto") -> pl.DataFrame:
    """The frame of a query, with everything reused that is known; whether or not Nectar is enabled for others.

    engine: the engine that computes what is not known.
    """
    return lf.collect(engine=PolarsEngine(engine))


def explain(lf: pl.LazyFrame) -> QueryExplanation:
    """What would be reused and what computed if the query ran now, and why; nothing is run. Its text is a tree."""
    if not isinstance(lf, pl.LazyFrame):
        raise UserError(f"only lazy frames can be explained, and this is a {type(lf).__name__}: write df.lazy()")
    session = current()
    return uncacheable("Nectar is off") if session is None else explained(session, lf)


def save(lf: pl.LazyFrame, name: str, note: str = "", engine: str | pl.Engine = "auto") -> Dataset:
    """The result of a query is kept, and the name points to it from now on; what is known of it is not computed again.

    note: why, for those who look at the history of the name. Raises NotSavedError if the result cannot be kept.
    """
    return saved(lf, name, note, engine)


def scan(name: str) -> pl.LazyFrame:
    """A lazy frame over the result that a name points to now: team/top_urls, team/top_urls@2, or a pointer file.

    It stays with that result, also when the name moves on. Programs that use it depend on nothing else.
    """
    found = meant(name)
    catalog, key = found.catalog, found.key
    reader = ResultReader(key, found.program, found.label, found.home, found.store)
    return scan_of(reader, schema_in(catalog, key, found.label))
