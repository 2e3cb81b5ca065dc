"""From a plan to a program: every step with its fingerprint, its keys, and what speaks against caching it."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

import polars as pl
from msgspec import Struct, field
from msgspec.structs import replace

from nectar.dialects.polars.behaviour import columns_named, group_names, is_breaker, order_of
from nectar.dialects.polars.categories import NUMBERED, are_numbered
from nectar.dialects.polars.content import Content, content_of, rest_of
from nectar.dialects.polars.derived import NOT_DETERMINED, ResultReader, reader_of
from nectar.dialects.polars.filters import conditions_of
from nectar.dialects.polars.plan import Plan, Step
from nectar.dialects.polars.resolution import SOURCES, Leaf, Sources, sources_now, sources_of
from nectar.dialects.polars.scans import Source
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.program.tree import Node, Program
from nectar.store.inputs.address import without_credentials
from nectar.store.inputs.identify import Inputs
from nectar.store.inputs.identity import Identity

_MOST_FILTERS: Final = 32  # that are taken as one: each looks at all below it


class Keyed(Struct, frozen=True):
    """A plan as a program.

    step_of: for each node the step it stands for; the first, if several are the same. node_of: for each step its node,
    or -1 if the root does not need it. sources: of each scan, the files it read and their identities; results of other
    programs are sources without files. resolved: the plan as a frame, which looked at its files after they were
    identified; None if nobody made it. leaves: its sources. contents: of each step what it is, as the keys were made;
    None of sources. live: nodes with a Python function at or below them. flags: the optimisations it runs with, if not
    the usual ones. rests: of steps whose functions reach objects of libraries that remember something, what they did
    without that, before they ran.
    """

    plan: Plan
    program: Program
    step_of: tuple[int, ...]
    node_of: tuple[int, ...]
    sources: tuple[tuple[int, Source, tuple[Identity, ...]], ...]
    resolved: pl.LazyFrame | None
    leaves: tuple[Leaf, ...]
    contents: tuple[Content | None, ...]
    live: frozenset[int]
    flags: str
    rests: dict[int, bytes] = field(default_factory=dict)

    def steps_of(self, node: int) -> list[int]:
        """All steps that are the same computation as a node."""
        return [step for step, each in enumerate(self.node_of) if each == node]

    def is_result(self, node: int) -> bool:
        """Whether a node is the result of another program: that program makes it, and whoever reads it does not."""
        return reader_of(self.plan.steps[self.step_of[node]]) is not None

    @property
    def reads_memory(self) -> bool:
        """Whether a frame in memory is among the sources."""
        return any(step.kind == "DataFrameScan" for step in self.plan.steps)

    @property
    def identities(self) -> list[Identity]:
        """Of all files, those of several scans several times."""
        return [identity for _, _, found in self.sources for identity in found]

    def finds(self, given: Sequence[Leaf]) -> bool:
        """Whether the sources of a lazy frame are those that its plan finds now.

        Scans remember which files there were, and of what types, when a frame with them was used for the first time.
        """
        if self.resolved is not None:
            return [replace(leaf, size=0) for leaf in self.leaves] == [replace(leaf, size=0) for leaf in given]
        now = [(source.files, dict(self.plan.schema(number))) for number, source, _ in self.sources if source.files]
        return all((leaf.files, dict(leaf.schema)) in now for leaf in given if leaf.files is not None)

    def runs_the_same(self, node: int) -> bool:
        """Whether the Python functions of a node, and of what it is made from, are still what its key says.

        They are the objects of the program, which may have changed them, or what they refer to, at any time. What
        libraries remember to save time is part of the key, and no change that counts.
        """
        if node not in self.live:
            return True
        below = {each for each in self.program.below(node) if each in self.live}
        return all(
            content is None or not content.live or self._is_as_before(number, content)
            for number, content in enumerate(self.contents)
            if self.node_of[number] in below
        )

    def _is_as_before(self, number: int, content: Content) -> bool:
        now, rest = content_of(self.plan.steps[number]), self.rests.get(number)
        return now == content or (bool(rest) and not now.refusals and rest_of(self.plan.steps[number]) == rest)

    def begin(self) -> None:
        """The program is about to run: what libraries remember from now on does not count as a change."""
        for number, content in enumerate(self.contents):
            if content is None or not content.holds_caches or content.refusals or number in self.rests:
                continue
            rest = rest_of(self.plan.steps[number])
            self.rests[number] = rest if content_of(self.plan.steps[number]) == content else b""

    def reads_the_same(self, scans: Container[int]) -> bool:
        """Whether these scans still find the same files, with the same types; their contents are another question."""
        asked = [(number, source) for number, source, _ in self.sources if source.files and number in scans]
        if not asked:
            return True
        now = sources_now(self.plan, whole=self.resolved is not None)
        return all(now[number] == source for number, source in asked)


def keyed(plan: Plan, inputs: Inputs, flags: str = "") -> Keyed:
    """The program of a plan as its inputs are now. flags: the optimisations it runs with, if they are not the usual."""
    return _Keying(plan, inputs, flags).run()


def key_over(keyed: Keyed, step: int, names: Mapping[int, Sequence[bytes]], which: int = 0) -> bytes:
    """The key that a step has where scans read files of other names. names: by the steps of those scans.

    which: of the keys of what else the step reads, the first (0) or the last (-1).
    """
    plan, frame, nodes = keyed.plan, _frame_of(keyed.plan, keyed.flags), keyed.program.nodes
    changed = {scan: _key_of_files(nodes[keyed.node_of[scan]].program, found) for scan, found in names.items()}
    for number in range(min(names), step + 1):
        if number not in changed and any(source in changed for source in plan.steps[number].inputs):
            content, inputs = _identifying(plan, number, keyed.contents[number])
            below = [changed.get(source) or nodes[keyed.node_of[source]].keys[which] for source in inputs]
            changed[number] = _key_of_step(frame, content, below)
    return changed[step]


def _frame_of(plan: Plan, flags: str) -> bytes:
    return joined("polars", pl.__version__, plan.header, *filter(None, [flags]))


def _key_of_files(program: bytes, names: Sequence[bytes]) -> bytes:
    return digest_of(program + b"".join(names))


def _key_of_step(frame: bytes, canonical: bytes, below: Sequence[bytes]) -> bytes:
    return digest_of(frame + joined("key", canonical, *below))


def _identifying(plan: Plan, number: int, content: Content | None) -> tuple[bytes, tuple[int, ...]]:
    """What a step does, and the steps it does it to. Filters one after the other are one, in any order."""
    conditions, below = conditions_of(plan.steps[number]), number
    if not conditions:
        assert content is not None, "a source is made from nothing"
        return content.canonical, plan.steps[number].inputs
    gathered: set[bytes] = set()
    for _ in range(_MOST_FILTERS):
        if not conditions:
            break
        gathered |= conditions
        (below,) = plan.steps[below].inputs
        conditions = conditions_of(plan.steps[below])
    return digest_of(joined("filter", *sorted(gathered))), (below,)


class _Keying:
    def __init__(self, plan: Plan, inputs: Inputs, flags: str) -> None:
        self._plan = plan
        self._inputs = inputs
        self._flags = flags
        self._frame = _frame_of(plan, flags)
        self._nodes: list[Node] = []
        self._steps: list[int] = []
        self._by_key: dict[bytes, int] = {}
        self._node_of: list[int] = []
        self._sources: list[tuple[int, Source, tuple[Identity, ...]]] = []

    def run(self) -> Keyed:
        steps = self._plan.steps
        readers = [reader_of(step) for step in steps]
        contents = [
            None if step.kind in SOURCES or reader is not None else content_of(step)
            for step, reader in zip(steps, readers, strict=True)
        ]
        whole = not any(content is not None and content.refusals for content in contents)
        sources = sources_of(self._plan, self._inputs, whole=whole)
        for number, (step, reader, content) in enumerate(zip(steps, readers, contents, strict=True)):
            if reader is not None:
                node = self._derived(number, reader)
            else:
                node = self._source(number, sources) if content is None else self._step(number, step, content)
            self._node_of.append(self._add(node, number))
        nodes = self._in_order(self._node_of[-1])
        return Keyed(
            self._plan, Program(tuple(nodes)), tuple(self._steps), tuple(self._node_of), tuple(self._sources),
            sources.frame, sources.leaves, tuple(contents), self._live(nodes, contents), self._flags,
        )  # fmt: skip

    def _live(self, nodes: Sequence[Node], contents: Sequence[Content | None]) -> frozenset[int]:
        """Nodes with a Python function at or below them."""
        found: set[int] = set()
        for number, node in enumerate(nodes):
            content = contents[self._steps[number]]
            if (content is not None and content.live) or any(source in found for source in node.inputs):
                found.add(number)
        return frozenset(found)

    def _add(self, node: Node, number: int) -> int:
        """The number of a node; one that is the same computation as another is that other."""
        known = None if node.refusal else self._by_key.get(node.key)
        if known is not None:
            return known
        self._nodes.append(node)
        self._steps.append(number)
        if not node.refusal:
            self._by_key[node.key] = len(self._nodes) - 1
        return len(self._nodes) - 1

    def _in_order(self, root: int) -> list[Node]:
        """The nodes the root is made from; the root stands last."""
        needed = sorted(Program(tuple(self._nodes)).below(root))
        new = {old: at for at, old in enumerate(needed)}
        self._steps = [self._steps[old] for old in needed]
        self._node_of = [new.get(old, -1) for old in self._node_of]
        return [_moved(self._nodes[old], tuple(new[source] for source in self._nodes[old].inputs)) for old in needed]

    def _source(self, number: int, sources: Sources) -> Node:
        text = _text(self._plan.steps[number])
        source = sources.found[number]
        if source.refusals or number in sources.failures:
            return self._refused(text, (), source.refusals[0] if source.refusals else sources.failures[number])
        identities = sources.identities.get(number, ())
        self._sources.append((number, source, identities))
        names = [identity.names for identity in identities]
        program = digest_of(self._frame + joined("source", source.canonical))
        keys = [_key_of_files(program, [each[at] for each in names]) for at in (0, -1)]
        return Node(text, (), program, tuple(dict.fromkeys(keys)), order_of(self._plan.steps[number]), is_input=True)

    def _derived(self, number: int, reader: ResultReader) -> Node:
        """The result of another program. It has the key of that program's last step: it is the same computation."""
        self._sources.append((number, Source(reader.key), ()))
        return Node(f"result {reader.label}", (), reader.program, (reader.key,), NOT_DETERMINED)

    def _step(self, number: int, step: Step, content: Content) -> Node:
        inputs = tuple(self._node_of[source] for source in step.inputs)
        below = [self._nodes[source] for source in inputs]
        refusals = [*content.refusals, *(node.refusal for node in below if node.refusal)]
        if not refusals and content.looked_at and are_numbered(self._plan, number, content.looked_at):
            refusals = [NUMBERED]
        text = _text(step)
        if refusals:
            refused = self._refused(text, inputs, refusals[0])
            return replace(refused, order=order_of(step), acts=content.acts)
        canonical, sources = _identifying(self._plan, number, content)
        read = [self._nodes[self._node_of[source]] for source in sources]
        program = digest_of(self._frame + joined("step", canonical, *(node.program for node in read)))
        keys = [_key_of_step(self._frame, canonical, [node.keys[at] for node in read]) for at in (0, -1)]
        return Node(
            text, inputs, program, tuple(dict.fromkeys(keys)), order_of(step),
            breaker=is_breaker(step) and not self._is_pushed_into(number, step),
        )  # fmt: skip

    def _is_pushed_into(self, number: int, step: Step) -> bool:
        """Whether a filter above may be done before the groups are made, so that keeping all groups would cost more."""
        names = group_names(step)
        for above in self._plan.steps[number + 1 :]:
            if above.kind != "Filter":
                continue
            read = columns_named(above.body["predicate"])
            if names is None or read is None or read & names:
                return True
        return False

    def _refused(self, text: str, inputs: tuple[int, ...], reason: str) -> Node:
        unique = digest_of(joined("refused", str(len(self._nodes))))
        return Node(text, inputs, unique, (unique,), refusal=reason)


def _moved(node: Node, inputs: tuple[int, ...]) -> Node:
    return replace(node, inputs=inputs)


_VERBS: Final = {
    "HStack": "with_columns", "GroupBy": "group_by", "Distinct": "unique", "MapFunction": "", "Union": "concat",
    "HConcat": "concat horizontally", "DataFrameScan": "frame in memory",
}  # fmt: skip


def _text(step: Step) -> str:
    """A step in a few words."""
    if step.kind == "Scan":
        return f"scan {next(iter(step.body['scan_type'])).lower()} {_paths(step)}"
    if step.kind == "MapFunction":
        function = step.body["function"]
        return _words(next(iter(function)) if isinstance(function, dict) else str(function))
    text = _VERBS.get(step.kind) or _words(step.kind)
    if step.kind == "GroupBy":
        names = group_names(step)
        return f"{text} {', '.join(sorted(names))}" if names else text
    return text


def _paths(step: Step) -> str:
    sources: Any = step.body["sources"]
    paths = [str(path.get("inner", path)) for path in sources.get("Paths", ())] if isinstance(sources, dict) else []
    shown = without_credentials(paths[0])[0].rpartition("/")[2] if paths else "bytes"
    return shown if len(paths) < 2 else f"{shown} and {len(paths) - 1} more"


def _words(kind: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in kind).lstrip("_")
