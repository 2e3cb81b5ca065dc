"""An engine for programs that name none: Sail, in this process, where Spark itself is not installed.

Without Nectar such a program (`SparkSession.builder.getOrCreate()`, perhaps with a local master) needs Spark and
Java. Where only the client of Spark Connect is installed, and Sail beside it, a server is started with the first
session, and stopped when the process ends. A server that the program or the environment names is used as it is. Where
all of Spark is installed, a session may be one without Spark Connect, of which nothing can be reused: that is said.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import threading
from functools import wraps
from typing import Any, Final

from pyspark.sql.session import SparkSession
from pyspark.util import is_remote_only

from nectar.forks import in_child
from nectar.report.totals import process_totals
from nectar.session import current
from nectar.trust.secrets import logger

_log: Final = logger("nectar.spark")
_CLASSIC: Final = (
    "queries of classic PySpark are not seen; with SPARK_CONNECT_MODE=1 in the environment, or "
    '.config("spark.api.mode", "connect") in the program, Spark Connect is used and results are reused'
)
_plain_init: Final = SparkSession.__init__
_plain_get: Final = SparkSession.Builder.getOrCreate
_plain_create: Final = SparkSession.Builder.create
_lock = threading.Lock()
_servers: Final[dict[int, Any]] = {}  # by process: a child that was forked has none


def install() -> None:
    """From now on sessions of programs that name no server are sessions of Sail."""
    SparkSession.__init__ = _init
    SparkSession.Builder.getOrCreate = _get_or_create
    SparkSession.Builder.create = _create


def uninstall() -> None:
    """From now on sessions are made as without Nectar. A server that was started goes on, for the sessions it has."""
    SparkSession.__init__ = _plain_init
    SparkSession.Builder.getOrCreate = _plain_get
    SparkSession.Builder.create = _plain_create


@wraps(_plain_init)
def _init(self: Any, *args: Any, **kwargs: Any) -> None:
    """A session that works with the Java machine itself; those of Spark Connect are of another class."""
    _plain_init(self, *args, **kwargs)
    if current() is not None and not process_totals.unseen:
        process_totals.unseen = _CLASSIC
        _log.warning(_CLASSIC)


def _get_or_create(self: Any) -> Any:
    builder = _connected(self, anew=False)
    return _plain_get(self) if builder is None else builder.getOrCreate()


def _create(self: Any) -> Any:
    builder = _connected(self, anew=True)
    return _plain_create(self) if builder is None else builder.create()


def _connected(builder: Any, *, anew: bool) -> Any:
    """A builder of sessions on Sail with the same options; None if the program has an engine of its own.

    anew: a session that is there already is not enough.
    """
    try:
        options = dict(builder._options)
        if not _is_without_engine(options):
            return None
        from pyspark.sql.connect.session import SparkSession as Connected

        options.pop("spark.master", None)
        if anew or (Connected.getActiveSession() or Connected._get_default_session()) is None:
            options["spark.remote"] = address()
    except Exception:
        _log.warning("Sail cannot be started for a program that names no server", exc_info=True)
        return None
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # as Spark does it: functions are those of Connect from now on
    return Connected.builder.config(map=options)


def _is_without_engine(options: dict[str, Any]) -> bool:
    if "spark.remote" in options or "SPARK_REMOTE" in os.environ or not is_remote_only():
        return False
    master = str(options.get("spark.master", os.environ.get("MASTER", "local")))
    return master.partition("[")[0] == "local" and importlib.util.find_spec("pysail") is not None


@in_child
def _forget_parent() -> None:
    """A thread of the parent that held the lock is not here to give it back."""
    global _lock
    _lock = threading.Lock()


def address() -> str:
    """Where Sail of this process is reached; it is started if it does not run."""
    with _lock:
        server = _servers.get(os.getpid())
        if server is None or not server.running:
            server = _servers[os.getpid()] = _started()
    host, port = server.listening_address
    return f"sc://{host}:{port}"


def _started() -> Any:
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer()
    server.start(background=True)
    atexit.register(_stop, os.getpid(), server)
    _log.info("Sail was started, since the program names no server")
    return server


def _stop(process: int, server: Any) -> None:
    if process == os.getpid() and server.running:
        server.stop()
