"""One call of a memoised function from its beginning to its end, around the place where the function itself is called.

`with Calling(...) as calling:` looks for the result; within the block the memo calls the function unless the result is
known; afterwards the result is kept. It is a block, and not a function that calls another, so that a function which
calls itself has one frame of Nectar in between. Law: whatever fails in here, the function gives what it gives without
Nectar, and its errors pass unchanged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from nectar.catalog.flights import leading
from nectar.dialects.python.invocation import Invocation
from nectar.errors import EnvironmentFailure
from nectar.recursion import deeper, room
from nectar.report.run import Part, RunReport
from nectar.session import Session, running
from nectar.threads import future_of

if TYPE_CHECKING:
    from nectar.dialects.python.memo import Memoized

_log: Final = logging.getLogger("nectar.memo")


class Calling:
    """A call that is under way. is_known: `value` holds the result; otherwise whoever computes it puts it there."""

    __slots__ = (
        "_arguments", "_begun", "_deeper", "_invocation", "_leading", "_memo", "_part", "_refresh", "_run", "_session",
        "is_known", "value",
    )  # fmt: skip

    def __init__(
        self, memo: Memoized[..., Any], session: Session, args: Any, kwargs: Any, refresh: bool = False
    ) -> None:
        self._memo, self._session, self._arguments, self._refresh = memo, session, (args, kwargs), refresh
        self._deeper, self._run = deeper(), running()
        self._leading: leading | None = None
        self._invocation: Invocation | None = None
        self._part: Part | None = None
        self._begun = 0.0
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
        if invocation is None or self._finds(invocation.find):
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
        if invocation is None or self._finds(invocation.find):
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
        begun = self._memo.begin(self._session, *self._arguments, self._refresh)
        if isinstance(begun, Invocation):
            self._invocation, begun = begun, begun.part
        self._part = report.add(begun)
        self._begun = time.perf_counter()

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
            self._leading = leading(invocation.keyed.key)
            self._leading.__enter__()
            invocation.watch()
            self._begun = time.perf_counter()

    def _end(self, error: BaseException | None) -> None:
        """The result is kept, or others know that they need not wait for it."""
        seconds = time.perf_counter() - self._begun
        if self._leading is not None:
            self._leading.__exit__()
        if self._invocation is not None:
            self._invocation.watched(error)
        invocation, part = self._invocation, self._part
        if invocation is None:
            if part is not None:
                part.seconds = seconds
            return
        try:
            if not self.is_known:
                invocation.computed(self.value, seconds) if error is None else invocation.failed()
            self._memo.ended(self._session, invocation.part)
        except RecursionError:
            raise
        except Exception:
            _log.exception("the result of %s could not be kept", self._memo.label)
            invocation.abandon()

    def _give_up(self) -> None:
        """The program is nearly as deep as it may get: what it computes here is not kept, and nobody waits for it."""
        if self._invocation is not None:
            with room(needed=True):
                self._invocation.watched(None)
                self._invocation.abandon()
            self._invocation = None


def tried(step: Callable[[], bool]) -> bool:
    """What a step says; False if it fails: the program goes on without it."""
    try:
        return step()
    except RecursionError:  # the program is nearly as deep as it may get: there is no room to say so
        return False
    except EnvironmentFailure as failure:
        _log.warning("nothing is reused here: %s", failure)
    except Exception:  # a mistake in Nectar must not stop the program
        _log.exception("nothing is reused here")
    return False
