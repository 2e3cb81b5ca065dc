"""What runs came to, in one line."""

from __future__ import annotations

from nectar.report.run import Part, summary


class RunTotals:
    """What all runs so far came to: parts, those that were reused, seconds that saved, and what was kept.

    unseen: what ran without Nectar, and how it could run with it. above: totals that everything is counted into as
    well.
    """

    def __init__(self, above: RunTotals | None = None) -> None:
        self.parts = self.reused = self.kept = self.kept_bytes = 0
        self.saved = 0.0
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

    def __str__(self) -> str:
        if not self.parts:
            return f"nectar: nothing to reuse: {self.unseen or 'no query and no memoised function ran'}"
        return summary(self.parts, self.reused, self.saved, self.kept, self.kept_bytes)


# Of all sessions of this process.
process_totals = RunTotals()
