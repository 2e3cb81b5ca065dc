"""Expressions written as SQL text (`df.filter("n > 1")`): the functions they call, or why they are not reused.

Not parsed, but cut into words and signs; what is cut cannot be misread, because everything in which engines differ
(escapes, comments, variables, parameters, nested queries) is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from nectar.dialects.spark.function_names import KNOWN, why_refused_call, why_refused_column, why_refused_string
from nectar.dialects.spark.sql.words import VARIABLE

_PIECE: Final = re.compile(
    r"""(?P<space>\s+)|(?P<string>'[^']*'|"[^"]*")|(?P<quoted>`[^`]*`)|(?P<word>[A-Za-z_][A-Za-z_0-9]*)"""
    r"""|(?P<number>\d[\dA-Za-z_.]*)|(?P<sign>::|->|[-+*/%<>=!,.()\[\]&|^~])"""
)
_HIDING: Final = ("--", "/*", "\\", VARIABLE)  # comments and escapes: where they end is read differently
_BEFORE_BRACKETS: Final = frozenset({
    "and", "or", "not", "in", "when", "then", "else", "case", "between", "like", "rlike", "ilike", "is", "as", "div",
    "cast", "try_cast", "if", "decimal", "dec", "numeric", "varchar", "over",
})  # fmt: skip
_NESTED: Final = frozenset({"select", "from", "table", "values", "with", "identifier", "lateral"})
_TYPED: Final = frozenset({"interval"})  # words before strings that mean the same whenever they are read


@dataclass(frozen=True, slots=True)
class Calls:
    """Functions that a text calls, in small letters. unknown: those that are no functions of the engine."""

    called: frozenset[str]
    unknown: frozenset[str]


def calls_in(text: str) -> Calls | str:
    """The functions that an expression calls; or why it is not reused."""
    if not text.isascii() or any(sign in text for sign in _HIDING):
        return "a text has comments, escapes, variables or letters that engines read differently"
    pieces = pieces_of(text)
    if pieces is None:
        return "a text has signs that are not understood"
    called: set[str] = set()
    unknown: set[str] = set()
    for at, (kind, piece) in enumerate(pieces):
        following = pieces[at + 1][1] if at + 1 < len(pieces) else ""
        reason = _why_refused(kind, piece, following)
        if reason:
            return reason
        if kind in ("word", "quoted") and following == "(":
            name = piece.strip("`").lower()
            if at and pieces[at - 1][1] == ".":
                return f"{name}() is a function of a database, which is not followed"
            called.add(name)
            if name not in KNOWN and not (kind == "word" and name in _BEFORE_BRACKETS):
                unknown.add(name)
    return Calls(frozenset(called), frozenset(unknown))


def pieces_of(text: str) -> list[tuple[str, str]] | None:
    """Words, strings, numbers and signs; None if there is anything else."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _PIECE.match(text, at)
        if match is None:
            return None
        at = match.end()
        if match.lastgroup != "space":
            found.append((str(match.lastgroup), match[0]))
    return found


def _why_refused(kind: str, piece: str, following: str) -> str:
    if kind == "string":
        if following == "(":  # with some settings double quotes are around names
            return f"{piece}( in a text is not understood"
        return why_refused_string(piece[1:-1]) or (why_refused_column(piece[1:-1]) if piece[0] == '"' else "")
    if kind not in ("word", "quoted"):
        return ""
    word = piece.strip("`").lower()
    # Before a string: a typed or raw literal.
    if kind == "word" and word not in _BEFORE_BRACKETS | _TYPED and following[:1] in ("'", '"'):
        return f"{piece}{following[:1]}... in a text is not understood"
    if kind == "word" and word in _NESTED:
        return f"{piece} in a text is not understood"
    if following == "(" and not (kind == "word" and word in _BEFORE_BRACKETS):
        # Whether it has arguments is not counted: one that reads the clock without them is refused anyway.
        return why_refused_call(word, 0)
    return why_refused_column(word)
