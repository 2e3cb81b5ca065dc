"""How results came about, in the SQLite index: written once for each result, and read as a graph.

Law: a question about ten thousand results is a handful of statements, whatever the shape of the graph, and all of them
see one moment. What is reached is collected in a temporary table, and everything else is joined with it.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import blake3
from msgspec.structs import replace

from nectar.catalog.index import rows
from nectar.catalog.index.seals import SEALED, opened, seal
from nectar.catalog.index.transactions import Transactions
from nectar.model.entry import Entry, Name
from nectar.trust.secrets import looks_secret, redacted

if TYPE_CHECKING:  # written and read by few processes
    from nectar.model.forgetting import Asked, Forgotten
    from nectar.model.lineage import Direction, FileRead, FunctionUsed, Lineage, Made, Provenance

_MADE: Final = "key, program, about, by_whom, made, seconds, row_count, size, checksum, environment, site"
_SEALED: Final = SEALED["results"][0]
_ENDS: Final = {"upstream": ("result", "source"), "downstream": ("source", "result")}  # from where to where
_DERIVED: Final = (
    "WITH RECURSIVE way (number) AS (SELECT number FROM results WHERE key = :key UNION "
    "SELECT made_from.result FROM made_from JOIN way ON made_from.source = way.number) "
    "SELECT key FROM results WHERE number IN way AND key <> :key"
)
_Text = tuple[bytes, bytes]  # its hash, and itself compressed


class ProvenanceRows(Transactions):
    """The provenance of an index."""

    # writing

    def record(self, provenance: Provenance) -> None:
        """Keeps how a result came about; of several accounts of one key the first stays, with the sources of all."""
        provenance = _without_secrets(provenance)
        texts = [_packed_text(function) for function in provenance.sources.functions]

        def record(connection: sqlite3.Connection) -> None:
            number, sources = _new_result(connection, provenance), provenance.sources
            # Of all accounts, not only of the first: if one of them is found to be damaged, this result goes.
            _add_sources(connection, provenance.made.key, sources.made_from)
            if number is None:
                return
            if sources.files:
                stream = _stream(connection, sources.files)
                connection.execute("INSERT INTO reads (result, stream) VALUES (?, ?)", (number, stream))
            if sources.functions:
                kit = _kit(connection, sources.functions, texts, provenance.made.at)
                connection.execute("INSERT INTO uses (result, kit) VALUES (?, ?)", (number, kit))

        self._write("record provenance", record)

    def record_source(self, key: bytes, made_from: Sequence[bytes]) -> None:
        """Keeps what else a result was made from, of which nothing more is known."""
        self._write("record provenance", lambda connection: _add_sources(connection, key, made_from))

    # losing

    def lose_derived(self, key: bytes, now: float) -> list[Entry]:
        """Dooms every entry that was made from a result, from what was made from it, and so on; returns them.

        Their files stay until the leases on them are over: whoever reads them does not fail because of it.
        """

        def lose(connection: sqlite3.Connection) -> list[Entry]:
            gone = []
            for each in derived_from(connection, key):
                entry = rows.entry_of(connection, each)
                if entry is not None:
                    rows.evict(connection, entry, now)
                    gone.append(entry)
            return gone

        return self._free("lose derived", lose)

    def forget(self, asked: Asked, by: str, now: float, apply: bool) -> Forgotten:
        """The rows that name what is to be forgotten are gone; or it is told which would be. by: who says so."""
        from nectar.catalog.index.forgetting import forget  # few processes forget anything

        return forget(self, asked, by, now, apply)

    # reading

    def made(self, keys: Sequence[bytes]) -> dict[bytes, Made]:
        """What is on record of these results, whether they are still kept or not."""
        from nectar.model.lineage import Made

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
        """The schema of a result, as whoever made it wrote it down; None if nobody did, or if it is damaged."""
        return self._sealed(key)[1]

    def program_of(self, key: bytes) -> bytes | None:
        """The fingerprint of the program that made a result; None if it is not known, or if it is damaged."""
        return self._sealed(key)[0] or None

    def _sealed(self, key: bytes) -> tuple[bytes | None, bytes | None]:
        """Program and schema of a result: scans of names are made of them."""
        statement = f"SELECT {_SEALED}, seal FROM results WHERE key = ?"
        row = self._read(lambda connection: connection.execute(statement, (key,)).fetchone())
        values = None if row is None else opened(row)
        if values is None:
            return None, None
        program, schema = (value if type(value) is bytes else None for value in values[1:])
        return program, schema

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
        return self._traced(start, _endings(redacted(place), "/"), direction)

    def trace_function(self, name: str, direction: Direction) -> Lineage:
        """The same for all results that used a function: its whole name, or the last parts of it."""
        start = (
            "SELECT DISTINCT uses.result FROM functions "
            "JOIN kit_functions ON kit_functions.function = functions.number "
            f"JOIN uses ON uses.kit = kit_functions.kit WHERE {_is_or_ends('functions.name')}"
        )
        return self._traced(start, _endings(name, "."), direction)

    def function_texts(self, digests: Sequence[bytes]) -> dict[bytes, str]:
        """The texts of functions as they were; those that are not known, or damaged, are left out."""
        statement = (
            "SELECT digest, identity, content FROM functions JOIN function_texts "
            "ON function_texts.identity = functions.text WHERE functions.digest IN ({})"
        )

        def select(connection: sqlite3.Connection) -> dict[bytes, str]:
            return {
                digest: text
                for batch in rows.batches(digests)
                for digest, identity, content in connection.execute(statement.format(rows.marks(batch)), batch)
                if (text := _unpacked_text(identity, content)) is not None
            }

        return self._read(select)

    def _traced(self, start: str, values: Sequence[object], direction: Direction) -> Lineage:
        return self._snapshot(lambda connection: _lineage(connection, start, values, direction))


# the graph


def derived_from(connection: sqlite3.Connection, key: bytes) -> list[bytes]:
    """The keys of everything that was made from a result, from what was made from it, and so on."""
    return [each for (each,) in connection.execute(_DERIVED, {"key": key}).fetchall()]


def _lineage(connection: sqlite3.Connection, start: str, values: Sequence[object], direction: Direction) -> Lineage:
    """The answer, in a transaction that is rolled back: the tables of this question go with it."""
    from nectar.model.lineage import Lineage, Made

    for table in ("asked", "reached"):
        connection.execute(f"CREATE TEMP TABLE {table} (number INTEGER PRIMARY KEY)")
    connection.execute(f"INSERT INTO asked {start}", values)
    _reach(connection, direction)
    begun = tuple(number for (number,) in connection.execute("SELECT number FROM asked"))
    results = {
        row[0]: Made._make(row[1:])
        for row in connection.execute(f"SELECT number, {_MADE} FROM results WHERE number IN reached ORDER BY made")
    }
    # The other end of each is reached as well: that is how the table was filled. Asking for both ends would let SQLite
    # try every pair of them.
    here = _ENDS[direction][0]
    edges = connection.execute(f"SELECT result, source FROM made_from WHERE {here} IN reached").fetchall()
    found = Lineage(direction, begun, results, tuple(edges), names=tuple(_names(connection)))
    return found if direction == "downstream" else _with_origins(connection, found)


def _reach(connection: sqlite3.Connection, direction: Direction) -> None:
    """The results that can be reached from those that were asked for are in a table of this connection."""
    here, there = _ENDS[direction]
    connection.execute(
        "INSERT INTO reached WITH RECURSIVE way (number) AS (SELECT number FROM asked UNION "
        f"SELECT made_from.{there} FROM made_from JOIN way ON made_from.{here} = way.number) SELECT number FROM way"
    )


def _with_origins(connection: sqlite3.Connection, found: Lineage) -> Lineage:
    """The same with the files and functions that its results came from."""
    from nectar.model.lineage import FileRead, FunctionUsed

    reads, streams = _groups(connection, "reads", "stream", "stream_files", "file")
    uses, kits = _groups(connection, "uses", "kit", "kit_functions", "function")
    files = connection.execute(
        "SELECT number, url, identity, size FROM files WHERE number IN (SELECT file FROM stream_files "
        "WHERE stream IN (SELECT stream FROM reads WHERE result IN reached))"
    )
    functions = connection.execute(
        "SELECT number, digest, name, place FROM functions WHERE number IN (SELECT function FROM kit_functions "
        "WHERE kit IN (SELECT kit FROM uses WHERE result IN reached))"
    )
    return replace(
        found, reads=reads, streams=streams, uses=uses, kits=kits,
        files={row[0]: FileRead._make(row[1:]) for row in files},
        functions={number: FunctionUsed(digest, name, place) for number, digest, name, place in functions},
    )  # fmt: skip


def _groups(
    connection: sqlite3.Connection, pairs: str, group: str, members: str, member: str
) -> tuple[tuple[tuple[int, int], ...], dict[int, tuple[int, ...]]]:
    """Which result has which group, and which members each of these groups has."""
    found = connection.execute(f"SELECT result, {group} FROM {pairs} WHERE result IN reached").fetchall()
    gathered: dict[int, list[int]] = {}
    for number, each in connection.execute(
        f"SELECT {group}, {member} FROM {members} "
        f"WHERE {group} IN (SELECT {group} FROM {pairs} WHERE result IN reached)"
    ):
        gathered.setdefault(number, []).append(each)
    return tuple(found), {number: tuple(each) for number, each in gathered.items()}


def _names(connection: sqlite3.Connection) -> Iterable[tuple[Name, int]]:
    columns = ", ".join(f"names.{column}" for column in rows.NAME.split(", "))
    statement = (
        f"SELECT {columns}, results.number FROM names JOIN results ON results.key = names.key "
        "WHERE results.number IN reached ORDER BY names.name, names.version"
    )
    found = [(rows.to_name(row[:-1]), row[-1]) for row in connection.execute(statement)]
    return [(name, number) for name, number in found if name is not None]


def _is_or_ends(column: str) -> str:
    """A condition: the column is a text, or ends with it behind a separator. Its values are given by `_endings`."""
    return f"({column} = ? OR SUBSTR({column}, -LENGTH(?)) = ?)"


def _endings(text: str, separator: str) -> tuple[str, str, str]:
    ending = separator + text.lstrip(separator)
    return text, ending, ending


# rows


def _without_secrets(provenance: Provenance) -> Provenance:
    """The same, with nothing in its texts that may be a credential."""
    made, sources = provenance.made, provenance.sources
    functions = sources.functions
    if any(each.text for each in functions):
        from nectar.trust.literals import code_without_secrets  # takes long to load

        functions = tuple(each._replace(text=code_without_secrets(each.text)) for each in functions)
    return replace(
        provenance,
        made=made._replace(
            about=redacted(made.about), environment=redacted(made.environment), site=redacted(made.site)
        ),
        sources=replace(
            sources,
            files=tuple(file._replace(url=redacted(file.url)) for file in sources.files),
            functions=functions,
            # Columns that nobody named are called like their expressions. Who needs their types looks at the result.
            schema=None if sources.schema is None or looks_secret(sources.schema) else sources.schema,
        ),
    )


def _add_sources(connection: sqlite3.Connection, key: bytes, made_from: Iterable[bytes]) -> None:
    number = _result_of(connection, key)
    above = [(number, _result_of(connection, each)) for each in made_from if each != key]
    connection.executemany("INSERT INTO made_from (result, source) VALUES (?, ?) ON CONFLICT DO NOTHING", above)


def _new_result(connection: sqlite3.Connection, provenance: Provenance) -> int | None:
    """The number of a result that is not on record yet; None if it is."""
    made = provenance.made
    known = connection.execute("SELECT number, complete FROM results WHERE key = ?", (made.key,)).fetchone()
    if known is not None and known[1]:
        return None
    if known is not None:  # others were made from it before it was on record itself
        connection.execute("DELETE FROM results WHERE number = ?", (known[0],))
    columns, schema = f"number, {_MADE}, columns, complete, seal", provenance.sources.schema
    values = (known[0] if known else None, *made, schema, 1, seal((made.key, made.program, schema)))
    statement = f"INSERT INTO results ({columns}) VALUES ({rows.marks(values)})"
    return connection.execute(statement, values).lastrowid


def _result_of(connection: sqlite3.Connection, key: bytes) -> int:
    """The number of a result; of one that is not on record, as much as the entries know of it is written down."""
    from nectar.model.lineage import Made

    known = connection.execute("SELECT number FROM results WHERE key = ?", (key,)).fetchone()
    if known is not None:
        return int(known[0])
    entry = rows.entry_of(connection, key)
    made = Made(key, b"", "", "", 0.0, 0.0, 0, 0, b"")
    if entry is not None:
        made = Made(
            key, entry.program, redacted(entry.about), entry.producer, entry.created, entry.seconds, entry.rows,
            entry.size, entry.manifest,
        )  # fmt: skip
    values = (*made, seal((made.key, made.program, None)))
    statement = f"INSERT INTO results ({_MADE}, seal, complete) VALUES ({rows.marks(values)}, 0)"
    return int(connection.execute(statement, values).lastrowid or 0)


def _stream(connection: sqlite3.Connection, files: Sequence[FileRead]) -> int:
    """The number of files that are read together."""
    content = b"".join(file.identity + blake3.blake3(file.url.encode()).digest() for file in files)
    stream, is_new = _group(connection, "streams", content)
    if is_new:
        statement = "INSERT INTO files (url, identity, size) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        connection.executemany(statement, files)
        connection.executemany(
            "INSERT INTO stream_files (stream, file) SELECT ?, number FROM files WHERE url = ? AND identity = ? "
            "ON CONFLICT DO NOTHING",
            [(stream, file.url, file.identity) for file in files],
        )
    return stream


def _kit(
    connection: sqlite3.Connection, functions: Sequence[FunctionUsed], texts: Sequence[_Text | None], at: float
) -> int:
    """The number of functions that are used together."""
    kit, is_new = _group(connection, "kits", b"".join(function.digest for function in functions))
    if is_new:
        numbers = [_function(connection, each, text, at) for each, text in zip(functions, texts, strict=True)]
        statement = "INSERT INTO kit_functions (kit, function) VALUES (?, ?) ON CONFLICT DO NOTHING"
        connection.executemany(statement, [(kit, number) for number in numbers])
    return kit


def _group(connection: sqlite3.Connection, table: str, content: bytes) -> tuple[int, bool]:
    """The number of a group, and whether it is a new one, whose members are still to be written down."""
    identity = blake3.blake3(content).digest()
    known = connection.execute(f"SELECT number FROM {table} WHERE identity = ?", (identity,)).fetchone()
    if known is not None:
        return int(known[0]), False
    return int(connection.execute(f"INSERT INTO {table} (identity) VALUES (?)", (identity,)).lastrowid or 0), True


def _function(connection: sqlite3.Connection, function: FunctionUsed, text: _Text | None, at: float) -> int:
    known = connection.execute("SELECT number FROM functions WHERE digest = ?", (function.digest,)).fetchone()
    if known is not None:
        return int(known[0])
    if text is not None:
        statement = "INSERT INTO function_texts (identity, content) VALUES (?, ?) ON CONFLICT DO NOTHING"
        connection.execute(statement, text)
    values = (function.digest, function.name, function.place, at, text[0] if text else None)
    statement = "INSERT INTO functions (digest, name, place, first, text) VALUES (?, ?, ?, ?, ?)"
    return int(connection.execute(statement, values).lastrowid or 0)


def _packed_text(function: FunctionUsed) -> _Text | None:
    """The text of a function under its hash, compressed; outside of the transaction, which others wait for."""
    if not function.text:
        return None
    content = function.text.encode("utf-8", "surrogatepass")
    return blake3.blake3(content).digest(), zlib.compress(content)


def _unpacked_text(identity: bytes, packed: bytes) -> str | None:
    """The text with this hash; None if these bytes are not it."""
    try:
        content = zlib.decompress(packed)
    except (zlib.error, TypeError):
        return None
    return content.decode("utf-8", "surrogatepass") if blake3.blake3(content).digest() == identity else None
