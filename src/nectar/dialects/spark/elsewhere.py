"""A server that is none of this process, as it matters to a plan: which files it sees, and how it runs functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from nectar.catalog.service import Catalog
from nectar.dialects.spark import sight, workers
from nectar.dialects.spark.connections import Connection
from nectar.dialects.spark.functions import Pickled
from nectar.dialects.spark.reads import Source
from nectar.dialects.spark.sql.words import Name
from nectar.dialects.spark.tables import Table, table_of, why_remembered
from nectar.errors import EnvironmentFailure, NectarError
from nectar.keys.expansion import joined
from nectar.keys.scheme import digest_of
from nectar.session import Session
from nectar.store.problem import Damaged, Gone
from nectar.threads import each

_AT_ONCE: Final = 4  # questions to a server
_FIRST_OPTIONS: Final = "spark.sql.legacy.readFileSourceTableCacheIgnoreOptions"
_TRUSTED: Final = 600.0  # seconds that what one session was told by a server holds for others


class Elsewhere:
    """The server of one query. settings: of its session, as they are now. unseen: the reasons given so far."""

    def __init__(self, connection: Connection, settings: Mapping[str, str], session: Session) -> None:
        self._connection, self._settings, self._session = connection, settings, session
        self._tables: dict[Name, Table | Exception] = {}
        self.unseen: list[str] = []

    def why_unseen(self, source: Source) -> str:
        """Why the server may see other files than this process; empty if it sees the same."""
        reason = sight.why_unseen(self._connection, source, self._session.settings.home)
        if reason:
            self.unseen.append(reason)
        return reason

    def ask_ahead(self, names: Collection[Name]) -> None:
        """Names of its catalog are asked for at the same time, since each takes the server a while."""
        if len(names) > 1:
            asked = each(partial(_table_or_failure, self._connection), list(names), _AT_ONCE, "nectar-tables")
            self._tables |= dict(zip(names, asked, strict=True))

    def table(self, name: Name) -> Table:
        """What a name of its catalog stands for. Raises UserError or EnvironmentFailure if that is not known."""
        asked = self._tables.get(name)
        if asked is None:
            return table_of(self._connection, name)
        if isinstance(asked, Exception):
            raise asked
        return asked

    def why_remembered(self, source: Source) -> str:
        """Why the server may take files that it reads by a name for what they were; empty if it does not."""
        if not sight.is_at_home(self._connection):
            return f"whether the clock of the server at {self._connection.endpoint} is that of its files is not known"
        if self._settings.get(_FIRST_OPTIONS, "false").lower() != "false":
            return f"with {_FIRST_OPTIONS} the server reads tables with options that they had before"
        return why_remembered(source, self._connection)

    def why_unlike(self, functions: Collection[Pickled]) -> str:
        """Why functions may do something else at the server than here; empty if they do not."""
        if not functions:
            return ""
        if self._connection.sent_files:
            return "files were sent to the server for this session, and functions may import them"
        reason = workers.why_unlike(functions)
        try:
            return reason or ("" if self.environment() else "the server does not tell how it runs functions")
        except EnvironmentFailure as error:
            return f"how the server runs functions is not known: {error}"

    def environment(self) -> bytes:
        """What functions run with at the server."""
        return workers.digest_of_environment(self._connection.remembered("workers", self._environment))

    def _environment(self) -> str:
        """What other sessions were told a short while ago, or this one now: a session's first worker takes a second."""
        key, catalog = self._key(), self._session.catalog
        told = None if catalog is None else self._told_to_others(catalog, key)
        if told is None:
            told = workers.environment_of(self._connection)
            if catalog is not None:
                about = f"what functions run with at {self._connection.endpoint}"
                self._session.keeper.submit(lambda: catalog.keep(key, key, told, about=about, replaces=True))
        return told

    def _told_to_others(self, catalog: Catalog, key: bytes) -> str | None:
        try:
            entry = catalog.index.lookup([key]).get(key)
            if entry is None or abs(self._session.clock.now() - entry.created) > _TRUSTED:
                return None
            opened = catalog.open(entry)
            return None if isinstance(opened, Gone | Damaged) else str(opened.to_object())
        except NectarError:
            return None

    def _key(self) -> bytes:
        """Stands for the server since it was started, for who asks, and for the settings of the session."""
        settings = [text for name in sorted(self._settings) for text in (name, self._settings[name])]
        return digest_of(joined("workers", self._connection.endpoint, self._connection.user, *settings))


def _table_or_failure(connection: Connection, name: Name) -> Table | Exception:
    """What a name stands for, or why that is not known: it is raised only if the query needs the name."""
    try:
        return table_of(connection, name)
    except Exception as failure:
        return failure
