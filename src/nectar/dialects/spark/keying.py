"""From a plan to its program: each relation with its fingerprint and keys, as its files are now.

The key of a relation is a hash of what it does and of the keys of what it reads; that of a read, of its files. All of
them stand for the engine and the settings of the session as well. A relation that may not be reused makes everything
above it so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.connect.proto import relations_pb2

from nectar.dialects.spark.function_names import why_unknown
from nectar.dialects.spark.functions import Pickled, is_still
from nectar.dialects.spark.kinds import RELATIONS, UNSORTED
from nectar.dialects.spark.reads import FORMATS, Source, source_of
from nectar.dialects.spark.relations import Step, steps_of
from nectar.dialects.spark.scope import Registered, Scope, View
from nectar.dialects.spark.sql.words import Name
from nectar.errors import InputFailure, UserError
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.program.tree import ROW_WISE, Node, Order, Program
from nectar.store.inputs.identify import Identity, Inputs

_UNSEEN: Final = "its files were not looked at, since another part is refused"


@dataclass(frozen=True, slots=True)
class Keyed:
    """A program and what its keys stand for."""

    program: Program
    sources: tuple[Source, ...]
    identities: tuple[Identity, ...]
    functions: tuple[Pickled, ...]

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


def keyed(root: object, circumstances: bytes, inputs: Inputs, scope: Scope) -> Keyed:
    """The program of a plan, whose root relation is given. scope: what names mean in its session."""
    return keyed_steps(steps_of(root), circumstances, inputs, scope)


def keyed_steps(steps: Sequence[Step], circumstances: bytes, inputs: Inputs, scope: Scope) -> Keyed:
    """The program of a plan that has been read."""
    try:
        return _Keying(steps, circumstances, inputs, scope, {}).run()
    except RecursionError as error:
        raise UserError("its views are nested too deeply") from error


class _Keying:
    def __init__(
        self, steps: Sequence[Step], circumstances: bytes, inputs: Inputs, scope: Scope, views: dict[int, Keyed]
    ) -> None:
        self._steps, self._frame, self._inputs, self._scope = steps, circumstances, inputs, scope
        self._views = views  # by the id of the view: one may be read in many places
        self._nodes: list[Node] = []
        self._node_of: list[int] = []
        self._by_key: dict[tuple[bytes, ...], int] = {}
        self._sources: list[Source] = []
        self._identities: list[Identity] = []
        self._functions: list[Pickled] = [function for step in steps for function in step.functions]

    def run(self) -> Keyed:
        refused = any(self._refusal(step) for step in self._steps)
        for step in self._steps:
            # Where something is refused anyway, nothing is reused so far, and no file is looked at.
            is_read = step.read is not None
            node = self._read(step.read, look=not refused) if is_read else self._relation(step, look=not refused)
            self._node_of.append(self._added(node))
        program = Program(tuple(self._nodes))
        sources = {id(source): source for source in self._sources}
        identities = {id(identity): identity for identity in self._identities}
        return Keyed(program, tuple(sources.values()), tuple(identities.values()), tuple(self._functions))

    def _added(self, node: Node) -> int:
        """The number of a node; a computation that is there already is not added again, unless it is the root."""
        known = self._by_key.get(node.keys)
        if known is not None and len(self._node_of) + 1 < len(self._steps):
            return known
        self._nodes.append(node)
        self._by_key[node.keys] = len(self._nodes) - 1
        return len(self._nodes) - 1

    def _relation(self, step: Step, *, look: bool) -> Node:
        below = tuple(self._node_of[number] for number in step.inputs)
        named = [self._named(name, look=look) for name in step.names]
        nodes = [*(self._nodes[number] for number in below), *named]
        content = joined("relation", step.content, *self._registered(step))
        program = digest_of(self._frame + joined("program", content, *(node.program for node in nodes)))
        best = self._key(content, [node.keys[0] for node in nodes])
        last = self._key(content, [node.keys[-1] for node in nodes])
        below_refused = sorted((node.refusal for node in nodes if node.refusal), key=lambda reason: reason == _UNSEEN)
        refusal = self._refusal(step) or next(iter(below_refused), "")
        order = self._order(step, below, named) if step.names or step.sql else RELATIONS.get(step.kind, ROW_WISE)
        text = f"{step.kind} of {', '.join('.'.join(name) for name in step.names)}" if step.names else step.kind
        return Node(text, below, program, tuple(dict.fromkeys((best, last))), order, refusal)

    def _order(self, step: Step, below: Sequence[int], named: Sequence[Node]) -> Order:
        """Of a text, or a relation by name: that of a sort, unless neither it nor what it reads has an order."""
        ordered = _ordered(self._nodes)
        read = [*(ordered[number] for number in below), *(not node.order.scrambles for node in named)]
        return UNSORTED if read and not any(read) and not step.sorts else RELATIONS["sql"]

    def _key(self, content: bytes, below: Sequence[bytes]) -> bytes:
        return digest_of(self._frame + joined("key", content, *below))

    def _refusal(self, step: Step) -> str:
        if step.refusals:
            return "; ".join(step.refusals)
        if self._scope.unknown:
            return self._scope.unknown
        if self._scope.foreign and (step.names or step.sql):
            return self._scope.foreign
        unknown = sorted(step.unknown - self._scope.functions.keys())
        if unknown:
            return why_unknown(unknown[0])
        return next(iter(self._of_registered(step)), "")

    def _called(self, step: Step) -> Iterator[tuple[str, Registered]]:
        """Functions that were registered and that a step may call, by name."""
        for name in sorted((step.calls | self._scope.instead) & self._scope.functions.keys()):
            yield name, self._scope.functions[name]

    def _of_registered(self, step: Step) -> Iterator[str]:
        """Why functions that a step calls and that were registered are not reused."""
        for name, function in self._called(step):
            if function.refusal:
                yield f"{name} is a function that this session has registered: {function.refusal}"
            elif not all(map(is_still, function.functions)):
                yield f"the function {name} changed after it was registered"

    def _registered(self, step: Step) -> Iterator[bytes]:
        """What the functions compute that a step calls and that were registered."""
        for name, function in self._called(step):
            self._functions += function.functions
            yield joined("registered", name, function.content)

    # relations by name

    def _named(self, name: Name, *, look: bool) -> Node:
        """The relation that a name stands for."""
        if not look:
            return _refused("named", _UNSEEN)
        view = self._scope.view(name)
        if view is not None:
            return self._viewed(".".join(name), view)
        if len(name) == 2 and name[0].lower() in FORMATS:  # a path, as in parquet.`clicks/`
            return self._read(_read_of(*name), look=True)
        return _refused("named", f"the table or view {'.'.join(name)} is not one that this session was seen to make")

    def _viewed(self, name: str, view: View) -> Node:
        """A view as everything is now; and as it was when it was made, if that was different."""
        if view.refusal:
            return _refused("view", f"the view {name} is not reused: {view.refusal}")
        if view.folder != os.getcwd():
            return _refused("view", f"the working folder is another one than when the view {name} was made")
        found = self._views.get(id(view))
        if found is None:
            found = self._views[id(view)] = _Keying(
                view.steps, self._frame, self._inputs, view.scope, self._views
            ).run()
        self._sources += found.sources
        self._identities += found.identities
        self._functions += found.functions
        root = found.root
        refusal = f"the view {name} is not reused: {root.refusal}" if root.refusal else ""
        if not all(map(is_still, found.functions)):
            refusal = f"a function of the view {name} changed after it was made"
        frozen = b"" if root.keys[-1] == view.made else view.made
        keys = tuple(digest_of(joined("view", view.content, frozen, key)) for key in root.keys)
        program = digest_of(joined("view", view.content, root.program))
        order = RELATIONS["sql"] if _ordered(found.program.nodes)[-1] else UNSORTED
        return Node("view", (), program, keys, order, refusal)

    def _read(self, read: Any, *, look: bool) -> Node:
        order = RELATIONS["read"]
        if not look:
            return _refused("read", _UNSEEN)
        try:
            if self._scope.unknown:
                raise UserError(self._scope.unknown)
            source = source_of(read)
            identities = self._inputs.identify(source.files)
        except (UserError, InputFailure) as error:
            return _refused("read", str(error))
        self._sources.append(source)
        self._identities += identities
        program = digest_of(self._frame + joined("program", source.content))
        names = [identity.names for identity in identities]
        keys = (
            digest_of(self._frame + joined("key", source.content, source.layout, *(each[which] for each in names)))
            for which in (0, -1)
        )
        return Node(f"read {source.text}", (), program, tuple(dict.fromkeys(keys)), order, is_input=True)


def _ordered(nodes: Sequence[Node]) -> list[bool]:
    """For each node whether its rows come in an order that somebody could rely on."""
    found: list[bool] = []
    for node in nodes:
        from_below = not node.inputs or not node.order.carries or any(found[below] for below in node.inputs)
        found.append(not node.order.scrambles and from_below)
    return found


def _refused(kind: str, reason: str) -> Node:
    unknown = digest_of(joined("unknown", reason))
    return Node(kind, (), unknown, (unknown,), RELATIONS["read"], reason, is_input=True)


def _read_of(format_: str, path: str) -> Any:
    read = relations_pb2.Read()
    read.data_source.format = format_
    read.data_source.paths.append(path)
    return read
