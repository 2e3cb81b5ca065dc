"""What becomes of queries that Nectar looks at: what is known of them is reused, the rest is computed and kept.

In: lazy frames, and the engine that computes. Out: frames. Loaded when the first query is looked at. Each look accounts
for its own time: all of it but what the engine took.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar

import polars as pl

from nectar.dialects.polars.flags import flags_of
from nectar.dialects.polars.keeping import claimed, keep, release
from nectar.dialects.polars.query import Query, about, is_own_fault, prepared
from nectar.errors import NectarError, TooLargeError
from nectar.keys.patience import patience
from nectar.overhead import process
from nectar.overhead.sites import Site
from nectar.report.run import Outcome, Part, RunReport
from nectar.report.site import call_site
from nectar.report.totals import Kind, is_interruption
from nectar.report.watchers import watchers
from nectar.session import Session
from nectar.trust.secrets import logger

if TYPE_CHECKING:
    from nectar.dialects.polars.several import Together

_T = TypeVar("_T")
_log: Final = logger("nectar.polars")
_AS_GIVEN: Final = "not kept: it ran as it was given, and may have seen other files than its key is made of"


class Look:
    """One look at queries. inner: the engine that computes. site: where they run; None if somebody asked for it."""

    def __init__(self, inner: Any, session: Session, report: RunReport, site: Site | None = None) -> None:
        self.inner, self.session, self.report, self.site = inner, session, report, site
        self._timer = session.steering.timer
        self._begun, self._starting = self._timer(), self._started()
        self.computing = 0.0  # seconds that the engine took
        self._shared = 0.0  # of these, its share of what passed while other queries ran beside it
        self._is_apart = False  # it was asked whether the site has to be told apart by its callers
        self.reused = 0.0  # seconds that the engine would have taken for what was known
        self._part, self._is_counted = Part("query"), False  # of the one query, once more is known of it

    # time

    def _started(self) -> float:
        return self.session.steering.ledger.spent.get("starting", 0.0)

    def _timed(self, run: Callable[[], _T]) -> _T:
        """What the engine gives; its time is none of ours."""
        share = self.session.steering.queries.share()
        try:
            with share:
                return run()
        finally:
            self.computing += share.wall
            self._shared += share.seconds

    def _share_of(self, seconds: float) -> float:
        """What of a query's seconds the program would have waited, had the others beside it run without it."""
        return seconds * self._shared / self.computing if self.computing > 0.0 else seconds

    def end(self, found: float | None = None) -> None:
        """The look has ended: its cost is known, and what the queries would have taken without it.

        found: seconds that what is kept would have saved, if they are not those that it saved.
        """
        starting = self._started() - self._starting
        own = max(0.0, self._timer() - self._begun - self.computing - starting)
        found = self.reused if found is None else found
        self._tell_apart()
        self.session.steering.looked(self.site, self.computing + self.reused, own, found)

    def _tell_apart(self) -> None:
        """If queries where this one stands take very different times, its site is known by who called."""
        if self.site is not None and not self._is_apart:
            self._is_apart = True
            self.site = self.session.steering.sites.apart(self.site, self.computing + self.reused)

    def _prepared(self, lf: pl.LazyFrame, optimizations: Any) -> Query | str:
        """The query, its known parts opened; or why it has to run as it is."""
        query: Query | str
        try:
            with patience(self.session.steering.patience(self.site)):
                query = prepared_or_why_not(self.session, lf, optimizations)
        except TooLargeError as error:
            query = str(error)
        if watchers:
            from nectar.dialects.polars.explain import tell_watchers  # takes long to load

            tell_watchers(query)
        return query

    # one query

    def collect(self, lf: pl.LazyFrame, options: dict[str, Any]) -> pl.DataFrame:
        """The frame of a query."""
        try:
            query = self._prepared(lf, options["optimizations"])
            if isinstance(query, str):
                return self._plainly(lf, options, query)
            try:
                known = query.result()
                return self.compute(query, lf, options) if known is None else self._found(query, known)
            finally:
                query.close()
        except BaseException as error:
            self._failed(error)
            raise
        finally:
            self.end()

    def _count(self, part: Part) -> None:
        """A query has ended, well or not."""
        self._is_counted = True
        self.report.add(part)
        self.session.totals.count(part)

    def _failed(self, error: BaseException) -> None:
        """A query gave no result: it is told as such, whatever it came to before."""
        if not self._is_counted:
            self._part.fail(error)
            self._part.seconds = self.computing
            self._count(self._part)

    def _found(self, query: Query, known: pl.DataFrame) -> pl.DataFrame:
        self.tell_hits(query, self._timer() - self._begun)
        return known

    def _plainly(self, lf: pl.LazyFrame, options: dict[str, Any], reason: str) -> pl.DataFrame:
        part = self._part = Part("query", "uncacheable", explain=lambda: reason)
        frame: pl.DataFrame = self._timed(lambda: self.inner.collect(lf, **options))
        part.seconds = self.computing
        self._count(part)
        return frame

    def compute(self, query: Query, lf: pl.LazyFrame, options: dict[str, Any]) -> pl.DataFrame:
        """The frame of a query whose result is not known; it is kept in the background."""
        begun = self._timer()
        is_known = claimed(query) if self.site is None else claimed(query, self.site.seconds)
        self._begun += self._timer() - begun  # waiting for another process is no work
        if is_known:
            known = query.result()
            if known is not None:
                self.tell_hits(query, self._timer() - begun)
                return known
        part = self._part = _part_of(self.session, query)
        begun = self._timer()
        try:
            frame, as_given = self._run(query, lf, options)
        except BaseException:
            release(query)
            raise
        part.seconds = self._timer() - begun
        self.tell_hits(query, 0.0)
        self._count(part)
        if as_given:
            part.keeping = _AS_GIVEN
            release(query)
        else:
            self._keep(query, frame, part)
        return frame

    def _run(self, query: Query, lf: pl.LazyFrame, options: dict[str, Any]) -> tuple[pl.DataFrame, bool]:
        """The result, and whether it is that of the query as it was given; which runs if what we made of it fails."""
        run = _watched(query, lambda frame: self._timed(lambda: self.inner.collect(frame, **options)))
        if query.known or query.choice.keep or query.growing:
            try:
                from nectar.dialects.polars.computing import computed  # takes long to load

                return computed(query, run), False
            except (Exception, pl.exceptions.PanicException) as error:
                if not is_own_fault(query, error):
                    raise
                _log.info("the query runs as it is: with known parts it failed: %s", error)
                query.forget_known()
        ours = query.as_keyed(lf)
        try:
            return run(ours), False
        except pl.exceptions.PanicException as error:
            if ours is lf:
                raise
            _log.info("the query runs as it was given: Polars broke down over what we made of it: %s", error)
        return self._timed(lambda: self.inner.collect(lf, **options)), True

    def _keep(self, query: Query, frame: pl.DataFrame, part: Part) -> None:
        """The result is kept in the background, if it is worth it, and what the query was goes on record."""
        try:
            seconds = self._share_of(part.seconds)
            keep(query, query.keyed.program.root, frame, seconds, part, self.computing + self.reused)
        except Exception as error:
            _log.exception("the result could not be kept")
            part.keeping = f"not kept: {type(error).__name__}: {error}"
        finally:
            release(query)  # unless whoever writes the result has taken it over
        self._tell_apart()
        if self.site is not None and part.keeping == "being kept":
            self.site.kept_now = True
        if part.keeping == "being kept" or self.session.steering.ledger.left > 0.0:
            catalog, found, site, began = query.catalog, query.keyed, call_site(), query.began
            self.session.keeper.submit(lambda: _remember(catalog, found, site, began))

    def tell_hits(self, query: Query, seconds: float) -> None:
        """The report says which parts of a query were known."""
        hits = [(number, about(query, number), query.entries[number]) for number in query.choice.hits]
        whole = [(number, name, entry, entry.seconds) for number, name, entry in hits]
        parts = [
            (None, entry.about, entry, min(entry.seconds, query.spared.get(number, inf) / len(used)))
            for number, used in query.advanced.items()
            for entry in used
        ]
        for number, name, entry, saved in [*whole, *parts]:
            kind: Kind = "query" if number == query.keyed.program.root else "step"
            self._count(Part(name, "reused", seconds, saved, entry.size, key=entry.key.hex(), kind=kind))
            self.reused += saved
            self.session.steering.ledger.save(saved)

    # a query that ran without us

    def late(self, lf: pl.LazyFrame, optimizations: Any, frame: pl.DataFrame, seconds: float, shared: float) -> None:
        """A query was left alone and took long: its result is kept, if that is certain to be what its key stands for.

        shared: its share of the seconds, if others ran beside it.
        The key is made after the query ran. It stands for what the query has read only if no file was touched since
        this process began: before that, nobody can have looked at it. What Python functions did was not watched.
        """
        part = self.report.add(Part("query", "computed", seconds))
        self.computing, self._shared, self._begun = seconds, shared, self._begun - seconds  # it is none of ours
        found = 0.0
        try:
            query = self._prepared(lf, optimizations)
            if isinstance(query, str):
                part.outcome, part.explain = "uncacheable", lambda: query
                return
            found = seconds if query.result() is not None else 0.0
            try:
                self._keep_late(query, frame, part)
            finally:
                query.close()
        finally:
            self.session.totals.count(part)
            self.end(found)

    def _keep_late(self, query: Query, frame: pl.DataFrame, part: Part) -> None:
        told = _part_of(self.session, query)
        part.name, part.outcome, part.key, part.explain = told.name, told.outcome, told.key, told.explain
        if query.result() is not None:
            part.keeping = "known already: it was not looked for, as its site had been quick"
        elif query.keyed.live:
            part.keeping = "not kept: nobody watched its Python functions, as its site had been quick"
        elif not _are_untouched(query):
            part.keeping = "not kept: its site had been quick, and what it reads may have changed meanwhile"
        else:
            query.forget_known()  # it was computed without
            query.runs(query.keyed.program.root)
            self._keep(query, frame, part)

    # several queries

    def collect_all(self, lfs: list[pl.LazyFrame], optimizations: Any) -> list[pl.DataFrame]:
        """The frames of several queries; those that are not known are computed together."""
        try:
            return self._collected_all(lfs, optimizations)
        except BaseException as error:
            if not self._is_counted:
                self.session.totals.count_failed(interrupted=is_interruption(error), number=len(lfs))
            raise

    def _collected_all(self, lfs: list[pl.LazyFrame], optimizations: Any) -> list[pl.DataFrame]:
        queries = [self._prepared(lf, optimizations) for lf in lfs]
        plan = _together_or_as_given(queries, lfs)
        begun = self._timer()
        try:
            results = self._watched_together(queries, plan, optimizations)
        except (Exception, pl.exceptions.PanicException) as error:
            ours = plan.answers or (isinstance(error, pl.exceptions.PanicException) and len(plan.given) < len(lfs))
            if not ours:
                raise
            _log.info("several queries run as they are: what we made of them failed: %s", error)
            from nectar.dialects.polars.several import as_given

            plan = as_given(lfs)
            results = self._run_together(plan, optimizations)
        share = (self._timer() - begun) / max(1, len(results))
        done = {at: query.known[query.keyed.program.root].frame for at, query in plan.answers.items()}
        for query in plan.answers.values():
            self.tell_hits(query, 0.0)
        for at, frame in results.items():
            self._keep_one(queries[at], frame, share, at in plan.given)
        for each in queries:
            if isinstance(each, Query):
                each.close()
        self.end()
        return [done[at] if at in done else results[at] for at in range(len(lfs))]

    def _watched_together(
        self, queries: Sequence[Query | str], plan: Together, optimizations: Any
    ) -> dict[int, pl.DataFrame]:
        live = [query for query in queries if isinstance(query, Query) and query.keyed.live]
        if not live:
            return self._run_together(plan, optimizations)
        from nectar.dialects.polars.watching import watching  # takes long to load, and most plans hold no function

        return watching(live, lambda: self._run_together(plan, optimizations))

    def _run_together(self, plan: Together, optimizations: Any) -> dict[int, pl.DataFrame]:
        if not plan.frames:
            return {}
        frames = list(plan.frames.values())
        results = self._timed(lambda: self.inner.collect_all(frames, optimizations=optimizations))
        return dict(zip(plan.frames, results, strict=True))

    def _keep_one(self, query: Query | str, frame: pl.DataFrame, seconds: float, given: bool) -> None:
        if isinstance(query, str):
            reason = query
            part = self.report.add(Part("query", "uncacheable", seconds, explain=lambda: reason))
        else:
            part = self.report.add(_part_of(self.session, query))
            part.seconds = seconds
            if given:
                part.keeping = _AS_GIVEN
            else:
                self._keep(query, frame, part)
        self.session.totals.count(part)

    # queries that somebody else runs

    def rewritten(self, lf: pl.LazyFrame, optimizations: Any) -> tuple[pl.LazyFrame, Query | None]:
        """The query with its known parts as sources, or as it is."""
        query = self._prepared(lf, optimizations)
        if not isinstance(query, Query):
            return lf, None
        try:
            rewritten = query.rewritten()
        except NectarError as error:
            _log.info("the query runs as it is: a known part cannot be read: %s", error)
            query.forget_known()
            rewritten = None
        return (lf, query) if rewritten is None else (rewritten, query)


def _are_untouched(query: Query) -> bool:
    """Whether all that a query reads are files that it names, and nobody has touched them since this process began."""
    plan = query.keyed.plan
    if query.keyed.reads_memory or any(_holds_series(step.body) for step in plan.steps):
        return False  # somebody may have changed what they lie over
    for number, source, _ in query.keyed.sources:
        named = [path["inner"] for path in plan.steps[number].body["sources"]["Paths"]] if source.files else []
        if named != [*source.files] or not all(map(os.path.isabs, named)):
            return False
    return query.session.inputs.are_older(query.keyed.identities, process.began())


def _holds_series(value: Any) -> bool:
    """Whether a column in memory stands in a step."""
    if isinstance(value, dict):
        return "Series" in value or any(map(_holds_series, value.values()))
    return isinstance(value, list) and any(map(_holds_series, value))


def _watched(query: Query, run: Callable[[pl.LazyFrame], pl.DataFrame]) -> Callable[[pl.LazyFrame], pl.DataFrame]:
    """Runs parts of a query as `run` does; what their Python functions do is seen."""
    if not query.keyed.live or (query.root.refusal and not query.choice.keep and not query.growing):
        return run  # nothing can be kept
    from nectar.dialects.polars.watching import watching  # takes long to load, and most plans hold no function

    return lambda frame: watching([query], lambda: run(frame))


def _remember(*query: Any) -> None:
    from nectar.dialects.polars.history import remember

    remember(*query)


def _part_of(session: Session, query: Query) -> Part:
    """The part of the report that stands for a result which has to be computed."""
    outcome: Outcome = "uncacheable" if query.root.refusal else "computed"
    return Part(
        about(query, query.keyed.program.root), outcome, key=query.root.key.hex(),
        explain=partial(_why_missed, session, query.keyed, call_site(), query.began),
    )  # fmt: skip


def _why_missed(*query: Any) -> str:
    from nectar.dialects.polars.explain import why_missed  # takes long to load, and is seldom asked for

    return why_missed(*query)()


def _together_or_as_given(queries: list[Query | str], lfs: list[pl.LazyFrame]) -> Together:
    from nectar.dialects.polars.several import as_given, together

    try:
        return together(queries, lfs)
    except (Exception, pl.exceptions.PanicException):
        _log.debug("several queries run as they are", exc_info=True)
        return as_given(lfs)


def prepared_or_why_not(session: Session, lf: pl.LazyFrame, optimizations: Any) -> Query | str:
    """The query, its known parts opened; or why it has to run as it is."""
    try:
        return prepared(session, lf, flags_of(optimizations))
    except NectarError as error:
        return str(error)
    except (Exception, pl.exceptions.PanicException) as error:  # also what Polars says of a plan that is wrong
        _log.debug("the query runs as it is", exc_info=True)
        return f"its plan cannot be read: {type(error).__name__}: {error}"
