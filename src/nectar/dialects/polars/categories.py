"""Numbers of categories: Polars numbers the values of categorical columns as a process meets them.

In: a plan and one of its steps. Out: whether the step looks at these numbers: what another process kept would be wrong
here. Most of Polars looks at the values themselves, also for hashes and orders; what does not was found by running
everything in two processes that met the values in another order. A Python function may look at whatever it is given.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import polars as pl

from nectar.dialects.polars.by_value import is_called_for_each_value
from nectar.dialects.polars.plan import Plan
from nectar.keys.values.polars_functions import callback_in

NUMBERED: Final = "it looks at the numbers of categories, which are others in the next process"
_FUNCTIONS: Final = frozenset(
    {"ToPhysical", "Hash", "Mm3Hash", "PeakMin", "PeakMax", "TopK", "TopKBy", "ApproxNUnique", "ApproxQuantile",
     "RowEncode", "RowDecode", "Reinterpret", "FoldHorizontal", "ReduceHorizontal", "CumFoldHorizontal",
     "CumReduceHorizontal"}
)  # fmt: skip
_ALL: Final = pl.all().meta.serialize()
_PHYSICAL: Final = {"Categorical": "Physical"}
_MAKERS: Final = (b"categorical", b"cut", b"hist", b"plpyfn")  # what expressions that make categories hold
_VALUES: Final = b"values "  # before expressions of which a Python function gets one value after the other
_encode: Final = msgspec.msgpack.Encoder().encode


def looked_at(kind: str, body: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The expressions of a step, as Polars serialises them, of which it looks at the numbers if they are categories."""
    found = []
    for call in _calls_in(body):
        prefix = _VALUES if _gets_values(call["function"]) else b""
        found += [prefix + _encode(each) for each in call["input"]]
    if _hands_over_frames(kind, body):
        return (*found, _ALL)
    if kind == "Join" and "AsOf" in body["options"]["args"]["how"]:
        found += [_encode(each) for side in body["condition"].get("Equi", {}).values() for each in side]
    return tuple(found)


def _hands_over_frames(kind: str, body: Mapping[str, Any]) -> bool:
    """Whether a step calls a Python function with frames."""
    if kind == "GroupBy":
        return body["apply"] is not None
    return kind == "MapFunction" and "OpaquePython" in body["function"]


def are_numbered(plan: Plan, number: int, expressions: tuple[bytes, ...]) -> bool:
    """Whether one of the expressions of a step gives categories that a process numbers."""
    inputs = plan.steps[number].inputs
    return any(
        _is_given(dtype) if each.startswith(_VALUES) else _is_numbered(dtype)
        for each in expressions
        for dtype in _types_of(plan, inputs, each.removeprefix(_VALUES))
    )


def _is_given(dtype: Any) -> bool:
    """Whether a function that gets one value of a column after the other gets a column, which may be numbered."""
    inner = getattr(dtype, "inner", None)
    return isinstance(dtype, pl.Unknown) or (inner is not None and _is_numbered(inner))


def _types_of(plan: Plan, inputs: tuple[int, ...], expression: bytes) -> Iterator[Any]:
    """The types that an expression may have over the inputs of its step."""
    told = False
    for source in inputs:
        try:
            yield from (
                plan.stand_in(source).select(pl.Expr.deserialize(io.BytesIO(expression))).collect_schema().values()
            )
            told = True
        except (Exception, pl.exceptions.PanicException):  # it belongs to another input, or only means something within
            continue
    if not told:
        yield from (dtype for source in inputs for dtype in plan.schema(source).values())
        if any(each in expression.lower() for each in _MAKERS):
            yield pl.Categorical()


def _is_numbered(dtype: Any) -> bool:
    if isinstance(dtype, pl.Categorical | pl.Unknown):
        return True
    inner = getattr(dtype, "inner", None)
    return (inner is not None and _is_numbered(inner)) or any(
        _is_numbered(each.dtype) for each in getattr(dtype, "fields", ())
    )


def _calls_in(body: Any) -> Iterator[dict[str, Any]]:
    """The calls of functions that look at numbers, or may."""
    pending = [body]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending.extend(value)
        elif isinstance(value, dict):
            pending.extend(value.values())
            call = value.get("Function")
            if isinstance(call, dict) and isinstance(call.get("input"), list) and _looks(call.get("function")):
                yield call
            call = value.get("AnonymousFunction")
            if isinstance(call, dict) and isinstance(call.get("input"), list):
                yield call


def _gets_values(function: Any) -> bool:
    try:
        return isinstance(function, bytes) and is_called_for_each_value(callback_in(function, "a Polars plan").function)
    except Exception:  # nobody can read it, so it is refused for that
        return False


def _looks(function: Any) -> bool:
    name = next(iter(function), "") if isinstance(function, dict) else function
    return name in _FUNCTIONS or function == _PHYSICAL
