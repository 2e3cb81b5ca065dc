"""Results as they pass the client: the responses of a server put together into a table, and a table as responses.

In and out: messages of Spark Connect. A table keeps the schema that the server told, in its own metadata. Law: what a
client reads from the responses of a known result is what it read when it was computed.
"""

from __future__ import annotations

import uuid
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc
from pyspark.sql.connect.proto import base_pb2, types_pb2

_SCHEMA: Final = b"nectar.spark.schema"
_SHAPE: Final = b"nectar.spark.shape"  # of what was read, where the result may become part of a larger one
MOST_BYTES: Final = 256 << 20  # of a result that is kept: until it is written, it is in memory a second time
_ABOUT_IT: Final = frozenset({
    "session_id", "server_side_session_id", "operation_id", "response_id", "schema", "arrow_batch", "result_complete",
    "execution_progress", "metrics",
})  # fmt: skip


class Recording:
    """The responses to one request, as they come. why_not: why they cannot be kept, if they cannot."""

    def __init__(self) -> None:
        self.why_not = ""
        self.complete = False
        self.size = 0
        self._seen: set[str] = set()
        self._schema: bytes | None = None
        self._streams: list[list[bytes]] = []
        self._missing = 0  # chunks of the latest batch that have not come yet

    def add(self, response: Any) -> None:
        """Takes up a response; one that came before, as after a broken connection, only once."""
        if response.response_id:
            if response.response_id in self._seen:
                return
            self._seen.add(response.response_id)
        unknown = {descriptor.name for descriptor, _ in response.ListFields()} - _ABOUT_IT
        if unknown:
            self._give_up(f"the server answered with {min(unknown)}")
        if self.why_not:
            return
        if response.HasField("schema"):
            self._schema = b64encode(response.schema.SerializeToString())  # engines read metadata as text
        if response.HasField("arrow_batch"):
            self._add_batch(response.arrow_batch)
        self.complete = self.complete or response.HasField("result_complete")

    def _add_batch(self, batch: Any) -> None:
        self.size += len(batch.data)
        if self.size > MOST_BYTES:
            self._give_up("it is too large to be kept as it passes")
        elif self._missing:
            self._streams[-1].append(batch.data)
            self._missing -= 1
        else:
            self._streams.append([batch.data])
            self._missing = max(0, batch.num_chunks_in_batch - 1)

    def _give_up(self, reason: str) -> None:
        self.why_not = self.why_not or reason
        self._streams.clear()

    def table(self) -> pa.Table | str:
        """The whole result as a table, or why it cannot be kept."""
        if self.why_not:
            return self.why_not
        if not self.complete or self._missing or self._schema is None or not self._streams:
            return "the server did not answer as usual"
        batches = [batch for stream in self._streams for batch in _batches_in(b"".join(stream))]
        if not batches or not batches[0].schema.names:
            return "it has no columns"
        if any(not batch.schema.equals(batches[0].schema, check_metadata=True) for batch in batches):
            return "its batches have different schemas"
        schema = batches[0].schema.with_metadata({**(batches[0].schema.metadata or {}), _SCHEMA: self._schema})
        return pa.Table.from_batches([_with_schema(batch, schema) for batch in batches], schema)


def _batches_in(stream: bytes) -> list[pa.RecordBatch]:
    with pa.ipc.open_stream(stream) as reader:
        return list(reader)


def _with_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def empty(schema: pa.Schema) -> pa.RecordBatch:
    """No rows of a schema."""
    return pa.RecordBatch.from_arrays([pa.array([], each.type) for each in schema], schema=schema)


def is_whole(table: pa.Table) -> bool:
    """Whether a table has what responses are made of."""
    return _SCHEMA in (table.schema.metadata or {})


def schema_of(table: pa.Table) -> Any:
    """The schema that the server told of a whole table."""
    return types_pb2.DataType.FromString(b64decode(table.schema.metadata[_SCHEMA]))


def without_schema(table: pa.Table) -> pa.Table:
    """The table as the server sent it."""
    metadata = {key: value for key, value in table.schema.metadata.items() if key not in (_SCHEMA, _SHAPE)}
    return table.replace_schema_metadata(metadata or None)


def schema_bytes(table: pa.Table) -> bytes:
    """The columns of a table, as they are on record beside its result."""
    schema = without_schema(table).schema if is_whole(table) else table.schema
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(empty(schema))
    return bytes(sink.getvalue())


def with_told_schema(table: pa.Table, told: Any) -> pa.Table:
    """The same rows, as if the server had told this schema of them."""
    return table.replace_schema_metadata({_SCHEMA: b64encode(told.SerializeToString())})


def with_shape(table: pa.Table, shape: bytes) -> pa.Table:
    """The same table, which tells with what columns and types its files were read."""
    return table.replace_schema_metadata({**table.schema.metadata, _SHAPE: b64encode(shape)})


def shape_of(table: pa.Table) -> bytes | None:
    """With what columns and types the files of a table were read; None if it is not told."""
    shape = (table.schema.metadata or {}).get(_SHAPE)
    return None if shape is None else b64decode(shape)


def without_shape(table: pa.Table) -> pa.Table:
    """The same table, as a result that is no part of others."""
    metadata = {name: value for name, value in (table.schema.metadata or {}).items() if name != _SHAPE}
    return table.replace_schema_metadata(metadata)


def responses(table: pa.Table, request: Any, server_session: str) -> Iterator[Any]:
    """What the server would answer to a request whose result is known."""
    schema = without_schema(table).schema
    yield _response(request, server_session, schema=schema_of(table))
    batches = [_with_schema(batch, schema) for batch in table.to_batches() if batch.num_rows]
    for batch in batches or [empty(schema)]:
        data = base_pb2.ExecutePlanResponse.ArrowBatch(row_count=batch.num_rows, data=_stream(batch))
        yield _response(request, server_session, arrow_batch=data)
    yield _response(request, server_session, result_complete=base_pb2.ExecutePlanResponse.ResultComplete())


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _response(request: Any, server_session: str, **content: Any) -> Any:
    return base_pb2.ExecutePlanResponse(
        session_id=request.session_id, server_side_session_id=server_session, operation_id=request.operation_id,
        response_id=str(uuid.uuid4()), **content,
    )  # fmt: skip
