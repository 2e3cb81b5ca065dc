"""The embedded index: one SQLite file in WAL mode, used by many processes at once.

Each public call is one transaction. Writers take the lock at the start (BEGIN IMMEDIATE), so that what they read is
what they change. Readers never wait for writers. The end of a process loses nothing; a loss of power may lose the last
entries, whose files are then swept; but no name, and nothing that was written before it.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from nectar.catalog import state
from nectar.catalog.index import rows
from nectar.catalog.index.lengths import put_lengths, select_lengths
from nectar.catalog.index.names import NameRows
from nectar.catalog.index.observed import put_observed, select_observed
from nectar.catalog.index.provenance import ProvenanceRows
from nectar.catalog.index.recipes import RecipeRows, UnneededRows
from nectar.catalog.index.seals import opened, seal
from nectar.catalog.state import Accept, Candidate, Decline, Granted, Lapsed, Present, Taken
from nectar.model.entry import (
    LONGEST,
    SUPERSEDED,
    Content,
    Entry,
    Job,
    Lease,
    Length,
    Reservation,
    Totals,
    Usage,
    Version,
)

_T = TypeVar("_T")
_HELD: Final = (
    "SELECT 1 FROM entries WHERE location = ? AND location <> '' UNION ALL SELECT 1 FROM leases WHERE location = ?"
)


class SqliteIndex(NameRows, ProvenanceRows, RecipeRows, UnneededRows):
    """An index in one file. One object may be used by many threads."""

    # entries

    def lookup(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        """The entries of those keys that have one."""
        return {entry.key: entry for entry in self._select("key", keys)}

    def inquire(self, programs: Sequence[bytes], latest: int | None = None) -> dict[bytes, list[Entry]]:
        """All entries of each program, whatever their inputs; or so many of each, those that were added last."""
        if latest is not None:
            return {program: self._latest(program, latest) for program in programs}
        found: dict[bytes, list[Entry]] = {program: [] for program in programs}
        for entry in self._select("program", programs):
            found[entry.program].append(entry)
        return found

    def _latest(self, program: bytes, most: int) -> list[Entry]:
        # Rows are numbered in the order in which they were added, and the index of programs leads to their numbers.
        statement = f"SELECT {rows.ENTRY} FROM entries WHERE program = ? ORDER BY rowid DESC LIMIT ?"
        found = self._read(lambda connection: connection.execute(statement, (program, most)).fetchall())
        return [rows.to_entry(row) for row in found]

    def _select(self, column: str, values: Sequence[bytes]) -> list[Entry]:
        def select(connection: sqlite3.Connection) -> list[Entry]:
            return [
                rows.to_entry(row)
                for batch in rows.batches(values)
                for row in connection.execute(
                    f"SELECT {rows.ENTRY} FROM entries WHERE {column} IN ({rows.marks(batch)})", batch
                )
            ]

        return self._read(select)

    def entries(self) -> Iterator[Entry]:
        """Every entry, in the order of keys."""
        return self._all("key", b"", rows.ENTRY, rows.to_entry)

    def candidates(self) -> Iterator[Candidate]:
        """What policies may know of every entry."""
        # In the order they lie in the file: half the time of the order of keys, of which nobody has any use here.
        return self._all("rowid", 0, rows.CANDIDATE, rows.to_candidate)

    def _all(self, order: str, first: object, columns: str, make: Callable[[Any], _T]) -> Iterator[_T]:
        """Every row by ranges, so that no lock is held in between."""
        # Few at a time: more new objects at once would set off the garbage collector, which takes longer than reading.
        statement = f"SELECT {columns}, {order} FROM entries WHERE {order} > ? ORDER BY {order} LIMIT 500"
        after = first
        while found := self._read(lambda connection, after=after: connection.execute(statement, (after,)).fetchall()):  # type: ignore[misc]
            yield from (make(row[:-1]) for row in found)
            after = found[-1][-1]

    def find(self, prefix: str) -> list[Entry]:
        """Entries whose key begins with these hexadecimal digits."""
        bounds = rows.key_range(prefix)
        if bounds is None:
            return []
        statement = f"SELECT {rows.ENTRY} FROM entries WHERE key >= ? AND key <= ? ORDER BY key"
        found = self._read(lambda connection: connection.execute(statement, bounds).fetchall())
        return [rows.to_entry(row) for row in found]

    def add(
        self, entry: Entry, lease: str, protect_for: float, now: float, replaces: bool = False
    ) -> Accept | Decline | Lapsed:
        """Makes a published result visible and ends the lease under which it was written, if it needed one."""

        def add(connection: sqlite3.Connection) -> Accept | Decline | Lapsed:
            standing = rows.entry_of(connection, entry.key)
            # Whoever sweeps forgets lapsed leases first: while this one is known, nobody took the files for garbage.
            held = not lease or connection.execute("SELECT 1 FROM leases WHERE token = ?", (lease,)).fetchone()
            decision = state.add(entry, standing, bool(held), protect_for, now, replaces)
            if isinstance(decision, Accept):
                if standing is not None:
                    rows.evict(connection, standing, now)
                connection.execute(
                    f"INSERT INTO entries ({rows.ENTRY}) VALUES ({rows.marks(rows.ENTRY.split(','))})",
                    rows.to_row(decision.entry),
                )
                rows.count(connection, entries=1, size=entry.size, files=entry.files, inline=rows.inline_size(entry))
            elif entry.location and (standing is None or entry.location != standing.location):
                rows.doom(connection, entry.location, entry.size, now)
            if lease:
                connection.execute("DELETE FROM leases WHERE token = ?", (lease,))
            connection.execute("DELETE FROM reservations WHERE key = ?", (entry.key,))
            return decision

        return self._write("add entry", add)

    def touch(self, uses: Mapping[bytes, tuple[int, float]]) -> None:
        """Adds uses (number, time of the last) to entries."""
        values = [(number, last, last, key) for key, (number, last) in uses.items()]
        statement = (
            "UPDATE entries SET hits = hits + ?, used = CASE WHEN used < ? THEN ? ELSE used END, "
            "protected = CASE WHEN protected < 0 THEN 0 ELSE protected END WHERE key = ?"
        )
        self._write("touch", lambda connection: connection.executemany(statement, values))

    def supersede(self, keys: Sequence[bytes]) -> None:
        """These entries go first when room is needed, until they are used again."""
        statement = "UPDATE entries SET protected = ? WHERE key = ?"
        values = [(SUPERSEDED, key) for key in keys]
        self._write("supersede", lambda connection: connection.executemany(statement, values))

    def count_lookups(self, counts: Mapping[bytes, int], now: float) -> None:
        """Adds look-ups to programs, whether they have entries or not."""
        values = [(program, number, now) for program, number in counts.items()]
        statement = (
            "INSERT INTO lookups (program, times, last) VALUES (?, ?, ?) "
            "ON CONFLICT (program) DO UPDATE SET times = lookups.times + excluded.times, last = excluded.last"
        )
        self._write("count look-ups", lambda connection: connection.executemany(statement, values))

    def lookups(self, programs: Sequence[bytes]) -> dict[bytes, int]:
        """How often each program has been looked up."""

        def select(connection: sqlite3.Connection) -> dict[bytes, int]:
            found = dict.fromkeys(programs, 0)
            for batch in rows.batches(programs):
                found.update(
                    connection.execute(
                        f"SELECT program, times FROM lookups WHERE program IN ({rows.marks(batch)})", batch
                    )
                )
            return found

        return self._read(select)

    def pin(self, key: bytes, pinned: bool) -> bool:
        """Protects an entry, or no longer; False if there is no entry."""
        statement = "UPDATE entries SET pinned = ? WHERE key = ?"
        return self._write("pin", lambda connection: connection.execute(statement, (int(pinned), key)).rowcount > 0)

    # reservations and leases

    def reserve(self, asked: Reservation, now: float) -> Present | Granted | Taken:
        """Asks to be the one who computes a key."""

        def reserve(connection: sqlite3.Connection) -> Present | Granted | Taken:
            row = connection.execute(
                "SELECT key, token, holder, until FROM reservations WHERE key = ?", (asked.key,)
            ).fetchone()
            decision = state.reserve(
                asked, rows.entry_of(connection, asked.key), Reservation(*row) if row else None, now
            )
            if isinstance(decision, Granted):
                connection.execute("DELETE FROM reservations WHERE key = ?", (asked.key,))
                values = (asked.key, asked.token, asked.holder, asked.until)
                connection.execute("INSERT INTO reservations (key, token, holder, until) VALUES (?, ?, ?, ?)", values)
            return decision

        return self._write("reserve", reserve)

    def release_reservation(self, token: str) -> None:
        """Gives a reservation back."""
        self._free(
            "release reservation",
            lambda connection: connection.execute("DELETE FROM reservations WHERE token = ?", (token,)),
        )

    def put_leases(self, leases: Iterable[Lease]) -> list[Lease]:
        """Adds leases, or prolongs those that are there; returns those that hold: the others' results are gone."""
        prolong = "UPDATE leases SET until = ?, size = ? WHERE token = ?"
        insert = (
            "INSERT INTO leases (token, location, holder, until, size) SELECT ?, ?, ?, ?, ? "
            "WHERE EXISTS (SELECT 1 FROM entries WHERE location = ? AND location <> '')"
        )

        def put(connection: sqlite3.Connection) -> list[Lease]:
            held = []
            for lease in leases:
                values = (lease.token, lease.location, lease.holder, lease.until, lease.size, lease.location)
                if (
                    connection.execute(prolong, (lease.until, lease.size, lease.token)).rowcount
                    or connection.execute(insert, values).rowcount
                ):
                    held.append(lease)
            return held

        return self._write("put leases", put)

    def announce(self, lease: Lease, limit: int | None, now: float) -> bool:
        """Adds the lease of a writer if all that is and will be on disk stays within the limit; False if not."""

        def announce(connection: sqlite3.Connection) -> bool:
            if limit is not None and rows.usage_of(connection, now).total + lease.size > limit:
                return False
            values = (lease.token, lease.location, lease.holder, lease.until, lease.size)
            connection.execute(
                "INSERT INTO leases (token, location, holder, until, size) VALUES (?, ?, ?, ?, ?)", values
            )
            return True

        return self._write("announce", announce)

    def drop_leases(self, tokens: Iterable[str]) -> None:
        """Ends leases."""
        values = [(token,) for token in tokens]
        self._free(
            "drop leases", lambda connection: connection.executemany("DELETE FROM leases WHERE token = ?", values)
        )

    def leases(self) -> list[Lease]:
        """All leases, those that ran out included."""
        return self._read(
            lambda connection: [Lease(*row) for row in connection.execute(f"SELECT {rows.LEASE} FROM leases")]
        )

    def reservations(self) -> list[Reservation]:
        """All reservations, those that ran out included."""
        statement = "SELECT key, token, holder, until FROM reservations"
        return self._read(lambda connection: [Reservation(*row) for row in connection.execute(statement)])

    def abandon(self, tokens: Iterable[str], now: float) -> None:
        """Ends leases and reservations whose holders are gone; files that were being written under them are doomed."""
        tokens = list(tokens)

        def abandon(connection: sqlite3.Connection) -> None:
            for token in tokens:
                connection.execute("DELETE FROM reservations WHERE token = ?", (token,))
                found = connection.execute("SELECT location, size FROM leases WHERE token = ?", (token,)).fetchone()
                connection.execute("DELETE FROM leases WHERE token = ?", (token,))
                # What was being written is garbage; what is an entry by now was only read.
                if found is not None and not connection.execute(_HELD, (found[0], found[0])).fetchone():
                    rows.doom(connection, found[0], found[1], now)

        self._free("abandon", abandon)

    def expire(self, now: float) -> int:
        """Forgets leases and reservations that ran out; returns how many."""

        def expire(connection: sqlite3.Connection) -> int:
            # Of those that hold for longer than anybody asks for the clock was wrong, or has been set back.
            connection.execute("UPDATE leases SET until = ? WHERE until > ?", (now + LONGEST, now + LONGEST))
            gone = connection.execute("DELETE FROM leases WHERE until <= ?", (now,)).rowcount
            return gone + connection.execute("DELETE FROM reservations WHERE until <= ?", (now,)).rowcount

        return self._free("expire", expire)

    # deletion

    def evict(
        self, keys: Iterable[bytes], now: float, first: Callable[[list[Entry]], object] | None = None
    ) -> tuple[list[Entry], dict[bytes, str]]:
        """Dooms entries unless pinned or leased; returns those evicted, and why others stay.

        first: is called with them before their rows go, while nobody can begin to use them.
        """
        keys = list(keys)

        def evict(connection: sqlite3.Connection) -> tuple[list[Entry], dict[bytes, str]]:
            gone: list[Entry] = []
            kept: dict[bytes, str] = {}
            for key in keys:
                entry = rows.entry_of(connection, key)
                if entry is None:
                    continue
                held = connection.execute(f"SELECT {rows.LEASE} FROM leases WHERE location = ?", (entry.location,))
                reason = state.may_evict(entry, [Lease(*row) for row in held] if entry.location else [], now)
                if reason is not None:
                    kept[key] = reason
                    continue
                gone.append(entry)
            if first is not None:
                first(gone)
            for entry in gone:
                rows.evict(connection, entry, now)
            return gone, kept

        return self._free("evict", evict)

    def lose(self, entry: Entry, now: float) -> bool:
        """Dooms an entry whose files are gone or damaged, whatever protects it; False if it is not there any more."""

        def lose(connection: sqlite3.Connection) -> bool:
            standing = rows.entry_of(connection, entry.key)
            if standing is None or (standing.location, standing.manifest) != (entry.location, entry.manifest):
                return False
            rows.evict(connection, standing, now)
            connection.execute("DELETE FROM leases WHERE location = ? AND location <> ''", (standing.location,))
            return True

        return self._free("lose", lose)

    def doomed(self) -> list[tuple[str, int]]:
        """Locations whose files are to be deleted, and their sizes; what is leased waits until it is not."""
        statement = (
            "SELECT location, size FROM doomed WHERE NOT EXISTS "
            "(SELECT 1 FROM leases WHERE leases.location = doomed.location)"
        )
        return self._read(lambda connection: connection.execute(statement).fetchall())

    def doom(self, locations: Iterable[tuple[str, int]], now: float) -> None:
        """Says that files at these locations belong to nobody."""

        def doom(connection: sqlite3.Connection) -> None:
            for location, size in locations:
                rows.doom(connection, location, size, now)

        self._write("doom", doom)

    def forget_doomed(self, locations: Iterable[str]) -> None:
        """Says that the files are gone."""
        locations = list(locations)

        def forget(connection: sqlite3.Connection) -> None:
            for location in locations:
                row = connection.execute("SELECT size FROM doomed WHERE location = ?", (location,)).fetchone()
                if row is not None:
                    connection.execute("DELETE FROM doomed WHERE location = ?", (location,))
                    rows.count(connection, doomed=-row[0])

        self._free("forget doomed", forget)

    def referred(self, locations: Sequence[str]) -> set[str]:
        """Those locations that an entry or a pending deletion refers to."""

        def select(connection: sqlite3.Connection) -> set[str]:
            return {
                row[0]
                for table in ("entries", "doomed")
                for batch in rows.batches(locations)
                for row in connection.execute(
                    f"SELECT location FROM {table} WHERE location IN ({rows.marks(batch)}) AND location <> ''", batch
                )
            }

        return self._read(select)

    # what functions were, and what inputs hold

    def add_version(self, version: Version) -> None:
        """Remembers that a label had this program; the first time counts."""
        statement = (
            "INSERT INTO versions (label, program, trace, since) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (label, program) DO NOTHING"
        )
        values = (version.label, version.program, version.trace, version.since)
        self._write("add version", lambda connection: connection.execute(statement, values))

    def versions(self, label: str) -> list[Version]:
        """The programs a label has had, newest first."""
        statement = "SELECT label, program, trace, since FROM versions WHERE label = ? ORDER BY since DESC"
        return self._read(lambda connection: [Version(*row) for row in connection.execute(statement, (label,))])

    def contents(self, origins: Sequence[bytes]) -> dict[bytes, Content]:
        """What is known of the bytes of inputs, by their origin."""

        def select(connection: sqlite3.Connection) -> dict[bytes, Content]:
            found = (
                opened(row)
                for batch in rows.batches(origins)
                for row in connection.execute(
                    f"SELECT origin, digest, certain, seal FROM contents WHERE origin IN ({rows.marks(batch)})", batch
                )
            )
            return {values[0]: Content(values[1], bool(values[2])) for values in found if values is not None}

        return self._read(select)

    def remember_contents(self, contents: Mapping[bytes, Content], now: float) -> None:
        """Keeps what was found out about the bytes of inputs; the latest counts."""
        values = [(origin, content.digest, int(content.certain)) for origin, content in contents.items()]
        statement = (
            "INSERT INTO contents (origin, digest, certain, seal, seen) VALUES (?, ?, ?, ?, ?) ON CONFLICT (origin) "
            "DO UPDATE SET digest = excluded.digest, certain = excluded.certain, seal = excluded.seal, "
            "seen = excluded.seen"
        )
        sealed = [(*each, seal(each), now) for each in values]
        self._write("remember contents", lambda connection: connection.executemany(statement, sealed))

    def lengths(self, places: Sequence[bytes]) -> dict[bytes, list[Length]]:
        """How long the inputs at these places were, the latest first."""
        return self._read(lambda connection: select_lengths(connection, places))

    def remember_lengths(self, lengths: Sequence[Length], most: int, now: float) -> None:
        """Keeps how long inputs are now, and of each place the latest so many."""
        self._write("remember lengths", lambda connection: put_lengths(connection, lengths, most, now))

    def observed(self, programs: Sequence[bytes]) -> dict[bytes, str]:
        """What was observed of those programs of which something was."""
        return self._read(lambda connection: select_observed(connection, programs))

    def add_observed(self, program: bytes, told: str, now: float) -> None:
        """Remembers what a program was seen to do; the latest counts."""
        self._write("add observed", lambda connection: put_observed(connection, program, told, now))

    # jobs

    def log(self, job: Job, most: int) -> None:
        """Appends to the job log, which keeps at most so many."""
        content = zlib.compress(rows.pack_job(job), 1)

        def log(connection: sqlite3.Connection) -> None:
            number = connection.execute("INSERT INTO jobs (content) VALUES (?)", (content,)).lastrowid or 0
            connection.execute("DELETE FROM jobs WHERE number <= ?", (number - most,))

        self._write("log job", log)

    def jobs(self, last: int = 100) -> list[Job]:
        """The last jobs, newest first; without those whose rows are damaged."""
        found = self._read(
            lambda connection: connection.execute(
                "SELECT content FROM jobs ORDER BY number DESC LIMIT ?", (last,)
            ).fetchall()
        )
        return [job for row in found if (job := rows.to_job(row)) is not None]

    # counts

    def usage(self, now: float) -> Usage:
        """What the store holds, by the rows."""
        return self._read(lambda connection: rows.usage_of(connection, now))

    def unused(self, since: Sequence[float]) -> list[tuple[int, int]]:
        """For each moment, how many entries have not been used since then, and their bytes."""
        statement = "SELECT COUNT(*), COALESCE(SUM(size), 0) FROM entries WHERE used < ?"
        return [self._read(lambda connection, at=at: connection.execute(statement, (at,)).fetchone()) for at in since]  # type: ignore[misc]

    def totals(self) -> Totals:
        """Uses, look-ups, recipes and jobs, counted when asked: it takes longer than usage."""
        return self._read(rows.totals_of)

    def recount(self, apply: bool = True) -> bool:
        """Counts the rows anew; True if the count was wrong. apply: it is right now."""

        def recount(connection: sqlite3.Connection) -> bool:
            row = connection.execute(
                "SELECT COUNT(*), COALESCE(SUM(size), 0), COALESCE(SUM(files), 0), "
                "COALESCE(SUM(CASE WHEN inline IS NULL THEN 0 ELSE size END), 0) FROM entries"
            ).fetchone()
            doomed = connection.execute("SELECT COALESCE(SUM(size), 0) FROM doomed").fetchone()
            right = dict(zip(("entries", "size", "files", "inline", "doomed"), (*row, *doomed), strict=True))
            wrong = right != dict(connection.execute("SELECT what, number FROM counts").fetchall())
            if wrong and apply:
                connection.execute("DELETE FROM counts")
                connection.executemany("INSERT INTO counts (what, number) VALUES (?, ?)", list(right.items()))
            return wrong

        return self._write("recount", recount) if apply else self._snapshot(recount)
