"""Files that are named by texts a computation holds, and whether somebody opens them while it runs.

Code that is not Python's opens files without telling anybody. What it opens it was told by a text: an argument, a
constant, a captured value. In: such texts. Out: which of the files they name were opened or changed meanwhile; Linux
tells (inotify). Where the system does not tell, a file that is named counts as read.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Container, Iterable, Iterator
from typing import Final

from nectar.observation.effects import Allowed, Observation
from nectar.observation.installed import is_code, is_installed
from nectar.observation.opened import Listener, new_listener
from nectar.observation.texts import LONGEST

_WATCHED: Final = 64  # files and folders that are watched; of more nobody can tell
_QUOTED: Final = re.compile(r"'([^'\n]+)'|\"([^\"\n]+)\"")
_WILDCARD: Final = re.compile(r"[*?\[]")


def paths_in(texts: Iterable[str]) -> list[str]:
    """Paths that texts could name: themselves, what they quote (SQL), and the folder where a pattern begins."""
    found: dict[str, None] = {}
    for text in texts:
        if 0 < len(text) <= LONGEST and "\0" not in text:
            found.update(dict.fromkeys(_parts(text)))
    return list(found)


def _parts(text: str) -> Iterator[str]:
    if "\n" not in text:
        yield _before_wildcard(text.removeprefix("file://"))
    if "'" in text or '"' in text:
        for one, other in _QUOTED.findall(text):
            yield _before_wildcard(one or other)


def _before_wildcard(text: str) -> str:
    found = _WILDCARD.search(text)
    return text if found is None else os.path.dirname(text[: found.start()]) or "."


class NamedFiles:
    """The files that texts name, from `begin()` to `end()`."""

    __slots__ = ("_allowed", "_before", "_listener", "_paths", "_there", "_unwatched")

    def __init__(self, texts: Iterable[str]) -> None:
        self._paths = paths_in(texts)
        self._allowed = Allowed()
        self._before: dict[str, tuple[int, ...] | None] = {}
        self._there: list[str] = []
        self._unwatched: list[str] = []
        self._listener: Listener | None = None

    def begin(self, allowed: Allowed) -> None:
        """From now on, whoever opens one of the files is seen; those that may be read are left out."""
        self._allowed = allowed
        named = [os.path.abspath(path) for path in self._paths]
        self._before = {path: _stamp(path) for path in named if not allowed.reads(path)}
        self._there = [path for path, stamp in self._before.items() if stamp is not None and _counts(path)]
        if self._there:
            self._listener = listener = new_listener()
            watched = set() if listener is None else {path for path in self._there[:_WATCHED] if listener.add(path)}
            self._unwatched = [path for path in self._there if path not in watched]

    def close(self) -> None:
        """Nothing is listened to any more; a second time says nothing."""
        if self._listener is not None:
            self._listener.give_back()
            self._listener = None

    def end(self, known: Container[str] = (), others: Container[str] = ()) -> list[Observation]:
        """What happened to the files since.

        known: paths whose use was seen, and judged, by other means. others: paths that somebody else used as well.
        """
        if not self._before:
            return []
        opened = self._opened()
        self.close()
        written = [path for path, stamp in self._before.items() if path not in known and _is_changed(path, stamp)]
        found = [Observation(f"writes {path}") for path in written]
        for path, named in opened:
            if path not in known:
                found.append(
                    Observation(f"{'reads' if path in self._before else 'opens'} {path}", named and path not in others)
                )
        return found

    def _opened(self) -> list[tuple[str, bool]]:
        """Files that were opened, or of which nobody can tell; and whether it is certain that the named one was."""
        try:
            heard = [] if self._listener is None else list(self._heard(self._listener))
        except (OverflowError, OSError):
            return [(path, False) for path in self._there]
        return heard + [(path, False) for path in self._unwatched if not _is_folder(self._before[path])]

    def _heard(self, listener: Listener) -> Iterator[tuple[str, bool]]:
        """Files that were opened, and whether it was they that were named, and not only their folder."""
        for path, name in listener.heard():
            if not name:
                yield path, not _is_folder(self._before[path])
            elif not is_code(name) and not self._allowed.reads(file := os.path.join(path, name)):
                yield file, False


def _counts(path: str) -> bool:
    return path != "/" and not is_code(path) and not is_installed(os.path.join(path, ""))


def _stamp(path: str) -> tuple[int, ...] | None:
    """What tells whether a file was changed; None if there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return (found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns)


def _is_changed(path: str, before: tuple[int, ...] | None) -> bool:
    """Whether a file was written; files come to and go from folders all the time."""
    now = _stamp(path)
    return now != before and not (_is_folder(now) and _is_folder(before))


def _is_folder(stamp: tuple[int, ...] | None) -> bool:
    return stamp is not None and stat.S_ISDIR(stamp[0])
