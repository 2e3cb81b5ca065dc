"""Tables as Parquet files that an engine wrote by itself.

In: files. Out: how many rows they have, which columns, and a table again. Law: a file counts if its ends and its footer
are those of a Parquet file; what is in it is the engine's word.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from nectar.errors import MissingExtraError, StoreFailure
from nectar.store.loss import DamagedError, unparsed
from nectar.store.manifest import Column

if TYPE_CHECKING:
    import pyarrow as pa

_MAGIC: Final = b"PAR1"


def broken_ends(head: bytes, tail: bytes, size: int) -> str | None:
    """What is wrong with the ends of a Parquet file, if anything: its magic words, and a footer that fits into it."""
    if not head.startswith(_MAGIC) or not tail.endswith(_MAGIC):
        return "it does not begin and end like a Parquet file"
    footer = int.from_bytes(tail[-8:-4], "little", signed=True)
    return None if 0 < footer <= size - 12 else "its footer has a length that cannot be"


def described(views: Sequence[Any]) -> tuple[int, tuple[Column, ...]]:
    """Rows of all files together, and the columns, which are the same in each. Raises StoreFailure otherwise."""
    arrow, parquet = _libraries()
    rows, columns = 0, set()
    for view in views:
        try:
            file = parquet.ParquetFile(arrow.py_buffer(view))
            rows += file.metadata.num_rows
            columns.add(tuple(Column(field.name, str(field.type)) for field in file.schema_arrow))
        except (arrow.ArrowException, OSError, ValueError) as error:
            raise StoreFailure(f"the engine has written what is no Parquet file: {error}") from error
    if len(columns) != 1:
        raise StoreFailure("the engine has written no files, or files with different columns")
    return rows, columns.pop()


def read_arrow(views: Sequence[Any], rows: int) -> pa.Table:
    """The table in these files, one after the other."""
    arrow, parquet = _libraries()
    try:
        table: pa.Table = arrow.concat_tables([parquet.read_table(arrow.py_buffer(view)) for view in views])
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise unparsed(error, "Parquet") from error
    if table.num_rows != rows:
        raise DamagedError(f"the parts have {table.num_rows:,} rows and not {rows:,}; compute the result again")
    return table


def _libraries() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError("pyarrow", "arrow") from error
