"""Expressions over aggregates taken apart: aggregates become states, what is computed of them is done at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import polars as pl
from msgspec import Struct

from nectar.dialects.polars.aggregates.by_user import UserAggregate, user_aggregate
from nectar.dialects.polars.aggregates.expansion import Context, expanded
from nectar.dialects.polars.aggregates.expressions import (
    expression_of,
    function_in_words,
    in_words,
    infers_a_format,
    is_of_rows,
    kind_of,
    serialised,
)
from nectar.dialects.polars.aggregates.rules import (
    Over,
    Unmerged,
    is_list,
    merged_aggregate,
    merged_function,
    merged_list,
)
from nectar.dialects.polars.aggregates.states import Merge, States, by
from nectar.dialects.polars.elementwise import is_elementwise, reads_rows

_PARTS: Final = {"Cast": ("expr",), "BinaryExpr": ("left", "right"), "Ternary": ("predicate", "truthy", "falsy")}
_NAMING: Final = frozenset({"Alias", "KeepName", "RenameAlias"})


class Apart(Struct, frozen=True):
    """Aggregates taken apart. finishing: each aggregate over the merged states, under its name."""

    states: States
    finishing: tuple[pl.Expr, ...]


def taken_apart(
    aggregates: Sequence[Any], schema: pl.Schema, keys: Sequence[Any] = (), whole: bool = False
) -> Apart | str:
    """The aggregates of a group-by, or (whole) of a selection, of rows of a schema; or why they cannot be merged."""
    if any(_holds_other_function(aggregate) for aggregate in aggregates):
        return "a Python function cannot be merged: nectar.aggregate makes one that can"
    if any(map(infers_a_format, (*aggregates, *keys))):
        return "texts are read as times without a format, which Polars takes from the first row"
    columns = expanded(aggregates, Context(schema, keys, whole))
    if isinstance(columns, str):
        return columns
    states = States(schema, whole)
    finishing = []
    for name, aggregate in columns:
        over = _finished(aggregate, states)
        if isinstance(over, Unmerged):
            return over.reason
        finishing.append(over.alias(name))
    return Apart(states, tuple(finishing))


def finished(aggregate: Any, states: States) -> pl.Expr | None:
    """What an aggregate of one column is over the merged states; None if it cannot be taken apart."""
    apart = _finished(aggregate, states)
    name = _name_of(aggregate)
    return None if isinstance(apart, Unmerged) or name is None else apart.alias(name)


def _finished(aggregate: Any, states: States) -> Over:
    inner = aggregate
    while (kind := kind_of(inner)[0]) in _NAMING:
        inner = _named(kind, kind_of(inner)[1])
    return merged_list(inner, states) if is_list(inner) else _over_states(inner, states)


def _over_states(expression: Any, states: States) -> Over:
    """The expression with aggregates replaced by states, under any name."""
    kind, content = kind_of(expression)
    if kind == "Len":
        return states.of(pl.len(), by("sum"), single=pl.lit(1, dtype=pl.get_index_type()))
    if kind == "Literal" and is_elementwise(expression):
        return expression_of(expression)
    if kind == "Agg":
        return merged_aggregate(content, states)
    if kind == "Function":
        return _function(content, states)
    if kind == "AnonymousFunction":
        return _by_user(content, states)
    if kind in _NAMING:
        return _over_states(_named(kind, content), states)
    if kind in _PARTS:
        return _put_together(kind, content, states)
    return Unmerged(f"{in_words(kind) or 'it'} is neither an aggregate nor made of aggregates")


def _function(content: Any, states: States) -> Over:
    found = merged_function(content, states)
    if found is not None:
        return found
    name = function_in_words(content["function"])
    inputs = []
    for each in content["input"]:
        over = _argument(each, states)
        if isinstance(over, Unmerged):
            return Unmerged(f"{name} cannot be merged") if is_of_rows(each) else over
        inputs.append(serialised(over, states.functions))
    whole = {"Function": {**content, "input": inputs}}
    return expression_of(whole) if is_elementwise(whole) else Unmerged(f"{name} of aggregates is not known")


def _argument(expression: Any, states: States) -> Over:
    """An argument over states, under the name it had: fields of structs are named after what they are made of."""
    if kind_of(expression)[0] == "Literal":  # perhaps a column of values to look for others in: the function knows
        return expression_of(expression)
    over, name = _over_states(expression, states), _name_of(expression)
    return over if isinstance(over, Unmerged) or name is None else over.alias(name)


def _put_together(kind: str, content: Any, states: States) -> Over:
    replaced = dict(content)
    for part in _PARTS[kind]:
        over = _over_states(content[part], states)
        if isinstance(over, Unmerged):
            return over
        replaced[part] = serialised(over, states.functions)
    return expression_of({kind: replaced})


def _named(kind: str, content: Any) -> Any:
    """What is given another name."""
    return content[0] if kind == "Alias" else content["expr"] if kind == "RenameAlias" else content


def _name_of(expression: Any) -> str | None:
    try:
        return str(expression_of(expression).meta.output_name())
    except pl.exceptions.PolarsError:  # a selector, or a name that only the schema tells
        return None


def _by_user(content: Any, states: States) -> Over:
    aggregate = user_aggregate(content)
    inputs = content["input"]
    if aggregate is None:
        return Unmerged("a Python function cannot be merged: nectar.aggregate makes one that can")
    if not (all(map(reads_rows, inputs)) or (len(inputs) == 1 and is_of_rows(inputs[0]))):
        return Unmerged("an aggregate of the user is of something that is not computed row by row")
    return _merged_by_user(aggregate, inputs, states)


def _merged_by_user(aggregate: UserAggregate, inputs: Sequence[Any], states: States) -> pl.Expr:
    states.by_user = True
    made = aggregate.state_of(list(map(expression_of, inputs)))
    known = b"%d " % id(aggregate) + msgspec.msgpack.encode(inputs)
    return aggregate.finished(states.of(made, Merge("by user", aggregate.merged), known=known))


def _holds_other_function(value: Any) -> bool:
    """Whether a Python function is called that is no aggregate of the user."""
    if isinstance(value, dict):
        called = value.get("AnonymousFunction")
        return (called is not None and user_aggregate(called) is None) or any(
            map(_holds_other_function, value.values())
        )
    return isinstance(value, list) and any(map(_holds_other_function, value))
