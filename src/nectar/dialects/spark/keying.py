"""From a plan to its program: each relation with its fingerprint and keys, as its files are now.

The key of a relation is a hash of what it does and of the keys of what it reads; that of a read, of its files. All of
them stand for the engine and the settings of the session as well. A relation that may not be reused makes everything
above it so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from nectar.dialects.spark.function_names import ANY_NAME
from nectar.dialects.spark.functions import Pickled, is_still
from nectar.dialects.spark.kinds import RELATIONS
from nectar.dialects.spark.parts import why_not_apart
from nectar.dialects.spark.reads import Source, source_of
from nectar.dialects.spark.relations import Step, steps_of
from nectar.errors import InputFailure, UserError
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.program.tree import ROW_WISE, Node, Program
from nectar.store.inputs.identify import Identity, Inputs

_UNSEEN: Final = "its files were not looked at, since another part is refused"


@dataclass(frozen=True, slots=True)
class Keyed:
    """A program and what its keys stand for. barred: the whole is refused for reasons that count for its parts, too.

    steps: the relations of the plan, inputs first. node_of, contents: for each of them the number of its node, and what
    its keys say that it does. reads: those that read files, with the identities of the files. frame: the engine and the
    settings that all keys stand for. taken: names that are functions of the user's in its session.
    """

    program: Program
    sources: tuple[Source, ...]
    identities: tuple[Identity, ...]
    functions: tuple[Pickled, ...]
    steps: tuple[Step, ...] = ()
    node_of: tuple[int, ...] = ()
    files: Mapping[int, tuple[Identity, ...]] = field(default_factory=dict)  # by the node that reads them
    barred: bool = False
    contents: tuple[bytes, ...] = ()
    reads: Mapping[int, tuple[Source, tuple[Identity, ...]]] = field(default_factory=dict)
    frame: bytes = b""
    taken: frozenset[str] = frozenset()

    @property
    def root(self) -> Node:
        """The result."""
        return self.program.nodes[self.program.root]

    def key_over(self, step: int, reads: Mapping[int, bytes], which: int) -> bytes:
        """The key of a step if these reads had other keys. which: 0 for the best names of files, -1 for the last."""
        keys: list[bytes] = []
        changed: set[int] = set()
        for at in range(step + 1):
            if at in reads:
                keys.append(reads[at])
                changed.add(at)
            elif changed.isdisjoint(self.steps[at].inputs):
                keys.append(self.program.nodes[self.node_of[at]].keys[which])
            else:
                below = [keys[each] for each in self.steps[at].inputs]
                keys.append(key_of_step(self.frame, self.contents[at], below))
                changed.add(at)
        return keys[step]

    def steps_of(self, node: int) -> list[Step]:
        """All steps that are the same computation."""
        return [step for step, number in zip(self.steps, self.node_of, strict=True) if number == node]

    def files_below(self, node: int) -> list[Identity]:
        """The files that a node is made from, each once."""
        below = sorted(self.program.below(node))
        return list(dict.fromkeys(file for each in below for file in self.files.get(each, ())))

    def functions_below(self, node: int) -> list[Pickled]:
        """The Python functions that a node is made with."""
        below = set(self.program.below(node))
        steps = zip(self.steps, self.node_of, strict=True)
        return [function for step, number in steps if number in below for function in step.functions]

    def apart(self) -> frozenset[int]:
        """Nodes whose rows, copied, could take their place wherever they stand in the plan."""
        reasons = zip(why_not_apart(self.steps), self.node_of, strict=True)
        return frozenset(range(len(self.program.nodes))) - {number for reason, number in reasons if reason}

    def what_changed(self, inputs: Inputs) -> list[str]:
        """What is no longer as it was when the keys were made, a sentence each."""
        told = inputs.changed(self.identities)
        if not all(source.is_same_now() for source in self.sources):
            told.append("files came or went while it ran")
        if not all(map(is_still, self.functions)):
            told.append("a function changed while it ran")
        return told


def keyed(root: object, circumstances: bytes, inputs: Inputs, registered: Collection[str]) -> Keyed:
    """The program of a plan, whose root relation is given. registered: names that are functions of the user's now."""
    return _Keying(steps_of(root), circumstances, inputs, registered).run()


def key_of_step(frame: bytes, content: bytes, below: Sequence[bytes]) -> bytes:
    """The key of a relation over others, by what it does and by their keys."""
    return digest_of(frame + joined("key", content, *below))


def key_of_read(frame: bytes, source: Source, names: Sequence[bytes]) -> bytes:
    """The key of a read, by the names of its files."""
    return digest_of(frame + joined("key", source.content, source.layout, *names))


class _Keying:
    def __init__(
        self, steps: Sequence[Step], circumstances: bytes, inputs: Inputs, registered: Collection[str]
    ) -> None:
        self._steps, self._frame, self._inputs, self._registered = steps, circumstances, inputs, registered
        self._nodes: list[Node] = []
        self._node_of: list[int] = []
        self._contents: list[bytes] = []  # of each step, as its keys have it
        self._by_key: dict[tuple[bytes, ...], int] = {}
        self._sources: list[Source] = []
        self._identities: list[Identity] = []
        self._reads: dict[int, tuple[Source, tuple[Identity, ...]]] = {}
        self._files: dict[int, tuple[Identity, ...]] = {}

    def run(self) -> Keyed:
        barred = any((step.refusals and step.layout) or self._why_not_the_engines(step) for step in self._steps)
        for step in self._steps:
            # Where nothing can be reused, no file is looked at.
            known = len(self._identities)
            node = self._read(step, look=not barred) if step.read is not None else self._relation(step)
            self._node_of.append(self._added(node))
            self._contents.append(step.content)
            self._files.setdefault(self._node_of[-1], tuple(self._identities[known:]))
        functions = tuple(function for step in self._steps for function in step.functions)
        return Keyed(
            Program(tuple(self._nodes)), tuple(self._sources), tuple(self._identities), functions, tuple(self._steps),
            tuple(self._node_of), self._files, barred, tuple(self._contents), self._reads, self._frame,
            frozenset(self._registered),
        )  # fmt: skip

    def _added(self, node: Node) -> int:
        """The number of a node; a computation that is there already is not added again, unless it is the root."""
        known = self._by_key.get(node.keys)
        if known is not None and len(self._node_of) + 1 < len(self._steps):
            return known
        self._nodes.append(node)
        self._by_key[node.keys] = len(self._nodes) - 1
        return len(self._nodes) - 1

    def _relation(self, step: Step) -> Node:
        below = tuple(self._node_of[number] for number in step.inputs)
        nodes = [self._nodes[number] for number in below]
        program = digest_of(self._frame + joined("program", step.content, *(node.program for node in nodes)))
        best, last = (key_of_step(self._frame, step.content, [node.keys[which] for node in nodes]) for which in (0, -1))
        below_refused = sorted((node.refusal for node in nodes if node.refusal), key=lambda reason: reason == _UNSEEN)
        refusal = self._refusal(step) or next(iter(below_refused), "")
        order = RELATIONS.get(step.kind, ROW_WISE)
        order = replace(order, arbitrary=True) if step.windows or step.layout else order
        return Node(step.kind, below, program, tuple(dict.fromkeys((best, last))), order, refusal, step.breaks)

    def _refusal(self, step: Step) -> str:
        return "; ".join(step.refusals) or self._why_not_the_engines(step)

    def _why_not_the_engines(self, step: Step) -> str:
        """Why functions of a step may not be those of the engine."""
        if ANY_NAME in self._registered:
            return "this session may have functions or sources of its own under any name"
        taken = sorted(step.calls & frozenset(self._registered))
        if taken:
            return f"{taken[0]} is a function that this session has registered"
        return ""

    def _read(self, step: Step, *, look: bool) -> Node:
        order = RELATIONS["read"]
        if not look:
            return Node("read", (), digest_of(b"unknown"), (digest_of(b"unknown"),), order, _UNSEEN, is_input=True)
        try:
            if ANY_NAME in self._registered:
                raise UserError("this session may have sources of its own under any name")
            source = source_of(step.read)
            identities = self._inputs.identify(source.files)
        except (UserError, InputFailure) as error:
            unknown = digest_of(joined("unknown", str(error)))
            return Node("read", (), unknown, (unknown,), order, str(error), is_input=True)
        self._sources.append(source)
        self._identities += identities
        self._reads[len(self._node_of)] = source, tuple(identities)
        program = digest_of(self._frame + joined("program", source.content))
        keys = (
            key_of_read(self._frame, source, [identity.names[which] for identity in identities]) for which in (0, -1)
        )
        return Node(f"read {source.text}", (), program, tuple(dict.fromkeys(keys)), order, is_input=True)
