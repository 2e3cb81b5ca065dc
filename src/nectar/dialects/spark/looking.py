"""What one client sends and gets, looked at: known results are answered here, others are recorded as they pass.

Loaded when a client first sends something that has to be looked at. Law: whatever goes wrong in here, the call goes to
the server as it was made, its answer and its errors reach the program as they are, and the log says once what it was.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from nectar.dialects.spark import interceptor
from nectar.dialects.spark.compressed import opened, with_relation
from nectar.dialects.spark.connections import connection_of
from nectar.dialects.spark.keyed import Keyed
from nectar.dialects.spark.operations import Operations
from nectar.dialects.spark.persisted import ask_for, ask_no_more
from nectar.dialects.spark.query import Query, defined, query_of
from nectar.dialects.spark.relations import Step
from nectar.dialects.spark.resetting import plan_may_reset
from nectar.dialects.spark.results import responses
from nectar.dialects.spark.reusing import claim, give_up, look_up, note_cost, put_in
from nectar.dialects.spark.scope import Scope
from nectar.dialects.spark.sending import Sending
from nectar.dialects.spark.streams import Attended, Recorded, Released, is_reattachable
from nectar.dialects.spark.taught import Lesson, Look, Taught
from nectar.dialects.spark.timing import Timing
from nectar.errors import EnvironmentFailure, NectarError
from nectar.keys.patience import patience
from nectar.report.run import Part, RunReport
from nectar.report.watchers import watchers
from nectar.session import Session, current, running
from nectar.trust.secrets import logger

if TYPE_CHECKING:  # what few looks need
    import pyarrow as pa

    from nectar.dialects.spark.incremental.server import Server

_log: Final = logger("nectar.spark")
_looks: Final = itertools.count()  # of this process


class Looker:
    """Looks at what one client sends. safely: does something, and gives None if that fails. warn: the log says it."""

    def __init__(self, client: Any, safely: Callable[..., Any], warn: Callable[..., None]) -> None:
        self._client, self._safely, self._warn = client, safely, warn
        self._taught = Taught(shared=client._builder.session_id is not None)
        self._lock = threading.Lock()
        self._answered: set[str] = set()  # operations that the server knows nothing of
        self._recorded: dict[str, Query] = {}  # operations whose answers are being recorded
        self._lessons: dict[str, Lesson] = {}  # operations that tell the server something
        self._operations = Operations()
        self._sending = Sending(client)

    @property
    def scope(self) -> Scope:
        """What names mean in the session."""
        return self._taught.scope

    # calls that are answered by a stream

    def executed(self, continuation: Any, details: Any, request: Any) -> Any:
        """The answer to a plan that tells the server something; None if it does not."""
        taught = self._safely(self._told, request)
        if taught is None:
            return None
        lesson, sent = taught
        return Attended(continuation(details, sent), self, request.operation_id, lesson)

    def reattached(self, continuation: Any, details: Any, request: Any) -> Any:
        """The rest of an answer."""
        known = self._operations.as_known(request)
        recorded, lesson = self._recorded.get(request.operation_id), self._lessons.get(request.operation_id)
        if recorded is not None:
            return Recorded(continuation, details, request, self, recorded, known)
        if lesson is not None:
            return Attended(continuation(details, request), self, request.operation_id, lesson)
        return continuation(details, known)

    def plain(self, request: Any) -> Any:
        """A query that runs as it is, as it is sent. The server may never have heard of it, and be told once more."""
        before = self._forget(request.operation_id)
        if before is not None:
            self._safely(before.abandon)
        return self._safely(self._sending.plain, request) or request

    def looked_at(self, continuation: Any, details: Any, request: Any, timing: Timing) -> Any:
        """The answer to a query that Nectar looks at; None if it has to run as it is."""
        timing.is_first = next(_looks) == 0
        self._safely(timing.open_catalog)
        try:
            with timing.working():
                query = self._safely(self._noticed, request, lambda asked: continuation(details, asked), timing)
                if query is None:
                    return None
                known = self._safely(self._known, query, request)
                sent = None if known is not None else self._safely(self._as_sent, query, request)
        except BaseException as error:  # somebody has interrupted the program
            timing.fail(error)
            raise
        if known is not None:
            timing.end()
            return known
        if sent is None:
            self._forget(request.operation_id)
            self._safely(query.abandon)
            query.session.totals.count(query.part)
            timing.is_refused = True
            return None
        return Recorded(continuation, details, request, self, query, *sent)

    def _as_sent(self, query: Query, request: Any) -> tuple[Any, Any]:
        """The request as it is sent, and what is sent if the server does not take that, if it is another one."""
        sent = self._sending.recorded(request, query.keyed.states)
        over_parts = self._safely(self._over_parts, query, request) if query.known else None
        return (sent, None) if over_parts is None else (over_parts, sent)

    def _noticed(self, request: Any, send: Callable[[Any], Any], timing: Timing) -> Query | None:
        """The query of a request, if it is one whose result may be reused. send: sends another one to the server."""
        session = timing.session
        with running() as report:
            part = timing.part = Part("query", "uncacheable")
            try:
                root = opened(self._client, request.plan).root
                with patience(session.steering.patience(timing.site)):
                    query = query_of(session, self._client, root, self._taught.scope, part)
                query.scope_now, query.timing = lambda: self._taught.scope, timing
                _tell_saver("noticed", query)
                self._sending.expect_unchanged(query.keyed.states)
            except Exception as error:
                text = str(error)
                part.explain = lambda: text
                _tell_saver("refused", text)
                _tell_watchers(text)
                timing.is_refused = True
                session.totals.count(report.add(part))
                if not isinstance(error, NectarError):
                    raise
                if isinstance(error, EnvironmentFailure):  # of its server, of which the first says enough
                    self._warn(text, about="server")
                return None
            refusal = query.keyed.root.refusal
            part.outcome = "uncacheable" if refusal else "computed"
            part.explain = lambda: refusal or "no result is known under its key"
            self._safely(self._look_up, query, report, partial(_server, self._client, request, send, query, timing))
            _tell_watchers(query)
            report.add(part)
            if refusal and not query.known:
                timing.is_refused = True
                session.totals.count(part)
                return None
        if is_reattachable(request):  # its answer may come in several streams
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
        if is_reattachable(request):
            with self._lock:
                self._lessons[request.operation_id] = lesson
        return lesson, sent

    def _look(self) -> Look | None:
        """What tells how definitions are as everything is now; None while Nectar is off."""
        session = current() if interceptor.enabled else None
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

    def inherit(self, other: Looker) -> None:
        """This session was made from another one, and knows what its server was taught there."""
        self._taught.inherit(other._taught)

    def _over_parts(self, query: Query, request: Any) -> Any:
        """The request over known parts. The program's own stays as it is: its client may send it again."""
        return self._operations.anew(with_relation(self._client, request, query.plan))

    def _look_up(self, query: Query, report: RunReport, server: Callable[[], Server]) -> None:
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
        if query.timing is not None:
            query.timing.reused = query.seconds_reused
        if query.answer is not None:
            query.part.seconds = time.perf_counter() - begun

    def _known(self, query: Query, request: Any) -> Iterator[Any] | None:
        if query.answer is None:
            return None
        query.session.totals.count(query.part)
        if query.result is not None:  # it is new, and was put together
            query.keep()
        self._forget(request.operation_id)
        if is_reattachable(request):  # otherwise nobody asks to have it released
            with self._lock:
                self._answered.add(request.operation_id)
        return responses(query.answer, request, connection_of(self._client).session)

    # recording

    def take(self, operation: str, query: Query, response: Any, seconds: float) -> None:
        """A response has come, after so many seconds of waiting; with the last one the result is kept."""
        self._safely(self._take, operation, query, response, seconds)

    def _take(self, operation: str, query: Query, response: Any, seconds: float) -> None:
        query.part.seconds += seconds
        assert query.timing is not None
        with query.timing.working():
            query.recording.add(response)
            if response.HasField("arrow_batch"):
                query.rows_have_come()
            if response.HasField("result_complete"):
                self._completed(operation, query)
        if query.recording.complete:
            query.timing.end()

    def ended(self, operation: str, query: Query) -> None:
        """The only stream of an answer has ended; to those who cannot ask for another the server does not say so."""
        self._operations.forget(operation)
        if not query.recording.complete:
            query.recording.complete = True
            self._safely(self._completed, operation, query)
            if query.timing is not None:
                self._safely(query.timing.end)

    def _completed(self, operation: str, query: Query) -> None:
        self._forget(operation)
        if query.part.outcome in ("failed", "interrupted"):  # for a moment, and the client has asked for the rest
            query.part.outcome = "computed"
        query.session.totals.count(query.part)
        note_cost(query)
        query.keep()

    def give_up(self, operation: str, query: Query, reason: str) -> None:
        """The server did not take known parts; the query runs without them, under the name that the program gave it."""
        self._operations.forget(operation)
        self._safely(give_up, query, reason)
        if query.timing is not None:
            query.timing.reused = 0.0

    def failed(self, operation: str, query: Query, error: BaseException, *, for_good: bool) -> None:
        """The server answered with an error, which is the program's, or somebody interrupted it; nothing is kept.

        for_good: nobody will ask for the rest. Otherwise the program's client may, or gives its operation up.
        """
        if not query.keyed.root.refusal:
            query.part.fail(error)
        if for_good:
            if query.timing is not None:
                self._safely(query.timing.fail, error)
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
            if query.timing is not None:
                query.timing.fail() if query.part.outcome == "failed" else query.timing.leave()
            query.abandon()
        with self._lock:
            self._lessons.pop(operation, None)
        self._operations.forget(operation)

    # calls that are answered by one message

    def released(self, continuation: Any, details: Any, request: Any) -> Any:
        """The answer to a request to release; the server is not told to release what it has never computed."""
        known = self._operations.as_known(request)
        if request.HasField("release_all"):
            self._safely(self._given_up, request.operation_id)
        if request.operation_id not in self._answered:
            return continuation(details, known)
        if request.HasField("release_all"):
            with self._lock:
                self._answered.discard(request.operation_id)
        return Released(request, connection_of(self._client).session)

    def as_known(self, request: Any) -> Any:
        """A request about an operation, as the server has to be told."""
        return self._operations.as_known(request)

    def analysed(self, request: Any) -> Any:
        """A request to tell something of a plan, as it is sent."""
        self._safely(self._note_persisted, request)
        return self._safely(self._sending.analysed, request, self._states_of) or request

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
        session = current() if interceptor.enabled else None
        if session is None:
            return None
        try:
            return query_of(session, self._client, relation, self._taught.scope, Part("cached"))
        except NectarError as error:
            _log.info("a frame is cached as it is: %s", error)
            return None


def grow(query: Query, server: Callable[[], Server]) -> pa.Table | None:
    """The result of a query, put together from what is known of parts of its files; None if it has to run as it is."""
    # A part may be asked for by many queries over the same files; the whole is not asked for again unless they changed.
    if query.lookups.get(query.keyed.program.root, 0) == 0:
        return None
    from nectar.dialects.spark.incremental.growing import grown

    return grown(query, server())


def _server(client: Any, request: Any, send: Callable[[Any], Any], query: Query, timing: Timing) -> Server:
    from nectar.dialects.spark.incremental.server import Server

    return Server(client, request, send, query.engine.manner, timing)


def _tell_saver(word: str, what: object) -> None:
    """Whoever wants the result to have a name hears of it; nobody can who has not loaded what does that."""
    saving = sys.modules.get("nectar.dialects.spark.saving")
    if saving is not None:
        getattr(saving, word)(what)


def _tell_watchers(query: Query | str) -> None:
    if watchers:
        from nectar.dialects.spark.explain import tell_watchers  # takes long to load

        tell_watchers(query)
