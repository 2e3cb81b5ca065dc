"""The catalog as the rest of Nectar uses it: look up, keep, open, lease, name; and nothing is lost on the way.

It puts together an index (rows) and a store (files). Law: the row comes after the files, and goes before them; so a
row always means a whole result, and files without a row are garbage.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from msgspec.structs import replace

from nectar.catalog import state, worth
from nectar.catalog.answers import Kept, Known, NotKept, Origin
from nectar.catalog.losses import Losses, whole_recipe
from nectar.catalog.observed import Observed
from nectar.catalog.person import person
from nectar.catalog.recent import Recent
from nectar.catalog.state import Accept, Lapsed
from nectar.catalog.uses import Uses
from nectar.errors import CatalogFailure, CatalogUnavailableError, EnvironmentFailure, UserError
from nectar.model.entry import Entry, Lease, Reservation, Version
from nectar.store.problem import Damaged, Gone
from nectar.trust.secrets import logger
from nectar.waiting.answering import asked_for, is_unhurried
from nectar.waiting.health import is_passing, say

if TYPE_CHECKING:  # what only keeping needs is loaded with the first result that is kept
    from nectar.catalog.collect import Collector
    from nectar.catalog.handover import Handover
    from nectar.catalog.housekeeping import Housekeeper
    from nectar.catalog.index.base import Index
    from nectar.catalog.state import Granted, Present, Taken
    from nectar.clock import Clock
    from nectar.model.entry import Content, Job, Length, Name, Span, Usage
    from nectar.model.lineage import Sources
    from nectar.settings import Settings
    from nectar.store.commit import Published
    from nectar.store.read import Result
    from nectar.store.store import Store
    from nectar.waiting.health import Health

_T = TypeVar("_T")
__all__ = ["Catalog", "Kept", "Known", "NotKept"]
_log: Final = logger("nectar.catalog")
_WRITING: Final = 3600.0  # seconds a writer has: what takes longer is not kept
_ATTEMPTS: Final = 3  # to announce a result: others may take the room that was made for it
_MOST_LENGTHS: Final = 4096  # of one input: a log that is read every hour is known for half a year
_MANIFEST: Final = 1024  # bytes; what an inline result takes besides its content
_NO_ROOM: Final = NotKept("there is no room for it within the budget of the store and the reserve of the disk")


class Catalog:
    """An index and a store that belong together."""

    def __init__(
        self, index: Index, store: Store, collector: Collector, clock: Clock, *, inline: int = 4096,
        protect: float = 600.0, verify: Literal["length", "before"] = "before", job_log: int = 10_000,
        read_only: bool = False,
    ) -> None:  # fmt: skip
        self.index = index
        self.store = store
        self.collector = collector
        self.clock = clock
        self.presence = collector.presence
        self.person = person()  # asked now: a function that is computed later would seem to have asked
        self.read_only = read_only
        self.observed = Observed(index, read_only)
        self.losses = Losses(index, clock, read_only)
        self.housekeeper: Housekeeper | None = None  # who opens the catalog decides whether it has one
        self.health: Health | None = None  # through which a running program asks
        self.later: Callable[[Callable[[], object]], object] | None = None  # does work beside the program
        self.settings: Settings | None = None  # with which it was opened, for those who open it elsewhere
        self._inline = inline
        self._protect = protect
        self._verify: Literal["length", "before"] = verify
        self._job_log = job_log
        self._uses = Uses(index, clock, read_only)
        self.recent = Recent(index, self._uses, self._flush_if_due)

    # finding

    def lookup(self, keys: Sequence[bytes], programs: Sequence[bytes]) -> list[Known]:
        """What is known of each key; each look-up of a program is counted, whether it finds anything or not.

        Nothing is known while the catalog cannot be used.
        """
        pairs = list(zip(keys, programs, strict=True))
        try:
            found = self.index.lookup(keys)
            missed = [program for key, program in pairs if key not in found]
            before = self.index.lookups(missed) if missed else {}
        except CatalogUnavailableError:
            found, before = {}, dict.fromkeys(programs, 0)
        before = self._uses.looked_up(programs, before)
        self._flush_if_due()
        return [Known(found[key], 0) if key in found else Known(None, before[program]) for key, program in pairs]

    def inquire(self, programs: Sequence[bytes], latest: int | None = None) -> dict[bytes, list[Entry]]:
        """All entries of each program; or so many of each, those that were added last."""
        return self.index.inquire(programs, latest)

    def open(self, entry: Entry, *, in_part: bool = False) -> Result | Gone | Damaged:
        """The result of an entry; its use is counted. What turns out to be gone or damaged is evicted.

        in_part: not all of it may be needed, so that it is verified when it is read, and only what is.
        """
        opened = self._opened(entry, in_part)
        if isinstance(opened, Gone):
            self.losses.gone(entry, opened.reason)
        elif not isinstance(opened, Damaged):
            self._uses.used(entry.key)
            self._flush_if_due()
        return opened

    def _opened(self, entry: Entry, in_part: bool) -> Result | Gone | Damaged:
        def opened() -> Result | Gone | Damaged:
            return self.store.open(entry, verify=self._verify, in_part=in_part)

        if self.health is None or entry.inline is not None:  # which is in memory
            return opened()
        return self.health.ask(opened, self.health.reading, lambda late, _: getattr(late, "close", bool)())

    # computing once

    def reserve(self, key: bytes, seconds: float) -> Present | Granted | Taken:
        """Asks to be the one who computes a key for so long."""
        holder = self._asked(lambda: self.presence.name)
        asked = Reservation(key, uuid.uuid4().hex, holder, self.clock.now() + seconds)
        return self.index.reserve(asked, self.clock.now())

    def runs(self, reservation: Reservation) -> bool | None:
        """Whether the process that holds a reservation goes on; None if there is no telling."""
        return self._asked(lambda: self.presence.runs(reservation.holder))

    def has_gone(self, reservation: Reservation) -> bool:
        """Whether the process that holds a reservation has ended; False in doubt."""
        return self._asked(lambda: self.presence.has_gone(reservation.holder))

    def _asked(
        self, question: Callable[[], _T], late: Callable[[Any, BaseException | None], object] | None = None
    ) -> _T:
        """An answer that takes more than the index, or something else than it. late: as for `Health.ask`."""
        return question() if self.health is None else self.health.ask(question, self.health.writing, late)

    def prolong(self, reservation: Reservation, seconds: float) -> None:
        """Goes on computing a key for so long from now, unless somebody else has taken over or finished it."""
        asked = replace(reservation, until=self.clock.now() + seconds)
        self.index.reserve(asked, self.clock.now())

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
        about: str = "",
        replaces: bool = False,
        made: float | None = None,
        sources: Callable[[], Sources] | None = None,
    ) -> Kept | NotKept:
        """Keeps a result under its key. Whatever goes wrong with store or catalog, the caller goes on without it.

        A thread that works beside the program hears of what may pass, and tries again: CatalogUnavailableError, or
        StoreFailure.

        value: a table, any object, one that was taken apart before (store.formats.objects.Pickled), or what an engine
        has written to a place of ours (Handover). about: what it is, for people. replaces: it takes the place of a
        result that is known already. made: when its computation began, if that is not now. sources: tells what it came
        from, and is asked only if it is kept.
        """
        if self.read_only:
            return NotKept("the store may only be read")
        known = Origin(key, program, seconds, made_from, spans, recipe, rebuildable, about, replaces, made)
        try:
            kept = self._keep(known, value, table)
        except (EnvironmentFailure, UserError) as failure:
            if is_unhurried() and is_passing(failure):
                raise
            say(failure, self.health, "a result could not be kept: %s", failure)
            return NotKept(str(failure))
        if isinstance(kept, Kept):
            self._record(kept.entry, sources, made_from)
            if kept.entry.location:  # of what lies inline the size was known before
                self._put_off(lambda: self._settle(kept.entry))
        return kept

    def _record(self, entry: Entry, sources: Callable[[], Sources] | None, made_from: Sequence[Entry]) -> None:
        """How a result came about is on record; if that fails, only the account of it is lost."""
        if sources is None and not made_from:
            return
        try:
            if sources is None:
                self.index.record_source(entry.key, [each.key for each in made_from])
                return
            from nectar.model.lineage import provenance_of

            self.index.record(provenance_of(entry, sources(), [each.key for each in made_from]))
        except Exception as error:
            say(error, self.health, "how a result came about is not on record: %s: %s", type(error).__name__, error)

    def _put_off(self, work: Callable[[], object]) -> None:
        """Work that can be done later is done beside the program; now, if this thread is."""
        if self.later is None or is_unhurried():
            work()
        else:
            self.later(work)

    def _settle(self, entry: Entry) -> None:
        """Makes room afterwards if a result took more than it was thought to take; it goes last itself.

        Whoever has just rebuilt it is about to read it.
        """
        try:
            if self.collector.needed().pressing:
                from nectar.catalog.holding import holding

                with holding(self, entry.key):
                    self.collector.enforce()
        except EnvironmentFailure as failure:
            say(failure, self.health, "the budget of the store could not be kept: %s", failure)

    def handover(self, key: bytes, size: int) -> Handover | NotKept:
        """A place for an engine to write a result of about so many bytes, which `keep` takes over then."""
        if self.read_only:
            return NotKept("the store may only be read")
        from nectar.catalog.handover import Handover

        try:
            lease = self._asked(lambda: self._announced(key, size), self._drop_late)
        except EnvironmentFailure as failure:
            return NotKept(str(failure))
        return _NO_ROOM if lease is None else Handover(lease, self.store.stage(lease.location), self._drop)

    def _drop(self, lease: Lease) -> None:
        with suppress(EnvironmentFailure):  # then it is over when its time is
            self.index.drop_leases([lease.token])

    def _drop_late(self, lease: Lease | None, error: BaseException | None) -> None:
        if lease is not None:  # and nobody waits for it any more
            self._put_off(lambda: self.index.drop_leases([lease.token]))

    def _announced(self, key: bytes, size: int) -> Lease | None:
        """The lease of a new location, once there is room for so many bytes; None if there is not."""
        lease = Lease(
            uuid.uuid4().hex, self.store.new_location(key), self.presence.name, self.clock.now() + _WRITING, size
        )
        return lease if self._make_room(lease) else None

    def _keep(self, known: Origin, value: Any, table: bool) -> Kept | NotKept:
        if not all(self.store.is_sound(each) for each in known.made_from if each.manifest):
            return NotKept("it was made from a result that turned out to be damaged")
        from nectar.catalog.handover import Handover
        from nectar.store.estimate import estimate

        if isinstance(value, Handover):
            return self._keep_published(value.publish(known.subject), known, value.lease)
        size = estimate(value)
        if self._inline > 0 and size <= self._inline:
            inside = self._stage_inline(value, table, known.subject)
            # Not every object shows how much it holds.
            if inside.size <= 2 * self._inline + _MANIFEST:
                return self._add(inside, known, "") if self.collector.has_room(inside.size) else _NO_ROOM
            size = inside.size
        lease = self._announced(known.key, size)
        if lease is None:
            return _NO_ROOM
        try:
            with self.store.stage(lease.location) as staging:
                staging.write_table(value) if table else staging.write_object(value)
                published = staging.publish(known.subject)
        except BaseException:
            self.index.drop_leases([lease.token])
            raise
        return self._keep_published(published, known, lease)

    def _keep_published(self, published: Published, known: Origin, lease: Lease) -> Kept | NotKept:
        try:
            return self._add(published, known, lease.token)
        except CatalogFailure:
            self._undo(lease, known.key)
            raise

    def _undo(self, lease: Lease, key: bytes) -> None:
        """Takes back files whose row could not be written, if it is certain that it was not."""
        with suppress(EnvironmentFailure):  # then they are swept when the lease is over
            standing = self.index.lookup([key]).get(key)
            if standing is None or standing.location != lease.location:
                self.store.delete(lease.location)
                self.index.drop_leases([lease.token])

    def _stage_inline(self, value: Any, table: bool, subject: str) -> Published:
        with self.store.stage_inline() as staging:
            staging.write_table(value) if table else staging.write_object(value)
            return staging.publish(subject)

    def _make_room(self, lease: Lease) -> bool:
        """Announces what is about to be written, once there is room for it."""
        limit = self.collector.budget.size
        return any(
            self.collector.has_room(lease.size) and self.index.announce(lease, limit, self.clock.now())
            for _ in range(_ATTEMPTS)
        )

    def _add(self, published: Published, known: Origin, token: str) -> Kept | NotKept:
        now = self.clock.now()
        entry = Entry(
            known.key, known.program, published.kind, published.location, published.manifest, published.size,
            published.files, published.rows, state.cumulative(known.seconds, known.made_from),
            now if known.made is None else known.made, now,
            inline=published.inline, rebuildable=known.rebuildable, recipe=known.recipe, spans=known.spans,
            producer=self.person, about=known.about,
        )  # fmt: skip
        decision = self.index.add(entry, token, self._protect, now, known.replaces)
        if isinstance(decision, Accept):
            if known.replaces:
                self.collector.delete_doomed()
            if self.housekeeper is not None:
                self.housekeeper.poke()
            return Kept(decision.entry)
        if entry.location:
            self.collector.delete_doomed()
        if isinstance(decision, Lapsed):
            return NotKept("writing it took longer than its lease lasted")
        return Kept(decision.standing)

    # leases, pins, names, recipes, jobs

    def lease(self, entries: Iterable[Entry], seconds: float) -> list[Lease]:
        """Promises that these results are not deleted for so long; none for those that are gone already."""
        until, holder = self.clock.now() + seconds, self._asked(lambda: self.presence.name)
        return self.index.put_leases(
            [Lease(uuid.uuid4().hex, entry.location, holder, until) for entry in entries if entry.location]
        )

    def renew(self, leases: Iterable[Lease], seconds: float) -> list[Lease]:
        """Prolongs leases from now on; returns those that hold."""
        until = self.clock.now() + seconds
        return self.index.put_leases([replace(lease, until=until) for lease in leases])

    def end(self, leases: Iterable[Lease]) -> None:
        """Gives leases back."""
        self.index.drop_leases([lease.token for lease in leases])

    def pin(self, key: bytes, pinned: bool = True) -> bool:
        """Protects a result from eviction, or no longer."""
        return self.index.pin(key, pinned)

    def bind(self, name: str, key: bytes, note: str = "") -> Name:
        """Lets a name point to a key."""
        return self.index.bind(name, key, self.person, self.clock.now(), note)

    def unbind(self, name: str, note: str = "") -> bool:
        """Lets a name point to nothing; False if it does so already."""
        return self.index.unbind(name, self.person, self.clock.now(), note)

    def put_recipe(self, parts: Sequence[bytes]) -> bytes:
        """Keeps a recipe as long as somebody can need it."""
        return self.index.put_recipe(parts, self.clock.now())

    def log(self, job: Job) -> None:
        """Remembers what a run did."""
        self.index.log(job, self._job_log)

    def has_version(self, label: str, program: bytes) -> bool:
        """Whether it is known that a label stood for this; it is not while the catalog cannot be used."""
        try:
            return any(version.program == program for version in self.index.versions(label))
        except CatalogUnavailableError:
            return False

    def add_version(self, label: str, program: bytes, trace: bytes) -> None:
        """Remembers what a label stood for, unless it is known."""
        self.index.add_version(Version(label, program, self.put_recipe([trace]), self.clock.now()))

    def previous_trace(self, label: str, program: bytes) -> bytes | None:
        """The trace of the latest other program that a label stood for."""
        for version in self.index.versions(label):
            if version.program != program:
                parts = whole_recipe(self.index, version.trace)
                return parts[0] if parts else None
        return None

    def trace_of(self, label: str, program: bytes) -> bytes | None:
        """The trace of this very program, as it was when a result of it was kept."""
        version = next((each for each in self.index.versions(label) if each.program == program), None)
        parts = None if version is None else whole_recipe(self.index, version.trace)
        return parts[0] if parts else None

    def known(self, origins: Sequence[bytes]) -> dict[bytes, Content]:
        """What is known of the bytes of inputs, by their origin; nothing while the catalog cannot be used."""
        try:
            return self.index.contents(origins)
        except CatalogUnavailableError:
            return {}

    def remember(self, contents: Mapping[bytes, Content]) -> None:
        """Keeps what was found out about the bytes of inputs."""
        with suppress(CatalogUnavailableError):
            if not self.read_only:
                self.index.remember_contents(contents, self.clock.now())

    def lengths(self, places: Sequence[bytes]) -> dict[bytes, list[Length]]:
        """How long the inputs at these places were, the latest first; nothing while the catalog cannot be used."""
        try:
            return self.index.lengths(places)
        except CatalogUnavailableError:
            return {}

    def remember_lengths(self, lengths: Sequence[Length]) -> None:
        """Keeps how long inputs are now."""
        with suppress(CatalogUnavailableError):
            if not self.read_only:
                self.index.remember_lengths(lengths, _MOST_LENGTHS, self.clock.now())

    def worth_keeping(self, seconds: float, size: int) -> str:
        """Why a result is not worth keeping; empty if it is."""
        small = self._inline
        with suppress(CatalogUnavailableError):  # then nobody knows whether there is room
            if self._inline < size <= worth.SMALL and worth.is_roomy(self.usage(), self.collector.budget.size):
                small = worth.SMALL
        return worth.reason_not_to_keep(seconds, size, small)

    def discard(self, entries: Iterable[Entry]) -> int:
        """Evicts these results, unless they are pinned or in use; how many went. Whoever asks for it waits."""
        from nectar.catalog.collect import Collected, victims_of

        done = Collected()
        with asked_for():
            self.collector.evict(victims_of(entries, "asked for"), done)
        return len(done.evicted)

    def supersede(self, entries: Iterable[Entry]) -> None:
        """These results go first when room is needed, unless they are used again: something better is known."""
        keys = [entry.key for entry in entries]
        if not keys or self.read_only:
            return
        try:
            self.flush()  # uses up to now do not speak for them
            self.index.supersede(keys)
        except CatalogFailure as failure:
            say(failure, self.health, "what is superseded could not be written down: %s", failure)

    def usage(self) -> Usage:
        """What the store holds."""
        return self.index.usage(self.clock.now())

    # book-keeping

    def _flush_if_due(self) -> None:
        if not self._uses.is_due():
            return
        if self.later is None:
            self._uses.try_to_flush()
        else:
            self.later(self._uses.try_to_flush)
        if self.housekeeper is not None:  # budgets are looked after by those who only read, too
            self.housekeeper.poke()

    def flush(self) -> None:
        """Writes down uses and look-ups gathered so far."""
        self._uses.flush()

    def close(self) -> None:
        """Writes everything down and ends the use of index and store; a program does not wait for long."""
        if self.health is None:
            self._close()
            return
        with suppress(CatalogUnavailableError):
            self.health.ask(self._close, self.health.reading)

    def _close(self) -> None:
        if self.housekeeper is not None:
            self.housekeeper.close()
        if self.health is None or self.health.is_well:
            self._uses.try_to_flush()
        self.store.close()
        self.index.close()
        self.presence.close()
