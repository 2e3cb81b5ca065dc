"""Rows of the SQLite index and the nouns they stand for; statements that several calls share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from string import hexdigits
from typing import Any, Final, TypeVar

import msgspec

from nectar.catalog.state import Candidate
from nectar.model.entry import Entry, Job, Name, Span, Totals, Usage

_T = TypeVar("_T")
_BATCH: Final = 500  # placeholders in one statement; SQLite allows 32766, older builds 999
ENTRY: Final = (
    "key, program, kind, location, manifest, size, files, row_count, seconds, created, used, hits, inline, pinned, "
    "rebuildable, recipe, spans, producer, signature, protected, about"
)
CANDIDATE: Final = "key, size, files, seconds, hits, created, used, protected, pinned, rebuildable"
LEASE: Final = "token, location, holder, until, size"
NAME: Final = "name, version, key, since, by_whom, note"
_spans = msgspec.msgpack.Decoder(tuple[Span, ...])
decode_job = msgspec.msgpack.Decoder(Job).decode
pack = msgspec.msgpack.encode


def batches(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Pieces that fit into one statement."""
    for start in range(0, len(values), _BATCH):
        yield values[start : start + _BATCH]


def key_range(prefix: str) -> tuple[bytes, bytes] | None:
    """The first and the last key that begin with these hexadecimal digits; None if they are none."""
    if not set(prefix) <= set(hexdigits):
        return None
    odd = len(prefix) % 2 == 1
    low, high = (bytes.fromhex(prefix + end * odd) for end in "0f")
    return low, high + b"\xff" * 32


def marks(values: Sequence[object]) -> str:
    """One placeholder for each value."""
    return ", ".join("?" * len(values))


def entry_of(connection: sqlite3.Connection, key: bytes) -> Entry | None:
    """The entry of a key."""
    row = connection.execute(f"SELECT {ENTRY} FROM entries WHERE key = ?", (key,)).fetchone()
    return to_entry(row) if row else None


def current_name(connection: sqlite3.Connection, name: str) -> Name | None:
    """The newest version of a name, also if it was removed then."""
    statement = f"SELECT {NAME} FROM names WHERE name = ? ORDER BY version DESC LIMIT 1"
    row = connection.execute(statement, (name,)).fetchone()
    return Name(*row) if row else None


def doom(connection: sqlite3.Connection, location: str, size: int, now: float) -> None:
    """Notes files that are to be deleted."""
    statement = "INSERT INTO doomed (location, size, since) VALUES (?, ?, ?) ON CONFLICT (location) DO NOTHING"
    if connection.execute(statement, (location, size, now)).rowcount:
        count(connection, doomed=size)


def evict(connection: sqlite3.Connection, entry: Entry, now: float) -> None:
    """Forgets an entry; its files are to be deleted."""
    connection.execute("DELETE FROM entries WHERE key = ?", (entry.key,))
    count(connection, entries=-1, size=-entry.size, files=-entry.files)
    if entry.location:
        doom(connection, entry.location, entry.size, now)


def usage_of(connection: sqlite3.Connection, now: float) -> Usage:
    """The totals, in one statement: what was pending a moment ago may be an entry now."""
    statement = (
        "SELECT what, number FROM counts UNION ALL SELECT 'pending', COALESCE(SUM(size), 0) FROM leases WHERE until > ?"
    )
    return Usage(**dict(connection.execute(statement, (now,)).fetchall()))


def totals_of(connection: sqlite3.Connection) -> Totals:
    """What is counted only when asked."""
    statements = (
        "SELECT COALESCE(SUM(hits), 0), COALESCE(SUM(hits * seconds), 0.0), COALESCE(SUM(pinned), 0) FROM entries",
        """SELECT COUNT(*) FROM names n WHERE LENGTH(key) > 0 AND NOT EXISTS
        (SELECT 1 FROM names later WHERE later.name = n.name AND later.version > n.version)""",
        "SELECT COUNT(*), COALESCE(SUM(times), 0) FROM lookups",
        "SELECT COUNT(*) FROM recipes",
        "SELECT COALESCE(SUM(LENGTH(content)), 0) FROM recipe_parts",
        "SELECT COUNT(*) FROM jobs",
    )
    return Totals(*(number for statement in statements for number in connection.execute(statement).fetchone()))


def count(connection: sqlite3.Connection, **changes: int) -> None:
    """Keeps the totals."""
    rows = [(change, what) for what, change in changes.items() if change]
    connection.executemany("UPDATE counts SET number = number + ? WHERE what = ?", rows)


def to_entry(row: Sequence[Any]) -> Entry:
    """An entry from a row."""
    (key, program, kind, location, manifest, size, files, rows, seconds, created, used, hits, inline, pinned,
     rebuildable, recipe, spans, producer, signature, protected, about) = row  # fmt: skip
    return Entry(
        key, program, kind, location, manifest, size, files, rows, seconds, created, used, hits, inline, bool(pinned),
        bool(rebuildable), recipe, _spans.decode(spans) if spans else (), producer, signature, protected,
        about,
    )  # fmt: skip


def to_candidate(row: Sequence[Any]) -> Candidate:
    """What a policy may know, from a row."""
    key, size, files, seconds, hits, created, used, protected, pinned, rebuildable = row
    return Candidate(key, size, files, seconds, hits, created, used, protected, pinned == 1, rebuildable == 1)


def to_row(entry: Entry) -> tuple[object, ...]:
    """A row from an entry."""
    return (
        entry.key, entry.program, entry.kind, entry.location, entry.manifest, entry.size, entry.files, entry.rows,
        entry.seconds, entry.created, entry.used, entry.hits, entry.inline, int(entry.pinned), int(entry.rebuildable),
        entry.recipe, pack(entry.spans) if entry.spans else None, entry.producer, entry.signature, entry.protected,
        entry.about,
    )  # fmt: skip
