"""Rows of the SQLite index and the nouns they stand for; statements that several calls share."""

from __future__ import annotations

import functools
import itertools
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from string import hexdigits
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from nectar.catalog.index.seals import opened
from nectar.catalog.state import Candidate
from nectar.model.entry import USUAL_RECORDS, Entry, Job, Name, Span, Totals, Usage
from nectar.store.layout import is_location, key_of
from nectar.store.manifest import DIGEST
from nectar.trust.secrets import redacted

_T = TypeVar("_T")
_BATCH: Final = 500  # placeholders in one statement; SQLite allows 32766, older builds 999
ENTRY: Final = (
    "key, program, kind, location, manifest, size, files, row_count, seconds, created, used, hits, inline, pinned, "
    "rebuildable, recipe, spans, producer, signature, protected, about"
)
CANDIDATE: Final = "key, size, files, seconds, hits, created, used, protected, pinned, rebuildable"
LEASE: Final = "token, location, holder, until, size"
NAME: Final = "name, version, key, since, by_whom, note, seal"
_spans = msgspec.msgpack.Decoder(tuple[Span, ...])
_decode_job = msgspec.msgpack.Decoder(Job).decode
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


def digests_in(listed: object) -> list[bytes]:
    """The digests that are written one after the other in a column; none if it is damaged."""
    if not isinstance(listed, bytes):
        return []
    return [listed[at : at + DIGEST] for at in range(0, len(listed), DIGEST)]


def marks(values: Sequence[object]) -> str:
    """One placeholder for each value."""
    return ", ".join("?" * len(values))


def entry_of(connection: sqlite3.Connection, key: bytes) -> Entry | None:
    """The entry of a key."""
    row = connection.execute(f"SELECT {ENTRY} FROM entries WHERE key = ?", (key,)).fetchone()
    return to_entry(row) if row else None


def to_name(row: Sequence[Any], *, newest: bool = False) -> Name | None:
    """A version of a name from a row; None if the row is damaged, or is not the newest any more."""
    values = opened(row, newest=newest)
    return None if values is None else Name(*values)


def last_name(connection: sqlite3.Connection, name: str) -> tuple[int, Name | None]:
    """The number of the newest version of a name, 0 if there is none; and the version, unless it is damaged or lost."""
    statement = f"SELECT {NAME} FROM names WHERE name = ? ORDER BY version DESC LIMIT 1"
    row = connection.execute(statement, (name,)).fetchone()
    return (row[1], to_name(row, newest=True)) if row else (0, None)


def doom(connection: sqlite3.Connection, location: str, size: int, now: float) -> None:
    """Notes files that are to be deleted."""
    statement = "INSERT INTO doomed (location, size, since) VALUES (?, ?, ?) ON CONFLICT (location) DO NOTHING"
    if connection.execute(statement, (location, size, now)).rowcount:
        count(connection, doomed=size)


def evict(connection: sqlite3.Connection, entry: Entry, now: float) -> None:
    """Forgets an entry; its files are to be deleted."""
    connection.execute("DELETE FROM entries WHERE key = ?", (entry.key,))
    count(connection, entries=-1, size=-entry.size, files=-entry.files, inline=-inline_size(entry))
    # A damaged row may lead to files of another entry, or to none; its own are swept then.
    if is_location(entry.location) and key_of(entry.location) == entry.key:
        doom(connection, entry.location, entry.size, now)


def inline_size(entry: Entry) -> int:
    """Bytes of a result that lie in its row."""
    return 0 if entry.inline is None else entry.size


_TOTALS: Final = frozenset(Usage.__struct_fields__)


def usage_of(connection: sqlite3.Connection, now: float) -> Usage:
    """The totals, in one statement: what was pending a moment ago may be an entry now."""
    statement = (
        "SELECT what, number FROM counts UNION ALL SELECT 'pending', COALESCE(SUM(size), 0) FROM leases WHERE until > ?"
        " UNION ALL SELECT 'index', MAX(0, (page_count - freelist_count) * page_size - ?) "
        "FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
    )
    found = connection.execute(statement, (now, USUAL_RECORDS)).fetchall()
    # A damaged total counts as nothing, until somebody counts anew.
    return Usage(**{what: max(0, number) for what, number in found if what in _TOTALS and isinstance(number, int)})


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
    changed = [(what, change) for what, change in changes.items() if change]
    if changed:
        names = [what for what, _ in changed]
        connection.execute(_adding_to(len(changed)), [*itertools.chain.from_iterable(changed), *names])


@functools.cache
def _adding_to(number: int) -> str:
    """The statement that changes so many totals at once."""
    return (
        f"UPDATE counts SET number = number + CASE what {'WHEN ? THEN ? ' * number}END "
        f"WHERE what IN ({', '.join('?' * number)})"
    )


_TYPES: Final = (bytes, bytes, str, str, bytes, int, int, int, float, float, float, int)  # of what every entry has


def to_entry(row: Sequence[Any]) -> Entry:
    """An entry from a row. What has another type than it should, for the row is damaged, counts as nothing.

    A result that the rest does not lead to is damaged then, and nobody fails because of a statistic.
    """
    if tuple(map(type, row[: len(_TYPES)])) != _TYPES:
        row = [value if type(value) is kind else kind() for value, kind in zip(row, _TYPES, strict=False)] + list(
            row[len(_TYPES) :]
        )
    (key, program, kind, location, manifest, size, files, rows, seconds, created, used, hits, inline, pinned,
     rebuildable, recipe, spans, producer, signature, protected, about) = row  # fmt: skip
    if inline is not None and type(inline) is not bytes:
        inline = b""
    return Entry(
        key, program, kind, location, manifest, size, files, rows, seconds, created, used, hits, inline, bool(pinned),
        bool(rebuildable), recipe, _spans_of(spans), producer, signature, protected,
        about,
    )  # fmt: skip


def _spans_of(packed: bytes | None) -> tuple[Span, ...]:
    """The spans of an entry; one that no result has if they are damaged, so that it does not fit its manifest."""
    try:
        return _spans.decode(packed) if packed else ()
    except (msgspec.MsgspecError, TypeError, UnicodeDecodeError):
        return (Span(b"", b"", 0),)


def to_job(row: Sequence[Any]) -> Job | None:
    """A job from a row; None if the row is damaged."""
    try:
        return _decode_job(zlib.decompress(row[0]))
    except (zlib.error, msgspec.MsgspecError, TypeError, UnicodeDecodeError):
        return None


def pack_job(job: Job) -> bytes:
    """A job for its row; addresses and details hold no credentials."""
    parts = tuple(
        replace(
            part, details={name: redacted(f"{name}={text}")[len(name) + 1 :] for name, text in part.details.items()}
        )
        for part in job.parts
    )
    return pack(replace(job, parts=parts, inputs=tuple((redacted(url), size) for url, size in job.inputs)))


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
        redacted(entry.about),
    )  # fmt: skip
