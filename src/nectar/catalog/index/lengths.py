"""Rows that say how long inputs were: statements of the SQLite index."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from nectar.catalog.index.rows import batches, marks
from nectar.model.entry import Length


def select_lengths(connection: sqlite3.Connection, places: Sequence[bytes]) -> dict[bytes, list[Length]]:
    """How long the inputs at these places were, the latest first."""
    found: dict[bytes, list[Length]] = {}
    for batch in batches(places):
        statement = (
            f"SELECT place, size, stamp, quiet, digest FROM lengths WHERE place IN ({marks(batch)}) ORDER BY seen DESC"
        )
        for place, size, stamp, quiet, digest in connection.execute(statement, batch):
            found.setdefault(place, []).append(Length(place, size, stamp, bool(quiet), digest))
    return found


def put_lengths(connection: sqlite3.Connection, lengths: Sequence[Length], most: int, now: float) -> None:
    """These are known, and of each place the latest so many stay."""
    insert = (
        "INSERT INTO lengths (place, size, stamp, quiet, digest, seen) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (place, stamp) DO UPDATE SET size = excluded.size, quiet = excluded.quiet, "
        "digest = excluded.digest, seen = excluded.seen"
    )
    connection.executemany(
        insert, [(each.place, each.size, each.stamp, int(each.quiet), each.digest, now) for each in lengths]
    )
    oldest = (
        "DELETE FROM lengths WHERE place = ? AND stamp NOT IN "
        "(SELECT stamp FROM lengths WHERE place = ? ORDER BY seen DESC LIMIT ?)"
    )
    connection.executemany(oldest, [(place, place, most) for place in {each.place for each in lengths}])
