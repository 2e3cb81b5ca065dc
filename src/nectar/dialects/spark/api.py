"""The hook: clients of Spark Connect that are made from now on go through Nectar."""

from __future__ import annotations

import logging
from typing import Any, Final

import grpc
from pyspark.sql.connect.client.core import SparkConnectClient
from pyspark.sql.connect.proto import base_pb2_grpc

from nectar.arrival import no_longer, when_imported
from nectar.dialects.spark import functions, interceptor, servers

_log: Final = logging.getLogger("nectar.spark")
_plain_init: Final = SparkConnectClient.__init__


def install() -> None:
    """From now on new clients go through Nectar, and those made under Nectar before do so again."""
    when_imported("pysail.spark", servers.install)
    functions.install()
    SparkConnectClient.__init__ = _init
    interceptor.enabled = True


def uninstall() -> None:
    """From now on everything runs as plain Spark. What servers are taught is still noticed, should Nectar return."""
    interceptor.enabled = False
    SparkConnectClient.__init__ = _plain_init
    functions.uninstall()
    no_longer("pysail.spark")
    servers.uninstall()


def _init(self: Any, *args: Any, **kwargs: Any) -> None:
    _plain_init(self, *args, **kwargs)
    try:
        channel = grpc.intercept_channel(self._channel, interceptor.Interceptor(self))
        stub = base_pb2_grpc.SparkConnectServiceStub(channel)
    except Exception:
        _log.exception("a Spark session runs as without Nectar")
        return
    self._channel, self._internal_stub = channel, stub
