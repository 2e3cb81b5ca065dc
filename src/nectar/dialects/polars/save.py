"""Saving: a query is computed, or found, under Nectar; its result is kept; a name points to it.

Law: there is no other way to a derived dataset than to compute it. A name that could not point to a kept result is not
given, and the error says why.
"""

from __future__ import annotations

from typing import Final

import polars as pl
from polars.lazyframe.opt_flags import DEFAULT_QUERY_OPT_FLAGS

from nectar.catalog.service import Catalog
from nectar.datasets.access import place_of
from nectar.datasets.dataset import Dataset
from nectar.datasets.saving import place_for
from nectar.dialects.polars.collecting import Look, prepared_or_why_not
from nectar.dialects.polars.engine import PolarsEngine
from nectar.dialects.polars.query import Query
from nectar.errors import NotSavedError
from nectar.model.entry import Entry
from nectar.session import Session, running

_ATTEMPTS: Final = 3  # a result that another thread has computed may be found, and then not be kept


def saved(lf: pl.LazyFrame, name: str, note: str, engine: str | pl.Engine) -> Dataset:
    """The dataset that a name points to from now on."""
    session, catalog = place_for(name)
    if not isinstance(lf, pl.LazyFrame):
        raise NotSavedError(f"only lazy frames can be saved as {name!r}, and this is a {type(lf).__name__}")
    entry = _kept(session, catalog, lf, PolarsEngine(engine))
    if isinstance(entry, str):
        raise NotSavedError(f"the result cannot be saved as {name!r}: {entry}")
    return Dataset(place_of(session.settings), entry.key, catalog.bind(name, entry.key, note))


def _kept(session: Session, catalog: Catalog, lf: pl.LazyFrame, engine: PolarsEngine) -> Entry | str:
    """The entry of the result, in the catalog; or why it is not there."""
    why_not = ""
    for _ in range(_ATTEMPTS):
        session.keeper.drain()
        query = prepared_or_why_not(session, lf, DEFAULT_QUERY_OPT_FLAGS)
        if isinstance(query, str):
            lf.collect_schema()  # what is wrong with the query itself, Polars says
            return query
        try:
            if refused := query.root.refusal or _no_computation(query):
                return refused
            query.asked = True
            why_not = _computed(session, query, lf, engine)
        finally:
            query.close()
        session.keeper.drain()
        found = catalog.index.lookup(query.root.keys)
        if found:
            return next(found[key] for key in query.root.keys if key in found)
    return why_not or "it was deleted at once"


def _computed(session: Session, query: Query, lf: pl.LazyFrame, engine: PolarsEngine) -> str:
    """The result is known or being kept afterwards; what speaks against it is told once it has been tried."""
    with running() as report:
        look = Look(engine.inner, session, report)
        if query.result() is not None:
            look.tell_hits(query, 0.0)
            return ""
        look.compute(query, lf, {"optimizations": DEFAULT_QUERY_OPT_FLAGS})
        look.end()
        session.keeper.drain()
        keeping = [part.keeping for part in report.parts if part.key == query.root.key.hex() and part.keeping]
        return keeping[-1].removeprefix("not kept: ") if keeping else ""


def _no_computation(query: Query) -> str:
    keyed = query.keyed
    if keyed.plan.steps[keyed.step_of[keyed.program.root]].kind != "DataFrameScan":
        return ""
    return "it is a frame in memory, which nothing was computed from: write it to a file, and save what you make of it"
