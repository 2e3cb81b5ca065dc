"""One request for a result, under Nectar: keyed, looked up, and kept when it has been computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.connect.proto import relations_pb2

from nectar import __version__
from nectar.catalog.service import Catalog, Kept, NotKept
from nectar.dialects.spark.circumstances import digest_of_circumstances, environment, settings_of
from nectar.dialects.spark.connections import Connection, connection_of
from nectar.dialects.spark.constants import why_refused_constants
from nectar.dialects.spark.day import Day, day_of
from nectar.dialects.spark.derived import results_in
from nectar.dialects.spark.elsewhere import Elsewhere
from nectar.dialects.spark.fresh import put_states
from nectar.dialects.spark.keyed import Keyed, about
from nectar.dialects.spark.keying import keyed, keyed_steps
from nectar.dialects.spark.relations import Step
from nectar.dialects.spark.results import Recording, schema_bytes, with_shape
from nectar.dialects.spark.scope import Scope
from nectar.dialects.spark.servers import Engine, engine_of
from nectar.dialects.spark.sight import why_another_now
from nectar.dialects.spark.tables import why_altered
from nectar.dialects.spark.timing import Timing
from nectar.dialects.spark.validity import Validity
from nectar.errors import EnvironmentFailure, UserError
from nectar.model.entry import Entry, Lease, Reservation, Span
from nectar.recipes.folder import working_folder
from nectar.report.run import Part
from nectar.report.site import call_site
from nectar.rewrite.choose import Choice
from nectar.session import Session
from nectar.store.inputs.identity import Identity

if TYPE_CHECKING:
    from nectar.catalog.handover import Handover
    from nectar.model.lineage import Sources


@dataclass(slots=True)
class Query:
    """A request whose plan has keys.

    plan: its root relation, ours to change. part: its line in the report. scope: what names meant when the keys were
    made. choice: what is known of it. answer: the whole result, if that is known. known: what stands in the plan for
    parts. recording: what the server answers. result: what was put together from parts of its files (`incremental`), in
    the place of a recording; made_from: from which. spans, shape: how it is found again as a part of a larger one.
    given: the plan as the program sent it. settings: of the session, when the keys were made. site, folder: where in
    the program, and in which folder, it was asked for. asked: somebody wants it kept, whatever it is worth.
    reservation: while others wait for what this process computes. timing: what it takes; None if it is not run.
    """

    session: Session
    catalog: Catalog
    engine: Engine
    keyed: Keyed
    plan: Any
    part: Part
    began: float
    scope: Scope
    choice: Choice = field(default_factory=lambda: Choice({}, (), ()))
    answer: pa.Table | None = None
    lookups: dict[int, int] = field(default_factory=dict)  # of nodes that may be reused: how often they were asked for
    known: dict[int, tuple[Entry, Any]] = field(default_factory=dict)
    leases: list[Lease] = field(default_factory=list)
    scope_now: Callable[[], Scope] | None = None  # what names mean by now
    recording: Recording = field(default_factory=Recording)
    result: pa.Table | None = None
    made_from: list[Entry] = field(default_factory=list)
    spans: tuple[Span, ...] = ()
    shape: bytes = b""
    given: Any = None
    settings: Mapping[str, str] = field(default_factory=dict)
    site: str = ""
    folder: str = ""
    asked: bool = False
    reservation: Reservation | None = None
    timing: Timing | None = None

    @property
    def is_known(self) -> bool:
        """Whether the whole result was known, so that at most it is read."""
        return self.keyed.program.root in self.choice.hits

    def reused_parts(self) -> list[Part]:
        """A line of the report for each part that is reused; if it is the whole, that is said in its own line."""
        if self.is_known:
            entry = self.choice.hits[self.keyed.program.root]
            self.part.outcome, self.part.saved, self.part.size = "reused", entry.seconds, entry.size
            self.part.key, self.part.explain = entry.key.hex(), None
            return []
        return [
            Part(entry.about, "reused", 0.0, entry.seconds, entry.size, key=entry.key.hex(), kind="step")
            for entry in (*self.choice.hits.values(), *self.made_from)
        ]

    @property
    def seconds_reused(self) -> float:
        """Seconds that the engine would have taken for what was found."""
        return sum(entry.seconds for entry in (*self.choice.hits.values(), *self.made_from))

    @property
    def names_changed(self) -> str:
        """Says that another thread taught the server something since the keys were made; empty if none did."""
        same = self.scope_now is None or self.scope_now() is self.scope
        return "" if same else "names changed their meaning while it ran"

    def forget_known(self) -> None:
        """Nothing of the store stands in the plan that is sent."""
        self.known.clear()
        self.answer, self.choice = None, Choice({}, (), ())
        self.release()

    def abandon(self) -> None:
        """Nothing comes of this computation: files of the store are not needed, and nobody need wait for it."""
        self.release()
        self._give_back()

    def _give_back(self) -> None:
        reservation, self.reservation = self.reservation, None
        if reservation is not None:
            with suppress(EnvironmentFailure):  # then it ends by itself
                self.session.reservations.give_back(reservation)

    def rows_have_come(self) -> None:
        """From now on it takes as long as the program takes, for which others need not wait for ever."""
        if self.reservation is not None:
            self.session.reservations.done(self.reservation)

    def release(self) -> None:
        """Files of the store are not needed any longer."""
        leases, self.leases = self.leases, []
        if leases:
            with suppress(EnvironmentFailure):  # then they end by themselves
                self.catalog.end(leases)

    def keep(self) -> None:
        """The result is there, and is kept in the background, if it is worth it and its inputs are the same."""
        self.release()
        if self.is_known or self.keyed.root.refusal:
            return
        # Until now: what the program does to names, or to what functions have captured, from now on does not matter.
        changed = self.names_changed or self.keyed.why_functions_differ()
        if changed:
            self.part.keeping = f"not kept: {changed}"
            self._give_back()
            return
        size = self.recording.size if self.result is None else self.result.nbytes
        why_not = "" if self.asked else self.session.steering.why_not_keep(self._without, size)
        if why_not:
            self.part.keeping = f"not kept: {why_not}"
            self._give_back()
            return
        self.part.keeping = "being kept"
        if self.timing is not None and self.timing.site is not None:
            self.timing.site.kept_now = True
        # Loaded now, and not at the end of the process: see `Invocation._submit` of plain functions.
        from nectar.dialects.spark import recipe  # noqa: F401

        self.session.keeper.submit(self._keep, size)

    @property
    def _without(self) -> float:
        """Seconds that the program would have taken for it without Nectar."""
        return self.part.seconds if self.timing is None else self.timing.engine + self.timing.reused

    def _keep(self) -> None:
        try:
            self._keep_if_worth_it()
        finally:
            self._give_back()  # if it is kept, it has gone with that

    def _keep_if_worth_it(self) -> None:
        part = self.part
        table = self.recording.table() if self.result is None else self.result
        if isinstance(table, str):
            part.keeping = f"not kept: {table}"
            return
        part.size = table.nbytes
        why_not = "" if self.asked else self.catalog.worth_keeping(part.seconds, table.nbytes)
        why_not = why_not.removeprefix("not kept: ")
        changed = self.keyed.what_changed(self.session.inputs, but_light_functions=True)
        why_not = why_not or "; ".join(changed) or self.why_another()
        if why_not:
            part.keeping = f"not kept: {why_not}"
        else:
            self._write(table)

    def why_another(self) -> str:
        """Why a server elsewhere may have read other files than those that the key stands for."""
        server = self.engine.elsewhere
        if server is None:
            return ""
        reason = next(filter(None, (why_another_now(server, source) for source in self.keyed.sources)), "")
        return reason or why_altered(server, self.keyed.tables)

    def why_old(self) -> str:
        """Why the server may answer with what it, or another session, has known for long; empty if it does not."""
        server = self.engine.elsewhere
        if server is None or not self.keyed.by_name:
            return ""
        try:
            cached = server.has_cached(self.plan)
        except EnvironmentFailure as error:
            return str(error)
        return "the server has cached a part of it, which may be older than its files" if cached else ""

    def _write(self, table: pa.Table) -> None:
        part = self.part
        table = with_shape(table, self.shape) if self.spans else table
        replaces = self.session.settings.refresh or self.asked
        begun = perf_counter()
        seconds = part.seconds if self.timing is None else self.timing.share_of(part.seconds)
        answer = self._kept(self.keyed.program.root, table, seconds, replaces)
        if isinstance(answer, Kept):
            self.session.steering.wrote(table.nbytes, perf_counter() - begun)
        part.keeping = "kept" if isinstance(answer, Kept) else f"not kept: {answer.reason}"

    def keep_part(self, number: int, place: Handover, seconds: float) -> Kept | NotKept:
        """What the engine has written of a node is kept."""
        return self._kept(number, place, seconds, replaces=False)

    def _kept(self, number: int, value: pa.Table | Handover, seconds: float, replaces: bool) -> Kept | NotKept:
        from nectar.dialects.spark.recipe import recorded  # takes long to load

        node = self.keyed.program.nodes[number]
        below = self.keyed.program.below(number, self.known)
        made_from = [self.known[each][0] for each in below if each in self.known]
        is_root = number == self.keyed.program.root
        made_from += self.made_from if is_root else []
        recipe = recorded(self, number, value, seconds, made_from)
        answer = self.catalog.keep(
            node.key, node.program, value, table=True, seconds=seconds, made_from=made_from,
            spans=self.spans if is_root else (), about=about(self.keyed, number), made=self.began, replaces=replaces,
            recipe=recipe.identity, rebuildable=recipe.rebuildable,
            sources=lambda: self.sources_of(number, self.keyed.files_below(number), value),
        )  # fmt: skip
        if isinstance(answer, Kept):
            self.session.totals.count_kept(answer.entry.size)
        return answer

    def sources_of(
        self, number: int, identities: Iterable[Identity], value: pa.Table | Handover | None = None
    ) -> Sources:
        """What a result of a node came from, if it was made of these files. value: the result, if it is at hand."""
        from nectar.keys.sources import functions_used
        from nectar.model.lineage import FileRead, Sources

        files = dict.fromkeys(FileRead(each.url, each.names[0], each.size) for each in identities)
        reached = [function for each in self.keyed.functions_below(number) for function in each.reached]
        functions = functions_used(reached)
        engine = " ".join(self.engine.description[:2])
        schema = schema_bytes(value) if isinstance(value, pa.Table) else None
        return Sources(
            tuple(files), tuple(functions), results_in(self.given), schema,
            f"{engine}, {environment()}, nectar {__version__}", self.site,
        )  # fmt: skip


def query_of(session: Session, client: Any, root: Any, scope: Scope, part: Part) -> Query:
    """The query of a plan as everything is now. Raises NectarError, with the reason, if it has to run as it is."""
    engine = engine_of(client)
    if isinstance(engine, str):
        raise EnvironmentFailure(engine)
    catalog = session.catalog
    if catalog is None:
        raise UserError("the catalog cannot be used")
    began = session.clock.now()
    plan = relations_pb2.Relation()
    plan.CopyFrom(root)
    elsewhere, settings = _elsewhere(session, engine), settings_of(client, engine)
    day = day_of(session.clock.now, settings, is_remote=elsewhere is not None)
    frame, validity = digest_of_circumstances(engine, settings), _validity(client, engine, began, day)
    found = keyed(plan, frame, session.inputs, _followed(scope, engine), elsewhere, validity)
    part.name = about(found, found.program.root)
    if elsewhere is not None and found.root.refusal in elsewhere.unseen:
        raise EnvironmentFailure(found.root.refusal)
    doubt = _why_not_elsewhere(root, found, engine.elsewhere)
    refusal = found.root.refusal or doubt
    if refusal and (found.barred or doubt or not engine.shares_files):
        raise UserError(refusal)
    put_states(plan, found.states)
    query = Query(session, catalog, engine, found, plan, part, began, scope)
    query.given, query.settings, query.site, query.folder = root, settings, call_site(), working_folder()
    query.recording.why_not = refusal
    part.key = "" if refusal else found.root.key.hex()
    return query


def defined(session: Session, client: Any, steps: Sequence[Step], scope: Scope, now: Scope) -> Keyed:
    """The program of a definition as everything is now. Raises NectarError if the engine is not known.

    scope: what the names in it mean. now: what names mean to the session.
    """
    engine = engine_of(client)
    if isinstance(engine, str):
        raise UserError(engine)
    settings, elsewhere = settings_of(client, engine), _elsewhere(session, engine)
    day = day_of(session.clock.now, settings, is_remote=elsewhere is not None)
    circumstances = digest_of_circumstances(engine, settings)
    validity = _validity(client, engine, session.clock.now(), day)
    followed, now = _followed(scope, engine), _followed(now, engine)
    return keyed_steps(steps, circumstances, session.inputs, followed, elsewhere, validity, now)


def _followed(scope: Scope, engine: Engine) -> Scope:
    """The scope as far as an engine can be followed: tables of a catalog that others see are changed by others too."""
    return scope.without_tables() if _has_outer_catalog(engine) or not engine.is_embedded else scope


def _has_outer_catalog(engine: Engine) -> bool:
    return any(setting.startswith("SAIL_CATALOG") for setting in engine.description)


def _validity(client: Any, engine: Engine, now: float, day: Day) -> Validity:
    """For sources that are good for a while; tables count where others than the session can know them."""
    if engine.elsewhere is not None:
        return Validity(now, engine.elsewhere.endpoint, engine.elsewhere.table, day)
    return Validity(now, table=connection_of(client).table if _has_outer_catalog(engine) else None, day=day)


def _elsewhere(session: Session, engine: Engine) -> Elsewhere | None:
    return None if engine.elsewhere is None else Elsewhere(engine.elsewhere, engine.settings, session)


def _why_not_elsewhere(root: Any, found: Keyed, connection: Connection | None) -> str:
    """Why a plan is not reused on a server that remembers, and computes constants first."""
    if connection is None:
        return ""
    if found.declared and connection.has_cached(root):
        return "the server has cached a part of it, which may be older than the time that its sources are valid for"
    return why_refused_constants(root, found.facts)
