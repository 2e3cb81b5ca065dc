"""The hook: clients of Spark Connect that are made from now on go through Nectar."""

from __future__ import annotations

from typing import Any, Final

import grpc
from pyspark.sql.connect.client.core import SparkConnectClient
from pyspark.sql.connect.proto import base_pb2_grpc

from nectar.arrival import no_longer, when_imported
from nectar.dialects.spark import functions, interceptor, servers
from nectar.dialects.spark.connections import connect
from nectar.trust.secrets import logger

_log: Final = logger("nectar.spark")
_plain_init: Final = SparkConnectClient.__init__
_plain_clone: Final = SparkConnectClient.clone


def install() -> None:
    """From now on new clients go through Nectar, and those made under Nectar before do so again."""
    when_imported("pysail.spark", servers.install)
    functions.install()
    SparkConnectClient.__init__ = _init
    SparkConnectClient.clone = _clone
    interceptor.enabled = True


def uninstall() -> None:
    """From now on everything runs as plain Spark. What servers are taught is still noticed, should Nectar return."""
    interceptor.enabled = False
    SparkConnectClient.__init__ = _plain_init
    SparkConnectClient.clone = _plain_clone
    functions.uninstall()
    no_longer("pysail.spark")
    servers.uninstall()


def _init(self: Any, *args: Any, **kwargs: Any) -> None:
    _plain_init(self, *args, **kwargs)
    try:
        between = interceptor.Interceptor(self)
        channel = grpc.intercept_channel(self._channel, between)
        stub = base_pb2_grpc.SparkConnectServiceStub(channel)
        connect(self, self._internal_stub)
        self._artifact_manager._stub = stub
    except Exception:
        _log.exception("a Spark session runs as without Nectar")
        return
    self._nectar = between
    self._channel, self._internal_stub = channel, stub


def _clone(self: Any, new_session_id: str | None = None) -> Any:
    """A clone knows from the start what its server was taught by the session it was made from."""
    made = _plain_clone(self, new_session_id)
    before, after = getattr(self, "_nectar", None), getattr(made, "_nectar", None)
    if before is not None and after is not None and new_session_id is None:  # an id that was given may be shared
        after.inherit(before)
    return made
