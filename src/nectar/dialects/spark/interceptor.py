"""Between the Spark client and its server: known results are answered here, others are recorded as they pass.

A client has one Interceptor for all its calls. Law: whatever goes wrong in here, the call goes to the server as it was
made, its answer and its errors reach the program as they are, and the log says once what it was.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

import grpc
from pyspark.sql.connect.proto import base_pb2

from nectar.dialects.spark.function_names import ANY_NAME
from nectar.dialects.spark.incremental.growing import grow
from nectar.dialects.spark.incremental.server import Server
from nectar.dialects.spark.persisted import ask_for, ask_no_more
from nectar.dialects.spark.query import Query, query_of
from nectar.dialects.spark.results import responses
from nectar.dialects.spark.reusing import give_up, look_up, note_cost, put_in
from nectar.dialects.spark.writing import is_our_own
from nectar.errors import NectarError
from nectar.report.run import Part, RunReport
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
        if is_our_own():
            return continuation(details, request)
        if method == "ExecutePlan":
            query = self._safely(self._noticed, request, lambda asked: continuation(details, asked))
            if query is not None:
                known = self._safely(self._known, query, request)
                if known is not None:
                    return known
                return _Recorded(continuation, details, request, self, query)
        elif method == "ReattachExecute":
            recorded = self._recorded.get(request.operation_id)
            if recorded is not None:
                return _Recorded(continuation, details, request, self, recorded)
        return continuation(details, request)

    def _noticed(self, request: Any, send: Callable[[Any], Any]) -> Query | None:
        """The query of a request, if it is one whose result may be reused. send: sends another one to the server."""
        kind = request.plan.WhichOneof("op_type")
        if kind != "root":  # Sail takes no compressed plans
            self._note_command(request.plan)
            return None
        session = current() if enabled else None
        if session is None:
            return None
        with running() as report:
            part = Part("query", "uncacheable")
            try:
                query = query_of(session, self._client, request.plan.root, frozenset(self._registered), part)
            except NectarError as error:
                text = str(error)
                part.explain = lambda: text
                session.totals.count(report.add(part))
                return None
            refusal = query.keyed.root.refusal
            part.outcome = "uncacheable" if refusal else "computed"
            part.explain = lambda: refusal or "no result is known under its key"
            self._safely(self._look_up, query, report, Server(self._client, request, send))
            report.add(part)
            if refusal and not query.known:
                session.totals.count(part)
                return None
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

    def _look_up(self, query: Query, report: RunReport, server: Server) -> None:
        """What is known of a query is at hand: the whole of it, or parts that stand in its plan."""
        begun = time.perf_counter()
        try:
            look_up(query)
            if query.answer is None:
                query.answer = query.result = grow(query, server)
            if query.answer is None:
                put_in(query, self._client)
        except Exception:
            query.forget_known()
            raise
        for part in query.reused_parts():
            query.session.totals.count(report.add(part))
        if query.answer is not None:
            query.part.seconds = time.perf_counter() - begun

    def _known(self, query: Query, request: Any) -> Iterator[Any] | None:
        if query.answer is None:
            return None
        query.session.totals.count(query.part)
        if query.result is not None:  # it is new, and was put together
            query.keep()
        self._forget(request.operation_id)
        if _is_reattachable(request):  # otherwise nobody asks to have it released
            with self._lock:
                self._answered.add(request.operation_id)
        return responses(query.answer, request, self._client._server_session_id or "")

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
            note_cost(query)
            query.keep()

    def failed(self, operation: str, query: Query) -> None:
        """The server answered with an error, which is the program's; nothing is kept."""
        if not query.keyed.root.refusal:
            query.part.outcome = "failed"
        query.release()
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
        elif _name_of(details) == "AnalyzePlan":
            self._safely(self._note_persisted, request)
        return continuation(details, request)

    def _note_persisted(self, request: Any) -> None:
        """Remembers which relations the program wants to be kept."""
        kind = request.WhichOneof("analyze")
        session = current() if enabled and kind in ("persist", "unpersist") else None
        if session is None:
            return
        relation = getattr(request, kind).relation
        try:
            query = query_of(session, self._client, relation, frozenset(self._registered), Part(kind))
        except NectarError as error:
            _log.info("%s() is not shared: %s", kind, error)
            return
        if not query.keyed.root.refusal:
            (ask_for if kind == "persist" else ask_no_more)(query.keyed.root.program)

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

    def __init__(self, continuation: Any, details: Any, request: Any, interceptor: Interceptor, query: Query) -> None:
        self._interceptor, self._operation, self._query = interceptor, request.operation_id, query
        sent = _with_known_parts(request, query)
        self._call = continuation(details, sent)
        self._as_given = None if sent is request else lambda: continuation(details, request)
        self._ahead: deque[Any] = deque()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def __iter__(self) -> _Recorded:
        return self

    def _next(self) -> Any:
        """The next response. If the engine fails over parts from the store before it has rows, it runs without them."""
        as_given, self._as_given = self._as_given, None
        try:
            while as_given is not None and not (self._ahead and _has_rows(self._ahead[-1])):
                self._ahead.append(next(self._call))
        except StopIteration:
            pass
        except grpc.RpcError as error:
            if as_given is None or _is_not_about_the_plan(error):
                raise
            give_up(self._query, str(error.details()))
            self._ahead.clear()
            self._call = as_given()
        return self._ahead.popleft() if self._ahead else next(self._call)

    def __next__(self) -> Any:
        begun = time.perf_counter()
        try:
            response = self._next()
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


def _is_not_about_the_plan(error: Any) -> bool:
    """Whether somebody on this side has ended a call, or there is no server; an engine that breaks ends calls, too."""
    ended_here = error.code() == grpc.StatusCode.CANCELLED and "ocally cancelled" in str(error.details())
    return bool(ended_here or error.code() == grpc.StatusCode.UNAVAILABLE)


def _has_rows(response: Any) -> bool:
    return bool(response.HasField("arrow_batch") or response.HasField("result_complete"))


def _with_known_parts(request: Any, query: Query) -> Any:
    """The request that is sent. The program's own stays as it is: its client may send it again."""
    if not query.known or not isinstance(request, base_pb2.ExecutePlanRequest):
        return request
    sent = base_pb2.ExecutePlanRequest()
    sent.CopyFrom(request)
    sent.plan.root.CopyFrom(query.plan)
    return sent


def _is_reattachable(request: Any) -> bool:
    return any(option.reattach_options.reattachable for option in request.request_options)


def _name_of(details: Any) -> str:
    method = details.method
    text = method.decode() if isinstance(method, bytes) else str(method)
    return text.rpartition("/")[2]
