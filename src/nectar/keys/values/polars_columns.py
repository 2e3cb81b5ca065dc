"""Canonical content of Polars columns and data types.

Law: name, type, length, nulls and values decide. Chunks, slices, what lies below a null, and the numbers that a process
gives to categories do not. That a column is marked as sorted counts only where it is not: Polars believes the mark.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from nectar.errors import UnencodableError
from nectar.keys.moments import WITH_YEAR
from nectar.keys.values.bulk import Parts
from nectar.keys.values.place import HERE

if TYPE_CHECKING:
    from nectar.keys.expansion import WalkContext

_SIMPLE: Final = frozenset(
    kind.__name__
    for name in [
        "Int8",
        "Int16",
        "Int32",
        "Int64",
        "Int128",
        "UInt8",
        "UInt16",
        "UInt32",
        "UInt64",
        "UInt128",
        "Float16",
        "Float32",
        "Float64",
        "Boolean",
        "String",
        "Binary",
        "Date",
        "Time",
        "Null",
        "Object",
        "Unknown",
    ]
    if (kind := getattr(pl, name, None)) is not None
)
_FIXED: Final = _SIMPLE - {"Boolean", "String", "Binary", "Null", "Object", "Unknown"} | {
    "Datetime",
    "Duration",
    "Decimal",
}


def add_type(parts: Parts, dtype: Any) -> None:
    """Adds a data type with its parameters; a class stands for its instance without parameters."""
    name = dtype.__name__ if isinstance(dtype, type) else type(dtype).__name__
    parts.text(name)
    if name in _SIMPLE:
        return
    if isinstance(dtype, type):
        parts.text("class")
        return
    if name == "Datetime":
        parts.text(str(dtype.time_unit), repr(dtype.time_zone))
    elif name == "Duration":
        parts.text(str(dtype.time_unit))
    elif name == "Decimal":
        parts.text(repr(dtype.precision), repr(dtype.scale))
    elif name == "List":
        add_type(parts, dtype.inner)
    elif name == "Array":
        parts.number(dtype.size, *dtype.shape)
        add_type(parts, dtype.inner)
    elif name == "Struct":
        parts.number(len(dtype.fields))
        for field in dtype.fields:
            parts.text(field.name)
            add_type(parts, field.dtype)
    elif name == "Enum":
        add_values(parts, dtype.categories)
    elif name == "Categorical":
        categories = dtype.categories
        parts.text(repr(categories.name()), repr(categories.namespace()))
        add_type(parts, categories.physical())
    else:
        raise UnencodableError(f"the Polars type {name}", HERE, "its parameters are not known")


def add_frame(parts: Parts, frame: pl.DataFrame, walk: WalkContext | None = None) -> None:
    """Adds a frame: its height, then its columns; the numbers of categories where reached code may look at them."""
    parts.number(frame.height, frame.width)
    for column in frame.get_columns():
        add_series(parts, column)
    if walk is not None and any(map(has_categories, frame.dtypes)) and shows_numbers(walk):
        add_numbers(parts, frame)


def shows_numbers(walk: WalkContext) -> bool:
    """Whether reached code may look at the numbers of categories."""
    from nectar.keys.features import NUMBERED  # few frames have categories

    return walk.observed.any_of(NUMBERED)


def has_categories(kind: pl.DataType) -> bool:
    """Whether values of a type are, or hold, categories that Polars has given numbers in this process."""
    if isinstance(kind, pl.List | pl.Array):
        return has_categories(kind.inner)  # type: ignore[arg-type]
    if isinstance(kind, pl.Struct):
        return any(has_categories(field.dtype) for field in kind.fields)  # type: ignore[arg-type]
    return isinstance(kind, pl.Categorical)


def add_numbers(parts: Parts, frame: pl.DataFrame) -> None:
    """Adds the numbers that this process has given to the categories in a frame."""
    pending = frame.get_columns()
    for series in pending:
        if isinstance(series.dtype, pl.Categorical):
            add_values(parts, series.to_physical())
        elif isinstance(series.dtype, pl.List | pl.Array):
            pending.append(series.explode())
        elif isinstance(series.dtype, pl.Struct):
            pending += series.struct.unnest().get_columns()


def add_series(parts: Parts, series: pl.Series) -> None:
    """Adds a series: name, type, values."""
    parts.text(series.name)
    add_type(parts, series.dtype)
    if mark := false_mark(series):
        parts.text("marked as sorted", mark)
    add_values(parts, series)


def false_mark(series: pl.Series) -> str:
    """In which order a series is marked as sorted though it is not; empty if it is not marked, or is in that order.

    Polars answers from the ends of what is marked: a wrong mark changes answers, a right one does not.
    """
    flags = series.flags
    if not flags["SORTED_ASC"] and not flags["SORTED_DESC"]:
        return ""
    descending = not flags["SORTED_ASC"]
    try:
        in_order = _is_in_order(series, descending)
    except (Exception, pl.exceptions.PanicException):  # a type that cannot be compared
        in_order = False
    return "" if in_order else ("descending" if descending else "ascending")


def _is_in_order(series: pl.Series, descending: bool) -> bool:
    nulls = series.null_count()
    if nulls not in (series.head(nulls).null_count(), series.tail(nulls).null_count()):
        return False
    values = series.drop_nulls()
    before, after = values.slice(0, max(len(values) - 1, 0)), values.slice(1)
    return len(values) < 2 or bool((before >= after if descending else before <= after).all())


def add_values(parts: Parts, series: pl.Series) -> None:
    """Adds the values of a series (its type is added by the caller)."""
    name = type(series.dtype).__name__
    if name == "Object":
        parts.objects(series.to_list(), series.name)
        return
    nulls = series.null_count()
    parts.number(len(series), nulls)
    if nulls:
        _add_fixed(parts, series.is_not_null().cast(pl.UInt8))
        series = series.drop_nulls()
    if len(series) == 0 or name == "Null":
        return
    if name in _FIXED:
        _add_fixed(parts, series.to_physical())
    elif name == "Boolean":
        _add_fixed(parts, series.cast(pl.UInt8))
    elif name == "String":
        parts.holds_texts(lambda: series.filter(~series.str.contains(WITH_YEAR)).unique().to_list())
        _add_fixed(parts, series.str.len_bytes())
        parts.bulk(series.str.join("").item().encode())
    elif name == "Binary":
        _add_fixed(parts, series.bin.size())
        parts.bulk(b"".join(series.to_list()))
    elif name in ("Categorical", "Enum"):
        add_values(parts, series.cast(pl.String))
    elif name == "Struct":
        for field in series.struct.fields:
            add_values(parts, series.struct.field(field))
    elif name in ("List", "Array"):
        _add_lists(parts, series, name)
    else:
        raise UnencodableError(f"a Polars column of type {name}", HERE, f"the content of {series.name} is not known")


def _add_lists(parts: Parts, series: pl.Series, name: str) -> None:
    lengths = series.list.len() if name == "List" else series.arr.len()
    _add_fixed(parts, lengths)
    filled = series.filter(lengths > 0)
    add_values(parts, filled.explode() if len(filled) else filled.clear())


def _add_fixed(parts: Parts, series: pl.Series) -> None:
    """Adds the memory of numbers of one width each, without nulls."""
    if len(series) == 0:
        parts.bulk(b"")
        return
    series = series.rechunk()
    width = int("".join(filter(str.isdigit, type(series.dtype).__name__))) // 8
    memory = (ctypes.c_char * (len(series) * width)).from_address(series._s.as_single_ptr())
    parts.bulk(memoryview(memory).cast("B"))
