"""Nectar as an engine of Polars: it wraps another one, and hands it what is left to compute."""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import polars as pl
from polars._utils.async_ import _AioDataFrameResult, _GeventDataFrameResult
from polars.lazyframe import engine_config
from polars.lazyframe.query_result import SingleNodeQueryResult

from nectar.dialects.polars.computing import computed
from nectar.dialects.polars.explain import tell_watchers, why_missed
from nectar.dialects.polars.flags import flags_of
from nectar.dialects.polars.history import remember
from nectar.dialects.polars.keeping import claimed, keep, learn_content, release
from nectar.dialects.polars.query import Query, about, is_own_fault, prepared
from nectar.dialects.polars.several import Together, as_given, together
from nectar.dialects.polars.watching import watched, watching
from nectar.errors import NectarError
from nectar.report.explanation import watchers
from nectar.report.run import Outcome, Part, RunReport
from nectar.report.site import call_site
from nectar.session import Session, current, running
from nectar.threads import started

_log: Final = logging.getLogger("nectar.polars")
_AS_GIVEN: Final = "not kept: it ran as it was given, and may have seen other files than its key is made of"


class PolarsEngine(pl.Engine):
    """An engine that reuses what is known, and lets another engine compute the rest.

    inner: the engine that computes: its name, or an engine of Polars. Use it for one query
    (`lf.collect(engine=nectar.PolarsEngine())`), or for all of them through `nectar.enable()`.
    """

    def __init__(self, inner: str | pl.Engine = "auto") -> None:
        self.inner: Any = _plain_engine(inner)

    @property
    def name(self) -> str:
        """As Polars shows it."""
        return f"nectar over {self.inner.name}"

    @property
    def plan_engine(self) -> str:
        """The engine whose plans are shown."""
        return str(self.inner.plan_engine)

    def __repr__(self) -> str:
        return f"PolarsEngine({self.inner!r})"

    # frames

    def collect(
        self, lf: pl.LazyFrame, *, optimizations: Any, background: bool = False, post_opt_callback: Any = None
    ) -> Any:
        """The frame of a query."""
        options = {"optimizations": optimizations}
        if background:
            rewritten, query = self._rewritten(lf, optimizations)
            return _lasting(self.inner.collect(rewritten, background=True, **options), query)
        session = current()
        if session is None or post_opt_callback is not None:
            return self.inner.collect(lf, post_opt_callback=post_opt_callback, **options)
        with running() as report:
            return self._collect(session, report, lf, options)

    def _collect(self, session: Session, report: RunReport, lf: pl.LazyFrame, options: dict[str, Any]) -> pl.DataFrame:
        begun = time.perf_counter()
        query = _prepared(session, lf, options["optimizations"])
        if isinstance(query, str):
            return self._plainly(session, report, lf, options, query)
        try:
            known = query.result()
            if known is not None:
                tell_hits(session, report, query, time.perf_counter() - begun)
                return known
            return self.compute(session, report, query, lf, options)
        finally:
            query.close()

    def _plainly(
        self, session: Session, report: RunReport, lf: pl.LazyFrame, options: dict[str, Any], reason: str
    ) -> pl.DataFrame:
        part = report.add(Part("query", "uncacheable", explain=lambda: reason))
        begun = time.perf_counter()
        try:
            return self.inner.collect(lf, **options)  # type: ignore[no-any-return]
        finally:
            part.seconds = time.perf_counter() - begun
            session.totals.count(part)

    def compute(
        self, session: Session, report: RunReport, query: Query, lf: pl.LazyFrame, options: dict[str, Any]
    ) -> pl.DataFrame:
        """The frame of a query whose result is not known; it is kept in the background."""
        begun = time.perf_counter()
        if claimed(query):  # another process was about to finish it
            known = query.result()
            if known is not None:
                tell_hits(session, report, query, time.perf_counter() - begun)
                return known
        part = _part_of(session, query)
        begun = time.perf_counter()
        try:
            frame, as_given = self._run(query, lf, options)
        except BaseException:
            release(query)
            raise
        part.seconds = time.perf_counter() - begun
        tell_hits(session, report, query, 0.0)
        report.add(part)
        session.totals.count(part)
        if as_given:
            part.keeping = _AS_GIVEN
            release(query)
        else:
            _kept(query, frame, part)
        return frame

    def _run(self, query: Query, lf: pl.LazyFrame, options: dict[str, Any]) -> tuple[pl.DataFrame, bool]:
        """The result, and whether it is that of the query as it was given; which runs if what we made of it fails."""
        run = watched(query, lambda frame: self.inner.collect(frame, **options))
        if query.known or query.choice.keep or query.growing:
            try:
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
        return self.inner.collect(lf, **options), True

    def execute(self, lf: pl.LazyFrame, *, optimizations: Any) -> Any:
        """The frame of a query, as Polars wraps it."""
        return SingleNodeQueryResult(self.collect(lf, optimizations=optimizations))

    def collect_all(self, lfs: Iterable[pl.LazyFrame], *, optimizations: Any) -> list[pl.DataFrame]:
        """The frames of several queries; those that are not known are computed together."""
        frames = list(lfs)
        session = current()
        if session is None:
            return self.inner.collect_all(frames, optimizations=optimizations)  # type: ignore[no-any-return]
        with running() as report:
            return self._collect_all(session, report, frames, optimizations)

    def _collect_all(
        self, session: Session, report: RunReport, lfs: list[pl.LazyFrame], optimizations: Any
    ) -> list[pl.DataFrame]:
        queries = [_prepared(session, lf, optimizations) for lf in lfs]
        plan = _together_or_as_given(queries, lfs)
        begun = time.perf_counter()
        try:
            results = watching(_whole(queries), lambda: self._run_together(plan, optimizations))
        except (Exception, pl.exceptions.PanicException) as error:
            ours = plan.answers or (isinstance(error, pl.exceptions.PanicException) and len(plan.given) < len(lfs))
            if not ours:
                raise
            _log.info("several queries run as they are: what we made of them failed: %s", error)
            plan = as_given(lfs)
            results = self._run_together(plan, optimizations)
        share = (time.perf_counter() - begun) / max(1, len(results))
        done = {at: query.known[query.keyed.program.root].frame for at, query in plan.answers.items()}
        for query in plan.answers.values():
            tell_hits(session, report, query, 0.0)
        for at, frame in results.items():
            self._keep_one(session, report, queries[at], frame, share, at in plan.given)
        for each in queries:
            if isinstance(each, Query):
                each.close()
        return [done[at] if at in done else results[at] for at in range(len(lfs))]

    def _run_together(self, plan: Together, optimizations: Any) -> dict[int, pl.DataFrame]:
        if not plan.frames:
            return {}
        results = self.inner.collect_all(list(plan.frames.values()), optimizations=optimizations)
        return dict(zip(plan.frames, results, strict=True))

    def _keep_one(
        self, session: Session, report: RunReport, query: Query | str, frame: pl.DataFrame, seconds: float, given: bool
    ) -> None:
        if isinstance(query, str):
            reason = query
            part = report.add(Part("query", "uncacheable", seconds, explain=lambda: reason))
        else:
            part = report.add(_part_of(session, query))
            part.seconds = seconds
            if given:
                part.keeping = _AS_GIVEN
            else:
                _kept(query, frame, part)
        session.totals.count(part)

    # in the background

    def collect_async(self, lf: pl.LazyFrame, *, optimizations: Any, gevent: bool = False) -> Any:
        """The frame of a query, to be awaited."""
        result: Any = _GeventDataFrameResult() if gevent else _AioDataFrameResult()
        _in_thread(lambda: self.collect(lf, optimizations=optimizations)._df, result._callback)
        return result

    def collect_all_async(self, lfs: Iterable[pl.LazyFrame], *, optimizations: Any, gevent: bool = False) -> Any:
        """The frames of several queries, to be awaited."""
        result: Any = _GeventDataFrameResult() if gevent else _AioDataFrameResult()
        frames = list(lfs)
        _in_thread(
            lambda: [frame._df for frame in self.collect_all(frames, optimizations=optimizations)], result._callback_all
        )
        return result

    def collect_batches(self, lf: pl.LazyFrame, **options: Any) -> Any:
        """The result in batches."""
        rewritten, query = self._rewritten(lf, options["optimizations"])
        return _lasting(self.inner.collect_batches(rewritten, **options), query)

    # sinks

    def sink_parquet(self, lf: pl.LazyFrame, path: Any, **options: Any) -> None:
        """Writes the result of a query as Parquet."""
        self._sink("sink_parquet", lf, path, options)

    def sink_ipc(self, lf: pl.LazyFrame, path: Any, **options: Any) -> None:
        """Writes the result of a query as an Arrow file."""
        self._sink("sink_ipc", lf, path, options)

    def sink_csv(self, lf: pl.LazyFrame, path: Any, **options: Any) -> None:
        """Writes the result of a query as CSV."""
        self._sink("sink_csv", lf, path, options)

    def sink_ndjson(self, lf: pl.LazyFrame, path: Any, **options: Any) -> None:
        """Writes the result of a query as newline-delimited JSON."""
        self._sink("sink_ndjson", lf, path, options)

    def sink_batches(self, lf: pl.LazyFrame, function: Any, **options: Any) -> None:
        """Hands the result of a query to a function, batch by batch."""
        self._sink("sink_batches", lf, function, options)

    def _sink(self, method: str, lf: pl.LazyFrame, target: Any, options: dict[str, Any]) -> None:
        rewritten, query = self._rewritten(lf, options["optimizations"])
        try:
            getattr(self.inner, method)(rewritten, target, **options)
        except pl.exceptions.PanicException as error:
            if rewritten is lf or not isinstance(target, str | Path):
                raise
            _log.info("the query runs as it was given: Polars broke down over what we made of it: %s", error)
            getattr(self.inner, method)(lf, target, **options)
        finally:
            if query is not None:
                query.close()
        session = current()
        if session is not None and isinstance(target, str | Path):
            learn_content(session, str(target))

    def _rewritten(self, lf: pl.LazyFrame, optimizations: Any) -> tuple[pl.LazyFrame, Query | None]:
        """The query with its known parts as sources, or as it is."""
        session = current()
        query = None if session is None else _prepared(session, lf, optimizations)
        if not isinstance(query, Query):
            return lf, None
        try:
            rewritten = query.rewritten()
        except NectarError as error:
            _log.info("the query runs as it is: a known part cannot be read: %s", error)
            query.forget_known()
            rewritten = None
        return (lf, query) if rewritten is None else (rewritten, query)


def _plain_engine(inner: str | pl.Engine) -> Any:
    if isinstance(inner, PolarsEngine):
        return inner.inner
    if isinstance(inner, pl.Engine):
        return inner
    found = engine_config._engine_from_name(inner)  # type: ignore[arg-type]
    return found.inner if isinstance(found, PolarsEngine) else found


def _prepared(session: Session, lf: pl.LazyFrame, optimizations: Any) -> Query | str:
    query = prepared_or_why_not(session, lf, optimizations)
    if watchers:
        tell_watchers(query)
    return query


def _part_of(session: Session, query: Query) -> Part:
    """The part of the report that stands for a result which has to be computed."""
    outcome: Outcome = "uncacheable" if query.root.refusal else "computed"
    return Part(
        about(query, query.keyed.program.root), outcome, key=query.root.key.hex(),
        explain=why_missed(session, query.keyed, call_site(), query.began),
    )  # fmt: skip


def _whole(queries: list[Query | str]) -> list[Query]:
    return [query for query in queries if isinstance(query, Query)]


def _together_or_as_given(queries: list[Query | str], lfs: list[pl.LazyFrame]) -> Together:
    try:
        return together(queries, lfs)
    except (Exception, pl.exceptions.PanicException):
        _log.debug("several queries run as they are", exc_info=True)
        return as_given(lfs)


def _kept(query: Query, frame: pl.DataFrame, part: Part) -> None:
    """The result is kept in the background, if it is worth it, and what the query was goes on record."""
    try:
        keep(query, query.keyed.program.root, frame, part.seconds, part)
    except Exception as error:
        _log.exception("the result could not be kept")
        part.keeping = f"not kept: {type(error).__name__}: {error}"
    finally:
        release(query)  # unless whoever writes the result has taken it over
    catalog, found, site, began = query.catalog, query.keyed, call_site(), query.began
    query.session.keeper.submit(lambda: remember(catalog, found, site, began))


def prepared_or_why_not(session: Session, lf: pl.LazyFrame, optimizations: Any) -> Query | str:
    """The query, its known parts opened; or why it has to run as it is."""
    try:
        return prepared(session, lf, flags_of(optimizations))
    except NectarError as error:
        return str(error)
    except (Exception, pl.exceptions.PanicException) as error:  # also what Polars says of a plan that is wrong
        _log.debug("the query runs as it is", exc_info=True)
        return f"its plan cannot be read: {type(error).__name__}: {error}"


def tell_hits(session: Session, report: RunReport, query: Query, seconds: float) -> None:
    """The report says which parts of a query were known."""
    whole = [(about(query, number), query.entries[number]) for number in query.choice.hits]
    parts = [(entry.about, entry) for used in query.advanced.values() for entry in used]
    for name, entry in [*whole, *parts]:
        part = report.add(Part(name, "reused", seconds, entry.seconds, entry.size, key=entry.key.hex()))
        session.totals.count(part)


def _in_thread(work: Any, callback: Any) -> None:
    """The work is done by a thread of its own; what it gives or raises, whatever that is, goes to the callback."""

    def run() -> None:
        try:
            found = work()
        except BaseException as error:  # whoever awaits the result would wait for ever
            found = error
        try:
            callback(found)
        except Exception:  # Polars does not expect SystemExit and its like
            callback(RuntimeError(f"a query raised {type(found).__name__}: {found}"))

    if started(run, "nectar-collect") is None:
        run()


def _lasting(result: Any, query: Query | None) -> Any:
    """A result that is still being computed; what its plan reads stays for as long as anybody has the result."""
    if query is not None:
        weakref.finalize(result, query.close)
    return result


# all queries


_replaced: Final[dict[str, Any]] = {}


def install() -> None:
    """From now on every query runs through Nectar, whichever engine of Polars it names."""
    if _replaced:
        return
    by_name: Any = engine_config._ENGINE_BY_NAME
    for name, engine in list(by_name.items()):
        _replaced[name] = engine
        by_name[name] = PolarsEngine(engine)


def uninstall() -> None:
    """From now on queries run as plain Polars."""
    by_name: Any = engine_config._ENGINE_BY_NAME
    for name, engine in _replaced.items():
        by_name[name] = engine
    _replaced.clear()
