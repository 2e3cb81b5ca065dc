"""Rows that say what programs were seen to do: statements of the SQLite index."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from nectar.catalog.index.rows import batches, marks
from nectar.trust.secrets import redacted


def select_observed(connection: sqlite3.Connection, programs: Sequence[bytes]) -> dict[bytes, str]:
    """What was observed of those programs of which something was."""
    found: dict[bytes, str] = {}
    for batch in batches(programs):
        statement = f"SELECT program, told FROM observed WHERE program IN ({marks(batch)})"
        found.update(connection.execute(statement, batch))
    return found


def put_observed(connection: sqlite3.Connection, program: bytes, told: str, now: float) -> None:
    """This was observed of a program; the latest counts."""
    statement = (
        "INSERT INTO observed (program, told, since) VALUES (?, ?, ?) "
        "ON CONFLICT (program) DO UPDATE SET told = excluded.told"
    )
    connection.execute(statement, (program, redacted(told), now))
