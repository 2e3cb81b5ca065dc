"""The collector: keeps a store within its budget, and deletes files nobody refers to.

In: an index and a store. Out: deleted entries and files, with reasons. Entries go first (one transaction that looks at
pins and leases again), their files after; a file is deleted only once no row refers to it any more. Everything may end
at any line: what was doomed is deleted by the next pass, what lies around is swept.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from nectar.catalog import state
from nectar.catalog.index.base import Index
from nectar.catalog.state import Budget, Candidate, Need, Policy, Victim
from nectar.clock import Clock
from nectar.errors import CatalogFailure, StoreFailure
from nectar.model.entry import Entry, Lease
from nectar.store.layout import key_of
from nectar.store.remove import Found
from nectar.store.store import Store

GRACE: Final = 3600.0  # seconds that files without a row are left alone: their writer may be about to add it
_ROUNDS: Final = 4  # how often room is looked for before giving up: others may take what was freed
_BATCH: Final = 200  # entries evicted in one transaction


@dataclass(slots=True)
class Collected:
    """What a pass of the collector did, or would do."""

    evicted: list[Victim] = field(default_factory=list)
    kept: dict[bytes, str] = field(default_factory=dict)
    swept: list[str] = field(default_factory=list)
    freed: int = 0


class Collector:
    """Makes room, evicts, sweeps."""

    def __init__(self, index: Index, store: Store, budget: Budget, policy: Policy, clock: Clock) -> None:
        self.index = index
        self.store = store
        self.budget = budget
        self.policy = policy
        self.clock = clock

    def needed(self, coming: int = 0) -> Need:
        """What has to be freed to keep the budget."""
        now = self.clock.now()
        free = self.store.free_space() if self.budget.reserve else None
        return state.need(self.budget, self.index.usage(now), free, now, coming)

    def plan(self, coming: int = 0, everything: bool = False) -> list[Victim]:
        """What would be evicted now; what is in use is left out."""
        now = self.clock.now()
        candidates = self._not_leased(self.index.candidates())
        if everything:
            return [Victim(each.key, each.size, each.files, "asked for") for each in candidates if not each.pinned]
        wanted = self.needed(coming)
        return state.choose(candidates, wanted, self.policy, now) if wanted else []

    def enforce(self, coming: int = 0) -> Collected:
        """Evicts until the budget is kept, as far as pins and leases allow."""
        done = Collected()
        self.delete_doomed(done)
        for _ in range(_ROUNDS):
            wanted = self.needed(coming)
            if not wanted or not self._evict_some(wanted, done):
                break
        return done

    def _evict_some(self, wanted: Need, done: Collected) -> bool:
        """One round over the entries; True if anything went."""
        now = self.clock.now()
        victims = state.choose(self._not_leased(self.index.candidates()), wanted, self.policy, now)
        return bool(victims) and self.evict(victims, done)

    def _not_leased(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """Leaves out what is in use, so that something else is chosen in its place."""
        held = {key_of(lease.location) for lease in state.live(self.index.leases(), self.clock.now())}
        return (each for each in candidates if each.key not in held)

    def evict(self, victims: Iterable[Victim], done: Collected | None = None) -> bool:
        """Evicts entries and deletes their files; True if anything went."""
        done = Collected() if done is None else done
        any_gone = False
        for batch in _batches(victims, _BATCH):
            try:
                any_gone = self._evict_batch(batch, done) or any_gone
            except CatalogFailure:
                # A disk without room for a large transaction may have it for a small one, which makes room for more.
                for victim in batch:
                    any_gone = self._evict_batch([victim], done) or any_gone
        return any_gone

    def _evict_batch(self, victims: list[Victim], done: Collected) -> bool:
        """Evicts entries in one transaction, and deletes their files; True if anything went."""
        gone, kept = self.index.evict([victim.key for victim in victims], self.clock.now())
        keys = {entry.key for entry in gone}
        done.evicted.extend(victim for victim in victims if victim.key in keys)
        done.kept.update(kept)
        done.freed += sum(entry.size for entry in gone if not entry.location)
        self._delete([entry.location for entry in gone if entry.location], done)
        return bool(gone)

    def delete_doomed(self, done: Collected | None = None) -> Collected:
        """Deletes the files of entries that are gone; a pass that ended early left them."""
        done = Collected() if done is None else done
        self._delete([location for location, _ in self.index.doomed()], done)
        return done

    def _delete(self, locations: list[str], done: Collected) -> None:
        """Deletes files and forgets about them; one that cannot be deleted does not keep the others."""
        deleted: list[str] = []
        failures: list[StoreFailure] = []
        for location in locations:
            try:
                done.freed += self.store.delete(location)
                deleted.append(location)
            except StoreFailure as failure:
                failures.append(failure)
        if deleted:
            self.index.forget_doomed(deleted)
        if failures:
            raise failures[0]

    def sweep(self, apply: bool = True, grace: float = GRACE) -> Collected:
        """Deletes what lies in the store and belongs to nobody: mark by the rows, sweep by the files."""
        done = Collected()
        now = self.clock.now()
        if apply:
            self.index.expire(now)
            self.delete_doomed(done)
        for batch in _batches(self.store.locations(), 1000):
            for found in self._orphans(batch, now, grace):
                done.swept.append(found.location)
                if apply:
                    # No row is needed: if this ends early, what is left is swept by the next pass.
                    done.freed += self.store.delete(found.location)
                else:
                    done.freed += found.size
        return done

    def _orphans(self, batch: list[Found], now: float, grace: float) -> list[Found]:
        ours = [found for found in batch if not found.foreign]
        leases: dict[str, list[Lease]] = {}
        for lease in self.index.leases():
            leases.setdefault(lease.location, []).append(lease)
        # After the leases: what had none a moment ago, and will become an entry, is one by now.
        referred = self.index.referred([found.location for found in ours])
        return [
            found
            for found in ours
            if state.may_sweep(
                # What was being written when it was listed may have been published since: its row tells.
                found.location in referred and not found.trashed,
                leases.get(found.location, ()),
                found.modified,
                0.0 if found.trashed else grace,
                now,
            )
        ]


def _batches(values: Iterable[object], size: int) -> Iterator[list]:  # type: ignore[type-arg]
    iterator = iter(values)
    while batch := list(itertools.islice(iterator, size)):
        yield batch


def victims_of(entries: Iterable[Entry], reason: str) -> list[Victim]:
    """Entries as victims, for those who already chose."""
    return [Victim(entry.key, entry.size, entry.files, reason) for entry in entries]
