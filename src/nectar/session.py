"""The session: settings, catalog, inputs and the work in the background, put together. The only wiring.

Dialects ask for `current()` and get a session, or None where Nectar is off. A process has one session by default, made
when first needed; `enable` replaces it, `reuse` does so for a block. Law: whatever fails in here, the program of the
user runs as it would without Nectar, and one line in the log says why.
"""

from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nectar.arrival import no_longer, when_imported
from nectar.catalog.keeper import Keeper
from nectar.clock import Clock, SystemClock
from nectar.errors import CatalogFailure, CatalogUnavailableError, EnvironmentFailure, NectarError
from nectar.forks import in_child
from nectar.overhead.garbage import take_seconds
from nectar.overhead.loading import loading
from nectar.overhead.sites import RECENT, Site
from nectar.overhead.steering import Steering
from nectar.report.run import RunReport
from nectar.report.totals import Kind, RunTotals, process_totals
from nectar.settings import Settings, load_settings
from nectar.trust.secrets import logger
from nectar.waiting.answering import is_unhurried
from nectar.waiting.health import Health

if TYPE_CHECKING:  # loaded when a query is looked at, which may never be
    from nectar.catalog.flights import Flights, Reservations
    from nectar.catalog.service import Catalog
    from nectar.store.inputs.identify import Inputs

_log: Final = logger("nectar")
_run: ContextVar[RunReport | None] = ContextVar("nectar_run", default=None)


class Session:
    """What programs that run under Nectar share: one catalog, one queue of results to be written."""

    def __init__(self, settings: Settings | None, clock: Clock | None = None) -> None:
        self.settings = settings or Settings(home=Path(os.devnull))
        self._without_settings = settings is None
        self.clock = SystemClock() if clock is None else clock
        self.totals = RunTotals(process_totals)
        self._queries = self.totals.queries
        self.steering = _steering(self.settings)
        self._lock = threading.RLock()
        self._closed = False
        self._begin()
        _sessions.add(self)

    def _begin(self) -> None:
        where = f"the catalog in {self.settings.home}"
        self.health = Health(where, self.settings.patience, self.clock)
        self.keeper = Keeper(ledger=self.steering.ledger, health=self.health)
        self.health.later = self.keeper.submit
        self.health.probe_with(self._open, self._open)  # until there is an index that knows better
        self._opening = threading.RLock()  # of the thread that opens the catalog; a finalizer may come in between
        self._handing = threading.Lock()  # held for a moment: when the catalog is there, or none is wanted any more
        self._over = False
        self._flights: Flights | None = None
        self.pending: dict[bytes, Any] = {}  # results of queries that are computed, and not yet written, by key
        self._catalog: Catalog | None = None
        self._reservations: Reservations | None = None
        self._inputs: Inputs | None = None
        self._failed = self._without_settings

    @property
    def catalog(self) -> Catalog | None:
        """The catalog; None if it cannot be used, or not yet, which was said in the log.

        Whoever asks has it probed when that is due, in whatever dialect: one that did not answer is opened later.
        """
        if self._catalog is None and not self._failed and not self._over:
            import nectar.catalog.embedded  # noqa: F401 - which takes its time, and that is not the catalog's

            # Threads of the program ask one after the other, so that all wait for what goes on step by step.
            with nullcontext() if is_unhurried() else self._lock, suppress(CatalogUnavailableError):
                self.health.ask(self._open, self.health.reading)
        return self._catalog

    def _open(self) -> None:
        """The catalog is there, if it can be opened. In a thread that goes on when the program waits no longer."""
        from nectar.catalog.embedded import open_catalog

        with self._opening:  # who comes second has what the first has opened
            if self._catalog is not None or self._failed or self._over:
                return
            try:
                catalog = open_catalog(self.settings, clock=self.clock, background=True, health=self.health)
            except CatalogUnavailableError:
                raise
            except NectarError as failure:
                self._failed = True
                _log.warning("nothing is reused or kept: %s", failure)
                return
            catalog.later = self.keeper.submit
            if self._takes(catalog):
                self.health.succeeded(self.health.reading)  # whoever has opened it, and however late
            else:
                catalog.close()

    def _takes(self, catalog: Catalog) -> bool:
        """Whether this is the catalog of the session now: unless it has one, or wants none any more."""
        with self._handing:
            if self._catalog is not None or self._over:
                return False
            self._catalog = catalog
            return True

    def _asked_catalog(self) -> Catalog:
        """The catalog. Raises CatalogFailure if it cannot be used, or not yet."""
        catalog = self.catalog
        if catalog is not None:
            return catalog
        kind = CatalogFailure if self._failed or self._over else CatalogUnavailableError
        raise kind(f"the catalog in {self.settings.home} cannot be used")

    @property
    def flights(self) -> Flights:
        """Who computes what, among the threads of this process."""
        if self._flights is None:
            from nectar.catalog.flights import Flights

            with self._lock:
                if self._flights is None:
                    self._flights = Flights()
        return self._flights

    @property
    def reservations(self) -> Reservations:
        """Who computes what, among processes. Raises CatalogFailure if the catalog cannot be used."""
        if self._reservations is None:
            from nectar.catalog.flights import Reservations

            catalog = self._asked_catalog()
            with self._lock:
                if self._reservations is None:
                    self._reservations = Reservations(catalog)
        return self._reservations

    @property
    def inputs(self) -> Inputs:
        """The identities of files. Raises CatalogFailure if the catalog cannot be used."""
        if self._inputs is None:
            from nectar.store.inputs.identify import Inputs

            self._inputs = Inputs(
                self._asked_catalog(), self.clock, identity=self.settings.identity, shared=self.settings.shared,
                host=socket.gethostname(),
            )  # fmt: skip
        return self._inputs

    def use_inputs(self, inputs: Inputs) -> None:
        """From now on files are identified by these."""
        self._inputs = inputs

    def leave_alone(self, quick: bool, number: int = 1, kind: Kind = "query") -> None:
        """Takes up queries or calls that ran without a look, in the report of their run and in the totals."""
        global _last
        run = _run.get()
        if run is None and number == 1:
            _last = _ALONE[quick, kind]
        else:
            if run is None:
                run = _last = RunReport()
            run.leave_alone(quick, number, kind)
        self.totals.leave_alone(quick, number, kind)

    def leave_quick_alone(self, site: Site, seconds: float) -> None:
        """Takes up a query that took so long, at a site that proved quick."""
        global _last
        site.seconds += (seconds - site.seconds) * RECENT
        self.steering.left_alone += 1
        run = _run.get()
        if run is None:
            _last = _QUICK
        else:
            run.leave_alone(True)
        self._queries.alone += 1
        _queries.alone += 1

    def leave_quick_call_alone(self, site: Site, seconds: float) -> None:
        """The same for a call of a memoised function."""
        global _last
        site.seconds += (seconds - site.seconds) * RECENT
        self.steering.left_alone += 1
        run = _run.get()
        if run is None:
            _last = _QUICK_CALL
        else:
            run.leave_alone(True, kind="call")
        self.totals.calls.alone += 1
        process_totals.calls.alone += 1

    def settle(self, timeout: float | None = None) -> bool:
        """Whether everything that was to be kept is written, after waiting so long at most."""
        return self.keeper.wait(timeout)

    @contextmanager
    def looking(self) -> Iterator[Catalog | None]:
        """The catalog for somebody who only has a question, also after the session has been closed."""
        if not self._closed:
            yield self.catalog
            return
        from nectar.catalog.embedded import open_catalog

        catalog = open_catalog(replace(self.settings, read_only=True), clock=self.clock)
        try:
            yield catalog
        finally:
            catalog.close()

    def close(self) -> None:
        """Everything is written, as far as the time allows; the session must not be used any more."""
        _sessions.discard(self)
        self._closed = True
        self.keeper.close(self.settings.linger)
        self.health.tell_at_end()
        with self._handing:
            self._over = True
        if self._reservations is not None:
            self._reservations.close()
        if self._catalog is not None:
            with suppress(EnvironmentFailure):
                self._catalog.close()

    def after_fork(self) -> None:
        """In a child process: threads, locks and open files of the parent are none of ours."""
        _inherited.append((self.keeper, self._flights, self._catalog, self._reservations))  # closing would harm them
        self._lock = threading.RLock()
        self.steering = _steering(self.settings)
        self._begin()


def _steering(settings: Settings) -> Steering:
    """What this process knows of its program and of its own cost; sessions with the same settings share it."""
    forgets = settings.read_only or settings.home == Path(os.devnull)
    memory = None if forgets else settings.home / "programs"
    chosen = (settings.overhead, settings.overhead_floor, memory, settings.patience)
    if chosen not in _steerings:
        made = _steerings[chosen] = Steering(*chosen[:3], patience=settings.patience)
        made.ledger.spend("starting", take_seconds())  # until now there was no account
    return _steerings[chosen]


_steerings: Final[dict[tuple[float, float, Path | None, float], Steering]] = {}

# which session is in force

_sessions: weakref.WeakSet[Session] = weakref.WeakSet()
_inherited: Final[list[object]] = []
_lock = threading.RLock()
_chosen: Session | None = None  # by enable(), or the default once it was needed
_enabled = _disabled = False  # whether the program wants hooks, or no Nectar at all; neither until it says so
_block: ContextVar[Session | None] = ContextVar("nectar_session", default=None)
_blocks: Final[list[Session]] = []  # of all threads, for threads that a block has started
_last: RunReport = RunReport()
# Reports of one query that was left alone: there may be ten thousand, each a matter of microseconds.
_ALONE: Final[dict[tuple[bool, Kind], RunReport]] = {
    (quick, kind): RunReport.of_one_left_alone(quick, kind) for quick in (True, False) for kind in ("query", "call")
}
_QUICK: Final = _ALONE[True, "query"]
_QUICK_CALL: Final = _ALONE[True, "call"]
_queries: Final = process_totals.queries
# Modules of dialects that hook into an engine with install() and uninstall(), by the library they need.
_DIALECTS: Final[dict[str, str]] = {
    "polars": "nectar.dialects.polars.installing",
    "pyspark.sql.connect.client.core": "nectar.dialects.spark.api",
}
# Modules that give programs an engine which name none; with caching or without it.
_ENGINES: Final[dict[str, str]] = {"pyspark.sql.session": "nectar.dialects.spark.default"}


def current() -> Session | None:
    """The session in force, or None where Nectar is off."""
    session = _block.get()
    if session is None:
        if _blocks:
            session = _blocks[-1]
        elif _disabled:
            return None
        else:
            session = _chosen or _default()
    return None if session.settings.off else session


def _default() -> Session:
    global _chosen
    with _lock:
        if _chosen is None:
            _chosen = Session(_settings({}))
        return _chosen


def _settings(overrides: dict[str, Any]) -> Settings | None:
    """The settings in force; None if they mean nothing, which is the caller's mistake if they do otherwise."""
    try:
        return load_settings(overrides)
    except NectarError as error:
        if overrides and _are_well_without():
            raise
        _log.warning("%s; until you fix this, nothing is reused or kept", error)
        return None


def _are_well_without() -> bool:
    """Whether the settings mean something if the program gives none: a file may have come with a repository."""
    try:
        load_settings({})
    except NectarError:
        return False
    return True


def enable(**settings: Any) -> None:
    """From now on, every engine call and every memoised function of this process goes through Nectar.

    Settings given here win over the environment and over files; see the reference for their names.
    """
    global _chosen, _enabled, _disabled
    chosen = Session(_settings(settings))
    with _lock:
        before, _chosen, _enabled, _disabled = _chosen, chosen, not chosen.settings.off, False
    if before is not None:
        before.close()
    if chosen.settings.off:  # the same program on the same engine
        _uninstall(_DIALECTS)
        _install(_ENGINES)
    else:
        _install()


def disable() -> None:
    """From now on everything runs as without Nectar. What was computed so far is written first."""
    global _chosen, _enabled, _disabled
    with _lock:
        before, _chosen, _enabled, _disabled = _chosen, None, False, True
    _uninstall()
    if before is not None:
        before.close()


@contextmanager
def reuse(**settings: Any) -> Iterator[RunReport]:
    """Within the block, engine calls and memoised functions go through Nectar with these settings.

    The report that the block gets fills up with everything that runs in it.
    """
    session = Session(_settings(settings))
    report = RunReport()
    token, run_token = _block.set(session), _run.set(report)
    _blocks.append(session)
    _install()
    try:
        yield report
    finally:
        _run.reset(run_token)
        _block.reset(token)
        _blocks.remove(session)
        if not _blocks and not _enabled:  # a block within a block leaves the outer one as it was
            _uninstall()
            if _blocks or _enabled:  # another thread has begun one meanwhile, and found the hooks in place
                _install()
        session.close()
        report.own_time = own_time()
        _remember(report)


def _install(modules: Mapping[str, str] | None = None) -> None:
    for library, module in (_DIALECTS | _ENGINES if modules is None else modules).items():
        when_imported(library, partial(_hook, module, "install"))


def _uninstall(modules: Mapping[str, str] | None = None) -> None:
    for library, module in (_DIALECTS | _ENGINES if modules is None else modules).items():
        no_longer(library)
        if module in sys.modules:
            _hook(module, "uninstall")


def _hook(module: str, action: str) -> None:
    """A dialect gets between programs and their engine, or goes; if it cannot, programs run as they would anyway."""
    session = _block.get() or _chosen  # none is made for it
    with loading(None if session is None else session.steering):
        try:
            getattr(import_module(module), action)()
        except Exception:
            _log.exception("%s: %s failed", module, action)


# reports


def last_run() -> RunReport:
    """What the latest run did: its text is one line, `details()` has a line for each part, `why` the reasons."""
    _last.own_time = own_time()
    return _last


class running:  # noqa: N801 - read as a word: `with running() as report:`
    """Within the block, parts belong to one run: that of an outer block, or a new one, which is the last afterwards."""

    __slots__ = ("_report", "_token")

    def __enter__(self) -> RunReport:
        outer = _run.get()
        if outer is not None:
            self._token = None
            return outer
        self._report = RunReport()
        self._token = _run.set(self._report)
        return self._report

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _run.reset(self._token)
            _remember(self._report)


def _remember(report: RunReport) -> None:
    global _last
    _last = report


def own_time() -> dict[str, float]:
    """The seconds that Nectar itself has taken in this process so far, by what it did."""
    spent: dict[str, float] = {}
    for steering in list(_steerings.values()):
        for purpose, seconds in list(steering.ledger.spent.items()):
            spent[purpose] = spent.get(purpose, 0.0) + seconds
    return spent


# processes


def _end() -> None:
    """Everything is written; what the program does after this, in handlers and threads of its own, runs without us."""
    global _chosen, _disabled
    sessions = list(_sessions)  # held before they are let go
    _chosen, _disabled = None, True
    for session in sessions:
        session.close()
    for steering in _steerings.values():
        steering.remember()


@in_child
def _begin_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    _steerings.clear()
    for session in list(_sessions):
        session.after_fork()
    util: Any = sys.modules.get("multiprocessing.util")
    if util is not None:
        # multiprocessing forgets all finalizers in its children, and calls these afterwards.
        util.register_after_fork(_sessions, lambda _: _close_with_child(util))


def _close_with_child(util: Any) -> None:
    """Children of multiprocessing end without `atexit`; they have a list of their own."""
    util.Finalize(None, _end, exitpriority=100)


atexit.register(_end)
if getattr(sys.modules.get("multiprocessing.process"), "parent_process", lambda: None)() is not None:
    _close_with_child(sys.modules["multiprocessing.util"])  # a child that was started anew, and not forked
