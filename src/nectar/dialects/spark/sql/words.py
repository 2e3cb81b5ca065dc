"""SQL text cut into pieces: words, strings, numbers, signs.

In: a text. Out: its pieces, or why it is not cut. Law: every engine would cut at the same places; whatever they read
differently (escapes, comments within comments, variables, letters beyond ASCII outside of strings) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

_PIECE: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+|--[^\r\n\\\v\f\x1c-\x1e\x85\u2028\u2029]*(?:\r?\n|\Z)|/\*(?!\+)(?:(?!/\*|\*/)[^\\])*\*/)"""
    r"""|(?P<hint>/\*\+[A-Za-z0-9_ \t\r\n,().]*\*/)"""
    r"""|(?P<string>'[^'\\]*'|"[^"\\]*")"""
    r"""|(?P<quoted>`[^`\\]+`)"""
    r"""|(?P<word>[A-Za-z_][A-Za-z_0-9]*)"""
    r"""|(?P<number>[0-9][0-9A-Za-z_.]*)"""
    r"""|(?P<parameter>\?|:[A-Za-z_][A-Za-z_0-9]*)"""
    r"""|(?P<sign>::|->|=>|/(?!\*)|-(?!-)|[+*%<>=!,.()\[\]&|^~;])"""
)
VARIABLE: Final = "${"  # Spark puts in what it stands for, within strings and names, too
_PART: Final = re.compile(r"\s*(?:`([^`]+)`|([A-Za-z_0-9]+))\s*")
_UNCERTAIN: Final = "the SQL text has escapes, comments, variables or signs that engines read differently"


Name = tuple[str, ...]  # of a relation, part by part


class Piece(NamedTuple):  # a text has hundreds of them
    """A piece of text. at: where it stands. spaced: whether a space or a comment is before it."""

    kind: str
    text: str
    at: int
    spaced: bool

    @property
    def name(self) -> str:
        """What a word or a quoted name says, in small letters; empty for other pieces."""
        return self.text.strip("`").lower() if self.kind in ("word", "quoted") else ""

    @property
    def word(self) -> str:
        """A word that is not quoted, in small letters; a sign as it is; empty for other pieces."""
        return self.text.lower() if self.kind in ("word", "sign") else ""


@lru_cache(maxsize=16)  # a text is looked at for what it does, for what it reads, and when its rows are asked for
def pieces_of(text: str) -> tuple[Piece, ...] | str:
    """The pieces of a text, or why it is not read."""
    if VARIABLE in text:
        return _UNCERTAIN
    found: list[Piece] = []
    at, spaced = 0, False
    for match in _PIECE.finditer(text):
        kind = str(match.lastgroup)
        if match.start() != at:
            return _UNCERTAIN
        if kind == "quoted" and found and found[-1].kind == "quoted" and not spaced:  # a quote within a quoted name
            return _UNCERTAIN
        if kind != "space":
            found.append(Piece(kind, match[0], at, spaced))
        spaced = kind == "space"
        at = match.end()
    return tuple(found) if at == len(text) else _UNCERTAIN


def canonical(pieces: Sequence[Piece]) -> str:
    """The text of pieces, every run of spaces and comments as one space: nothing of them shows in a result."""
    return "".join(f" {piece.text}" if piece.spaced and number else piece.text for number, piece in enumerate(pieces))


def quoted(name: Sequence[str]) -> str:
    """A name as texts have it, whatever is in its parts."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in name)


def name_of(text: str) -> Name:
    """The parts of a name as programs write it; empty if it is not understood."""
    parts: list[str] = []
    at = 0
    while match := _PART.match(text, at):
        parts.append(match[1] or match[2])
        at = match.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            break
        at += 1
    return ()
