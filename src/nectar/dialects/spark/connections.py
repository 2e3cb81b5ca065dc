"""Questions to the server of a client, beside the calls of the program.

A question is asked once, with a limit of time, past the interceptor and the retries of the client, and changes
nothing in the client. Law: a server that is gone, was restarted or does not understand is a failure here; what the
program hears of it is what the server answers to the program's own call.
"""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import grpc
import pyarrow as pa
import pyarrow.ipc
from pyspark.sql.connect.proto import base_pb2, catalog_pb2, relations_pb2

from nectar.dialects.spark.sql.words import quoted
from nectar.errors import EnvironmentFailure, UserError

_SECONDS: Final = 20.0  # for a question that any server answers at once
_CACHED: Final = "InMemoryRelation"  # what Spark calls a frame that it has cached, in the plans that it shows
_CUT_OFF: Final = re.compile(r"more characters\s*$|Truncated plan of")  # if somebody has set a length for plans
_SECONDS_TO_RUN: Final = 120.0  # for a small query: the first one of a server takes long
_OFF: Final = 0.5  # seconds by which clocks run apart by themselves, within days
_PASSING: Final = frozenset({
    grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED,
    grpc.StatusCode.ABORTED, grpc.StatusCode.RESOURCE_EXHAUSTED,
})  # fmt: skip


class Unreachable(EnvironmentFailure):
    """The server did not answer this time, and may the next: nothing is learned from it."""


class Connection:
    """A client and its server, as far as they can be asked. What is remembered holds for one session of the server."""

    def __init__(self, client: Any, stub: Any) -> None:
        self._client, self._stub = weakref.ref(client), stub
        self._session = ""
        self.began = time.time()  # before its server knew of it
        self._ticks = time.monotonic()
        self._remembered: dict[Hashable, Any] = {}
        self._settings: dict[str, str] | None = None
        # Whoever else was told the name of the session may change its settings at any time.
        self._may_be_reset = getattr(client._builder, "session_id", None) is not None
        self.sent_files = False  # to its session, where functions may import them

    @property
    def session(self) -> str:
        """What the server calls its session, by its latest answer."""
        return self._session

    @property
    def clock_was_set(self) -> bool:
        """Whether somebody has set the clock of this machine since the session began."""
        return abs((time.time() - self.began) - (time.monotonic() - self._ticks)) > _OFF

    def begin_with(self, other: Connection) -> None:
        """This session was made from another one, and may know what that one knew."""
        self.sent_files, self.began, self._ticks = other.sent_files, other.began, other._ticks

    @property
    def user(self) -> str:
        """Who the client says it is."""
        return str(self._living()._user_id or "")

    @property
    def endpoint(self) -> str:
        """Where the server is, as far as the program's way to connect tells."""
        try:
            return str(self._living()._builder.endpoint)
        except Exception:  # a builder of the program's own may do anything
            return "an unknown address"

    def settings(self, *names: str) -> dict[str, str]:
        """The settings made in the session, and the values in force of those that are named."""
        kinds = base_pb2.ConfigRequest
        found = self._configured(kinds.Operation(get_all=kinds.GetAll()))
        missing = [name for name in names if name not in found]
        if missing:
            found |= self._configured(kinds.Operation(get_option=kinds.GetOption(keys=missing)))
        return found

    def settings_so_far(self) -> dict[str, str]:
        """The settings made in the session; the server is asked again only if the program may have changed them.

        For servers that are there for as long as this process is: others may be gone, which nobody would notice.
        """
        if self._settings is None or self._may_be_reset:
            self._settings = self.settings()
        return dict(self._settings)

    def forget_settings(self, *, always: bool = False) -> None:
        """The program may have changed settings. always: it may be doing so from now on, unseen."""
        self._may_be_reset = self._may_be_reset or always
        self._settings = None

    def _configured(self, operation: Any) -> dict[str, str]:
        request = self._living()._config_request_with_metadata()
        request.operation.CopyFrom(operation)
        return {pair.key: pair.value for pair in self._asked(self._stub.Config, request).pairs}

    def version(self) -> str:
        """What the server says of its version."""
        return str(self.remembered("version", self._version))

    def _version(self) -> str:
        request = self._living()._analyze_plan_request_with_metadata()
        request.spark_version.SetInParent()
        return str(self._asked(self._stub.AnalyzePlan, request).spark_version.version)

    def files(self, relation: Any) -> list[str]:
        """The files that a query would read, as the server names them."""
        request = self._living()._analyze_plan_request_with_metadata()
        request.input_files.plan.root.CopyFrom(relation)
        return list(self._asked(self._stub.AnalyzePlan, request).input_files.files)

    def schema(self, relation: Any) -> bytes:
        """The columns of a query, with everything that is said of them."""
        request = self._living()._analyze_plan_request_with_metadata()
        request.schema.plan.root.CopyFrom(relation)
        return bytes(self._asked(self._stub.AnalyzePlan, request).schema.schema.SerializeToString(deterministic=True))

    def has_cached(self, relation: Any) -> bool:
        """Whether the server may answer a part of a query from what some session has cached."""
        shown = self.shown(relation)
        return _CACHED in shown or _CUT_OFF.search(shown) is not None

    def shown(self, relation: Any) -> str:
        """The plans that the server makes of a query, for people."""
        request = self._living()._analyze_plan_request_with_metadata()
        request.explain.plan.root.CopyFrom(relation)
        request.explain.explain_mode = base_pb2.AnalyzePlanRequest.Explain.EXPLAIN_MODE_EXTENDED
        return str(self._asked(self._stub.AnalyzePlan, request).explain.explain_string)

    def table(self, name: Sequence[str]) -> str:
        """Which table a name means: its catalog, namespace and name. Raises UserError if it is one of the session."""
        asked = catalog_pb2.GetTable(table_name=quoted(name))
        (row,) = self.rows(relations_pb2.Relation(catalog=catalog_pb2.Catalog(get_table=asked))).to_pylist()
        if row["isTemporary"]:
            raise UserError(f"{'.'.join(name)} is a view of the session, and cannot be valid for a while")
        return repr((row["catalog"], row["namespace"], row["name"]))

    def rows(self, relation: Any) -> pa.Table:
        """What a small query gives."""
        client = self._living()
        request = client._execute_plan_request_with_metadata()
        request.plan.root.CopyFrom(relation)
        batches: list[pa.RecordBatch] = []
        try:
            for response in self._stub.ExecutePlan(
                request, metadata=client._builder.metadata(), timeout=_SECONDS_TO_RUN
            ):
                self._expect_same_session(response)
                if response.HasField("arrow_batch"):
                    batches += _batches_in(response.arrow_batch.data)
        except grpc.RpcError as error:
            raise _failure(error, f"the server at {self.endpoint} cannot do it: {_told(error)}") from error
        return pa.Table.from_batches(batches) if batches else pa.table({})

    def remembered(self, name: Hashable, found: Callable[[], Any]) -> Any:
        """What was found for this session of the server; found now, if it was not yet."""
        if name not in self._remembered:
            value = found()
            self._remembered[name] = value
        return self._remembered[name]

    def _living(self) -> Any:
        client = self._client()
        if client is None:
            raise EnvironmentFailure("the client of a session is gone")
        return client

    def _asked(self, call: Any, request: Any) -> Any:
        try:
            response = call(request, metadata=self._living()._builder.metadata(), timeout=_SECONDS)
        except grpc.RpcError as error:
            raise _failure(error, f"the server at {self.endpoint} cannot be asked: {_told(error)}") from error
        self._expect_same_session(response)
        return response

    def _expect_same_session(self, response: Any) -> None:
        told = response.server_side_session_id
        known = self._living()._server_session_id or self._session
        if told != self._session:
            self._session = told
            self._remembered.clear()
            self._settings = None
        if known and told != known:
            raise Unreachable(f"the server at {self.endpoint} was restarted, and has forgotten this session")


_connections: Final[weakref.WeakKeyDictionary[Any, Connection]] = weakref.WeakKeyDictionary()


def connect(client: Any, stub: Any) -> None:
    """From now on the server of a client can be asked. stub: leads there past everything that Nectar does."""
    _connections[client] = Connection(client, stub)


def connection_of(client: Any) -> Connection:
    """The connection of a client that goes through Nectar."""
    return _connections[client]


def _batches_in(stream: bytes) -> list[pa.RecordBatch]:
    with pa.ipc.open_stream(stream) as reader:
        return list(reader)


def is_passing(error: BaseException) -> bool:
    """Whether a call failed for a reason that may be gone the next moment."""
    return isinstance(error, Unreachable) or (isinstance(error, grpc.RpcError) and error.code() in _PASSING)


def _failure(error: Any, text: str) -> EnvironmentFailure:
    return Unreachable(text) if is_passing(error) else EnvironmentFailure(text)


def _told(error: Any) -> str:
    code, details = error.code(), error.details() or ""
    return f"{code.name} {details.splitlines()[0] if details else ''}".strip()
