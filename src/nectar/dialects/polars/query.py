"""One query under Nectar: from the lazy frame to the frame, with everything reused that is known.

Law: whatever goes wrong in here, the query runs as plain Polars would run it, and its errors are those of Polars. What
is kept was computed from inputs that are, after the computation, what they were before.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

import polars as pl
from msgspec import Struct, field
from msgspec.structs import replace

from nectar.catalog.service import Catalog
from nectar.dialects.polars.callbacks import refusal_of_calls
from nectar.dialects.polars.keying import Keyed, keyed
from nectar.dialects.polars.plan import Plan
from nectar.dialects.polars.resolution import leaves_of, size_of_constants
from nectar.dialects.polars.stored import StoredFrame
from nectar.errors import EnvironmentFailure, NectarError
from nectar.model.entry import Entry, Reservation
from nectar.program.tree import Node, Program
from nectar.quantities import show_size
from nectar.rewrite.choose import Choice, choose_opened, wanted
from nectar.session import Session
from nectar.store.inputs.identify import Inputs
from nectar.store.problem import Damaged, Gone
from nectar.trust.secrets import logger

if TYPE_CHECKING:
    from nectar.dialects.polars.incremental.parts import Parts

_log: Final = logger("nectar.polars")
_IN_MEMORY: Final = 256 << 10  # bytes of frames in memory, beyond which writing down the plan takes too long
_CONSTANTS: Final = 1 << 20  # the same for series in expressions

_OF_OTHER_FILES: Final = (
    "it was used before, and stays with the files and types that it found then, which are not those of now: "
    "make the lazy frame anew to read what is there"
)

Run = Callable[[pl.LazyFrame], pl.DataFrame]


class Query(Struct, eq=False):
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
    spared: dict[int, float] = field(default_factory=dict)  # seconds at most that those parts save, where it is known
    parts: dict[int, Parts] = field(default_factory=dict)  # how nodes are, or could be, made from parts
    looking: set[int] = field(default_factory=set)  # scans that looked for files since the keys were made
    observed: str = ""  # what Python functions did while it ran that no key shows; nothing that they made is kept
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
        """The query with its known parts as sources, for those who cannot run it again should one not be readable.

        None if none is known. Raises StoreFailure if one cannot be read.
        """
        for stored in self.known.values():
            stored.load()
        return None if not self.known else self.frame_of(self.keyed.program.root)

    def as_keyed(self, given: pl.LazyFrame) -> pl.LazyFrame:
        """The query to be run, which sees the files that its key is made of.

        A lazy frame that was used before remembers which files there were, and what they looked like. What cannot be
        kept runs as it was given.
        """
        return given if self.root.refusal else self.remaining()

    def remaining(self) -> pl.LazyFrame:
        """The query with its known parts as sources, about to be run."""
        if self.keyed.resolved is not None and not self.known and not self._once():
            return self.keyed.resolved  # which stays with the files it found
        self.runs(self.keyed.program.root)
        return self.frame_of(self.keyed.program.root)

    def frame_of(self, node: int, beside: Container[bytes] = ()) -> pl.LazyFrame:
        """The lazy frame that ends with a node. beside: keys of what other queries that run with it compute as well."""
        return self.keyed.plan.frame(self.keyed.step_of[node], self.sources(), self._once(beside))

    def _once(self, beside: Container[bytes] = ()) -> dict[int, bytes]:
        """Steps that are computed once though several use them, with what they are known by.

        Polars finds out by itself what steps have in common, but for those with Python functions: in a plan that was
        written down and read again, no two functions are the same.
        """
        program = self.keyed.program
        found: dict[int, bytes] = {}
        for number in self.keyed.live:
            node, users = program.nodes[number], program.users[number]
            if node.refusal:
                continue
            last = not users or any(program.nodes[user].key not in beside for user in users)
            if len(users) > 1 or (last and node.key in beside):
                found.update(dict.fromkeys(self.keyed.steps_of(number), node.key[:16]))
        return found

    def sources(self) -> dict[int, pl.LazyFrame]:
        """For each step whose result is known, a source that gives it."""
        return {step: stored.lazy() for known, stored in self.known.items() for step in self.keyed.steps_of(known)}

    def runs(self, node: int, named: Container[int] = ()) -> None:
        """A node is about to be computed: its scans look for their files, later than the keys were made.

        named: scans that are read by the names of their files.
        """
        below = self.keyed.program.below(node, self.known)
        self.looking |= {step for each in below for step in self.keyed.steps_of(each) if step not in named}

    def stands_for(self, number: int, schema: pl.Schema) -> bool:
        """Whether a frame of these columns can take the place of a node: what is above expects those of the plan.

        Polars does not look at what a function of groups gives, which may have others.
        """
        program, plan, step_of = self.keyed.program, self.keyed.plan, self.keyed.step_of
        if number == program.root:
            return True
        below = (plan.steps[step_of[each]] for each in program.below(number))
        handed_over = any(step.kind == "GroupBy" and step.body["apply"] is not None for step in below)
        return not handed_over or bool(schema == plan.schema(step_of[number]))

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
                same = node.key == other.root.key and not node.refusal
                if same and frame is not None and self.stands_for(number, frame.schema):
                    self.known[number], self.entries[number] = StoredFrame.of(frame), entry
                    self.choice = replace(self.choice, hits={**self.choice.hits, number: entry})

    def close(self) -> None:
        """Results that were opened for the plan are let go; frames that were handed out stay."""
        for stored in self.known.values():
            stored.close()


def prepared(session: Session, frame: pl.LazyFrame, flags: str = "") -> Query | str:
    """The query, its known parts opened; or why it has to run as it is. flags: as for `keyed`."""
    catalog = session.catalog
    if catalog is None:
        return "the catalog cannot be used"
    found = keyed_or_why_not(frame, session.inputs, flags)
    return found if isinstance(found, str) else looked_up(session, catalog, refused_if_observed(found, catalog))


def keyed_or_why_not(frame: pl.LazyFrame, inputs: Inputs, flags: str = "") -> Keyed | str:
    """The program of a lazy frame; or why it has to run as it is.

    A clone is resolved: while one thread resolves a frame, others that use it would wait for ever.
    """
    if refusal := refusal_of_calls(frame):
        return refusal
    shown = frame.clone()
    leaves = leaves_of(shown)
    size = sum(leaf.size for leaf in leaves)
    if size > _IN_MEMORY:
        return f"it works on {show_size(size)} in memory: only what is read from files is reused"
    size = size_of_constants(shown)
    if size > _CONSTANTS:
        return f"its expressions hold {show_size(size)} of values: only what is read from files is reused"
    found = keyed(Plan.of(frame), inputs, flags)
    return found if found.finds(leaves) else found.program.nodes[-1].refusal or _OF_OTHER_FILES


def refused_if_observed(found: Keyed, catalog: Catalog) -> Keyed:
    """The same, with a refusal if the Python functions of the program were seen to do what no key shows."""
    nodes = found.program.nodes
    seen = catalog.observed.told_of(nodes[-1].program) if found.live and not nodes[-1].refusal else ""
    if not seen:
        return found
    root = replace(nodes[-1], refusal=f"it was seen that a Python function in it {seen}")
    return replace(found, program=Program((*nodes[:-1], root)))


def looked_up(session: Session, catalog: Catalog, found: Keyed) -> Query:
    """The query of a plan that has its keys, its known parts opened."""
    query = Query(session, catalog, found, Choice({}, (), ()), began=session.clock.now())
    _look_up(query)
    return query


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
    query.choice = choose_opened(program, entries, lookups, partial(is_opened, query))
    for number in [number for number in query.known if number not in query.choice.hits]:
        query.known.pop(number).close()
    query.growing = frozenset(number for number in query.choice.computed if lookups.get(number, 0) > 0)


def _landed(query: Query, key: bytes) -> Entry | None:
    """What this process has computed and is about to write, as if it were written."""
    found = query.session.pending.get(key)
    return None if found is None else found[0]


def is_opened(query: Query, number: int, entry: Entry) -> bool:
    """Whether the result of a node is at hand now."""
    if number in query.known:
        return True
    pending = query.session.pending.get(entry.key)
    if pending is not None and entry.kind == "arrow" and not entry.manifest:
        if not query.stands_for(number, pending[1].schema):
            return False
        # Of its own: whoever gets the frame may change it, and the other one is still to be written.
        query.known[number], query.entries[number] = StoredFrame.of(pending[1].clone()), entry
        return True
    try:
        whole = number == query.keyed.program.root
        opened = query.catalog.open(entry, in_part=not whole)
        if isinstance(opened, Gone | Damaged):
            return False
        stored = StoredFrame.opened(opened, whole=whole)
    except (EnvironmentFailure, NectarError) as failure:
        _log.info("%s is computed again: %s", entry.about, failure)
        return False
    if not query.stands_for(number, stored.schema):
        stored.close()
        return False
    query.known[number], query.entries[number] = stored, entry
    return True


def is_own_fault(query: Query, error: BaseException) -> bool:
    """Whether a query with known parts may have failed because of them, and not by itself.

    What fails while it runs, such as a function of the user, fails without Nectar too; running it again would only take
    time. What Polars finds wrong with a plan is told again by the plan as it was written, at once and in its own words.
    """
    ran = isinstance(error, pl.exceptions.ComputeError)
    by_itself = ran or (isinstance(error, Exception) and not isinstance(error, pl.exceptions.PolarsError))
    return not by_itself or any(stored.failed for stored in query.known.values())


def about(query: Query, number: int) -> str:
    """What a result is, for people: its last step, and what it reads."""
    program = query.keyed.program
    sources = [program.nodes[each].text for each in program.below(number) if not program.nodes[each].inputs]
    text = f"{program.nodes[number].text} of {', '.join(dict.fromkeys(sources))}"
    return text if len(text) <= 200 else f"{text[:197]}..."


def changed(query: Query, looking: Container[int]) -> str:
    """What changed since the keys were made; empty if nothing did that matters.

    looking: scans that have looked for their files since. What came or went beside others was not read.
    """
    told = query.session.inputs.changed(query.keyed.identities)
    if not query.keyed.reads_the_same(looking):
        told.append("files came or went, or their types changed")
    return "; ".join(dict.fromkeys(told))
