"""Responses put together into a table, and a table as responses."""

import pytest

pytest.importorskip("pyspark.sql.connect.proto", reason="Spark is not installed: make test-sail")

import pyarrow as pa
from pyspark.sql.connect.proto import base_pb2, types_pb2

from nectar.dialects.spark import results
from nectar.dialects.spark.results import Recording, responses

pytestmark = pytest.mark.small
Response = base_pb2.ExecutePlanResponse
TABLE = pa.table({"n": [1, 2, 3], "t": ["a", None, "c"]})
OBSERVED = Response(response_id="o", observed_metrics=[Response.ObservedMetrics(name="m")])
SCHEMA = types_pb2.DataType(long=types_pb2.DataType.Long())


def stream(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def batch(data, rows=3, number="b", **chunk):
    return Response(response_id=number, arrow_batch=Response.ArrowBatch(row_count=rows, data=data, **chunk))


def recorded(*given, schema=True, complete=True):
    recording = Recording()
    if schema:
        recording.add(Response(response_id="s", schema=SCHEMA))
    for each in given:
        recording.add(each)
    if complete:
        recording.add(Response(response_id="c", result_complete=Response.ResultComplete()))
    return recording


def test_a_table_goes_round():
    table = recorded(batch(stream(TABLE))).table()
    request = base_pb2.ExecutePlanRequest(session_id="mine", operation_id="this")
    made = list(responses(table, request, "theirs"))
    assert {(each.session_id, each.operation_id, each.server_side_session_id) for each in made} == {
        ("mine", "this", "theirs")
    }
    assert len({each.response_id for each in made}) == 3
    assert made[0].schema == SCHEMA
    assert made[-1].HasField("result_complete")
    again = pa.ipc.open_stream(made[1].arrow_batch.data).read_all()
    assert again.equals(TABLE)
    assert again.schema.equals(TABLE.schema, check_metadata=True)


def test_chunks_of_a_batch_are_put_together():
    data = stream(TABLE)
    parts = [batch(data[:9], number="1", chunk_index=0, num_chunks_in_batch=2)]
    parts += [batch(data[9:], number="2", chunk_index=1, num_chunks_in_batch=2)]
    assert recorded(*parts, batch(data, number="3")).table().num_rows == 6
    assert isinstance(recorded(parts[0]).table(), str)


def test_what_comes_twice_counts_once():
    assert recorded(batch(stream(TABLE)), batch(stream(TABLE))).table().num_rows == 3
    assert recorded(batch(stream(TABLE), number=""), batch(stream(TABLE), number="")).table().num_rows == 6


@pytest.mark.parametrize(
    "recording",
    [
        recorded(batch(stream(TABLE)), complete=False),
        recorded(batch(stream(TABLE)), schema=False),
        recorded(),
        recorded(batch(stream(TABLE)), batch(stream(TABLE.select(["n"])), number="other")),
        recorded(
            batch(stream(TABLE)), Response(response_id="o", observed_metrics=[Response.ObservedMetrics(name="m")])
        ),
        recorded(batch(stream(TABLE.select([])))),
    ],
)
def test_what_is_not_a_whole_result_is_not_kept(recording):
    assert isinstance(recording.table(), str)


def test_what_is_too_large_is_let_go(monkeypatch):
    monkeypatch.setattr(results, "MOST_BYTES", 10)
    recording = recorded(batch(stream(TABLE)))
    assert "too large" in recording.table()
    assert recording._streams == []


def test_columns_of_one_name_and_metadata_go_round():
    field = pa.field("n", pa.int64(), nullable=False, metadata={"a": "b"})
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], schema=pa.schema([field, field], metadata={"x": "y"}))
    made = list(responses(recorded(batch(stream(table), 1)).table(), base_pb2.ExecutePlanRequest(), ""))
    again = pa.ipc.open_stream(made[1].arrow_batch.data).read_all()
    assert again.schema.equals(table.schema, check_metadata=True)
    assert again.equals(table)
