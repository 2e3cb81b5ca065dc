"""Texts in frames and arrays of libraries: a sample of each column that holds texts.

In: a value. Out: some of its texts, evenly spread. A column of paths holds paths throughout, so that a few tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

SAMPLE: Final = 48  # values of a column
_COLUMNS: Final = 200


def sample_of(value: object) -> list[str] | None:
    """Some of the texts that a frame or an array holds; None if it is neither."""
    for base in type.__getattribute__(type(value), "__mro__"):
        read = _READERS.get((base.__module__.partition(".")[0], base.__name__))
        if read is not None:
            return [each for each in read(value) if type(each) is str]
    return None


def every(size: int) -> int:
    """The distance of values in a sample."""
    return max(1, size // SAMPLE)


def _polars_series(series: Any) -> Iterable[object]:
    named = type(series.dtype).__name__ in ("String", "Categorical", "Enum", "Object")
    return series.gather_every(every(len(series))).to_list() if named else ()


def _polars_frame(frame: Any) -> Iterator[object]:
    for series in frame.get_columns()[:_COLUMNS]:
        yield from _polars_series(series)


def _pandas_series(series: Any) -> Iterable[object]:
    plain = getattr(series.dtype, "kind", "O") not in "OUS"
    return () if plain else getattr(series, "iloc", series)[:: every(len(series))].tolist()


def _pandas_frame(frame: Any) -> Iterator[object]:
    yield from _pandas_series(frame.index)
    for number in range(min(frame.shape[1], _COLUMNS)):
        yield from _pandas_series(frame.iloc[:, number])


def _array(array: Any) -> Iterable[object]:
    return array.flat[:: every(array.size)].tolist() if array.dtype.kind in "OUT" else ()


def _arrow_array(array: Any) -> Iterable[object]:
    kind = str(array.type)
    if "string" not in kind or kind.startswith(("list", "struct", "map")):
        return ()
    return [array[at].as_py() for at in range(0, len(array), every(len(array)))]


def _arrow_table(table: Any) -> Iterator[object]:
    for column in table.columns[:_COLUMNS]:
        yield from _arrow_array(column)


_READERS: Final[dict[tuple[str, str], Callable[[Any], Iterable[object]]]] = {
    ("polars", "Series"): _polars_series, ("polars", "DataFrame"): _polars_frame,
    ("pandas", "Series"): _pandas_series, ("pandas", "Index"): _pandas_series, ("pandas", "DataFrame"): _pandas_frame,
    ("numpy", "ndarray"): _array,
    ("pyarrow", "Array"): _arrow_array, ("pyarrow", "ChunkedArray"): _arrow_array,
    ("pyarrow", "Table"): _arrow_table, ("pyarrow", "RecordBatch"): _arrow_table,
}  # fmt: skip
