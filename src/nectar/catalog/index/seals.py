"""Seals: a digest in each row of whose values an answer depends on, so that a damaged one is known.

Rows of entries need none: manifests say what they are of. Law: a row whose values are not those that were written
counts as not there; where an older one would take its place, that is an error: a version of a name that another one
followed has a seal that says so. Rows of older catalogs have no seal.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

import blake3
import msgspec

SEALED: Final = {
    "names": ("name, version, key, since, by_whom, note", "name"),
    "contents": ("origin, digest, certain", "origin"),
    "lengths": ("place, size, stamp, quiet, digest", "place"),
    "results": ("key, program, columns", "key"),
}  # by table: what is sealed, in this order, and by what people know the row


def seal(values: Sequence[object]) -> bytes:
    """The seal of a row."""
    return blake3.blake3(msgspec.msgpack.encode(values)).digest(16)


def seal_of_followed(values: Sequence[object]) -> bytes:
    """The seal of a row that is not the newest of its kind any more."""
    return seal((*values, "followed"))


def opened(row: Sequence[Any], *, newest: bool = False) -> Sequence[Any] | None:
    """The values of a row, whose last is its seal; None if they are not those that were sealed.

    newest: no other row has followed, so that its seal must not say that one did.
    """
    *values, mark = row
    try:
        right = mark is None or mark == seal(values) or (not newest and mark == seal_of_followed(values))
    except (TypeError, ValueError, OverflowError):  # of a type that no row has
        return None
    return values if right else None


def broken(connection: sqlite3.Connection) -> list[tuple[str, int, str]]:
    """Rows whose seal is broken: the table, the number of the row, and what it is about."""
    found = []
    latest = "SELECT MAX(version) FROM names later WHERE later.name = names.name"
    for table, (columns, subject) in SEALED.items():
        place = [each.strip() for each in columns.split(",")].index(subject)
        newest = f"version = ({latest})" if table == "names" else "1"
        for number, is_newest, *row in connection.execute(f"SELECT rowid, {newest}, {columns}, seal FROM {table}"):
            if opened(row, newest=bool(is_newest)) is None:
                about = row[place]
                found.append((table, number, about.hex() if isinstance(about, bytes) else str(about)))
    return found
