"""Expressions whose values may depend on today's date: somewhere in them a text may become a timestamp.

In: expressions of the protocol, and the columns they are over. Out: whether the day belongs into the key, and what the
values may be. Law: as in today.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final

from nectar.dialects.spark.constants import columns_in_pieces
from nectar.dialects.spark.function_types import (
    APART,
    BY_PATTERN,
    PARSES,
    PLAIN,
    SAME,
    TAKES_TIMES,
    TEXTUAL,
    TIMELY,
)
from nectar.dialects.spark.text import pieces_of
from nectar.dialects.spark.texts_and_times import (
    EITHER,
    NEITHER,
    TEXT,
    TIME,
    Columns,
    joined_kinds,
    looked_up,
    meet,
    of_text,
    of_type,
    of_words,
)

_WITHOUT_EXPRESSIONS: Final = frozenset({"Relation", "RelationCommon", "ExpressionCommon", "DataType", "Literal"})
_MOMENTS: Final = ("timestamp", "calendar", "year_month", "day_time")  # what literals of moments are called

Find = Callable[[], Columns]


class Expressions:
    """Tells of expressions over columns whether they may make a timestamp of a text, and what they give."""

    def __init__(self, inputs: Sequence[Find]) -> None:
        self._inputs = inputs

    def is_dated(self, expression: Any) -> bool:
        """Whether a text may become a timestamp in an expression."""
        kind = expression.WhichOneof("expr_type")
        if kind in ("literal", "unresolved_attribute", None):
            return False
        content: Any = getattr(expression, kind)
        if kind == "cast" and self._is_cast_dated(content):
            return True
        if kind in ("unresolved_function", "call_function") and self._is_call_dated(content):
            return True
        if kind == "expression_string" and self._is_text_dated(content.expression):
            return True
        if kind == "subquery_expression" and content.in_subquery_values:
            return any(self.kind(each) for each in content.in_subquery_values)  # what it is compared with is not known
        if kind == "unresolved_extract_value":  # the key of a map may be a timestamp
            return self.is_dated(content.child) or meet((self.kind(content.child), self.kind(content.extraction)))
        return any(map(self.is_dated, expressions_in(content)))

    def _is_cast_dated(self, cast: Any) -> bool:
        return bool(_target_of(cast) & TIME and self.kind(cast.expr) & TEXT)

    def _is_call_dated(self, call: Any) -> bool:
        name, arguments = call.function_name.lower(), list(call.arguments)
        if name in PARSES:  # the type is one of the arguments
            return self._may_parse_times(arguments[1:])
        if name in TAKES_TIMES:
            if name in BY_PATTERN and len(arguments) > 1:
                return False
            return any(self.kind(each) & TEXT for each in arguments)
        if name in APART or sum(_is_open(each) for each in arguments) < 2:
            return False
        return meet(map(self.kind, arguments))

    def _may_parse_times(self, others: Sequence[Any]) -> bool:
        literals = [each.literal.string for each in others if each.WhichOneof("expr_type") == "literal"]
        return not literals or len(literals) < len(others) or bool(joined_kinds(map(of_words, literals)) & TIME)

    def _is_text_dated(self, text: str) -> bool:
        """Whether an expression that is written as text may: its words are not put together, but all that it names."""
        pieces = pieces_of(text)
        return pieces is None or any(map(self._are_pieces_dated, _conditions(pieces)))

    def _are_pieces_dated(self, pieces: list[tuple[str, str]]) -> bool:
        words = [piece.strip("`").lower() for kind, piece in pieces if kind in ("word", "quoted")]
        kinds = [looked_up(name, self._relations()) for name in columns_in_pieces(pieces)]
        kinds += [of_text(piece[1:-1]) for kind, piece in pieces if kind == "string"]
        makes = any(of_words(word) & TIME or word in TAKES_TIMES for word in words)
        return (makes and bool(joined_kinds(kinds) & TEXT)) or meet(kinds)

    def _relations(self) -> list[Columns]:
        return [each() for each in self._inputs]

    def kind(self, expression: Any) -> int:
        """What the value of an expression may be."""
        which = expression.WhichOneof("expr_type")
        content: Any = getattr(expression, which) if which else None
        if which == "literal":
            return _of_literal(content)
        if which == "unresolved_attribute":
            return looked_up(content.unparsed_identifier, self._relations())
        if which == "alias":
            return self.kind(content.expr)
        if which == "cast":
            return _target_of(content)
        if which in ("unresolved_function", "call_function"):
            return self._of_call(content.function_name.lower(), content.arguments)
        if which == "window":
            return self.kind(content.window_function)
        if which in ("sort_order", "unresolved_extract_value"):
            return self.kind(content.child)
        if which == "common_inline_user_defined_function":
            return of_type(content.python_udf.output_type)
        return EITHER

    def _of_call(self, name: str, arguments: Iterable[Any]) -> int:
        if name in PLAIN:
            return NEITHER
        if name in TEXTUAL or name in TIMELY:
            return TEXT if name in TEXTUAL else TIME
        if name in ("+", "-"):  # with an interval, of a text too; between two dates lies an interval
            return joined_kinds(map(self.kind, arguments)) | (TIME if name == "-" else NEITHER)
        if name in SAME:
            return joined_kinds(map(self.kind, arguments))
        return EITHER


def _target_of(cast: Any) -> int:
    return of_words(cast.type_str) if cast.WhichOneof("cast_to_type") == "type_str" else of_type(cast.type)


def _of_literal(literal: Any) -> int:
    which = literal.WhichOneof("literal_type")
    if which == "string":
        return of_text(literal.string)
    if which in ("array", "map", "struct", "specialized_array", "null"):
        texts = joined_kinds(of_text(each) for each in _texts_in(literal))
        return texts | (of_type(literal) & TIME) | (TIME if _has_times(literal) else NEITHER)
    return TIME if str(which).startswith(_MOMENTS) else NEITHER


def _texts_in(message: Any) -> Iterable[str]:
    for descriptor, value in message.ListFields():
        for each in value if descriptor.is_repeated else (value,):
            if isinstance(each, str):
                yield each
            elif descriptor.message_type is not None:
                yield from _texts_in(each)


def _has_times(message: Any) -> bool:
    return any(
        descriptor.name.startswith(_MOMENTS)
        or (descriptor.message_type is not None and any(map(_has_times, value if descriptor.is_repeated else (value,))))
        for descriptor, value in message.ListFields()
    )


def _conditions(pieces: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """The parts of a text between AND and OR that are in no brackets; the whole, if these may mean something else."""
    words = {piece.lower() for kind, piece in pieces if kind == "word"}
    if words & {"between", "case"}:
        return [pieces]
    found: list[list[tuple[str, str]]] = [[]]
    depth = 0
    for kind, piece in pieces:
        depth += (piece in ("(", "[")) - (piece in (")", "]"))
        if depth == 0 and kind == "word" and piece.lower() in ("and", "or"):
            found.append([])
        else:
            found[-1].append((kind, piece))
    return found


def _is_open(expression: Any) -> bool:
    """Whether it is more than a literal that can be nothing but what it is."""
    return expression.WhichOneof("expr_type") != "literal" or _of_literal(expression.literal) != NEITHER


def expressions_in(message: Any) -> Iterable[Any]:
    """The expressions of a message that are within no other, and in no relation."""
    for descriptor, value in message.ListFields():
        role = _role_of(descriptor)
        if role == "nothing":
            continue
        for each in value if descriptor.is_repeated else (value,):
            if role == "expression":
                yield each
            else:
                yield from expressions_in(each)


@cache
def _role_of(descriptor: Any) -> str:
    """What a field of a message holds: an expression, messages that may hold expressions, or nothing of the kind."""
    kind = descriptor.message_type
    if kind is None or kind.GetOptions().map_entry or kind.name in _WITHOUT_EXPRESSIONS:
        return "nothing"
    return "expression" if kind.full_name == "spark.connect.Expression" else "more"
