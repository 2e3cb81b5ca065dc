"""Results in the formats of others: Parquet, Arrow, CSV, newline-delimited JSON.

In: a result that is a table. Out: bytes, or a file that appears whole or not at all. A result that is one Arrow file
already is copied as it is; everything else is written by Polars.
"""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, Literal

from nectar.errors import MissingExtraError, NectarError, StoreFailure, UserError
from nectar.store.read import Result

Format = Literal["parquet", "arrow", "csv", "ndjson"]
FORMATS: Final[dict[str, Format]] = {
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".ipc": "arrow", ".feather": "arrow", ".csv": "csv",
    ".ndjson": "ndjson", ".jsonl": "ndjson",
}  # fmt: skip


def format_of(path: str | os.PathLike[str]) -> Format:
    """The format that the suffix of a path stands for."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise UserError(f"{os.fspath(path)} does not say which format is wanted: end it with {', '.join(FORMATS)}")
    return FORMATS[suffix]


def encoded(result: Result, kind: Format) -> bytes:
    """The table in a format."""
    memory = io.BytesIO()
    _write(result, memory, kind)
    return memory.getvalue()


def export(result: Result, path: Path, kind: Format) -> int:
    """The table is in a file, whole; a file that was there before is replaced in one step. How many bytes it has."""
    with replacing(path) as file:
        _write(result, file, kind)
        return file.tell()


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes its place when the block has ended well, and leaves nothing otherwise."""
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with open(aside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except NectarError:
        raise
    except OSError as error:
        raise StoreFailure(error.errno, f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            aside.unlink()


def _write(result: Result, file: IO[bytes], kind: Format) -> None:
    tables = result.tables() if result.kind != "parquet" else []
    if kind == "arrow" and len(tables) == 1:
        file.write(tables[0])
        return
    frame = _frame(result)
    try:
        if kind == "parquet":
            frame.write_parquet(file)
        elif kind == "arrow":
            frame.write_ipc(file)
        elif kind == "csv":
            frame.write_csv(file)
        else:
            frame.write_ndjson(file)
    except _polars().exceptions.PolarsError as error:
        raise UserError(f"this table cannot be written as {kind}: {error}; try another format") from error


def _frame(result: Result) -> Any:
    _polars()
    return result.to_polars()


def _polars() -> Any:
    try:
        import polars
    except ImportError as error:
        raise MissingExtraError("polars", "polars") from error
    return polars
