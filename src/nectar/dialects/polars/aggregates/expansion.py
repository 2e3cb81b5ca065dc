"""Aggregates of several columns at once, `pl.all().sum()`, written out: one aggregate for each column.

Law: what is written out gives the very columns, by name and type, that Polars says the aggregates give; which columns a
selector stands for is asked of Polars too, since those that are grouped by are left out of some.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import polars as pl

from nectar.dialects.polars.aggregates.expressions import expression_of

_MARK: Final = "__nectar_of_"


class Context:
    """Where aggregates stand: in a group-by with these keys, or (whole) in a selection; over rows of a schema."""

    def __init__(self, schema: pl.Schema, keys: Sequence[Any], whole: bool) -> None:
        self._frame = pl.LazyFrame(schema=schema)
        self._keys = list(map(expression_of, keys))
        self._whole = whole

    def columns_of(self, *aggregates: pl.Expr) -> dict[str, pl.DataType]:
        """The columns that aggregates give, beside those that are grouped by."""
        if self._whole:
            return dict(self._frame.select(*aggregates).collect_schema())
        grouped = self._frame.group_by(*self._keys)
        keys = set(grouped.agg().collect_schema())
        return {name: kind for name, kind in grouped.agg(*aggregates).collect_schema().items() if name not in keys}


def expanded(aggregates: Sequence[Any], context: Context) -> list[tuple[str, Any]] | str:
    """The aggregates, each of one column, with their names; or why that cannot be told."""
    try:
        columns = context.columns_of(*map(expression_of, aggregates))
        written_out = [each for aggregate in aggregates for each in _written_out(aggregate, context)]
    except pl.exceptions.PolarsError:
        return "the columns of its aggregates are not known"
    if len(written_out) != len(columns):
        return "one of its aggregates is of several columns at once"
    return list(zip(columns, written_out, strict=True))


def _written_out(aggregate: Any, context: Context) -> list[Any]:
    """The aggregate for each of the columns it is of; none at all if that cannot be told."""
    if not _selectors(aggregate):
        return [aggregate]
    columns = list(context.columns_of(expression_of(aggregate)).items())
    for way in (_side_by_side(aggregate, context), [_in_place(aggregate, context)]):
        if way and list(context.columns_of(*map(expression_of, way)).items()) == columns:
            return way
    return []


def _side_by_side(expression: Any, context: Context) -> list[Any]:
    """The expression for each of the columns that its selectors stand for."""
    found = [_columns(selector, context) for selector in _selectors(expression)]
    count = max(map(len, found), default=1)
    if any(len(names) not in (1, count) for names in found):
        return []
    rows = [[names[at % len(names)] for names in found] for at in range(count)]
    return [_replaced(expression, iter(row)) for row in rows]


def _in_place(value: Any, context: Context) -> Any:
    """The same with more arguments: functions of several columns take all that a selector stands for."""
    if isinstance(value, dict):
        return {
            name: [each for one in inner for each in _side_by_side(one, context)]
            if name == "input" and isinstance(inner, list)
            else _in_place(inner, context)
            for name, inner in value.items()
        }
    return [_in_place(inner, context) for inner in value] if isinstance(value, list) else value


def _columns(selector: Any, context: Context) -> list[str]:
    """The columns a selector stands for."""
    marked = expression_of({"Selector": selector}).first().name.prefix(_MARK)
    return [name.removeprefix(_MARK) for name in context.columns_of(marked)]


def _selectors(value: Any) -> list[Any]:
    """The selectors in an expression, in the order in which they are met."""
    if isinstance(value, dict):
        inner = ([content] if name == "Selector" else _selectors(content) for name, content in value.items())
        return [each for found in inner for each in found]
    return [each for inner in value for each in _selectors(inner)] if isinstance(value, list) else []


def _replaced(value: Any, names: Iterator[str]) -> Any:
    """The value with its selectors replaced by columns, in the order in which they are met."""
    if isinstance(value, dict):
        if set(value) == {"Selector"}:
            return {"Column": next(names)}
        return {name: _replaced(inner, names) for name, inner in value.items()}
    return [_replaced(inner, names) for inner in value] if isinstance(value, list) else value
