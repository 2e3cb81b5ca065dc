"""Names in the SQLite index. Law: versions are added and never changed, so that name@2 means one result for ever."""

from __future__ import annotations

import sqlite3

from nectar.catalog.index import rows
from nectar.catalog.index.transactions import Transactions
from nectar.model.entry import Name


class NameRows(Transactions):
    """The names of an index."""

    def bind(self, name: str, key: bytes, by: str, now: float, note: str = "") -> Name:
        """Lets a name point to a key from now on; earlier versions stay in its history."""

        def bind(connection: sqlite3.Connection) -> Name:
            last = rows.current_name(connection, name)
            if last is not None and last.key == key and note in ("", last.note):
                return last
            return _add(connection, Name(name, last.version + 1 if last else 1, key, now, by, note))

        return self._write("bind name", bind)

    def resolve(self, name: str) -> Name | None:
        """What a name points to now."""
        found = self._read(lambda connection: rows.current_name(connection, name))
        return None if found is None or found.removed else found

    def names(self, prefix: str = "") -> list[Name]:
        """All names that begin with prefix, as they are now."""
        statement = (
            f"SELECT {', '.join(f'n.{column}' for column in rows.NAME.split(', '))} FROM names n JOIN "
            "(SELECT name, MAX(version) AS version FROM names GROUP BY name) l "
            "ON n.name = l.name AND n.version = l.version WHERE LENGTH(n.key) > 0 ORDER BY n.name"
        )
        found = self._read(lambda connection: [Name(*row) for row in connection.execute(statement)])
        return [name for name in found if name.name.startswith(prefix)]

    def history(self, name: str) -> list[Name]:
        """All versions of a name, newest first; those at which it was removed included."""
        statement = f"SELECT {rows.NAME} FROM names WHERE name = ? ORDER BY version DESC"
        return self._read(lambda connection: [Name(*row) for row in connection.execute(statement, (name,))])

    def unbind(self, name: str, by: str, now: float, note: str = "") -> bool:
        """Lets a name point to nothing from now on; False if it does so already. Its history stays."""

        def unbind(connection: sqlite3.Connection) -> bool:
            last = rows.current_name(connection, name)
            if last is None or last.removed:
                return False
            _add(connection, Name(name, last.version + 1, b"", now, by, note))
            return True

        return self._write("unbind name", unbind)


def _add(connection: sqlite3.Connection, name: Name) -> Name:
    values = (name.name, name.version, name.key, name.since, name.by, name.note)
    connection.execute(f"INSERT INTO names ({rows.NAME}) VALUES ({rows.marks(values)})", values)
    return name
