"""A plan as a program: each relation with its fingerprint and keys, and what these stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nectar.dialects.spark.constants import Facts
from nectar.dialects.spark.day import Day
from nectar.dialects.spark.functions import Pickled, is_still
from nectar.dialects.spark.parts import why_not_apart
from nectar.dialects.spark.reads import Source
from nectar.dialects.spark.relations import Step
from nectar.dialects.spark.tables import Table
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.program.tree import Node, Program
from nectar.store.inputs.identify import Identity, Inputs

_FUNCTION_CHANGED: Final = "a function changed while it ran"


@dataclass(frozen=True, slots=True)
class Own:
    """What a node reads and calls itself, by name as well. declared: sources that are good for a while."""

    files: tuple[Identity, ...]
    functions: tuple[Pickled, ...]
    declared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Keyed:
    """A program and what its keys stand for. barred: the whole is refused for reasons that count for its parts, too.

    states: of files, by read, for a server that remembers (`fresh.py`). steps: the relations of the plan, inputs first.
    node_of, contents: for each of them the number of its node, and what its keys say that it does. reads: those that
    read files, with the identities of the files. own: what each node adds to those below it. frame: the engine and the
    settings that all keys stand for. declared: sources that are good for a while. facts: what the views that it
    reads say of their columns. tables: of a server's catalog. by_name: a server reads files of tables, or of
    paths in a text, without being told what is in them. day: on which it runs, if that is part of the keys.
    """

    program: Program
    sources: tuple[Source, ...]
    identities: tuple[Identity, ...]
    functions: tuple[Pickled, ...]
    states: Mapping[bytes, bytes]
    steps: tuple[Step, ...] = ()
    node_of: tuple[int, ...] = ()
    own: Mapping[int, Own] = field(default_factory=dict)
    barred: bool = False
    contents: tuple[bytes, ...] = ()
    reads: Mapping[int, tuple[Source, tuple[Identity, ...]]] = field(default_factory=dict)
    frame: bytes = b""
    declared: tuple[str, ...] = ()
    facts: tuple[Facts, ...] = ()
    tables: tuple[Table, ...] = ()
    by_name: bool = False
    day: Day | None = None

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
                assert not self.steps[at].names, "what is read by name has no place among the inputs"
                below = [keys[each] for each in self.steps[at].inputs]
                keys.append(key_of_step(self.frame, self.contents[at], below))
                changed.add(at)
        return keys[step]

    def steps_of(self, node: int) -> list[Step]:
        """All steps that are the same computation."""
        return [step for step, number in zip(self.steps, self.node_of, strict=True) if number == node]

    def files_below(self, node: int) -> list[Identity]:
        """The files that a node is made from, each once."""
        return list(dict.fromkeys(file for own in self._own_below(node) for file in own.files))

    def functions_below(self, node: int) -> list[Pickled]:
        """The Python functions that a node is made with, those of views and those that were registered included."""
        return [function for own in self._own_below(node) for function in own.functions]

    def declared_below(self, node: int) -> list[str]:
        """The sources that a node is made from and that are good for a while only."""
        return [source for own in self._own_below(node) for source in own.declared]

    def _own_below(self, node: int) -> list[Own]:
        return [self.own[each] for each in sorted(self.program.below(node)) if each in self.own]

    def apart(self) -> frozenset[int]:
        """Nodes whose rows, copied, could take their place wherever they stand in the plan."""
        orders = [self.program.nodes[number].order for number in self.node_of]
        reasons = zip(why_not_apart(self.steps, orders), self.node_of, strict=True)
        return frozenset(self.node_of) - {number for reason, number in reasons if reason}

    def why_functions_differ(self) -> str:
        """Says that a function computes something else now; empty if none does. The heavy ones are not looked at."""
        same = all(is_still(each) for each in self.functions if each.is_light)
        return "" if same else _FUNCTION_CHANGED

    def what_changed(self, inputs: Inputs, *, but_light_functions: bool = False) -> list[str]:
        """What is no longer as it was when the keys were made, a sentence each."""
        told = inputs.changed(self.identities)
        if not all(source.is_same_now() for source in self.sources):
            told.append("files came or went while it ran")
        functions = (each for each in self.functions if not (but_light_functions and each.is_light))
        if not all(map(is_still, functions)):
            told.append(_FUNCTION_CHANGED)
        if self.day is not None and self.day.is_over:
            told.append("the date changed while it ran")
        return told


def about(found: Keyed, number: int) -> str:
    """What a result is, for people: its last step, and what it reads."""
    nodes = found.program.nodes
    reads = [nodes[each].text for each in sorted(found.program.below(number)) if nodes[each].is_input]
    text = f"{nodes[number].text} of {', '.join(dict.fromkeys(reads))}" if reads else nodes[number].text
    return text if len(text) <= 200 else f"{text[:197]}..."


def key_of_step(frame: bytes, content: bytes, below: Sequence[bytes]) -> bytes:
    """The key of a relation over others, by what it does and by their keys."""
    return digest_of(frame + joined("key", content, *below))


def key_of_read(frame: bytes, source: Source, names: Sequence[bytes]) -> bytes:
    """The key of a read, by the names of its files."""
    return digest_of(frame + joined("key", source.content, source.layout, *names))
