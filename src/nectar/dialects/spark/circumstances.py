"""What besides a plan its result depends on: the engine, the settings of the session, the libraries functions run with.

In: a client and the engine it talks to. Out: a digest. Every setting that was made counts, but for a few that
only name things: which of them changes which result is for the engine to know.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from nectar.dialects.spark.connections import connection_of
from nectar.dialects.spark.servers import Engine
from nectar.keys.expansion import joined
from nectar.keys.scheme import FRAME, digest_of

# What a program is called, where it runs, and what the server uses for itself.
_NAMES_ONLY: Final = frozenset({
    "spark.app.name", "spark.app.id", "spark.app.startTime", "spark.app.submitTime", "spark.remote", "spark.master",
    "spark.driver.host", "spark.driver.port", "spark.driver.bindAddress", "spark.driver.memory", "spark.executor.id",
    "spark.executor.memory", "spark.submit.deployMode", "spark.submit.pyFiles", "spark.local.dir", "spark.ui.enabled",
    "spark.ui.port", "spark.ui.showConsoleProgress", "spark.sql.warehouse.dir", "spark.connect.grpc.binding.address",
    "spark.connect.grpc.binding.port", "spark.connect.authenticate.token", "spark.plugins",
})  # fmt: skip
_FORM: Final = "spark 2"  # of results: those of the first have schemas that engines cannot read
_LIBRARIES: Final = ("numpy", "pandas", "pyarrow")  # what the engine hands to Python functions is made with them


def circumstances_of(client: Any, engine: Engine) -> bytes:
    """What results of this session depend on, as it is now."""
    return digest_of_circumstances(engine, settings_of(client, engine))


def settings_of(client: Any, engine: Engine) -> dict[str, str]:
    """The settings of a session that count, as they are now."""
    made = connection_of(client).settings_so_far() if engine.elsewhere is None else engine.settings
    return {name: str(made[name]) for name in sorted(made.keys() - _NAMES_ONLY)}


def digest_of_circumstances(engine: Engine, settings: Mapping[str, str]) -> bytes:
    """What results depend on, at an engine and with settings, in this process."""
    texts = [text for name in sorted(settings) for text in (name, settings[name])]
    zone = os.environ.get("TZ", "")
    parts = joined(*_versions()), joined(*engine.description), joined(zone, *texts)
    return digest_of(FRAME + joined(_FORM, *parts))


@cache
def _versions() -> tuple[str, ...]:
    found = [platform.python_version()]
    for name in ("pyspark-client", "pyspark", *_LIBRARIES):
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"no {name}")
    return tuple(found)


def environment() -> str:
    """The versions that a result was made with, for people."""
    return ", ".join(("python " + _versions()[0], *(each for each in _versions()[1:] if not each.startswith("no "))))
