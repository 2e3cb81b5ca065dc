"""Sail servers of this process: they see the files that this process sees, as they are now.

A server elsewhere may see other files under the same names, or freeze what it has seen; its programs run as they are.
"""

from __future__ import annotations

import gc
import importlib.metadata
import os
import sys
import weakref
from dataclasses import dataclass
from functools import cache
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Engine:
    """A server of this process. description: its version, and the settings it was started with."""

    description: tuple[str, ...]

    @property
    def is_embedded(self) -> bool:
        """Whether it sees files as this process does, now, and writes them where this process reads."""
        return self.description[0] == "sail"


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
    """The server of this process that a client talks to; or why there is none whose programs are reused."""
    builder = client._builder
    if type(builder).__module__ != "pyspark.sql.connect.client.core":
        return "the program connects in a way of its own, and the server may see other files"
    return _engine_at(builder.endpoint)


def _engine_at(endpoint: str) -> Engine | str:
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
    return f"the server at {endpoint} is not one of this process: it may see other files"


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
