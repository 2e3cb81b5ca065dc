"""Nectar as an engine of Polars: it wraps another one, and hands it what is left to compute.

Every query of a program comes by here, and most are quick: what it takes to look at one is loaded when the first one is
looked at. The others run as they are, and cost microseconds.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import polars as pl
from polars._utils.async_ import _AioDataFrameResult, _GeventDataFrameResult
from polars.lazyframe import engine_config
from polars.lazyframe.query_result import SingleNodeQueryResult

from nectar.overhead.loading import loading
from nectar.overhead.sites import Site, is_own
from nectar.report.run import RunReport
from nectar.report.totals import is_interruption
from nectar.report.watchers import watchers
from nectar.session import Session, current, running
from nectar.threads import started
from nectar.trust.secrets import logger

if TYPE_CHECKING:
    from nectar.dialects.polars.collecting import Look
    from nectar.dialects.polars.query import Query

_T = TypeVar("_T")
_log: Final = logger("nectar.polars")
_LOOKING: Final = "nectar.dialects.polars.collecting"  # loaded with the first look


class PolarsEngine(pl.Engine):
    """An engine that reuses what is known, and lets another engine compute the rest.

    inner: the engine that computes: its name, or an engine of Polars. Use it for one query
    (`lf.collect(engine=nectar.PolarsEngine())`), or for all of them through `nectar.enable()`.
    """

    steers: bool = False  # queries that Nectar cannot help are left alone; whoever names the engine wants a look

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

    # looking, or not

    def _site(self, session: Session | None) -> Site | None:
        """Where in the program a query runs; None if it is looked at in any case."""
        if session is None or not self.steers or watchers:
            return None
        return session.steering.sites.here()

    def _look(self, session: Session, report: RunReport, site: Site | None, *, counted: bool = False) -> Look | None:
        """What looks at a query; None if it cannot be had, and then the query runs as it is.

        counted: somebody else counts the query, should it be interrupted.
        """
        try:
            return _loaded(session)(self.inner, session, report, site)
        except RecursionError:  # the program is nearly as deep as it may get: there is no room to say so
            return None
        except Exception:  # a mistake in Nectar must not stop the program
            _log.exception("nothing is reused here")
            return None
        except BaseException as error:  # somebody has interrupted the program
            if not counted:
                _count_failed(session, error)
            raise

    # frames

    def collect(
        self, lf: pl.LazyFrame, *, optimizations: Any, background: bool = False, post_opt_callback: Any = None
    ) -> Any:
        """The frame of a query."""
        session = current()
        if session is None or post_opt_callback is not None:
            return self.inner.collect(
                lf, optimizations=optimizations, background=background, post_opt_callback=post_opt_callback
            )
        site = self._site(session)
        if background:
            return self._unfinished(session, site, lf, "collect", {"optimizations": optimizations, "background": True})
        if site is not None and site.limit:
            return self._collect_alone(session, site, lf, optimizations)
        return self._collect(session, site, lf, optimizations)

    def _collect(self, session: Session, site: Site | None, lf: pl.LazyFrame, optimizations: Any) -> pl.DataFrame:
        if site is None or session.steering.looks_at(site, _LOOKING):
            with running() as report:
                look = self._look(session, report, site)
                options = {"optimizations": optimizations}
                return self.inner.collect(lf, **options) if look is None else look.collect(lf, options)
        return self._collect_alone(session, site, lf, optimizations)

    def _collect_alone(self, session: Session, site: Site, lf: pl.LazyFrame, optimizations: Any) -> pl.DataFrame:
        """The frame of a query that Nectar cannot help, as far as it knows.

        There may be ten thousand. Between two of them Polars uses the caches of the processor, so that a call in here
        takes ten times what it takes in a loop: there are few.
        """
        steering = session.steering
        timer = steering.timer
        share = None if site.limit else steering.queries.share()
        begun = timer()
        try:
            if share is None:
                frame: pl.DataFrame = self.inner.collect(lf, optimizations=optimizations)
            else:
                with share:
                    frame = self.inner.collect(lf, optimizations=optimizations)
        except BaseException as error:
            try:
                _count_failed(session, error)
            except KeyboardInterrupt:  # of one Ctrl-C Polars makes two, and the second comes here
                _count_failed(session, error)
                raise
            raise
        seconds = timer() - begun
        if seconds <= site.limit:
            session.leave_quick_alone(site, seconds)
        elif steering.is_worth_a_late_look(site, seconds, _LOOKING):
            site = steering.sites.apart(site, seconds)
            self._look_late(session, site, lf, optimizations, frame, seconds, share.seconds if share else seconds)
        else:
            session.leave_alone(steering.ran_alone(steering.sites.apart(site, seconds), seconds))
        return frame

    def _look_late(
        self, session: Session, site: Site, lf: pl.LazyFrame, optimizations: Any, frame: pl.DataFrame, seconds: float,
        shared: float,
    ) -> None:  # fmt: skip
        """A query that was left alone, and took so long, has been looked at now that it has run.

        shared: its share of these seconds, if others ran beside it.
        """
        with running() as report:
            try:
                look = self._look(session, report, site, counted=True)
                if look is not None:
                    look.late(lf, optimizations, frame, seconds, shared)
            except (Exception, pl.exceptions.PanicException):  # a mistake in Nectar must not stop the program
                _log.exception("a query that has run could not be looked at")

    def execute(self, lf: pl.LazyFrame, *, optimizations: Any) -> Any:
        """The frame of a query, as Polars wraps it."""
        return SingleNodeQueryResult(self.collect(lf, optimizations=optimizations))

    def collect_all(self, lfs: Iterable[pl.LazyFrame], *, optimizations: Any) -> list[pl.DataFrame]:
        """The frames of several queries; those that are not known are computed together."""
        session = current()
        return self._collect_all(session, self._site(session), list(lfs), optimizations)

    def _collect_all(
        self, session: Session | None, site: Site | None, lfs: list[pl.LazyFrame], optimizations: Any
    ) -> list[pl.DataFrame]:
        if session is None:
            return self.inner.collect_all(lfs, optimizations=optimizations)  # type: ignore[no-any-return]
        if site is None or session.steering.looks_at(site, _LOOKING):
            with running() as report:
                look = self._look(session, report, site)
                if look is not None:
                    return look.collect_all(lfs, optimizations)
        if site is None:
            return self.inner.collect_all(lfs, optimizations=optimizations)  # type: ignore[no-any-return]
        return _left_alone(session, site, lambda: self.inner.collect_all(lfs, optimizations=optimizations), len(lfs))  # type: ignore[no-any-return]

    # in the background

    def collect_async(self, lf: pl.LazyFrame, *, optimizations: Any, gevent: bool = False) -> Any:
        """The frame of a query, to be awaited."""
        result: Any = _GeventDataFrameResult() if gevent else _AioDataFrameResult()
        session = current()
        site = self._site(session)  # here: the thread that runs it knows no program

        def run() -> Any:
            if session is None:
                return self.inner.collect(lf, optimizations=optimizations)._df
            return self._collect(session, site, lf, optimizations)._df

        _in_thread(run, result._callback)
        return result

    def collect_all_async(self, lfs: Iterable[pl.LazyFrame], *, optimizations: Any, gevent: bool = False) -> Any:
        """The frames of several queries, to be awaited."""
        result: Any = _GeventDataFrameResult() if gevent else _AioDataFrameResult()
        frames, session = list(lfs), current()
        site = self._site(session)
        _in_thread(
            lambda: [frame._df for frame in self._collect_all(session, site, frames, optimizations)],
            result._callback_all,
        )
        return result

    def collect_batches(self, lf: pl.LazyFrame, **options: Any) -> Any:
        """The result in batches."""
        session = current()
        if session is None:
            return self.inner.collect_batches(lf, **options)
        return self._unfinished(session, self._site(session), lf, "collect_batches", options)

    def _unfinished(
        self, session: Session, site: Site | None, lf: pl.LazyFrame, method: str, options: dict[str, Any]
    ) -> Any:
        """A result that is still being computed when it is handed out: how long it takes is not known."""
        looks = site is None or session.steering.looks_at(site, _LOOKING)

        def run() -> tuple[Any, Query | None, Look | None]:
            rewritten, query, look = self._rewritten(session, site, lf, options) if looks else (lf, None, None)
            return getattr(self.inner, method)(rewritten, **options), query, look

        result, query, look = _counted(session, run)
        if look is not None:
            look.end()
        session.totals.count_unkept("its result is handed out while it is being computed")
        return _lasting(result, query)

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
        session = current()
        write = getattr(self.inner, method)
        if session is None or (self.steers and is_own()):
            write(lf, target, **options)
            return
        site = self._site(session)
        if site is not None and not session.steering.looks_at(site, _LOOKING):
            _left_alone(session, site, lambda: write(lf, target, **options))
        else:
            _counted(session, lambda: self._sink_looked_at(session, site, write, lf, target, options))
        if isinstance(target, str | Path):
            learn_content(session, str(target))

    def _sink_looked_at(
        self, session: Session, site: Site | None, write: Any, lf: pl.LazyFrame, target: Any, options: dict[str, Any]
    ) -> None:
        rewritten, query, look = self._rewritten(session, site, lf, options)
        begun = session.steering.timer()
        try:
            write(rewritten, target, **options)
        except pl.exceptions.PanicException as error:
            if rewritten is lf or not isinstance(target, str | Path):
                raise
            _log.info("the query runs as it was given: Polars broke down over what we made of it: %s", error)
            write(lf, target, **options)
        finally:
            if query is not None:
                query.close()
        if look is not None:
            look.computing += session.steering.timer() - begun
            look.end()
        session.totals.count_unkept("its result went into a file or to a function")

    def _rewritten(
        self, session: Session, site: Site | None, lf: pl.LazyFrame, options: dict[str, Any]
    ) -> tuple[pl.LazyFrame, Query | None, Look | None]:
        """The query with its known parts as sources, or as it is; and the look that is to be ended."""
        look = self._look(session, RunReport(), site, counted=True)
        return (lf, None, None) if look is None else (*look.rewritten(lf, options["optimizations"]), look)


class _EngineOfAll(PolarsEngine):
    """The engine of all queries of a program, which nobody has asked for one by one."""

    steers = True


def _loaded(session: Session) -> type[Look]:
    """What looks at queries, its catalog open: the first one waits for that, which says nothing of what looks cost."""
    if _LOOKING not in sys.modules:
        with loading(session.steering, _LOOKING):
            import_module(_LOOKING)
            session.catalog  # noqa: B018 - it is opened
    from nectar.dialects.polars.collecting import Look

    return Look


def _left_alone(session: Session, site: Site, run: Callable[[], Any], queries: int = 1) -> Any:
    """What queries give that Nectar does not look at."""
    timer = session.steering.timer
    begun = timer()
    found = _counted(session, run, queries)
    seconds = timer() - begun
    quick = session.steering.ran_alone(site, seconds)
    session.leave_alone(quick, queries)
    return found


def _counted(session: Session, run: Callable[[], _T], queries: int = 1) -> _T:
    """What queries give; they are counted if they fail, or are interrupted."""
    try:
        return run()
    except BaseException as error:
        try:
            _count_failed(session, error, queries)
        except KeyboardInterrupt:  # as above
            _count_failed(session, error, queries)
            raise
        raise


def _count_failed(session: Session, error: BaseException, queries: int = 1) -> None:
    session.totals.count_failed(interrupted=is_interruption(error), number=queries)


def learn_content(session: Session, path: str) -> None:
    """Whoever reads a file that was just written knows it by its content, if there is time to read it."""
    if session.steering.ledger.left > 0.0:
        from nectar.dialects.polars import keeping

        keeping.learn_content(session, path)


def _plain_engine(inner: str | pl.Engine) -> Any:
    if isinstance(inner, PolarsEngine):
        return inner.inner
    if isinstance(inner, pl.Engine):
        return inner
    found = engine_config._engine_from_name(inner)  # type: ignore[arg-type]
    return found.inner if isinstance(found, PolarsEngine) else found


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
    by_name: Any = engine_config._ENGINE_BY_NAME
    for name, engine in list(by_name.items()):
        if not isinstance(engine, _EngineOfAll):  # two threads may be here at once: what is put back is always plain
            _replaced[name] = engine
            by_name[name] = _EngineOfAll(engine)


def uninstall() -> None:
    """From now on queries run as plain Polars."""
    by_name: Any = engine_config._ENGINE_BY_NAME
    while _replaced:
        by_name.update([_replaced.popitem()])
