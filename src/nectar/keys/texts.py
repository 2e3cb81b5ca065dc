"""The texts of the program: the sources of its modules, and of code that lies in none.

Out: a ProgramText for each module of the application, for each file that was run without becoming a module of the
process (plugins, `%run`, `runpy`), and one for what people typed: the cells of a notebook, or the text of `python -c`
and of `python <`. Law: what has run and cannot be read is among them, and may change anything.
"""

from __future__ import annotations

import ast
import os
import stat
import sys
from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache
from importlib.machinery import BuiltinImporter, NamespaceLoader
from types import ModuleType
from typing import Final

from nectar.keys import executed, unlisted
from nectar.keys.executed import CELLS, is_of_application
from nectar.keys.program_text import (
    ProgramText,
    decoded,
    space_of_main,
    text_of_code,
    text_of_file,
    text_of_module,
    unreadable,
    without_source,
)

_INPUT: Final = "<stdin>"  # the name of the file of a main module that Python reads from its input
_LONGEST: Final = 4 << 20  # bytes of a source
_WITH_VALUE: Final = ("--", "-W", "-X")  # options of Python that hold other things than letters
# Texts of `python -c` that run what another process hands them, which that process has read: workers of execnet.
_LAUNCHERS: Final = frozenset({"import sys;exec(eval(sys.stdin.readline()))"})
_cells: Final[dict[str, str]] = {}  # that were ever seen


def version_of_program() -> Hashable:
    """Another value whenever the program may have further texts."""
    return len(sys.modules), next(reversed(sys.modules)), executed.count()


@lru_cache(maxsize=1)
def program_texts(version: Hashable) -> tuple[ProgramText, ...]:
    """All texts of the program as it is at a version, which is the present one."""
    executed.listen()
    listed = [each for each in list(sys.modules.values()) if issubclass(type(each), ModuleType)]
    modules = [each for each in (*listed, *_unlisted()) if _has_text(each)]
    found = [text_of_module(each, executed.times(vars(each)["__file__"])) for each in modules]
    found += [text_of_module(each, 0) for each in listed if _is_hidden(each)]
    found += _of_files_that_ran({vars(each)["__file__"] for each in modules})
    found += _of_what_was_typed()
    found += map(unreadable, executed.forgotten)
    return tuple(found)


def _has_text(module: ModuleType) -> bool:
    """Whether a module is the program's, and lies in a file; that of a text from the input is none."""
    file = vars(module).get("__file__")
    if not isinstance(file, str) or not is_of_application(file) or file == _INPUT:
        return False
    return os.path.isabs(file) or not _is_part_of_library(module)  # libraries invent names of files for some of theirs


def _is_part_of_library(module: ModuleType) -> bool:
    """Whether a module goes by a name within a package that is not the program's."""
    name = str(vars(module).get("__name__"))
    top = name.partition(".")[0]
    package = sys.modules.get(top)
    file = vars(package).get("__file__") if isinstance(package, ModuleType) and top != name else None
    return top in sys.stdlib_module_names or (file is not None and not is_of_application(file))


@lru_cache(maxsize=1)
def _unlisted() -> list[ModuleType]:
    """Modules in no list that were there at the first look; what is loaded later is noticed."""
    return unlisted.loaded_from_files()


def _of_files_that_ran(covered: set[str]) -> Iterator[ProgramText]:
    """Texts of files that were run and of which no module in a list is left."""
    for file, ran in list(executed.files.items()):
        if file in covered:
            continue
        module = None if ran.module is None else ran.module()
        if module is None:
            yield text_of_file(file, ran.times, id(space_of_main()))
        else:
            yield text_of_module(module, ran.times)


def _is_hidden(module: ModuleType) -> bool:
    """Whether a module was put together by a loader that names no file: one of the program, for all that is known."""
    space = vars(module)
    if space.get("__file__") is not None or space.get("__name__") == "__main__":
        return False
    loader = getattr(space.get("__spec__"), "loader", None)
    is_usual = loader is None or loader is BuiltinImporter or isinstance(loader, NamespaceLoader)
    return not is_usual and not _is_part_of_library(module)


# what people typed


def _of_what_was_typed() -> Iterator[ProgramText]:
    typed = tuple(_typed())
    if typed:
        yield ProgramText(typed, space_of_main())
    if executed.statements:
        yield text_of_code(executed.statements, space_of_main(), "what was typed has no text that can be read")
    if executed.before:
        why = "what was typed before nectar was imported has no text"
        yield without_source(why, frozenset(_libraries(executed.before)))


def _libraries(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        module = sys.modules.get(name)
        is_standard = name in sys.stdlib_module_names or name == "nectar"
        if not is_standard and module is not None and not is_of_application(vars(module).get("__file__")):
            yield name


def _typed() -> Iterator[tuple[str, str]]:
    """Texts that lie in no file, each with a name for people; those that are no Python never ran."""
    file = space_of_main().get("__file__")
    if file is None or file == _INPUT:
        yield from _parsed(("-c", text) for text in _text_of_option() if text.strip() not in _LAUNCHERS)
        written = list(_parsed(("stdin", text) for text in _text_of_stdin()))
        if written:
            executed.drop_statements_of(_INPUT)
        yield from written
    cells = sys.modules.get("linecache")
    entries = [] if cells is None else list(cells.cache.items())
    _cells.update((name, "".join(entry[2])) for name, entry in entries if len(entry) == 4 and entry[1] is None)
    yield from _parsed((name, text) for name, text in _cells.items() if _is_typed(name))


def _is_typed(name: str) -> bool:
    """Whether a text that is known by a name is one that people typed, and not one that a library wrote."""
    return name.startswith(CELLS) or (name[:1] != "<" and is_of_application(name))


def _parsed(found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, text) for name, text in found if _is_python(text)]


@lru_cache(maxsize=4096)
def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _text_of_option() -> Iterator[str]:
    """The text of `python -c`."""
    options = sys.orig_argv[1:] if sys.argv[:1] == ["-c"] else []
    for at, option in enumerate(options):
        if option.startswith("-") and not option.startswith(_WITH_VALUE) and "c" in option:
            text = option.partition("c")[2]
            yield from [text] if text else options[at + 1 : at + 2]
            return


def _text_of_stdin() -> Iterator[str]:
    """What Python reads from a file that is its input."""
    if sys.argv[:1] not in (["-"], [""]):
        return
    try:
        if stat.S_ISREG(os.fstat(0).st_mode):
            found = os.pread(0, _LONGEST + 1, 0)
            yield from [] if len(found) > _LONGEST else [decoded(found)]
    except (OSError, ValueError, SyntaxError, LookupError):
        pass
