"""How results came about, in the SQLite index: written once for each result, never deleted, and read as a graph.

Law: a question about ten thousand results is a handful of statements, whatever the shape of the graph. What is reached
is collected in a table of the connection, and everything else is joined with it.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from typing import Final

import blake3

from nectar.catalog.index import rows
from nectar.catalog.index.transactions import Transactions
from nectar.model.entry import Name
from nectar.model.lineage import Direction, FileRead, FunctionUsed, Lineage, Made, Provenance

_MADE: Final = "key, program, about, by_whom, made, seconds, row_count, size, checksum, environment, site"
_REACHED: Final = "CREATE TEMP TABLE IF NOT EXISTS reached (number INTEGER PRIMARY KEY)"


class ProvenanceRows(Transactions):
    """The provenance of an index."""

    # writing

    def record(self, provenance: Provenance) -> None:
        """Keeps for ever how a result came about; of several accounts of one key the first stays."""
        texts = [_packed_text(function) for function in provenance.sources.functions]

        def record(connection: sqlite3.Connection) -> None:
            number = _new_result(connection, provenance)
            if number is None:
                return
            sources = provenance.sources
            above = [(number, _result_of(connection, key)) for key in sources.made_from if key != provenance.made.key]
            connection.executemany("INSERT INTO made_from (result, source) VALUES (?, ?) ON CONFLICT DO NOTHING", above)
            if sources.files:
                stream = _stream(connection, sources.files)
                connection.execute("INSERT INTO reads (result, stream) VALUES (?, ?)", (number, stream))
            for function, text in zip(sources.functions, texts, strict=True):
                used = _function(connection, function, text, provenance.made.at)
                statement = "INSERT INTO uses (result, function) VALUES (?, ?) ON CONFLICT DO NOTHING"
                connection.execute(statement, (number, used))

        self._write("record provenance", record)

    # reading

    def made(self, keys: Sequence[bytes]) -> dict[bytes, Made]:
        """What is on record of these results, whether they are still kept or not."""

        def select(connection: sqlite3.Connection) -> dict[bytes, Made]:
            return {
                row[0]: Made._make(row)
                for batch in rows.batches(keys)
                for row in connection.execute(f"SELECT {_MADE} FROM results WHERE key IN ({rows.marks(batch)})", batch)
            }

        return self._read(select)

    def find_made(self, prefix: str) -> list[bytes]:
        """Keys on record that begin with these hexadecimal digits."""
        bounds = rows.key_range(prefix)
        if bounds is None:
            return []
        statement = "SELECT key FROM results WHERE key >= ? AND key <= ? ORDER BY key"
        return self._read(lambda connection: [key for (key,) in connection.execute(statement, bounds)])

    def schema_of(self, key: bytes) -> bytes | None:
        """The schema of a result, as whoever made it wrote it down; None if nobody did."""
        statement = "SELECT columns FROM results WHERE key = ?"
        row = self._read(lambda connection: connection.execute(statement, (key,)).fetchone())
        return None if row is None or row[0] is None else bytes(row[0])

    def trace_results(self, keys: Sequence[bytes], direction: Direction) -> Lineage:
        """Everything these results were made from, or everything that was made from them."""
        start = f"SELECT number FROM results WHERE key IN ({rows.marks(keys)})"
        return self._traced(start, keys, direction)

    def trace_input(self, place: str, direction: Direction) -> Lineage:
        """The same for all results that read a file: its path or URL, or the last parts of it."""
        start = (
            "SELECT DISTINCT reads.result FROM files JOIN stream_files ON stream_files.file = files.number "
            f"JOIN reads ON reads.stream = stream_files.stream WHERE {_is_or_ends('files.url')}"
        )
        return self._traced(start, _endings(place, "/"), direction)

    def trace_function(self, name: str, direction: Direction) -> Lineage:
        """The same for all results that used a function: its whole name, or the last parts of it."""
        start = (
            "SELECT DISTINCT uses.result FROM functions JOIN uses ON uses.function = functions.number "
            f"WHERE {_is_or_ends('functions.name')}"
        )
        return self._traced(start, _endings(name, "."), direction)

    def function_source(self, digest: bytes) -> str:
        """The text of a function as it was; empty if it is not known."""
        statement = (
            "SELECT content FROM functions JOIN function_texts ON function_texts.identity = functions.text "
            "WHERE functions.digest = ?"
        )
        row = self._read(lambda connection: connection.execute(statement, (digest,)).fetchone())
        return _unpacked_text(row[0] if row else None)

    def _traced(self, start: str, values: Sequence[object], direction: Direction) -> Lineage:
        return self._read(lambda connection: _lineage(connection, start, values, direction))


# the graph


def _lineage(connection: sqlite3.Connection, start: str, values: Sequence[object], direction: Direction) -> Lineage:
    begun = tuple(number for (number,) in connection.execute(start, values))
    _reach(connection, start, values, direction)
    try:
        results = {
            row[0]: Made._make(row[1:])
            for row in connection.execute(f"SELECT number, {_MADE} FROM results WHERE number IN reached ORDER BY made")
        }
        edges = connection.execute(
            "SELECT result, source FROM made_from WHERE result IN reached AND source IN reached"
        ).fetchall()
        found = Lineage(direction, begun, results, tuple(edges), names=tuple(_names(connection)))
        return found if direction == "downstream" else _with_origins(connection, found)
    finally:
        connection.execute("DELETE FROM reached")


def _reach(connection: sqlite3.Connection, start: str, values: Sequence[object], direction: Direction) -> None:
    """The results that can be reached are in the table of this connection."""
    here, there = ("result", "source") if direction == "upstream" else ("source", "result")
    connection.execute(_REACHED)
    connection.execute("DELETE FROM reached")
    connection.execute(
        f"INSERT INTO reached WITH RECURSIVE way (number) AS ({start} UNION "
        f"SELECT made_from.{there} FROM made_from JOIN way ON made_from.{here} = way.number) SELECT number FROM way",
        values,
    )


def _with_origins(connection: sqlite3.Connection, found: Lineage) -> Lineage:
    """The same with the files and functions that its results came from."""
    reads = connection.execute("SELECT result, stream FROM reads WHERE result IN reached").fetchall()
    uses = connection.execute("SELECT result, function FROM uses WHERE result IN reached").fetchall()
    of_streams = "SELECT DISTINCT stream FROM reads WHERE result IN reached"
    streams: dict[int, list[int]] = {}
    for stream, file in connection.execute(
        f"SELECT stream, file FROM stream_files WHERE stream IN ({of_streams}) ORDER BY stream, file"
    ):
        streams.setdefault(stream, []).append(file)
    files = connection.execute(
        "SELECT number, url, identity, size FROM files WHERE number IN "
        f"(SELECT file FROM stream_files WHERE stream IN ({of_streams})) ORDER BY url"
    )
    functions = connection.execute(
        "SELECT number, digest, name, place, content FROM functions "
        "LEFT JOIN function_texts ON function_texts.identity = functions.text WHERE number IN "
        "(SELECT function FROM uses WHERE result IN reached) ORDER BY name, first"
    )
    return Lineage(
        found.direction, found.start, found.results, found.made_from,
        {row[0]: FileRead._make(row[1:]) for row in files},
        {stream: tuple(numbers) for stream, numbers in streams.items()},
        tuple(reads),
        {row[0]: FunctionUsed(row[1], row[2], row[3], _unpacked_text(row[4])) for row in functions},
        tuple(uses), found.names,
    )  # fmt: skip


def _names(connection: sqlite3.Connection) -> Iterable[tuple[Name, int]]:
    columns = ", ".join(f"names.{column}" for column in rows.NAME.split(", "))
    statement = (
        f"SELECT {columns}, results.number FROM names JOIN results ON results.key = names.key "
        "WHERE results.number IN reached ORDER BY names.name, names.version"
    )
    return [(Name(*row[:-1]), row[-1]) for row in connection.execute(statement)]


def _is_or_ends(column: str) -> str:
    """A condition: the column is a text, or ends with it behind a separator. Its values are given by `_endings`."""
    return f"({column} = ? OR SUBSTR({column}, -LENGTH(?)) = ?)"


def _endings(text: str, separator: str) -> tuple[str, str, str]:
    ending = separator + text.lstrip(separator)
    return text, ending, ending


# rows


def _new_result(connection: sqlite3.Connection, provenance: Provenance) -> int | None:
    """The number of a result that is not on record yet; None if it is."""
    made = provenance.made
    known = connection.execute("SELECT number, complete FROM results WHERE key = ?", (made.key,)).fetchone()
    if known is not None and known[1]:
        return None
    if known is not None:  # others were made from it before it was on record itself
        connection.execute("DELETE FROM results WHERE number = ?", (known[0],))
    columns = f"number, {_MADE}, columns, complete"
    values = (known[0] if known else None, *made, provenance.sources.schema, 1)
    statement = f"INSERT INTO results ({columns}) VALUES ({rows.marks(values)})"
    return connection.execute(statement, values).lastrowid


def _result_of(connection: sqlite3.Connection, key: bytes) -> int:
    """The number of a result; of one that is not on record, as much as the entries know of it is written down."""
    known = connection.execute("SELECT number FROM results WHERE key = ?", (key,)).fetchone()
    if known is not None:
        return int(known[0])
    entry = rows.entry_of(connection, key)
    made = Made(key, b"", "", "", 0.0, 0.0, 0, 0, b"")
    if entry is not None:
        made = Made(
            key, entry.program, entry.about, entry.producer, entry.created, entry.seconds, entry.rows, entry.size,
            entry.manifest,
        )  # fmt: skip
    statement = f"INSERT INTO results ({_MADE}, complete) VALUES ({rows.marks(made)}, 0)"
    return int(connection.execute(statement, made).lastrowid or 0)


def _stream(connection: sqlite3.Connection, files: Sequence[FileRead]) -> int:
    """The number of files that are read together."""
    content = b"".join(file.identity + blake3.blake3(file.url.encode()).digest() for file in files)
    identity = blake3.blake3(content).digest()
    known = connection.execute("SELECT number FROM streams WHERE identity = ?", (identity,)).fetchone()
    if known is not None:
        return int(known[0])
    stream = int(connection.execute("INSERT INTO streams (identity) VALUES (?)", (identity,)).lastrowid or 0)
    connection.executemany("INSERT INTO files (url, identity, size) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", files)
    connection.executemany(
        "INSERT INTO stream_files (stream, file) SELECT ?, number FROM files WHERE url = ? AND identity = ? "
        "ON CONFLICT DO NOTHING",
        [(stream, file.url, file.identity) for file in files],
    )
    return stream


def _function(
    connection: sqlite3.Connection, function: FunctionUsed, text: tuple[bytes, bytes] | None, at: float
) -> int:
    known = connection.execute("SELECT number FROM functions WHERE digest = ?", (function.digest,)).fetchone()
    if known is not None:
        return int(known[0])
    if text is not None:
        statement = "INSERT INTO function_texts (identity, content) VALUES (?, ?) ON CONFLICT DO NOTHING"
        connection.execute(statement, text)
    values = (function.digest, function.name, function.place, at, text[0] if text else None)
    statement = "INSERT INTO functions (digest, name, place, first, text) VALUES (?, ?, ?, ?, ?)"
    return int(connection.execute(statement, values).lastrowid or 0)


def _packed_text(function: FunctionUsed) -> tuple[bytes, bytes] | None:
    """The text of a function under its hash, compressed; outside of the transaction, which others wait for."""
    if not function.text:
        return None
    content = function.text.encode("utf-8", "surrogatepass")
    return blake3.blake3(content).digest(), zlib.compress(content)


def _unpacked_text(content: bytes | None) -> str:
    return "" if content is None else zlib.decompress(content).decode("utf-8", "surrogatepass")
