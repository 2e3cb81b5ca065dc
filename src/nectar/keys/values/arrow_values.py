"""Expanders of Arrow's values: tables, arrays, schemas, types, scalars, compute functions and expressions.

Law: types, names, metadata, lengths, nulls and values decide. How rows are cut into chunks, at which offset a slice
begins, what bytes lie below a null, and how long the validity bitmap is, do not. Arrow
never changes its data, but the memory may belong to a NumPy array that does: rechecks look at the content again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from nectar.errors import UnencodableError
from nectar.keys.expansion import Expander, Expansion, WalkContext, always
from nectar.keys.moments import WITH_YEAR
from nectar.keys.values.bulk import Parts
from nectar.keys.values.place import HERE, placed

_DEEPEST: Final = 100  # levels of nesting; Arrow's own readers stop earlier


def add_type(parts: Parts, kind: pa.DataType, depth: int = 0) -> None:
    """Adds a data type with its parameters, children, nullability and metadata."""
    if depth > _DEEPEST:
        raise UnencodableError("an Arrow type", HERE, f"it is nested more than {_DEEPEST} deep")
    parts.text(type(kind).__name__, str(kind.id))
    if isinstance(kind, pa.BaseExtensionType):
        _add_extension(parts, kind)
        add_type(parts, kind.storage_type, depth + 1)
        return
    if isinstance(kind, pa.DictionaryType):
        parts.number(kind.ordered)
        add_type(parts, kind.index_type, depth + 1)
        add_type(parts, kind.value_type, depth + 1)
        return
    if isinstance(kind, pa.RunEndEncodedType):
        add_type(parts, kind.run_end_type, depth + 1)
        add_type(parts, kind.value_type, depth + 1)
        return
    if isinstance(kind, pa.UnionType):
        parts.text(kind.mode)
        parts.number(*kind.type_codes)
    if isinstance(kind, pa.FixedSizeListType):
        parts.number(kind.list_size)
    if isinstance(kind, pa.MapType):
        parts.number(kind.keys_sorted)
        add_field(parts, kind.key_field, depth + 1)
        add_field(parts, kind.item_field, depth + 1)
        return
    parts.number(kind.num_fields)
    if kind.num_fields == 0:
        parts.text(str(kind))
    for position in range(kind.num_fields):
        add_field(parts, kind.field(position), depth + 1)


def _add_extension(parts: Parts, kind: Any) -> None:
    parts.text(str(kind.extension_name))
    serialize = getattr(kind, "__arrow_ext_serialize__", None)
    if serialize is not None and isinstance(kind, pa.ExtensionType):
        parts.raw(serialize())
        parts.child(type(kind), "extension type")
    else:
        parts.text(str(kind))


def add_field(parts: Parts, field: pa.Field, depth: int = 0) -> None:
    """Adds a field: name, type, nullability, metadata."""
    parts.text(field.name)
    parts.number(field.nullable)
    _add_metadata(parts, field.metadata)
    add_type(parts, field.type, depth)


def _add_metadata(parts: Parts, metadata: dict[bytes, bytes] | None) -> None:
    pairs = [] if metadata is None else list(metadata.items())
    parts.number(metadata is not None, len(pairs))
    for key, value in pairs:
        parts.raw(key)
        parts.raw(value)


def add_schema(parts: Parts, schema: pa.Schema) -> None:
    """Adds a schema: fields in order, metadata."""
    parts.number(len(schema))
    _add_metadata(parts, schema.metadata)
    for field in schema:
        add_field(parts, field)


def add_column(parts: Parts, column: pa.ChunkedArray | pa.Array, label: str = "") -> None:
    """Adds the content of a column (its type is added by the caller), however it is cut into chunks."""
    if isinstance(column, pa.ChunkedArray):
        column = _one_chunk(column)
    parts.number(len(column), column.null_count)
    if len(column) == 0 and not isinstance(column.type, pa.DictionaryType):
        return
    if column.null_count:
        parts.bulk(_bytes_of(column.is_valid().cast(pa.uint8())))
    _add_values(parts, column, label)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.num_chunks and isinstance(column.type, pa.DictionaryType):
        column = column.unify_dictionaries()
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        raise UnencodableError("an Arrow column", HERE, "it is too long to be seen as one array")
    return whole


def _add_values(parts: Parts, array: pa.Array, label: str) -> None:
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        _add_values(parts, array.storage, label)
    elif pa.types.is_null(kind):
        return
    elif isinstance(kind, pa.DictionaryType):
        parts.number(len(array.indices))
        add_column(parts, array.indices, label)
        add_column(parts, array.dictionary, label)
    elif isinstance(kind, pa.RunEndEncodedType):
        add_column(parts, pc.run_end_decode(array), label)
    elif isinstance(kind, pa.StructType):
        _add_struct(parts, array, label)
    elif isinstance(kind, pa.UnionType):
        _add_union(parts, array, label)
    elif _is_list(kind):
        _add_lists(parts, array, label)
    elif _is_text(kind):
        _add_texts(parts, array)
    else:
        _add_fixed(parts, array)


def _is_list(kind: pa.DataType) -> bool:
    tests = ("is_list", "is_large_list", "is_fixed_size_list", "is_map", "is_list_view", "is_large_list_view")
    return any(getattr(pa.types, test)(kind) for test in tests if hasattr(pa.types, test))


def _is_text(kind: pa.DataType) -> bool:
    tests = ("is_string", "is_large_string", "is_binary", "is_large_binary", "is_string_view", "is_binary_view")
    return any(getattr(pa.types, test)(kind) for test in tests if hasattr(pa.types, test))


def _add_struct(parts: Parts, array: Any, label: str) -> None:
    if array.null_count:
        array = array.drop_null()
    for field, column in zip(array.type, array.flatten(), strict=True):
        add_column(parts, column, f"{label}.{field.name}")


def _add_union(parts: Parts, array: Any, label: str) -> None:
    """Which member each value is of, then the values of each member in order."""
    whole = pa.concat_arrays([array]) if array.offset == 0 else array.take(pa.array(range(len(array)), pa.int64()))
    codes = whole.type_codes
    parts.bulk(_bytes_of(codes))
    for position, code in enumerate(whole.type.type_codes):
        chosen = pc.equal(codes, code)
        values = whole.field(position)
        dense = whole.type.mode == "dense"
        values = values.take(whole.offsets.filter(chosen)) if dense else values.filter(chosen)
        add_column(parts, values, label)


def _add_lists(parts: Parts, array: pa.Array, label: str) -> None:
    if array.null_count:
        array = array.drop_null()
    if pa.types.is_map(array.type):
        entries = pa.struct([array.type.key_field, array.type.item_field])
        array = array.cast(pa.list_(pa.field("entries", entries, nullable=False)))
    parts.bulk(_bytes_of(pc.list_value_length(array).cast(pa.int64())))
    add_column(parts, pc.list_flatten(array), label)


def _add_texts(parts: Parts, array: pa.Array) -> None:
    """Lengths, then all characters; 64-bit offsets so that views of every kind come out alike."""
    array = array.cast(pa.large_binary())
    if array.null_count:
        array = array.drop_null()
    parts.holds_texts(lambda: array.filter(pc.invert(pc.match_substring_regex(array, WITH_YEAR))).to_pylist())
    parts.bulk(_bytes_of(pc.binary_length(array)))
    _, offsets, data = array.buffers()
    edges = memoryview(offsets).cast("B").cast("q")
    begin, end = edges[array.offset], edges[array.offset + len(array)]
    parts.bulk(memoryview(data)[begin:end] if data is not None and end > begin else b"")


def _add_fixed(parts: Parts, array: pa.Array) -> None:
    """Values of one width each."""
    if array.null_count:
        array = array.drop_null()
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    parts.bulk(_bytes_of(array))


def _bytes_of(array: pa.Array) -> memoryview | bytes:
    """The memory of an array of fixed-width values without nulls, from its first value to its last."""
    width = array.type.bit_width // 8
    data = array.buffers()[1]
    if data is None or len(array) == 0 or width == 0:
        return b""
    return memoryview(data).cast("B")[array.offset * width : (array.offset + len(array)) * width]


def expand_array(value: pa.Array, walk: WalkContext) -> Expansion:
    """An array: type and content."""
    parts = Parts(type(value))
    add_type(parts, value.type)
    add_column(parts, value)
    return parts.expansion("arrow array")


def expand_chunked_array(value: pa.ChunkedArray, walk: WalkContext) -> Expansion:
    """A chunked array: type and content; its chunks only where code looks at them."""
    parts = Parts(type(value))
    add_type(parts, value.type)
    add_column(parts, value)
    _add_chunks(parts, value, walk)
    return parts.expansion("arrow chunked array")


def _add_chunks(parts: Parts, column: Any, walk: WalkContext) -> None:
    """Adds how rows are cut, where code looks at it."""
    if "chunks" in walk.observed and isinstance(column, pa.ChunkedArray):
        parts.number(column.num_chunks, *map(len, column.chunks))


def expand_table(value: pa.Table | pa.RecordBatch, walk: WalkContext) -> Expansion:
    """A table or record batch: schema and columns."""
    parts = Parts(type(value))
    add_schema(parts, value.schema)
    parts.number(value.num_rows)
    for field, column in zip(value.schema, value.columns, strict=True):
        add_column(parts, column, field.name)
        _add_chunks(parts, column, walk)
    return parts.expansion("arrow table")


def expand_schema(value: pa.Schema, walk: WalkContext) -> Expansion:
    """A schema."""
    parts = Parts(type(value))
    add_schema(parts, value)
    return parts.expansion("arrow schema")._replace(still=always)


def expand_field(value: pa.Field, walk: WalkContext) -> Expansion:
    """A field."""
    parts = Parts(type(value))
    add_field(parts, value)
    return parts.expansion("arrow field")._replace(still=always)


def expand_type(value: pa.DataType, walk: WalkContext) -> Expansion:
    """A data type."""
    parts = Parts(type(value))
    add_type(parts, value)
    return parts.expansion("arrow type")._replace(still=always)


def expand_scalar(value: pa.Scalar, walk: WalkContext) -> Expansion:
    """A scalar: its type and value."""
    parts = Parts(type(value))
    add_type(parts, value.type)
    add_column(parts, pa.repeat(value, 1))
    return parts.expansion("arrow scalar")


def expand_buffer(value: pa.Buffer, walk: WalkContext) -> Expansion:
    """A buffer: its bytes, and whether it may be written to."""
    parts = Parts(type(value))
    parts.number(value.is_mutable)
    parts.bulk(memoryview(value).cast("B") if value.size else b"")
    return parts.expansion("arrow buffer")


def expand_function(value: pc.Function, walk: WalkContext) -> Expansion:
    """A compute function: by name, if it is one that Arrow brings along."""
    if not _is_own(value.name):
        raise UnencodableError(f"the compute function {value.name}", HERE, "it is not known to be one of Arrow's own")
    parts = Parts(type(value))
    parts.text(value.name, value.kind)
    return parts.expansion("arrow function")._replace(still=always)


def _is_own(name: str) -> bool:
    """Whether pyarrow.compute has a wrapper of that name, which it makes at import for the functions Arrow brings."""
    about = getattr(getattr(pc, name, None), "__arrow_compute_function__", None)
    return isinstance(about, dict) and about.get("name") == name


def expand_expression(value: pc.Expression, walk: WalkContext) -> Expansion:
    """A compute expression: its serialised form, which is the same in every process."""
    text = str(value)
    for name in pc.list_functions():
        if f"{name}(" in text and not _is_own(name):
            raise UnencodableError("an Arrow expression", HERE, f"it calls {name}, which may be a user's function")
    parts = Parts(type(value))
    _, (data,) = value.__reduce__()[:2]
    parts.raw(data.to_pybytes() if isinstance(data, pa.Buffer) else bytes(data))
    return parts.expansion("arrow expression")._replace(still=always)


def _subclasses(base: type) -> Iterator[type]:
    """The base and all classes of pyarrow below it."""
    pending = [base]
    while pending:
        kind = pending.pop()
        if kind.__module__.split(".")[0] == "pyarrow":
            yield kind
        pending.extend(type.__subclasses__(kind))


EXPANDERS: dict[type, Expander] = placed(
    {
        **dict.fromkeys(_subclasses(pa.Array), expand_array),
        pa.ChunkedArray: expand_chunked_array,
        pa.Table: expand_table,
        pa.RecordBatch: expand_table,
        pa.Schema: expand_schema,
        pa.Field: expand_field,
        **dict.fromkeys(_subclasses(pa.DataType), expand_type),
        **dict.fromkeys(_subclasses(pa.Scalar), expand_scalar),
        **dict.fromkeys((pa.Buffer, pa.ResizableBuffer), expand_buffer),
        **dict.fromkeys(_subclasses(pc.Function), expand_function),
        pc.Expression: expand_expression,
    }
)
