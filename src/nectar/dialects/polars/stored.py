"""Results from the store as sources of a plan, read where they lie.

A hit becomes a Python source: Polars tells it which columns, rows and predicate it needs, so that what would have been
pushed down still is. Reading an Arrow file through Polars' own scan would copy it; where it has to
be copied all the same, because loading what maps it would take longer, only the columns that are needed are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import polars as pl

if TYPE_CHECKING:
    from nectar.store.read import Result

_sources: Final[dict[int, _Columns]] = {}
_failed: Final[set[int]] = set()
_numbers: Final = itertools.count(1)
_MORSEL: Final = 100_000  # rows handed over at a time, so that several threads have something to do


class StoredFrame:
    """A frame that plans can refer to for as long as this object lives."""

    def __init__(self, columns: _Columns) -> None:
        self._number = next(_numbers)
        self._columns = columns
        _sources[self._number] = columns

    @classmethod
    def of(cls, frame: pl.DataFrame) -> StoredFrame:
        """A frame that is in memory."""
        return cls(_InMemory(frame))

    @classmethod
    def opened(cls, result: Result, *, whole: bool) -> StoredFrame:
        """A result of the store. whole: all of it is needed. It is read when it is known what is, if that is better.

        Raises StoreFailure if it cannot be read now.
        """
        schema = None if whole else result.schema_ahead()
        return cls.of(result.to_polars()) if schema is None else cls(_InFiles(result, schema))

    @property
    def frame(self) -> pl.DataFrame:
        """All of it."""
        return self._columns.read(None)

    def load(self) -> None:
        """All of it is in memory from now on. Raises StoreFailure if it cannot be read."""
        self._columns = _sources[self._number] = _InMemory(self.frame)

    @property
    def schema(self) -> pl.Schema:
        """Its columns and their types."""
        return self._columns.schema

    def lazy(self) -> pl.LazyFrame:
        """A lazy frame with this frame as its source."""
        return pl.LazyFrame._scan_python_function(
            schema=self.schema, scan_fn=_Reader(self._number), pyarrow=False, validate_schema=False, is_pure=True
        )

    @property
    def failed(self) -> bool:
        """Whether it could not be read when a plan asked for it."""
        return self._number in _failed

    def close(self) -> None:
        """Plans that refer to it cannot run any more."""
        _sources.pop(self._number, None)
        _failed.discard(self._number)


class _Columns(Protocol):
    """A frame whose columns can be had."""

    @property
    def schema(self) -> pl.Schema:
        """All columns and their types."""

    def read(self, columns: Sequence[str] | None) -> pl.DataFrame:
        """These columns, or all."""


class _InMemory:
    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame
        self.schema = frame.schema

    def read(self, columns: Sequence[str] | None) -> pl.DataFrame:
        return self._frame if columns is None else _chosen(self._frame, columns)


class _InFiles:
    """A result whose files are open, and are read when it is known which columns are needed."""

    def __init__(self, result: Result, schema: pl.Schema) -> None:
        self._result = result
        self._read: dict[tuple[str, ...], pl.DataFrame] = {}  # by columns: a plan may ask several times
        self.schema = schema

    def read(self, columns: Sequence[str] | None) -> pl.DataFrame:
        needed = tuple(name for name in self.schema if columns is None or name in columns)
        if not needed:
            return pl.DataFrame(height=self._result.rows)
        if needed not in self._read:
            self._read[needed] = self._result.to_polars(needed)
        return self._read[needed]


class _Reader:
    """What Polars calls. Pickled inside a plan it is a number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(
        self, with_columns: list[str] | None, predicate: bytes | None, n_rows: int | None, batch_size: int | None
    ) -> tuple[Iterator[pl.DataFrame], bool]:
        try:
            return _rows_of(_sources[self.number], with_columns, predicate, n_rows)
        except BaseException:
            _failed.add(self.number)
            raise


def rows_of(
    frame: pl.DataFrame, with_columns: list[str] | None, predicate: bytes | None, n_rows: int | None
) -> tuple[Iterator[pl.DataFrame], bool]:
    """What Polars wants of a frame, in pieces; and whether the predicate has been applied."""
    return _rows_of(_InMemory(frame), with_columns, predicate, n_rows)


def _rows_of(
    source: _Columns, with_columns: list[str] | None, predicate: bytes | None, n_rows: int | None
) -> tuple[Iterator[pl.DataFrame], bool]:
    parsed, understood = _parsed(predicate)
    named = [] if parsed is None else parsed.meta.root_names()
    frame = source.read(None if with_columns is None else [*dict.fromkeys([*with_columns, *named])])
    if n_rows is not None:
        frame = frame.head(n_rows)
    if parsed is not None:
        frame = frame.filter(parsed)
    if with_columns is not None:
        frame = _chosen(frame, with_columns)
    return frame.iter_slices(_MORSEL) if frame.height > _MORSEL else iter([frame]), understood


def _chosen(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Some columns of a frame. How many rows there are is asked for where none is; a selection of none has no rows."""
    return frame.select(columns) if columns else pl.DataFrame(height=frame.height)


def _parsed(predicate: bytes | None) -> tuple[pl.Expr | None, bool]:
    """The predicate, and whether it was understood; Polars applies it itself otherwise."""
    if not predicate:
        return None, True
    try:
        return pl.Expr.deserialize(predicate), True
    except Exception:  # a predicate that cannot be written down, such as one with a Python function
        return None, False
