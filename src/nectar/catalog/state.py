"""What the catalog decides: what is there and what happens come in, decisions go out. No I/O, no clock of its own.

Laws: a location with a lease that has not run out is never deleted; a pinned entry is never evicted; at most one
holder computes a key at a time, until its time is up; of two results for one key the first stays.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from nectar.model.entry import Entry, Lease, Reservation, Usage

# reservations

_CREDIBLE: Final = 2.0  # times as long as is asked for; clocks of one machine differ by nothing, and are set by little


class Present(Struct, frozen=True):
    """The result is there already."""

    entry: Entry


class Granted(Struct, frozen=True):
    """The caller computes the result."""

    reservation: Reservation


class Taken(Struct, frozen=True):
    """Somebody else computes the result: wait until then at most, or compute it as well."""

    reservation: Reservation


def reserve(
    asked: Reservation, entry: Entry | None, standing: Reservation | None, now: float
) -> Present | Granted | Taken:
    """What becomes of the wish to compute a key.

    A reservation with far more time left than anybody asks for was made by another clock, or before this one was set
    back: nobody waits until this one gets there.
    """
    if entry is not None:
        return Present(entry)
    longest = now + _CREDIBLE * max(asked.until - now, 0.0)
    if standing is not None and now < standing.until <= longest and standing.token != asked.token:
        return Taken(standing)
    return Granted(asked)


# new entries


class Accept(Struct, frozen=True):
    """The entry becomes visible as it stands here."""

    entry: Entry


class Decline(Struct, frozen=True):
    """The key is known; the new files are garbage."""

    standing: Entry


class Lapsed(Struct, frozen=True):
    """The lease under which the result was written ran out: its files may be gone, and are garbage if they are not."""


def add(
    new: Entry, standing: Entry | None, held: bool, protect_for: float, now: float, replaces: bool = False
) -> Accept | Decline | Lapsed:
    """What becomes of a result that has been published in the store.

    held: its writer's lease is still known. replaces: it was computed anew on purpose, and takes the place and the pin
    of the one that stands there.
    """
    if standing is not None and not replaces:
        return Decline(standing)
    if not held:
        return Lapsed()
    pinned = standing is not None and standing.pinned
    return Accept(replace(new, used=now, protected=now + protect_for, pinned=pinned))


# deletion


def live(leases: Iterable[Lease], now: float) -> list[Lease]:
    """Leases that still hold."""
    return [lease for lease in leases if lease.until > now]


def may_evict(entry: Entry, leases: Iterable[Lease], now: float) -> str | None:
    """Why an entry must stay, or None if it may go."""
    if entry.pinned:
        return "pinned"
    held = live(leases, now)
    return f"in use by {held[0].who}" if held else None


def may_sweep(referred: bool, leases: Iterable[Lease], modified: float, grace: float, now: float) -> bool:
    """Whether files in the store belong to nobody: no entry, no lease, and not written just now."""
    return not referred and not live(leases, now) and modified + grace <= now


# choice of victims


class Candidate(Struct, frozen=True):
    """What a policy may know of an entry."""

    key: bytes
    size: int
    files: int
    seconds: float
    hits: int
    created: float
    used: float
    protected: float
    pinned: bool
    rebuildable: bool

    @property
    def superseded(self) -> bool:
        """Whether something better is known, and it was not used since."""
        return self.protected < 0


class Policy(Protocol):
    """Suggests what goes first."""

    name: str

    def expendability(self, candidate: Candidate, now: float) -> float:
        """The larger, the sooner it goes."""


class Budget(Struct, frozen=True):
    """What a store may take. None: no limit.

    size, files: of all results. age: seconds since last use after which an entry goes. reserve: bytes of the device
    that stay free. target: the share of a limit that deletion goes down to, so that it does not begin again at once.
    """

    size: int | None = None
    files: int | None = None
    age: float | None = None
    reserve: int | None = None
    target: float = 0.9


class Need(Struct, frozen=True):
    """What has to be freed."""

    size: int = 0
    files: int = 0
    unused_since: float = float("-inf")

    @property
    def pressing(self) -> bool:
        """Whether a limit is passed; age alone can wait for the next pass."""
        return self.size > 0 or self.files > 0

    def __bool__(self) -> bool:
        return self.pressing or self.unused_since > float("-inf")


def need(budget: Budget, usage: Usage, free: int | None, now: float, coming: int = 0) -> Need:
    """What has to be freed so that a store keeps its budget, with `coming` bytes about to be written."""
    size = _excess(usage.total + coming, budget.size, budget.target)
    if budget.size is not None and usage.total + coming <= budget.size:
        size = 0
    files = _excess(usage.files, budget.files, budget.target)
    if budget.reserve is not None and free is not None and free - coming < budget.reserve:
        size = max(size, budget.reserve - free + coming)
    unused = float("-inf") if budget.age is None else now - budget.age
    return Need(max(0, size), max(0, files), unused)


def _excess(held: int, limit: int | None, target: float) -> int:
    if limit is None or held <= limit:
        return 0
    return held - int(limit * target)


class Victim(Struct, frozen=True):
    """An entry that is to go, and why."""

    key: bytes
    size: int
    files: int
    reason: str


_LAST_RESORT: Final = ("superseded by one of more", "useful, but the store is over its budget",
                       "new, but nothing else is left to delete",
                       "cannot be rebuilt, but nothing else is left to delete")  # fmt: skip


def choose(candidates: Iterable[Candidate], wanted: Need, policy: Policy, now: float) -> list[Victim]:
    """Entries to evict: what is too old first, then the most expendable until enough is freed.

    Pinned entries never; those that are superseded first; new ones after all others; what cannot be rebuilt last.
    Leases are not known here: whoever deletes looks at them again.
    """
    victims: list[Victim] = []
    tiers = tuple(_MostExpendable(wanted) for _ in _LAST_RESORT)
    for candidate in candidates:
        if candidate.pinned:
            continue
        if candidate.rebuildable and candidate.used < wanted.unused_since and candidate.protected <= now:
            victims.append(Victim(candidate.key, candidate.size, candidate.files, "not used for too long"))
            continue
        if wanted.size <= 0 and not candidate.files:
            continue  # it lies in the index, and only files are wanted
        tiers[_tier(candidate, now)].show(policy.expendability(candidate, now), candidate)
    size, files = sum(victim.size for victim in victims), sum(victim.files for victim in victims)
    for tier_, reason in zip(tiers, _LAST_RESORT, strict=True):
        for candidate in tier_.ranked():
            if size >= wanted.size and files >= wanted.files:
                return victims
            victims.append(Victim(candidate.key, candidate.size, candidate.files, reason))
            size += candidate.size
            files += candidate.files
    return victims


def _tier(candidate: Candidate, now: float) -> int:
    """Which of the tiers of last resort an entry belongs to."""
    if not candidate.rebuildable:
        return 3
    return 0 if candidate.superseded else 2 if candidate.protected > now else 1


class _MostExpendable:
    """The most expendable of the candidates shown, as few of them as free what is wanted; the others are forgotten.

    A store may have millions of entries, of which a pass evicts a few: they need not be in memory together.
    """

    def __init__(self, wanted: Need) -> None:
        self._heap: list[tuple[float, int, Candidate]] = []  # the least expendable first, of equals the latest
        self._shown = 0
        self._size = -wanted.size  # more than enough where not negative
        self._files = -wanted.files
        self._bar = math.inf if self._size >= 0 and self._files >= 0 else -math.inf

    def show(self, expendability: float, candidate: Candidate) -> None:
        """Keeps a candidate if it is among the most expendable."""
        if expendability <= self._bar:
            return
        heap = self._heap
        self._shown += 1
        heapq.heappush(heap, (expendability, -self._shown, candidate))
        self._size += candidate.size
        self._files += candidate.files
        while self._size >= heap[0][2].size and self._files >= heap[0][2].files:
            _, _, least = heapq.heappop(heap)
            self._size -= least.size
            self._files -= least.files
        if self._size >= 0 and self._files >= 0:
            self._bar = heap[0][0]

    def ranked(self) -> list[Candidate]:
        """Those kept, the most expendable first."""
        return [candidate for _, _, candidate in sorted(self._heap, reverse=True)]


def cumulative(own: float, made_from: Sequence[Entry]) -> float:
    """Machine time of a result: its own, and that of everything reused to make it."""
    return own + sum(entry.seconds for entry in made_from)
