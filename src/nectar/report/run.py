"""The report of a run: which queries and calls came from cache, which were computed, what was kept, and why.

A part is filled in while the run goes on; whether it was kept is known only after it has been written. The reason of a
miss is found when somebody asks for it: looking for it may take longer than the part itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from nectar.quantities import show_duration
from nectar.report.totals import Kind, RunTotals, is_interruption
from nectar.trust.secrets import redacted

Outcome = Literal["reused", "computed", "uncacheable", "failed", "interrupted"]
_DETAILED = 20  # parts that are listed one by one


@dataclass(slots=True)
class Part:
    """One part of a run: a query, a call of a memoised function, or a step of a query that is reused in another one.

    seconds: spent on it now. saved: what it took when it was computed, if it was reused. keeping: what becomes of a
    computed result: "being kept", "kept", or why not.
    """

    name: str
    outcome: Outcome = "computed"
    seconds: float = 0.0
    saved: float = 0.0
    size: int = 0
    keeping: str = ""
    key: str = ""
    kind: Kind = "query"
    explain: Callable[[], str] | None = field(default=None, repr=False)
    _reason: str | None = field(default=None, repr=False)

    @property
    def reason(self) -> str:
        """Why it was computed, or cannot be cached; empty for what was reused."""
        if self._reason is None:
            self._reason = "" if self.explain is None else redacted(self.explain())
            self.explain = None  # it may hold the arguments of a call
        return self._reason

    @property
    def kept(self) -> bool:
        """Whether the result is in the catalog now."""
        return self.outcome == "reused" or self.keeping == "kept"

    def fail(self, error: BaseException | None) -> None:
        """It gave no result."""
        self.outcome = "interrupted" if is_interruption(error) else "failed"

    def __str__(self) -> str:
        if self.outcome == "reused":
            return f"{self.name}: reused in {show_duration(self.seconds)}, saved {show_duration(self.saved)}"
        notes = [note for note in (self.reason, self.keeping) if note]
        head = f"{self.name}: {self.outcome} in {show_duration(self.seconds)}"
        return redacted(f"{head} ({'; '.join(notes)})" if notes else head)


def show_own_time(spent: Mapping[str, float]) -> str:
    """What Nectar took for each purpose, such as "12 ms starting, 4 ms looking up"."""
    return ", ".join(f"{show_duration(seconds)} {purpose}" for purpose, seconds in spent.items() if seconds)


class RunReport:
    """What one run did. Its text is one line; `details()` has a line for each part."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._alone: dict[tuple[bool, Kind], int] = {}  # what was left alone, by whether that is because it is quick
        self.own_time: Mapping[str, float] = {}  # seconds that Nectar has taken in this process, by what it did

    @classmethod
    def of_one_left_alone(cls, quick: bool, kind: Kind) -> RunReport:
        """The report of a query, or of a call, that was left alone."""
        report = cls()
        report.leave_alone(quick, kind=kind)
        return report

    def leave_alone(self, quick: bool, number: int = 1, kind: Kind = "query") -> None:
        """Takes up queries or calls that Nectar did not look at. quick: because a look takes longer."""
        self._alone[quick, kind] = self._alone.get((quick, kind), 0) + number

    def add(self, part: Part) -> Part:
        """Takes up a part; it may be filled in later."""
        self.parts.append(part)
        return part

    @property
    def reused(self) -> list[Part]:
        """Parts whose results were known."""
        return [part for part in self.parts if part.outcome == "reused"]

    @property
    def computed(self) -> list[Part]:
        """Parts that had to be computed."""
        return [part for part in self.parts if part.outcome != "reused"]

    @property
    def seconds_saved(self) -> float:
        """Time that was not spent again, less the time it took to fetch the results."""
        return sum(max(0.0, part.saved - part.seconds) for part in self.reused)

    @property
    def bytes_saved(self) -> int:
        """Bytes of results that were not made again."""
        return sum(part.size for part in self.reused)

    @property
    def why(self) -> str:
        """Why parts were computed, a line each."""
        return "\n".join(f"{part.name}: {part.reason}" for part in self.computed if part.reason)

    def details(self) -> str:
        """A line for each part, then what Nectar itself took, the summary last."""
        own = [f"Nectar's own time in this process: {show_own_time(self.own_time)}"] if self.own_time else []
        return "\n".join([*self._lines(), *own, str(self)])

    def _lines(self) -> Iterator[str]:
        yield from map(str, self.parts[:_DETAILED])
        if len(self.parts) > _DETAILED:
            yield f"... and {len(self.parts) - _DETAILED:,} more"

    def __str__(self) -> str:
        if not self.parts and not self._alone:
            return "nectar: nothing has run yet"
        totals = RunTotals()
        for part in self.parts:
            totals.count(part)
            if part.keeping in ("kept", "being kept"):
                totals.count_kept(part.size)
        for (quick, kind), number in self._alone.items():
            totals.leave_alone(quick, number, kind)
        return str(totals)

    def __repr__(self) -> str:
        return f"<RunReport: {self}>"

    def _repr_html_(self) -> str:
        import html

        rows = "".join(
            f"<tr><td>{html.escape(part.name)}</td><td>{part.outcome}</td><td>{show_duration(part.seconds)}</td>"
            f"<td>{show_duration(part.saved) if part.outcome == 'reused' else ''}</td>"
            f"<td>{html.escape(part.reason)}</td></tr>"
            for part in self.parts[:_DETAILED]
        )
        head = "<tr><th>part</th><th>outcome</th><th>took</th><th>saved</th><th>why</th></tr>"
        return f"<p>{html.escape(str(self))}</p><table>{head}{rows}</table>"
