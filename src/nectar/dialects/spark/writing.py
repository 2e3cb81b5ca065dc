"""A relation computed by itself: the engine writes its rows to a place of the store, and they pass nobody else.

In: a relation and the client whose engine computes it. Out: Parquet files at a place of the store, or why they are of
no use. Law: they read back with the schema that the engine told of the relation, down to nullability and metadata; the
engine itself is asked.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from nectar.catalog.handover import Handover
from nectar.dialects.spark.stored import SCHEMA, read_relation, write_command


def schema_by_engine(client: Any, relation: Any) -> Any:
    """The schema that the engine tells of a relation. Raises what the client raises where there is none."""
    request = client._analyze_plan_request_with_metadata()
    request.schema.plan.root.CopyFrom(relation)
    return client._stub.AnalyzePlan(request, metadata=client._builder.metadata()).schema.schema


def write(client: Any, relation: Any, place: Handover) -> float | str:
    """The engine has written the rows of a relation to a place, and they can be read back; how many seconds that took.

    Or why they cannot. Raises grpc.RpcError if the engine could not compute them.
    """
    told = schema_by_engine(client, relation)
    if not told.struct.fields:
        return "it has no columns"
    begun = time.perf_counter()
    _execute(client, write_command(relation, told, place.path))
    seconds = time.perf_counter() - begun
    read = schema_by_engine(client, read_relation([place.path], told))
    if read != told:
        return "its columns would not come back as they were"
    place.beside[SCHEMA] = told.SerializeToString(deterministic=True)
    return seconds


def _execute(client: Any, command: Any) -> None:
    """A command is carried out, without what a client does for its user."""
    request = client._execute_plan_request_with_metadata()
    request.plan.command.CopyFrom(command)
    call = client._stub.ExecutePlan(request, metadata=client._builder.metadata())
    try:
        for _ in call:
            pass
    finally:
        with suppress(Exception):  # after an interrupt the engine need not go on
            call.cancel()
