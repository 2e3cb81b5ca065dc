"""A server that is none of this process, as it matters to a plan: which files it sees, and how it runs functions."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from nectar.dialects.spark import sight, workers
from nectar.dialects.spark.connections import Connection
from nectar.dialects.spark.functions import Pickled
from nectar.dialects.spark.reads import Source
from nectar.errors import EnvironmentFailure


class Elsewhere:
    """The server of one query. home: of the store. unseen: the reasons given so far."""

    def __init__(self, connection: Connection, home: Path) -> None:
        self._connection, self._home = connection, home
        self.unseen: list[str] = []

    def why_unseen(self, source: Source) -> str:
        """Why the server may see other files than this process; empty if it sees the same."""
        reason = sight.why_unseen(self._connection, source, self._home)
        if reason:
            self.unseen.append(reason)
        return reason

    def why_unlike(self, functions: Collection[Pickled]) -> str:
        """Why functions may do something else at the server than here; empty if they do not."""
        if not functions:
            return ""
        reason = workers.why_unlike(functions)
        try:
            return reason or ("" if self.environment() else "the server does not tell how it runs functions")
        except EnvironmentFailure as error:
            return f"how the server runs functions is not known: {error}"

    def environment(self) -> bytes:
        """What functions run with at the server."""
        return workers.environment_of(self._connection)
