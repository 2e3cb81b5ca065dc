"""One query under Nectar: from the lazy frame to the frame, with everything reused that is known.

Law: whatever goes wrong in here, the query runs as plain Polars would run it, and its errors are those of Polars. What
is kept was computed from inputs that are, after the computation, what they were before.
"""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import polars as pl

from nectar.catalog.service import Catalog, Kept
from nectar.dialects.polars.history import call_site
from nectar.dialects.polars.incremental.advance import Piece, advance
from nectar.dialects.polars.incremental.extension import Extension, extend
from nectar.dialects.polars.incremental.extents import files_of_lines
from nectar.dialects.polars.incremental.parts import Parts
from nectar.dialects.polars.incremental.rates import remember as remember_rates
from nectar.dialects.polars.incremental.rectangles import Rectangle, extend_rectangle
from nectar.dialects.polars.incremental.rules import Rules, rules_for, rules_for_one_stream
from nectar.dialects.polars.keying import Keyed, keyed
from nectar.dialects.polars.plan import Plan, traverser_of
from nectar.dialects.polars.provenance import sources_of, sources_of_state
from nectar.dialects.polars.recipe import Made, recorded, working_folder
from nectar.dialects.polars.stored import StoredFrame
from nectar.errors import EnvironmentFailure, NectarError
from nectar.model.entry import Entry, Reservation, Span
from nectar.program.tree import Node
from nectar.quantities import show_size
from nectar.report.run import Part
from nectar.rewrite.choose import Choice, choose, wanted
from nectar.session import Session
from nectar.store.read import Result

_log: Final = logging.getLogger("nectar.polars")
_IN_MEMORY: Final = 256 << 10  # bytes of frames in memory, beyond which writing down the plan takes too long

Run = Callable[[pl.LazyFrame], pl.DataFrame]


@dataclass(slots=True)
class Query:
    """A query with its keys, and what is known of it: sources for its parts, and the entries they come from."""

    session: Session
    catalog: Catalog
    keyed: Keyed
    choice: Choice
    known: dict[int, StoredFrame] = field(default_factory=dict)
    entries: dict[int, Entry] = field(default_factory=dict)
    began: float = 0.0
    reservation: Reservation | None = None
    growing: frozenset[int] = frozenset()  # nodes that were asked for before, over other files
    advanced: dict[int, list[Entry]] = field(default_factory=dict)  # those made from parts, and which were known
    parts: dict[int, Parts] = field(default_factory=dict)  # how nodes are, or could be, made from parts
    asked: bool = False  # somebody wants the result to be kept, whatever it is worth

    @property
    def root(self) -> Node:
        """The last step."""
        return self.keyed.program.nodes[-1]

    @property
    def acts(self) -> bool:
        """Whether it may change objects of this process, so that it has to run as it was given."""
        return any(node.acts for node in self.keyed.program.nodes)

    def result(self) -> pl.DataFrame | None:
        """The whole result, if it is known."""
        found = self.known.get(self.keyed.program.root)
        return None if found is None else found.frame

    def rewritten(self) -> pl.LazyFrame | None:
        """The query with its known parts as sources; None if none is known."""
        return None if not self.known else self.frame_of(self.keyed.program.root)

    def as_keyed(self, given: pl.LazyFrame) -> pl.LazyFrame:
        """The query to be run, which sees the files that its key is made of.

        A lazy frame that was used before remembers which files there were, and what they looked like. What cannot be
        kept runs as it was given.
        """
        if self.root.refusal:
            return given
        if self.keyed.resolved is not None and not self.known:
            return self.keyed.resolved
        return self.frame_of(self.keyed.program.root)

    def frame_of(self, node: int) -> pl.LazyFrame:
        """The lazy frame that ends with a node."""
        return self.keyed.plan.frame(self.keyed.step_of[node], self.sources())

    def sources(self) -> dict[int, pl.LazyFrame]:
        """For each step whose result is known, a source that gives it."""
        return {step: stored.lazy() for known, stored in self.known.items() for step in self.keyed.steps_of(known)}

    def forget_known(self) -> None:
        """Nothing is taken from the store any more."""
        self.close()
        self.known.clear()
        self.advanced.clear()
        self.choice = replace(self.choice, hits={})

    def take_over(self, answered: Iterable[Query]) -> None:
        """Parts that are the whole of other queries are taken from their results."""
        for other in answered:
            entry, frame = other.entries[other.keyed.program.root], other.result()
            for number, node in enumerate(self.keyed.program.nodes):
                if node.key == other.root.key and not node.refusal and frame is not None:
                    self.known[number], self.entries[number] = StoredFrame(frame), entry
                    self.choice = replace(self.choice, hits={**self.choice.hits, number: entry})

    def close(self) -> None:
        """Results that were opened for the plan are let go; frames that were handed out stay."""
        for stored in self.known.values():
            stored.close()


def prepared(session: Session, frame: pl.LazyFrame) -> Query | str:
    """The query, its known parts opened; or why it has to run as it is."""
    catalog = session.catalog
    if catalog is None:
        return "the catalog cannot be used"
    if why_not := too_large(frame):
        return why_not
    return looked_up(session, catalog, keyed(Plan.of(frame), session.inputs))


def looked_up(session: Session, catalog: Catalog, found: Keyed) -> Query:
    """The query of a plan that has its keys, its known parts opened."""
    query = Query(session, catalog, found, Choice({}, (), ()), began=session.clock.now())
    _look_up(query)
    return query


def too_large(frame: pl.LazyFrame) -> str:
    """Why writing down the plan of a query would take too long; empty if it would not."""
    size = in_memory(frame)
    if size <= _IN_MEMORY:
        return ""
    return f"it works on {show_size(size)} in memory: only what is read from files is reused"


def in_memory(frame: pl.LazyFrame) -> int:
    """Bytes of the frames in memory that a query works on.

    The frame stays as it was: one that is resolved shares nothing with those it runs beside, and while one thread
    resolves it, others that use it would wait for ever.
    """
    traverser = traverser_of(frame.clone())
    pending = [traverser.get_node()]
    size = 0.0
    while pending:
        traverser.set_node(pending.pop())
        try:
            node = traverser.view_current_node()
        except NotImplementedError:  # neither Arrow scans nor steps with functions are shown, and no frame is in them
            node = None
        if type(node).__name__ == "DataFrameScan":
            size += pl.DataFrame._from_pydf(node.df).estimated_size()
        pending.extend(traverser.get_inputs())
    return int(size)


def _look_up(query: Query) -> None:
    """Finds and opens what is known."""
    program = query.keyed.program
    asked = [] if query.session.settings.refresh else wanted(program)
    pairs = [(number, key) for number in asked for key in program.nodes[number].keys]
    answers = query.catalog.lookup([key for _, key in pairs], [program.nodes[number].program for number, _ in pairs])
    entries: dict[int, Entry] = {}
    lookups: dict[int, int] = {}
    for (number, key), answer in zip(pairs, answers, strict=True):
        entry = answer.entry or _landed(query, key)
        if entry is not None:
            entries.setdefault(number, entry)
        lookups[number] = max(lookups.get(number, 0), answer.lookups)
    while True:
        query.choice = choose(program, entries, lookups)
        lost = [number for number in query.choice.hits if not _open(query, number, entries[number])]
        if not lost:
            break
        for number in lost:
            del entries[number]
    for number in [number for number in query.known if number not in query.choice.hits]:
        query.known.pop(number).close()
    query.growing = frozenset(number for number in query.choice.computed if lookups.get(number, 0) > 0)


def _landed(query: Query, key: bytes) -> Entry | None:
    """What this process has computed and is about to write, as if it were written."""
    found = query.session.pending.get(key)
    return None if found is None else found[0]


def _open(query: Query, number: int, entry: Entry) -> bool:
    if number in query.known:
        return True
    pending = query.session.pending.get(entry.key)
    if pending is not None and entry.kind == "arrow" and not entry.manifest:
        # Of its own: whoever gets the frame may change it, and the other one is still to be written.
        query.known[number], query.entries[number] = StoredFrame(pending[1].clone()), entry
        return True
    try:
        opened = query.catalog.open(entry)
        if not isinstance(opened, Result):
            return False
        query.known[number] = StoredFrame(opened.to_polars())
    except (EnvironmentFailure, NectarError) as failure:
        _log.info("%s is computed again: %s", entry.about, failure)
        return False
    query.entries[number] = entry
    return True


# computing and keeping


def claimed(query: Query) -> bool:
    """Whether another process has computed the result meanwhile; otherwise this one says that it does."""
    root = query.keyed.program.root
    settings = query.session.settings
    if query.root.refusal or settings.refresh or settings.read_only or not query.keyed.sources:
        return False
    try:
        taken = query.session.reservations.take_or_wait(query.root.key)
    except EnvironmentFailure as failure:
        _log.info("others may compute the same: %s", failure)
        return False
    if isinstance(taken, Entry):
        if not _open(query, root, taken):
            return False
        query.choice = Choice({root: taken}, (), ())
        return True
    query.reservation = taken
    return False


def release(query: Query) -> None:
    """Nothing comes of this computation: others need not wait for it."""
    if query.reservation is not None:
        query.session.reservations.give_back(query.reservation)
        query.reservation = None


def learn_content(session: Session, path: str) -> None:
    """Reads, in the background, a file that was just written: whoever reads it later knows it by its content."""

    def learn() -> None:
        try:
            session.inputs.identify([path])
        except EnvironmentFailure as failure:  # deleted meanwhile, or somewhere that cannot be looked at
            _log.debug("%s is known by its origin only: %s", path, failure)

    session.keeper.submit(learn)


def computed(query: Query, run: Run) -> pl.DataFrame:
    """The result, computed with what is known; parts that are asked for often are kept on the way."""
    if query.growing:
        try:
            _grow(query, run)
        except (Exception, pl.exceptions.PanicException) as error:  # then it is computed as a whole
            _log.info("what is known of parts of a stream could not be used: %s", error)
    needed = set(query.keyed.program.below(query.keyed.program.root, query.known)) - set(query.known)
    for number in [each for each in query.choice.keep if each in needed]:
        begun = time.perf_counter()
        frame = run(query.frame_of(number))
        keep(query, number, frame, time.perf_counter() - begun)
        query.known[number] = StoredFrame(frame)
    rewritten = query.rewritten()
    return run(query.frame_of(query.keyed.program.root) if rewritten is None else rewritten)


def is_own_fault(query: Query, error: BaseException) -> bool:
    """Whether a query with known parts may have failed because of them, and not by itself.

    What fails while it runs, such as a function of the user, fails without Nectar too; running it again would only take
    time. What Polars finds wrong with a plan is told again by the plan as it was written, at once and in its own words.
    """
    ran = isinstance(error, pl.exceptions.ComputeError)
    by_itself = ran or (isinstance(error, Exception) and not isinstance(error, pl.exceptions.PolarsError))
    return not by_itself or any(stored.failed for stored in query.known.values())


def _grow(query: Query, run: Run) -> None:
    """What grows with its streams is made from what is known of their parts: the largest nodes that can be."""
    exact, inputs = query.session.settings.exact_floats, query.session.inputs
    rules = rules_for(query.keyed, query.catalog, exact, run, partial(_keep_facts, query), inputs.grown)
    seen: set[int] = set()
    pending = [query.keyed.program.root]
    while pending:
        number = pending.pop()
        if number in seen or number in query.known:
            continue
        seen.add(number)
        if number not in query.growing or not _advanced(query, number, rules, run):
            pending.extend(query.keyed.program.nodes[number].inputs)


def _advanced(query: Query, number: int, rules: Rules, run: Run) -> bool:
    """Whether a node is known now, because it could be put together."""
    parts = rules.parts_of(number)
    if isinstance(parts, str):
        _log.debug("%s is computed as a whole: %s", about(query, number), parts)
        return False
    query.parts[number] = parts
    if isinstance(parts, Rectangle):
        advanced = extend_rectangle(parts, query.keyed, query.catalog, run, query.sources())
    elif isinstance(parts, Extension):
        advanced = extend(parts, query.keyed, query.catalog, run, query.sources())
    else:
        advanced = advance(parts, query.keyed, query.catalog, run, query.sources())
    if advanced is None:
        return False
    query.known[number] = StoredFrame(advanced.frame)
    query.advanced[number] = advanced.used
    for piece in [*advanced.new, *advanced.merged]:
        _keep_state(query, parts, piece)
    query.session.keeper.submit(lambda: remember_rates(query.catalog))
    return True


def _keep_state(query: Query, parts: Parts, piece: Piece) -> None:
    spans = parts.cut.spans_of(piece.start, piece.end)
    count = max(span.count for span in spans)
    what = f"state of {about(query, parts.node)}, {count} file{'s' if count > 1 else ''}"
    key, site, size = parts.key(piece.start, piece.end), call_site(), int(piece.frame.estimated_size())

    def write() -> None:
        if query.catalog.worth_keeping(piece.seconds, size) or changed(query):
            return
        kept = query.catalog.keep(
            key, parts.program, piece.frame, table=True, seconds=piece.seconds, spans=spans, about=what,
            made=query.began, sources=lambda: sources_of_state(query.keyed, parts, piece, site),
        )  # fmt: skip
        if isinstance(kept, Kept):
            query.catalog.supersede(piece.supersedes)
            query.catalog.discard(piece.outgrown)
            _watch(query)

    query.session.keeper.submit(write, size)


def _keep_facts(query: Query, key: bytes, program: bytes, frame: pl.DataFrame, what: str) -> None:
    """Keeps what was found out about streams, in the background, if they are still what they were."""

    def write() -> None:
        if not changed(query):
            query.catalog.keep(key, program, frame, table=True, about=what, made=query.began, replaces=True)

    query.session.keeper.submit(write, int(frame.estimated_size()))


def keep(query: Query, number: int, frame: pl.DataFrame, seconds: float, part: Part | None = None) -> None:
    """Keeps a result, if it is worth it and its inputs are still what they were; all of that in the background."""
    node = query.keyed.program.nodes[number]
    part = part or Part(node.text)
    if node.refusal:
        return
    size = int(frame.estimated_size())
    part.keeping, part.size = "being kept", size
    copy = _with_memory_of_its_own(frame) if query.keyed.reads_memory else frame.clone()
    made_from = [query.entries[each] for each in query.choice.hits]
    made_from += [entry for used in query.advanced.values() for entry in used]
    what, folder = about(query, number), working_folder()
    reservation = None
    if number == query.keyed.program.root:  # what was reserved is the result, and none of its parts
        reservation, query.reservation = query.reservation, None
    now = query.session.clock.now()
    landed = Entry(
        node.key, node.program, "arrow", "", b"", size, 0, frame.height, seconds, query.began, now, about=what
    )
    pending, site, asked = query.session.pending, call_site(), query.asked and number == query.keyed.program.root
    pending[node.key] = (landed, copy)

    def write() -> None:
        kept = False
        try:
            why_not = ("" if asked else query.catalog.worth_keeping(seconds, size)) or changed(query)
            if why_not:
                part.keeping = f"not kept: {why_not.removeprefix('not kept: ')}"
                return
            keys = tuple(entry.key for entry in made_from)
            made = Made(query.keyed, number, copy, what, seconds, keys, folder)
            recipe = recorded(query.catalog, query.session.inputs, made)
            answer = query.catalog.keep(
                node.key, node.program, copy, table=True, seconds=seconds, made_from=made_from, about=what,
                made=query.began, replaces=query.session.settings.refresh, spans=_spans(query, number),
                sources=lambda: sources_of(query.keyed, number, copy, site),
                recipe=recipe.identity, rebuildable=recipe.rebuildable,
            )  # fmt: skip
            kept = isinstance(answer, Kept)
            part.keeping = "kept" if isinstance(answer, Kept) else f"not kept: {answer.reason}"
            if isinstance(answer, Kept):
                query.session.totals.count_kept(answer.entry.size)
        finally:
            pending.pop(node.key, None)
            if reservation is not None:
                reservations = query.session.reservations
                reservations.done(reservation) if kept else reservations.give_back(reservation)
        if kept:
            _watch(query)  # when nobody waits any more: a file may have to be read

    query.session.keeper.submit(write, size)


def _spans(query: Query, number: int) -> tuple[Span, ...]:
    """How a result is found again as a part of a larger one; empty if it cannot be."""
    exact = query.session.settings.exact_floats
    parts = query.parts.get(number) or rules_for_one_stream(query.keyed, query.catalog, exact).results_of(number)
    return () if isinstance(parts, str) or parts.are_states else parts.cut.spans_of(0, parts.cut.count)


def _watch(query: Query) -> None:
    """Files of which something was kept are known again when they have grown."""
    try:
        query.session.inputs.watch(files_of_lines(query.keyed))
    except EnvironmentFailure as failure:
        _log.debug("files are new files when they have grown: %s", failure)


def _with_memory_of_its_own(frame: pl.DataFrame) -> pl.DataFrame:
    """The same frame; columns that came from memory may share it with an array that somebody changes."""
    memory = io.BytesIO()
    frame.write_ipc_stream(memory)
    memory.seek(0)
    return pl.read_ipc_stream(memory)


def about(query: Query, number: int) -> str:
    """What a result is, for people: its last step, and what it reads."""
    program = query.keyed.program
    sources = [program.nodes[each].text for each in program.below(number) if not program.nodes[each].inputs]
    text = f"{program.nodes[number].text} of {', '.join(dict.fromkeys(sources))}"
    return text if len(text) <= 200 else f"{text[:197]}..."


def changed(query: Query) -> str:
    """What changed since the keys were made; empty if nothing did."""
    told = query.session.inputs.changed(query.keyed.identities)
    if not query.keyed.reads_the_same():
        told.append("files came or went, or their types changed")
    return "; ".join(dict.fromkeys(told))
