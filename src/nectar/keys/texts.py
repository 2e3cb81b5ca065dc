"""The texts of the program: the sources of its modules, and of code that lies in none.

Out: a Text for each module of the application, for each file that was run without becoming a module of the process
(plugins, `%run`, `runpy`), and one for what people typed: the cells of a notebook, or the text of `python -c` and of
`python <`. A module that was loaded again has a new Text. `version` is another value whenever there may be others.
"""

from __future__ import annotations

import ast
import gc
import os
import stat
import sys
import types
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from nectar.keys import unlisted

_STANDARD: Final = (
    os.path.join(os.path.dirname(os.__file__), ""),
    os.path.join(os.path.dirname(os.path.dirname(__file__)), ""),
)
_INSTALLED: Final = ("site-packages", "dist-packages")
_LONGEST: Final = 4 << 20  # characters of a source; what is longer is data
_CELLS: Final = ("<ipython-input-", "<python-input-", "<input", "<cell")
_CONSOLES: Final = ("<stdin>", "<console>", "<input>")
_CHANGED_BY_MANY: Final = {"os", "sys"}  # `os.environ`, `sys.path`: whoever reads those is refused, or keyed by them
_WITH_VALUE: Final = ("--", "-W", "-X")  # options of Python that hold other things than letters
_MOST: Final = 4096  # files that are remembered to have been run
_runs: Final[dict[str, int]] = {}  # of files, since somebody listens
_run = 0  # how many of them
_unread: Final[list[types.CodeType]] = []  # what people typed where nobody keeps the text
_listens = False
_found_at_first: Final[list[types.ModuleType]] = []  # modules in no list that were there before


class Text:
    """What the program is made of in one place. space: what its names stand for."""

    __slots__ = ("_names", "_starts", "source", "space")

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

    def place(self, line: int) -> str:
        """Where a line is, for people, such as "main.py:3"."""
        at = max(0, bisect_right(self._starts, line) - 1)
        return f"{self._names[at]}:{line - self._starts[at] + 1}"


def version() -> Hashable:
    """Another value whenever the program may have further texts."""
    cells = sys.modules.get("linecache")
    return len(sys.modules), next(reversed(sys.modules)), _run, 0 if cells is None else len(cells.cache)


@lru_cache(maxsize=1)
def texts(version: Hashable) -> tuple[Text, ...]:
    """All texts of the program as it is at a version, which is the present one."""
    listed = [each for each in list(sys.modules.values()) if type(each) is types.ModuleType]
    modules = [each for each in listed if is_of_application(vars(each).get("__file__"))]
    if not _listens:
        _listen()
        sources = (_of_module(each, _times(each)).source for each in modules)
        _found_at_first.extend(unlisted.loaded_from_files(sources))
    modules += [each for each in _found_at_first if is_of_application(vars(each).get("__file__"))]
    found = [_of_module(each, _times(each)) for each in modules]
    covered = {vars(each)["__file__"] for each in modules}
    others = [file for file in list(_runs) if file not in covered and is_of_application(file)]
    spaces = _spaces_of(others) if others else {}
    found += [_of_file(file, _runs.get(file, 0), spaces.get(file, _Space(_space_of_main()))) for file in others]
    typed = tuple(_typed())
    return (*found, Text(typed, _space_of_main())) if typed else tuple(found)


def is_of_application(file: object) -> bool:
    """Whether a file is the program's, told by its path: to ask whose each file is would take long."""
    return isinstance(file, str) and not file.startswith(_STANDARD) and not any(each in file for each in _INSTALLED)


# files


class _Space:
    """What the names of a file stand for, known by what it is and not by what is in it."""

    __slots__ = ("names",)

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names

    def __hash__(self) -> int:
        return id(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Space) and other.names is self.names


def _times(module: types.ModuleType) -> int:
    return _runs.get(vars(module).get("__file__") or "", 0)


@lru_cache(maxsize=1024)
def _of_module(module: types.ModuleType, times: int) -> Text:
    """times: how often its file has been run since somebody listens."""
    file = vars(module)["__file__"]
    return Text([(_name_of(file), _read(file))], vars(module))


@lru_cache(maxsize=1024)
def _of_file(file: str, times: int, space: _Space) -> Text:
    return Text([(_name_of(file), _read(file))], space.names)


def _spaces_of(files: Iterable[str]) -> dict[str, _Space]:
    """What the names in files stand for that were run, as far as modules are left of that."""
    modules = (each for each in gc.get_objects() if type(each) is types.ModuleType)
    found = {vars(each).get("__file__"): _Space(vars(each)) for each in modules}
    return {file: found[file] for file in files if file in found}


def _name_of(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2]


def _read(file: str) -> str:
    """The source in a file; empty if there is none to be had."""
    if not file.endswith(".py"):
        return ""
    try:
        with open(file, "rb") as opened:
            return opened.read(_LONGEST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _listen() -> None:
    """From now on it is noticed when files are run, and what people type."""
    global _listens
    _listens = True
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        _note(frame.f_code)
        frame = frame.f_back
    sys.addaudithook(_heard)


def _note(code: types.CodeType) -> None:
    """Takes up what was typed; that several thousand statements were is known, and not what all of them were."""
    global _run
    if code.co_filename in _CONSOLES and code.co_name == "<module>" and len(_unread) < _MOST:
        _unread.append(code)
        _run += 1


def _heard(event: str, args: tuple[Any, ...]) -> None:
    """Counts files that are run; texts that are run have no name of a file, and libraries run many of them."""
    global _run
    if event != "exec" or getattr(args[0], "co_name", "") != "<module>":
        return
    file = args[0].co_filename
    if file[:1] == "<":
        _note(args[0])
    else:
        if len(_runs) >= _MOST:
            _runs.clear()
        _runs[file] = _runs.get(file, 0) + 1
        _run += 1


# what people typed


def _space_of_main() -> dict[str, Any]:
    return vars(sys.modules["__main__"]) if "__main__" in sys.modules else {}


def _typed() -> Iterator[tuple[str, str]]:
    """Texts that lie in no file, each with a name for people; those that are no Python are left out."""
    file = _space_of_main().get("__file__")
    if file is None or file == "<stdin>":
        yield from _parsed(("-c", text) for text in _text_of_option() if not _is_launcher(text))
        written = list(_parsed(("stdin", text) for text in _text_of_stdin()))
        if written:
            _unread.clear()
        yield from written
    if _unread:
        yield from _of_statements(_unread)
    cells = sys.modules.get("linecache")
    entries = [] if cells is None else list(cells.cache.items())
    made = [(name, "".join(entry[2])) for name, entry in entries if len(entry) == 4 and entry[1] is None]
    yield from _parsed((name, text) for name, text in made if _is_typed(name))


def _is_typed(name: str) -> bool:
    """Whether a text that is known by a name is one that people typed, and not one that a library wrote."""
    return name.startswith(_CELLS) or (name[:1] != "<" and is_of_application(name))


def _parsed(found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, text) for name, text in found if _is_python(text)]


@lru_cache(maxsize=4096)
def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _is_launcher(text: str) -> bool:
    """Whether a text runs what it is told from outside, as those do that begin processes of a pool."""
    return _is_python(text) and any(unlisted.run_unseen(ast.parse(text)))


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
            yield os.pread(0, _LONGEST, 0).decode("utf-8", "replace")
    except OSError:
        pass


def _of_statements(found: Iterable[types.CodeType]) -> Iterator[tuple[str, str]]:
    """Texts for statements of which nobody has the text: what they assign to may be any table of a library."""
    from nectar.keys.statements import assigned_to  # few programs are typed, and `dis` takes long to load

    space = _space_of_main()
    meant = (space.get(name) for name in assigned_to(found))
    modules = [vars(each) for each in meant if isinstance(each, types.ModuleType)]
    libraries = {each["__name__"].partition(".")[0] for each in modules if not is_of_application(each.get("__file__"))}
    for package in sorted(libraries - _CHANGED_BY_MANY):
        yield "typed", f"import {package}\n{package}.TABLES[0] = 0\n"
