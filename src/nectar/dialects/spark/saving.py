"""Saving: a frame is computed, or found, under Nectar; its result is kept; a name points to it. And back: as a frame.

Law: there is no other way to a derived dataset than to compute it. A name that could not point to a kept result is not
given, and the error says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type

from nectar.catalog.service import Catalog
from nectar.datasets.access import place_of, result_of
from nectar.datasets.dataset import Dataset, meant
from nectar.datasets.saving import place_for
from nectar.dialects.spark.derived import remember
from nectar.dialects.spark.query import Query
from nectar.dialects.spark.results import is_whole, schema_of, without_schema
from nectar.errors import NotSavedError, UserError
from nectar.model.entry import Entry
from nectar.session import Session

# Polars writes text so that Spark does not read it.
_PLAIN: Final = {"string_view": pa.string(), "large_string": pa.string(), "binary_view": pa.binary()}
_ATTEMPTS: Final = 3  # a result that is found may be deleted before it has a name
_IN_MEMORY: Final = frozenset({"local_relation", "cached_local_relation", "chunked_cached_local_relation"})


@dataclass(slots=True)
class _Asked:
    """A request whose result somebody wants to be kept. why_not: why it is not even looked at."""

    query: Query | None = None
    why_not: str = ""


_asked: Final[ContextVar[_Asked | None]] = ContextVar("nectar_asked", default=None)


def is_asking() -> bool:
    """Whether somebody wants the result of the request that is being made."""
    return _asked.get() is not None


def noticed(query: Query) -> None:
    """A query is about to be looked up; its result is kept if somebody has asked for it."""
    asked = _asked.get()
    if asked is not None:
        asked.query, query.asked = query, True


def refused(reason: str) -> None:
    """A request runs as it is."""
    asked = _asked.get()
    if asked is not None:
        asked.why_not = reason


@contextmanager
def _asking() -> Iterator[_Asked]:
    asked = _Asked()
    token = _asked.set(asked)
    try:
        yield asked
    finally:
        _asked.reset(token)


def saved(frame: Any, name: str, note: str) -> Dataset:
    """The dataset that a name points to from now on."""
    session, catalog = place_for(name)
    if not isinstance(frame, DataFrame):
        raise NotSavedError(f"only frames of Spark Connect can be saved as {name!r}, and this is a {type(frame)}")
    entry = _kept(session, catalog, frame)
    if isinstance(entry, str):
        raise NotSavedError(f"the result cannot be saved as {name!r}: {entry}")
    return Dataset(place_of(session.settings), entry.key, catalog.bind(name, entry.key, note))


def _kept(session: Session, catalog: Catalog, frame: Any) -> Entry | str:
    """The entry of the result, in the catalog; or why it is not there."""
    why_not = ""
    for _ in range(_ATTEMPTS):
        session.keeper.drain()
        with _asking() as asked:
            frame._to_table()
        query = asked.query
        if query is None:
            return asked.why_not or "its session was made before Nectar was switched on"
        why_not = asked.why_not or query.keyed.root.refusal or _no_computation(query)
        if why_not:
            return why_not
        session.keeper.drain()
        found = catalog.index.lookup(query.keyed.root.keys)
        if found:
            return next(found[key] for key in query.keyed.root.keys if key in found)
        why_not = query.part.keeping.removeprefix("not kept: ")
    return why_not or "it was deleted at once"


def _no_computation(query: Query) -> str:
    if query.given.WhichOneof("rel_type") not in _IN_MEMORY:
        return ""
    return "it is a frame in memory, which nothing was computed from: write it to a file, and save what you make of it"


def scanned(name: str, session: Any) -> Any:
    """A frame of a session that has the rows of the result a name points to now; made again if it was deleted."""
    found = meant(name)
    with result_of(found.catalog, found.key, found.label) as result:
        table = result.to_arrow()
    try:
        if is_whole(table):
            schema = proto_schema_to_pyspark_data_type(schema_of(table))
            frame = session.createDataFrame(without_schema(table), schema)
        else:
            frame = session.createDataFrame(_plain(table))
    except (pa.ArrowException, PySparkException) as error:
        raise UserError(f"{name} has columns that this Spark does not take: {error}; nectar.open reads them") from error
    remember(frame, found.key)
    return frame


def _plain(table: pa.Table) -> pa.Table:
    """A table of other engines, with columns that Spark knows."""
    return pa.table([_plain_column(column) for column in table.columns], table.column_names)


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    is_coded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if is_coded else column.type
    plain = _PLAIN.get(str(kind), kind)
    if not is_coded:
        return column.cast(plain)
    return pa.chunked_array([chunk.dictionary.cast(plain).take(chunk.indices) for chunk in column.chunks], plain)
