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
        "ALTER TABLE names ADD COLUMN note TEXT NOT NULL DEFAULT ''",
        "CREATE INDEX names_by_key ON names (key)",
        # How results came about, kept while an entry, a name or a later result leads there, and until there is no room.
        # Rows refer to each other by number: a graph of keys would be read several times slower. Streams (files that
        # were read together), kits (functions that were used together) and texts are there once, whoever shares them.
        """CREATE TABLE results (
            number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, program BLOB NOT NULL, about TEXT NOT NULL,
            by_whom TEXT NOT NULL, made REAL NOT NULL, seconds REAL NOT NULL, row_count INTEGER NOT NULL,
            size INTEGER NOT NULL, checksum BLOB NOT NULL, environment TEXT NOT NULL, site TEXT NOT NULL,
            columns BLOB, complete INTEGER NOT NULL)""",
        """INSERT INTO results (key, program, about, by_whom, made, seconds, row_count, size, checksum, environment,
            site, columns, complete)
            SELECT key, program, about, producer, created, seconds, row_count, size, manifest, '', '', NULL, 0
            FROM entries""",
        "CREATE TABLE made_from (result INTEGER NOT NULL, source INTEGER NOT NULL, PRIMARY KEY (result, source))",
        "CREATE INDEX made_from_by_source ON made_from (source, result)",
        "CREATE TABLE streams (number INTEGER PRIMARY KEY, identity BLOB NOT NULL UNIQUE)",
        """CREATE TABLE files (
            number INTEGER PRIMARY KEY, url TEXT NOT NULL, identity BLOB NOT NULL, size INTEGER,
            UNIQUE (url, identity))""",
        "CREATE TABLE stream_files (stream INTEGER NOT NULL, file INTEGER NOT NULL, PRIMARY KEY (stream, file))",
        "CREATE INDEX stream_files_by_file ON stream_files (file, stream)",
        "CREATE TABLE reads (result INTEGER NOT NULL, stream INTEGER NOT NULL, PRIMARY KEY (result, stream))",
        "CREATE INDEX reads_by_stream ON reads (stream, result)",
        """CREATE TABLE functions (
            number INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, name TEXT NOT NULL, place TEXT NOT NULL,
            first REAL NOT NULL, text BLOB)""",
        "CREATE INDEX functions_by_name ON functions (name)",
        "CREATE TABLE function_texts (identity BLOB PRIMARY KEY, content BLOB NOT NULL)",
        "CREATE TABLE kits (number INTEGER PRIMARY KEY, identity BLOB NOT NULL UNIQUE)",
        "CREATE TABLE kit_functions (kit INTEGER NOT NULL, function INTEGER NOT NULL, PRIMARY KEY (kit, function))",
        "CREATE INDEX kit_functions_by_function ON kit_functions (function, kit)",
        "CREATE TABLE uses (result INTEGER NOT NULL, kit INTEGER NOT NULL, PRIMARY KEY (result, kit))",
        "CREATE INDEX uses_by_kit ON uses (kit, result)",
    ),
    (
        """CREATE TABLE lengths (
            place BLOB NOT NULL, size INTEGER NOT NULL, stamp BLOB NOT NULL, quiet INTEGER NOT NULL, digest BLOB,
            seen REAL NOT NULL, PRIMARY KEY (place, stamp))""",
    ),
    ("CREATE TABLE observed (program BLOB PRIMARY KEY, told TEXT NOT NULL, since REAL NOT NULL)",),
    tuple(f"ALTER TABLE {table} ADD COLUMN seal BLOB" for table in ("names", "contents", "lengths")),
    (  # What lies inline has no location, and is most of what there is.
        "DROP INDEX entries_by_location",
        "CREATE INDEX entries_by_location ON entries (location) WHERE location <> ''",
    ),
    (  # What the index takes counts as well; recipes that nobody needs go, unless they were written lately.
        "INSERT INTO counts SELECT 'inline', COALESCE(SUM(size), 0) FROM entries WHERE inline IS NOT NULL",
        "ALTER TABLE recipes ADD COLUMN since REAL NOT NULL DEFAULT 0",
        "CREATE TABLE passes (what TEXT PRIMARY KEY, at REAL NOT NULL)",
    ),
    ("ALTER TABLE results ADD COLUMN seal BLOB",),
)
VERSION: Final = len(MIGRATIONS)
