"""`lf.nectar`: there once Polars and Nectar are imported, in either order; what it offers is loaded when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from nectar.datasets.dataset import Dataset
    from nectar.report.explanation import QueryExplanation


@pl.api.register_lazyframe_namespace("nectar")
class NectarFrame:
    """`lf.nectar`: what Nectar does with a lazy frame."""

    def __init__(self, lf: pl.LazyFrame) -> None:
        self._lf = lf

    def collect(self, engine: str | pl.Engine = "auto") -> pl.DataFrame:
        """The frame, with everything reused that is known."""
        from nectar.dialects.polars import api

        return api.collect(self._lf, engine)

    def explain(self) -> QueryExplanation:
        """What would be reused and what computed, and why."""
        from nectar.dialects.polars import api

        return api.explain(self._lf)

    def save(self, name: str, note: str = "", engine: str | pl.Engine = "auto") -> Dataset:
        """The result is kept, and the name points to it from now on."""
        from nectar.dialects.polars import api

        return api.save(self._lf, name, note, engine)
