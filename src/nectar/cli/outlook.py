"""Whether the collector would evict an entry now, and why or why not; for one entry or for a listing of them."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from nectar.catalog import state
from nectar.catalog.service import Catalog
from nectar.cli.opened import rough
from nectar.model.entry import Entry, Lease


class Outlook:
    """What the collector would do, as of one moment."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._now = catalog.clock.now()

    @cached_property
    def _victims(self) -> dict[bytes, str]:
        return {victim.key: victim.reason for victim in self._catalog.collector.plan()}

    @cached_property
    def _leases(self) -> dict[str, list[Lease]]:
        found: dict[str, list[Lease]] = {}
        for lease in state.live(self._catalog.index.leases(), self._now):
            found.setdefault(lease.location, []).append(lease)
        return found

    @cached_property
    def _ranks(self) -> dict[bytes, float]:
        """How expendable those are that may go."""
        policy = self._catalog.collector.policy
        return {
            each.key: policy.expendability(each, self._now)
            for each in self._catalog.index.candidates()
            if each.rebuildable and not each.pinned and each.protected <= self._now
        }

    @cached_property
    def _order(self) -> list[float]:
        return sorted(self._ranks.values())

    def _held(self, entry: Entry) -> list[Lease]:
        return self._leases.get(entry.location, []) if entry.location else []

    def _place(self, entry: Entry) -> int | None:
        """The how manieth to go it is; None if it is not among those that may go."""
        rank = self._ranks.get(entry.key)
        return None if rank is None else 1 + len(self._order) - bisect_right(self._order, rank)

    def goes(self, entry: Entry) -> bool:
        """Whether it would be evicted now."""
        return state.may_evict(entry, self._held(entry), self._now) is None and entry.key in self._victims

    def told(self, entry: Entry) -> str:
        """Why it goes, or stays."""
        stays = state.may_evict(entry, self._held(entry), self._now)
        if stays == "pinned":
            return "stays: it is pinned, until `nectar unpin`"
        if stays is not None:
            until = max(lease.until for lease in self._held(entry))
            return f"stays: {stays}, for another {rough(until - self._now)} at most"
        if entry.key in self._victims:
            return f"goes with the next collection: {self._victims[entry.key]}"
        if not entry.rebuildable:
            return "stays: it cannot be rebuilt, so everything else that may go goes first"
        if entry.protected > self._now:
            left = rough(entry.protected - self._now)
            return f"stays: it is new, and spared for another {left} unless nothing else is left"
        place = self._place(entry)
        if place is None:
            return "stays: it was changed a moment ago"
        policy = self._catalog.collector.policy.name
        return f"stays: nothing has to go now; number {place:,} of {len(self._ranks):,} to go by the policy {policy}"

    def short(self, entry: Entry) -> str:
        """The same in a word: its number among those that may go, or why it has none."""
        if state.may_evict(entry, self._held(entry), self._now) is not None:
            return "pinned" if entry.pinned else "in use"
        if entry.key in self._victims:
            return "now"
        if not entry.rebuildable:
            return "last"
        place = self._place(entry)
        return "new" if place is None else f"{place:,}."
