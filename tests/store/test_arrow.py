"""Tables come back as they were, from every library, on every kind of store."""

import datetime
import decimal
import pathlib
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.store.making import KEY, put_table

from nectar.errors import MissingExtraError, UserError
from nectar.store.formats import arrow

FRAMES = {
    "plain": pl.DataFrame({"a": [1, None], "s": ["x", None], "f": [1.5, float("nan")], "b": [True, None]}),
    "int128": pl.DataFrame({"i": pl.Series([1, None, 2**100], dtype=pl.Int128)}),
    "nested int128": pl.DataFrame({"i": pl.Series([[1], None, [2**100]], dtype=pl.List(pl.Int128))}),
    "decimal": pl.DataFrame({"d": pl.Series([decimal.Decimal("1.23"), None], dtype=pl.Decimal(38, 2))}),
    "nested": pl.DataFrame({"l": [[{"x": [1, 2]}], None], "t": [{"a": 1, "b": "z"}, {"a": None, "b": None}]}),
    "categorical": pl.DataFrame({"c": pl.Series(["a", "b", None], dtype=pl.Categorical)}),
    "nested categorical": pl.DataFrame({"c": pl.Series([["a", "b"], None], dtype=pl.List(pl.Categorical))}),
    "enum": pl.DataFrame({"c": pl.Series(["a", None], dtype=pl.Enum(["b", "a"]))}),
    "array": pl.DataFrame({"a": pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int8, 2))}),
    "times": pl.DataFrame(
        {"t": [datetime.time(1)], "d": [datetime.timedelta(1)], "z": [datetime.datetime(2020, 1, 1)]}
    ),
    "zone": pl.DataFrame({"z": [datetime.datetime(2020, 1, 1)]}).with_columns(
        pl.col("z").dt.replace_time_zone("Asia/Tokyo")
    ),
    "binary": pl.DataFrame({"b": [b"x", None]}),
    "null": pl.DataFrame({"n": [None, None]}),
    "no rows": pl.DataFrame(schema={"a": pl.Int64, "c": pl.Categorical, "s": pl.String}),
    "a column without a name": pl.DataFrame({"": [1], "column_0": [2]}),
    "a field without a name": pl.DataFrame({"s": [{"": 1}], "l": [[{"": 1}]]}),
    "NUL in a name": pl.DataFrame({"a\0b": [1]}),
    "NUL in a field": pl.DataFrame({"s": [{"x\0": 1}]}),
    "NUL in a field of lists": pl.DataFrame({"l": [[{"x": {"\0": 1}}]]}),
    "NUL in a field of arrays": pl.DataFrame(
        {"r": pl.Series([[{"\0": 1}]], dtype=pl.Array(pl.Struct({"\0": pl.Int8}), 1))}
    ),
    "NUL in values": pl.DataFrame({"a": ["x\0"], "e": pl.Series(["\0"], dtype=pl.Enum(["\0"]))}),
    "no fields": pl.DataFrame({"s": pl.Series([{}], dtype=pl.Struct([]))}),
    "no columns": pl.DataFrame(),
    "no columns, some rows": pl.DataFrame(height=3),
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("part_rows", [None, 1])
def test_polars_frame_survives(store, name, part_rows):
    frame = FRAMES[name]
    back = store.open(put_table(store, frame, part_rows=part_rows), verify="before").to_polars()
    assert back.schema == frame.schema
    assert back.shape == frame.shape
    assert back.equals(frame)


@pytest.mark.parametrize("name", [name for name in FRAMES if name != "no columns, some rows"])
def test_polars_frame_survives_without_pyarrow(local, name, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = FRAMES[name]
    back = local.open(put_table(local, frame)).to_polars()
    assert back.schema == frame.schema
    assert back.equals(frame)


def test_without_any_library_the_extra_is_named(local, monkeypatch):
    entry = put_table(local, FRAMES["plain"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    with (
        pytest.raises(MissingExtraError, match=r"nectar-data\[arrow\]"),
        local.stage(local.new_location(KEY)) as staging,
    ):
        staging.write_table(object())
    with pytest.raises(MissingExtraError, match=r"nectar-data\[arrow\]"):
        local.open(entry).to_arrow()
    with pytest.raises(MissingExtraError, match=r"nectar-data\[polars\]"):
        local.open(entry).to_polars()


def dictionary(*values):
    return pa.array(values).dictionary_encode()


TABLES = {
    "metadata": pa.table({"a": [1]}).replace_schema_metadata({"k": "v"}),
    "field metadata": pa.table(
        [[1]], schema=pa.schema([pa.field("a", pa.int8(), nullable=False, metadata={"u": "m"})])
    ),
    "two names alike": pa.table([[1], [2]], names=["a", "a"]),
    "no columns": pa.table({"a": [1, 2, 3]}).select([]),
    "no rows": pa.table({"a": pa.array([], pa.list_(pa.string()))}),
    "dictionaries that differ": pa.table({"d": pa.chunked_array([dictionary("a", "b"), dictionary("c", "a")])}),
    "nested dictionaries that differ": pa.table(
        {
            "d": pa.chunked_array(
                [
                    pa.ListArray.from_arrays([0, 2], dictionary("a", "b")),
                    pa.ListArray.from_arrays([0, 1], dictionary("c")),
                ]
            )
        }
    ),
    "map and union": pa.table({"m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8()))}),
    "decimal256": pa.table({"d": pa.array([decimal.Decimal(10) ** 60], pa.decimal256(70, 2))}),
    "month interval": pa.table({"i": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}),
    "views": pa.table({"v": pa.array(["short", "x" * 100, None], pa.string_view())}),
}


@pytest.mark.parametrize("name", TABLES)
def test_arrow_table_survives(store, name):
    table = TABLES[name]
    back = store.open(put_table(store, table), verify="before").to_arrow()
    assert back.schema.equals(table.schema, check_metadata=True)
    assert back.num_rows == table.num_rows
    assert back.to_pylist() == table.to_pylist()


@pytest.mark.parametrize("part_rows", [None, 2])
def test_stream_of_batches_survives(store, part_rows):
    table = pa.concat_tables([TABLES["dictionaries that differ"]] * 3)
    back = store.open(put_table(store, table.to_reader(), part_rows=part_rows)).to_arrow()
    assert back.to_pylist() == table.to_pylist()


def test_stream_without_batches_keeps_its_schema(store):
    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int8())]), [])
    assert store.open(put_table(store, reader)).to_arrow().schema.names == ["a"]


def test_anything_with_a_stream_is_a_table(store):
    class Table:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table({"a": [1, 2]}).__arrow_c_stream__(requested_schema)

    assert store.open(put_table(store, Table())).to_arrow().to_pylist() == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1, 2], "s": ["x", None]}, index=pd.Index(["i", "j"], name="key")),
        pd.DataFrame({"c": pd.Categorical(["a", "b"], categories=["b", "a"], ordered=True)}),
        pd.DataFrame(index=range(3)),
        pd.DataFrame({"a": pd.Series([], dtype="int8")}),
        pd.DataFrame({("x", 1): [1], ("x", 2): [2]}),
    ],
)
def test_pandas_frame_survives(store, frame):
    back = store.open(put_table(store, frame)).to_arrow().to_pandas()
    pd.testing.assert_frame_equal(back, frame, check_column_type=False)


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"o": pl.Series([object()], dtype=pl.Object)}),
        pl.DataFrame({"": [1], "o": pl.Series([object()], dtype=pl.Object)}),
        pl.DataFrame({"i": pl.Series([[]], dtype=pl.Array(pl.Int8, 0))}),
        pl.DataFrame({"": [1], "i": pl.Series([[[]]], dtype=pl.List(pl.Array(pl.Int8, 0)))}),
        pd.DataFrame({"o": [object()]}),
        object(),
        3,
    ],
)
def test_what_does_not_fit_is_refused_with_advice(store, table):
    with pytest.raises(UserError, match="as an object"):
        put_table(store, table)
    assert list(store.locations()) == []


def test_large_table_has_several_parts_in_order(store):
    table = pa.table({"a": np.arange(1000)})
    entry = put_table(store, table, part_rows=300)
    assert entry.files == 5
    assert store.open(entry).to_arrow().equals(table)


def test_parts_are_bounded_by_bytes(local, monkeypatch):
    monkeypatch.setattr(arrow, "PART_BYTES", 10_000)
    frame = pl.DataFrame({"a": np.arange(10_000), "s": [f"text that is longer than a view {n}" for n in range(10_000)]})
    entry = put_table(local, frame)
    assert entry.files > 10
    assert entry.size < 3 * frame.estimated_size()
    assert local.open(entry).to_polars().equals(frame)


def test_slice_does_not_carry_the_text_of_the_whole(local):
    frame = pl.DataFrame({"v": ["x" * 50 + str(n) for n in range(100_000)]})
    assert put_table(local, frame.slice(0, 10)).size < 10_000


@pytest.mark.parametrize("writer", ["pyarrow", "polars"])
def test_compression_changes_the_size_and_nothing_else(local, writer):
    kind = pl.Int128 if writer == "polars" else pl.Int64
    frame = pl.DataFrame({"a": pl.Series([7] * 100_000, dtype=kind)})
    packed, plain = put_table(local, frame, compression="lz4"), put_table(local, frame, compression="none")
    assert packed.size < plain.size / 5
    assert local.open(packed).to_polars().equals(local.open(plain).to_polars())


def test_only_large_tables_are_compressed_by_default(local, monkeypatch):
    table = pa.table({"a": [7] * 100_000})
    plain = put_table(local, table)
    monkeypatch.setattr(arrow, "COMPRESS_ABOVE", 1000)
    assert put_table(local, table).size < plain.size / 5


def test_mapped_table_takes_no_memory(local):
    table = pa.table({"a": np.arange(1_000_000)})
    result = local.open(put_table(local, table))
    before = pa.total_allocated_bytes()
    back = result.to_arrow()
    assert back.equals(table)
    assert pa.total_allocated_bytes() - before < 100_000


def test_int128_says_how_to_read_it(local):
    with pytest.raises(UserError, match="to_polars"):
        local.open(put_table(local, FRAMES["int128"])).to_arrow()


def test_small_frames_are_read_without_pyarrow_until_much_was_copied(tmp_path):
    code = """
import sys
import polars as pl
from nectar.store.formats import arrow
from nectar.store.manifest import Column
from nectar.store.sources import MemorySource
from nectar.store.store import Store
from tests.store.making import put_table
store = Store(sys.argv[1])
days = pl.Series([1, 2]).cast(pl.Date)
frame = pl.DataFrame({"a": [1, None], "s": ["x", None], "f": [float("nan"), -0.0], "d": days})
entry = put_table(store, frame)
for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
    del sys.modules[name]
read = store.open(entry).to_polars()
assert "pyarrow" not in sys.modules
assert read.equals(frame, null_equal=True) and read.schema == frame.schema
arrow._copied = arrow._COPYABLE
assert not arrow._is_light([MemorySource(b"x")], 1, [Column("a", "int64")], None)
"""
    root = pathlib.Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=root, check=True)


def test_small_frames_of_plain_types_are_written_without_pyarrow(tmp_path):
    code = """
import sys
import polars as pl
from nectar.store.store import Store
from tests.store.making import put_table
store = Store(sys.argv[1])
days = pl.Series([1, 2]).cast(pl.Date)
plain = {"a": [1, None], "b": [True, None], "s": ["x" * 40, None], "f": [float("nan"), -0.0], "d": days}
plain |= {"y": [b"1", b""]}
frames = [pl.DataFrame(plain), pl.DataFrame(plain).clear(), pl.DataFrame({"v": ["x" * 50] * 100_000}).slice(0, 10)]
numbers = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32, pl.Float64]
frames += [pl.DataFrame(schema={str(kind): kind for kind in numbers})]
entries = [put_table(store, frame) for frame in frames]
assert "pyarrow" not in sys.modules
for entry, frame in zip(entries, frames):
    assert entry.size < 10_000
    read = store.open(entry).to_polars()
    assert read.equals(frame, null_equal=True) and read.schema == frame.schema
assert "pyarrow" not in sys.modules
put_table(store, pl.DataFrame({"c": ["a"]}, schema={"c": pl.Categorical}))
assert "pyarrow" in sys.modules, "where it knows better"
for entry, frame in zip(entries, frames):
    with store.open(entry) as by_polars, store.open(put_table(store, frame)) as by_pyarrow:
        one, other = by_polars.to_arrow(), by_pyarrow.to_arrow()
        assert one.schema == other.schema and str(one.to_pylist()) == str(other.to_pylist())
        assert by_polars.schema == by_pyarrow.schema
        assert by_polars.to_polars().equals(frame, null_equal=True)
"""
    root = pathlib.Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=root, check=True)


def test_a_library_that_another_thread_is_loading_is_no_reason_to_fail(local, monkeypatch):
    """Such a module is there, and has nothing in it yet."""
    monkeypatch.setitem(sys.modules, "pandas", type(sys)("pandas"))
    table = pa.table({"a": [1, 2]})
    with local.open(put_table(local, table)) as result:
        assert result.to_arrow() == table
