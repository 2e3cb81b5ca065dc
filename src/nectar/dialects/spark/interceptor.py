"""Between the Spark client and its server. Queries that Nectar cannot help pass; the others are looked at.

A client has one Interceptor for all its calls. What looks at calls (`looking.py`) takes long to load, and is loaded
when something has to be looked at: a program of quick queries never waits for it. Law: whatever goes wrong in here, the
call goes to the server as it was made, and its answer and its errors reach the program as they are.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import grpc

from nectar.dialects.spark.connections import connection_of
from nectar.dialects.spark.own_requests import is_our_own
from nectar.dialects.spark.resetting import config_may_reset
from nectar.dialects.spark.streams import Timed, is_reattachable
from nectar.dialects.spark.timing import LOOKING, Timing, is_write
from nectar.overhead.loading import loading
from nectar.session import Session, current
from nectar.trust.secrets import logger

if TYPE_CHECKING:
    from nectar.dialects.spark.looking import Looker
    from nectar.dialects.spark.scope import Scope

_log: Final = logger("nectar.spark")
_ROWS: Final = "cache/"  # what the names of files begin with that hold rows of local frames
_TELLING: Final = frozenset({"sql", "with_relations", "catalog"})  # relations that may tell the server something
_CACHING: Final = frozenset({"persist", "unpersist", "get_storage_level"})

enabled = False  # whether results are reused; what servers are taught is noticed all the time


class Interceptor(  # grpc has no types
    grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]
    grpc.StreamUnaryClientInterceptor,  # type: ignore[misc]
):
    """What one client sends and gets passes through here."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = threading.RLock()
        self._looker: Looker | None = None
        self._timed: dict[str, Timing] = {}  # operations that run without Nectar
        self._failures: set[str] = set()
        self._is_deaf = False  # the server was told something that nobody has heard, so that names may mean anything

    @property
    def looker(self) -> Looker:
        """What looks at calls."""
        with self._lock:
            if self._looker is None:
                self._looker = self._loaded()
            return self._looker

    def _loaded(self) -> Looker:
        """What looks at calls; loading it takes time, the first time."""
        session = current() if enabled else None
        with loading(None if session is None else session.steering, "" if LOOKING in sys.modules else LOOKING):
            from nectar.dialects.spark.looking import Looker
        return Looker(self._client, self._safely, self._warn)

    @property
    def scope(self) -> Scope:
        """What names mean in the session."""
        return self.looker.scope

    def inherit(self, other: Interceptor) -> None:
        """This session was made from another one, and knows what its server was taught there."""
        if other._looker is not None:
            self.looker.inherit(other._looker)
        self._is_deaf = other._is_deaf
        connection_of(self._client).begin_with(connection_of(other._client))

    # calls that are answered by a stream

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        """The answer to a call: from what is known, or from the server."""
        method = _name_of(details)
        if is_our_own():
            return continuation(details, request)
        if method == "ExecutePlan":
            return self._executed(continuation, details, request)
        if method == "ReattachExecute":
            timing = self._timed.get(request.operation_id)
            if timing is not None:
                return Timed(continuation(details, request), self, request.operation_id, timing, is_last=False)
            if self._looker is not None:
                return self._looker.reattached(continuation, details, request)
        return continuation(details, request)

    def _executed(self, continuation: Any, details: Any, request: Any) -> Any:
        session = current() if enabled else None
        with self._lock:
            self._timed.pop(request.operation_id, None)  # the server has never heard of it, and is told once more
        if session is not None and is_write(request.plan):
            session.totals.count_unkept("its result went into a file or a table")
        if _may_tell(request.plan):
            looker = self._safely(lambda: self.looker)
            self._is_deaf = self._is_deaf or looker is None
            answer = None if looker is None else self._heard(looker, continuation, details, request, session)
            if answer is not None:
                return answer
        timing = self._safely(Timing, session) if session is not None and _is_relation(request.plan) else None
        if timing is not None and timing.looks and not self._is_deaf:
            looker = self._safely(lambda: self.looker)
            answer = None if looker is None else looker.looked_at(continuation, details, request, timing)
            if answer is not None:
                return answer
        if timing is not None and timing.looks:
            self._safely(timing.count_refused, "what looks at queries could not be loaded")
        sent = request if self._looker is None else self._looker.plain(request)
        if timing is None:
            return continuation(details, sent)
        again = is_reattachable(request)
        if again:
            with self._lock:
                self._timed[request.operation_id] = timing
        return Timed(continuation(details, sent), self, request.operation_id, timing, is_last=not again)

    def _heard(self, looker: Looker, continuation: Any, details: Any, request: Any, session: Session | None) -> Any:
        """The answer to a plan that tells the server something; None if it does not."""
        begun = 0.0 if session is None else session.steering.timer()
        answer = looker.executed(continuation, details, request)
        if session is not None:
            session.steering.ledger.spend("looking up", session.steering.timer() - begun)
        return answer

    def timed(self, operation: str, timing: Timing, error: BaseException | None = None) -> None:
        """A query that runs without Nectar was answered, or has failed."""
        with self._lock:
            self._timed.pop(operation, None)
        if error is None:
            self._safely(timing.end)
        else:
            self._safely(timing.fail, error)

    # calls that are answered by one message

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        """The answer to a call."""
        method = _name_of(details)
        if method == "Config" and config_may_reset(request):
            answer = continuation(details, request)
            self._safely(connection_of(self._client).forget_settings)
            return answer
        if method == "ReleaseExecute" and request.HasField("release_all"):
            with self._lock:
                timing = self._timed.pop(request.operation_id, None)
            if timing is not None:
                self._safely(timing.leave)
        if method == "AnalyzePlan" and request.WhichOneof("analyze") in _CACHING:
            looker = self._safely(lambda: self.looker)
            return continuation(details, request if looker is None else looker.analysed(request))
        if self._looker is not None and method == "ReleaseExecute":
            return self._looker.released(continuation, details, request)
        if self._looker is not None and method == "Interrupt":
            return continuation(details, self._looker.as_known(request))
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


def _may_tell(plan: Any) -> bool:
    """Whether a plan may tell the server something; every one but a relation that only asks."""
    return not plan.HasField("root") or plan.root.WhichOneof("rel_type") in _TELLING


def _is_relation(plan: Any) -> bool:
    packed = plan.compressed_operation
    return bool(plan.HasField("root") or packed.op_type == packed.OP_TYPE_RELATION)


def _name_of(details: Any) -> str:
    method = details.method
    text = method.decode() if isinstance(method, bytes) else str(method)
    return text.rpartition("/")[2]
