"""Computing one call of a memoised function: it is watched while it runs, and its result is kept.

Loaded when a call has to be computed, and not before: most calls are found. Law: a result is kept only if nothing was
seen to happen that the key does not show, and what the key was made of is still the same.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

# What keeping needs is there before anything is watched. Classes that are made while the process ends make Python
# forget that it was interrupted.
from nectar.catalog import handover  # noqa: F401
from nectar.catalog.service import Kept
from nectar.dialects.observed import told
from nectar.dialects.python import (
    round_trip,  # noqa: F401 - as above
    values,
)
from nectar.dialects.python.describe import call_text, what_changed
from nectar.dialects.python.invocation import Invocation, Landed
from nectar.dialects.python.keying import changed_inputs, remembered_as
from nectar.dialects.python.provenance import sources_of
from nectar.dialects.python.values import Snapshot
from nectar.dialects.python.watching import advice_about, watch_of
from nectar.errors import NectarError, TooLargeError
from nectar.keys import trace  # noqa: F401 - as above
from nectar.keys.call import rest_of
from nectar.keys.patience import patience
from nectar.store import read  # noqa: F401 - as above
from nectar.store.formats import arrow, parquet  # noqa: F401 - as above
from nectar.trust.secrets import logger

if TYPE_CHECKING:
    from nectar.observation.effects import Observation
    from nectar.observation.watch import Watch

_log: Final = logger("nectar.memo")


class Computation:
    """The computation of an invocation."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._watch: Watch | None = None
        self._rest = b""  # a digest of the call without caches, before it ran
        self._blind = False  # nobody could see what the function did

    def begin(self) -> None:
        """The function is about to run."""
        try:
            with suppress(TooLargeError), patience(self._invocation.patience):
                self._rest = self._without_caches()
            self._watch = watch_of(
                self._invocation.call,
                self._invocation.memo.function,
                self._invocation.arguments,
                self._invocation.memo.is_async,
            )
            if self._watch is not None:
                self._watch.begin()
        except Exception as failure:
            _log.info("%s cannot be watched: %r", self._invocation.memo.label, failure)
            self._blind = True

    def end(self, error: BaseException | None) -> None:
        """The function has run."""
        try:
            if self._watch is not None:
                self._watch.end(error)
        except Exception as failure:
            _log.info("%s could not be watched: %r", self._invocation.memo.label, failure)
            self._blind = True

    def computed(self, value: Any, seconds: float, shared: float, why_not: str = "") -> None:
        """The function gave a value: it is kept if nothing speaks against it. why_not: what does.

        shared: its share of these seconds, which is what finding the result saves.
        """
        part = self._invocation.part
        part.seconds = seconds
        part.explain = self._invocation.memo.explainer(self._invocation)
        self._invocation.memo.note_time(seconds)
        try:
            why_not, copy = (why_not, None) if why_not else self._taken_apart(value, seconds)
        except NectarError as error:
            why_not, copy = f"not kept: {error}", None
        if copy is None:
            part.keeping = why_not
            self._invocation.abandon()
            return
        part.size, part.keeping = copy.size, "being kept"
        self._invocation.land(Landed(copy, shared, self._invocation.began))
        self._submit(copy, shared)

    def _taken_apart(self, value: Any, seconds: float) -> tuple[str, Snapshot | None]:
        """The result as it is to be kept, or why it is not."""
        if self._invocation.catalog.read_only:
            return "not kept: the store may only be read", None
        if self._blind:
            return "not kept: it could not be watched while it ran", None
        if self._watch is not None and (observations := self._watch.observations()):
            return self._refuse(observations), None
        with patience(max(self._invocation.patience, seconds)):
            is_as_before = self._invocation.describe().digest == self._invocation.call.digest or self._only_remembers()
        if not is_as_before:
            memo, walk = self._invocation.memo, self._invocation.call.walk
            what = what_changed(walk, memo.function, self._invocation.arguments)
            return f"not kept: {what} was changed while it ran", None
        if self._invocation.call.inputs and (
            told := changed_inputs(self._invocation.keyed, self._invocation.session.inputs)
        ):
            return f"not kept: {'; '.join(told)}", None
        copy = values.snapshot(value, self._invocation.call.walk)
        if self._invocation.call.refusals and self._watch is not None and copy.holds_any(self._watch.names_made()):
            return "not kept: it holds the name of a temporary file, which is another each time", None
        why_not = self._invocation.catalog.worth_keeping(seconds, copy.size)
        return (why_not, None) if why_not else ("", copy)

    def _without_caches(self) -> bytes:
        return rest_of(self._invocation.call, self._invocation.memo.function, self._invocation.arguments)

    def _only_remembers(self) -> bool:
        """Whether nothing was changed but what objects of libraries remember to save time."""
        return bool(self._rest) and self._without_caches() == self._rest

    def _refuse(self, observations: list[Observation]) -> str:
        """Why the result is not kept; what is certain is said, and remembered."""
        text, certain = told(observations)
        if not certain:
            return f"not kept: while it ran, something happened that may have been its doing: it {text}"
        self._invocation.catalog.observed.add(
            remembered_as(self._invocation.call), text, self._invocation.session.clock.now()
        )
        self._invocation.part.outcome = "uncacheable"  # as the next one will be
        self._invocation.memo.warn(f"it {text}. {advice_about(text)}")
        catalog, program = self._invocation.catalog, self._invocation.call.program
        self._invocation.session.keeper.submit(lambda: catalog.discard(catalog.inquire([program])[program]))
        return f"not kept: it {text}"

    def _submit(self, copy: Snapshot, seconds: float) -> None:
        about = call_text(self._invocation.memo.label, self._invocation.arguments)
        self._invocation.memo.remember_version(
            self._invocation.session, self._invocation.catalog, self._invocation.call.program
        )
        part, flight, reservation = self._invocation.part, self._invocation.flight, self._invocation.reservation
        session, catalog, call, replaces = (
            self._invocation.session,
            self._invocation.catalog,
            self._invocation.call,
            self._invocation.refreshing,
        )
        key, began, identities = self._invocation.keyed.key, self._invocation.began, self._invocation.keyed.identities

        kept = False

        def write() -> None:
            nonlocal kept
            answer = catalog.keep(
                key, call.program, copy.content, table=copy.table, seconds=seconds, about=about, replaces=replaces,
                made=began, sources=lambda: sources_of(call, identities),
            )  # fmt: skip
            kept = isinstance(answer, Kept)
            part.keeping = "kept" if isinstance(answer, Kept) else f"not kept: {answer.reason}"
            if isinstance(answer, Kept):
                session.totals.count_kept(answer.entry.size)

        def over() -> None:
            if part.keeping == "being kept":
                part.keeping = "not kept: the catalog could not be used"
            if flight is not None:
                session.flights.end(flight)
            if reservation is not None:
                session.reservations.done(reservation) if kept else session.reservations.give_back(reservation)

        session.keeper.submit(write, copy.size, over)
