"""What a result holds, in a few numbers, by which `recipes/difference.py` tells how two results differ.

Engines promise no order of rows, so rows are hashed one by one, and the hashes are added up. pandas makes them, which
every client of Spark has; two versions of it may make others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from nectar.keys.scheme import digest_of
from nectar.keys.values.arrow_values import add_column, add_field
from nectar.keys.values.bulk import Parts
from nectar.recipes.recipe import Checksum, Package

_PRIME: Final = np.uint64(0x9E3779B97F4A7C15)  # any odd number whose bits look random
_AGAIN: Final = np.uint64(29)


def checksum_of(table: pa.Table) -> Checksum:
    """The checksum of a result."""
    floats = [at for at, field in enumerate(table.schema) if _holds_floats(field.type)]
    hashes = np.zeros(table.num_rows, np.uint64)
    for at in range(table.num_columns):
        if at not in floats:
            hashes = _with_column(hashes, table.column(at))
    others = _digest(table, hashes)
    for at in floats:
        hashes = _with_column(hashes, table.column(at))
    sums = tuple((table.field(at).name, *_sums(table.column(at))) for at in floats)
    return Checksum(table.num_rows, _exact(table), _digest(table, hashes), others, sums)


def are_comparable(packages: Iterable[Package]) -> bool:
    """Whether a checksum made where these packages were installed can be compared with one that is made here."""
    return any(each.module == "pandas" and each.version == pd.__version__ for each in packages)


def rows_only(rows: int) -> Checksum:
    """The checksum of what was not looked at: only its rows were counted."""
    return Checksum(rows, str(rows).encode(), b"", b"", ())


def _exact(table: pa.Table) -> bytes:
    parts = Parts()
    for field, column in zip(table.schema, table.columns, strict=True):
        add_field(parts, field)
        add_column(parts, column, field.name)
    return digest_of(parts.expansion("table").payload)


def _digest(table: pa.Table, hashes: Any) -> bytes:
    """A digest in which the order of rows does not show."""
    sums = (int(hashes.sum()), int(_mixed(hashes).sum()))
    columns = [(field.name, str(field.type)) for field in table.schema]
    return digest_of(repr((columns, table.num_rows, sums)).encode())


def _with_column(hashes: Any, column: pa.ChunkedArray) -> Any:
    """Hashes of rows that have one column more."""
    as_text = pa.types.is_decimal(column.type) or pa.types.is_large_string(column.type)
    return _mixed(hashes * _PRIME + _hashed(column.cast(pa.string()) if as_text else column))


def _mixed(hashes: Any) -> Any:
    """Other numbers for the same rows: a sum of them is not a sum of those."""
    mixed = hashes ^ (hashes >> _AGAIN)
    return mixed * _PRIME


def _hashed(column: pa.ChunkedArray) -> Any:
    """A number for each value; the same text is hashed once."""
    if pa.types.is_string(column.type):
        coded = pc.fill_null(column, "").dictionary_encode().unify_dictionaries().combine_chunks()
        coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
        values = pd.util.hash_array(np.asarray(coded.dictionary, dtype=object), categorize=False)
        values = values[np.asarray(coded.indices)]
    else:
        values = pd.util.hash_array(_plain(column), categorize=False)
    return values + np.asarray(pc.is_null(column)).astype(np.uint64) * _PRIME


def _plain(column: pa.ChunkedArray) -> Any:
    """The values of a column as pandas hashes them: numbers, or texts that are the same for equal values."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return np.asarray(pc.fill_null(column, False).cast(pa.int8()))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(pc.fill_null(column, pa.scalar(0, pa.int8()).cast(kind)))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return np.asarray(pc.fill_null(column.cast(pa.int32()), 0))
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time64(kind):
        return np.asarray(pc.fill_null(column.cast(pa.int64()), 0))
    return np.asarray([repr(value) for value in column.to_pylist()], dtype=object)


def _holds_floats(kind: pa.DataType) -> bool:
    if kind.num_fields:
        return any(_holds_floats(kind.field(at).type) for at in range(kind.num_fields))
    return bool(pa.types.is_floating(kind))


def _sums(column: pa.ChunkedArray) -> tuple[float, float]:
    """The sum of the values of a column, and that of their sizes; of nested ones nothing is known."""
    if not pa.types.is_floating(column.type):
        return math.nan, math.nan
    values = column.cast(pa.float64())
    return float(pc.sum(values, min_count=0).as_py()), float(pc.sum(pc.abs(values), min_count=0).as_py())
