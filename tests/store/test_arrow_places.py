"""Where columns lie: a reader of one column sees none of the bytes that are not told to be its."""

import datetime
import decimal
import io
from random import Random

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

from nectar.store.formats.arrow_places import as_stream, places_of

ROWS = 3000
FRAME = pl.DataFrame(
    {
        "integers": range(ROWS),
        "texts": [f"a text that is longer than twelve {number}" for number in range(ROWS)],
        "bools": [number % 2 == 0 if number % 3 else None for number in range(ROWS)],
        "lists": [[number, number + 1] for number in range(ROWS)],
        "structs": [{"a": number, "b": [str(number)]} for number in range(ROWS)],
        "times": [datetime.datetime(2020, 1, 1)] * ROWS,
        "floats": [1.5] * ROWS,
        "arrays": pl.Series([[1, 2]] * ROWS, dtype=pl.Array(pl.Int8, 2)),
        "nulls": [None] * ROWS,
        "decimals": [decimal.Decimal("1.5")] * ROWS,
        "bytes": [b"x" * 20] * ROWS,
    }
)


def by_arrow(compression):
    sink, table = io.BytesIO(), pa.table(FRAME)
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        for batch in table.to_batches(max_chunksize=1000):
            writer.write_batch(batch)
    return sink.getvalue()


def by_polars(compression):
    sink = io.BytesIO()
    FRAME.write_ipc(sink, compression=compression or "uncompressed")
    return sink.getvalue()


@pytest.fixture(params=[(by_arrow, None), (by_arrow, "lz4"), (by_polars, None), (by_polars, "lz4")], scope="module")
def content(request):
    write, compression = request.param
    return write(compression)


def places(content, columns):
    return places_of(lambda offset, count: content[offset : offset + count], len(content), columns)


@pytest.mark.parametrize("column", FRAME.columns)
def test_a_column_is_read_from_its_places_alone(content, column, tmp_path):
    found = places(content, [column])
    poisoned = bytearray(b"\xaa" * len(content))
    for start, stop in found.ranges:
        poisoned[start:stop] = content[start:stop]
    schema = pa.ipc.open_file(pa.py_buffer(content)).schema
    fields = [schema.get_field_index(column)] if found.compressed else None
    options = pa.ipc.IpcReadOptions(included_fields=fields)
    mapped = pa.ipc.open_file(pa.py_buffer(bytes(poisoned)), options=options).read_all().select([column])
    assert pl.from_arrow(mapped).equals(FRAME.select(column))
    path = tmp_path / "poisoned.arrow"
    path.write_bytes(poisoned)
    with path.open("rb") as file:
        assert pl.read_ipc(file, columns=[column]).equals(FRAME.select(column))
    with path.open("rb") as file:
        assert list(pl.read_ipc_schema(file)) == FRAME.columns


def test_less_is_read_than_there_is(content):
    sizes = {column: sum(stop - start for start, stop in places(content, [column]).ranges) for column in FRAME.columns}
    assert max(sizes.values()) < 0.6 * len(content)
    assert sizes["integers"] < 0.2 * len(content)


def test_what_is_not_understood_is_needed_whole(content):
    assert places(content, ["no such column"]) is None
    for kind in (pl.Categorical, pl.Enum(["a"])):  # their texts lie in a batch of their own
        frame = pl.DataFrame({"c": pl.Series(["a"], dtype=kind)})
        sink = io.BytesIO()
        frame.write_ipc(sink)
        assert places(sink.getvalue(), frame.columns) is None


def test_maps_and_views_have_their_buffers(tmp_path):
    table = pa.table(
        {
            "maps": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
            "views": pa.array(["short", "a text that is longer than twelve", None], pa.string_view()),
            "large": pa.array([[1], None, [2, 3]], pa.large_list(pa.int8())),
            "last": [1, 2, 3],
        }
    )
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    content = sink.getvalue()
    for column in table.column_names:
        poisoned = bytearray(b"\xaa" * len(content))
        for start, stop in places(content, [column]).ranges:
            poisoned[start:stop] = content[start:stop]
        assert pa.ipc.open_file(pa.py_buffer(bytes(poisoned))).read_all()[column].equals(table[column])


def test_nonsense_is_needed_whole():
    for content in (b"", b"ARROW1" * 20, bytes(1000), b"\xff" * 1000):
        assert places(content, ["a"]) is None


# the messages of a file


def test_a_file_is_read_as_the_stream_of_its_messages(content):
    assert pl.read_ipc_stream(as_stream(content)).equals(pl.read_ipc(content))
    assert pl.read_ipc_stream(as_stream(content)).schema == pl.read_ipc(content).schema


@pytest.mark.parametrize("name", ["marked", "several batches", "widest integers", "structs", "of another width"])
def test_a_stream_says_what_the_file_says(name):
    frame = {
        "marked": pl.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None]}).with_columns(pl.col("a").set_sorted()),
        "several batches": pl.DataFrame({"a": range(10), "b": [str(each) for each in range(10)]}),
        "widest integers": pl.DataFrame({"a": pl.Series([2**100, None], dtype=pl.Int128)}),
        "structs": FRAME.select("structs", "arrays", "nulls").head(5),
        "of another width": pl.DataFrame({"": [1.5], "a b": [None], "ä": [datetime.time(1)]}),
    }[name]
    sink = io.BytesIO()
    frame.write_ipc(sink, record_batch_size=3)
    file, stream = pl.read_ipc(sink.getvalue()), pl.read_ipc_stream(as_stream(sink.getvalue()))
    assert_frame_equal(stream, file)
    assert stream.flags == file.flags


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["a", "b"])])
def test_values_that_stand_for_others_are_in_no_stream(kind):
    sink = io.BytesIO()
    pl.DataFrame({"a": pl.Series(["a", "b"], dtype=kind)}).write_ipc(sink)
    assert as_stream(sink.getvalue()) is None


def test_whatever_is_wrong_with_a_file_there_is_a_stream_or_none(content):
    random = Random(1)
    for _ in range(500):
        damaged = bytearray(content)
        for _ in range(random.randrange(1, 4)):
            at = random.choice([random.randrange(len(content)), len(content) - random.randrange(1, 600)])
            damaged[at] = random.randrange(256)
        cut = bytes(damaged[: random.choice([len(damaged), random.randrange(len(damaged))])])
        assert as_stream(cut) is None or isinstance(as_stream(cut), bytes)
    assert as_stream(b"") is None
