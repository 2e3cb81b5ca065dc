"""Results from the store as sources of a plan, read where they lie.

A hit becomes a Python source: Polars tells it which columns, rows and predicate it needs, so that what would have been
pushed down still is. Reading an Arrow file through Polars' own scan would copy it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

import polars as pl

_frames: Final[dict[int, pl.DataFrame]] = {}
_failed: Final[set[int]] = set()
_numbers: Final = itertools.count(1)
_MORSEL: Final = 100_000  # rows handed over at a time, so that several threads have something to do


class StoredFrame:
    """A frame that plans can refer to for as long as this object lives."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._number = next(_numbers)
        self.frame = frame
        _frames[self._number] = frame

    def lazy(self) -> pl.LazyFrame:
        """A lazy frame with this frame as its source."""
        return pl.LazyFrame._scan_python_function(
            schema=self.frame.schema, scan_fn=_Reader(self._number), pyarrow=False, validate_schema=False, is_pure=True
        )

    @property
    def failed(self) -> bool:
        """Whether it could not be read when a plan asked for it."""
        return self._number in _failed

    def close(self) -> None:
        """Plans that refer to it cannot run any more."""
        _frames.pop(self._number, None)
        _failed.discard(self._number)


class _Reader:
    """What Polars calls. Pickled inside a plan it is a number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(
        self, with_columns: list[str] | None, predicate: bytes | None, n_rows: int | None, batch_size: int | None
    ) -> tuple[Iterator[pl.DataFrame], bool]:
        try:
            return rows_of(_frames[self.number], with_columns, predicate, n_rows)
        except BaseException:
            _failed.add(self.number)
            raise


def rows_of(
    frame: pl.DataFrame, with_columns: list[str] | None, predicate: bytes | None, n_rows: int | None
) -> tuple[Iterator[pl.DataFrame], bool]:
    """What Polars wants of a frame, in pieces; and whether the predicate has been applied."""
    if n_rows is not None:
        frame = frame.head(n_rows)
    parsed, understood = _parsed(predicate)
    if parsed is not None:
        frame = frame.filter(parsed)
    if with_columns is not None:
        frame = frame.select(with_columns)
    return frame.iter_slices(_MORSEL) if frame.height > _MORSEL else iter([frame]), understood


def _parsed(predicate: bytes | None) -> tuple[pl.Expr | None, bool]:
    """The predicate, and whether it was understood; Polars applies it itself otherwise."""
    if not predicate:
        return None, True
    try:
        return pl.Expr.deserialize(predicate), True
    except Exception:  # a predicate that cannot be written down, such as one with a Python function
        return None, False
