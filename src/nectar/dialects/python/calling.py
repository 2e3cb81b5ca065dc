"""One call of a memoised function from its beginning to its end, around the place where the function itself is called.

`with Calling(...) as calling:` looks for the result; within the block the memo calls the function unless the result is
known; afterwards the result is kept. It is a block, and not a function that calls another, so that a function which
calls itself has one frame of Nectar in between. Law: whatever fails in here, the function gives what it gives without
Nectar, and its errors pass unchanged.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from nectar.catalog import embedded  # noqa: F401 - what a hit needs is there before processes are forked
from nectar.catalog.flights import is_leading, leading
from nectar.dialects.python.invocation import Invocation
from nectar.errors import CatalogUnavailableError, EnvironmentFailure
from nectar.forks import Stage, before
from nectar.keys.api import fingerprint
from nectar.keys.registry import expander_for
from nectar.overhead.garbage import uncollected
from nectar.overhead.ledger import Share
from nectar.overhead.loading import loading
from nectar.overhead.sites import Site
from nectar.overhead.spent import NOTHING, Spent
from nectar.overhead.steering import Steering
from nectar.recursion import deeper, room
from nectar.report.run import Part, RunReport
from nectar.report.totals import is_interruption
from nectar.session import Session, running
from nectar.store import local, read  # noqa: F401 - as above
from nectar.threads import future_of
from nectar.trust.secrets import logger

if TYPE_CHECKING:
    from nectar.dialects.python.memo import Memoized

_log: Final = logger("nectar.memo")


class Calling:
    """A call that is under way. is_known: `value` holds the result; otherwise whoever computes it puts it there."""

    __slots__ = (
        "_arguments", "_begun", "_deeper", "_gave_up", "_invocation", "_leading", "_memo", "_own", "_part", "_refresh",
        "_run", "_session", "_share", "_site", "_started", "_walking", "_keeping", "is_known", "value",
    )  # fmt: skip

    def __init__(
        self, memo: Memoized[..., Any], session: Session, args: Any, kwargs: Any, refresh: bool = False
    ) -> None:
        self._memo, self._session, self._arguments, self._refresh = memo, session, (args, kwargs), refresh
        self._deeper, self._run = deeper(), running()
        self._leading: leading | None = None
        self._share: Share | None = None
        self._invocation: Invocation | None = None
        self._part: Part | None = None
        self._site: Site  # once it has begun
        self._begun = 0.0
        self._own = self._started = self._walking = NOTHING
        self._gave_up, self._keeping = False, 0.0
        self.is_known = False
        self.value: Any = None

    # a function

    def __enter__(self) -> Self:
        self._deeper.__enter__()
        report = self._run.__enter__()
        try:
            with room():
                self._begin(report)
                self._look()
        except RecursionError:
            self._give_up()
        except BaseException as error:
            self.__exit__(None, error, None)
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            with room():
                self._end(error)
        except RecursionError:
            self._give_up()
        finally:
            self._run.__exit__()
            self._deeper.__exit__()

    def _look(self) -> None:
        invocation = self._invocation
        if invocation is None or self._finds_kept(invocation):
            return
        flight = invocation.lead()
        if flight is None:
            self._finds(invocation.reserve)
        else:
            self._finds(lambda: invocation.take(self._session.flights.wait_for(flight)))
        self._go(invocation)

    # a coroutine function: the same, never in the way of other tasks

    async def __aenter__(self) -> Self:
        report = self._run.__enter__()
        try:
            self._begin(report)
            await self._look_beside_others()
        except BaseException as error:
            await self.__aexit__(None, error, None)
            raise
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._end(error)
        finally:
            self._run.__exit__()

    async def _look_beside_others(self) -> None:
        import asyncio

        invocation = self._invocation
        if invocation is None or self._finds_kept(invocation):
            return
        flight = invocation.lead()
        if flight is None:
            reserving = future_of(partial(self._finds, invocation.reserve), "nectar-reserve")
            if reserving is not None:  # or another process may compute the same: a cost, and no more
                await asyncio.wrap_future(reserving)
        else:
            with self._session.flights.waiting_for(flight):
                landed = await asyncio.shield(asyncio.wrap_future(flight.future))
            self._finds(lambda: invocation.take(landed))
        self._go(invocation)

    # steps

    def _begin(self, report: RunReport) -> None:
        """The call has its keys, or the run says why it has none."""
        steering = self._session.steering
        if not steering.is_free:
            _load(self._session)
        self._started = Spent.now()
        site = self._site = steering.sites.named(self._memo.label)
        begun = self._memo.begin(self._session, *self._arguments, self._refresh, steering.patience_of_call(site))
        walking = self._memo.spent_on_first_walk()
        if walking is not NOTHING:  # once in a process: it says nothing of the calls that follow
            self._walking = walking
            steering.ledger.spend("starting", walking.wall)
        if isinstance(begun, Invocation):
            self._invocation = begun
        else:
            self._gave_up = begun.is_too_large
        self._part = report.add(begun.part)
        if self._invocation is None:
            self._own = self._spent_on_looking()
        self._begun = time.perf_counter()

    def _spent_on_looking(self) -> Spent:
        spent = Spent.since(self._started)
        return spent if self._walking is NOTHING else spent.without(self._walking)

    def _finds_kept(self, invocation: Invocation) -> bool:
        found = self._finds(invocation.find)
        self._own = self._spent_on_looking()
        return found

    def _finds(self, step: Callable[[], bool]) -> bool:
        """Whether a step has found the result; it has not if it fails."""
        invocation = self._invocation
        self.is_known = tried(step)
        if self.is_known and invocation is not None:
            self.value = invocation.value
        return self.is_known

    def _go(self, invocation: Invocation) -> None:
        """From here on the time is that of the function, unless the result is known."""
        if not self.is_known:
            share = self._session.steering.calls.share(within=is_leading())
            self._leading = leading(invocation.keyed.key)
            self._leading.__enter__()
            invocation.watch()
            self._begun = time.perf_counter()
            self._share = share.__enter__()

    def _end(self, error: BaseException | None) -> None:
        """The result is kept, or others know that they need not wait for it."""
        seconds = time.perf_counter() - self._begun
        if self._share is not None:
            self._share.__exit__(None, error, None)
        if self._leading is not None:
            self._leading.__exit__()
        if self._invocation is not None:
            self._invocation.watched(error)
        invocation, part = self._invocation, self._part
        if invocation is None:
            if part is not None:
                part.seconds = seconds
                if error is not None:
                    part.fail(error)
                self._memo.ended(self._session, part)
                self._account(seconds, self._own)
            return
        try:
            if not self.is_known:
                ended = Spent.now()
                self._computed(invocation, seconds) if error is None else invocation.failed(error)
                kept = Spent.since(ended)
                self._own, self._keeping = self._own.and_also(kept), kept.work
            self._memo.ended(self._session, invocation.part)
            self._account(invocation.part.saved if self.is_known else seconds, self._own)
        except RecursionError:
            raise
        except Exception:
            _log.exception("the result of %s could not be kept", self._memo.label)
            invocation.abandon()

    def _computed(self, invocation: Invocation, seconds: float) -> None:
        why_not = self._session.steering.why_not_keep_call(seconds, self._own.work)
        shared = seconds if self._share is None else self._share.of(seconds)
        invocation.computed(self.value, seconds, shared, why_not and f"not kept: {why_not}")

    def _account(self, seconds: float, own: Spent) -> None:
        health = self._session.health
        if not health.is_well:
            health.looked(own.wall, seconds if self.is_known else 0.0)
        called = self._session.steering.called
        called(self._site, seconds, own.work, self.is_known, self._gave_up, own.wall, self._keeping)

    def _give_up(self) -> None:
        """The program is nearly as deep as it may get: what it computes here is not kept, and nobody waits for it."""
        if self._invocation is not None:
            with room(needed=True):
                self._invocation.watched(None)
                self._invocation.abandon()
            self._invocation = None


_ready: Final[weakref.WeakSet[Steering]] = weakref.WeakSet()  # what looking at a call needs is there


def _load(session: Session) -> None:
    """What looking at a call needs is there, so that its time says something of the call; once in a process."""
    if session.steering in _ready:
        return
    _ready.add(session.steering)
    with loading(session.steering), suppress(Exception):  # whatever is wrong, looking at the call says it
        session.catalog  # noqa: B018 - it is opened


@before(Stage.PREPARE)
def _prepare() -> None:
    """Children of a process with memoised functions find at hand what each of them would make for itself.

    Nothing of Nectar is loaded here: what is done after a fork would be done for it, and what comes before would not.
    """
    global _forked
    if not _forked and not _ready:
        _forked = True
        with suppress(Exception), uncollected():
            expander_for(Calling)  # those of libraries that are loaded come with it
            fingerprint(_prepare)


_forked = False


class left_alone:  # noqa: N801 - read as a word: `with left_alone(...):`
    """Within the block a function runs without a look, and its time is noted: it may become slow."""

    __slots__ = ("_begun", "_session", "_site", "_timer")

    def __init__(self, session: Session, site: Site) -> None:
        self._session, self._site = session, site
        self._timer = session.steering.timer

    def __enter__(self) -> None:
        _deeper.__enter__()
        self._begun = self._timer()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        seconds = self._timer() - self._begun
        _deeper.__exit__()
        session, site = self._session, self._site
        try:
            if error is not None:
                session.totals.count_failed("call", site.name.removesuffix(":0"), interrupted=is_interruption(error))
            elif seconds <= site.limit:
                session.leave_quick_call_alone(site, seconds)
            else:
                session.leave_alone(session.steering.call_ran_alone(site, seconds), kind="call")
        except RecursionError:  # the program is nearly as deep as it may get
            pass


_deeper: Final = deeper()  # it holds nothing


def tried(step: Callable[[], bool]) -> bool:
    """What a step says; False if it fails: the program goes on without it."""
    try:
        return step()
    except RecursionError:  # the program is nearly as deep as it may get: there is no room to say so
        return False
    except CatalogUnavailableError as failure:  # which is said once
        _log.debug("nothing is reused here: %s", failure)
    except EnvironmentFailure as failure:
        _log.warning("nothing is reused here: %s", failure)
    except Exception:  # a mistake in Nectar must not stop the program
        _log.exception("nothing is reused here")
    return False
