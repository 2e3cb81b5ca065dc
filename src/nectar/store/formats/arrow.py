"""Tables as Arrow IPC files.

In: anything that is a table. Out: files of at most some hundred megabytes each, in order; and a table again. Law:
types, rows, nulls, metadata and their order survive; a column that an Arrow file cannot hold is refused by name.
Written and read through pyarrow; through polars if pyarrow is missing, or where a frame would not come back from
pyarrow as it was (integers of 128 bits, names that are empty or hold NUL).
Uncompressed files are mapped and not copied when they are read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

from nectar.errors import MissingExtraError, StoreFailure, UserError
from nectar.store.chunks import Checked, Range
from nectar.store.formats.arrow_places import Places, as_stream, places_of
from nectar.store.loss import DamagedError, unparsed
from nectar.store.manifest import Column, Writer
from nectar.store.sinks import HashingSink
from nectar.threads import loading

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

Compression = Literal["auto", "none", "lz4"]
Open = Callable[[], HashingSink]  # begins the next part
Close = Callable[[HashingSink], None]  # ends it

PART_BYTES: Final = 256 << 20  # parts can be read, verified and moved beside each other; more of them only cost fsyncs
COMPRESS_ABOVE: Final = 1 << 30  # mapping beats LZ4 at every size; above this the space matters more: decisions/0010
_MAGIC: Final = b"ARROW1"
_LIGHT: Final = 4 << 20  # bytes of a frame that is written in fewer moments than pyarrow takes to load
_SMALL: Final = 1 << 18  # bytes of a file that is read as a stream, for which Polars makes no plan: 0.4 ms less
_COPYABLE: Final = 64 << 20  # bytes that a process copies for what loading pyarrow takes, 60 to 100 ms
_copied = 0  # bytes, by this process, for want of pyarrow
_WIDTHS: Final = {
    "bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8,
    "float": 4, "double": 8, "date32[day]": 4,
}  # fmt: skip
_PLAIN_TYPES: Final = frozenset(_WIDTHS) | {
    "string", "large_string", "string_view", "binary", "large_binary", "binary_view",
}  # fmt: skip
_ARROW_TYPES: Final = {  # plain types by the names that Polars has for them; and as it hands them to pyarrow
    "Boolean": "bool", "Int8": "int8", "Int16": "int16", "Int32": "int32", "Int64": "int64", "UInt8": "uint8",
    "UInt16": "uint16", "UInt32": "uint32", "UInt64": "uint64", "Float32": "float", "Float64": "double",
    "Date": "date32[day]", "String": "string_view", "Binary": "binary_view",
}  # fmt: skip
ENDS: Final = 10  # bytes at each end that `broken_ends` wants to see


def write(
    table: Any, begin: Open, end: Close, *, part_rows: int | None, compression: Compression
) -> tuple[Writer, int, tuple[Column, ...]]:
    """The table is written to as many parts as it needs; who wrote it, its rows and columns.

    A small frame of plain types is not worth loading pyarrow for.
    """
    frame = _as_polars(table)
    if frame is not None:
        _refuse_false_marks(frame)
        if _is_light_frame(frame):
            writer, rows, columns = _write_polars(frame, begin, end, part_rows, compression)
            return writer, rows, tuple(Column(each.name, _ARROW_TYPES[each.type]) for each in columns)
    arrow = _library("pyarrow")
    if frame is not None and (arrow is None or _only_polars_can(frame)):
        return _write_polars(frame, begin, end, part_rows, compression)
    if arrow is None:
        return _write_polars(_to_polars(table), begin, end, part_rows, compression)
    return _write_arrow(_batches_of(table, arrow), begin, end, part_rows, compression)


def broken_ends(head: bytes, tail: bytes, size: int) -> str | None:
    """What is wrong with the ends of an Arrow file, if anything: its magic words, and a footer that fits into it."""
    if not head.startswith(_MAGIC) or not tail.endswith(_MAGIC):
        return "it does not begin and end like an Arrow file"
    footer = int.from_bytes(tail[-10:-6], "little", signed=True)
    return None if 0 < footer <= size - 16 else "its footer has a length that cannot be"


def read_arrow(views: list[Any], writer: Writer, rows: int, only: Sequence[str] | None = None) -> pa.Table:
    """The table in these files. Mapped files are used in place; whoever holds the table holds the mapping.

    only: the columns that are wanted of files that are compressed, of which others may not be looked at.
    """
    arrow = _library("pyarrow")
    if arrow is None:
        raise MissingExtraError("pyarrow", "arrow")
    try:
        tables = [_file_of(arrow, view, only).read_all() for view in views]
        table = tables[0] if len(tables) == 1 else arrow.concat_tables(tables)
    except arrow.ArrowNotImplementedError as error:
        if writer == "polars":
            raise UserError(f"Arrow has no such type ({error}): read this result with to_polars()") from error
        raise
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise unparsed(error, "Arrow") from error
    _expect(table.num_rows, rows)
    return table


def read_polars(
    parts: Sequence[Checked], writer: Writer, rows: int, columns: Sequence[Column], only: Sequence[str] | None = None
) -> pl.DataFrame:
    """The frame in these files; through pyarrow where it is there and can, since it does not copy.

    only: the columns that are wanted, if not all are. A small frame of plain types is not worth loading pyarrow for.
    """
    polars = _library("polars")
    if polars is None:
        raise MissingExtraError("polars", "polars")
    if not columns:
        empty: pl.DataFrame = polars.DataFrame(height=rows)
        return empty
    if writer == "pyarrow" and not _is_light(parts, rows, columns, only) and _library("pyarrow") is not None:
        places = [_places_of(part, only) for part in parts]
        views = [part.view(_ranges(place)) for part, place in zip(parts, places, strict=True)]
        packed = any(place is not None and place.compressed for place in places)
        table = read_arrow(views, writer, rows, only if packed else None)
        mapped: pl.DataFrame = polars.from_arrow(table if only is None else table.select(only), rechunk=False)
        return mapped
    try:
        frame: pl.DataFrame = polars.concat([_read_by_polars(polars, part, only) for part in parts], rechunk=False)
    except StoreFailure:
        raise
    except (polars.exceptions.PolarsError, OSError) as error:
        raise unparsed(error, "Arrow") from error
    _expect(frame.height, rows)
    return frame


def schema_ahead(parts: Sequence[Checked], writer: Writer, columns: Sequence[Column]) -> pl.Schema | None:
    """The types that `read_polars` will give, if it is better to read no more than the columns that are needed.

    None where all of the table can be mapped without reading any of it: where pyarrow is loaded, or has a say in the
    types, and all of it was verified; or where it cannot be told which bytes a column is.
    """
    polars = _library("polars")
    if polars is None or not columns:
        return None
    light = "pyarrow" not in sys.modules and _are_plain(columns)
    if not light and all(part.is_sound for part in parts):
        return None
    places = _places_of(parts[0], ())
    if places is None:
        return None
    arrow = None if light or writer == "polars" else _library("pyarrow")
    if arrow is None and not light and writer != "polars":
        return None
    try:
        if arrow is not None:
            read = arrow.ipc.open_file(arrow.py_buffer(parts[0].view(places.ranges))).schema
            empty = arrow.Table.from_batches([], schema=read)  # empty_table() would import pandas
            mapped: pl.Schema = polars.from_arrow(empty).schema
            return mapped
        with parts[0].file(places.ranges) as file:
            schema: pl.Schema = polars.Schema(polars.read_ipc_schema(file))
            return schema
    except StoreFailure:
        raise
    except (polars.exceptions.PolarsError, OSError, *_errors_of(arrow)) as error:
        raise unparsed(error, "Arrow") from error


def _errors_of(arrow: Any) -> tuple[type[Exception], ...]:
    return () if arrow is None else (arrow.ArrowException,)


def _file_of(arrow: Any, view: Any, only: Sequence[str] | None) -> Any:
    file = arrow.ipc.open_file(arrow.py_buffer(view))
    if only is None:
        return file
    fields = sorted(file.schema.get_field_index(name) for name in only)
    return arrow.ipc.open_file(arrow.py_buffer(view), options=arrow.ipc.IpcReadOptions(included_fields=fields))


def _places_of(part: Checked, only: Sequence[str] | None) -> Places | None:
    """What a reader of these columns looks at; None if it is everything, cannot be told, or was verified before."""
    return None if only is None or part.is_sound else places_of(part.read, part.size, only)


def _ranges(places: Places | None) -> Sequence[Range] | None:
    return None if places is None else places.ranges


def _read_by_polars(polars: Any, part: Checked, only: Sequence[str] | None) -> Any:
    if part.size <= _SMALL and (stream := as_stream(bytes(part.view()))) is not None:
        with suppress(polars.exceptions.PolarsError):  # in another version, which reads files all the same
            frame = polars.read_ipc_stream(stream)
            return frame if only is None else frame.select(only)
    with part.file(_ranges(_places_of(part, only))) as file:
        return polars.read_ipc(file, columns=None if only is None else list(only))


def _is_light(parts: Sequence[Checked], rows: int, columns: Sequence[Column], only: Sequence[str] | None) -> bool:
    """Whether all copying so far costs less than loading pyarrow, and Polars reads the very types that were written."""
    global _copied
    if "pyarrow" in sys.modules or not _are_plain(columns):
        return False
    size = _bytes_of(sum(part.size for part in parts), rows, columns, only)
    light = _copied + size <= _COPYABLE
    _copied += size
    return light


def _is_light_frame(frame: Any) -> bool:
    """The same of a frame that is to be written."""
    if "pyarrow" in sys.modules or frame.estimated_size() > _LIGHT:
        return False
    return bool(frame.width) and all(str(kind) in _ARROW_TYPES for kind in frame.dtypes)


def _are_plain(columns: Sequence[Column]) -> bool:
    return _PLAIN_TYPES.issuperset(column.type for column in columns)


def _bytes_of(size: int, rows: int, columns: Sequence[Column], only: Sequence[str] | None) -> int:
    """About how many bytes of a table are in some of its columns."""
    if only is None:
        return size
    wanted = [column for column in columns if column.name in set(only)]
    if all(column.type in _WIDTHS for column in wanted):
        return rows * sum(_WIDTHS[column.type] for column in wanted)
    return size - rows * sum(_WIDTHS.get(column.type, 0) for column in columns if column not in wanted)


def _expect(found: int, rows: int) -> None:
    if found != rows:
        raise DamagedError(f"the parts have {found} rows and not {rows} as they should: compute the result again")


def _library(name: str) -> Any:
    # Imported by name and not by statement at the top: nothing here is needed until a table is written or read.
    try:
        if name == "pyarrow":
            with loading():
                import pyarrow
                import pyarrow.ipc

            return pyarrow
        import polars

        return polars
    except ImportError:
        return None


# Writing through pyarrow


def _batches_of(table: Any, arrow: Any) -> tuple[Any, Iterator[Any], int | None]:
    """Schema, batches, and bytes if they are known beforehand."""
    try:
        if _is_frame_of("pandas", table):
            table = arrow.Table.from_pandas(table)
        elif not isinstance(table, (arrow.Table, arrow.RecordBatchReader)):
            if not hasattr(table, "__arrow_c_stream__"):
                raise UserError(f"{_kind(table)} is no table: keep it as an object")
            stream = arrow.RecordBatchReader.from_stream(table)
            table = stream.read_all() if _as_polars(table) is not None else stream  # arrow.table() would import pandas
    except (arrow.ArrowException, ValueError, TypeError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{_kind(table)} cannot become an Arrow table: {error}; keep it as an object") from error
    if isinstance(table, arrow.Table):
        return table.schema, iter(table.to_batches()), table.nbytes
    return table.schema, iter(table), None


def _write_arrow(
    source: tuple[Any, Iterator[Any], int | None],
    begin: Open,
    end: Close,
    part_rows: int | None,
    compression: Compression,
) -> tuple[Writer, int, tuple[Column, ...]]:
    import pyarrow as pa

    schema, batches, known = source
    rows = written = 0
    for part in _parts(schema, batches, part_rows):
        written += part.nbytes
        packed = _packed(compression, written if known is None else known)
        options = pa.ipc.IpcWriteOptions(compression="lz4" if packed else None)
        sink = begin()
        try:
            with pa.ipc.new_file(pa.PythonFile(sink, "w"), schema, options=options) as writer:
                writer.write_table(part)
        except BaseException as error:
            if sink.error is not None and sink.error is not error:
                raise sink.error from error
            if isinstance(error, pa.ArrowException):
                raise UserError(f"this table does not fit into an Arrow file: {error}; keep it as an object") from error
            raise
        end(sink)
        rows += part.num_rows
    return "pyarrow", rows, tuple(Column(field.name, str(field.type)) for field in schema)


def _parts(schema: Any, batches: Iterator[Any], part_rows: int | None) -> Iterator[Any]:
    """Tables that go into one file each; at least one, so that the schema is kept."""
    import pyarrow as pa

    gathered: list[Any] = []
    size = rows = produced = 0
    for batch in map(_without_ballast, _cut(batches, part_rows)):
        full = size + batch.nbytes > PART_BYTES or (part_rows is not None and rows + batch.num_rows > part_rows)
        if gathered and full:
            yield _part(pa.Table.from_batches(gathered, schema))
            gathered, size, rows, produced = [], 0, 0, produced + 1
        gathered.append(batch)
        size, rows = size + batch.nbytes, rows + batch.num_rows
    if gathered or not produced:
        yield _part(pa.Table.from_batches(gathered, schema))


def _part(table: Any) -> Any:
    """The table with one dictionary for each column, since a file holds no more."""
    if not any(_has(field.type, _is_dictionary) for field in table.schema):
        return table
    nested = any(_has(field.type, _is_dictionary) and not _is_dictionary(field.type) for field in table.schema)
    return table.combine_chunks() if nested else table.unify_dictionaries()


def _cut(batches: Iterator[Any], part_rows: int | None) -> Iterator[Any]:
    for batch in batches:
        most = batch.num_rows
        if batch.nbytes > PART_BYTES:
            most = max(1, batch.num_rows * PART_BYTES // batch.nbytes)
        if part_rows is not None:
            most = min(most, max(1, part_rows))
        if most >= batch.num_rows:
            yield batch
        else:
            for start in range(0, batch.num_rows, most):
                yield batch.slice(start, most)


def _without_ballast(batch: Any) -> Any:
    """The batch with its views pointing to no more text than they show: a slice carries the text of the whole."""
    import pyarrow as pa

    solid = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    columns = list(batch.columns)
    changed = False
    for position, column in enumerate(columns):
        if column.type in solid and column.nbytes > 64 * len(column) + 4096:
            compact = column.cast(solid[column.type])
            if compact.nbytes + 16 * len(column) < column.nbytes * 3 // 4:
                columns[position] = compact.cast(column.type)
                changed = True
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema) if changed else batch


def _has(kind: Any, wanted: Callable[[Any], bool]) -> bool:
    if wanted(kind):
        return True
    storage = getattr(kind, "storage_type", None)
    if storage is not None:
        return _has(storage, wanted)
    return any(_has(kind.field(position).type, wanted) for position in range(kind.num_fields))


def _is_dictionary(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(kind))


def _packed(compression: Compression, size: int) -> bool:
    return compression == "lz4" or (compression == "auto" and size > COMPRESS_ABOVE)


# Writing through polars


def _as_polars(table: Any) -> Any:
    return table if _is_frame_of("polars", table) else None


def _is_frame_of(library: str, table: Any) -> bool:
    """Whether a table is a frame of a library, which is loaded then; another thread may be loading it just now."""
    kind = getattr(sys.modules.get(library), "DataFrame", None)
    return kind is not None and isinstance(table, kind)


def _to_polars(table: Any) -> Any:
    polars = _library("polars")
    if polars is None:
        raise MissingExtraError("pyarrow", "arrow")
    if not hasattr(table, "__arrow_c_stream__"):
        raise UserError(f"{_kind(table)} is no table that polars can read without pyarrow: keep it as an object")
    return polars.DataFrame(table)


def _only_polars_can(frame: Any) -> bool:
    """Whether a frame would come back otherwise from pyarrow, or abort the process on the way there.

    Polars gives a column without a name one of its own when it takes a table from pyarrow. Raises UserError if nobody
    can write the frame.
    """
    foreign = [_is_foreign(name, kind) or name == "" for name, kind in frame.schema.items()]  # all are looked at
    return any(foreign)


def _is_foreign(name: str, kind: Any) -> bool:
    """Whether pyarrow cannot have a column, or a part of one, of this name and type."""
    type_name = type(kind).__name__ if not isinstance(kind, type) else kind.__name__
    if type_name == "Object":
        raise UserError("a column of type Object does not fit into an Arrow file: keep the frame as an object")
    if getattr(kind, "size", None) == 0:
        raise UserError("arrays of length 0 do not come back from an Arrow file: keep the frame as an object")
    if "\0" in name or type_name in {"Int128", "UInt128"}:
        return True
    inner = getattr(kind, "inner", None)
    parts = [("", inner)] if inner is not None else [(each.name, each.dtype) for each in getattr(kind, "fields", ())]
    foreign = [_is_foreign(part, each) for part, each in parts]
    return any(foreign)


def _refuse_false_marks(frame: Any) -> None:
    """Raises UserError if a column is marked as sorted and is not: Polars believes the mark, and files have none."""
    from nectar.keys.values.polars_columns import false_mark  # there is a frame, so Polars is loaded

    for column in frame.get_columns():
        if false_mark(column):
            raise UserError(
                f"the column {column.name!r} is marked as sorted and is not (set_sorted), which an Arrow file does not "
                "hold: keep the frame as an object"
            )


def _write_polars(
    frame: Any, begin: Open, end: Close, part_rows: int | None, compression: Compression
) -> tuple[Writer, int, tuple[Column, ...]]:
    _only_polars_can(frame)  # refuses what nobody can write
    size = frame.estimated_size()
    most = max(1, frame.height * PART_BYTES // size) if size > PART_BYTES else max(1, frame.height)
    if part_rows is not None:
        most = min(most, max(1, part_rows))
    for start in range(0, max(1, frame.height), most):
        sink = begin()
        try:
            packing = "lz4" if _packed(compression, size) else "uncompressed"
            frame.slice(start, most).write_ipc(sink, compression=packing)
        except BaseException as error:
            if sink.error is not None and sink.error is not error:
                raise sink.error from error
            raise
        end(sink)
    columns = tuple(Column(name, str(kind)) for name, kind in frame.schema.items())
    return "polars", frame.height, columns


def _kind(value: object) -> str:
    return f"a {type(value).__module__}.{type(value).__qualname__}"
