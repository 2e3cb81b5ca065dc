"""Names in the SQLite index. Law: versions are added and never changed, so that name@2 means one result for ever.

That a version was followed by another one is noted beside it: if that one is lost, the older does not take its place.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from nectar.catalog.index import rows
from nectar.catalog.index.seals import broken, opened, seal, seal_of_followed
from nectar.catalog.index.transactions import Transactions
from nectar.errors import DamagedNameError
from nectar.model.entry import Name
from nectar.trust.secrets import redacted


class NameRows(Transactions):
    """The names of an index."""

    def bind(self, name: str, key: bytes, by: str, now: float, note: str = "") -> Name:
        """Lets a name point to a key from now on; earlier versions stay in its history."""
        note = redacted(note)

        def bind(connection: sqlite3.Connection) -> Name:
            version, last = rows.last_name(connection, name)
            if last is not None and last.key == key and note in ("", last.note):
                return last
            connection.executemany("DELETE FROM names WHERE rowid = ?", _broken_versions(connection, name))
            return add(connection, Name(name, version + 1, key, now, by, note))

        return self._write_durably("bind name", bind)

    def resolve(self, name: str) -> Name | None:
        """What a name points to now. Raises DamagedNameError if its row is damaged: an older one would be another."""
        version, found = self._read(lambda connection: rows.last_name(connection, name))
        if version and found is None:
            raise _damaged(name)
        return None if found is None or found.removed else found

    def names(self, prefix: str = "") -> list[Name]:
        """All names that begin with prefix, as they are now; without those whose row is damaged."""
        statement = (
            f"SELECT {', '.join(f'n.{column}' for column in rows.NAME.split(', '))} FROM names n JOIN "
            "(SELECT name, MAX(version) AS version FROM names GROUP BY name) l "
            "ON n.name = l.name AND n.version = l.version WHERE LENGTH(n.key) > 0 ORDER BY n.name"
        )
        found = self._read(lambda connection: [rows.to_name(row, newest=True) for row in connection.execute(statement)])
        return [name for name in found if name is not None and name.name.startswith(prefix)]

    def history(self, name: str) -> list[Name]:
        """All versions of a name, newest first; those at which it was removed included. Raises DamagedNameError."""
        statement = f"SELECT {rows.NAME} FROM names WHERE name = ? ORDER BY version DESC"
        found = self._read(lambda connection: connection.execute(statement, (name,)).fetchall())
        versions = [rows.to_name(row, newest=number == 0) for number, row in enumerate(found)]
        right = [version for version in versions if version is not None]
        if len(right) < len(versions):
            raise _damaged(name)
        return right

    def unbind(self, name: str, by: str, now: float, note: str = "") -> bool:
        """Lets a name point to nothing from now on; False if it does so already. Its history stays."""

        def unbind(connection: sqlite3.Connection) -> bool:
            version, last = rows.last_name(connection, name)
            if not version or (last is not None and last.removed):
                return False
            add(connection, Name(name, version + 1, b"", now, by, redacted(note)))
            return True

        return self._write_durably("unbind name", unbind)

    def broken_rows(self) -> list[tuple[str, int, str]]:
        """Rows whose values are not those that were written: the table, the number of the row, what it is about."""
        return self._snapshot(broken)

    def drop_rows(self, rows_of: Sequence[tuple[str, int, str]], by: str, now: float) -> None:
        """Forgets damaged rows; a name whose newest version is lost points to nothing from now on."""

        def drop(connection: sqlite3.Connection) -> None:
            for name in dict.fromkeys(about for table, _, about in rows_of if table == "names"):
                version, last = rows.last_name(connection, name)
                if version and last is None:
                    add(connection, Name(name, version + 1, b"", now, by, "its row in the catalog was damaged"))
            for table, number, _ in set(broken(connection)) & set(rows_of):
                if table == "results":
                    _forget_description(connection, number)
                else:
                    connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (number,))

        self._write("drop rows", drop)


def add(connection: sqlite3.Connection, name: Name) -> Name:
    """A version of a name is the newest."""
    before = connection.execute(
        f"SELECT rowid, {rows.NAME} FROM names WHERE name = ? ORDER BY version DESC LIMIT 1", (name.name,)
    ).fetchone()
    if before is not None and opened(before[1:]) is not None:  # a damaged one does not become right by this
        followed = (seal_of_followed(before[1:-1]), before[0])
        connection.execute("UPDATE names SET seal = ? WHERE rowid = ?", followed)
    values = (name.name, name.version, name.key, float(name.since), name.by, name.note)
    sealed = (*values, seal(values))
    connection.execute(f"INSERT INTO names ({rows.NAME}) VALUES ({rows.marks(sealed)})", sealed)
    return name


def _forget_description(connection: sqlite3.Connection, number: int) -> None:
    """Nothing is known of what made a result, and of its columns; what it was made from stays on record."""
    (key,) = connection.execute("SELECT key FROM results WHERE number = ?", (number,)).fetchone()
    mark = seal((key, b"", None))
    connection.execute("UPDATE results SET program = x'', columns = NULL, seal = ? WHERE number = ?", (mark, number))


def _broken_versions(connection: sqlite3.Connection, name: str) -> list[tuple[int]]:
    """The numbers of rows of a name that are not as they were written."""
    found = connection.execute(f"SELECT rowid, {rows.NAME} FROM names WHERE name = ?", (name,)).fetchall()
    return [(number,) for number, *row in found if opened(row) is None]


def _damaged(name: str) -> DamagedNameError:
    return DamagedNameError(
        f"what the name {name!r} points to is damaged in the catalog: save it again, or remove it with "
        "`nectar check --thorough --repair`"
    )
