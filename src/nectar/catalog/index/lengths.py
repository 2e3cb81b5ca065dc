"""Rows that say how long inputs were: statements of the SQLite index."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from nectar.catalog.index.rows import batches, marks
from nectar.catalog.index.seals import opened, seal
from nectar.model.entry import Length


def select_lengths(connection: sqlite3.Connection, places: Sequence[bytes]) -> dict[bytes, list[Length]]:
    """How long the inputs at these places were, the latest first."""
    found: dict[bytes, list[Length]] = {}
    for batch in batches(places):
        statement = (
            f"SELECT place, size, stamp, quiet, digest, seal FROM lengths WHERE place IN ({marks(batch)}) "
            "ORDER BY seen DESC"
        )
        for row in connection.execute(statement, batch):
            values = opened(row)
            if values is None:  # damaged, and as good as unknown
                continue
            place, size, stamp, quiet, digest = values
            found.setdefault(place, []).append(Length(place, size, stamp, bool(quiet), digest))
    return found


def put_lengths(connection: sqlite3.Connection, lengths: Sequence[Length], most: int, now: float) -> None:
    """These are known, and of each place the latest so many stay."""
    insert = (
        "INSERT INTO lengths (place, size, stamp, quiet, digest, seal, seen) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (place, stamp) DO UPDATE SET size = excluded.size, quiet = excluded.quiet, "
        "digest = excluded.digest, seal = excluded.seal, seen = excluded.seen"
    )
    values = [(each.place, each.size, each.stamp, int(each.quiet), each.digest) for each in lengths]
    connection.executemany(insert, [(*each, seal(each), now) for each in values])
    oldest = (
        "DELETE FROM lengths WHERE place = ? AND stamp NOT IN "
        "(SELECT stamp FROM lengths WHERE place = ? ORDER BY seen DESC LIMIT ?)"
    )
    connection.executemany(oldest, [(place, place, most) for place in {each.place for each in lengths}])
