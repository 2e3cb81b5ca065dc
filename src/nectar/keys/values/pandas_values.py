"""Expanders of pandas' values: frames, series, indexes, extension arrays and dtypes, timestamps, offsets.

Law: labels, dtypes, values, names, attrs and flags decide. How columns are gathered in blocks, cached items, index
engines, memory order and what lies below a missing value do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas import arrays
from pandas.tseries import offsets

from nectar.errors import UnencodableError
from nectar.keys.expansion import Expander, Expansion, WalkContext, always
from nectar.keys.values.bulk import OWN_ATTRIBUTES, Parts
from nectar.keys.values.numpy_values import add_array, add_dtype
from nectar.keys.values.place import HERE, placed


def add_values(parts: Parts, values: Any, label: str) -> None:
    """Adds the values of a column or an index."""
    values = _stored(values)
    if isinstance(values, np.ndarray):
        parts.text("numpy")
        add_array(parts, values, label)
        return
    kind = type(values)
    parts.text(kind.__name__)
    add = _ARRAYS.get(kind)
    if add is None:
        raise UnencodableError(
            f"an array of type {kind.__module__}.{kind.__qualname__}", HERE, f"the content of {label} is not known"
        )
    add_extension_dtype(parts, values.dtype)
    parts.number(len(values))
    add(parts, values, label)


def _add_numpy(parts: Parts, values: Any, label: str) -> None:
    add_array(parts, values.to_numpy(), label)


def _add_text(parts: Parts, values: Any, label: str) -> None:
    parts.objects(values.to_numpy(dtype=object).tolist(), label)


def _add_categorical(parts: Parts, values: pd.Categorical, label: str) -> None:
    add_array(parts, values.codes, label)


def _add_numbers_of_time(parts: Parts, values: Any, label: str) -> None:
    add_array(parts, np.asarray(values.asi8), label)
    parts.child(getattr(values, "freq", None), f"{label} freq")


def _add_masked(parts: Parts, values: Any, label: str) -> None:
    data, mask = values._data, values._mask
    if mask.any():
        data = np.where(mask, data.dtype.type(0), data)
    add_array(parts, data, label)
    add_array(parts, mask, label)


def _add_interval(parts: Parts, values: Any, label: str) -> None:
    add_index(parts, values.left, f"{label} left")
    add_index(parts, values.right, f"{label} right")


def _add_sparse(parts: Parts, values: Any, label: str) -> None:
    parts.text(values.kind)
    add_array(parts, values.sp_values, label)
    add_array(
        parts, values.sp_index.indices if values.kind == "integer" else values.sp_index.to_int_index().indices, label
    )


def _add_arrow(parts: Parts, values: Any, label: str) -> None:
    from nectar.keys.values.arrow_values import add_column, add_type

    column = values._pa_array
    add_type(parts, column.type)
    add_column(parts, column, label)


def _array_kinds() -> dict[type, Callable[[Parts, Any, str], None]]:
    """How the content of each kind of extension array is added."""
    table: dict[type, Callable[[Parts, Any, str], None]] = {
        arrays.NumpyExtensionArray: _add_numpy,
        arrays.StringArray: _add_text,
        pd.Categorical: _add_categorical,
        arrays.DatetimeArray: _add_numbers_of_time,
        arrays.TimedeltaArray: _add_numbers_of_time,
        arrays.PeriodArray: _add_numbers_of_time,
        arrays.BooleanArray: _add_masked,
        arrays.IntegerArray: _add_masked,
        arrays.FloatingArray: _add_masked,
        arrays.IntervalArray: _add_interval,
        arrays.SparseArray: _add_sparse,
        arrays.ArrowStringArray: _add_arrow,
        arrays.ArrowExtensionArray: _add_arrow,
    }
    plain_text = type(pd.array(["a"], dtype=pd.StringDtype("python", na_value=np.nan)))
    return {**table, plain_text: _add_text}


def add_extension_dtype(parts: Parts, dtype: Any) -> None:
    """Adds a pandas dtype with its parameters."""
    if isinstance(dtype, np.dtype):
        parts.text("numpy")
        add_dtype(parts, dtype)
        return
    parts.text(type(dtype).__name__)
    if isinstance(dtype, pd.CategoricalDtype):
        parts.text(repr(dtype.ordered))
        if dtype.categories is None:
            parts.text("no categories")
        else:
            add_index(parts, dtype.categories, "categories")
    elif isinstance(dtype, pd.DatetimeTZDtype):
        parts.text(dtype.unit)
        parts.child(dtype.tz, "tz")
    elif isinstance(dtype, pd.StringDtype):
        parts.text(dtype.storage)
        parts.child(dtype.na_value, "na_value")
    elif isinstance(dtype, pd.IntervalDtype):
        parts.text(str(dtype.closed))
        parts.child(dtype.subtype, "subtype")
    elif isinstance(dtype, pd.SparseDtype):
        add_extension_dtype(parts, dtype.subtype)
        parts.child(dtype.fill_value, "fill_value")
    elif isinstance(dtype, pd.ArrowDtype):
        parts.child(dtype.pyarrow_dtype, "pyarrow_dtype")
    elif isinstance(dtype, pd.PeriodDtype):
        parts.child(dtype.freq, "freq")
    elif type(dtype) in _PLAIN_DTYPES:
        parts.text(str(dtype))
    else:
        raise UnencodableError(f"the dtype {type(dtype).__name__}", HERE, "its parameters are not known")


_PLAIN_DTYPES: Final = frozenset(
    {pd.BooleanDtype, pd.Float32Dtype, pd.Float64Dtype, pd.Int8Dtype, pd.Int16Dtype, pd.Int32Dtype, pd.Int64Dtype,
     pd.UInt8Dtype, pd.UInt16Dtype, pd.UInt32Dtype, pd.UInt64Dtype}
)  # fmt: skip


def add_index(parts: Parts, index: pd.Index, label: str) -> None:
    """Adds an index: its kind, names and labels."""
    parts.text(type(index).__name__)
    if type(index) not in _INDEXES:
        raise UnencodableError(
            f"an index of type {type(index).__qualname__}", HERE, f"the content of {label} is not known"
        )
    parts.number(len(index.names))
    for name in index.names:
        parts.child(name, f"{label} name")
    if isinstance(index, pd.MultiIndex):
        for level, codes in zip(index.levels, index.codes, strict=True):
            add_index(parts, level, f"{label} level")
            add_array(parts, np.asarray(codes), f"{label} codes")
        parts.child(index.sortorder, "sortorder")
    elif isinstance(index, pd.RangeIndex):
        parts.number(index.start, index.stop, index.step)
    else:
        parts.child(getattr(index, "freq", None), f"{label} freq")
        add_values(parts, index.array, label)


_INDEXES: Final = frozenset(
    {pd.Index, pd.RangeIndex, pd.MultiIndex, pd.CategoricalIndex, pd.DatetimeIndex, pd.TimedeltaIndex, pd.PeriodIndex,
     pd.IntervalIndex}
)  # fmt: skip


# What pandas itself keeps in frames and series. Unpickled ones have attributes of their class too.
_OWN: Final = frozenset({"_mgr", "_attrs", "_flags", "_name", "_cache", "_item_cache", "_cacher", "_is_copy", "_typ"})
OWN_ATTRIBUTES.update({kind: _OWN | kind._internal_names_set for kind in (pd.DataFrame, pd.Series)})


def expand_frame(value: pd.DataFrame, walk: WalkContext) -> Expansion:
    """A frame: column labels, index, columns, attrs, flags."""
    parts = Parts(type(value))
    add_index(parts, value.columns, "columns")
    add_index(parts, value.index, "index")
    for position in range(value.shape[1]):
        add_values(parts, value.iloc[:, position].array, f"column {position}")
    _add_notes(parts, value)
    parts.attributes(value)
    return parts.expansion("pandas frame")


def expand_series(value: pd.Series[Any], walk: WalkContext) -> Expansion:
    """A series: name, index, values, attrs, flags."""
    parts = Parts(type(value))
    parts.child(value.name, "name")
    add_index(parts, value.index, "index")
    add_values(parts, value.array, "values")
    _add_notes(parts, value)
    parts.attributes(value)
    return parts.expansion("pandas series")


def _stored(values: Any) -> Any:
    """Plain NumPy memory where the array is only a cover for it."""
    return values.to_numpy() if type(values) is arrays.NumpyExtensionArray else values


def _add_notes(parts: Parts, value: Any) -> None:
    parts.number(value.flags.allows_duplicate_labels)
    parts.number(len(value.attrs))
    for key, note in value.attrs.items():
        parts.child(key, "attrs key")
        parts.child(note, f"attrs[{key!r}]" if type(key) is str else "attrs")


def expand_index(value: pd.Index, walk: WalkContext) -> Expansion:
    """An index of any kind."""
    parts = Parts(type(value))
    add_index(parts, value, "index")
    return parts.expansion("pandas index")


def expand_extension_array(value: Any, walk: WalkContext) -> Expansion:
    """An extension array."""
    parts = Parts(type(value))
    add_values(parts, value, "values")
    return parts.expansion("pandas array")


def expand_extension_dtype(value: Any, walk: WalkContext) -> Expansion:
    """A pandas dtype."""
    parts = Parts(type(value))
    add_extension_dtype(parts, value)
    return parts.expansion("pandas dtype")._replace(still=always)


def expand_timestamp(value: pd.Timestamp, walk: WalkContext) -> Expansion:
    """A point in time: count of its unit, unit, zone, which of two equal wall times it is."""
    parts = Parts(type(value))
    parts.number(value.asm8.view("i8"), value.fold)
    parts.text(value.unit)
    parts.child(value.tz, "tz")
    return parts.expansion("pandas timestamp")._replace(by_value=True, still=always)


def expand_timedelta(value: pd.Timedelta, walk: WalkContext) -> Expansion:
    """A duration: count of its unit, unit."""
    parts = Parts(type(value))
    parts.number(value.asm8.view("i8"))
    parts.text(value.unit)
    return parts.expansion("pandas timedelta")._replace(by_value=True, still=always)


def expand_period(value: pd.Period, walk: WalkContext) -> Expansion:
    """A period: its number and frequency."""
    parts = Parts(type(value))
    parts.number(value.ordinal)
    parts.child(value.freq, "freq")
    return parts.expansion("pandas period")._replace(still=always)


def expand_interval(value: pd.Interval[Any], walk: WalkContext) -> Expansion:
    """An interval: its ends and which of them belong to it."""
    parts = Parts(type(value))
    parts.text(value.closed)
    parts.child(value.left, "left")
    parts.child(value.right, "right")
    return parts.expansion("pandas interval")._replace(still=always)


def expand_missing(value: object, walk: WalkContext) -> Expansion:
    """NaT or NA: the only object of its type."""
    return Expansion("pandas missing", b"", (type(value),), by_value=True, still=always)


def expand_offset(value: Any, walk: WalkContext) -> Expansion:
    """A date offset: its class, count and parameters."""
    parts = Parts(type(value))
    parts.number(value.n, value.normalize)
    parameters = _offset_parameters(value)
    for name in sorted(parameters):
        parts.text(name)
        parts.child(parameters[name], name)
    return parts.expansion("pandas offset")._replace(still=always)


def _offset_parameters(value: Any) -> dict[str, Any]:
    found = dict(value.kwds)
    for name in getattr(value, "_attributes", ()):
        if name not in ("n", "normalize"):
            found[name] = getattr(value, name, None)
    calendar = found.pop("calendar", None)
    if calendar is not None:  # compared by what it says, as its own equality is
        found["calendar"] = (
            (calendar.weekmask, calendar.holidays.tobytes()) if hasattr(calendar, "weekmask") else calendar
        )
    return found


def _offset_kinds() -> set[type]:
    base = pd.offsets.BaseOffset
    return {kind for kind in vars(offsets).values() if isinstance(kind, type) and issubclass(kind, base)}


_ARRAYS: Final = _array_kinds()

EXPANDERS: dict[type, Expander] = placed({
    pd.DataFrame: expand_frame,
    pd.Series: expand_series,
    **dict.fromkeys(_INDEXES, expand_index),
    **dict.fromkeys(_ARRAYS, expand_extension_array),
    **dict.fromkeys(
        (pd.CategoricalDtype, pd.DatetimeTZDtype, pd.StringDtype, pd.IntervalDtype, pd.SparseDtype, pd.ArrowDtype,
         pd.PeriodDtype, *_PLAIN_DTYPES),
        expand_extension_dtype,
    ),
    pd.Timestamp: expand_timestamp,
    pd.Timedelta: expand_timedelta,
    pd.Period: expand_period,
    pd.Interval: expand_interval,
    type(pd.NaT): expand_missing,
    type(pd.NA): expand_missing,
    **dict.fromkeys(_offset_kinds(), expand_offset),
})  # fmt: skip
