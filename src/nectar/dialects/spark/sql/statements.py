"""Statements of SQL that are no queries: what they do to the names of a session.

In: a text. Out: an Effect. Only the shapes that are written here are followed; after any other statement nobody knows
what names mean, and one that may make functions ends reuse for the session. Law: a statement whose effect is not known
exactly is never taken for one that has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

from nectar.dialects.spark.sql.words import Name, Piece, canonical, pieces_of

Kind = Literal["none", "view", "table", "forget", "names", "cache", "anything"]

_QUERIES: Final = frozenset({"select", "with", "values", "(", "from", "table"})
_HARMLESS: Final = frozenset({"show", "describe", "desc", "explain", "insert", "analyze"})
_ABOUT_NAMES: Final = frozenset({
    "create", "drop", "alter", "use", "truncate", "delete", "update", "merge", "refresh", "cache", "uncache", "clear",
    "comment", "msck", "replace", "load",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Effect:
    """What a statement does.

    none: nothing to names. view: the name stands for a query. table: the name stands for files. forget: nobody knows
    what the name stands for. names: nobody knows what any name stands for. cache: nor what the server has in memory.
    anything: nor which functions there are. head: what is said about the name, canonical. query: the text that defines
    it. format, path, options: its files.
    """

    kind: Kind
    name: Name = ()
    head: str = ""
    query: str = ""
    format: str = ""
    path: str = ""
    options: dict[str, str] = field(default_factory=dict)
    is_temporary: bool = True


_NONE: Final = Effect("none")
_NAMES: Final = Effect("names")
_CACHE: Final = Effect("cache")
_ANYTHING: Final = Effect("anything")


@lru_cache(maxsize=16)  # asked for a text, and again when its rows are
def effect_of(text: str) -> Effect:
    """What a statement does to the names of its session."""
    pieces = pieces_of(text)
    if isinstance(pieces, str):
        return _of_unread(text)
    if not pieces:
        return _NONE
    first = pieces[0].word
    if first in _QUERIES:
        inserts = "insert" in text.lower() and any(piece.word == "insert" for piece in pieces)
        return _NAMES if first == "from" or inserts else _NONE
    if any(piece.name == "function" for piece in pieces) or any(piece.text == ";" for piece in pieces[:-1]):
        return _ANYTHING
    if first in _HARMLESS:
        return _NONE
    if first in ("set", "reset"):
        return _of_setting(pieces)
    if first not in _ABOUT_NAMES:
        return _ANYTHING
    if first == "cache":
        return _CACHE
    return _of_definition(text, pieces) if first in ("create", "drop") else _NAMES


def _of_unread(text: str) -> Effect:
    """The effect of a text that is not cut into words: at least that of its first word."""
    if "function" in text.lower():
        return _ANYTHING
    first = text.lstrip("( \t\r\n").split(maxsplit=1)
    word = first[0].lower() if first else ""
    if word in ("select", "with", "values", *_HARMLESS):
        return _NONE if "insert" not in text.lower() else _NAMES
    if word == "cache":
        return _CACHE
    return _NAMES if word in _ABOUT_NAMES else _ANYTHING


def _of_setting(pieces: Sequence[Piece]) -> Effect:
    """Settings are asked for whenever they matter; variables and paths of functions are no settings."""
    if len(pieces) == 1 or (len(pieces) > 2 and pieces[2].text == "."):
        return _NONE
    return _ANYTHING


class _Cursor:
    """Reads the pieces of a statement from left to right."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces, self.at = pieces, 0

    def takes(self, *words: str) -> bool:
        """Whether these words follow; if so, they are passed."""
        following = [piece.word for piece in self._pieces[self.at : self.at + len(words)]]
        if following != list(words):
            return False
        self.at += len(words)
        return True

    def name(self) -> Name:
        """The name that follows, part by part; empty if there is none."""
        parts: list[str] = []
        while self.at < len(self._pieces) and self._pieces[self.at].name:
            parts.append(self._pieces[self.at].text.strip("`"))
            self.at += 1
            if not self.takes("."):
                return tuple(parts)
        return ()

    def string(self) -> str | None:
        """The string that follows, without its quotes; None if none follows."""
        if self.at >= len(self._pieces) or self._pieces[self.at].kind != "string":
            return None
        self.at += 1
        return self._pieces[self.at - 1].text[1:-1]

    def skip_brackets(self) -> None:
        """Brackets that follow, and what is in them, are passed."""
        depth = 0
        for number, piece in enumerate(self.rest, self.at + 1):
            depth += (piece.text == "(") - (piece.text == ")")
            if depth == 0:
                self.at = number if piece.text == ")" else self.at
                return

    @property
    def rest(self) -> Sequence[Piece]:
        """What has not been read."""
        return self._pieces[self.at :]


def _of_definition(text: str, pieces: Sequence[Piece]) -> Effect:
    cursor = _Cursor(pieces)
    if cursor.takes("drop"):
        return _of_drop(cursor)
    cursor.takes("create")
    cursor.takes("or", "replace")
    is_global = cursor.takes("global")
    temporary = cursor.takes("temporary") or cursor.takes("temp")
    if cursor.takes("view"):
        return _of_view(text, cursor, is_global, temporary)
    cursor.takes("external")
    return _of_table(cursor) if cursor.takes("table") and not temporary else _NAMES


def _of_drop(cursor: _Cursor) -> Effect:
    if not (cursor.takes("view") or cursor.takes("table")):
        return _NAMES
    cursor.takes("if", "exists")
    name = cursor.name()
    return Effect("forget", name) if name else _NAMES


def _of_view(text: str, cursor: _Cursor, is_global: bool, temporary: bool) -> Effect:
    only_if_missing = cursor.takes("if", "not", "exists")
    name = cursor.name()
    if not name:
        return _NAMES
    query = _after_as(cursor.rest)
    if only_if_missing or not temporary or is_global:
        return Effect("forget", name)
    if query == len(cursor.rest):
        return _of_files(cursor, name, is_temporary=True)
    return Effect("view", name, head=canonical(cursor.rest[:query]), query=text[cursor.rest[query].at :])


def _after_as(pieces: Sequence[Piece]) -> int:
    """Where the query of a definition begins: after the first AS that is in no brackets; the end if there is none."""
    depth = 0
    for number, piece in enumerate(pieces):
        depth += (piece.text == "(") - (piece.text == ")")
        if depth == 0 and piece.word == "as":
            return number + 1
    return len(pieces)


def _of_table(cursor: _Cursor) -> Effect:
    """A table over files that lie where the statement says."""
    only_if_missing = cursor.takes("if", "not", "exists")
    name = cursor.name()
    if not name:
        return _NAMES
    return Effect("forget", name) if only_if_missing else _of_files(cursor, name, is_temporary=False)


def _of_files(cursor: _Cursor, name: Name, *, is_temporary: bool) -> Effect:
    head = canonical(cursor.rest)
    cursor.skip_brackets()  # columns
    if not cursor.takes("using"):
        return Effect("forget", name)
    format_, options = cursor.name(), _options(cursor)
    if cursor.takes("partitioned", "by"):
        cursor.skip_brackets()
    path = cursor.string() if cursor.takes("location") else (options or {}).pop("path", None)
    cursor.takes(";")
    if len(format_) != 1 or options is None or not path or cursor.rest:
        return Effect("forget", name)
    return Effect(
        "table", name, head=head, format=format_[0].lower(), path=path, options=options, is_temporary=is_temporary
    )


def _options(cursor: _Cursor) -> dict[str, str] | None:
    """The options that follow; None if they are not written plainly."""
    if not cursor.takes("options"):
        return {}
    options: dict[str, str] = {}
    if not cursor.takes("("):
        return None
    while not cursor.takes(")"):
        key = cursor.string() or ".".join(cursor.name())
        cursor.takes("=")
        value = cursor.string()
        if not key or value is None or key.lower() in options:
            return None
        options[key.lower()] = value
        cursor.takes(",")
    return options
