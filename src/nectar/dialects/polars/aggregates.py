"""Aggregates as states: partial results of parts of a stream that can be merged, and finished when all are there.

In: an aggregate expression as Polars serialises it, such as `a.sum() / len()`. Out: the states it needs, how each is
merged, and an expression over the merged states that gives what the aggregate would have given; or None if it cannot
be taken apart. Law: merging and finishing give the value that aggregating everything at once gives, but for the last
bits of floats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import polars as pl

from nectar.dialects.polars.elementwise import is_elementwise, reads_rows

_decode: Final = msgspec.msgpack.decode
_encode: Final = msgspec.msgpack.encode
# Aggregates of the rows of a group whose states merge by the same aggregate.
_LIKE_THEMSELVES: Final = frozenset({"Sum", "Min", "Max"})
_OF_PLACE: Final = frozenset({"First", "Last"})
_WRAPPING: Final = frozenset({"Alias", "Cast", "BinaryExpr", "Ternary", "KeepName"})


@dataclass(slots=True)
class States:
    """The states of all aggregates of a group-by; equal ones are shared.

    made: what each state is made with. merged: how states are merged. sums: names of states that are sums, whose last
    bits depend on how a stream is cut if they are floats.
    """

    made: list[pl.Expr] = field(default_factory=list)
    merged: list[pl.Expr] = field(default_factory=list)
    sums: set[str] = field(default_factory=set)
    _names: dict[bytes, str] = field(default_factory=dict)

    def of(self, expression: Any, merge: str, *, is_sum: bool = False) -> Any:
        """The state made by an expression, as a column of the merged states."""
        known = _encode([expression, merge])
        name = self._names.get(known)
        if name is None:
            name = self._names[known] = f"__nectar_state_{len(self._names)}"
            self.made.append(expression_of(expression).alias(name))
            self.merged.append(getattr(pl.col(name), merge)())
            if is_sum:
                self.sums.add(name)
        return {"Column": name}


def finished(aggregate: Any, states: States) -> pl.Expr | None:
    """What an aggregate is over the merged states; None if it cannot be taken apart."""
    name = _output_name(aggregate)
    over = None if name is None else _over_states(aggregate, states)
    return None if over is None else expression_of(over).alias(str(name))


def expression_of(serialised: Any) -> pl.Expr:
    """The expression that Polars serialises like this."""
    return pl.Expr.deserialize(_encode(serialised))


def _output_name(aggregate: Any) -> str | None:
    try:
        return str(expression_of(aggregate).meta.output_name())
    except Exception:  # a selector: only the schema tells how many columns it gives
        return None


def _over_states(expression: Any, states: States) -> Any:
    """The expression with aggregates replaced by states; None if some part is neither an aggregate nor made of any."""
    if expression == "Len":
        return states.of("Len", "sum")
    if not isinstance(expression, dict) or len(expression) != 1:
        return None
    ((kind, content),) = expression.items()
    if kind == "Literal":
        return expression
    if kind == "Agg":
        return _aggregate(content, states)
    if kind == "Function":
        return _function(content, states)
    return _wrapped(kind, content, states) if kind in _WRAPPING else None


def _aggregate(content: dict[str, Any], states: States) -> Any:
    ((kind, inner),) = content.items()
    of = inner["input"] if isinstance(inner, dict) and "input" in inner else inner
    if not _is_of_rows(of):
        return None
    whole = {"Agg": content}
    if kind in _LIKE_THEMSELVES:
        propagates = isinstance(inner, dict) and bool(inner.get("propagate_nans"))
        return None if propagates else states.of(whole, kind.lower(), is_sum=kind == "Sum")
    if kind in _OF_PLACE:
        return states.of(whole, kind.lower()) if is_elementwise(of) else None
    if kind == "Count":
        return states.of(whole, "sum")
    return _mean(of, states) if kind == "Mean" else None


def _mean(of: Any, states: States) -> Any:
    """The sum as a float, as Polars does it, over the number of values; nothing over nothing is null."""
    total = states.of(_serialised(expression_of(of).cast(pl.Float64).sum()), "sum", is_sum=True)
    count = states.of(_serialised(expression_of(of).count()), "sum")
    number = expression_of(count)
    return _serialised(pl.when(number > 0).then(expression_of(total) / number))


def _function(content: dict[str, Any], states: States) -> Any:
    function, inputs = content["function"], content["input"]
    if function == "NullCount" and _is_of_rows(inputs[0]):
        return states.of({"Function": content}, "sum")
    if isinstance(function, dict) and set(function) == {"Boolean"} and isinstance(function["Boolean"], dict):
        ((kind, options),) = function["Boolean"].items()
        if kind in ("Any", "All") and options == {"ignore_nulls": True} and _is_of_rows(inputs[0]):
            return states.of({"Function": content}, kind.lower())
    replaced = [_over_states(each, states) for each in inputs]
    whole = {"Function": {**content, "input": replaced}}
    return None if None in replaced or not is_elementwise(whole) else whole


def _wrapped(kind: str, content: Any, states: States) -> Any:
    if kind == "Alias":
        inner = _over_states(content[0], states)
        return None if inner is None else {"Alias": [inner, content[1]]}
    if kind == "KeepName":
        return None
    replaced = {name: _over_states(value, states) if _is_expression(name) else value for name, value in content.items()}
    return None if None in [replaced[name] for name in content if _is_expression(name)] else {kind: replaced}


def _is_expression(name: str) -> bool:
    return name in ("expr", "left", "right", "predicate", "truthy", "falsy")


def _is_of_rows(expression: Any) -> bool:
    """Whether an expression has a value for each row of a group, by that row alone; rows may be left out."""
    if isinstance(expression, dict) and set(expression) == {"Filter"}:
        return all(map(reads_rows, expression["Filter"].values()))
    return reads_rows(expression)


def _serialised(expression: pl.Expr) -> Any:
    return _decode(expression.meta.serialize())
