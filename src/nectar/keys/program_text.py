"""The text of one place of the program, such as a module, and what is unknown about it.

In: a module, or a file that was run. Out: a ProgramText: the source that ran. Where there is no source, the code that
ran tells which libraries it uses, and these count as changed; where there is no code either, or it is not certain that
this is what ran, any library does. Law: what cannot be read never counts as something that changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from bisect import bisect_right
from collections.abc import Collection, Iterable
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Final

from nectar.keys.executed import Executed, files

ANY: Final = "*"  # in place of a package: any may be meant
MAYBE: Final = "maybe: "  # begins reasons of changes that nobody has seen
_LONGEST: Final = 4 << 20  # bytes of a source; what is longer takes too long to take apart
_COARSE: Final = 20_000_000  # nanoseconds by which times of files may be off
_TICK: Final = 12_000_000  # nanoseconds by which a process may have begun later than the system says


class ProgramText:
    """What the program is made of in one place. space: what its names stand for.

    used, assigned: packages that it may change, or assign to parts of, though no source says so; ANY may be among them.
    why: the reason, for people; empty if it has a source.
    """

    __slots__ = ("_names", "_starts", "assigned", "source", "space", "used", "why")

    def __init__(self, pieces: Iterable[tuple[str, str]], space: dict[str, Any]) -> None:
        """pieces: names, such as that of the file, and the sources under them."""
        self._names, self._starts, sources, line = [], [], [], 1
        for name, source in pieces:
            self._names.append(name)
            self._starts.append(line)
            sources.append(source if source.endswith("\n") or not source else source + "\n")
            line += sources[-1].count("\n")
        self.source = "".join(sources)
        self.space = space
        self.used: Collection[str] = ()
        self.assigned: Collection[str] = ()
        self.why = ""

    def place(self, line: int) -> str:
        """Where a line is, for people, such as "main.py:3"."""
        at = max(0, bisect_right(self._starts, line) - 1)
        return f"{self._names[at]}:{line - self._starts[at] + 1}"

    def may_change(self, package: str, patched: bool = False) -> str:
        """Why it may change a package, or assign to parts of it, though no source says so; empty if it does not."""
        changed = self.assigned if patched else self.used
        return self.why if package in changed or ANY in changed else ""


def without_source(why: str, used: Collection[str], assigned: Collection[str] | None = None) -> ProgramText:
    """A text that has no source. why: the reason, for people."""
    made = ProgramText((), {})
    made.why, made.used, made.assigned = MAYBE + why, used, used if assigned is None else assigned
    return made


def unreadable(why: str) -> ProgramText:
    """A text of which nothing is known."""
    return without_source(why, (ANY,))


@lru_cache(maxsize=4096)
def text_of_module(module: ModuleType, times: int) -> ProgramText:
    """The text of a module as it ran. times: how often its file has been run, as far as anybody has seen."""
    space = vars(module)
    file = space.get("__file__")
    executed = files.get(file) if isinstance(file, str) else None
    name = _name_of(file) if isinstance(file, str) else str(space.get("__name__"))
    if isinstance(file, str) and file.endswith(tuple(EXTENSION_SUFFIXES)):
        return ProgramText((), space)  # native code: its file is in keys
    source = _source_of(module, file)
    if isinstance(file, str) and not _is_as_it_ran(file, source, executed, space.get("__cached__")):
        why, code = f"{name} may have been written to since it was run", None
    elif source is not None:
        return ProgramText([(name, source)], space)
    else:
        why, code = f"{name} has no text that can be read", _code_of(module)
    code = code if executed is None else executed.code
    return unreadable(why) if code is None else text_of_code([code], space, why)


@lru_cache(maxsize=4096)
def text_of_file(file: str, times: int, main: int) -> ProgramText:
    """The text of a file that was run and is no module any more: names in it are those of the program's main module.

    main: the identity of that module's names.
    """
    space, executed = space_of_main(), files[file]
    source = _read(file)
    if source is not None and _is_as_it_ran(file, source, executed, None):
        return ProgramText([(_name_of(file), source)], space)
    return text_of_code([executed.code], space, f"{_name_of(file)} has no text that can be read any more")


def space_of_main() -> dict[str, Any]:
    """What the names of the main module stand for."""
    return vars(sys.modules["__main__"]) if "__main__" in sys.modules else {}


def _name_of(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2]


# sources


def _source_of(module: ModuleType, file: object) -> str | None:
    """The source of a module: what its loader says it is, or what lies in its file; None if there is none."""
    loader = _loader_of(module)
    if type(loader) is SourceFileLoader and isinstance(file, str):
        return _read(file)
    with contextlib.suppress(Exception):  # loaders are anybody's
        source = loader.get_source(_name_for(loader, module))
        if isinstance(source, str):
            return source if len(source) <= _LONGEST else None
    return _read(file) if isinstance(file, str) else None


def _loader_of(module: ModuleType) -> Any:
    space = vars(module)
    return space.get("__loader__") or getattr(space.get("__spec__"), "loader", None)


def _name_for(loader: object, module: ModuleType) -> str:
    """The name by which a loader knows a module; that of a main module is another one than it has."""
    spec = vars(module).get("__spec__")
    return str(getattr(loader, "name", None) or getattr(spec, "name", None) or vars(module).get("__name__"))


def _read(file: str) -> str | None:
    """The source in a file; None if there is none to be had."""
    if file.endswith(".pyc"):
        return None
    try:
        with open(file, "rb") as opened:
            found = opened.read(_LONGEST + 1)
        return None if len(found) > _LONGEST else decoded(found)
    except (OSError, ValueError, SyntaxError, LookupError):
        return None


def decoded(source: bytes) -> str:
    """A source as the text that Python makes of it: its first lines may say how it is encoded."""
    if source.startswith(b"\xef\xbb\xbf") or b"coding" in source[:400]:
        from importlib.util import decode_source  # few sources say so, and it loads what reads tokens

        return decode_source(source)
    return source.decode("utf-8")


# code


def _code_of(module: ModuleType) -> CodeType | None:
    """The code of a module that has no source, such as one that was compiled; None if its loader has none."""
    loader = _loader_of(module)
    with contextlib.suppress(Exception):
        code = loader.get_code(_name_for(loader, module))
        return code if isinstance(code, CodeType) else None
    return None


def text_of_code(found: Iterable[CodeType], space: dict[str, Any], why: str) -> ProgramText:
    """A text for code that has no source: what it may change is what it uses. why: the reason that it has none."""
    from nectar.keys.statements import changed_by_code  # most programs have sources, and `dis` takes long to load

    return without_source(why, *changed_by_code(list(found), space))


# what ran


def _is_as_it_ran(file: str, source: str | None, executed: Executed | None, compiled: object) -> bool:
    """Whether what lies in a file is what was run of it, as far as its times tell; compared if they leave a doubt."""
    try:
        status = os.stat(file)
    except OSError:  # within an archive, or deleted: what its loader gives is all there is
        return True
    since = executed.when - _COARSE if executed is not None and executed.when else _BEGAN
    if not since or status.st_mtime_ns < since:
        return True
    if executed is not None:
        return source is not None and _is_source_of(executed.code, source, file)
    return sys.dont_write_bytecode or not isinstance(compiled, str) or _may_be_compiled_from(compiled, status)


def _is_source_of(code: CodeType, source: str, file: str) -> bool:
    try:
        return compile(source, file, "exec", dont_inherit=True, optimize=-1) == code
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _may_be_compiled_from(compiled: str, status: os.stat_result) -> bool:
    """Whether compiled code was made from a source with these times and this size, or is not there to tell."""
    try:
        with open(compiled, "rb") as opened:
            head = opened.read(16)
    except OSError:
        return True
    made = [int.from_bytes(head[at : at + 4], "little") for at in (4, 8, 12)]
    return made == [0, int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF]


def _beginning_of_process() -> int:
    """When this process began, in nanoseconds, rather a little later than earlier; 0 where nobody knows."""
    try:
        with open("/proc/self/stat", "rb") as opened:
            ticks = int(opened.read().rpartition(b")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0
    return int((time.time() - age) * 1e9) + _TICK


_BEGAN: Final = _beginning_of_process()  # before a fork: children have loaded nothing anew
