"""What grows with its files is made from parts that are known; what is learned on the way is kept.

In: a query that was asked for before, over other files. Out: its result, or None. Law: whatever goes wrong in here, the
query runs as it is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from nectar.catalog.rates import LearnedRates
from nectar.catalog.service import Kept
from nectar.dialects.spark.connections import is_passing
from nectar.dialects.spark.incremental.files import Folders
from nectar.dialects.spark.incremental.parts import Parts, RowParts, Rules, StateParts
from nectar.dialects.spark.incremental.plans import Plan
from nectar.dialects.spark.incremental.server import NotPutTogether, PartIsGone, Server
from nectar.dialects.spark.incremental.tables import as_expected
from nectar.dialects.spark.manners import SAIL, SPARK
from nectar.dialects.spark.persisted import is_asked_for
from nectar.dialects.spark.query import Query
from nectar.dialects.spark.results import shape_of, without_shape
from nectar.keys.scheme import digest_of
from nectar.model.entry import Entry
from nectar.rewrite.consistency import reusable
from nectar.rewrite.cost import Rates
from nectar.rewrite.covering import Covering, covered
from nectar.rewrite.segments import Run
from nectar.rewrite.states import Piece, are_useless, put_together
from nectar.store.read import Result
from nectar.trust.secrets import logger

_log: Final = logger("nectar.spark")
# States go to the engine and come back, and each plan takes its time.
rates = {
    SAIL: LearnedRates("spark", Rates(SAIL.plan_seconds, opening=1e-3, merging=4e-8, reading=5e-9)),
    SPARK: LearnedRates("spark server", Rates(SPARK.plan_seconds, opening=1e-3, merging=4e-8, reading=5e-9)),
}
_failures: Final[dict[bytes, int]] = {}  # how often a program could not be put together, though it seemed so
_CHANCES: Final = 2  # each costs what was computed of parts
_REMEMBERED: Final = 1024
LEAST_PLANS = 5  # what takes less than so many plans is computed as it is: each part takes one of its own


def grown(query: Query, server: Server) -> pa.Table | None:
    """The result of a query, put together from what is known of parts of its files; None if it has to run as it is."""
    if query.keyed.root.refusal:  # should the rest of it fail, it may not run twice
        return None
    if not query.engine.shares_files:  # it may not see links that are made here
        return None
    if query.scope.instead:  # an engine may take a function of the user's for its own
        return None
    if _failures.get(query.keyed.root.program, 0) >= _CHANCES or _is_cheap(query):
        return None
    folders = Folders()
    table: pa.Table | None = None
    try:
        table = _Growing(query, server, folders).result()
    except PartIsGone as gone:
        _log.info("what is known of parts of files could not be used: %s", gone)
    except Exception as error:
        _log.info("what is known of parts of files could not be used: %s", error)
        if not is_passing(error):
            _note_failure(query.keyed.root.program)
    finally:
        folders.close()
    if table is None:
        query.made_from.clear()
        return None
    known = len(query.made_from)
    query.part.explain = lambda: f"put together from {known} known part{'s' if known != 1 else ''} and what is new"
    return table


def _note_failure(program: bytes) -> None:
    _failures[program] = _failures.get(program, 0) + 1
    while len(_failures) > _REMEMBERED:
        _failures.pop(next(iter(_failures)))


def _is_cheap(query: Query) -> bool:
    """Whether the program took so little time when it last ran that asking for parts would take longer."""
    program = query.keyed.root.program
    past = query.catalog.inquire([program])[program]
    least = LEAST_PLANS * query.engine.manner.plan_seconds
    return bool(past) and max(past, key=lambda entry: entry.created).seconds < least


class _Growing:
    def __init__(self, query: Query, server: Server, folders: Folders) -> None:
        self._query, self._server = query, server
        self._keyed, self._program = query.keyed, query.keyed.program
        self._steps: dict[int, list[int]] = {}
        for step, node in enumerate(query.keyed.node_of):
            self._steps.setdefault(node, []).append(step)
        known = {step: relation for node, (_, relation) in query.known.items() for step in self._steps[node]}
        self._plan = Plan(query.keyed.steps, known)
        self._rules = Rules(query.keyed, self._plan, server, folders, query.session.settings.exact_floats)
        self._apart = query.keyed.apart()

    def result(self) -> pa.Table | None:
        """The result of the query; None if nothing of it could be put together."""
        found = self._put_together()
        if not found:
            return None
        parts, table = found.get(self._program.root, (None, None))
        if isinstance(parts, RowParts):
            return table
        root = len(self._plan.steps) - 1
        expected = self._server.empty(self._plan.relation(root, {}))
        here = parts.finished_here(table) if isinstance(parts, StateParts) else None
        if here is not None:
            return as_expected(here, expected)
        instead = {
            self._rules.place_of(step): parts.finished(table)
            for node, (parts, table) in found.items()
            for step in self._steps[node]
        }
        return as_expected(self._server.run(self._plan.relation(root, instead)), expected)

    def _put_together(self) -> dict[int, tuple[Parts, pa.Table]]:
        """The largest nodes that can be put together: how, and the part of everything."""
        allowed = reusable(self._program)
        found: dict[int, tuple[Parts, pa.Table]] = {}
        seen: set[int] = set()
        pending = [self._program.root]
        while pending:
            node = pending.pop()
            if node in seen or node in self._query.known or node not in self._steps:  # or it is behind a name
                continue
            seen.add(node)
            whole = self._advanced(node) if allowed[node] and self._may_be(node) else None
            if whole is None:
                pending.extend(self._program.nodes[node].inputs)
            else:
                found[node] = whole
        return found

    def _may_be(self, node: int) -> bool:
        """Whether a copy of the rows of a node can take its place. What somebody has cached the engine keeps itself."""
        if is_asked_for(self._program.nodes[node].program):
            return False
        places = {self._keyed.node_of[self._rules.place_of(step)] for step in self._steps[node]}
        return node == self._program.root or places <= self._apart

    def _advanced(self, node: int) -> tuple[Parts, pa.Table] | None:
        """How a node is put together, and the part of everything; None if it is not."""
        parts = self._rules.parts_of(node, self._steps[node][0])
        if isinstance(parts, str):
            _log.debug("%s is computed as a whole: %s", self._program.nodes[node].text, parts)
            return None
        work = _Work(self._query, parts)
        table = work.states() if parts.are_states else work.rows()
        if table is None:
            return None
        self._query.made_from += work.used
        return parts, table


class _Work:
    """Puts one node together."""

    def __init__(self, query: Query, parts: Parts) -> None:
        self._query, self._parts = query, parts
        self._cut = parts.stream.cut
        self._rates = rates[query.engine.manner]
        self._entries = query.catalog.inquire([parts.program])[parts.program]
        self.used: list[Entry] = []

    def _covering(self) -> Covering:
        parts, known = self._parts, self._rates.of(self._query.catalog)
        return covered(0, self._cut.count, self._cut, self._entries, parts.key, known, states=parts.are_states)

    def states(self) -> pa.Table | None:
        """The state of everything, made of others; all are kept. None if the whole is better computed."""
        covering = self._covering()
        if not covering.is_worth_it or are_useless(self._cut, covering, self._entries):
            return None
        done = put_together(self._cut, covering, self._entries, self)
        for piece in [*done.new, *done.merged]:
            _keep_state(self._query, self._parts, piece)
        self._query.session.keeper.submit(lambda: self._rates.remember(self._query.catalog))
        return done.whole.frame

    def rows(self) -> pa.Table | None:
        """The result made of rows; None if nothing of it is known. It is found again as part of a larger one."""
        self._query.spans = self._cut.spans_of(0, self._cut.count)
        self._query.shape = self._shape
        covering = self._covering()
        if not covering.known or not covering.is_worth_it:
            return None
        tables = [
            self.read(piece.what) if isinstance(piece, Run) else self.computed(piece.start, piece.end).frame
            for piece in covering.pieces
        ]
        return self._parts.merged(tables)

    @property
    def _shape(self) -> bytes:
        return digest_of(self._parts.stream.shape)

    def read(self, entry: Entry) -> pa.Table:
        """The part that an entry holds."""
        opened = self._query.catalog.open(entry)
        if not isinstance(opened, Result):
            raise PartIsGone(f"{entry.about} is gone")
        table = opened.to_arrow()
        if not self._parts.are_states:
            if shape_of(table) != self._shape:
                raise NotPutTogether("its files were read with other types")
            table = without_shape(table)
        self.used.append(entry)
        return self._parts.taken(table)

    def computed(self, start: int, end: int) -> Piece[pa.Table]:
        """The part of a run of files; only they are read."""
        begun = time.perf_counter()
        stream = self._parts.stream
        table = self._parts.taken(stream.server.run(self._parts.part(stream.reads(start, end))))
        return Piece(start, end, table, time.perf_counter() - begun)

    def merged(self, pieces: Sequence[Piece[pa.Table]]) -> Piece[pa.Table]:
        """The part of neighbouring runs; what that took is learned from."""
        size = sum(piece.frame.nbytes for piece in pieces)
        begun = time.perf_counter()
        table = self._parts.merged([piece.frame for piece in pieces])
        seconds = time.perf_counter() - begun
        self._rates.learn(self._query.catalog, size, seconds, states=True)
        return Piece(pieces[0].start, pieces[-1].end, table, seconds + sum(piece.seconds for piece in pieces))

    def extended(self, head: Run[Entry], end: int) -> Piece[pa.Table] | None:
        """Nothing: states pass the client, so that there are never many groups."""
        return None


def _keep_state(query: Query, parts: Parts, piece: Piece[pa.Table]) -> None:
    """A state is kept in the background, if it is worth it and its files are what they were."""
    if query.names_changed:
        return
    count = piece.end - piece.start
    what = f"state of {query.part.name}, {count} file{'s' if count > 1 else ''}"
    cut, key = parts.stream.cut, parts.key(piece.start, piece.end)
    node = query.keyed.node_of[parts.step]
    cut_up = {identity.url for identity in cut.seen}
    beside = [identity for identity in query.keyed.files_below(node) if identity.url not in cut_up]

    def write() -> None:
        if query.catalog.worth_keeping(piece.seconds, piece.frame.nbytes):
            return
        if query.keyed.what_changed(query.session.inputs):
            return
        kept = query.catalog.keep(
            key, parts.program, piece.frame, table=True, seconds=piece.seconds, about=what, made=query.began,
            spans=cut.spans_of(piece.start, piece.end),
            sources=lambda: query.sources_of(node, [*cut.identities_of(piece.start, piece.end), *beside]),
        )  # fmt: skip
        if isinstance(kept, Kept):
            query.catalog.supersede(piece.supersedes)
            query.catalog.discard(piece.outgrown)

    query.session.keeper.submit(write, piece.frame.nbytes)
