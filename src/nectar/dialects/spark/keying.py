"""From a plan to its program: each relation with its fingerprint and keys, as its files are now.

The key of a relation is a hash of what it does and of the keys of what it reads; that of a read, of its files. All of
them stand for the engine and the settings of the session as well. A relation that may not be reused makes everything
above it so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nectar.dialects.spark.elsewhere import Elsewhere
from nectar.dialects.spark.fresh import as_sent, state_of
from nectar.dialects.spark.function_names import ANY_NAME
from nectar.dialects.spark.functions import Pickled, is_still
from nectar.dialects.spark.kinds import RELATIONS
from nectar.dialects.spark.reads import Source, source_of
from nectar.dialects.spark.relations import Step, steps_of
from nectar.errors import EnvironmentFailure, UserError
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.program.tree import ROW_WISE, Node, Program
from nectar.store.inputs.identify import Identity, Inputs

_UNSEEN: Final = "its files were not looked at, since another part is refused"


@dataclass(frozen=True, slots=True)
class Keyed:
    """A program and what its keys stand for. states: of files, by read, for a server that remembers (`fresh.py`)."""

    program: Program
    sources: tuple[Source, ...]
    identities: tuple[Identity, ...]
    functions: tuple[Pickled, ...]
    states: Mapping[bytes, bytes]

    @property
    def root(self) -> Node:
        """The result."""
        return self.program.nodes[self.program.root]

    def what_changed(self, inputs: Inputs) -> list[str]:
        """What is no longer as it was when the keys were made, a sentence each."""
        told = inputs.changed(self.identities)
        if not all(source.is_same_now() for source in self.sources):
            told.append("files came or went while it ran")
        if not all(map(is_still, self.functions)):
            told.append("a function changed while it ran")
        return told


def keyed(
    root: object, circumstances: bytes, inputs: Inputs, registered: Collection[str],
    elsewhere: Elsewhere | None = None,
) -> Keyed:  # fmt: skip
    """The program of a plan, whose root relation is given. registered: names that are functions of the user's now.

    elsewhere: the server, if it is none of this process.
    """
    return _Keying(steps_of(root), circumstances, inputs, registered, elsewhere).run()


class _Keying:
    def __init__(
        self, steps: Sequence[Step], circumstances: bytes, inputs: Inputs, registered: Collection[str],
        elsewhere: Elsewhere | None,
    ) -> None:  # fmt: skip
        self._steps, self._frame, self._inputs, self._registered = steps, circumstances, inputs, registered
        self._elsewhere = elsewhere
        self._states: dict[bytes, bytes] = {}
        self._nodes: list[Node] = []
        self._node_of: list[int] = []
        self._by_key: dict[tuple[bytes, ...], int] = {}
        self._sources: list[Source] = []
        self._identities: list[Identity] = []

    def run(self) -> Keyed:
        refused = any(step.refusals for step in self._steps)
        for step in self._steps:
            # Where something is refused anyway, nothing is reused so far, and no file is looked at.
            node = self._read(step, look=not refused) if step.read is not None else self._relation(step)
            self._node_of.append(self._added(node))
        functions = tuple(function for step in self._steps for function in step.functions)
        return Keyed(
            Program(tuple(self._nodes)), tuple(self._sources), tuple(self._identities), functions, self._states
        )

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
        below_refused = sorted((node.refusal for node in nodes if node.refusal), key=lambda reason: reason == _UNSEEN)
        refusal = self._refusal(step) or next(iter(below_refused), "")
        content = step.content
        if step.functions and self._elsewhere is not None and not refusal:
            refusal = self._elsewhere.why_unlike(step.functions)
            content = content if refusal else joined("elsewhere", content, self._elsewhere.environment())
        program = digest_of(self._frame + joined("program", content, *(node.program for node in nodes)))
        best = self._key(content, [node.keys[0] for node in nodes])
        last = self._key(content, [node.keys[-1] for node in nodes])
        order = RELATIONS.get(step.kind, ROW_WISE)
        return Node(step.kind, below, program, tuple(dict.fromkeys((best, last))), order, refusal)

    def _key(self, content: bytes, below: Sequence[bytes]) -> bytes:
        return digest_of(self._frame + joined("key", content, *below))

    def _refusal(self, step: Step) -> str:
        if step.refusals:
            return "; ".join(step.refusals)
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
            unseen = "" if self._elsewhere is None else self._elsewhere.why_unseen(source)
            if unseen:
                raise EnvironmentFailure(unseen)
            if self._elsewhere is not None:
                self._states[as_sent(step.read)] = state_of(source, identities)
        except (UserError, EnvironmentFailure) as error:
            unknown = digest_of(joined("unknown", str(error)))
            return Node("read", (), unknown, (unknown,), order, str(error), is_input=True)
        self._sources.append(source)
        self._identities += identities
        program = digest_of(self._frame + joined("program", source.content))
        names = [identity.names for identity in identities]
        keys = (
            digest_of(self._frame + joined("key", source.content, source.layout, *(each[which] for each in names)))
            for which in (0, -1)
        )
        return Node(f"read {source.text}", (), program, tuple(dict.fromkeys(keys)), order, is_input=True)
