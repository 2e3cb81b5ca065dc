"""Places in a program that run queries, and what is known of each; also from earlier processes.

In: what happened at a site. Out: Site. What was learned is one small file for each program, read before anything else
of Nectar is loaded: a program whose queries are all quick must not wait for a catalog. It holds guesses and nothing
that an answer depends on; one that is lost, damaged or old costs time.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final

_log: Final = logging.getLogger("nectar")
_RECENT: Final = 0.25  # what the latest run counts among those before it
_MOST: Final = 2_000  # sites that are remembered of a program
_MOST_PROGRAMS: Final = 500
_USUAL: Final = 10e-3  # seconds that looks take, most of them
_MOST_LOOKS: Final = 32  # beyond which older ones count half


class Site:
    """A place in a program. seconds: what a query takes there without Nectar, the latest runs counting most.

    runs: how many have shown that. looks, hits: how often Nectar looked for a result, and had one. cost: seconds that
    a look takes. kept: whether something from there was kept by an earlier process; keeps: by this one. tries: looks in
    this process.
    """

    __slots__ = ("cost", "hits", "kept", "keeps", "looks", "name", "runs", "seconds", "tries")

    def __init__(
        self, name: str, seconds: float = 0.0, runs: int = 0, looks: int = 0, hits: int = 0, kept: bool = False
    ) -> None:
        self.name, self.seconds, self.runs, self.looks, self.hits, self.kept = name, seconds, runs, looks, hits, kept
        self.keeps = False
        self.cost = 0.0
        self.tries = 0

    def ran(self, seconds: float) -> None:
        """A query took so long without Nectar, or would have."""
        self.seconds += (seconds - self.seconds) * (_RECENT if self.runs else 1.0)
        self.runs += 1

    def looked(self, hit: bool, cost: float) -> None:
        """Nectar has looked for a result."""
        self.looks += 1
        self.tries += 1
        self.hits += hit
        self.cost += (cost - self.cost) * (_RECENT if self.cost else 1.0)
        if self.looks > _MOST_LOOKS:
            self.looks, self.hits = self.looks // 2, self.hits // 2

    @property
    def chance(self) -> float:
        """How likely a look finds something. What an earlier process has kept may well be asked for again."""
        asked = self.looks + self.kept
        return (self.hits + 0.5 * self.kept) / asked if asked else 0.0


class Sites:
    """The sites of one program. folder: where what is known of programs lies; None if it is not to be remembered."""

    def __init__(self, folder: Path | None, program: str | None = None) -> None:
        self._folder, self._program = folder, program
        self._path: Path | None = None
        self._known: dict[tuple[str, int], Site] = {}
        self._remembered: dict[str, Any] | None = None
        self.figures: dict[str, float] = {}  # other things measured, by name
        self.sums: dict[str, float] = {}  # of all processes, by what was counted

    def at(self, frame: FrameType | None) -> Site:
        """The site of a frame."""
        where = ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        return self._known.get(where) or self._new(where)

    def named(self, name: str) -> Site:
        """The site of a function, wherever it is called."""
        return self._known.get((name, 0)) or self._new((name, 0))

    def _new(self, where: tuple[str, int]) -> Site:
        if self._remembered is None:
            self._load()
        if len(self._known) >= 2 * _MOST:  # code that is made while the program runs
            self._known.clear()
        name = f"{where[0]}:{where[1]}"
        before = (self._remembered or {}).get(name)
        site = self._known[where] = Site(name, *before) if before else Site(name)
        return site

    def _load(self) -> None:
        self._remembered = {}
        program = _program() if self._program is None else self._program
        if self._folder is not None and program:
            name = hashlib.blake2b(os.fsencode(program), digest_size=16).hexdigest()
            self._path = self._folder / f"{name}.json"
        try:
            if self._path is not None:
                found = json.loads(self._path.read_bytes())
                self.figures.update(_numbers(found["figures"]))
                self.figures["look"] = min(self.figures.get("look", _USUAL), _USUAL)  # it may have been an exception
                self.sums.update(_numbers(found.get("sums", {})))
                self._remembered = {
                    str(name): (float(seconds), 1, int(looks), int(hits), bool(kept))
                    for name, (seconds, looks, hits, kept) in found["sites"].items()
                }
        except FileNotFoundError:
            pass
        except Exception as error:  # it is a help, and no more
            _log.debug("nothing is remembered of this program: %s", error)

    def remember(self, counted: Mapping[str, float] = {}) -> None:
        """Later processes know what this one has learned. counted: what is added to the sums."""
        if self._path is None or self._remembered is None:
            return
        before = self._remembered.items()
        sites = {name: (seconds, looks, hits, kept) for name, (seconds, _, looks, hits, kept) in before}
        for site in list(self._known.values()):
            if site.runs:
                sites.pop(site.name, None)  # so that it stands among the latest
                sites[site.name] = (site.seconds, site.looks, site.hits, site.kept or site.keeps)
        for name, value in counted.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        latest = dict(list(sites.items())[-_MOST:])
        text = json.dumps({"figures": self.figures, "sums": self.sums, "sites": latest})
        try:
            if not self._path.parent.parent.is_dir():  # somebody has deleted the home
                return
            self._path.parent.mkdir(exist_ok=True)
            _make_room(self._path.parent)
            unfinished = self._path.with_suffix(f".{os.getpid()}")
            unfinished.write_text(text)
            unfinished.replace(self._path)
        except OSError as error:
            _log.debug("nothing of this program is remembered: %s", error)


def sums_of_all(folder: Path) -> dict[str, float]:
    """What was counted in the processes of all programs that are remembered."""
    found: dict[str, float] = {}
    for path in folder.glob("*.json"):
        try:
            for name, value in _numbers(json.loads(path.read_bytes()).get("sums", {})).items():
                found[name] = found.get(name, 0.0) + value
        except Exception as error:  # it is a help, and no more
            _log.debug("%s is left out: %s", path, error)
    return found


def _numbers(found: Mapping[str, Any]) -> dict[str, float]:
    return {str(name): float(value) for name, value in found.items()}


def _make_room(folder: Path) -> None:
    """Of too many programs those go that have not run for longest."""
    files = list(folder.iterdir())
    if len(files) > _MOST_PROGRAMS:
        for path in sorted(files, key=lambda path: path.stat().st_mtime)[: len(files) - _MOST_PROGRAMS]:
            path.unlink(missing_ok=True)


def _program() -> str:
    """The file that this process runs; empty if there is none, as where somebody types."""
    file = sys.argv[0] if sys.argv else ""
    return os.path.abspath(file) if os.path.isfile(file) else ""
