"""The embedded index: one SQLite file in WAL mode, used by many processes at once.

Each public call is one transaction. Writers take the lock at the start (BEGIN IMMEDIATE), so that what they read is what they
change. Readers never wait for writers. What must survive the end of a process does; what must survive a loss of power is in the
files of the store, whose entries may then be missing and are swept.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import blake3
import msgspec

from nectar.catalog import state
from nectar.catalog.index.schema import MIGRATIONS, VERSION
from nectar.catalog.state import Accept, Candidate, Decline, Granted, Present, Taken
from nectar.errors import CatalogFailure
from nectar.faults import Reach, nowhere
from nectar.model.entry import Entry, Job, Lease, Name, Reservation, Span, Usage

_T = TypeVar("_T")
_WAIT: Final = 30.0  # seconds to wait for another writer before giving up
_BATCH: Final = 500  # placeholders in one statement; SQLite allows 32766, older builds 999
_ENTRY: Final = (
    "key, program, kind, location, manifest, size, files, row_count, seconds, created, used, hits, inline, pinned, "
    "rebuildable, recipe, spans, producer, signature, protected"
)
_CANDIDATE: Final = "key, size, files, seconds, hits, created, used, protected, pinned, rebuildable"
_spans = msgspec.msgpack.Decoder(tuple[Span, ...])
_job = msgspec.msgpack.Decoder(Job)
_pack = msgspec.msgpack.encode


class SqliteIndex:
    """An index in one file. One object may be used by many threads."""

    def __init__(self, path: str | os.PathLike[str], *, reach: Reach = nowhere, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self._reach = reach
        self._lock = threading.RLock()
        self._connection = _open(self.path, read_only)
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    # set-up

    def _prepare(self) -> None:
        version = self._translate(lambda: self._connection.execute("PRAGMA user_version").fetchone()[0])
        if version > VERSION:
            raise CatalogFailure(
                f"the catalog {self.path} was written by a newer version of Nectar (format {version}, this one knows "
                f"{VERSION}): upgrade Nectar, or use another folder (NECTAR_HOME)"
            )
        if version < VERSION:
            if self.read_only:
                raise CatalogFailure(
                    f"the catalog {self.path} has the old format {version} and cannot be written here: open it once with "
                    "the right to write, so that it is brought up to date"
                )
            self._translate(self._migrate)

    def _migrate(self) -> None:
        self._connection.execute("PRAGMA journal_mode=WAL")
        with self._writing("migrate"):
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]  # another process may have been faster
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version={VERSION}")

    @contextmanager
    def _writing(self, what: str) -> Iterator[sqlite3.Connection]:
        """A transaction that has the right to write from its beginning; rolled back if anything goes wrong."""
        with self._lock:
            self._reach(f"sql begin {what}")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._reach(f"sql commit {what}")
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _write(self, what: str, action: Callable[[sqlite3.Connection], _T]) -> _T:
        def transaction() -> _T:
            with self._writing(what) as connection:
                return action(connection)

        return self._translate(transaction)

    def _read(self, action: Callable[[sqlite3.Connection], _T]) -> _T:
        def reading() -> _T:
            with self._lock:
                return action(self._connection)

        return self._translate(reading)

    def _translate(self, action: Callable[[], _T]) -> _T:
        """Runs an action; errors of SQLite say what to do."""
        try:
            return action()
        except sqlite3.Error as error:
            raise CatalogFailure(_explain(error, self.path)) from error

    # entries

    def lookup(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        """The entries of those keys that have one."""
        return {entry.key: entry for entry in self._select("key", keys)}

    def inquire(self, programs: Sequence[bytes]) -> dict[bytes, list[Entry]]:
        """All entries of each program, whatever their inputs."""
        found: dict[bytes, list[Entry]] = {program: [] for program in programs}
        for entry in self._select("program", programs):
            found[entry.program].append(entry)
        return found

    def _select(self, column: str, values: Sequence[bytes]) -> list[Entry]:
        def select(connection: sqlite3.Connection) -> list[Entry]:
            return [
                _entry(row)
                for batch in _batches(values)
                for row in connection.execute(f"SELECT {_ENTRY} FROM entries WHERE {column} IN ({_marks(batch)})", batch)
            ]

        return self._read(select)

    def entries(self) -> Iterator[Entry]:
        """Every entry, in the order of keys."""
        return self._all(_ENTRY, _entry)

    def candidates(self) -> Iterator[Candidate]:
        """What policies may know of every entry."""
        return self._all(_CANDIDATE, lambda row: Candidate(*row[:8], bool(row[8]), bool(row[9])))

    def _all(self, columns: str, make: Callable[[Any], _T]) -> Iterator[_T]:
        """Every row by ranges of keys, so that no lock is held in between."""
        after = b""
        while True:
            rows = self._read(
                lambda connection, after=after: connection.execute(  # type: ignore[misc]
                    f"SELECT {columns} FROM entries WHERE key > ? ORDER BY key LIMIT 10000", (after,)
                ).fetchall()
            )
            yield from map(make, rows)
            if len(rows) < 10000:
                return
            after = rows[-1][0]

    def find(self, prefix: str) -> list[Entry]:
        """Entries whose key begins with these hexadecimal digits."""
        even = prefix[: len(prefix) // 2 * 2]
        low = bytes.fromhex(even)
        found = self._read(
            lambda connection: connection.execute(
                f"SELECT {_ENTRY} FROM entries WHERE key >= ? AND key <= ? ORDER BY key", (low, low + b"\xff" * 32)
            ).fetchall()
        )
        return [entry for entry in map(_entry, found) if entry.key.hex().startswith(prefix.lower())]

    def add(self, entry: Entry, lease: str, protect_for: float, now: float) -> Accept | Decline:
        """Makes a published result visible and ends the lease under which it was written; declined files are doomed."""

        def add(connection: sqlite3.Connection) -> Accept | Decline:
            standing = _one(connection, entry.key)
            decision = state.add(entry, standing, protect_for, now)
            if isinstance(decision, Accept):
                connection.execute(f"INSERT INTO entries ({_ENTRY}) VALUES ({_marks(_ENTRY.split(','))})", _row(decision.entry))
                _count(connection, entries=1, size=entry.size, files=entry.files)
            elif entry.location and entry.location != decision.standing.location:
                _doom(connection, entry.location, entry.size, now)
            connection.execute("DELETE FROM leases WHERE token = ?", (lease,))
            connection.execute("DELETE FROM reservations WHERE key = ?", (entry.key,))
            return decision

        return self._write("add entry", add)

    def touch(self, uses: Mapping[bytes, tuple[int, float]]) -> None:
        """Adds uses (number, time of the last) to entries."""
        rows = [(number, last, last, key) for key, (number, last) in uses.items()]
        statement = "UPDATE entries SET hits = hits + ?, used = CASE WHEN used < ? THEN ? ELSE used END WHERE key = ?"
        self._write("touch", lambda connection: connection.executemany(statement, rows))

    def count_lookups(self, counts: Mapping[bytes, int], now: float) -> None:
        """Adds look-ups to programs, whether they have entries or not."""
        rows = [(program, number, now) for program, number in counts.items()]
        statement = (
            "INSERT INTO lookups (program, times, last) VALUES (?, ?, ?) "
            "ON CONFLICT (program) DO UPDATE SET times = lookups.times + excluded.times, last = excluded.last"
        )
        self._write("count look-ups", lambda connection: connection.executemany(statement, rows))

    def lookups(self, programs: Sequence[bytes]) -> dict[bytes, int]:
        """How often each program has been looked up."""

        def select(connection: sqlite3.Connection) -> dict[bytes, int]:
            found = dict.fromkeys(programs, 0)
            for batch in _batches(programs):
                found.update(
                    connection.execute(f"SELECT program, times FROM lookups WHERE program IN ({_marks(batch)})", batch)
                )
            return found

        return self._read(select)

    def pin(self, key: bytes, pinned: bool) -> bool:
        """Protects an entry, or no longer; False if there is no entry."""
        return self._set("pinned", key, pinned)

    def set_rebuildable(self, key: bytes, rebuildable: bool) -> bool:
        """Says whether an entry could be made again; False if there is no entry."""
        return self._set("rebuildable", key, rebuildable)

    def _set(self, column: str, key: bytes, value: bool) -> bool:
        statement = f"UPDATE entries SET {column} = ? WHERE key = ?"
        return self._write(
            f"set {column}", lambda connection: connection.execute(statement, (int(value), key)).rowcount > 0
        )

    # reservations and leases

    def reserve(self, asked: Reservation, now: float) -> Present | Granted | Taken:
        """Asks to be the one who computes a key."""

        def reserve(connection: sqlite3.Connection) -> Present | Granted | Taken:
            row = connection.execute("SELECT key, token, holder, until FROM reservations WHERE key = ?", (asked.key,)).fetchone()
            decision = state.reserve(asked, _one(connection, asked.key), Reservation(*row) if row else None, now)
            if isinstance(decision, Granted):
                connection.execute("DELETE FROM reservations WHERE key = ?", (asked.key,))
                values = (asked.key, asked.token, asked.holder, asked.until)
                connection.execute("INSERT INTO reservations (key, token, holder, until) VALUES (?, ?, ?, ?)", values)
            return decision

        return self._write("reserve", reserve)

    def release_reservation(self, token: str) -> None:
        """Gives a reservation back."""
        self._write(
            "release reservation",
            lambda connection: connection.execute("DELETE FROM reservations WHERE token = ?", (token,)),
        )

    def put_leases(self, leases: Iterable[Lease]) -> None:
        """Adds leases, or prolongs those that are there."""
        rows = [(lease.token, lease.location, lease.holder, lease.until, lease.size) for lease in leases]
        statement = (
            "INSERT INTO leases (token, location, holder, until, size) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (token) DO UPDATE SET until = excluded.until, size = excluded.size"
        )
        self._write("put leases", lambda connection: connection.executemany(statement, rows))

    def drop_leases(self, tokens: Iterable[str]) -> None:
        """Ends leases."""
        rows = [(token,) for token in tokens]
        self._write("drop leases", lambda connection: connection.executemany("DELETE FROM leases WHERE token = ?", rows))

    def leases(self) -> list[Lease]:
        """All leases, those that ran out included."""
        return self._read(
            lambda connection: [
                Lease(*row) for row in connection.execute("SELECT token, location, holder, until, size FROM leases")
            ]
        )

    def expire(self, now: float) -> int:
        """Forgets leases and reservations that ran out; returns how many."""

        def expire(connection: sqlite3.Connection) -> int:
            gone = connection.execute("DELETE FROM leases WHERE until <= ?", (now,)).rowcount
            return gone + connection.execute("DELETE FROM reservations WHERE until <= ?", (now,)).rowcount

        return self._write("expire", expire)

    # deletion

    def evict(self, keys: Iterable[bytes], now: float, force: bool = False) -> tuple[list[Entry], dict[bytes, str]]:
        """Dooms entries unless pinned or leased; returns those evicted, and why others stay."""

        def evict(connection: sqlite3.Connection) -> tuple[list[Entry], dict[bytes, str]]:
            gone: list[Entry] = []
            kept: dict[bytes, str] = {}
            for key in keys:
                entry = _one(connection, key)
                if entry is None:
                    continue
                held = connection.execute(
                    "SELECT token, location, holder, until, size FROM leases WHERE location = ?", (entry.location,)
                )
                reason = state.may_evict(entry, [Lease(*row) for row in held] if entry.location else [], now)
                if reason is not None and not (force and entry.pinned and reason == "pinned"):
                    kept[key] = reason
                    continue
                connection.execute("DELETE FROM entries WHERE key = ?", (key,))
                _count(connection, entries=-1, size=-entry.size, files=-entry.files)
                if entry.location:
                    _doom(connection, entry.location, entry.size, now)
                gone.append(entry)
            return gone, kept

        return self._write("evict", evict)

    def doomed(self) -> list[tuple[str, int]]:
        """Locations whose files are to be deleted, and their sizes."""
        return self._read(lambda connection: connection.execute("SELECT location, size FROM doomed").fetchall())

    def doom(self, locations: Iterable[tuple[str, int]], now: float) -> None:
        """Says that files at these locations belong to nobody."""

        def doom(connection: sqlite3.Connection) -> None:
            for location, size in locations:
                _doom(connection, location, size, now)

        self._write("doom", doom)

    def forget_doomed(self, locations: Iterable[str]) -> None:
        """Says that the files are gone."""

        def forget(connection: sqlite3.Connection) -> None:
            for location in locations:
                row = connection.execute("SELECT size FROM doomed WHERE location = ?", (location,)).fetchone()
                if row is not None:
                    connection.execute("DELETE FROM doomed WHERE location = ?", (location,))
                    _count(connection, doomed=-row[0])

        self._write("forget doomed", forget)

    def referred(self, locations: Sequence[str]) -> set[str]:
        """Those locations that an entry, a lease or a pending deletion refers to."""

        def select(connection: sqlite3.Connection) -> set[str]:
            return {
                row[0]
                for table in ("entries", "leases", "doomed")
                for batch in _batches(locations)
                for row in connection.execute(f"SELECT location FROM {table} WHERE location IN ({_marks(batch)})", batch)
            }

        return self._read(select)

    # names

    def bind(self, name: str, key: bytes, by: str, now: float) -> Name:
        """Lets a name point to a key from now on; earlier versions stay in its history."""

        def bind(connection: sqlite3.Connection) -> Name:
            last = _current(connection, name)
            if last is not None and last.key == key:
                return last
            bound = Name(name, last.version + 1 if last else 1, key, now, by)
            connection.execute(
                "INSERT INTO names (name, version, key, since, by_whom) VALUES (?, ?, ?, ?, ?)",
                (bound.name, bound.version, bound.key, bound.since, bound.by),
            )
            return bound

        return self._write("bind name", bind)

    def resolve(self, name: str) -> Name | None:
        """What a name points to now."""
        return self._read(lambda connection: _current(connection, name))

    def names(self, prefix: str = "") -> list[Name]:
        """All names that begin with prefix, as they are now."""
        statement = (
            "SELECT n.name, n.version, n.key, n.since, n.by_whom FROM names n JOIN "
            "(SELECT name, MAX(version) AS version FROM names GROUP BY name) l "
            "ON n.name = l.name AND n.version = l.version ORDER BY n.name"
        )
        found = self._read(lambda connection: [Name(*row) for row in connection.execute(statement)])
        return [name for name in found if name.name.startswith(prefix)]

    def history(self, name: str) -> list[Name]:
        """All versions of a name, newest first."""
        statement = "SELECT name, version, key, since, by_whom FROM names WHERE name = ? ORDER BY version DESC"
        return self._read(lambda connection: [Name(*row) for row in connection.execute(statement, (name,))])

    def unbind(self, name: str) -> bool:
        """Forgets a name and its history; False if there was none."""
        return self._write(
            "unbind name", lambda connection: connection.execute("DELETE FROM names WHERE name = ?", (name,)).rowcount > 0
        )

    # recipes and jobs

    def put_recipe(self, parts: Sequence[bytes]) -> bytes:
        """Keeps a recipe for ever, each part once however many recipes share it; returns its identity."""
        identities = [blake3.blake3(part).digest() for part in parts]
        listed = b"".join(identities)
        identity = blake3.blake3(listed).digest()
        packed = [(part_id, zlib.compress(part, 6)) for part_id, part in zip(identities, parts, strict=True)]

        def put(connection: sqlite3.Connection) -> None:
            statement = "INSERT INTO recipe_parts (identity, content) VALUES (?, ?) ON CONFLICT (identity) DO NOTHING"
            connection.executemany(statement, packed)
            connection.execute(
                "INSERT INTO recipes (identity, parts) VALUES (?, ?) ON CONFLICT (identity) DO NOTHING", (identity, listed)
            )

        self._write("put recipe", put)
        return identity

    def get_recipe(self, identity: bytes) -> list[bytes] | None:
        """The parts of a recipe."""

        def get(connection: sqlite3.Connection) -> list[bytes] | None:
            row = connection.execute("SELECT parts FROM recipes WHERE identity = ?", (identity,)).fetchone()
            if row is None:
                return None
            wanted = [row[0][at : at + 32] for at in range(0, len(row[0]), 32)]
            statement = "SELECT content FROM recipe_parts WHERE identity = ?"
            return [zlib.decompress(connection.execute(statement, (part,)).fetchone()[0]) for part in wanted]

        return self._read(get)

    def log(self, job: Job, most: int) -> None:
        """Appends to the job log, which keeps at most so many."""
        content = zlib.compress(_pack(job), 1)

        def log(connection: sqlite3.Connection) -> None:
            number = connection.execute("INSERT INTO jobs (content) VALUES (?)", (content,)).lastrowid or 0
            connection.execute("DELETE FROM jobs WHERE number <= ?", (number - most,))

        self._write("log job", log)

    def jobs(self, last: int = 100) -> list[Job]:
        """The last jobs, newest first."""
        rows = self._read(
            lambda connection: connection.execute("SELECT content FROM jobs ORDER BY number DESC LIMIT ?", (last,)).fetchall()
        )
        return [_job.decode(zlib.decompress(row[0])) for row in rows]

    # counts

    def usage(self, now: float) -> Usage:
        """What the store holds, by the rows."""

        def count(connection: sqlite3.Connection) -> Usage:
            counts = dict(connection.execute("SELECT what, number FROM counts").fetchall())
            statement = "SELECT COALESCE(SUM(size), 0) FROM leases WHERE until > ?"
            return Usage(pending=connection.execute(statement, (now,)).fetchone()[0], **counts)

        return self._read(count)

    def recount(self) -> bool:
        """Counts the rows anew; True if the count was wrong."""

        def recount(connection: sqlite3.Connection) -> bool:
            row = connection.execute("SELECT COUNT(*), COALESCE(SUM(size), 0), COALESCE(SUM(files), 0) FROM entries").fetchone()
            doomed = connection.execute("SELECT COALESCE(SUM(size), 0) FROM doomed").fetchone()
            right = dict(zip(("entries", "size", "files", "doomed"), (*row, *doomed), strict=True))
            wrong = right != dict(connection.execute("SELECT what, number FROM counts").fetchall())
            connection.executemany("UPDATE counts SET number = ? WHERE what = ?", [(n, what) for what, n in right.items()])
            return wrong

        return self._write("recount", recount)

    def sound(self) -> list[str]:
        """What SQLite itself finds wrong with the file; empty if nothing."""
        found = self._read(lambda connection: [row[0] for row in connection.execute("PRAGMA integrity_check(10)")])
        return [] if found == ["ok"] else found

    def close(self) -> None:
        """Ends the use of the index."""
        with self._lock:
            self._connection.close()


def _open(path: Path, read_only: bool) -> sqlite3.Connection:
    try:
        if not read_only:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
        else:
            connection = _open_for_reading(path)
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA cache_size=-65536")
        connection.execute("PRAGMA mmap_size=1073741824")
    except (sqlite3.Error, OSError) as error:
        raise CatalogFailure(_explain(error, path)) from error
    return connection


def _open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that never writes; where not even the helper files of WAL can be made, the file as it lies there."""
    for mode in ("mode=ro", "immutable=1"):
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=_WAIT, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            connection.close()
            if mode == "immutable=1":
                raise
        else:
            break
    return connection


def _explain(error: BaseException, path: Path) -> str:
    """What went wrong with the index, and what to do."""
    text = str(error).lower()
    for sign, advice in (
        ("full", "the disk is full: free some space, or lower the budget (NECTAR_BUDGET) and run `nectar gc --apply`"),
        ("locked", "another process kept it locked for too long: end that process, or try again"),
        ("readonly", "it may only be read: check its rights, or use another folder (NECTAR_HOME)"),
        ("unable to open", "it cannot be opened: check that its folder exists and may be written, or set NECTAR_HOME"),
        ("not a database", "it is no catalog: move the file away, and Nectar makes a new one"),
        ("malformed", "it is damaged: `nectar check --repair` rebuilds it from the files of the store"),
        ("permission", "access is denied: check the rights of its folder, or set NECTAR_HOME"),
    ):
        if sign in text:
            return f"the catalog {path} cannot be used: {advice} ({error})"
    return f"the catalog {path} cannot be used: {error}"


def _batches(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    for start in range(0, len(values), _BATCH):
        yield values[start : start + _BATCH]


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _one(connection: sqlite3.Connection, key: bytes) -> Entry | None:
    row = connection.execute(f"SELECT {_ENTRY} FROM entries WHERE key = ?", (key,)).fetchone()
    return _entry(row) if row else None


def _current(connection: sqlite3.Connection, name: str) -> Name | None:
    statement = "SELECT name, version, key, since, by_whom FROM names WHERE name = ? ORDER BY version DESC LIMIT 1"
    row = connection.execute(statement, (name,)).fetchone()
    return Name(*row) if row else None


def _doom(connection: sqlite3.Connection, location: str, size: int, now: float) -> None:
    statement = "INSERT INTO doomed (location, size, since) VALUES (?, ?, ?) ON CONFLICT (location) DO NOTHING"
    if connection.execute(statement, (location, size, now)).rowcount:
        _count(connection, doomed=size)


def _count(connection: sqlite3.Connection, **changes: int) -> None:
    rows = [(change, what) for what, change in changes.items() if change]
    connection.executemany("UPDATE counts SET number = number + ? WHERE what = ?", rows)


def _entry(row: Sequence[Any]) -> Entry:
    (key, program, kind, location, manifest, size, files, rows, seconds, created, used, hits, inline, pinned,
     rebuildable, recipe, spans, producer, signature, protected) = row  # fmt: skip
    return Entry(
        key, program, kind, location, manifest, size, files, rows, seconds, created, used, hits, inline, bool(pinned),
        bool(rebuildable), recipe, _spans.decode(spans) if spans else (), producer, signature, protected,
    )  # fmt: skip


def _row(entry: Entry) -> tuple[object, ...]:
    return (
        entry.key, entry.program, entry.kind, entry.location, entry.manifest, entry.size, entry.files, entry.rows,
        entry.seconds, entry.created, entry.used, entry.hits, entry.inline, int(entry.pinned), int(entry.rebuildable),
        entry.recipe, _pack(entry.spans) if entry.spans else None, entry.producer, entry.signature, entry.protected,
    )  # fmt: skip
