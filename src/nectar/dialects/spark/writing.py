"""A relation computed by itself: the engine writes its rows to a place of the store, and they pass nobody else.

In: a relation and the client whose engine computes it. Out: Parquet files at a place of the store, or why they are of
no use. Law: they read back with the schema that the engine told of the relation, down to nullability and metadata; the
engine itself is asked.
"""

from __future__ import annotations

import glob
import math
import os
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import grpc
import msgspec
import pyarrow as pa
import pyarrow.ipc
from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type

from nectar.dialects.spark.manners import SAIL, Manner
from nectar.dialects.spark.own_requests import of_our_own
from nectar.dialects.spark.stored import AS_TOLD, SCHEMA, files_relation, read_relation, write_command
from nectar.store.layout import COLUMNS
from nectar.threads import started

if TYPE_CHECKING:
    from nectar.catalog.handover import Handover

_NOT_OF_TYPES: Final = frozenset({"nullable", "containsNull", "valueContainsNull", "metadata"})
_LOOKING: Final = 0.1  # seconds between two looks at what an engine has written
_MAY_BE_NAN: Final = frozenset({"FLOAT", "DOUBLE", "FIXED_LEN_BYTE_ARRAY"})


def schema_by_engine(client: Any, relation: Any) -> Any:
    """The schema that the engine tells of a relation. Raises what the client raises where there is none."""
    request = client._analyze_plan_request_with_metadata()
    request.schema.plan.root.CopyFrom(relation)
    return client._stub.AnalyzePlan(request, metadata=client._builder.metadata()).schema.schema


@dataclass(frozen=True, slots=True)
class Limits:
    """After so many bytes, or seconds, an engine that computes a part is stopped."""

    size: float = math.inf
    seconds: float = math.inf


_UNLIMITED: Final = Limits()


def write(
    client: Any, relation: Any, place: Handover, limits: Limits = _UNLIMITED, manner: Manner = SAIL
) -> float | str:
    """The engine has written the rows of a relation to a place, and they can be read back; how many seconds that took.

    Or why they cannot. Raises grpc.RpcError if it cannot compute them.
    """
    told = schema_by_engine(client, relation)
    if not told.struct.fields:
        return "it has no columns"
    begun = time.perf_counter()
    if _is_stopped(client, write_command(relation, told, place.path, manner), place.path, limits):
        return "it takes more time or space than it is worth"
    seconds = time.perf_counter() - begun
    files = glob.glob(f"{glob.escape(place.path)}/*.parquet")
    if not files:
        return "the engine wrote no file: it has no rows, or they lie elsewhere"
    if manner.misreads_statistics and any(map(_has_statistics, files)):
        return "the engine could take its columns for constants"
    if not is_same_schema(schema_by_engine(client, files_relation(files)), told, of_types=True):
        return "its columns would not come back with their types"
    types = types_by_engine(client, relation)
    for as_told in (True, False):
        if _is_the_same(client, read_relation(files, told, as_told=as_told, manner=manner), told, types):
            place.beside[SCHEMA] = told.SerializeToString(deterministic=True)
            place.beside[AS_TOLD] = b"yes" if as_told else b""
            place.beside[COLUMNS] = msgspec.json.encode([field.name for field in told.struct.fields])
            return seconds
    return "its columns would not come back as they were"


def _is_the_same(client: Any, read: Any, told: Any, types: list[Any]) -> bool:
    """Whether the engine reads a relation with this schema, and with these types of its own."""
    try:
        return is_same_schema(schema_by_engine(client, read), told) and types_by_engine(client, read) == types
    except grpc.RpcError:  # it does not read these files in this way
        return False


def types_by_engine(client: Any, relation: Any) -> list[Any]:
    """The types of columns as the engine has them, by the answer to a query for no rows.

    They say more than a schema: Sail shows times in the zone that their file says, and counts without signs.
    """
    request = client._execute_plan_request_with_metadata()
    request.plan.root.limit.limit = 0
    request.plan.root.limit.input.CopyFrom(relation)
    schemas = []
    with of_our_own():
        for response in client._stub.ExecutePlan(request, metadata=client._builder.metadata()):
            if response.HasField("arrow_batch"):
                with pyarrow.ipc.open_stream(response.arrow_batch.data) as stream:
                    schemas.append(stream.schema)
    return [_without_nulls(field.type) for field in schemas[0]]


def _without_nulls(kind: pa.DataType) -> Any:
    """A type without what it says of nulls."""
    inner = [kind.field(at) for at in range(kind.num_fields)]
    if not inner:
        return str(kind)
    names = [each.name for each in inner] if pa.types.is_struct(kind) else []
    return kind.id, names, [_without_nulls(each.type) for each in inner]


def is_same_schema(one: Any, other: Any, *, of_types: bool = False) -> bool:
    """Whether two schemas say the same: names, types, nullability, metadata; however metadata is written.

    of_types: names of columns, nullability and metadata do not count.
    """
    said, also = (proto_schema_to_pyspark_data_type(each).jsonValue() for each in (one, other))
    if not of_types:
        return bool(said == also)
    return [_bare(each["type"]) for each in said["fields"]] == [_bare(each["type"]) for each in also["fields"]]


def _bare(kind: Any) -> Any:
    """A type as JSON, without what it says of nulls and metadata."""
    if isinstance(kind, dict):
        return {name: _bare(value) for name, value in kind.items() if name not in _NOT_OF_TYPES}
    return [_bare(each) for each in kind] if isinstance(kind, list) else kind


def _has_statistics(path: str) -> bool:
    """Whether a file tells the smallest and largest numbers of a column that may hold NaN, which is neither."""
    import pyarrow.parquet  # takes long to load

    footer = pyarrow.parquet.read_metadata(path)
    columns = [
        footer.row_group(group).column(at) for group in range(footer.num_row_groups) for at in range(footer.num_columns)
    ]
    return any(
        each.physical_type in _MAY_BE_NAN and each.statistics and each.statistics.has_min_max for each in columns
    )


def _is_stopped(client: Any, command: Any, folder: str, limits: Limits) -> bool:
    """A command is carried out, without what a client does for its user; whether it was stopped before its end.

    One that nobody can watch is stopped before it begins.
    """
    request = client._execute_plan_request_with_metadata(str(uuid.uuid4()))
    request.plan.command.CopyFrom(command)
    over, stopped = threading.Event(), threading.Event()
    if started(partial(_watch, client, request.operation_id, folder, limits, over, stopped), "nectar-watch") is None:
        return True
    try:
        call = client._stub.ExecutePlan(request, metadata=client._builder.metadata())
        for _ in call:
            pass
    except grpc.RpcError:
        if not stopped.is_set():
            raise
    except BaseException:  # somebody has interrupted the program, and the engine need not go on
        _stop(client, request.operation_id)
        raise
    finally:
        over.set()
    return stopped.is_set() or size_of(folder) > limits.size


def _watch(
    client: Any, operation: str, folder: str, limits: Limits, over: threading.Event, stopped: threading.Event
) -> None:
    """Stops an operation when it takes too long, or there is more in a folder than it may write."""
    until = time.monotonic() + limits.seconds
    while not over.wait(min(_LOOKING, limits.seconds)):
        if time.monotonic() > until or size_of(folder) > limits.size:
            stopped.set()
            _stop(client, operation)
            return


def _stop(client: Any, operation: str) -> None:
    """The engine does not go on: it would, if only the call were ended."""
    with suppress(Exception):  # then it comes to its end
        client.interrupt_operation(operation)


def size_of(folder: str) -> int:
    """Bytes of all files below a folder, as far as they can be seen just now."""
    size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # renamed meanwhile
                size += os.stat(os.path.join(path, name)).st_size
    return size
