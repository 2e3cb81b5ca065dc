"""The engine that a client talks to: Sail in this process, or Spark behind an address.

Sail in this process sees the files that this process sees, as they are now. A server elsewhere may see other files
under the same names, which `sight.py` finds out; and Spark remembers lists of files and their contents, so that it
has to be told when they have changed (`fresh.py`). What does not tell its version is refused.
"""

from __future__ import annotations

import gc
import importlib.metadata
import os
import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from nectar.dialects.spark.connections import Connection, connection_of
from nectar.dialects.spark.manners import SAIL, SPARK, Manner
from nectar.dialects.spark.sight import is_at_home
from nectar.errors import EnvironmentFailure

_ALWAYS: Final = "spark.sql.session.timeZone"  # in force although nobody has set it, and not the same everywhere
# Settings by which files may come back as something else than was written: times cut off, files left out.
_ABOUT_FILES: Final = (
    "spark.sql.parquet.", "spark.sql.legacy.parquet.", "spark.sql.files.ignore", "spark.hadoop.parquet.", "parquet.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Engine:
    """A server whose programs may be reused. description: its version, and the settings it was started with.

    elsewhere: the connection to a server that is none of this process. Such a server may answer from lists of files and
    caches that it made earlier, also for other sessions, and runs Python functions in an environment of its own.
    settings: of the session at such a server, as they are now.
    """

    description: tuple[str, ...]
    elsewhere: Connection | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_embedded(self) -> bool:
        """Whether it is Sail in this process, which sees files as this process does, now."""
        return self.description[0] == "sail"

    @property
    def shares_files(self) -> bool:
        """Whether it reads everything that this process writes, and writes where this process reads, as it is."""
        if self.elsewhere is None:
            return True
        unusual = any(name.lower().startswith(_ABOUT_FILES) for name in self.settings)
        return not unusual and is_at_home(self.elsewhere)

    @property
    def manner(self) -> Manner:
        """How it takes rows that were computed before."""
        return SAIL if self.is_embedded else SPARK


_started: Final[weakref.WeakKeyDictionary[Any, tuple[int, tuple[str, ...]]]] = weakref.WeakKeyDictionary()
_plain: Final[list[Any]] = []


def install() -> None:
    """From now on servers are noticed when they start; those that run already are found."""
    from pysail.spark import SparkConnectServer

    if _plain:
        return
    _plain.append(SparkConnectServer.start)
    for each in gc.get_objects():
        if type(each) is SparkConnectServer and each.running:
            _note(each)
    SparkConnectServer.start = _start


def uninstall() -> None:
    """From now on servers start as without Nectar."""
    if _plain:
        sys.modules["pysail.spark"].SparkConnectServer.start = _plain.pop()


def engine_of(client: Any) -> Engine | str:
    """The engine that a client talks to; or why its programs are not reused."""
    builder = client._builder
    # A builder of the program's own may lead anywhere, whatever its address.
    embedded = _embedded_at(builder.endpoint) if _is_plain(builder) else None
    return _elsewhere(connection_of(client)) if embedded is None else embedded


def _is_plain(builder: Any) -> bool:
    return type(builder).__module__ == "pyspark.sql.connect.client.core"


def _elsewhere(connection: Connection) -> Engine | str:
    try:
        settings = connection.settings(_ALWAYS)
        version = connection.version()
    except EnvironmentFailure as error:
        return str(error)
    if "spark.app.id" not in settings:
        return f"the server at {connection.endpoint} is not Spark, and does not tell its own version"
    return Engine(("spark", version), connection, settings)


def _embedded_at(endpoint: str) -> Engine | str | None:
    host, _, port = endpoint.replace("localhost", "127.0.0.1").rpartition(":")
    for server, (process, settings) in list(_started.items()):
        address = server.listening_address if server.running else None
        if address is None or str(address[1]) != port or not _is_reached(address[0], host):
            continue
        if process != os.getpid():
            return "the server runs in another process, which may see other files"
        mode = dict(setting.partition("=")[::2] for setting in settings).get("SAIL_MODE", "local")
        if mode != "local":
            return f"Sail runs as a {mode}: whether all of it sees the same files is not known"
        return Engine(("sail", _version(), *settings))
    return None


def _is_reached(listening: str, host: str) -> bool:
    return host == listening or (host == "127.0.0.1" and listening == "0.0.0.0")


@cache
def _version() -> str:
    return importlib.metadata.version("pysail")


def _start(self: Any, *args: Any, **kwargs: Any) -> Any:
    _note(self)
    plain = _plain[0] if _plain else type(self).start
    return plain(self, *args, **kwargs)


def _note(server: Any) -> None:
    settings = tuple(sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("SAIL_")))
    _started[server] = (os.getpid(), settings)
