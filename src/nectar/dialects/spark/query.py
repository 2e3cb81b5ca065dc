"""One request for a result, under Nectar: keyed, looked up, and kept when it has been computed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from nectar import __version__
from nectar.catalog.service import Catalog, Kept
from nectar.dialects.spark.circumstances import circumstances_of, environment
from nectar.dialects.spark.keying import Keyed, keyed, keyed_steps
from nectar.dialects.spark.relations import Step
from nectar.dialects.spark.results import Recording, is_whole
from nectar.dialects.spark.scope import Scope
from nectar.dialects.spark.servers import Engine, engine_of
from nectar.errors import NectarError, UserError
from nectar.keys.outcome import outcome_of
from nectar.keys.sources import functions_of
from nectar.model.entry import Entry
from nectar.model.lineage import FileRead, Sources
from nectar.report.run import Part
from nectar.session import Session
from nectar.store.read import Result

_log: Final = logging.getLogger("nectar.spark")
_FOREIGN: Final = "SQL text, views and tables are followed on embedded Sail only"


@dataclass(slots=True)
class Query:
    """A request whose plan has keys. part: its line in the report. recording: what the server answers.

    scope: what names meant when the keys were made. why_not: why the result is not kept, if it is known already.
    """

    session: Session
    catalog: Catalog
    keyed: Keyed
    part: Part
    began: float
    scope: Scope
    why_not: str = ""
    recording: Recording = field(default_factory=Recording)

    def known(self) -> pa.Table | None:
        """The result, if it is known."""
        if self.session.settings.refresh:
            return None
        node = self.keyed.root
        for answer in self.catalog.lookup(node.keys, [node.program] * len(node.keys)):
            table = None if answer.entry is None else self._opened(answer.entry)
            if answer.entry is not None and table is not None:
                return self._reused(answer.entry, table)
        return None

    def _opened(self, entry: Entry) -> pa.Table | None:
        try:
            opened = self.catalog.open(entry)
            table = opened.to_arrow() if isinstance(opened, Result) else None
        except NectarError as failure:
            _log.info("%s is computed again: %s", entry.about, failure)
            return None
        return table if table is not None and is_whole(table) else None

    def _reused(self, entry: Entry, table: pa.Table) -> pa.Table:
        self.part.outcome, self.part.saved, self.part.size = "reused", entry.seconds, entry.size
        self.part.key = entry.key.hex()
        return table

    def keep(self) -> None:
        """The result that was recorded is kept in the background, if it is worth it and its inputs are the same."""
        self.part.keeping = "being kept"
        self.session.keeper.submit(self._keep, self.recording.size)

    def _keep(self) -> None:
        part = self.part
        table = self.recording.table()
        if isinstance(table, str):
            part.keeping = f"not kept: {table}"
            return
        part.size = table.nbytes
        why_not = self.why_not or self.catalog.worth_keeping(part.seconds, table.nbytes).removeprefix("not kept: ")
        why_not = why_not or "; ".join(self.keyed.what_changed(self.session.inputs))
        if why_not:
            part.keeping = f"not kept: {why_not}"
        else:
            self._write(table)

    def _write(self, table: pa.Table) -> None:
        part, node = self.part, self.keyed.root
        answer = self.catalog.keep(
            node.key, node.program, table, table=True, seconds=part.seconds, about=part.name, made=self.began,
            replaces=self.session.settings.refresh, sources=self._sources,
        )  # fmt: skip
        part.keeping = "kept" if isinstance(answer, Kept) else f"not kept: {answer.reason}"
        if isinstance(answer, Kept):
            self.session.totals.count_kept(answer.entry.size)

    def _sources(self) -> Sources:
        files = dict.fromkeys(FileRead(each.url, each.names[0], each.size) for each in self.keyed.identities)
        walks = [outcome_of(each.function).walk for each in self.keyed.functions]
        functions = dict.fromkeys(used for walk in walks for used in functions_of(walk))
        return Sources(tuple(files), tuple(functions), environment=f"{environment()}, nectar {__version__}")


def query_of(session: Session, client: Any, root: Any, scope: Scope, part: Part) -> Query:
    """The query of a plan as everything is now. Raises NectarError, with the reason, if it has to run as it is."""
    engine = engine_of(client)
    if isinstance(engine, str):
        raise UserError(engine)
    catalog = session.catalog
    if catalog is None:
        raise UserError("the catalog cannot be used")
    began = session.clock.now()
    found = keyed(root, circumstances_of(client, engine), session.inputs, _followed(scope, engine))
    part.name = _about(found)
    if found.root.refusal:
        raise UserError(found.root.refusal)
    part.key = found.root.key.hex()
    return Query(session, catalog, found, part, began, scope)


def defined(session: Session, client: Any, steps: Sequence[Step], scope: Scope) -> Keyed:
    """The program of a definition as everything is now. Raises NectarError if the engine is not known."""
    engine = engine_of(client)
    if isinstance(engine, str):
        raise UserError(engine)
    return keyed_steps(steps, circumstances_of(client, engine), session.inputs, _followed(scope, engine))


def _followed(scope: Scope, engine: Engine) -> Scope:
    """The scope as far as an engine can be followed: others freeze files in views, and share names between sessions."""
    if engine.description[0] != "sail":
        return replace(scope, foreign=_FOREIGN)
    outer = any(setting.startswith("SAIL_CATALOG") for setting in engine.description)
    return scope.without_tables() if outer else scope  # tables of another catalog are changed by others too


def _about(found: Keyed) -> str:
    """What a result is, for people: its last step, and what it reads."""
    reads = [node.text for node in found.program.nodes if node.is_input]
    text = f"{found.root.text} of {', '.join(dict.fromkeys(reads))}" if reads else found.root.text
    return text if len(text) <= 200 else f"{text[:197]}..."
