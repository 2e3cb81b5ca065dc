"""Between the Spark client and its server: known results are answered here, others are recorded as they pass.

A client has one Interceptor for all its calls. Law: whatever goes wrong in here, the call goes to the server as it was
made, its answer and its errors reach the program as they are, and the log says once what it was.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import grpc
from pyspark.sql.connect.proto import base_pb2

from nectar.dialects.spark.query import Query, defined, query_of
from nectar.dialects.spark.results import responses
from nectar.dialects.spark.taught import Lesson, Look, Taught
from nectar.errors import NectarError
from nectar.report.run import Part
from nectar.session import current, running

_log: Final = logging.getLogger("nectar.spark")

# Errors after which nobody knows what the server has done.
_UNDECIDED: Final = frozenset({
    grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED, grpc.StatusCode.UNKNOWN,
})  # fmt: skip

enabled = False  # whether results are reused; what servers are taught is noticed all the time


class Interceptor(grpc.UnaryStreamClientInterceptor, grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]  # grpc has no types
    """What one client sends and gets passes through here."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._taught = Taught(shared=client._builder.session_id is not None)
        self._lock = threading.Lock()
        self._answered: set[str] = set()  # operations that the server knows nothing of
        self._recorded: dict[str, Query] = {}  # operations whose answers are being recorded
        self._failures: set[str] = set()

    # calls that are answered by a stream

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        """The answer to a call: from what is known, or from the server."""
        method = _name_of(details)
        if method == "ExecutePlan":
            lesson = self._safely(self._taught.notice, request.plan, self._look())
            if lesson is not None:
                return _Attended(continuation(details, request), self, lesson)
            query = self._safely(self._noticed, request)
            if query is not None:
                known = self._safely(self._known, query, request)
                if known is not None:
                    return known
                return _Recorded(continuation(details, request), self, request.operation_id, query)
        elif method == "ReattachExecute":
            recorded = self._recorded.get(request.operation_id)
            if recorded is not None:
                return _Recorded(continuation(details, request), self, request.operation_id, recorded)
        return continuation(details, request)

    def _noticed(self, request: Any) -> Query | None:
        """The query of a request, if it is one whose result may be reused."""
        session = current() if enabled else None
        if session is None or request.plan.WhichOneof("op_type") != "root":  # Sail takes no compressed plans
            return None
        with running() as report:
            part = report.add(Part("query", "uncacheable"))
            try:
                query = query_of(session, self._client, request.plan.root, self._taught.scope, part)
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

    def _look(self) -> Look | None:
        """What tells how definitions are as everything is now; None while Nectar is off."""
        session = current() if enabled else None
        return None if session is None else partial(defined, session, self._client)

    def attended(self, lesson: Lesson, *, agreed: bool) -> None:
        """The server has answered to something that it was told."""
        self._safely(self._taught.learned if agreed else self._taught.rejected, lesson)

    def _known(self, query: Query, request: Any) -> Iterator[Any] | None:
        begun = time.perf_counter()
        table = query.known()
        if table is None:
            return None
        query.part.explain = None
        query.part.seconds = time.perf_counter() - begun
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
            if query.scope is not self._taught.scope:  # another thread taught the server something meanwhile
                query.why_not = "names changed their meaning while it ran"
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


class _Attended:
    """The stream of a call that tells the server something; what it says to it is heard as it is read."""

    def __init__(self, call: Any, interceptor: Interceptor, lesson: Lesson) -> None:
        self._call, self._interceptor, self._lesson = call, interceptor, lesson

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def __iter__(self) -> _Attended:
        return self

    def __next__(self) -> Any:
        try:
            response = next(self._call)
        except grpc.RpcError as error:
            if error.code() not in _UNDECIDED:
                self._interceptor.attended(self._lesson, agreed=False)
            raise
        if response.HasField("result_complete"):
            self._interceptor.attended(self._lesson, agreed=True)
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
