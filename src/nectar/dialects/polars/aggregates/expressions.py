"""Expressions, as Polars serialises them and as it hands them out; and those that stand for the rows of a group."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
import polars as pl

from nectar.dialects.polars.elementwise import reads_rows
from nectar.keys.values.polars_functions import Functions

_LEAVING_OUT: Final = frozenset({"DropNulls", "DropNans"})
_FAMILIES: Final = frozenset(
    {
        "ArrayExpr",
        "BinaryExpr",
        "Bitwise",
        "Boolean",
        "Categorical",
        "ListExpr",
        "StringExpr",
        "StructExpr",
        "TemporalExpr",
    }
)
_INNER_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


def expression_of(serialised: Any) -> pl.Expr:
    """The expression that Polars serialises like this."""
    return pl.Expr.deserialize(msgspec.msgpack.encode(serialised))


def serialised(expression: pl.Expr, functions: Functions | None = None) -> Any:
    """How Polars serialises an expression. functions: hold those in it, which are pickled otherwise."""
    if functions is None:
        return msgspec.msgpack.decode(expression.meta.serialize())
    return msgspec.msgpack.decode(functions.serialised(expression._pyexpr.serialize_binary))


def kind_of(expression: Any) -> tuple[str, Any]:
    """The kind of an expression, a function or an aggregate, and its content."""
    if isinstance(expression, dict) and len(expression) == 1:
        return next(iter(expression.items()))
    return (expression, None) if isinstance(expression, str) else ("", None)


def in_words(kind: str) -> str:
    """A kind as people write it in programs: NUnique is n_unique."""
    return _INNER_CAPITAL.sub("_", kind).lower()


def function_in_words(function: Any) -> str:
    """A function as people write it; of functions that come in families, the member."""
    kind, options = kind_of(function)
    member = kind_of(options)[0] if kind in _FAMILIES else ""
    return in_words(member or kind)


def infers_a_format(value: Any) -> bool:
    """Whether texts are read as times without a format: Polars takes that of the first row for all of them."""
    if isinstance(value, dict):
        read = value.get("Strptime")
        inferred = isinstance(read, list) and any(
            isinstance(each, dict) and each.get("format", "") is None for each in read
        )
        return inferred or any(map(infers_a_format, value.values()))
    return isinstance(value, list) and any(map(infers_a_format, value))


def is_of_rows(expression: Any) -> bool:
    """Whether an expression has a value for each row of a group, by that row alone; rows may be left out."""
    kind, content = kind_of(expression)
    if kind == "Filter":
        return all(map(reads_rows, content.values()))
    if kind == "Function" and kind_of(content["function"])[0] in _LEAVING_OUT:
        return is_of_rows(content["input"][0])
    return reads_rows(expression)
