"""The tables of the SQLite index, as a list of migrations. A database at version n has had the first n applied.

Kept to types and statements that PostgreSQL has too. A migration that has been released never changes.
"""

from __future__ import annotations

from typing import Final

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """CREATE TABLE entries (
            key BLOB PRIMARY KEY, program BLOB NOT NULL, kind TEXT NOT NULL, location TEXT NOT NULL,
            manifest BLOB NOT NULL, size INTEGER NOT NULL, files INTEGER NOT NULL, row_count INTEGER NOT NULL,
            seconds REAL NOT NULL, created REAL NOT NULL, used REAL NOT NULL, hits INTEGER NOT NULL, inline BLOB,
            pinned INTEGER NOT NULL, rebuildable INTEGER NOT NULL, recipe BLOB, spans BLOB, producer TEXT NOT NULL,
            signature BLOB NOT NULL, protected REAL NOT NULL)""",
        "CREATE INDEX entries_by_program ON entries (program)",
        "CREATE INDEX entries_by_location ON entries (location)",
        "CREATE TABLE lookups (program BLOB PRIMARY KEY, times INTEGER NOT NULL, last REAL NOT NULL)",
        """CREATE TABLE leases (
            token TEXT PRIMARY KEY, location TEXT NOT NULL, holder TEXT NOT NULL, until REAL NOT NULL,
            size INTEGER NOT NULL)""",
        "CREATE INDEX leases_by_location ON leases (location)",
        """CREATE TABLE reservations (
            key BLOB PRIMARY KEY, token TEXT NOT NULL, holder TEXT NOT NULL, until REAL NOT NULL)""",
        "CREATE TABLE doomed (location TEXT PRIMARY KEY, size INTEGER NOT NULL, since REAL NOT NULL)",
        """CREATE TABLE names (
            name TEXT NOT NULL, version INTEGER NOT NULL, key BLOB NOT NULL, since REAL NOT NULL, by_whom TEXT NOT NULL,
            PRIMARY KEY (name, version))""",
        "CREATE TABLE recipes (identity BLOB PRIMARY KEY, parts BLOB NOT NULL)",
        "CREATE TABLE recipe_parts (identity BLOB PRIMARY KEY, content BLOB NOT NULL)",
        "CREATE TABLE jobs (number INTEGER PRIMARY KEY, content BLOB NOT NULL)",
        "CREATE TABLE counts (what TEXT PRIMARY KEY, number INTEGER NOT NULL)",
        "INSERT INTO counts VALUES ('entries', 0), ('size', 0), ('files', 0), ('doomed', 0)",
    ),
    (
        "ALTER TABLE entries ADD COLUMN about TEXT NOT NULL DEFAULT ''",
        """CREATE TABLE versions (
            label TEXT NOT NULL, program BLOB NOT NULL, trace BLOB NOT NULL, since REAL NOT NULL,
            PRIMARY KEY (label, program))""",
        """CREATE TABLE contents (
            origin BLOB PRIMARY KEY, digest BLOB NOT NULL, certain INTEGER NOT NULL, seen REAL NOT NULL)""",
    ),
    (
        """CREATE TABLE lengths (
            place BLOB NOT NULL, size INTEGER NOT NULL, stamp BLOB NOT NULL, quiet INTEGER NOT NULL, digest BLOB,
            seen REAL NOT NULL, PRIMARY KEY (place, stamp))""",
    ),
)
VERSION: Final = len(MIGRATIONS)
