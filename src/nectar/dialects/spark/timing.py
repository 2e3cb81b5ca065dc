"""How long one query takes, with Nectar and without it, and what the budget is told of that.

In: a query that is about to be sent, and seconds as they pass. Out: whether Nectar looks at it, and, once it has ended,
what its site has learned. There are no late looks here: what was left alone is not kept, since nobody knows which files
a server has read. Law: whatever is decided, the answer is the same.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from nectar.dialects.spark.persisted import is_anything_asked_for
from nectar.overhead.sites import Site
from nectar.report.run import Part
from nectar.report.totals import is_interruption
from nectar.report.watchers import watchers
from nectar.session import Session, running

LOOKING: Final = "nectar.dialects.spark.looking"  # what looks at queries, loaded with the first look
_NOTICED: Final = 1e-3  # seconds
_FIRST: Final = 5e-3  # seconds of the first look that are thought to be those of any; the rest is for the process
_WRITES: Final = frozenset({"write_operation", "write_operation_v2", "merge_into_table_command"})
_WRITING_WORDS: Final = frozenset({"insert", "merge"})


class Timing:
    """The time of one query. looks: Nectar looks at it. site: where it stands; None if somebody wants a look.

    own: seconds of Nectar. engine: seconds that the program waited for the engine. reused: what the engine would have
    taken for what was found. part: its line in the report, if Nectar looks at it.
    """

    def __init__(self, session: Session) -> None:
        self.session, self._steering = session, session.steering
        self.part: Part | None = None
        wanted = bool(watchers) or is_anything_asked_for() or _is_to_be_saved()
        self.site: Site | None = None if wanted else self._steering.sites.here()
        self.looks = self.site is None or self._steering.looks_at(self.site, LOOKING, late=False)
        self.own = self.engine = self.reused = 0.0
        self._shared = 0.0  # of the engine's seconds, its share of those in which other queries ran beside it
        self._inner = 0.0  # seconds within `working` that are not spent on a look
        self.is_first = False  # of the looks of this process, which takes longer than others
        self.is_refused = False  # Nectar has looked at it, said why it cannot be reused, and counted it
        self._ended = False

    @contextmanager
    def working(self) -> Iterator[None]:
        """What the block takes is Nectar's time."""
        begun, inner = self._steering.timer(), self._inner
        try:
            yield
        finally:
            self.own += max(0.0, self._steering.timer() - begun - (self._inner - inner))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """What the block takes is nobody's: another process computes the same."""
        begun = self._steering.timer()
        try:
            yield
        finally:
            self._inner += self._steering.timer() - begun

    @contextmanager
    def computing(self) -> Iterator[None]:
        """What the block takes is the engine's, which works for the program."""
        share = self._steering.queries.share()
        try:
            with share:
                yield
        finally:
            self._inner += share.wall
            self.engine += share.wall
            self._shared += share.seconds

    def share_of(self, seconds: float) -> float:
        """What of a query's seconds the program would have waited, had the others beside it run without it."""
        return seconds * self._shared / self.engine if self.engine > 0.0 else seconds

    @contextmanager
    def writing(self) -> Iterator[None]:
        """What the block takes is Nectar's, the engine's part in it too; it says nothing of what looks cost."""
        begun = self._steering.timer()
        try:
            yield
        finally:
            seconds = self._steering.timer() - begun
            self._inner += seconds
            self._steering.ledger.spend("writing parts", seconds)

    @property
    def expected(self) -> float:
        """Seconds that a query takes here without Nectar, as far as that is known; 0 if it is not."""
        return self.site.seconds if self.site is not None and self.site.runs else 0.0

    def open_catalog(self) -> None:
        """The catalog is open. The first one to ask waits for that, which says nothing of what looks cost."""
        begun = self._steering.timer()
        _ = self.session.catalog
        seconds = self._steering.timer() - begun
        if seconds > _NOTICED:
            self._steering.ledger.spend("starting", seconds)

    def count_refused(self, reason: str) -> None:
        """The query is counted as one that cannot be reused, unless it was."""
        if not self.is_refused:
            self.is_refused = True
            self.part = Part("query", "uncacheable", explain=lambda: reason)
            with running() as report:
                self.session.totals.count(report.add(self.part))

    def end(self) -> None:
        """The query has been answered: its site knows what it took."""
        if not self._is_over():
            if self.looks:
                if self.is_refused and self.part is not None:
                    self.part.seconds = self.engine
                own = min(self.own, _FIRST) if self.is_first else self.own
                self._steering.ledger.spend("starting", self.own - own)
                self._steering.looked(self.site, self.engine + self.reused, own, self.reused)
                self._steering.ledger.save(self.reused)
            else:
                self._end_alone()

    def _end_alone(self) -> None:
        assert self.site is not None  # whoever wants a look gets one
        self._steering.ledger.spend("looking up", self.own)
        quick = self._steering.ran_alone(self.site, self.engine)
        self.session.leave_alone(quick)

    def fail(self, error: BaseException | None = None) -> None:
        """The query has failed or was interrupted, which says nothing of its site."""
        if not self._is_over():
            self._steering.ledger.spend("looking up", self.own)
            if not self.is_refused:
                self.session.totals.count_failed(interrupted=is_interruption(error))

    def leave(self) -> None:
        """The program did not read the result to its end."""
        if not self._is_over():
            self._steering.ledger.spend("looking up", self.own)
            if not self.is_refused:
                self.session.totals.count_unkept("the program did not read its result to the end")

    def _is_over(self) -> bool:
        """Whether this was said before; from now on it was."""
        before, self._ended = self._ended, True
        return before


def _is_to_be_saved() -> bool:
    """Whether somebody wants the result to have a name; nobody can who has not loaded what does that."""
    saving = sys.modules.get("nectar.dialects.spark.saving")
    return saving is not None and bool(saving.is_asking())


def is_write(plan: Any) -> bool:
    """Whether a plan is a query whose result goes elsewhere than to the program."""
    kind = plan.command.WhichOneof("command_type") if plan.HasField("command") else None
    if kind != "sql_command":
        return kind in _WRITES
    told = plan.command.sql_command
    words = str(told.input.sql.query if told.HasField("input") else told.sql).split(None, 1)
    return bool(words) and words[0].lower() in _WRITING_WORDS
