"""Between the Spark client and its server: known results are answered here, others are recorded as they pass.

A client has one Interceptor for all its calls. Law: whatever goes wrong in here, the call goes to the server as it was
made, its answer and its errors reach the program as they are, and the log says once what it was.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import grpc
from pyspark.sql.connect.proto import base_pb2

from nectar.dialects.spark.function_names import ANY_NAME
from nectar.dialects.spark.incremental.growing import grow
from nectar.dialects.spark.incremental.server import Server
from nectar.dialects.spark.query import Query, query_of
from nectar.dialects.spark.results import responses
from nectar.errors import NectarError
from nectar.report.run import Part
from nectar.session import current, running

_log: Final = logging.getLogger("nectar.spark")

enabled = False  # whether results are reused; what servers are taught is noticed all the time


class Interceptor(grpc.UnaryStreamClientInterceptor, grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]  # grpc has no types
    """What one client sends and gets passes through here."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._registered: set[str] = {ANY_NAME} if client._builder.session_id is not None else set()
        self._lock = threading.Lock()
        self._answered: set[str] = set()  # operations that the server knows nothing of
        self._recorded: dict[str, Query] = {}  # operations whose answers are being recorded
        self._failures: set[str] = set()

    # calls that are answered by a stream

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        """The answer to a call: from what is known, or from the server."""
        method = _name_of(details)
        if method == "ExecutePlan":
            query = self._safely(self._noticed, request)
            if query is not None:
                known = self._safely(self._known, query, request)
                if known is not None:
                    return known
                grown = self._safely(self._grown, query, request, lambda asked: continuation(details, asked))
                if grown is not None:
                    return grown
                return _Recorded(continuation(details, request), self, request.operation_id, query)
        elif method == "ReattachExecute":
            recorded = self._recorded.get(request.operation_id)
            if recorded is not None:
                return _Recorded(continuation(details, request), self, request.operation_id, recorded)
        return continuation(details, request)

    def _noticed(self, request: Any) -> Query | None:
        """The query of a request, if it is one whose result may be reused."""
        kind = request.plan.WhichOneof("op_type")
        if kind != "root":  # Sail takes no compressed plans
            self._note_command(request.plan)
            return None
        session = current() if enabled else None
        if session is None:
            return None
        with running() as report:
            part = report.add(Part("query", "uncacheable"))
            try:
                query = query_of(session, self._client, request.plan.root, frozenset(self._registered), part)
            except NectarError as error:
                text = str(error)
                part.explain = lambda: text
                session.totals.count(part)
                return None
            part.outcome = "computed"
            part.explain = lambda: "no result is known under its key"
        if _is_reattachable(request):  # its answer may come in several streams
            with self._lock:
                self._recorded[request.operation_id] = query
        return query

    def _note_command(self, plan: Any) -> None:
        """Remembers the names of functions that the server is taught; plans that use them are not reused."""
        kind = plan.command.WhichOneof("command_type")
        if kind in ("register_function", "register_table_function"):
            self._registered.add(getattr(plan.command, kind).function_name.lower())
        elif kind == "sql_command":
            if b"function" in plan.command.SerializeToString().lower():
                self._registered.add(ANY_NAME)
        elif kind is None or kind == "register_data_source":  # a compressed command may be any of them
            self._registered.add(ANY_NAME)

    def _known(self, query: Query, request: Any) -> Iterator[Any] | None:
        begun = time.perf_counter()
        table = query.known()
        if table is None:
            return None
        query.part.explain = None
        return self._answered_here(query, request, table, time.perf_counter() - begun)

    def _grown(self, query: Query, request: Any, send: Callable[[Any], Any]) -> Iterator[Any] | None:
        """The answer put together from what is known of parts of the files, which is kept like any other."""
        if not query.growing:
            return None
        begun = time.perf_counter()
        query.result = grow(query, request.plan.root, Server(self._client, request, send))
        if query.result is None:
            return None
        parts = len(query.made_from)
        query.part.explain = lambda: f"put together from {parts} known part{'s' if parts != 1 else ''} and what is new"
        answer = self._answered_here(query, request, query.result, time.perf_counter() - begun)
        query.keep()
        _tell_parts(query)
        return answer

    def _answered_here(self, query: Query, request: Any, table: Any, seconds: float) -> Iterator[Any]:
        """The answer to a request that the server does not get."""
        query.part.seconds = seconds
        query.session.totals.count(query.part)
        self._forget(request.operation_id)
        if _is_reattachable(request):  # otherwise nobody asks to have it released
            with self._lock:
                self._answered.add(request.operation_id)
        return responses(table, request, self._client._server_session_id or "")

    # recording

    def take(self, operation: str, query: Query, response: Any, seconds: float) -> None:
        """A response has come, after so many seconds of waiting; with the last one the result is kept."""
        self._safely(self._take, operation, query, response, seconds)

    def _take(self, operation: str, query: Query, response: Any, seconds: float) -> None:
        query.part.seconds += seconds
        query.recording.add(response)
        if response.HasField("result_complete"):
            self._forget(operation)
            query.session.totals.count(query.part)
            query.keep()

    def failed(self, operation: str, query: Query) -> None:
        """The server answered with an error, which is the program's; nothing is kept."""
        query.part.outcome = "failed"
        self._forget(operation)

    def _forget(self, operation: str) -> None:
        with self._lock:
            self._recorded.pop(operation, None)

    # calls that are answered by one message

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        """The answer to a call; the server is not told to release what it has never computed."""
        if _name_of(details) == "ReleaseExecute":
            if request.HasField("release_all"):
                self._forget(request.operation_id)
            if request.operation_id in self._answered:
                if request.HasField("release_all"):
                    with self._lock:
                        self._answered.discard(request.operation_id)
                return _Released(request, self._client._server_session_id or "")
        return continuation(details, request)

    def _safely(self, action: Any, *args: Any) -> Any:
        """What an action gives; None if it fails, which is logged once."""
        try:
            return action(*args)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            if text not in self._failures:
                self._failures.add(text)
                _log.warning("a Spark program runs as without Nectar: %s", text, exc_info=True)
            return None


def _tell_parts(query: Query) -> None:
    """The report says which parts of a result were known."""
    with running() as report:
        for entry in query.made_from:
            part = report.add(Part(entry.about, "reused", 0.0, entry.seconds, entry.size, key=entry.key.hex()))
            query.session.totals.count(part)
        if not any(part is query.part for part in report.parts):
            report.add(query.part)


class _Recorded:
    """The stream of a call, recorded as it is read."""

    def __init__(self, call: Any, interceptor: Interceptor, operation: str, query: Query) -> None:
        self._call, self._interceptor, self._operation, self._query = call, interceptor, operation, query

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def __iter__(self) -> _Recorded:
        return self

    def __next__(self) -> Any:
        begun = time.perf_counter()
        try:
            response = next(self._call)
        except StopIteration:
            raise
        except BaseException:
            self._interceptor.failed(self._operation, self._query)
            raise
        self._interceptor.take(self._operation, self._query, response, time.perf_counter() - begun)
        return response


class _Released:
    """The answer to a request to release an operation that was answered here."""

    def __init__(self, request: Any, server_session: str) -> None:
        self._response = base_pb2.ReleaseExecuteResponse(
            session_id=request.session_id, server_side_session_id=server_session, operation_id=request.operation_id
        )

    def result(self, timeout: float | None = None) -> Any:
        """The message."""
        return self._response


def _is_reattachable(request: Any) -> bool:
    return any(option.reattach_options.reattachable for option in request.request_options)


def _name_of(details: Any) -> str:
    method = details.method
    text = method.decode() if isinstance(method, bytes) else str(method)
    return text.rpartition("/")[2]
