"""From the events of a computation to what its key does not show.

In: events in the order in which they happened, and what was declared. Out: observations. Files that the computation
made and removed again are its own; a file that it left behind, or that was there before, is an effect.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from nectar.observation.hook import (
    CODE,
    INPUT,
    LINK,
    LIST,
    MAKE,
    MOVE,
    NETWORK,
    PROCESS,
    RANDOM,
    READ,
    REMOVE,
    RENAME,
    SOMEWHERE,
    SOURCE,
    WRITE,
    Event,
)


class Observation(NamedTuple):
    """Something that a computation did and that its key does not show.

    text: for people, such as "reads data.csv (main.py:3)". certain: it was this computation, and nobody else.
    """

    text: str
    certain: bool = True


class Allowed(Struct, frozen=True):
    """What a computation has declared: files, folders whose files it reads, and whether it asks remote sources."""

    files: frozenset[str] = frozenset()
    folders: tuple[str, ...] = ()  # each with a separator at its end
    sources: bool = False

    def reads(self, path: str) -> bool:
        """Whether a file or folder was declared."""
        return path in self.files or os.path.join(path, "").startswith(self.folders)


_TOLD: Final = {
    NETWORK: "uses the network: {}", PROCESS: "starts or signals another process: {}", INPUT: "reads {}",
    RANDOM: "draws random numbers from {}", SOMEWHERE: "opens {}, relative to a folder that nobody knows", SOURCE: "{}",
    CODE: "unpickles {}, of the application, by its name",
}  # fmt: skip


class _Files:
    """Files and folders that a computation made."""

    def __init__(self) -> None:
        self.there: dict[str, Event] = {}
        self._ever: set[str] = set()
        self._links: dict[str, str] = {}

    def make(self, path: str, event: Event, leads_to: str = "") -> None:
        self.there.setdefault(path, event)
        self._ever.add(path)
        if leads_to:
            self._links[path] = leads_to

    def behind_links(self, path: str) -> str:
        """What a path leads to, through the links that the computation made."""
        for _ in self._links:  # each is followed once at most, also where they go in a circle
            link = next((each for each in self._links if _is_below(path, each)), None)
            if link is None:
                break
            path = os.path.normpath(self._links[link] + path[len(link) :])
        return path

    def remove(self, path: str) -> None:
        for each in [each for each in self.there if _is_below(each, path)]:
            del self.there[each]
        for each in [each for each in self._links if _is_below(each, path)]:
            del self._links[each]

    def made(self, path: str) -> bool:
        """Whether the computation made what lies at this path, or a folder that it lies in."""
        while path not in self._ever:
            parent = os.path.dirname(path)
            if parent == path:
                return False
            path = parent
        return True


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))


def observations_of(events: Sequence[Event], allowed: Allowed) -> Iterator[Observation]:
    """What the events show, in their order; the same only once."""
    files = _Files()
    for event in events:
        text = _told(event, files, allowed)
        if text:
            yield _observation(text, event)
    for path, event in files.there.items():
        if os.path.lexists(path):
            yield _observation(f"writes {path}", event)


def _observation(text: str, event: Event) -> Observation:
    return Observation(f"{text} ({event.place})" if event.place else text, event.certain)


def _told(event: Event, files: _Files, allowed: Allowed) -> str:
    """What speaks against keeping; empty if nothing does."""
    kind, path = event.kind, event.subject
    if kind in (READ, LIST):
        path = files.behind_links(path)
        if files.made(path) or allowed.reads(path):
            return ""
        return f"{'reads' if event.existed else 'looks for'} {path}" if kind == READ else f"lists {path}"
    if kind in (WRITE, MAKE):
        return _written(event, files)
    if kind == LINK:
        return _linked(event, files)
    if kind == REMOVE:
        own = files.made(path)
        files.remove(path)
        return "" if own or not event.existed else f"removes {path}"
    if kind == RENAME:
        return _moved(event, files)
    if kind == MOVE:
        return "" if _is_here(path) else "changes the working folder"
    if allowed.sources and kind == NETWORK:
        return ""
    return _TOLD[kind].format(path)


def _is_here(folder: str) -> bool:
    try:
        return os.getcwd() == folder
    except OSError:  # it was removed
        return False


def _written(event: Event, files: _Files) -> str:
    path = files.behind_links(event.subject)
    if files.made(path):
        files.make(path, event)
        return ""
    if not event.existed:
        files.make(path, event)
        return ""
    return f"writes {path}" if event.kind == WRITE else ""  # a folder that is there already stays as it is


def _linked(event: Event, files: _Files) -> str:
    if event.existed and not files.made(event.subject):
        return ""  # there is something already, so that no link was made
    files.make(event.subject, event, event.target)
    return ""


def _moved(event: Event, files: _Files) -> str:
    own = files.made(event.subject)
    leads_to = files.behind_links(event.subject)
    files.remove(event.subject)
    overwrites = event.existed and not files.made(event.target)
    files.make(event.target, event, leads_to if leads_to != event.subject else "")
    return "" if own and not overwrites else f"renames {event.subject} to {event.target}"
