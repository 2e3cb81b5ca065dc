"""What Polars programs can ask of Nectar by name: collect, explain; and the same as `lf.nectar`."""

from __future__ import annotations

import polars as pl

from nectar.dialects.polars import engine, writers
from nectar.dialects.polars.engine import PolarsEngine
from nectar.dialects.polars.explain import QueryExplanation, explained, uncacheable
from nectar.errors import UserError
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


@pl.api.register_lazyframe_namespace("nectar")
class NectarFrame:
    """`lf.nectar`: what Nectar does with a lazy frame."""

    def __init__(self, lf: pl.LazyFrame) -> None:
        self._lf = lf

    def collect(self, engine: str | pl.Engine = "auto") -> pl.DataFrame:
        """The frame, with everything reused that is known."""
        return collect(self._lf, engine)

    def explain(self) -> QueryExplanation:
        """What would be reused and what computed, and why."""
        return explain(self._lf)


# The hook: whoever enables Nectar for Polars gets the namespace with it.


def install() -> None:
    """From now on queries run through Nectar, and files that frames write are known by their content."""
    engine.install()
    writers.install()


def uninstall() -> None:
    """From now on everything runs as plain Polars."""
    writers.uninstall()
    engine.uninstall()
