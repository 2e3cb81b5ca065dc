"""Rows of the SQLite index and the nouns they stand for; statements that several calls share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec

from nectar.model.entry import Entry, Job, Name, Span, Usage

_T = TypeVar("_T")
_BATCH: Final = 500  # placeholders in one statement; SQLite allows 32766, older builds 999
ENTRY: Final = (
    "key, program, kind, location, manifest, size, files, row_count, seconds, created, used, hits, inline, pinned, "
    "rebuildable, recipe, spans, producer, signature, protected"
)
CANDIDATE: Final = "key, size, files, seconds, hits, created, used, protected, pinned, rebuildable"
LEASE: Final = "token, location, holder, until, size"
NAME: Final = "name, version, key, since, by_whom"
_spans = msgspec.msgpack.Decoder(tuple[Span, ...])
decode_job = msgspec.msgpack.Decoder(Job).decode
pack = msgspec.msgpack.encode


def batches(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Pieces that fit into one statement."""
    for start in range(0, len(values), _BATCH):
        yield values[start : start + _BATCH]


def marks(values: Sequence[object]) -> str:
    """One placeholder for each value."""
    return ", ".join("?" * len(values))


def entry_of(connection: sqlite3.Connection, key: bytes) -> Entry | None:
    """The entry of a key."""
    row = connection.execute(f"SELECT {ENTRY} FROM entries WHERE key = ?", (key,)).fetchone()
    return to_entry(row) if row else None


def current_name(connection: sqlite3.Connection, name: str) -> Name | None:
    """The newest version of a name."""
    statement = f"SELECT {NAME} FROM names WHERE name = ? ORDER BY version DESC LIMIT 1"
    row = connection.execute(statement, (name,)).fetchone()
    return Name(*row) if row else None


def doom(connection: sqlite3.Connection, location: str, size: int, now: float) -> None:
    """Notes files that are to be deleted."""
    statement = "INSERT INTO doomed (location, size, since) VALUES (?, ?, ?) ON CONFLICT (location) DO NOTHING"
    if connection.execute(statement, (location, size, now)).rowcount:
        count(connection, doomed=size)


def usage_of(connection: sqlite3.Connection, now: float) -> Usage:
    """The totals."""
    counts = dict(connection.execute("SELECT what, number FROM counts").fetchall())
    pending = connection.execute("SELECT COALESCE(SUM(size), 0) FROM leases WHERE until > ?", (now,)).fetchone()[0]
    return Usage(pending=pending, **counts)


def count(connection: sqlite3.Connection, **changes: int) -> None:
    """Keeps the totals."""
    rows = [(change, what) for what, change in changes.items() if change]
    connection.executemany("UPDATE counts SET number = number + ? WHERE what = ?", rows)


def to_entry(row: Sequence[Any]) -> Entry:
    """An entry from a row."""
    (key, program, kind, location, manifest, size, files, rows, seconds, created, used, hits, inline, pinned,
     rebuildable, recipe, spans, producer, signature, protected) = row  # fmt: skip
    return Entry(
        key, program, kind, location, manifest, size, files, rows, seconds, created, used, hits, inline, bool(pinned),
        bool(rebuildable), recipe, _spans.decode(spans) if spans else (), producer, signature, protected,
    )  # fmt: skip


def to_row(entry: Entry) -> tuple[object, ...]:
    """A row from an entry."""
    return (
        entry.key, entry.program, entry.kind, entry.location, entry.manifest, entry.size, entry.files, entry.rows,
        entry.seconds, entry.created, entry.used, entry.hits, entry.inline, int(entry.pinned), int(entry.rebuildable),
        entry.recipe, pack(entry.spans) if entry.spans else None, entry.producer, entry.signature, entry.protected,
    )  # fmt: skip
