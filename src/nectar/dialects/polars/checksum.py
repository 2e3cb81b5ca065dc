"""What a frame holds, in a few numbers, by which `recipes/difference.py` tells how two frames differ."""

from __future__ import annotations

import math
from typing import Final

import polars as pl

from nectar.keys.scheme import digest_of
from nectar.keys.values.bulk import Parts
from nectar.keys.values.polars_columns import add_frame
from nectar.recipes.recipe import Checksum

_SEED: Final = 1


def checksum_of(frame: pl.DataFrame) -> Checksum:
    """The checksum of a frame."""
    parts = Parts()
    add_frame(parts, frame)
    floats = [name for name, dtype in frame.schema.items() if _holds_floats(dtype)]
    hashes = _hashes_of_rows(frame.drop(floats))
    others = _sum_of(hashes, frame.schema)
    unordered = _sum_of(_hashes_of_rows(frame.select(floats), hashes), frame.schema) if floats else others
    sums = tuple((name, *_sums(frame[name])) for name in floats)
    return Checksum(frame.height, digest_of(parts.expansion("frame").payload), unordered, others, sums)


def _hashes_of_rows(frame: pl.DataFrame, before: pl.Series | None = None) -> pl.Series | None:
    """A number for each row; with those of other columns of the same rows, for both together. None without columns."""
    if frame.width == 0:
        return before
    frame = frame.cast({name: _portable(dtype) for name, dtype in frame.schema.items()})
    columns = frame.get_columns() if before is None else [*frame.get_columns(), before]
    return pl.DataFrame([column.alias(str(at)) for at, column in enumerate(columns)]).hash_rows(seed=_SEED)


def _sum_of(hashes: pl.Series | None, schema: pl.Schema) -> bytes:
    """A digest in which the order of rows does not show."""
    sums = () if hashes is None else (hashes.sum(), hashes.hash(seed=_SEED).sum())
    return digest_of(repr((schema, sums)).encode())


def _portable(dtype: pl.DataType) -> pl.DataType:
    """A type whose values are the same in every process: numbers of categories are not."""
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return pl.String()
    if isinstance(dtype, pl.List):
        return pl.List(_portable(dtype.inner))  # type: ignore[arg-type]
    if isinstance(dtype, pl.Array):
        return pl.Array(_portable(dtype.inner), dtype.size)  # type: ignore[arg-type]
    if isinstance(dtype, pl.Struct):
        return pl.Struct([pl.Field(field.name, _portable(field.dtype)) for field in dtype.fields])  # type: ignore[arg-type]
    return dtype


def _holds_floats(dtype: pl.DataType) -> bool:
    if isinstance(dtype, pl.List | pl.Array):
        return _holds_floats(dtype.inner)  # type: ignore[arg-type]
    if isinstance(dtype, pl.Struct):
        return any(_holds_floats(field.dtype) for field in dtype.fields)  # type: ignore[arg-type]
    return dtype.is_float()


def _sums(series: pl.Series) -> tuple[float, float]:
    """The sum of the values of a column, and that of their sizes; of nested ones nothing is known."""
    if not series.dtype.is_float():
        return math.nan, math.nan
    return float(series.sum()), float(series.abs().sum())
