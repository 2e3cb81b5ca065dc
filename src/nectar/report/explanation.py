"""What becomes of each part of a query, and why: as a tree for people, told before the query runs.

Dialects make explanations. Whoever wants to see every query that runs is a watcher.
"""

from __future__ import annotations

import html
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from nectar.model.entry import Entry
from nectar.program.tree import Program
from nectar.quantities import show_duration, show_size
from nectar.trust.secrets import redacted

Becomes = Literal["reused", "put together", "kept", "computed", "not cached"]
_DEEPEST: Final = 40  # steps; what lies deeper stands no further to the right


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """One step of a query.

    depth: how far below the result. becomes: "kept" means that it is computed and kept on the way to the result, "put
    together" that it is made from what is known of some files, and from the others. note: why. saved: seconds that
    reusing it saves.
    """

    depth: int
    text: str
    detail: str
    becomes: Becomes
    note: str = ""
    saved: float = 0.0

    def __str__(self) -> str:
        head = f"{'  ' * min(self.depth, _DEEPEST)}{self.text}" + (f" [{self.detail}]" if self.detail else "")
        return redacted(f"{head}: {self.becomes}" + (f" ({self.note})" if self.note else ""))


@dataclass(frozen=True, slots=True)
class QueryExplanation:
    """What becomes of a query. Its text is a tree, the result first; parts that are not needed are left out."""

    parts: tuple[PlannedPart, ...]
    reason: str = ""
    growth: str = ""  # what becomes of it when files are added

    @property
    def seconds_saved(self) -> float:
        """How long the parts that are reused took when they were computed, and what putting together saves."""
        return sum(part.saved for part in self.parts)

    def __str__(self) -> str:
        reused = sum(part.becomes in ("reused", "put together") for part in self.parts)
        if not reused:
            head = f"nothing of it is known: {self.reason}" if self.reason else "nothing of it is known"
        elif self.parts[0].becomes == "reused":
            head = f"all of it is known: about {show_duration(self.seconds_saved)} saved"
        else:
            known = (
                f"{reused} part{'s' if reused > 1 else ''} of it known: about {show_duration(self.seconds_saved)} saved"
            )
            head = f"{known}; the rest is computed: {self.reason}" if self.reason else known
        last = [f"when files are added, {self.growth}"] if self.growth else []
        return redacted("\n".join([head, *map(str, self.parts), *last]))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def uncacheable(reason: str) -> QueryExplanation:
    """Of a query that runs as it is."""
    return QueryExplanation((PlannedPart(0, "query", "", "not cached", reason),), reason)


def visible(program: Program, known: Container[int]) -> Iterator[tuple[int, int, bool]]:
    """Nodes from the root downwards, as far as they are needed, with their depths; and whether one was there before."""
    seen: set[int] = set()
    pending = [(program.root, 0)]
    while pending:
        number, depth = pending.pop()
        again = number in seen
        yield number, depth, again
        if again or number in known:
            continue
        seen.add(number)
        pending.extend((source, depth + 1) for source in reversed(program.nodes[number].inputs))


def of_entry(entry: Entry) -> str:
    """What is told of a result that is reused."""
    return f"{entry.rows:,} rows, {show_size(entry.size)}, took {show_duration(entry.seconds)}"
