"""Arrow's values: chunks, offsets and garbage below nulls do not matter; types, names and values do."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.keys.values.value_digests import digest, still, walked

from nectar.errors import UnencodableError

T = pa.table({"a": [1, 2], "b": ["x", None]})

DIFFERENT: list[tuple[Any, Any]] = [
    (T, T.rename_columns(["a", "c"])),
    (T, T.select(["b", "a"])),
    (T, T.replace_schema_metadata({"k": "v"})),
    (T.replace_schema_metadata({"k": "w"}), T.replace_schema_metadata({"k": "v"})),
    (T, T.slice(1)),
    (T, T.to_batches()[0]),
    (T, T.set_column(0, "a", pa.array([1, 2], pa.int32()))),
    (T, T.cast(pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.string())]))),
    (T["b"], T["b"].cast(pa.large_string())),
    (pa.array([1, None]), pa.array([None, 1])),
    (pa.array([0, None]), pa.array([0, 0])),
    (pa.array(["a", "bc"]), pa.array(["ab", "c"])),
    (pa.array(["", None]), pa.array([None, ""])),
    (pa.array([[1], [2]]), pa.array([[1, 2], []])),
    (pa.array([[1], None]), pa.array([[1], []])),
    (pa.array([{"a": None}]), pa.array([None], pa.struct([("a", pa.null())]))),
    (pa.array([{"a": 1}, None]), pa.array([{"a": 1}, {"a": None}])),
    (pa.array(["a"]).dictionary_encode(), pa.array(["a"])),
    (
        pa.DictionaryArray.from_arrays([0], ["a", "b"]),
        pa.DictionaryArray.from_arrays([0], ["a", "c"]),
    ),
    (pa.DictionaryArray.from_arrays([0], ["a"]), pa.DictionaryArray.from_arrays([0], ["a"], ordered=True)),
    (pa.nulls(1), pa.nulls(2)),
    (pa.array([True, False]), pa.array([False, True])),
    (pa.array([0.0]), pa.array([-0.0])),
    (pa.timestamp("us"), pa.timestamp("ns")),
    (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    (pa.decimal128(5, 2), pa.decimal128(6, 2)),
    (pa.list_(pa.int8()), pa.list_(pa.int8(), 2)),
    (pa.list_(pa.field("x", pa.int8())), pa.list_(pa.field("y", pa.int8()))),
    (pa.struct([("a", pa.int8())]), pa.struct([pa.field("a", pa.int8(), nullable=False)])),
    (pa.field("a", pa.int8()), pa.field("a", pa.int8(), metadata={"k": "v"})),
    (pa.schema([("a", pa.int8())]), pa.schema([("a", pa.int16())])),
    (pa.map_(pa.int8(), pa.int8()), pa.map_(pa.int8(), pa.int8(), keys_sorted=True)),
    (pa.scalar(1), pa.scalar(2)),
    (pa.scalar(1), pa.scalar(1, pa.int8())),
    (pa.scalar(None, pa.int8()), pa.scalar(None, pa.int16())),
    (pc.field("a") > 1, pc.field("a") > 2),
    (pc.field("a") > 1, pc.field("a") >= 1),
    (pc.scalar(1), pc.scalar(1.0)),
    (pc.get_function("add"), pc.get_function("subtract")),
    (pa.py_buffer(b"a"), pa.py_buffer(b"b")),
]


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_values_that_programs_can_tell_apart_differ(a: Any, b: Any) -> None:
    assert digest(a) != digest(b)


KINDS: list[pa.Array] = [
    pa.array([1, None, 3]),
    pa.array([1.5, None, 3], pa.float32()),
    pa.array(["a", None, "bc"]),
    pa.array(["a", None, "bc"], pa.string_view()),
    pa.array([b"a", None, b"bc"], pa.large_binary()),
    pa.array([b"ab", None, b"cd"], pa.binary(2)),
    pa.array([True, None, False]),
    pa.array([[1], None, [2, None]]),
    pa.array([[1], None, [2, 3]], pa.list_view(pa.int8())),
    pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int16(), 2)),
    pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]),
    pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    pa.array([decimal.Decimal("1.5"), None, decimal.Decimal("2.5")]),
    pa.array([datetime.datetime(2020, 1, 1), None, datetime.datetime(2021, 1, 1)], pa.timestamp("us", "UTC")),
    pa.array([datetime.time(1), None, datetime.time(2)]),
    pa.array([None, None, None]),
    pa.array(["a", None, "a"]).dictionary_encode(),
    pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])]),
]


@pytest.mark.parametrize("array", KINDS, ids=lambda array: str(array.type))
def test_slices_and_chunks_do_not_matter(array: pa.Array) -> None:
    thrice = pa.concat_arrays([array, array, array])
    assert digest(thrice.slice(3, 3)) == digest(array)
    assert digest(thrice.slice(2, 3)) != digest(array) or array.null_count == 3
    parts = pa.chunked_array([array.slice(0, 1), array.slice(1, 0), array.slice(1)])
    assert digest(parts) == digest(pa.chunked_array([array]))
    assert digest(pa.table({"a": parts})) == digest(pa.table({"a": array}))


def test_what_lies_below_a_null_does_not_matter() -> None:
    validity = pa.py_buffer(bytes([0b101]))
    dirty = [pa.Array.from_buffers(pa.int8(), 3, [validity, pa.py_buffer(bytes([1, below, 3]))]) for below in (0, 77)]
    assert digest(dirty[0]) == digest(dirty[1]) == digest(pa.array([1, None, 3], pa.int8()))
    spare = pa.Array.from_buffers(pa.int8(), 3, [pa.py_buffer(bytes([0b11111101])), pa.py_buffer(bytes([1, 2, 3]))])
    assert digest(spare) == digest(dirty[0])


def test_run_ends_are_read_as_values() -> None:
    first, second = (pc.run_end_encode(pa.array(values)) for values in ([1, 1, 2], [1, 2, 2]))
    assert digest(first) != digest(second)


def test_user_functions_are_refused() -> None:
    def double(context: Any, numbers: Any) -> Any:
        return pc.multiply(numbers, 2)

    name = "nectar_test_double"
    pc.register_scalar_function(double, name, {"summary": "", "description": ""}, {"x": pa.int64()}, pa.int64())
    with pytest.raises(UnencodableError, match="own"):
        digest(pc.get_function(name))
    with pytest.raises(UnencodableError, match="user"):
        digest(pc.Expression._call(name, [pc.field("a")]))


def test_memory_shared_with_numpy_is_watched() -> None:
    numbers = np.arange(5.0)
    array = pa.array(numbers)
    before, walk = walked(array)
    assert still(walk)
    numbers[2] = 99
    if array[2].as_py() == 99:
        assert not still(walk)
        assert digest(array) != before
    else:
        assert still(walk)
