"""What programs can ask of Nectar by name, whichever engine their frames belong to.

Each word is handed to the dialect of the frame, which is loaded then and not before.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nectar.datasets.dataset import Dataset
from nectar.errors import MissingExtraError
from nectar.report.explanation import QueryExplanation, uncacheable
from nectar.session import current

if TYPE_CHECKING:
    import polars as pl

    from nectar.dialects.python.declared_inputs import Fresh


def explain(lf: Any) -> QueryExplanation:
    """What would be reused and what computed if a query ran now, and why; nothing is run. Its text is a tree.

    lf: a lazy frame of Polars, or a frame of Spark.
    """
    if not _is_of_spark(lf):
        told: QueryExplanation = _polars().explain(lf)
        return told
    session = current()
    if session is None:
        return uncacheable("Nectar is off")
    explained: QueryExplanation = import_module("nectar.dialects.spark.explain").explained(session, lf)
    return explained


def save(lf: Any, name: str, note: str = "", engine: Any = "auto") -> Dataset:
    """The result of a query is kept, and the name points to it from now on; what is known of it is not computed again.

    lf: a lazy frame of Polars, or a frame of Spark. note: why, for those who look at the history of the name. engine:
    of Polars. Raises NotSavedError if the result cannot be kept.
    """
    if _is_of_spark(lf):
        dataset: Dataset = import_module("nectar.dialects.spark.saving").saved(lf, name, note)
    else:
        dataset = _polars().save(lf, name, note, engine)
    return dataset


def scan(name: str, spark: Any = None) -> pl.LazyFrame:
    """A lazy frame over the result that a name points to now: team/top_urls, team/top_urls@2, or a pointer file.

    It stays with that result, also when the name moves on. Programs that use it depend on nothing else. spark: a
    session of Spark, if a frame of that session is wanted.
    """
    if spark is None:
        lazy: pl.LazyFrame = _polars().scan(name)
        return lazy
    frame: Any = import_module("nectar.dialects.spark.saving").scanned(name, spark)
    return frame  # type: ignore[no-any-return]


def valid_for(source: Any, period: str | float) -> Fresh | Any:
    """The source, declared to be good for a period such as "1d" or "15 min".

    source: anything a memoised function is handed, such as a URL; or a frame of Spark that reads from a database, or
    from anything else that does not tell when it was changed: such a frame comes back as a frame.

    Results computed from it are reused until the period is over. Periods are counted from a fixed moment (days begin at
    midnight UTC), so that everybody agrees on them and a result is never older than one period.
    """
    if _is_of_spark(source):
        return import_module("nectar.dialects.spark.validity").declared(source, period)
    return import_module("nectar.dialects.python.declared_inputs").valid_for(source, period)


def _is_of_spark(frame: Any) -> bool:
    return type(frame).__module__.partition(".")[0] == "pyspark"


def _polars() -> Any:
    if find_spec("polars") is None:
        raise MissingExtraError("polars", "polars")
    return import_module("nectar.dialects.polars.api")
