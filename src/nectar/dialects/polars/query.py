"""One query under Nectar: from the lazy frame to the frame, with everything reused that is known.

Law: whatever goes wrong in here, the query runs as plain Polars would run it, and its errors are those of Polars. What
is kept was computed from inputs that are, after the computation, what they were before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from nectar.catalog.service import Catalog, Kept
from nectar.dialects.polars.keying import Keyed, keyed
from nectar.dialects.polars.plan import Plan
from nectar.dialects.polars.scans import source_of
from nectar.dialects.polars.stored import StoredFrame
from nectar.errors import EnvironmentFailure, NectarError, StoreFailure
from nectar.model.entry import Entry
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
    """A query with its keys, and what is known of it.

    rewritten: the lazy frame to run, if any of its parts is known. parts: of the report, the root's last.
    """

    session: Session
    catalog: Catalog
    keyed: Keyed
    choice: Choice
    known: dict[int, StoredFrame] = field(default_factory=dict)
    entries: dict[int, Entry] = field(default_factory=dict)
    part: Part = field(default_factory=lambda: Part(""))
    began: float = 0.0

    @property
    def root(self) -> Node:
        """The last step."""
        return self.keyed.program.nodes[-1]

    def result(self) -> pl.DataFrame | None:
        """The whole result, if it is known."""
        found = self.known.get(self.keyed.program.root)
        return None if found is None else found.frame

    def rewritten(self) -> pl.LazyFrame | None:
        """The query with its known parts as sources; None if none is known."""
        return None if not self.known else self.frame_of(self.keyed.program.root)

    def frame_of(self, node: int) -> pl.LazyFrame:
        """The lazy frame that ends with a node."""
        replaced = {}
        for known, stored in self.known.items():
            for step in self.keyed.steps_of(known):
                replaced[step] = stored.lazy()
        return self.keyed.plan.frame(self.keyed.step_of[node], replaced)

    def close(self) -> None:
        """Results that were opened for the plan are let go; frames that were handed out stay."""
        for stored in self.known.values():
            stored.close()


def prepared(session: Session, frame: pl.LazyFrame) -> Query | str:
    """The query, its known parts opened; or why it has to run as it is."""
    catalog = session.catalog
    if catalog is None:
        return "the catalog cannot be used"
    size = in_memory(frame)
    if size > _IN_MEMORY:
        return f"it works on {show_size(size)} in memory: only what is read from files is reused"
    found = keyed(Plan.of(frame), session.inputs)
    query = Query(session, catalog, found, Choice({}, (), ()), began=session.clock.now())
    _look_up(query)
    return query


def in_memory(frame: pl.LazyFrame) -> int:
    """Bytes of the frames in memory that a query works on."""
    traverser = frame._ldf.visit()
    pending = [traverser.get_node()]
    size = 0.0
    while pending:
        traverser.set_node(pending.pop())
        node = traverser.view_current_node()
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
    for (number, _), answer in zip(pairs, answers, strict=True):
        if answer.entry is not None:
            entries.setdefault(number, answer.entry)
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


def _open(query: Query, number: int, entry: Entry) -> bool:
    if number in query.known:
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


def computed(query: Query, run: Run) -> pl.DataFrame:
    """The result, computed with what is known; parts that are asked for often are kept on the way."""
    for number in query.choice.keep:
        begun = time.perf_counter()
        frame = run(query.frame_of(number))
        keep(query, number, frame, time.perf_counter() - begun)
        query.known[number] = StoredFrame(frame)
    rewritten = query.rewritten()
    assert rewritten is not None
    return run(rewritten)


def keep(query: Query, number: int, frame: pl.DataFrame, seconds: float, part: Part | None = None) -> None:
    """Keeps a result in the background, if it is worth it and its inputs are still what they were."""
    node = query.keyed.program.nodes[number]
    if node.refusal:
        return
    part = part or Part(node.text)
    size = int(frame.estimated_size())
    why_not = query.catalog.worth_keeping(seconds, size) or _changed(query)
    if why_not:
        part.keeping = why_not if why_not.startswith("not kept") else f"not kept: {why_not}"
        return
    part.keeping, part.size = "being kept", size
    made_from = [query.entries[each] for each in query.choice.hits]
    catalog, copy, began = query.catalog, frame.clone(), query.began
    replaces = query.session.settings.refresh
    about = _about(query, number)

    def write() -> None:
        answer = catalog.keep(
            node.key, node.program, copy, table=True, seconds=seconds, made_from=made_from, about=about, made=began,
            replaces=replaces,
        )  # fmt: skip
        part.keeping = "kept" if isinstance(answer, Kept) else f"not kept: {answer.reason}"

    query.session.keeper.submit(write, size)


def _about(query: Query, number: int) -> str:
    """What a result is, for people: its last step, and what it reads."""
    program = query.keyed.program
    sources = [program.nodes[each].text for each in program.below(number) if program.nodes[each].is_input]
    text = f"{program.nodes[number].text} of {', '.join(dict.fromkeys(sources))}"
    return text if len(text) <= 200 else f"{text[:197]}..."


def _changed(query: Query) -> str:
    """What changed since the keys were made; empty if nothing did."""
    told = query.session.inputs.changed(query.keyed.identities)
    for number, source, _ in query.keyed.sources:
        if source.files and source_of(query.keyed.plan, number) != source:
            told.append("files came or went, or their types changed")
    return "; ".join(dict.fromkeys(told))


def saved_by(entries: Sequence[Entry]) -> float:
    """Seconds it took to make these results."""
    return sum(entry.seconds for entry in entries)


def unreadable(error: BaseException) -> bool:
    """Whether an error may be due to a stored result and not to the query."""
    return isinstance(error, StoreFailure)


def explain_choice(query: Query) -> list[tuple[Any, str]]:
    """Each node of the program, root first, and what becomes of it."""
    program, found = query.keyed.program, []
    for number in reversed(range(len(program.nodes))):
        node = program.nodes[number]
        if number in query.choice.hits:
            found.append((node, "reused"))
        elif number in query.choice.computed:
            found.append((node, f"not cached: {node.refusal}" if node.refusal else "computed"))
    return found
