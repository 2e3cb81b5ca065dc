"""What library code reads while a computation runs, from Python 3.12 on: only code that holds a source is followed.

In: code of libraries that holds sources (reach.py). Out: events for the computation that it is run for, in whatever
thread that is (hook.py). Nothing else becomes slower. Code is followed for good, once it has been reached.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any, Final

from nectar.keys.purity import tables
from nectar.observation import hook
from nectar.observation.profile import FUNCTIONS, is_reader, told
from nectar.observation.reach import CONTEXT, Source, source

_monitoring: Final[Any] = getattr(sys, "monitoring", None)
IS_THERE: Final = _monitoring is not None
_NAME: Final = "nectar"
_TOOLS: Final = (4, 3, 5, 0, 1, 2)  # debuggers, coverage and profilers have numbers of their own
_GET: Final = vars(ContextVar)["get"]
_tool: int | None = None
_followed: Final[dict[int, tuple[object, int]]] = {}  # code and its events, by id: equal code may lie in two places
_always: Final[dict[int, str]] = {}  # what code reads whenever it runs, by id as well


def follow(sources: Collection[Source]) -> bool:
    """From now on what this code reads is noted; False if other tools leave no room."""
    if _tool is None and not _begin():
        return False
    for each in sources:
        if each.always:
            _always[id(each.code)] = each.what
        _add(each.code, _monitoring.events.PY_START if each.always else _monitoring.events.CALL)
    return True


def _begin() -> bool:
    global _tool
    _tool = next((each for each in _TOOLS if _monitoring.get_tool(each) is None), None)
    if _tool is None:
        return False
    _monitoring.use_tool_id(_tool, _NAME)
    _monitoring.register_callback(_tool, _monitoring.events.CALL, _called)
    _monitoring.register_callback(_tool, _monitoring.events.PY_START, _started)
    for code in FUNCTIONS:
        _add(code, _monitoring.events.PY_START)
    return True


def _add(code: Any, event: int) -> None:
    before = _followed.get(id(code), (code, 0))[1]
    if before | event != before:
        _followed[id(code)] = code, before | event
        _monitoring.set_local_events(_tool, code, before | event)


def _called(code: CodeType, offset: int, called: object, first: object) -> None:
    """Code that holds a source calls something: is it the source?"""
    if not hook.is_watching():
        return
    what = CONTEXT if called is _GET and isinstance(first, ContextVar) else source(called)
    if not what or not is_reader(code, what):
        return
    verdict = tables.verdict(called)
    given = first is not None and first is not _monitoring.MISSING
    if verdict is None or verdict.unless is None or not (verdict.unless.given and given):
        hook.note_source(told(what, code))


def _started(code: CodeType, offset: int) -> None:
    """Code begins that reads a source whenever it runs, for whoever called it."""
    if not hook.is_watching():
        return
    what = FUNCTIONS.get(code)
    if what is None:
        hook.note_source(told(_always[id(code)], code))
        return
    reader = _reader(sys._getframe(1).f_back, what)
    if reader is not None:
        hook.note_source(told(what, reader))


def _reader(frame: FrameType | None, what: str) -> CodeType | None:
    """The library code that called, itself or by code of the standard library that only hands it on."""
    while frame is not None:
        found = is_reader(frame.f_code, what)
        if found is not None:
            return frame.f_code if found else None
        frame = frame.f_back
    return None
