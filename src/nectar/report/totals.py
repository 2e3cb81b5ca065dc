"""What runs came to, in one line: how many queries and calls there were, and what became of them.

In: parts that have ended, and what ran without a look or went wrong. Out: text. Law: every query and every call is
counted once, by what became of it, in the first run of a program as in later ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, Literal

from nectar.quantities import show_duration, show_size

if TYPE_CHECKING:
    from nectar.report.run import Part

Kind = Literal["query", "call", "step"]  # a step is a part of a query that is reused in another one
_PLURAL: Final = {"query": "queries", "call": "calls", "step": "steps"}
_NAMED: Final = 3  # functions that are named


class Count:
    """How many queries there were, or calls, by what became of them.

    looked_at: those that Nectar looked at and that gave a result; cached: of these, those from cache; refused: of
    these, those that cannot be kept, by name. alone: left alone because they are quick; waived: because there was no
    time left. failed: those that raised an error, by name; interrupted: those that were stopped.
    """

    __slots__ = ("alone", "cached", "failed", "interrupted", "looked_at", "refused", "waived")

    def __init__(self) -> None:
        self.looked_at = self.cached = self.alone = self.waived = self.interrupted = 0
        self.refused: dict[str, int] = {}
        self.failed: dict[str, int] = {}


class RunTotals:
    """What all runs so far came to. saved: seconds. kept, kept_bytes: results that were written.

    steps: parts of queries that were reused in others. unkept: queries whose result went elsewhere, by where. unseen:
    what ran without Nectar, and how it could run with it. above: totals that everything is counted into as well.
    """

    def __init__(self, above: RunTotals | None = None) -> None:
        self.queries, self.calls = Count(), Count()
        self.steps = self.kept = self.kept_bytes = 0
        self.saved = 0.0
        self.unkept: dict[str, int] = {}
        self.unseen = ""
        self._above = above

    def _of(self, kind: Kind) -> Count:
        return self.calls if kind == "call" else self.queries

    def _all(self) -> Iterator[RunTotals]:
        totals: RunTotals | None = self
        while totals is not None:
            yield totals
            totals = totals._above

    # counting

    def count(self, part: Part) -> None:
        """Takes up a part that has ended."""
        if part.outcome in ("failed", "interrupted"):
            self.count_failed(part.kind, part.name, interrupted=part.outcome == "interrupted")
            return  # which counts above as well
        self._count(part)
        if self._above is not None:
            self._above.count(part)

    def _count(self, part: Part) -> None:
        is_reused = part.outcome == "reused"
        if is_reused and part.saved > part.seconds:
            self.saved += part.saved - part.seconds
        if part.kind == "step":
            self.steps += is_reused
            return
        count = self.calls if part.kind == "call" else self.queries
        count.looked_at += 1
        count.cached += is_reused
        if part.outcome == "uncacheable":
            count.refused[part.name] = count.refused.get(part.name, 0) + 1

    def count_kept(self, size: int) -> None:
        """Takes up a result that has been written."""
        for totals in self._all():
            totals.kept += 1
            totals.kept_bytes += size

    def leave_alone(self, quick: bool, number: int = 1, kind: Kind = "query") -> None:
        """Takes up queries or calls that Nectar did not look at."""
        for totals in self._all():
            count = totals._of(kind)
            if quick:
                count.alone += number
            else:
                count.waived += number

    def count_failed(self, kind: Kind = "query", name: str = "", *, interrupted: bool = False, number: int = 1) -> None:
        """Takes up queries or calls that raised an error, or were stopped."""
        for totals in self._all():
            count = totals._of(kind)
            if interrupted:
                count.interrupted += number
            else:
                count.failed[name] = count.failed.get(name, 0) + number

    def count_unkept(self, why: str) -> None:
        """Takes up a query whose result is never kept."""
        for totals in self._all():
            totals.unkept[why] = totals.unkept.get(why, 0) + 1

    # both kinds together

    @property
    def looked_at(self) -> int:
        """Queries and calls that Nectar looked at."""
        return self.queries.looked_at + self.calls.looked_at

    @property
    def cached(self) -> int:
        """Queries and calls that came from cache."""
        return self.queries.cached + self.calls.cached

    @property
    def alone(self) -> int:
        """Queries and calls that were left alone because they are quick."""
        return self.queries.alone + self.calls.alone

    @property
    def waived(self) -> int:
        """Queries and calls that were not looked at because there was no time left."""
        return self.queries.waived + self.calls.waived

    @property
    def failed(self) -> int:
        """Queries and calls that raised an error."""
        return sum(self.queries.failed.values()) + sum(self.calls.failed.values())

    # in words

    def __str__(self) -> str:
        beside = "; ".join(self._beside())
        if not self.looked_at and not self.steps:
            return f"nectar: nothing to reuse: {beside or 'no query and no memoised function ran'}"
        head = f"nectar: {self._from_cache()} from cache, {self._came_to()}"
        return f"{head}; {beside}" if beside else head

    def _from_cache(self) -> str:
        found = [
            f"{count.cached:,} of {number_of(count.looked_at, kind)}"
            for count, kind in self._by_kind()
            if count.looked_at
        ]
        return " and ".join([*found, *([number_of(self.steps, "step")] if self.steps else [])])

    def _came_to(self) -> str:
        if self.cached or self.steps:
            return f"{show_duration(self.saved)} saved"
        return f"{self.kept:,} kept for next time ({show_size(self.kept_bytes)})" if self.kept else "nothing kept"

    def _by_kind(self) -> tuple[tuple[Count, Kind], ...]:
        return (self.queries, "query"), (self.calls, "call")

    def _beside(self) -> Iterator[str]:
        """What else ran, and why nothing of it was reused or kept."""
        if self.alone:
            told = _both(self.queries.alone, self.calls.alone)
            yield f"{told} left alone, quicker than looking for {'it' if self.alone == 1 else 'them'}"
        if self.waived:
            yield f"{_both(self.queries.waived, self.calls.waived)} not looked at, to keep within the setting overhead"
        for why, number in self.unkept.items():
            yield f"{number_of(number, 'query')} not kept: {why}"
        for count, kind in self._by_kind():
            if count.refused:
                yield f"{_named(count.refused, kind)} cannot be kept"
        for count, kind in self._by_kind():
            if count.failed:
                yield f"{_named(count.failed, kind)} failed"
        interrupted = self.queries.interrupted, self.calls.interrupted
        if any(interrupted):
            yield f"{_both(*interrupted)} interrupted"
        if self.unseen:
            yield self.unseen


def number_of(number: int, kind: Kind) -> str:
    """Such as "2 queries"."""
    return f"{number:,} {kind if number == 1 else _PLURAL[kind]}"


def _both(queries: int, calls: int) -> str:
    told = [number_of(queries, "query")] if queries else []
    return " and ".join([*told, *([number_of(calls, "call")] if calls else [])])


def _named(numbers: Mapping[str, int], kind: Kind) -> str:
    """How many there are; of calls also of which functions."""
    told = number_of(sum(numbers.values()), kind)
    if kind != "call":
        return told
    names = sorted(filter(None, numbers), key=lambda name: -numbers[name])
    more = [f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else []
    return f"{told} of {', '.join([*names[:_NAMED], *more])}" if names else told


def is_interruption(error: BaseException | None) -> bool:
    """Whether an error says that somebody stopped what ran, and not that it failed."""
    return isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit) or (
        type(error).__name__ == "CancelledError" and not isinstance(error, Exception)
    )


# Of all sessions of this process.
process_totals = RunTotals()
