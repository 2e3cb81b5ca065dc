"""Places in a program that run queries, and what is known of each; also from earlier processes.

In: what happened at a site. Out: Site. What was learned is one small file for each program, read before anything else
of Nectar is loaded: a program whose queries are all quick must not wait for a catalog. It holds guesses and nothing
that an answer depends on; one that is lost, damaged or old costs time.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from nectar.trust.files import make_folder, read, replace
from nectar.trust.home import access_of
from nectar.trust.secrets import logger
from nectar.waiting.answering import UnansweredError, ask

try:
    from _blake2 import blake2b  # hashlib loads OpenSSL, which takes longer than everything else here
except ImportError:
    from hashlib import blake2b

_log: Final = logger("nectar")
RECENT: Final = 0.25  # what the latest run counts among those before it
ENOUGH: Final = 3  # looks at calls that say what one costs: the first takes longer, and says little
_MOST: Final = 2_000  # sites that are remembered of a program
_MOST_PLACES: Final = 4 * _MOST  # instructions that are known; each holds its code
_MOST_PROGRAMS: Final = 500
_LONG_NAME: Final = 32 + len(".json")  # of a file; others in the folder are not ours
_LONGEST: Final = 1 << 20  # bytes of what is remembered of a program
_USUAL: Final = 10e-3  # seconds that looks take, most of them
_NOT_THE_PROGRAM: Final = ("polars", "pyspark", "grpc", "nectar")
_MOST_LOOKS: Final = 32  # beyond which older ones count half
_APART: Final = 8.0  # times what others take, for queries to be told apart by their callers
_LONG: Final = 0.1  # seconds that one of them takes at least
_CALLED: Final = " called at "
_MOST_CREDIT: Final = 5.0  # seconds: a function that has become quick is not looked at for ever


class Site:
    """A place in a program. seconds: what a query takes there without Nectar, the latest runs counting most.

    runs: how many have shown that. looks: how often Nectar looked for results. hits: how often it found one; one of a
    part counts as the share of the query's time that it saves. cost: seconds that a look takes. kept_before, kept_now:
    whether something from there was kept by an earlier process, or by this one. tries: looks in this process. limit: as
    long as queries there take no more seconds they are left alone, and nothing else is asked. is_function: it stands
    for all calls of a memoised function, of which the cost is remembered. credit: seconds that looks at these may take.
    is_known: an earlier process has looked at them. is_shared: what runs there is told apart by who called.
    """

    __slots__ = (
        "cost", "credit", "hits", "is_function", "is_known", "is_shared", "kept_before", "kept_now", "limit", "looks",
        "name", "runs", "seconds", "tries",
    )  # fmt: skip

    def __init__(
        self, name: str, seconds: float = 0.0, runs: int = 0, looks: int = 0, hits: float = 0.0,
        kept_before: bool = False, cost: float = 0.0, credit: float = 0.0,
    ) -> None:  # fmt: skip
        self.name, self.seconds, self.runs, self.looks, self.hits = name, seconds, runs, looks, hits
        self.kept_before, self.kept_now = kept_before, False
        self.is_function = self.is_known = cost > 0.0
        self.is_shared = False
        self.cost, self.credit, self.limit = cost, credit, 0.0
        self.tries = ENOUGH if cost else 0

    def ran(self, seconds: float) -> None:
        """A query took so long without Nectar, or would have."""
        self.seconds += (seconds - self.seconds) * (RECENT if self.runs else 1.0)
        self.runs += 1

    def earn(self, seconds: float) -> None:
        """Looks may take so many seconds more; fewer, if it is a negative number."""
        self.credit = min(_MOST_CREDIT, self.credit + seconds)

    def looked(self, found: float, cost: float) -> None:
        """Nectar has looked for results, and found so much of what the query takes: 1 if nothing had to be computed."""
        self.limit = 0.0
        self.looks += 1
        self.tries += 1
        self.hits += found
        self.cost += (cost - self.cost) * (RECENT if self.cost else 1.0)
        if self.looks > _MOST_LOOKS:
            self.looks, self.hits = self.looks // 2, self.hits / 2

    @property
    def chance(self) -> float:
        """What share of a query's time a look is likely to save. What was kept may well be asked for again, or grow."""
        kept = self.kept_before or self.kept_now
        asked = self.looks + kept
        return (self.hits + 0.5 * kept) / asked if asked else 0.0


_between: Final[set[str]] = set()  # names of modules that lie between programs and Nectar, once they were met


def frame_of_program() -> FrameType | None:
    """The frame nearest to the call that is the program's, and neither of an engine nor of Nectar."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if type(name) is not str or (name not in _between and _is_of_program(name)):
            return frame
        frame = frame.f_back
    return None


def _is_of_program(module: str) -> bool:
    if module.partition(".")[0] not in _NOT_THE_PROGRAM:
        return True
    _between.add(module)
    return False


def is_own() -> bool:
    """Whether Nectar itself, and not the program, has asked the engine that calls this: such as to write a result."""
    frame: FrameType | None = sys._getframe(1)
    asked = False  # the frames of the engine have been left
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package == "nectar" and asked:
            return True
        if package not in _NOT_THE_PROGRAM:
            return False
        asked = asked or package != "nectar"
        frame = frame.f_back
    return False


def _name_of(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _depth_of(frame: FrameType | None) -> int:
    """How many frames lie between a frame and the caller of this."""
    between: FrameType | None = sys._getframe(1)
    depth = 0
    while between is not None and between is not frame:
        between = between.f_back
        depth += 1
    return depth


class Sites:
    """The sites of one program. folder: where what is known of programs lies; None if it is not to be remembered.

    patience: seconds that anybody waits for that folder; what does not answer is asked no more.
    """

    def __init__(self, folder: Path | None, program: str | None = None, patience: float = 1.0) -> None:
        self._patience = patience
        self._folder, self._program = folder, program
        self._path: Path | None = None
        self._known: dict[tuple[str, int], Site] = {}
        # The same by instructions, which takes less to look up. Code is held, so that none has the same number.
        self._places: dict[tuple[int, int], tuple[Site, CodeType]] = {}
        self._callers: dict[tuple[int, int, str], tuple[Site, CodeType]] = {}
        self._shared: frozenset[str] = frozenset()  # names of sites that an earlier process has told apart
        self._remembered: dict[str, Any] | None = None
        self._promise: float | None = None
        self._depth = 0  # of the program, seen from `here`, when somebody last asked
        self.figures: dict[str, float] = {}  # other things measured, by name
        self.sums: dict[str, float] = {}  # of all processes, by what was counted

    def here(self) -> Site:
        """The site of the program that this is called for, as `frame_of_program` finds it.

        Looked for first as many frames away as the last time: which frames are the program's need not be asked then.
        """
        try:
            frame = sys._getframe(self._depth)
            found = self._places.get((id(frame.f_code), frame.f_lasti))
            if found is not None:
                site = found[0]
                return self._called_from(site, frame) if site.is_shared else site
        except ValueError:  # there are fewer frames
            pass
        program = frame_of_program()
        self._depth = _depth_of(program)
        return self.at(program)

    def at(self, frame: FrameType | None) -> Site:
        """The site of a frame."""
        if frame is None:
            return self.named("")
        code = frame.f_code
        place = id(code), frame.f_lasti
        found = self._places.get(place)
        if found is None:
            where = (code.co_filename, frame.f_lineno)
            if len(self._places) >= _MOST_PLACES:  # the same lines, compiled again and again
                self._places.clear()
            found = self._places[place] = (self._known.get(where) or self._new(where), code)
        return self._called_from(found[0], frame) if found[0].is_shared else found[0]

    def apart(self, site: Site, seconds: float) -> Site:
        """The site of a query that runs now: by who called, if others took much more or less time where it stands.

        Many programs have one function that runs all of their queries: its line says nothing of how long one takes. On
        a busy machine queries may be told apart without need, which costs a look at each.
        """
        less, more = sorted((seconds, site.seconds))
        if not site.runs or more < _LONG or more < _APART * less:
            return site
        frame = frame_of_program()
        if frame is None or site.name != _name_of(frame):  # in a thread that the program did not start
            return site
        site.is_shared = True
        return self._called_from(site, frame)

    def _called_from(self, site: Site, frame: FrameType) -> Site:
        """The part of a site that stands for one place from where it is called."""
        caller = frame.f_back
        if caller is None:
            return site
        place = id(caller.f_code), caller.f_lasti, site.name
        found = self._callers.get(place)
        if found is None:
            if len(self._callers) >= _MOST_PLACES:
                self._callers.clear()
            where = (f"{site.name}{_CALLED}{caller.f_code.co_filename}", caller.f_lineno)
            found = self._callers[place] = (self._known.get(where) or self._new(where), caller.f_code)
        return found[0]

    def named(self, name: str) -> Site:
        """The site of a function, wherever it is called."""
        return self._known.get((name, 0)) or self._new((name, 0))

    @property
    def promise(self) -> float:
        """Seconds that one look at each site is expected to save, as far as earlier processes know."""
        if self._promise is None:
            if self._remembered is None:
                self._load()
            sites = [Site(name, *before) for name, before in (self._remembered or {}).items()]
            self._promise = sum(site.seconds * site.chance for site in sites)
        return self._promise

    def _new(self, where: tuple[str, int]) -> Site:
        if self._remembered is None:
            self._load()
        if len(self._known) >= 2 * _MOST:  # code that is made while the program runs
            self._known.clear()
            self._places.clear()
            self._callers.clear()
        name = f"{where[0]}:{where[1]}"
        before = (self._remembered or {}).get(name)
        site = self._known[where] = Site(name, *before) if before else Site(name)
        site.is_shared = name in self._shared
        return site

    def _load(self) -> None:
        self._remembered = {}
        program = _program() if self._program is None else self._program
        if self._folder is not None and program:
            name = blake2b(os.fsencode(program), digest_size=16).hexdigest()
            self._path = self._folder / f"{name}.json"
        try:
            if self._path is not None:
                found = json.loads(ask(partial(read, self._path, _LONGEST), self._patience))
                self.figures.update(_numbers(found["figures"]))
                self.figures["look"] = min(self.figures.get("look", _USUAL), _USUAL)  # it may have been an exception
                self.sums.update(_numbers(found.get("sums", {})))
                self._remembered = {
                    str(name): (float(seconds), 1, int(looks), float(hits), bool(kept), *map(float, cost))
                    for name, (seconds, looks, hits, kept, *cost) in found["sites"].items()
                }
                callers = (name.rpartition(_CALLED) for name in self._remembered)
                self._shared = frozenset(site for site, called, _ in callers if called)
        except FileNotFoundError:
            pass
        except UnansweredError:
            self._path = None
        except Exception as error:  # it is a help, and no more
            _log.debug("nothing is remembered of this program: %s", error)

    def remember(self, counted: Mapping[str, float] = {}) -> None:
        """Later processes know what this one has learned. counted: what is added to the sums."""
        if self._path is None or self._remembered is None:
            return
        before = self._remembered.items()
        sites = {name: (seconds, *others) for name, (seconds, _, *others) in before}
        for site in list(self._known.values()):
            if site.runs:
                sites.pop(site.name, None)  # so that it stands among the latest
                kept = site.kept_before or site.kept_now
                cost = (site.cost, site.credit) if site.is_function else (0.0,)
                sites[site.name] = (site.seconds, site.looks, site.hits, kept, *cost)
        for name, value in counted.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        latest = dict(list(sites.items())[-_MOST:])
        text = json.dumps({"figures": self.figures, "sums": self.sums, "sites": latest})
        try:
            ask(partial(_write, self._path, text.encode()), self._patience)
        except (OSError, UnansweredError) as error:
            _log.debug("nothing of this program is remembered: %s", error)


def _write(path: Path, content: bytes) -> None:
    access = access_of(path.parent.parent)
    if access is None:  # somebody has deleted the home, or it is one of others
        return
    make_folder(path.parent, access)
    _make_room(path.parent)
    replace(path, content, access)


def sums_of_all(folder: Path) -> dict[str, float]:
    """What was counted in the processes of all programs that are remembered."""
    found: dict[str, float] = {}
    for path in folder.glob("*.json"):
        try:
            for name, value in _numbers(json.loads(read(path)).get("sums", {})).items():
                found[name] = found.get(name, 0.0) + value
        except Exception as error:  # it is a help, and no more
            _log.debug("%s is left out: %s", path, error)
    return found


def _numbers(found: Mapping[str, Any]) -> dict[str, float]:
    return {str(name): float(value) for name, value in found.items()}


def _make_room(folder: Path) -> None:
    """Of too many programs those go that have not run for longest."""
    files = [path for path in folder.iterdir() if len(path.name) == _LONG_NAME and path.name.endswith(".json")]
    if len(files) > _MOST_PROGRAMS:
        for path in sorted(files, key=lambda path: path.stat().st_mtime)[: len(files) - _MOST_PROGRAMS]:
            path.unlink(missing_ok=True)


def _program() -> str:
    """The file that this process runs; empty if there is none, as where somebody types."""
    file = sys.argv[0] if sys.argv else ""
    return os.path.abspath(file) if os.path.isfile(file) else ""
