"""Streams of answers as the program reads them: recorded, timed, or heard for what the server says to a lesson.

In: the call to the server. Out: the same answers and errors, in the same order. Law: a program sees what the server
sends; whoever listens is told and changes nothing.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

import grpc
from pyspark.sql.connect.proto import base_pb2

from nectar.dialects.spark.connections import is_passing
from nectar.dialects.spark.timing import Timing

if TYPE_CHECKING:
    from nectar.dialects.spark.interceptor import Interceptor
    from nectar.dialects.spark.looking import Looker
    from nectar.dialects.spark.query import Query
    from nectar.dialects.spark.taught import Lesson

# Errors after which nobody knows what the server has done.
_UNDECIDED: Final = frozenset({
    grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED, grpc.StatusCode.UNKNOWN,
})  # fmt: skip


class Recorded:
    """The stream of a call, recorded as it is read. sent: the request as it is sent; without: should that fail."""

    def __init__(
        self, continuation: Any, details: Any, request: Any, looker: Looker, query: Query, sent: Any,
        without: Any = None,
    ) -> None:  # fmt: skip
        self._looker, self._operation, self._query = looker, request.operation_id, query
        self._is_the_only_one = isinstance(request, base_pb2.ExecutePlanRequest) and not is_reattachable(request)
        self._call = continuation(details, sent)
        self._as_given = None if without is None else lambda: continuation(details, without)
        self._ahead: deque[Any] = deque()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def __iter__(self) -> Recorded:
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
            self._looker.give_up(self._operation, self._query, str(error.details()))
            self._ahead.clear()
            self._call = as_given()
        return self._ahead.popleft() if self._ahead else next(self._call)

    def __next__(self) -> Any:
        timing = self._query.timing
        assert timing is not None  # of every query that is run
        before = timing.engine
        try:
            with timing.computing():
                response = self._next()
        except StopIteration:
            if self._is_the_only_one:
                self._looker.ended(self._operation, self._query)
            raise
        except BaseException as error:
            may_go_on = not self._is_the_only_one and is_passing(error)
            self._looker.failed(self._operation, self._query, error, for_good=not may_go_on)
            raise
        if response.operation_id != self._operation:
            response.operation_id = self._operation
        self._looker.take(self._operation, self._query, response, timing.engine - before)
        return response


class Timed:
    """The stream of a call that Nectar has nothing to do with but to learn how long it takes."""

    def __init__(self, call: Any, interceptor: Interceptor, operation: str, timing: Timing, *, is_last: bool) -> None:
        self._call, self._interceptor, self._operation, self._timing = call, interceptor, operation, timing
        self._is_last = is_last  # nobody will ask for the rest of an answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def __iter__(self) -> Timed:
        return self

    def __next__(self) -> Any:
        try:
            with self._timing.computing():
                response = next(self._call)
        except StopIteration:
            if self._is_last:
                self._interceptor.timed(self._operation, self._timing)
            raise
        except BaseException as error:
            if self._is_last or not is_passing(error):
                self._interceptor.timed(self._operation, self._timing, error)
            raise
        if response.HasField("result_complete"):
            self._interceptor.timed(self._operation, self._timing)
        return response


class Attended:
    """The stream of a call that tells the server something; what it says to it is heard as it is read."""

    def __init__(self, call: Any, looker: Looker, operation: str, lesson: Lesson) -> None:
        self._call, self._looker, self._operation, self._lesson = call, looker, operation, lesson

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def __iter__(self) -> Attended:
        return self

    def __next__(self) -> Any:
        try:
            response = next(self._call)
        except grpc.RpcError as error:
            if error.code() not in _UNDECIDED:
                self._looker.attended(self._operation, self._lesson, agreed=False)
            raise
        if response.HasField("result_complete"):
            self._looker.attended(self._operation, self._lesson, agreed=True)
        return response


class Released:
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


def is_reattachable(request: Any) -> bool:
    """Whether the answer to a request may come in several streams."""
    return any(option.reattach_options.reattachable for option in request.request_options)
