"""The server, asked for more than the program asks for: results of other plans, and their schemas.

Law: what is asked for changes nothing at the server, and goes by the same session as the request of the program.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.connect.proto import base_pb2
from pyspark.sql.types import StructType

from nectar.dialects.spark.incremental.messages import limited
from nectar.dialects.spark.manners import SAIL, Manner
from nectar.dialects.spark.results import Recording
from nectar.dialects.spark.timing import Timing
from nectar.errors import EnvironmentFailure

_SHOWING: Final = frozenset({"show_string", "html_string"})


class NotPutTogether(EnvironmentFailure):
    """Something that was counted on is not there, or is not what it was expected to be: the whole is computed."""


class PartIsGone(NotPutTogether):
    """A part that was counted on was deleted meanwhile; nothing else is wrong."""


@dataclass(frozen=True, slots=True)
class Server:
    """The server that a request goes to. send: sends another one and gives its answers. timing: of the request."""

    client: Any
    request: Any
    send: Callable[[Any], Any]
    manner: Manner = SAIL
    timing: Timing | None = None

    def run(self, relation: Any) -> pa.Table:
        """The result of a relation. Raises NotPutTogether if it is too large, and whatever the server says."""
        with nullcontext() if self.timing is None else self.timing.computing():
            return self._run(relation)

    def _run(self, relation: Any) -> pa.Table:
        asked = base_pb2.ExecutePlanRequest()
        asked.CopyFrom(self.request)
        asked.plan.root.CopyFrom(relation)
        asked.operation_id = str(uuid.uuid4())
        asked.ClearField("request_options")  # nobody asks for its answer a second time
        recording = Recording()
        answers = self.send(asked)
        try:
            for answer in answers:
                recording.add(answer)
        except BaseException:
            answers.cancel()
            raise
        recording.complete = True  # a server says so only to those who may ask a second time
        table = recording.table()
        if isinstance(table, str):
            raise NotPutTogether(f"a part was not answered: {table}")
        return table

    def empty(self, relation: Any) -> pa.Table:
        """A table without rows that has the very schema of the result of a relation."""
        kind = relation.WhichOneof("rel_type")
        if kind in _SHOWING:  # of them there is no more than one row, and nothing can be done above them
            shown = getattr(relation, kind)
            shown.input.CopyFrom(limited(shown.input, 0))
            return self.run(relation).slice(0, 0)
        return self.run(limited(relation, 0)).slice(0, 0)

    def schema(self, relation: Any) -> StructType:
        """The schema that the server knows a relation by."""
        found: StructType = self.client.schema(base_pb2.Plan(root=relation))
        return found
