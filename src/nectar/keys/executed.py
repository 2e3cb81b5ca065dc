"""Code of the program that has run since somebody listens: files, cells of notebooks, and statements without a text.

In: the frames that are under way when listening begins, and what the interpreter tells of code that it executes. Out:
for each file what ran last, the statements, and a count that rises whenever there is more. Law: nothing is forgotten
silently: beyond a limit `forgotten` says what was, and that never ends.
"""

from __future__ import annotations

import os
import sys
import time
import weakref
from functools import lru_cache
from types import CodeType, FrameType, ModuleType
from typing import Any, Final, NamedTuple

from nectar.keys import audit

_STANDARD: Final = (
    os.path.join(os.path.dirname(os.__file__), ""),
    os.path.join(os.path.dirname(os.path.dirname(__file__)), ""),
)
_INSTALLED: Final = ("site-packages", "dist-packages")
CONSOLES: Final = ("<stdin>", "<console>", "<input>")
CELLS: Final = ("<ipython-input-", "<python-input-", "<input", "<cell")
_MOST_FILES: Final = 1 << 15
_MOST_STATEMENTS: Final = 4096


class Executed(NamedTuple):
    """What ran last of a file. times: how often. when: in nanoseconds, 0 if before anybody listened."""

    code: CodeType
    times: int
    when: int
    module: weakref.ref[ModuleType] | None


files: Final[dict[str, Executed]] = {}
statements: Final[list[CodeType]] = []  # of which nobody keeps the text
forgotten: Final[list[str]] = []  # what has run and is not known any more, for people
before: Final[set[str]] = set()  # top-level modules that were there when statements ran that nobody has seen
_BETWEEN: Final = ("_note", "_heard", "_call_with_frames_removed")  # frames between a loader and who notes
_count = 0
_last_cell = ""
_listens = False


def count() -> int:
    """A number that rises whenever there is more; never one that it was before."""
    return _count


def is_of_application(file: object) -> bool:
    """Whether a file is the program's, told by its path: to ask whose each file is would take long."""
    return isinstance(file, str) and _is_of_application(file)


@lru_cache(maxsize=8192)  # asked of each module whenever there is a new one
def _is_of_application(file: str) -> bool:
    return not file.startswith(_STANDARD) and not any(each in file for each in _INSTALLED)


def times(file: str) -> int:
    """How often a file has been run, as far as anybody has seen."""
    ran = files.get(file)
    return 0 if ran is None else ran.times


def listen() -> None:
    """From now on it is noticed what is executed, besides what is under way in any thread."""
    global _listens
    if _listens:
        return
    _listens = True
    audit.listen({"exec": _heard})
    for frame in list(sys._current_frames().values()):
        _note_all_below(frame)
    if _has_unseen_statements():
        before.update(name.partition(".")[0] for name in list(sys.modules))


def drop_statements_of(name: str) -> None:
    """Statements under this name have a text after all, and so have those before them."""
    statements[:] = [each for each in statements if each.co_filename != name]
    before.clear()


def _has_unseen_statements() -> bool:
    """Whether somebody types at a console that keeps no texts: those of IPython, and of Python 3.13, keep them."""
    if not hasattr(sys, "ps1"):
        return False
    cells = sys.modules.get("linecache")
    names = [] if cells is None else [str(each) for each in list(cells.cache)]
    return not any(name.startswith(CELLS) or (name[:1] != "<" and _is_cell(name)) for name in names)


def _note_all_below(frame: FrameType | None) -> None:
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>":
            module = sys.modules.get(frame.f_globals.get("__name__", ""))
            is_its = isinstance(module, ModuleType) and vars(module) is frame.f_globals
            _note(code, 0, module if is_its else None)
        frame = frame.f_back


def _heard(args: tuple[Any, ...]) -> None:
    """Takes up the code of modules and the like; functions are executed by nobody."""
    code = args[0]
    if type(code) is CodeType and code.co_name == "<module>":
        try:
            _note(code, time.time_ns(), None)
        except Exception as error:  # the program goes on as if nobody listened
            _forget(f"{code.co_filename}, which could not be followed ({error!r})")


def _note(code: CodeType, when: int, module: ModuleType | None) -> None:
    """Takes up what is executed. when, module: as in Executed, as far as they are known."""
    name = code.co_filename
    if name in CONSOLES:
        _note_statement(code)
    elif name[:1] == "<" and not name.startswith(CELLS):
        return  # a text that a library has made
    elif _is_cell(name):
        _note_cell(name)
    elif name[:1] == "<":
        _note_statement(code)
    elif is_of_application(name):
        _note_file(name, code, when, module or _module_of(sys._getframe(1)))


def _note_statement(code: CodeType) -> None:
    global _count
    if len(statements) >= _MOST_STATEMENTS:
        _forget(f"more than {_MOST_STATEMENTS} statements were typed")
    else:
        statements.append(code)
        _count += 1


def _is_cell(name: str) -> bool:
    """Whether a text is kept under a name as cells of notebooks are."""
    cells = sys.modules.get("linecache")
    entry = None if cells is None else cells.cache.get(name)
    return entry is not None and len(entry) == 4 and entry[1] is None


def _note_cell(name: str) -> None:
    """The statements of a cell are executed one by one: they count once."""
    global _count, _last_cell
    if name != _last_cell:
        _last_cell = name
        _count += 1


def _note_file(name: str, code: CodeType, when: int, module: ModuleType | None) -> None:
    global _count
    known = files.get(name)
    if known is None and len(files) >= _MOST_FILES:
        _forget(f"more than {_MOST_FILES} files were run")
        return
    times = 1 if known is None else known.times + 1
    files[name] = Executed(code, times, when, None if module is None else weakref.ref(module))
    _count += 1


def _module_of(frame: FrameType | None) -> ModuleType | None:
    """The module that a loader executes, if one does: the argument of its `exec_module`, which called what is seen."""
    while frame is not None and frame.f_code.co_name in _BETWEEN:
        frame = frame.f_back
    if frame is None or frame.f_code.co_name != "exec_module" or frame.f_code.co_argcount < 2:
        return None
    found = frame.f_locals.get(frame.f_code.co_varnames[1])
    return found if isinstance(found, ModuleType) else None


def _forget(what: str) -> None:
    global _count
    _count += 1
    if not forgotten:
        forgotten.append(what)
