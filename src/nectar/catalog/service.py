"""The catalog as the rest of Nectar uses it: look up, keep, open, lease, name; and nothing is lost on the way.

It puts together an index (rows) and a store (files). Law: the row comes after the files, and goes before them; so a
row always means a whole result, and files without a row are garbage.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from nectar.catalog import state
from nectar.catalog.collect import Collector
from nectar.catalog.index.base import Index
from nectar.catalog.state import Accept, Granted, Present, Taken
from nectar.clock import Clock
from nectar.errors import StoreFailure
from nectar.model.entry import Entry, Job, Lease, Name, Reservation, Span, Usage
from nectar.store.estimate import estimate
from nectar.store.read import Damaged, Gone, Problem, Result
from nectar.store.store import Store

_log: Final = logging.getLogger("nectar.catalog")
_WRITING: Final = 3600.0  # seconds a writer's lease lasts; longer writes renew it
_FLUSH_AFTER: Final = 256  # uses and look-ups gathered before they are written down
_FLUSH_EVERY: Final = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class Known:
    """The answer to a look-up: the entry, if there is one, and how often its program has been looked up before."""

    entry: Entry | None
    lookups: int


@dataclass(frozen=True, slots=True)
class Kept:
    """The result is kept under its key."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class NotKept:
    """The result is not kept, and why. The caller has it all the same."""

    reason: str


class Catalog:
    """An index and a store that belong together."""

    def __init__(
        self,
        index: Index,
        store: Store,
        collector: Collector,
        clock: Clock,
        *,
        inline: int = 4096,
        protect: float = 600.0,
        verify: Literal["length", "before"] = "length",
        job_log: int = 10_000,
        read_only: bool = False,
    ) -> None:
        self.index = index
        self.store = store
        self.collector = collector
        self.clock = clock
        self.holder = f"{socket.gethostname()}:{os.getpid()}"
        self.read_only = read_only
        self._inline = inline
        self._protect = protect
        self._verify: Literal["length", "before"] = verify
        self._job_log = job_log
        self._lock = threading.Lock()
        self._uses: dict[bytes, tuple[int, float]] = {}
        self._counts: dict[bytes, int] = {}
        self._flushed = clock.now()

    # finding

    def lookup(self, keys: Sequence[bytes], programs: Sequence[bytes]) -> list[Known]:
        """What is known of each key; each look-up of a program is counted, whether it finds anything or not."""
        found = self.index.lookup(keys)
        before = self.index.lookups(programs)
        with self._lock:
            pending = [self._counts.get(program, 0) for program in programs]
            for program in programs:
                self._counts[program] = self._counts.get(program, 0) + 1
        self._flush_if_due()
        return [
            Known(found.get(key), before[program] + waiting)
            for key, program, waiting in zip(keys, programs, pending, strict=True)
        ]

    def inquire(self, programs: Sequence[bytes]) -> dict[bytes, list[Entry]]:
        """All entries of each program."""
        return self.index.inquire(programs)

    def open(self, entry: Entry) -> Result | Gone | Damaged:
        """The result of an entry; its use is counted. What turns out to be gone or damaged is evicted."""
        opened = self.store.open(entry, verify=self._verify)
        if isinstance(opened, Result):
            now = self.clock.now()
            with self._lock:
                self._uses[entry.key] = (self._uses.get(entry.key, (0, now))[0] + 1, now)
            self._flush_if_due()
        elif isinstance(opened, Gone):
            self._lose(entry, opened.reason)
        return opened

    def damaged(self, entry: Entry, problem: Problem) -> None:
        """The store found damage: the entry is evicted, so that whoever asks computes it anew."""
        self._lose(entry, f"{problem.reason} ({problem.part})")

    def _lose(self, entry: Entry, reason: str) -> None:
        _log.warning("the result %s is lost and will be computed anew when asked for: %s", entry.key.hex()[:12], reason)
        if not self.read_only:
            self.index.evict([entry.key], self.clock.now(), force=True)

    # computing once

    def reserve(self, key: bytes, seconds: float) -> Present | Granted | Taken:
        """Asks to be the one who computes a key for so long."""
        asked = Reservation(key, uuid.uuid4().hex, self.holder, self.clock.now() + seconds)
        return self.index.reserve(asked, self.clock.now())

    def release(self, reservation: Reservation) -> None:
        """Gives a reservation back: nothing came of it."""
        self.index.release_reservation(reservation.token)

    # keeping

    def keep(
        self,
        key: bytes,
        program: bytes,
        value: Any,
        *,
        table: bool = False,
        seconds: float = 0.0,
        made_from: Sequence[Entry] = (),
        spans: tuple[Span, ...] = (),
        recipe: bytes | None = None,
        rebuildable: bool = True,
    ) -> Kept | NotKept:
        """Keeps a result under its key. Whatever goes wrong with the store, the caller goes on without it."""
        if self.read_only:
            return NotKept("the store may only be read")
        size = estimate(value)
        try:
            if size <= self._inline:
                return self._add(
                    self._stage_inline(value, table), key, program, "", seconds, made_from, spans, recipe, rebuildable
                )
            location = self.store.new_location(key)
            lease = Lease(uuid.uuid4().hex, location, self.holder, self.clock.now() + _WRITING, size)
            if not self._make_room(lease):
                return NotKept("there is no room for it within the budget of the store")
            try:
                with self.store.stage(location) as staging:
                    staging.write_table(value) if table else staging.write_object(value)
                    published = staging.publish()
            except BaseException:
                self.index.drop_leases([lease.token])
                raise
            return self._add(published, key, program, lease.token, seconds, made_from, spans, recipe, rebuildable)
        except StoreFailure as failure:
            _log.warning("a result could not be kept: %s", failure)
            return NotKept(str(failure))

    def _stage_inline(self, value: Any, table: bool) -> Any:
        with self.store.stage_inline() as staging:
            staging.write_table(value) if table else staging.write_object(value)
            return staging.publish()

    def _make_room(self, lease: Lease) -> bool:
        """Announces what is about to be written, after evicting what is worth less, if it must be."""
        limit = self.collector.budget.size
        for attempt in range(2):
            if not self.collector.needed(lease.size) and self.index.announce(lease, limit, self.clock.now()):
                return True
            if attempt == 0:
                self.collector.enforce(lease.size)
        return self.index.announce(lease, limit, self.clock.now())

    def _add(
        self, published: Any, key: bytes, program: bytes, token: str, seconds: float, made_from: Sequence[Entry],
        spans: tuple[Span, ...], recipe: bytes | None, rebuildable: bool,
    ) -> Kept | NotKept:  # fmt: skip
        now = self.clock.now()
        entry = Entry(
            key, program, published.kind, published.location, published.manifest, published.size, published.files,
            published.rows, state.cumulative(seconds, made_from), now, now, inline=published.inline,
            rebuildable=rebuildable, recipe=recipe, spans=spans, producer=self.holder,
        )  # fmt: skip
        decision = self.index.add(entry, token, self._protect, now)
        if isinstance(decision, Accept):
            return Kept(decision.entry)
        if entry.location:
            self.collector.delete_doomed()
        return Kept(decision.standing)

    # leases, pins, names, recipes, jobs

    def lease(self, entries: Iterable[Entry], seconds: float) -> list[Lease]:
        """Promises that these results are not deleted for so long."""
        until = self.clock.now() + seconds
        leases = [Lease(uuid.uuid4().hex, entry.location, self.holder, until) for entry in entries if entry.location]
        self.index.put_leases(leases)
        return leases

    def renew(self, leases: Iterable[Lease], seconds: float) -> list[Lease]:
        """Prolongs leases from now on."""
        until = self.clock.now() + seconds
        renewed = [Lease(lease.token, lease.location, lease.holder, until, lease.size) for lease in leases]
        self.index.put_leases(renewed)
        return renewed

    def end(self, leases: Iterable[Lease]) -> None:
        """Gives leases back."""
        self.index.drop_leases([lease.token for lease in leases])

    def pin(self, key: bytes, pinned: bool = True) -> bool:
        """Protects a result from eviction, or no longer."""
        return self.index.pin(key, pinned)

    def bind(self, name: str, key: bytes) -> Name:
        """Lets a name point to a key."""
        return self.index.bind(name, key, self.holder, self.clock.now())

    def put_recipe(self, parts: Sequence[bytes]) -> bytes:
        """Keeps a recipe for ever."""
        return self.index.put_recipe(parts)

    def log(self, job: Job) -> None:
        """Remembers what a run did."""
        self.index.log(job, self._job_log)

    def usage(self) -> Usage:
        """What the store holds."""
        return self.index.usage(self.clock.now())

    # book-keeping

    def _flush_if_due(self) -> None:
        late = self.clock.now() - self._flushed >= _FLUSH_EVERY
        if late or len(self._uses) + len(self._counts) >= _FLUSH_AFTER:
            self.flush()

    def flush(self) -> None:
        """Writes down uses and look-ups gathered so far."""
        with self._lock:
            uses, self._uses = self._uses, {}
            counts, self._counts = self._counts, {}
            self._flushed = self.clock.now()
        if self.read_only:
            return
        if uses:
            self.index.touch(uses)
        if counts:
            self.index.count_lookups(counts, self.clock.now())

    def close(self) -> None:
        """Writes everything down and ends the use of index and store."""
        try:
            self.flush()
        finally:
            self.store.close()
            self.index.close()
