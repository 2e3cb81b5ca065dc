"""A program: operators over operators over inputs, each with its fingerprints.

Dialects make programs from what people write; planning (rewrite/) decides on them; nobody runs them. Nodes stand in an
order in which inputs come before those who use them. Two nodes with the same key are the same computation, and a
program has it once.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from msgspec import Struct
from msgspec.structs import force_setattr


class Order(Struct, frozen=True):
    """What an operator has to do with the order of rows, and whether two runs of it give the same.

    scrambles: the order of its output is not determined. carries: the order of its input shows in its output.
    sensitive: which rows or values it gives depends on the order of its input. arbitrary: which rows or values it
    gives is not determined even by that, down to the last bit of a sum.
    """

    scrambles: bool = False
    carries: bool = True
    sensitive: bool = False
    arbitrary: bool = False


ROW_WISE = Order()
POSITIONAL = Order(sensitive=True)


class Node(Struct, frozen=True):
    """One operator.

    text: what it does, for people. inputs: numbers of the nodes it reads. program: fingerprint without the identities
    of what is read. keys: with them, the best first; a result may be found under any. refusal: why its result must
    not be kept or reused; empty if it may. breaker: nothing that is done above it could have been done below it, so
    that keeping its result costs nobody anything. acts: it may change objects of this process, so that it must be run
    as it was given, and not as part of another program that does the same.
    """

    text: str
    inputs: tuple[int, ...]
    program: bytes
    keys: tuple[bytes, ...]
    order: Order = ROW_WISE
    refusal: str = ""
    breaker: bool = False
    is_input: bool = False
    acts: bool = False

    @property
    def key(self) -> bytes:
        """Where a new result is kept."""
        return self.keys[0]


class Program(Struct, frozen=True):
    """Nodes, inputs first; the last is the root. users: computed, for each node the numbers of those who read it."""

    nodes: tuple[Node, ...]
    users: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        users: list[list[int]] = [[] for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            for source in node.inputs:
                users[source].append(number)
        force_setattr(self, "users", tuple(map(tuple, users)))

    @property
    def root(self) -> int:
        """The number of the root."""
        return len(self.nodes) - 1

    def below(self, number: int, known: Container[int] = ()) -> Iterator[int]:
        """A node and everything it is made from, each once; what known nodes are made from is not needed."""
        seen = {number}
        pending = [number]
        while pending:
            current = pending.pop()
            yield current
            for source in () if current in known else self.nodes[current].inputs:
                if source not in seen:
                    seen.add(source)
                    pending.append(source)
