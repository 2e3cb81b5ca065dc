"""What library code reads while a computation runs: the clock, random numbers, the environment, a context.

For Python 3.11; monitoring.py is for later ones. In: code of libraries that holds such sources and that the computation
may run (reach.py). Out: texts about what was read, and where. The profiler of the standard library follows every call
of the thread and makes Python code two to four times slower; only computations that may run such code pay for it. What
the application's own code calls is judged without running it.
"""

from __future__ import annotations

import functools
import os
import random
import re
import sys
from _lsprof import Profiler
from collections.abc import Collection, Iterable, Iterator, Mapping
from threading import get_ident
from types import CodeType, FrameType
from typing import Any, Final

from nectar.keys import declared
from nectar.keys.preferences import PREFERENCES
from nectar.observation import hook
from nectar.observation.process import is_being_imported
from nectar.observation.reach import CONTEXT, JUDGED, SILENT, WORDS, Source

_CLOCK, _RANDOM, _ENVIRONMENT = WORDS["clock"], WORDS["random"], WORDS["environment"]
# By the texts under which the profiler reports functions that are not written in Python.
_BUILTINS: Final[dict[object, str]] = {
    **{f"<built-in method time.{name}>": _CLOCK for name in ("time", "time_ns", "localtime", "gmtime", "ctime")},
    **{f"<built-in method time.{name}>": _CLOCK for name in ("asctime", "strftime", "clock_gettime")},
    **{f"<built-in method {name}>": _CLOCK for name in ("now", "utcnow", "today")},
    **{f"<built-in method {name}>": _RANDOM for name in ("posix.urandom", "nt.urandom", "posix.getrandom")},
    **{
        f"<built-in method posix.{name}>": _ENVIRONMENT
        for name in ("getcwd", "uname", "getlogin", "get_terminal_size", "getuid", "getloadavg")
    },
    "<built-in method _socket.gethostname>": _ENVIRONMENT,
    "<method 'get' of '_contextvars.ContextVar' objects>": CONTEXT,
    "<built-in method _contextvars.copy_context>": CONTEXT,
}
_environ: Any = type(os.environ)
FUNCTIONS: Final[dict[object, str]] = {
    _environ.__getitem__.__code__: _ENVIRONMENT,
    _environ.__iter__.__code__: _ENVIRONMENT,
    random.Random.seed.__code__: _RANDOM,  # by None, it takes one from the system
}
_FAKE_CLOCK: Final = re.compile(r".*[/\\\\]freezegun[/\\\\]api\.py")  # a clock that tests set is a clock
_OF_FAKE_CLOCK: Final = frozenset({"now", "utcnow", "today", *(f"fake_{name}" for name in ("time", "time_ns"))}) | {
    f"fake_{name}" for name in ("localtime", "gmtime", "strftime")
}
# Code that reads a source and does not show it, by the end of its file: it is judged by the texts that it takes; it
# names things apart; it takes the time that something takes; it makes a generator from a seed (NumPy draws one first).
_HIDES: Final = {
    ("dateutil/parser/_parser.py", "parser.parse"),
    ("dateutil/parser/_parser.py", "parserinfo.__init__"),
    ("sklearn/callback/_callback_context.py", "CallbackContext._from_estimator"),
    ("sklearn/callback/_callback_context.py", "CallbackContext._from_parent"),
    ("sklearn/model_selection/_validation.py", "_fit_and_score"),
    ("sklearn/model_selection/_validation.py", "_score"),
    ("sklearn/utils/validation.py", "check_random_state"),
    ("scipy/_lib/_util.py", "check_random_state"),
    ("statsmodels/tools/rng_qrng.py", "check_random_state"),
    ("networkx/utils/misc.py", "create_random_state"),
    ("networkx/utils/misc.py", "create_py_random_state"),
}
_ASKS_FOR_THREADS: Final = frozenset({"sklearn"})  # all that it asks the environment for when it computes
_OF_FUNCTION: Final = 1  # a flag of code (inspect.CO_OPTIMIZED)
_OWN: Final = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_STANDARD: Final = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "")
_FROZEN: Final = re.compile(r"<frozen (\w+)")
_INSTALLED: Final = re.compile(r".*[/\\](?:site|dist)-packages[/\\](\w+)")
_GENERIC: Final = (Mapping.get.__code__.co_filename,)
_ENVIRONMENTS: Final = frozenset({"environ", "environb", "getenv"})
_running: Final[dict[int, list[Profile]]] = {}  # by thread, the innermost last


class Profile:
    """The calls of this thread from `begin` to `end`. sources: library code that it may come to."""

    def __init__(self, sources: Collection[Source]) -> None:
        self._always: dict[object, str] = {each.code: each.what for each in sources if each.always}
        self._holders: set[object] = {each.code for each in sources}
        self._profiler = Profiler()
        self._thread = 0
        self._found: dict[str, None] = {}
        self.complete = True  # nothing ran that may call Python code in other threads

    def begin(self) -> bool:
        """Notes calls from now on; False if somebody else does so already."""
        self._thread = get_ident()
        others = _running.get(self._thread)
        if others:
            others[-1]._profiler.disable()
        elif sys.getprofile() is not None:
            return False
        try:
            self._profiler.enable()
        except ValueError:  # from Python 3.12 on there is one for all threads
            return False
        _running.setdefault(self._thread, []).append(self)
        return True

    def end(self) -> None:
        """Notes no more calls; what was found belongs to the computation that this one is part of as well."""
        self._profiler.disable()
        running = _running[self._thread]
        running.remove(self)
        entries = self._profiler.getstats()
        self._found.update(dict.fromkeys(self._read(entries)))
        self.complete = self.complete and not any(map(_runs_a_query, entries))
        self._profiler.clear()
        if running:
            running[-1]._found.update(self._found)
            running[-1].complete = running[-1].complete and self.complete
            running[-1]._profiler.enable()
        else:
            del _running[self._thread]

    @property
    def found(self) -> list[str]:
        """What was read, each once, such as "reads the clock in Arrow.utcnow (arrow/arrow.py)"."""
        return list(self._found)

    def _read(self, entries: Iterable[Any]) -> Iterator[str]:
        callers: dict[object, list[object]] = {}
        for entry in entries:
            callers.setdefault(entry.code, [])
            for called in entry.calls or ():
                callers.setdefault(called.code, []).append(entry.code)
        for code in callers:
            if code in self._always:
                yield told(self._always[code], code)
            what = _BUILTINS.get(code) or FUNCTIONS.get(code) or _of_fake_clock(code)
            reader = self._reader(code, str(what), callers) if what else None
            if reader is not None:
                yield told(str(what), reader)

    def _reader(self, source: object, what: str, callers: dict[object, list[object]]) -> CodeType | None:
        """The library code that read a source, itself or by code of the standard library that only hands it on."""
        pending, seen = [source], set[object]()
        while pending:
            called = pending.pop()
            for caller in callers[called]:
                if caller in seen:
                    continue
                if not isinstance(caller, CodeType):  # such as sorted(), which calls what it was handed
                    seen.add(caller)
                    pending.append(caller)
                    continue
                if not self._may_have_read(caller, called):
                    continue
                seen.add(caller)
                found = is_reader(caller, what)
                if found and not _is_aside(caller, callers):
                    return caller
                if found is None:
                    pending.append(caller)
        return None

    def _may_have_read(self, caller: CodeType, called: object) -> bool:
        """Whether a call may lead to a source: Mapping.get() is called for much besides the environment."""
        if not isinstance(called, CodeType) or called.co_filename not in _GENERIC:
            return True
        return caller in self._holders or not _ENVIRONMENTS.isdisjoint(caller.co_names)


class Elsewhere:
    """The calls that threads of an engine make through `call`, from `begin` to `end`, of whichever computation."""

    def __init__(self, sources: Collection[Source]) -> None:
        self._sources = sources
        self._found: dict[str, None] = {}
        self._calls = self._lost = 0

    def begin(self) -> bool:
        """Notes calls from now on."""
        _elsewhere.append(self)
        return True

    def end(self) -> None:
        """Notes no more calls."""
        _elsewhere.remove(self)

    @property
    def found(self) -> list[str]:
        """What was read, each once."""
        return list(self._found)

    @property
    def complete(self) -> bool:
        """Whether there were calls, and all of them were followed."""
        return self._calls > 0 and not self._lost

    def note(self, found: Iterable[str] | None) -> None:
        """A call was made for this computation, or another one under way. found: None if it was not followed."""
        self._calls += 1
        self._lost += found is None
        self._found.update(dict.fromkeys(found or ()))


_elsewhere: Final[list[Elsewhere]] = []


def call(function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Calls a function in a thread of an engine; those who follow such calls know what library code read meanwhile."""
    followers = tuple(_elsewhere)
    if not followers:
        return function(*arguments, **options)
    profile = Profile([source for each in followers for source in each._sources])
    if not profile.begin():
        for each in followers:
            each.note(None)
        return function(*arguments, **options)
    try:
        return function(*arguments, **options)
    finally:
        profile.end()
        for each in followers:
            each.note(profile.found if profile.complete else None)


def _runs_a_query(entry: Any) -> bool:
    """Whether a query of Polars was run, whose functions are called in threads of Polars that nobody follows here."""
    return isinstance(entry.code, str) and "PyLazyFrame" in entry.code and "collect" in entry.code


def _is_aside(code: CodeType, callers: dict[object, list[object]]) -> bool:
    """Whether code ran for nobody but functions that people have declared to be pure, and modules being imported."""
    pure = declared.pure_code()
    pending: list[object] = [code]
    seen = set[object]()
    while pending:
        current = pending.pop()
        if current in seen or (isinstance(current, CodeType) and (current in pure or _is_run_by_import(current))):
            continue
        seen.add(current)
        if not callers[current]:  # the computation itself
            return False
        pending += callers[current]
    return True


def _is_run_by_import(code: CodeType) -> bool:
    """Whether code is that of a module, or of a class that stands in no function."""
    return code.co_name == "<module>" or not (code.co_flags & _OF_FUNCTION or "<locals>" in code.co_qualname)


def _of_fake_clock(code: object) -> str:
    is_one = isinstance(code, CodeType) and code.co_name in _OF_FAKE_CLOCK and _FAKE_CLOCK.match(code.co_filename)
    return _CLOCK if is_one else ""


def listen_to_draws() -> None:
    """From now on what generators draw from the system is noted: no name in any code tells that they do."""
    if random._urandom is os.urandom:  # type: ignore[attr-defined]
        random._urandom = _drawn  # type: ignore[attr-defined]


def _drawn(count: int) -> bytes:
    """Random bytes of the system, for `random.SystemRandom` and `secrets`."""
    if hook.is_watching():
        reader = reader_above(sys._getframe(1), _RANDOM)
        if reader is not None:
            hook.note_source(told(_RANDOM, reader))
    return os.urandom(count)


_drawn.__wrapped__ = os.urandom  # type: ignore[attr-defined]


def reader_above(frame: FrameType | None, what: str) -> CodeType | None:
    """The library code that reads, itself or by code of the standard library that only hands it on.

    None if it reads for modules that are being imported, or for functions that people have declared to be pure.
    """
    found: CodeType | None = None
    pure = declared.pure_code()
    while frame is not None:
        code = frame.f_code
        if code in pure or (code.co_name == "<module>" and is_being_imported(frame.f_globals)):
            return None
        if found is None:
            counts = is_reader(code, what)
            if counts is False:
                return None
            found = code if counts else None
        elif code.co_filename.startswith(_OWN):  # what called the computation
            break
        frame = frame.f_back
    return found


def is_reader(code: CodeType, what: str) -> bool | None:
    """Whether what code reads shows in results, so that it counts; None if code reads it for its caller.

    False for what the application reads by itself, which is judged elsewhere.
    """
    package = _package_of(code.co_filename)
    if package in JUDGED:
        return None
    if what == _ENVIRONMENT and package in _ASKS_FOR_THREADS:
        return False
    if what == CONTEXT and package in PREFERENCES:  # it stands in keys
        return False
    file = "/".join(code.co_filename.replace("\\", "/").split("/")[-3:])
    return bool(package) and package not in SILENT and (file, code.co_qualname) not in _HIDES


def told(what: str, code: Any) -> str:
    """For people: what was read, and where."""
    return f"{what} in {code.co_qualname} ({'/'.join(code.co_filename.split(os.sep)[-2:])})"


@functools.lru_cache(maxsize=1024)
def _package_of(file: str) -> str:
    """The package of the libraries that a file of code belongs to; empty for the application's."""
    frozen = _FROZEN.match(file)
    if frozen is not None:
        return frozen[1]
    if file.startswith(_OWN):
        return "nectar"
    installed = _INSTALLED.search(file)
    if installed is not None:
        return installed[1]
    standard = file.startswith(_STANDARD)
    return os.path.relpath(file, _STANDARD).partition(os.sep)[0].removesuffix(".py") if standard else ""
