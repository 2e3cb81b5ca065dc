"""Whose code is running: found on the stack of the thread that acts.

In: the stack at the moment of an event. Out: where the program of the user is, or that it is none of its business:
Nectar reads its own files, an import reads modules, a traceback reads sources, a handler writes a log.
"""

from __future__ import annotations

import weakref
from collections.abc import Set as AbstractSet
from types import CodeType, FrameType
from typing import Final, NamedTuple

from nectar.observation.installed import is_installed

# Reading modules, and what is installed (libraries ask for versions; functions of the program that do are refused).
_IMPORTING: Final = ("importlib._bootstrap", "importlib.metadata")
# Functions of libraries below which nothing counts: what they read or write is no part of any result.
_ASIDE: Final = {
    ("logging", "callHandlers"), ("linecache", "updatecache"), ("linecache", "checkcache"),
    ("joblib.externals.loky.backend.context", "_count_physical_cores"),
    ("loky.backend.context", "_count_physical_cores"),
    ("shutil", "_rmtree_safe_fd"), ("shutil", "_rmtree_safe_fd_step"), ("shutil", "_rmtree_unsafe"),
}  # fmt: skip
# Where Nectar calls functions of the program: what is called from there, a library maybe, is the doing of the program.
_CALLERS: Final = frozenset(
    {
        "nectar.dialects.python.memo", "nectar.dialects.polars.engine", "nectar.dialects.polars.watching",
        "nectar.observation.profile",
    }
)  # fmt: skip
_FINALIZING: Final = ("__del__", "_cleanup")
_FINALIZER: Final = weakref.finalize.__call__.__code__  # of an object that was let go, maybe a while ago


class Place(NamedTuple):
    """Where the program is. text: file and line, empty if no code of the program is on the stack.

    finalizing: an object was let go, which may belong to anybody.
    """

    text: str
    finalizing: bool


def place_of_event(frame: FrameType | None, vouched: AbstractSet[CodeType]) -> Place | None:
    """Where the program is, or None if what happens is none of its business.

    frame: what has caused the event. vouched: code that people have declared to be pure, below which nothing is looked
    at.
    """
    text, finalizing = "", False
    while frame is not None:
        code, module = frame.f_code, frame.f_globals.get("__name__", "")
        if vouched and code in vouched:
            return None
        if not text:
            if module in _CALLERS:
                break
            if module.startswith((*_IMPORTING, "nectar.")) or (module, code.co_name) in _ASIDE:
                return None
            finalizing = finalizing or code.co_name in _FINALIZING or code is _FINALIZER
            if _is_of_program(code, module):
                if code.co_name == "<module>":  # it is being imported
                    return None
                text = f"{code.co_filename}:{frame.f_lineno}"
                if not vouched:
                    break
        frame = frame.f_back
    return Place(text, finalizing)


def _is_of_program(code: CodeType, module: str) -> bool:
    name = code.co_filename
    return module == "__main__" if name.startswith("<") else not is_installed(name)
