"""Where in a program something is asked for."""

from __future__ import annotations

import sys
from pathlib import PurePath
from types import FrameType
from typing import Final

_NOT_THE_PROGRAM: Final = ("polars", "pyspark", "grpc", "nectar")


def call_site() -> str:
    """File and line nearest to the call that are the program's, and neither of an engine nor of Nectar."""
    frame = frame_of_program()
    return "" if frame is None else f"{PurePath(frame.f_code.co_filename).name}:{frame.f_lineno}"


def frame_of_program() -> FrameType | None:
    """The frame nearest to the call that is the program's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _NOT_THE_PROGRAM:
            return frame
        frame = frame.f_back
    return None
