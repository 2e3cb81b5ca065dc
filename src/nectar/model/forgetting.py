"""What is to be forgotten for good, and what was."""

from __future__ import annotations

import json
import re
from typing import Final
from urllib.parse import quote

from msgspec import Struct, field

_SHORTEST_CUT: Final = 8  # characters of a beginning that are still told from other texts


class Asked(Struct, frozen=True):
    """What is to be forgotten.

    files: paths and URLs, those of folders included. people: users, or users at machines. texts: whatever they are.
    keys: of results that hold one of the texts.
    """

    files: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    keys: tuple[bytes, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The texts that no row may hold, in each way in which they are written into texts."""
        return tuple(dict.fromkeys(form for text in (*self.files, *self.texts) for form in _written(text)))

    @property
    def forms(self) -> tuple[bytes, ...]:
        """The same as bytes, in each encoding that libraries use."""
        encodings = ("utf-8", "utf-16-le", "utf-32-le")
        return tuple(dict.fromkeys(word.encode(each, "surrogatepass") for each in encodings for word in self.words))

    def is_in(self, text: str) -> bool:
        """Whether a text holds one of the words, or ends with the beginning of one where it was cut off."""
        if any(word in text for word in self.words):
            return True
        return any(self._begins_before(text[: cut.start()]) for cut in re.finditer(r"\.\.\.", text))

    def _begins_before(self, text: str) -> bool:
        return any(text.endswith(word[:size]) for word in self.words for size in range(_SHORTEST_CUT, len(word)))

    def is_person(self, by: str) -> bool:
        """Whether somebody is one of the people, or named by one of the texts."""
        return by in self.people or by.partition("@")[0] in self.people or any(each in by for each in self.texts)

    def is_file(self, url: str) -> bool:
        """Whether a file is one of them, or lies in one of them, or has one of the texts in its name."""
        below = any(url == each or url.startswith(f"{each.rstrip('/')}/") for each in self.files)
        return below or any(text in url for text in self.texts)


class Forgotten(Struct, frozen=True):
    """What is gone, or would be.

    rows: of the catalog, by table. keys: of results. names: with versions that are gone. files: beside the catalog.
    left: what still holds a text, or may, and why.
    """

    rows: dict[str, int] = field(default_factory=dict)
    keys: tuple[bytes, ...] = ()
    names: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rows or self.keys or self.files)


def _written(text: str) -> list[str]:
    inside = [text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1]]
    return [*inside, quote(text), quote(text, safe="")]
