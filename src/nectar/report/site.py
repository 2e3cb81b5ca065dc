"""Where in a program something is asked for."""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import Any, Final

_NOT_THE_PROGRAM: Final = ("polars", "pyspark", "grpc", "nectar")


def call_site() -> str:
    """File and line nearest to the call that are the program's, and neither of an engine nor of Nectar."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _NOT_THE_PROGRAM:
            return f"{PurePath(frame.f_code.co_filename).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
