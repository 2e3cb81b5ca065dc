"""What runs came to, in one line."""

from __future__ import annotations

from collections.abc import Iterator

from nectar.report.run import Part, summary


class RunTotals:
    """What all runs so far came to: parts, those that were reused, seconds that saved, and what was kept.

    alone: queries that were left alone because they are quick; waived: because Nectar had no time left for them.
    failed: those that raised an error or were interrupted. unkept: those whose result went elsewhere, by where. unseen:
    what ran without Nectar, and how it could run with it. above: totals that everything is counted into as well.
    """

    def __init__(self, above: RunTotals | None = None) -> None:
        self.parts = self.reused = self.kept = self.kept_bytes = 0
        self.alone = self.waived = self.failed = 0
        self.saved = 0.0
        self.unkept: dict[str, int] = {}
        self.unseen = ""
        self._above = above

    def count(self, part: Part) -> None:
        """Takes up a part that has ended."""
        self.parts += 1
        if part.outcome == "reused":
            self.reused += 1
            self.saved += max(0.0, part.saved - part.seconds)
        if self._above is not None:
            self._above.count(part)

    def count_kept(self, size: int) -> None:
        """Takes up a result that has been written."""
        self.kept += 1
        self.kept_bytes += size
        if self._above is not None:
            self._above.count_kept(size)

    def leave_alone(self, quick: bool, queries: int = 1) -> None:
        """Takes up queries that Nectar did not look at."""
        totals: RunTotals | None = self
        while totals is not None:  # no calls: this happens in loops of ten thousand
            if quick:
                totals.alone += queries
            else:
                totals.waived += queries
            totals = totals._above

    def count_failed(self) -> None:
        """Takes up a query that raised an error, or was interrupted."""
        self.failed += 1
        if self._above is not None:
            self._above.count_failed()

    def count_unkept(self, why: str) -> None:
        """Takes up a query whose result is never kept."""
        self.unkept[why] = self.unkept.get(why, 0) + 1
        if self._above is not None:
            self._above.count_unkept(why)

    def __str__(self) -> str:
        beside = [*self._beside()]
        if self.parts:
            return "; ".join([summary(self.parts, self.reused, self.saved, self.kept, self.kept_bytes), *beside])
        return f"nectar: nothing to reuse: {'; '.join(beside) or 'no query and no memoised function ran'}"

    def _beside(self) -> Iterator[str]:
        """What else ran, and why nothing of it was reused or kept."""
        if self.alone:
            yield f"{_queries(self.alone)} left alone, quicker than looking for {'it' if self.alone == 1 else 'them'}"
        if self.waived:
            yield f"{_queries(self.waived)} not looked at, to keep within the setting overhead"
        for why, number in self.unkept.items():
            yield f"{_queries(number)} not kept: {why}"
        if self.failed:
            yield f"{_queries(self.failed)} failed"
        if self.unseen:
            yield self.unseen


def _queries(number: int) -> str:
    return f"{number:,} quer{'y' if number == 1 else 'ies'}"


# Of all sessions of this process.
process_totals = RunTotals()
