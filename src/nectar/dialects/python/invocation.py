"""One call of a memoised function, step by step: key, look-up, waiting for others, keeping.

Each step may fail without harm: the function is then called as if it were not memoised. Law: the function itself is
called once at most, and by nobody but the caller; its errors are the caller's and are not kept.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Hashable, Mapping
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from nectar.catalog.flights import Flight
from nectar.catalog.service import Catalog
from nectar.dialects.python import values
from nectar.dialects.python.keying import keyed, remembered_as
from nectar.dialects.python.values import Snapshot
from nectar.errors import StoreFailure, UncacheableError, UserError
from nectar.keys.call import Call, call_of
from nectar.model.entry import Entry, Reservation
from nectar.overhead.loading import loading
from nectar.report.run import Part
from nectar.session import Session
from nectar.store.problem import Damaged, Gone
from nectar.trust.secrets import logger
from nectar.waiting.health import worth

if TYPE_CHECKING:
    from nectar.dialects.python.computing import Computation
    from nectar.dialects.python.memo import Memoized
    from nectar.store.read import Result

_log: Final = logger("nectar.memo")
_COMPUTING: Final = "nectar.dialects.python.computing"
_QUICK: Final = 0.005  # seconds: what is computed faster is not worth asking other processes about


class Landed(NamedTuple):
    """A result that is not yet in the catalog. made: when its computation began."""

    copy: Snapshot
    seconds: float
    made: float


class Refused(NamedTuple):
    """A call that is not looked for, as the report says it. is_too_large: looking at its values takes too long."""

    part: Part
    is_too_large: bool = False


class Invocation:
    """A call with these arguments, by parameter, in a session."""

    def __init__(
        self,
        memo: Memoized[..., Any],
        session: Session,
        catalog: Catalog,
        arguments: Mapping[str, object],
        patience: float = inf,
    ) -> None:
        self.memo, self.session, self.catalog, self.arguments = memo, session, catalog, arguments
        self.patience = patience  # seconds that a look at all of its values may take
        self.refreshing = session.settings.refresh
        self.part = Part(memo.label, kind="call")
        self.value: Any = None
        self.flight: Flight | None = None
        self.reservation: Reservation | None = None
        self._abandoned = False
        self._computation: Computation | None = None
        self._begun = time.perf_counter()
        self.began = session.clock.now()

    # the key

    def prepare(self) -> None:
        """The keys of the call are known. Raises NectarError if it cannot have any."""
        self.call = self.describe()
        if self.call.refusals:
            from nectar.dialects.python.excuses import unexcused

            if refusals := unexcused(self.call.refusals, self.arguments):
                raise UncacheableError(self.memo.label, refusals)
        if seen := self.catalog.observed.told_of(remembered_as(self.call)):
            from nectar.dialects.python.watching import advice_about

            raise UserError(f"it was seen that it {seen}. {advice_about(seen)}")
        self.keyed = keyed(self.call, self.session)
        self.part.key = self.keyed.key.hex()

    def describe(self) -> Call:
        """The call as it is now."""
        return call_of(self.memo.function, self.arguments, self.memo.extra)

    # finding

    def find(self) -> bool:
        """Whether the result is known; it is in `value` then."""
        return not self.refreshing and (self._find_landed() or self._find_kept())

    def _find_landed(self) -> bool:
        """A result this process has computed, and not yet written."""
        flight = self.session.flights.find(self.keyed.key)
        return flight is not None and flight.future.done() and self.take(flight.future.result())

    def _find_kept(self) -> bool:
        keys, recent = self.keyed.keys, self.catalog.recent
        program = self.call.program
        state = recent.state(keys[0])
        if state is not None and (known := recent.find(keys[0], state)) is not None:
            self.lookups = 0
            if not self._is_too_old(known.entry.created) and self._restore(known.entry, known.result):
                recent.used(keys[0], program)
                return True
        found = self.catalog.lookup(keys, (program,) * len(keys))
        self.lookups = found[0].lookups
        return any(each.entry is not None and self._open(each.entry, state) for each in found)

    def _open(self, entry: Entry, state: Hashable | None) -> bool:
        if self._is_too_old(entry.created):
            return False
        opened = self.catalog.open(entry)
        if isinstance(opened, Gone | Damaged):
            return False
        self.catalog.recent.found(entry.key, state, entry, opened)
        return self._restore(entry, opened)

    def _restore(self, entry: Entry, opened: Result) -> bool:
        try:
            self.value = values.restored(opened, self.call.walk)
        except StoreFailure as failure:
            _log.info("%s is computed again: %s", entry.about, failure)
            # What cannot be made again here makes room for what is computed now; what cannot be read now stays.
            self.refreshing = failure.errno is None
            return False
        self._reused(entry.seconds, entry.size)
        return True

    def take(self, landed: Landed | None) -> bool:
        """Takes over what another thread of this process has computed, if it could be taken apart."""
        if landed is None or self._is_too_old(landed.made):
            return False
        self.value = landed.copy.restored(self.call.walk)
        self._reused(landed.seconds, landed.copy.size)
        return True

    def _is_too_old(self, made: float) -> bool:
        """Whether a result may no longer be used; what is computed now then takes its place."""
        ttl = self.memo.ttl
        if ttl is None or self.session.clock.now() - made < ttl:
            return False
        self.refreshing = True
        return True

    def _reused(self, saved: float, size: int) -> None:
        part = self.part
        part.outcome, part.saved, part.size = "reused", saved, size
        part.seconds = time.perf_counter() - self._begun

    # computing once

    def lead(self) -> Flight | None:
        """None if this call computes the result; otherwise what to wait for: another thread computes it."""
        flights, key = self.session.flights, self.keyed.key
        if self.refreshing:
            self.flight = flights.begin_anew(key)
            return None
        while True:
            standing = flights.find(key)
            if standing is not None:
                return standing
            self.flight = flights.begin(key)
            if self.flight is not None or flights.find(key) is None:
                return None  # without a flight of its own where this call is part of the one under way

    def reserve(self) -> bool:
        """Whether another process has computed the result meanwhile; otherwise it is this one that does."""
        if self.flight is None or self.refreshing or self.memo.is_quick(_QUICK) or self.catalog.read_only:
            return False
        with worth(self.session.steering.sites.named(self.memo.label).seconds):
            taken = self.session.reservations.take_or_wait(self.keyed.key)
        if isinstance(taken, Entry):
            if self._open(taken, None):
                self.abandon()
                return True
            return False
        self.reservation = taken
        if self._abandoned:  # while another thread asked for it: the task that this is a call of was cancelled
            self._give_back()
        return False

    def abandon(self) -> None:
        """Nothing comes of this computation: others need not wait for it."""
        self._abandoned = True
        self.land(None)
        self._give_back()

    def _give_back(self) -> None:
        reservation, self.reservation = self.reservation, None
        if reservation is not None:
            self.session.reservations.give_back(reservation)

    def failed(self, error: BaseException) -> None:
        """The function raised; the error is the caller's, and others try for themselves."""
        self.part.fail(error)
        self.part.seconds = time.perf_counter() - self._begun
        self.abandon()

    def land(self, landed: Landed | None) -> None:
        """Other threads that wait get the result, or compute it themselves if there is none."""
        if self.flight is not None:
            self.session.flights.land(self.flight, landed)
            if landed is None:
                self.flight = None

    # computing and keeping

    def watch(self) -> None:
        """The function is about to run: what it does that its key does not show is seen."""
        try:
            self._computation = _computation_of(self)
            self._computation.begin()
        except Exception as failure:  # where nobody sees what it does, nothing is kept
            _log.info("%s cannot be watched: %r", self.memo.label, failure)

    def watched(self, error: BaseException | None) -> None:
        """The function has run, if it did."""
        if self._computation is not None:
            self._computation.end(error)

    def computed(self, value: Any, seconds: float, shared: float, why_not: str = "") -> None:
        """The function gave a value: it is kept if nothing speaks against it. why_not: what does.

        shared: its share of these seconds, if other calls ran beside it.
        """
        if self._computation is None:
            self.part.keeping = "not kept: it could not be watched while it ran"
            self.abandon()
        else:
            self._computation.computed(value, seconds, shared, why_not)


def _computation_of(invocation: Invocation) -> Computation:
    """What watches and keeps, loaded before anything is watched: while a function runs, it would seem its doing."""
    if _COMPUTING not in sys.modules:
        with loading(invocation.session.steering):
            import_module(_COMPUTING)
    from nectar.dialects.python.computing import Computation

    return Computation(invocation)
