"""Between the Spark client and its server: known results are answered here, others are recorded as they pass.

A client has one Interceptor for all its calls. Law: whatever goes wrong in here, the call goes to the server as it was
made, its answer and its errors reach the program as they are, and the log says once what it was.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import grpc
from pyspark.sql.connect.proto import base_pb2

from nectar.dialects.spark import explain, saving
from nectar.dialects.spark.compressed import opened, with_relation
from nectar.dialects.spark.connections import connection_of, is_passing
from nectar.dialects.spark.incremental.growing import grow
from nectar.dialects.spark.incremental.server import Server
from nectar.dialects.spark.keyed import Keyed
from nectar.dialects.spark.operations import Operations
from nectar.dialects.spark.persisted import ask_for, ask_no_more
from nectar.dialects.spark.query import Query, defined, query_of
from nectar.dialects.spark.relations import Step
from nectar.dialects.spark.resetting import config_may_reset, plan_may_reset
from nectar.dialects.spark.results import responses
from nectar.dialects.spark.reusing import claim, give_up, look_up, note_cost, put_in
from nectar.dialects.spark.scope import Scope
from nectar.dialects.spark.sending import Sending
from nectar.dialects.spark.taught import Lesson, Look, Taught
from nectar.dialects.spark.writing import is_our_own
from nectar.errors import EnvironmentFailure, NectarError
from nectar.report.run import Part, RunReport
from nectar.session import Session, current, running

_log: Final = logging.getLogger("nectar.spark")

# Errors after which nobody knows what the server has done.
_UNDECIDED: Final = frozenset({
    grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED, grpc.StatusCode.UNKNOWN,
})  # fmt: skip

_ROWS: Final = "cache/"  # what the names of files begin with that hold rows of local frames

enabled = False  # whether results are reused; what servers are taught is noticed all the time


class Interceptor(  # grpc has no types
    grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]
    grpc.StreamUnaryClientInterceptor,  # type: ignore[misc]
):
    """What one client sends and gets passes through here."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._taught = Taught(shared=client._builder.session_id is not None)
        self._lock = threading.Lock()
        self._answered: set[str] = set()  # operations that the server knows nothing of
        self._recorded: dict[str, Query] = {}  # operations whose answers are being recorded
        self._lessons: dict[str, Lesson] = {}  # operations that tell the server something
        self._operations = Operations()
        self._failures: set[str] = set()
        self._sending = Sending(client)

    @property
    def scope(self) -> Scope:
        """What names mean in the session."""
        return self._taught.scope

    # calls that are answered by a stream

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        """The answer to a call: from what is known, or from the server."""
        method = _name_of(details)
        if is_our_own():
            return continuation(details, request)
        if method == "ExecutePlan":
            taught = self._safely(self._told, request)
            if taught is not None:
                lesson, sent = taught
                return _Attended(continuation(details, sent), self, request.operation_id, lesson)
            query = self._safely(self._noticed, request, lambda asked: continuation(details, asked))
            if query is not None:
                known = self._safely(self._known, query, request)
                if known is not None:
                    return known
                sent = self._safely(self._sending.recorded, request, query.keyed.states)
                if sent is not None:
                    over_parts = self._safely(self._over_parts, query, request) if query.known else None
                    return _Recorded(
                        continuation, details, request, self, query, over_parts or sent, over_parts and sent
                    )
                self._forget(request.operation_id)
                self._safely(query.abandon)
            else:
                request = self._safely(self._sending.plain, request) or request
        elif method == "ReattachExecute":
            known = self._operations.as_known(request)
            recorded, lesson = self._recorded.get(request.operation_id), self._lessons.get(request.operation_id)
            if recorded is not None:
                return _Recorded(continuation, details, request, self, recorded, known)
            if lesson is not None:
                return _Attended(continuation(details, request), self, request.operation_id, lesson)
            return continuation(details, known)
        return continuation(details, request)

    def _noticed(self, request: Any, send: Callable[[Any], Any]) -> Query | None:
        """The query of a request, if it is one whose result may be reused. send: sends another one to the server."""
        session = current() if enabled else None
        if session is None or not _is_relation(request.plan):
            return None
        with running() as report:
            part = Part("query", "uncacheable")
            try:
                root = opened(self._client, request.plan).root
                query = query_of(session, self._client, root, self._taught.scope, part)
                query.scope_now = lambda: self._taught.scope
                saving.noticed(query)
                self._sending.expect_unchanged(query.keyed.states)
            except NectarError as error:
                text = str(error)
                part.explain = lambda: text
                saving.refused(text)
                explain.tell_watchers(text)
                session.totals.count(report.add(part))
                if isinstance(error, EnvironmentFailure):  # of its server, of which the first says enough
                    self._warn(text, about="server")
                return None
            refusal = query.keyed.root.refusal
            part.outcome = "uncacheable" if refusal else "computed"
            part.explain = lambda: refusal or "no result is known under its key"
            self._safely(self._look_up, query, report, Server(self._client, request, send, query.engine.manner))
            explain.tell_watchers(query)
            report.add(part)
            if refusal and not query.known:
                session.totals.count(part)
                return None
        if _is_reattachable(request):  # its answer may come in several streams
            with self._lock:
                before, self._recorded[request.operation_id] = self._recorded.get(request.operation_id), query
            if before is not None:  # the server has never heard of it, and is told once more
                before.abandon()
        return query

    def _told(self, request: Any) -> tuple[Lesson, Any] | None:
        """What the server is taught by a request, and the request as it is sent; None if it is taught nothing."""
        plan, readable = request.plan, True
        try:
            plan = opened(self._client, plan)
        except NectarError:
            readable = False
            _log.debug("a plan cannot be read: it may mean anything", exc_info=True)
        if not readable or plan_may_reset(plan):  # while it runs, which is not seen
            connection_of(self._client).forget_settings(always=True)
        lesson = self._taught.notice(plan, self._look())
        if lesson is None:
            return None
        sent = self._sending.taught(request, lesson.states)
        if _is_reattachable(request):
            with self._lock:
                self._lessons[request.operation_id] = lesson
        return lesson, sent

    def _look(self) -> Look | None:
        """What tells how definitions are as everything is now; None while Nectar is off."""
        session = current() if enabled else None
        return None if session is None else partial(self._defined, session)

    def _defined(self, session: Session, steps: Sequence[Step], scope: Scope, now: Scope) -> Keyed:
        found = defined(session, self._client, steps, scope, now)
        self._sending.expect_unchanged(found.states)
        return found

    def attended(self, operation: str, lesson: Lesson, *, agreed: bool) -> None:
        """The server has answered to something that it was told."""
        with self._lock:
            self._lessons.pop(operation, None)
        self._safely(self._taught.learned if agreed else self._taught.rejected, lesson)

    def inherit(self, other: Interceptor) -> None:
        """This session was made from another one, and knows what its server was taught there."""
        self._taught.inherit(other._taught)
        connection_of(self._client).begin_with(connection_of(other._client))

    def _over_parts(self, query: Query, request: Any) -> Any:
        """The request over known parts. The program's own stays as it is: its client may send it again."""
        return self._operations.anew(with_relation(self._client, request, query.plan))

    def _look_up(self, query: Query, report: RunReport, server: Server) -> None:
        """What is known of a query is at hand: the whole of it, or parts that stand in its plan."""
        begun = time.perf_counter()
        try:
            look_up(query)
            if not query.is_known:
                old = query.why_old()
                if old:
                    query.forget_known()
                    query.recording.why_not = old
                    return
                claim(query)
            if not query.is_known:
                query.answer = query.result = grow(query, server)
            if query.answer is None:
                put_in(query, self._client)
        except BaseException:  # an interrupt, too, must not leave leases, nor anybody waiting
            query.forget_known()
            query.abandon()
            if query.keyed.by_name:
                query.recording.why_not = "whether the server knows something older could not be asked"
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
        return responses(query.answer, request, connection_of(self._client).session)

    # recording

    def take(self, operation: str, query: Query, response: Any, seconds: float) -> None:
        """A response has come, after so many seconds of waiting; with the last one the result is kept."""
        self._safely(self._take, operation, query, response, seconds)

    def _take(self, operation: str, query: Query, response: Any, seconds: float) -> None:
        query.part.seconds += seconds
        query.recording.add(response)
        if response.HasField("arrow_batch"):
            query.rows_have_come()
        if response.HasField("result_complete"):
            self._completed(operation, query)

    def ended(self, operation: str, query: Query) -> None:
        """The only stream of an answer has ended; to those who cannot ask for another the server does not say so."""
        self._operations.forget(operation)
        if not query.recording.complete:
            query.recording.complete = True
            self._safely(self._completed, operation, query)

    def _completed(self, operation: str, query: Query) -> None:
        self._forget(operation)
        if query.part.outcome == "failed":  # for a moment, and the client has asked for the rest
            query.part.outcome = "computed"
        query.session.totals.count(query.part)
        note_cost(query)
        query.keep()

    def give_up(self, operation: str, query: Query, reason: str) -> None:
        """The server did not take known parts; the query runs without them, under the name that the program gave it."""
        self._operations.forget(operation)
        self._safely(give_up, query, reason)

    def failed(self, operation: str, query: Query, *, for_good: bool) -> None:
        """The server answered with an error, which is the program's; nothing is kept.

        for_good: nobody will ask for the rest. Otherwise the program's client may, or gives its operation up.
        """
        if not query.keyed.root.refusal:
            query.part.outcome = "failed"
        if for_good:
            self._safely(query.abandon)
            self._forget(operation)
            self._operations.forget(operation)

    def _forget(self, operation: str) -> Query | None:
        with self._lock:
            return self._recorded.pop(operation, None)

    def _given_up(self, operation: str) -> None:
        """The program's client does not ask for any more of an operation."""
        query = self._forget(operation)
        if query is not None:
            query.abandon()
        with self._lock:
            self._lessons.pop(operation, None)
        self._operations.forget(operation)

    # calls that are answered by one message

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        """The answer to a call; the server is not told to release what it has never computed."""
        if _name_of(details) == "ReleaseExecute":
            known = self._operations.as_known(request)
            if request.HasField("release_all"):
                self._safely(self._given_up, request.operation_id)
            if request.operation_id in self._answered:
                if request.HasField("release_all"):
                    with self._lock:
                        self._answered.discard(request.operation_id)
                return _Released(request, connection_of(self._client).session)
            request = known
        elif _name_of(details) == "Interrupt":
            request = self._operations.as_known(request)
        elif _name_of(details) == "AnalyzePlan":
            self._safely(self._note_persisted, request)
            request = self._safely(self._sending.analysed, request, self._states_of) or request
        elif _name_of(details) == "Config" and config_may_reset(request):
            answer = continuation(details, request)
            self._safely(connection_of(self._client).forget_settings)
            return answer
        return continuation(details, request)

    # calls that are a stream

    def intercept_stream_unary(self, continuation: Any, details: Any, requests: Any) -> Any:
        """The answer to files that are sent; it is noticed if there are others than rows of local frames."""
        return continuation(details, self._seen(requests))

    def _seen(self, requests: Iterator[Any]) -> Iterator[Any]:
        for request in requests:
            names = self._safely(_names_of_files, request)
            if names is None or not all(name.startswith(_ROWS) for name in names):
                connection_of(self._client).sent_files = True
            yield request

    def _note_persisted(self, request: Any) -> None:
        """Remembers which frames the program wants to be kept."""
        kind = request.WhichOneof("analyze")
        if kind not in ("persist", "unpersist"):
            return
        query = self._cached_query(getattr(request, kind).relation)
        if query is not None and not query.keyed.root.refusal:
            (ask_for if kind == "persist" else ask_no_more)(query.keyed.root.program)

    def _states_of(self, relation: Any) -> Mapping[bytes, bytes]:
        """What the files of a relation hold now, if its server remembers files and could be reused."""
        query = self._cached_query(relation)
        return {} if query is None else query.keyed.states

    def _cached_query(self, relation: Any) -> Query | None:
        """The query of a frame that the program caches, or no longer wants cached; None if it is not shared."""
        session = current() if enabled else None
        if session is None:
            return None
        try:
            return query_of(session, self._client, relation, self._taught.scope, Part("cached"))
        except NectarError as error:
            _log.info("a frame is cached as it is: %s", error)
            return None

    def _safely(self, action: Any, *args: Any) -> Any:
        """What an action gives; None if it fails, which is logged once."""
        try:
            return action(*args)
        except Exception as error:
            self._warn(f"{type(error).__name__}: {error}", exc_info=True)
            return None

    def _warn(self, text: str, about: str = "", exc_info: bool = False) -> None:
        """The log says it, once for each client. about: what it has to do with, if that is not to be told twice."""
        if (about or text) not in self._failures:
            self._failures.add(about or text)
            _log.warning("a Spark program runs as without Nectar: %s", text, exc_info=exc_info)


def _names_of_files(request: Any) -> list[str]:
    """The names of the files that a request begins to send."""
    begun = [request.begin_chunk.name] if request.HasField("begin_chunk") else []
    return begun + [each.name for each in request.batch.artifacts]


class _Recorded:
    """The stream of a call, recorded as it is read. sent: the request as it is sent; without: should that fail."""

    def __init__(
        self, continuation: Any, details: Any, request: Any, interceptor: Interceptor, query: Query, sent: Any,
        without: Any = None,
    ) -> None:  # fmt: skip
        self._interceptor, self._operation, self._query = interceptor, request.operation_id, query
        self._is_the_only_one = isinstance(request, base_pb2.ExecutePlanRequest) and not _is_reattachable(request)
        self._call = continuation(details, sent)
        self._as_given = None if without is None else lambda: continuation(details, without)
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
            self._interceptor.give_up(self._operation, self._query, str(error.details()))
            self._ahead.clear()
            self._call = as_given()
        return self._ahead.popleft() if self._ahead else next(self._call)

    def __next__(self) -> Any:
        begun = time.perf_counter()
        try:
            response = self._next()
        except StopIteration:
            if self._is_the_only_one:
                self._interceptor.ended(self._operation, self._query)
            raise
        except BaseException as error:
            may_go_on = not self._is_the_only_one and is_passing(error)
            self._interceptor.failed(self._operation, self._query, for_good=not may_go_on)
            raise
        if response.operation_id != self._operation:
            response.operation_id = self._operation
        self._interceptor.take(self._operation, self._query, response, time.perf_counter() - begun)
        return response


class _Attended:
    """The stream of a call that tells the server something; what it says to it is heard as it is read."""

    def __init__(self, call: Any, interceptor: Interceptor, operation: str, lesson: Lesson) -> None:
        self._call, self._interceptor, self._operation, self._lesson = call, interceptor, operation, lesson

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def __iter__(self) -> _Attended:
        return self

    def __next__(self) -> Any:
        try:
            response = next(self._call)
        except grpc.RpcError as error:
            if error.code() not in _UNDECIDED:
                self._interceptor.attended(self._operation, self._lesson, agreed=False)
            raise
        if response.HasField("result_complete"):
            self._interceptor.attended(self._operation, self._lesson, agreed=True)
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


def _is_relation(plan: Any) -> bool:
    packed = plan.compressed_operation
    return bool(plan.HasField("root") or packed.op_type == packed.OP_TYPE_RELATION)


def _is_reattachable(request: Any) -> bool:
    return any(option.reattach_options.reattachable for option in request.request_options)


def _name_of(details: Any) -> str:
    method = details.method
    text = method.decode() if isinstance(method, bytes) else str(method)
    return text.rpartition("/")[2]
