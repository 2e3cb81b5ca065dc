"""Rows that name a file, a person or a text are deleted for good, in the SQLite index.

In: what is to be forgotten. Out: how many rows of which tables are gone, in one transaction. A dry run is the same,
rolled back. Law: what is left is whole: no row refers to one that is gone, and every seal is right.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from nectar.catalog.index import names, rows
from nectar.catalog.index.provenance import derived_from
from nectar.catalog.index.seals import opened, seal, seal_of_followed
from nectar.catalog.index.transactions import Transactions
from nectar.model.entry import RECIPE_LABEL, Name
from nectar.model.forgetting import Asked, Forgotten
from nectar.model.wanted import Wanted

# Texts of rows that go if one of them holds what is to be forgotten.
_TEXTS: Final = {
    "observed": ("told",), "versions": ("label",), "functions": ("name", "place"), "names": ("name", "note"),
}  # fmt: skip
_NAMING: Final = {  # texts of other rows
    "files": ("url",), "results": ("about", "site", "environment", "columns"), "entries": ("about",),
}  # fmt: skip
_PACKED: Final = {"recipe_parts": "content", "function_texts": "content", "jobs": "content"}
# What belongs to nothing any more: a table, and what is not referred to.
_ORPHANS: Final = (
    "made_from WHERE result NOT IN (SELECT number FROM results) OR source NOT IN (SELECT number FROM results)",
    "reads WHERE result NOT IN (SELECT number FROM results)",
    "uses WHERE result NOT IN (SELECT number FROM results)",
    "streams WHERE number NOT IN (SELECT stream FROM reads)",
    "stream_files WHERE stream NOT IN (SELECT number FROM streams) OR file NOT IN (SELECT number FROM files)",
    "files WHERE number NOT IN (SELECT file FROM stream_files)",
    "kits WHERE number NOT IN (SELECT kit FROM uses)",
    "kit_functions WHERE kit NOT IN (SELECT number FROM kits) OR function NOT IN (SELECT number FROM functions)",
    "functions WHERE number NOT IN (SELECT function FROM kit_functions)",
    "function_texts WHERE identity NOT IN (SELECT text FROM functions WHERE text IS NOT NULL)",
)


class _Undone(Exception):
    """A dry run is over: everything is as it was."""

    def __init__(self, forgotten: Forgotten) -> None:
        self.forgotten = forgotten


def forget(index: Transactions, asked: Asked, by: str, now: float, apply: bool) -> Forgotten:
    """The rows that name what is to be forgotten are gone; or it is told which would be. by: who says so."""

    def forgotten(connection: sqlite3.Connection) -> Forgotten:
        done = _Forgetting(connection, asked, by, now).done()
        if not apply:
            raise _Undone(done)
        return done

    if apply:  # what is deleted is overwritten as well
        index._read(lambda connection: connection.execute("PRAGMA secure_delete=ON").fetchall())
    try:
        return index._write("forget", forgotten)
    except _Undone as undone:
        return undone.forgotten


class _Forgetting:
    """One pass over the tables."""

    def __init__(self, connection: sqlite3.Connection, asked: Asked, by: str, now: float) -> None:
        self._connection, self._asked, self._by, self._now = connection, asked, by, now
        self._others = dict.fromkeys([*asked.others, *self._other_names(Wanted(asked.files, ()))])
        self._wanted = Wanted(asked.files, asked.texts, tuple(self._others))
        self._rows: Counter[str] = Counter()
        self._names: dict[str, None] = {}

    def done(self) -> Forgotten:
        """Everything is gone that names what is to be forgotten."""
        keys = self._keys()
        for key in keys:
            self._forget_result(key)
        self._forget_recipes()
        for table, columns in _TEXTS.items():
            self._delete(table, [number for number, *texts in self._select(table, columns) if self._holds(texts)])
        self._forget_packed()
        self._forget_people()
        self._forget_orphans()
        for name in self._names:
            self._end(name)
        rows = {table: number for table, number in self._rows.items() if number}
        return Forgotten(rows, keys, tuple(self._names), others=tuple(self._others))

    def _other_names(self, files: Wanted) -> Iterator[str]:
        for table, columns in (*_NAMING.items(), *_TEXTS.items()) if files else ():
            for _, *texts in self._select(table, columns):
                for text in texts:
                    yield from files.others_in(text) if isinstance(text, str) else ()

    # results

    def _keys(self) -> tuple[bytes, ...]:
        """The results that go: those that say so, and what was made from the files."""
        found = dict.fromkeys(self._asked.keys)
        described = (*_NAMING["results"], "key")
        found.update((key, None) for _, *texts, key in self._select("results", described) if self._holds(texts))
        found.update((key, None) for _, about, key in self._select("entries", ("about", "key")) if self._holds([about]))
        read = [number for number, url in self._select("files", ("url",)) if self._asked.is_file(url)]
        for batch in rows.batches(read):
            statement = (
                "SELECT DISTINCT results.key FROM stream_files JOIN reads ON reads.stream = stream_files.stream "
                f"JOIN results ON results.number = reads.result WHERE stream_files.file IN ({rows.marks(batch)})"
            )
            for (key,) in self._connection.execute(statement, batch).fetchall():
                found.update(dict.fromkeys((key, *derived_from(self._connection, key))))
        self._delete("files", read)
        return tuple(found)

    def _forget_result(self, key: bytes) -> None:
        entry = rows.entry_of(self._connection, key)
        if entry is not None:
            rows.evict(self._connection, entry, self._now)
            self._rows["entries"] += 1
        self._delete_where("results", "key = ?", key)
        self._delete_where("versions", "label = ?", f"{RECIPE_LABEL}{key.hex()}")
        for (name,) in self._connection.execute("SELECT DISTINCT name FROM names WHERE key = ?", (key,)).fetchall():
            self._names[name] = None
        self._delete_where("names", "key = ?", key)

    # recipes, traces, histories and texts of functions

    def _forget_recipes(self) -> None:
        """Recipes go with each part that holds a text, and what leads to them. Histories tell files by their ends."""
        ends = Wanted(["/".join(file.rsplit("/", 2)[-2:]) for file in self._wanted.files], (), tuple(self._others))
        traces = {trace for (trace,) in self._connection.execute(
            "SELECT trace FROM versions WHERE SUBSTR(label, 1, ?) <> ?", (len(RECIPE_LABEL), RECIPE_LABEL)
        )}  # fmt: skip
        for number, identity, listed in self._select("recipes", ("identity", "parts")):
            looked_for = [each for each in (self._wanted, ends if identity in traces else None) if each]
            parts = rows.digests_in(listed) if looked_for else ()
            if any(self._packed_holds(self._part(part), each) for part in parts for each in looked_for):
                self._delete("recipes", [number])
                self._delete_where("versions", "trace = ?", identity)
                statement = "UPDATE entries SET recipe = NULL, rebuildable = 0 WHERE recipe = ?"
                self._connection.execute(statement, (identity,))

    def _part(self, identity: bytes) -> object:
        statement = "SELECT content FROM recipe_parts WHERE identity = ?"
        row = self._connection.execute(statement, (identity,)).fetchone()
        return row[0] if row else None

    def _forget_packed(self) -> None:
        for table, column in _PACKED.items():
            found = self._select(table, (column,)) if self._wanted else []
            numbers = [number for number, content in found if self._packed_holds(content, self._wanted)]
            self._delete(table, numbers)
        gone = "text IS NOT NULL AND text NOT IN (SELECT identity FROM function_texts)"
        self._connection.execute(f"UPDATE functions SET text = NULL WHERE {gone}")

    def _packed_holds(self, content: object, wanted: Wanted) -> bool:
        """Whether packed bytes name one of these; damaged ones may."""
        if not isinstance(content, bytes):
            return False
        try:
            plain = zlib.decompress(content)
        except zlib.error:
            return True
        return wanted.in_content(plain)

    # people, and what belongs to nothing

    def _forget_people(self) -> None:
        for table, column in (("entries", "producer"), ("results", "by_whom")):
            found = [number for number, by in self._select(table, (column,)) if by and self._asked.is_person(by)]
            self._connection.executemany(
                f"UPDATE {table} SET {column} = '' WHERE rowid = ?", [(number,) for number in found]
            )
            self._rows[table] += len(found)
        for number, *row in self._connection.execute(f"SELECT rowid, {rows.NAME} FROM names").fetchall():
            values = opened(row)
            if values is None or not self._asked.is_person(values[4]):
                continue
            plain = (*values[:4], "", values[5])
            right = seal_of_followed(plain) if row[-1] == seal_of_followed(values) else seal(plain)
            self._connection.execute("UPDATE names SET by_whom = '', seal = ? WHERE rowid = ?", (right, number))
            self._rows["names"] += 1

    def _forget_orphans(self) -> None:
        statement = "DELETE FROM recipes WHERE identity NOT IN (SELECT trace FROM versions)"
        unled = f"{statement} AND identity NOT IN (SELECT recipe FROM entries WHERE recipe IS NOT NULL)"
        self._rows["recipes"] += self._connection.execute(unled).rowcount
        lists = self._connection.execute("SELECT parts FROM recipes")
        needed = {part for (listed,) in lists for part in rows.digests_in(listed)}
        parts = self._select("recipe_parts", ("identity",))
        self._delete("recipe_parts", [number for number, identity in parts if identity not in needed])
        for orphans in _ORPHANS:
            self._rows[orphans.partition(" ")[0]] += self._connection.execute(f"DELETE FROM {orphans}").rowcount

    def _end(self, name: str) -> None:
        """A name whose newest version is gone points to nothing; its older versions stay what they were."""
        statement = f"SELECT {rows.NAME} FROM names WHERE name = ? ORDER BY version DESC LIMIT 1"
        row = self._connection.execute(statement, (name,)).fetchone()
        if row is not None and row[-1] is not None and opened(row, newest=True) is None:
            by = "" if self._asked.is_person(self._by) else self._by
            names.add(self._connection, Name(name, row[1] + 1, b"", self._now, by, ""))

    # rows

    def _select(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        return self._connection.execute(f"SELECT rowid, {', '.join(columns)} FROM {table}").fetchall()

    def _holds(self, texts: Iterable[object]) -> bool:
        for each in texts:
            if isinstance(each, str) and self._wanted.in_text(each):
                return True
            if isinstance(each, bytes) and self._wanted.in_bytes(each):
                return True
        return False

    def _delete(self, table: str, numbers: Sequence[int]) -> None:
        if table == "names":
            for batch in rows.batches(numbers):
                statement = f"SELECT DISTINCT name FROM names WHERE rowid IN ({rows.marks(batch)})"
                self._names.update(dict.fromkeys(name for (name,) in self._connection.execute(statement, batch)))
        self._connection.executemany(f"DELETE FROM {table} WHERE rowid = ?", [(number,) for number in numbers])
        self._rows[table] += len(numbers)

    def _delete_where(self, table: str, condition: str, value: object) -> None:
        self._rows[table] += self._connection.execute(f"DELETE FROM {table} WHERE {condition}", (value,)).rowcount
