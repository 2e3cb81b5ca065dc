"""Texts of files that may become timestamps of today while they are read, and the columns of reads.

In: reads of the protocol. Out: whether the day belongs into their keys, and what their columns may hold. Law: as in
today.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from nectar.dialects.spark.texts_and_times import EITHER, TEXT, TIME, Columns, of_parquet, of_schema, of_words

_WRITTEN: Final = frozenset({"csv", "json", "text"})  # formats in which everything is written as text
_INFERRING: Final = ("inferschema", "infertimestamp")  # options that let types be guessed from texts


def parses_times(read: Any) -> bool:
    """Whether texts of files may become timestamps while they are read."""
    source = read.data_source
    if source.format.lower() not in _WRITTEN:
        return False
    if source.HasField("schema") and source.schema:
        return bool(of_words(source.schema) & TIME)
    return _infers(source)


def columns_of_read(read: Any, files: Iterable[tuple[str, bytes]]) -> Columns:
    """The columns of a read, as far as they are written somewhere. files: paths, with what is in each."""
    source = read.data_source
    if source.HasField("schema") and source.schema:
        return of_schema(source.schema)
    if source.format.lower() in _WRITTEN:
        return Columns(rest=EITHER if _infers(source) else TEXT)
    if source.format.lower() == "parquet":
        return of_parquet(list(files))
    return Columns()


def _infers(source: Any) -> bool:
    """Whether types may be guessed from texts: by any value of the options but "false"."""
    options = {name.lower(): value.strip().lower() for name, value in source.options.items()}
    return any(options.get(name, "false") != "false" for name in _INFERRING)
