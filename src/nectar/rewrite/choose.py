"""What to take from the store: the largest known parts, from the root downwards; and what would be worth keeping.

In: a program, the entries that are known, how often each part was looked up before. Out: a Choice. The part nearest to
the root wins: reading a result costs less than reading a smaller one and computing the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from nectar.model.entry import Entry
from nectar.program.tree import Program
from nectar.rewrite.consistency import reusable

LOOKED_UP: Final = 2  # so often in vain before a part is thought worth keeping


class Choice(Struct, frozen=True):
    """What is taken from the store, and what is computed.

    hits: what each of these nodes is answered with. computed: the others that are needed. keep: of those, parts to be
    kept on the way, inputs of others first.
    """

    hits: dict[int, Entry]
    computed: tuple[int, ...]
    keep: tuple[int, ...]


def wanted(program: Program) -> list[int]:
    """Nodes whose results may be looked up, the root first."""
    allowed = reusable(program)
    return [
        number
        for number in reversed(range(len(program.nodes)))
        if allowed[number] and not program.nodes[number].is_input
    ]


def choose(program: Program, entries: Mapping[int, Entry], lookups: Mapping[int, int]) -> Choice:
    """The largest known parts, and which of the others have been asked for often enough to be kept.

    entries, lookups: by the number of the node; only of nodes that may be looked up.
    """
    hits: dict[int, Entry] = {}
    needed: set[int] = set()
    pending = [program.root]
    while pending:
        number = pending.pop()
        if number in needed or number in hits:
            continue
        if number in entries:
            hits[number] = entries[number]
            continue
        needed.add(number)
        pending.extend(program.nodes[number].inputs)
    computed = tuple(sorted(needed))
    return Choice(hits, computed, _worth_keeping(program, computed, lookups))


def _worth_keeping(program: Program, computed: Sequence[int], lookups: Mapping[int, int]) -> tuple[int, ...]:
    """Parts to be computed on their own. What may not be looked up may not be cut out either, for the same reason."""
    return tuple(
        number
        for number in computed
        if number != program.root and program.nodes[number].breaker and lookups.get(number, -1) >= LOOKED_UP
    )


def choose_opened(
    program: Program, entries: Mapping[int, Entry], lookups: Mapping[int, int], is_opened: Callable[[int, Entry], bool]
) -> Choice:
    """The same, of entries that can be opened: what is lost is chosen no more, and something smaller may be."""
    left = dict(entries)
    while True:
        choice = choose(program, left, lookups)
        lost = [number for number, entry in choice.hits.items() if not is_opened(number, entry)]
        if not lost:
            return choice
        for number in lost:
            del left[number]
