"""Where in a program something is asked for, in words."""

from __future__ import annotations

from pathlib import PurePath

from nectar.overhead.sites import frame_of_program


def call_site() -> str:
    """File and line nearest to the call that are the program's, and neither of an engine nor of Nectar."""
    frame = frame_of_program()
    return "" if frame is None else f"{PurePath(frame.f_code.co_filename).name}:{frame.f_lineno}"
