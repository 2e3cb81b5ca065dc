"""Filters whose order cannot show: the conditions a chain of filters puts on a row, as a set.

In: a step. Out: its conditions, or None. Law: whatever order conditions are written in, joined by `&`, as arguments of
one filter or in filters one after the other, the same rows come out in the same order, and if one way fails, all do. So
conditions are taken apart only where each of them is true, false or null for every row by that row alone and cannot
fail for some rows only: comparisons of columns with values and with each other, tests for null, and what `|` and `~`
make of them. A cast, a sum or a function may fail for a row that another condition would have left out.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nectar.dialects.polars.plan import Step

_encode: Final = msgspec.msgpack.Encoder().encode
_COMPARISONS: Final = frozenset({"Eq", "NotEq", "Lt", "LtEq", "Gt", "GtEq", "EqValidity", "NotEqValidity"})
_TESTS: Final = frozenset({"IsNull", "IsNotNull"})
_VALUES: Final = frozenset({"Scalar", "Dyn"})
_DEEPEST: Final = 50


def conditions_of(step: Step) -> frozenset[bytes] | None:
    """What a filter asks of a row; None if it is no filter, or the order of its conditions may show."""
    if step.kind != "Filter" or set(step.body) != {"predicate"}:
        return None
    conditions: set[bytes] = set()
    pending = [step.body["predicate"]]
    while pending:
        current = pending.pop()
        joined = _joined(current)
        if joined:
            pending.extend(joined)
        elif _cannot_fail(current):
            conditions.add(_encode(current))
        else:
            return None
    return frozenset(conditions)


def _joined(expression: Any) -> list[Any]:
    """The conditions that one is made of by `&`; none if it is not."""
    kind, content = _kind(expression)
    if kind == "BinaryExpr" and content["op"] == "And" and content.keys() == {"left", "op", "right"}:
        return [content["left"], content["right"]]
    if kind == "Function" and content == {"input": content["input"], "function": {"Boolean": "AllHorizontal"}}:
        return list(content["input"])
    return []


def _cannot_fail(expression: Any, depth: int = 0) -> bool:
    """Whether an expression is a condition that has a value for every row."""
    kind, content = _kind(expression)
    if depth > _DEEPEST:
        return False
    if kind == "BinaryExpr" and content["op"] in ("And", "Or"):
        return all(_cannot_fail(content[side], depth + 1) for side in ("left", "right"))
    if kind == "BinaryExpr":
        return content["op"] in _COMPARISONS and _is_leaf(content["left"]) and _is_leaf(content["right"])
    if kind != "Function" or len(content["input"]) != 1:
        return False
    name, which = _kind(content["function"])
    if name != "Boolean":
        return False
    if which == "Not":
        return _cannot_fail(content["input"][0], depth + 1)
    return which in _TESTS and "Column" in content["input"][0]


def _is_leaf(expression: Any) -> bool:
    kind, content = _kind(expression)
    return kind == "Column" or (kind == "Literal" and isinstance(content, dict) and set(content) <= _VALUES)


def _kind(value: Any) -> tuple[str, Any]:
    if isinstance(value, dict) and len(value) == 1:
        return next(iter(value.items()))
    return "", None
