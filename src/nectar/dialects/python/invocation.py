"""One call of a memoised function, step by step: key, look-up, waiting for others, keeping.

Each step may fail without harm: the function is then called as if it were not memoised. Law: the function itself is
called once at most, and by nobody but the caller; its errors are the caller's and are not kept.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from nectar.catalog.flights import Flight
from nectar.catalog.service import Catalog, Kept
from nectar.dialects.observed import told
from nectar.dialects.python import values
from nectar.dialects.python.describe import call_text
from nectar.dialects.python.excuses import unexcused
from nectar.dialects.python.keying import Keyed, changed_inputs, keyed
from nectar.dialects.python.provenance import sources_of
from nectar.dialects.python.values import Snapshot
from nectar.dialects.python.watching import advice_about, remembered_as, watch_of
from nectar.errors import NectarError, StoreFailure, UncacheableError, UserError
from nectar.keys.call import Call, call_of
from nectar.model.entry import Entry, Reservation
from nectar.observation.effects import Observation
from nectar.observation.watch import Watch
from nectar.report.run import Part
from nectar.session import Session
from nectar.store.read import Result

if TYPE_CHECKING:
    from nectar.dialects.python.memo import Memoized

_log: Final = logging.getLogger("nectar.memo")
_QUICK: Final = 0.005  # seconds: what is computed faster is not worth asking other processes about


class Landed(NamedTuple):
    """A result that is not yet in the catalog. made: when its computation began."""

    copy: Snapshot
    seconds: float
    made: float


class Invocation:
    """A call with these arguments, by parameter, in a session."""

    def __init__(
        self, memo: Memoized[..., Any], session: Session, catalog: Catalog, arguments: Mapping[str, object]
    ) -> None:
        self.memo, self.session, self.catalog, self.arguments = memo, session, catalog, arguments
        self.refreshing = session.settings.refresh
        self.part = Part(memo.label)
        self.value: Any = None
        self._flight: Flight | None = None
        self._reservation: Reservation | None = None
        self._watch: Watch | None = None
        self._blind = False  # nobody could see what the function did
        self._begun = time.perf_counter()
        self.began = session.clock.now()

    # the key

    def prepare(self) -> None:
        """The keys of the call are known. Raises NectarError if it cannot have any."""
        self.call = self._describe()
        refusals = unexcused(self.call.refusals, self.arguments) if self.call.refusals else ()
        if refusals:
            raise UncacheableError(self.memo.label, refusals)
        if seen := self.catalog.observed.told_of(remembered_as(self.call)):
            raise UserError(f"it was seen that it {seen}. {advice_about(seen)}")
        self.keyed = (
            keyed(self.call, self.session.inputs, self.session.clock) if self.call.inputs else _plain(self.call)
        )
        self.part.key = self.keyed.key.hex()

    def _describe(self) -> Call:
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
        keys = self.keyed.keys
        program = self.call.program
        known = self.catalog.lookup(keys, (program,) * len(keys))
        self.lookups = known[0].lookups
        return any(each.entry is not None and self._open(each.entry) for each in known)

    def _open(self, entry: Entry) -> bool:
        if self._is_too_old(entry.created):
            return False
        opened = self.catalog.open(entry)
        if not isinstance(opened, Result):
            return False
        try:
            self.value = values.restored(opened, self.call.walk)
        except StoreFailure as failure:
            _log.info("%s is computed again: %s", entry.about, failure)
            self.refreshing = True
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
            self._flight = flights.begin_anew(key)
            return None
        while True:
            standing = flights.find(key)
            if standing is not None:
                return standing
            self._flight = flights.begin(key)
            if self._flight is not None or flights.find(key) is None:
                return None  # without a flight of its own where this call is part of the one under way

    def reserve(self) -> bool:
        """Whether another process has computed the result meanwhile; otherwise it is this one that does."""
        if self._flight is None or self.refreshing or self.memo.is_quick(_QUICK) or self.catalog.read_only:
            return False
        taken = self.session.reservations.take_or_wait(self.keyed.key)
        if isinstance(taken, Entry):
            if self._open(taken):
                self.abandon()
                return True
            return False
        self._reservation = taken
        return False

    def abandon(self) -> None:
        """Nothing comes of this computation: others need not wait for it."""
        self._land(None)
        if self._reservation is not None:
            self.session.reservations.give_back(self._reservation)
            self._reservation = None

    def failed(self) -> None:
        """The function raised; the error is the caller's, and others try for themselves."""
        self.part.outcome = "failed"
        self.part.seconds = time.perf_counter() - self._begun
        self.abandon()

    def _land(self, landed: Landed | None) -> None:
        if self._flight is not None:
            self.session.flights.land(self._flight, landed)
            if landed is None:
                self._flight = None

    # keeping

    def watch(self) -> None:
        """The function is about to run: what it does that its key does not show is seen."""
        try:
            self._watch = watch_of(self.call, self.memo.function, self.arguments, self.memo.is_async)
            if self._watch is not None:
                self._watch.begin()
        except Exception as failure:
            _log.info("%s cannot be watched: %r", self.memo.label, failure)
            self._blind = True

    def watched(self, error: BaseException | None) -> None:
        """The function has run, if it did."""
        try:
            if self._watch is not None:
                self._watch.end(error)
        except Exception as failure:
            _log.info("%s could not be watched: %r", self.memo.label, failure)
            self._blind = True

    def computed(self, value: Any, seconds: float) -> None:
        """The function gave a value: it is kept if nothing speaks against it."""
        part = self.part
        part.seconds = seconds
        part.explain = self.memo.explainer(self)
        self.memo.note_time(seconds)
        try:
            why_not, copy = self._taken_apart(value, seconds)
        except NectarError as error:
            why_not, copy = f"not kept: {error}", None
        if copy is None:
            part.keeping = why_not
            self.abandon()
            return
        part.size, part.keeping = copy.size, "being kept"
        self._land(Landed(copy, seconds, self.began))
        self._submit(copy, seconds)

    def _taken_apart(self, value: Any, seconds: float) -> tuple[str, Snapshot | None]:
        """The result as it is to be kept, or why it is not."""
        if self.catalog.read_only:
            return "not kept: the store may only be read", None
        if self._blind:
            return "not kept: it could not be watched while it ran", None
        if self._watch is not None and (observations := self._watch.observations()):
            return self._refuse(observations), None
        again = self._describe()
        if again.digest != self.call.digest:
            return "not kept: its arguments, or what it captured, were changed while it ran", None
        if self.call.inputs and (told := changed_inputs(self.keyed, self.session.inputs)):
            return f"not kept: {'; '.join(told)}", None
        copy = values.snapshot(value, self.call.walk)
        why_not = self.catalog.worth_keeping(seconds, copy.size)
        return (why_not, None) if why_not else ("", copy)

    def _refuse(self, observations: list[Observation]) -> str:
        """Why the result is not kept; what is certain is said, and remembered."""
        text, certain = told(observations)
        if not certain:
            return f"not kept: while it ran, something happened that may have been its doing: it {text}"
        self.catalog.observed.add(remembered_as(self.call), text, self.session.clock.now())
        self.memo.warn(f"it {text}. {advice_about(text)}")
        catalog, program = self.catalog, self.call.program
        self.session.keeper.submit(lambda: catalog.discard(catalog.inquire([program])[program]))
        return f"not kept: it {text}"

    def _submit(self, copy: Snapshot, seconds: float) -> None:
        about = call_text(self.memo.label, self.arguments)
        self.memo.remember_version(self.catalog, self.call.program)
        part, flight, reservation = self.part, self._flight, self._reservation
        session, catalog, call, replaces = self.session, self.catalog, self.call, self.refreshing
        key, began, identities = self.keyed.key, self.began, self.keyed.identities

        def write() -> None:
            kept = False
            try:
                answer = catalog.keep(
                    key, call.program, copy.content, table=copy.table, seconds=seconds, about=about, replaces=replaces,
                    made=began, sources=lambda: sources_of(call, identities),
                )  # fmt: skip
                kept = isinstance(answer, Kept)
                part.keeping = "kept" if isinstance(answer, Kept) else f"not kept: {answer.reason}"
                if isinstance(answer, Kept):
                    session.totals.count_kept(answer.entry.size)
            finally:
                if flight is not None:
                    session.flights.end(flight)
                if reservation is not None:
                    session.reservations.done(reservation) if kept else session.reservations.give_back(reservation)

        session.keeper.submit(write, copy.size)


def _plain(call: Call) -> Keyed:
    return Keyed((call.digest,))
