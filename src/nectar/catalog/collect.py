"""The collector: keeps a store within its budget, and deletes files nobody refers to.

In: an index and a store. Out: deleted entries and files, with reasons. Entries go first (one transaction that looks at
pins and leases again), their files after; a file is deleted only once no row refers to it any more. Everything may end
at any line: what was doomed is deleted by the next pass, what lies around is swept.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from nectar.catalog import state
from nectar.catalog.holders import Presence
from nectar.catalog.index.spare import lacks_room
from nectar.catalog.state import Budget, Candidate, Need, Policy, Victim
from nectar.clock import Clock
from nectar.errors import CatalogFailure, StoreFailure
from nectar.model.entry import Entry, Lease, Reservation
from nectar.store.layout import key_of
from nectar.trust.secrets import logger

if TYPE_CHECKING:
    from nectar.catalog.index.base import Index
    from nectar.store.remove import Found
    from nectar.store.store import Store

_log: Final = logger("nectar.catalog")
GRACE: Final = 3600.0  # seconds that files without a row are left alone: their writer may be about to add it
SWEEP_EVERY: Final = 86400.0  # seconds between sweeps; a sweep lists the whole store
_REMEMBERED: Final = 180 * 86400.0  # seconds that what is known of inputs and programs stays without being seen
_LISTED: Final = 200  # folders of the store that are looked at together
_MOST_ROUNDS: Final = 64  # to make room for a recipe, a little at a time
_ONE_RECORD: Final = 4  # one recipe takes no more than this part of the budget
_ALL_RECORDS: Final = 2  # and all of them with all other records no more than this
_ROUNDS: Final = 4  # how often room is looked for before giving up: others may take what was freed
_SETTLING: Final = 600.0  # seconds after which nobody is about to keep the result that a recipe is of
_RECORDS: Final = 1000  # of results, deleted in one transaction
_COUNTED: Final = 600.0  # seconds for which totals are believed that were compared with the rows
_BATCH: Final = 200  # entries evicted in one transaction


class Collected(Struct):
    """What a pass of the collector did, or would do."""

    evicted: list[Victim] = field(default_factory=list)
    kept: dict[bytes, str] = field(default_factory=dict)
    swept: list[str] = field(default_factory=list)
    freed: int = 0


class Collector:
    """Makes room, evicts, sweeps."""

    def __init__(
        self,
        index: Index,
        store: Store,
        budget: Budget,
        policy: Policy,
        clock: Clock,
        presence: Presence | None = None,
    ) -> None:
        self.index = index
        self.store = store
        self.budget = budget
        self.policy = policy
        self.clock = clock
        self.presence = Presence() if presence is None else presence
        self.tidy: Callable[[], object] = bool  # what else is swept; who opens the catalog knows it
        self._counted = -math.inf  # when the totals were last compared with the rows
        self._in_vain = -math.inf  # when last no record was found that nobody needs

    def needed(self, coming: int = 0) -> Need:
        """What has to be freed to keep the budget."""
        now = self.clock.now()
        free = self.store.free_space() if self.budget.reserve else None
        return state.need(self.budget, self.index.usage(now), free, now, coming)

    def has_room(self, size: int) -> bool:
        """Whether so many bytes fit, after evicting what is worth less, if it must be."""
        limit = self.budget.size
        if limit is not None and size > limit:
            return False  # nothing that could be evicted would be enough
        if self.needed(size).pressing:
            self.enforce(size)
            return not self.needed(size).pressing
        return True

    def plan(self, coming: int = 0, everything: bool = False) -> list[Victim]:
        """What would be evicted now; what is in use is left out."""
        now = self.clock.now()
        candidates = self._not_leased(self.index.candidates())
        if everything:
            return [Victim(each.key, each.size, each.files, "asked for") for each in candidates if not each.pinned]
        abandoned = sum(lease.size for lease in state.live(self.abandoned(), now))
        wanted = self.needed(coming - abandoned)
        return state.choose(candidates, wanted, self.policy, now) if wanted else []

    def enforce(self, coming: int = 0) -> Collected:
        """Evicts until the budget is kept, as far as pins and leases allow."""
        done = Collected()
        if self.needed(coming):
            self._count_anew()
        late = [each for each in (self.end_abandoned, lambda: self.delete_doomed(done)) if not _done(each)]
        for _ in range(_ROUNDS):
            forgotten = self._forget_unneeded(coming)
            wanted = self.needed(coming)
            if not wanted or not (self._evict_some(wanted, done) or forgotten):
                break
        for each in late:  # there was no room to write them down
            each()
        return done

    def _count_anew(self) -> None:
        """The total is that of the rows: otherwise a damaged one would empty the store, and keep it empty."""
        now = self.clock.elapsed()
        if now - self._counted < _COUNTED:
            return
        self._counted = now
        if self.index.recount(apply=False) and self.index.recount():
            _log.warning("the totals of the catalog did not fit its rows, and were counted anew")

    def _evict_some(self, wanted: Need, done: Collected, made_before: float = math.inf) -> bool:
        """One round over the entries; True if anything went."""
        now = self.clock.now()
        candidates = (each for each in self.index.candidates() if each.created < made_before)
        victims = state.choose(self._not_leased(candidates), wanted, self.policy, now)
        if not victims or not self.evict(victims, done):
            return False
        self._in_vain = -math.inf  # what they came from may be needed by nobody now
        return True

    def has_room_for_record(self, size: int) -> bool:
        """Whether a recipe of so many bytes fits, and leaves most of the budget to results.

        Results go for it by the same rules as for others, with what they came from; none that is new.
        """
        limit = self.budget.size
        if limit is None:
            return True
        if size > limit // _ONE_RECORD:
            return False
        for _ in range(_MOST_ROUNDS):
            usage, now = self.index.usage(self.clock.now()), self.clock.now()
            if usage.records + size <= limit // _ALL_RECORDS:
                return self.has_room(size)
            self._count_anew()
            some = Need(max(1, usage.size // _MOST_ROUNDS))
            if self._forget_some() or self._evict_some(some, Collected(), now - _SETTLING):
                continue
            break
        return False

    def _forget_unneeded(self, coming: int) -> bool:
        """Deletes records that nobody can reach, until the budget is kept or none is left; True if any went."""
        limit = self.budget.size
        gone = False
        while limit is not None:
            usage = self.index.usage(self.clock.now())
            if usage.total + coming <= limit or not usage.records or not self._forget_some():
                break
            gone = True
        return gone

    def _forget_some(self) -> bool:
        """Deletes some records that nobody can reach; False if there are none."""
        now = self.clock.now()
        if 0 <= now - self._in_vain < _SETTLING:
            return False
        gone = self.index.forget_unneeded(now - _SETTLING, _RECORDS) > 0
        self._in_vain = -math.inf if gone else now
        return gone

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
            except CatalogFailure as failure:
                if not lacks_room(failure):
                    raise
                any_gone = self._evict_without_room(batch, done, failure) or any_gone
        return any_gone

    def _evict_without_room(self, victims: list[Victim], done: Collected, failure: CatalogFailure) -> bool:
        """Evicts on a full disk: one at a time, and files before rows, so that the next row can be written.

        Ends at any line: a row whose files are gone is a miss.
        """
        gone = False
        for victim in sorted(victims, key=lambda victim: -victim.files):
            try:
                gone = self._evict_batch([victim], done, files_first=True) or gone
            except CatalogFailure as another:
                if not lacks_room(another):
                    raise
                failure = another
        if not gone:
            raise failure
        return gone

    def _evict_batch(self, victims: list[Victim], done: Collected, files_first: bool = False) -> bool:
        """Evicts entries in one transaction, and deletes their files; True if anything went."""

        def delete(entries: list[Entry]) -> None:
            for entry in entries:
                if entry.location:
                    done.freed += self.store.delete(entry.location)

        keys_asked = [victim.key for victim in victims]
        gone, kept = self.index.evict(keys_asked, self.clock.now(), delete if files_first else None)
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

    def abandoned(self) -> list[Lease]:
        """Leases whose holders are gone."""
        return [lease for lease in self.index.leases() if self.presence.has_gone(lease.holder)]

    def end_abandoned(self) -> None:
        """Ends what holders have left behind who are gone; what they were writing is to be deleted."""
        held: list[Lease | Reservation] = [*self.index.leases(), *self.index.reservations()]
        tokens = [each.token for each in held if self.presence.has_gone(each.holder)]
        if tokens:
            self.index.abandon(tokens, self.clock.now())

    def sweep_if_due(self, halted: Callable[[], bool] = bool) -> None:
        """Sweeps once a day, whichever process does it; and forgets what nobody has seen for long."""
        now, last = self.clock.now(), self.index.passed("sweep")
        if 0 <= now - last < SWEEP_EVERY:  # the clock may have been set back
            return
        self.index.note_pass("sweep", now)
        if math.isinf(last):  # a new catalog
            return
        self._count_anew()
        self.index.forget_old(now - _REMEMBERED)
        self.sweep(halted=halted)

    def sweep(self, apply: bool = True, grace: float = GRACE, halted: Callable[[], bool] = bool) -> Collected:
        """Deletes what lies in the store and belongs to nobody: mark by the rows, sweep by the files.

        halted: says that the process ends; what is left is swept by the next pass.
        """
        done = Collected()
        now = self.clock.now()
        if apply:
            self.end_abandoned()
            self.index.expire(now)
            self.delete_doomed(done)
            self.tidy()
        for batch in _batches(self.store.locations(), _LISTED):
            if halted():
                break
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
        left: set[str] = set()  # by those who were writing there, and are gone
        for lease in self.index.leases():
            if self.presence.has_gone(lease.holder):
                left.add(lease.location)
            else:
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
                -math.inf if found.trashed or found.location in left else grace,
                now,
            )
        ]


def _done(work: Callable[[], object]) -> bool:
    """Does the work; False if the disk is full, so that it has to wait until there is room."""
    try:
        work()
    except CatalogFailure as failure:
        if not lacks_room(failure):
            raise
        return False
    return True


def _batches(values: Iterable[object], size: int) -> Iterator[list]:  # type: ignore[type-arg]
    iterator = iter(values)
    while batch := list(itertools.islice(iterator, size)):
        yield batch


def victims_of(entries: Iterable[Entry], reason: str) -> list[Victim]:
    """Entries as victims, for those who already chose."""
    return [Victim(entry.key, entry.size, entry.files, reason) for entry in entries]
