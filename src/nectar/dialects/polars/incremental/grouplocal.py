"""Which aggregates of a group depend on the rows of that group alone, and on their order.

Kinds of expressions that are not known at all are refused before (content.py); of those that are known, the ones listed
here do not look at other groups.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nectar.dialects.polars.by_value import is_called_for_each_value
from nectar.keys.values.polars_functions import callback_in
from nectar.keys.values.polars_plans import EXPRESSIONS, said_and_pickle

_LOCAL: Final = frozenset(
    {"Alias", "Column", "Selector", "Literal", "BinaryExpr", "Cast", "Ternary", "KeepName", "Len", "Function", "Agg",
     "Filter", "Sort", "SortBy", "Gather", "Slice", "Explode", "AnonymousFunction"}
)  # fmt: skip
# Functions that are handed rows of several groups at once, or draw numbers that depend on how many groups there are.
_OF_SEVERAL_GROUPS: Final = frozenset(
    {"Random", "FoldHorizontal", "ReduceHorizontal", "CumFoldHorizontal", "CumReduceHorizontal", "MapExpr", "Sql",
     "Extension"}
)  # fmt: skip


def is_group_local(expression: Any) -> bool:
    """Whether an aggregate, as Polars serialises it, depends on the rows of its group alone."""
    pending = [expression]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending.extend(value)
        elif isinstance(value, dict):
            if any(not _is_local(name, inner) for name, inner in value.items()):
                return False
            pending.extend(value.values())
        elif isinstance(value, str) and value in EXPRESSIONS and value not in _LOCAL:
            return False
    return True


def _is_local(kind: str, content: Any) -> bool:
    if kind in EXPRESSIONS and kind not in _LOCAL:
        return False
    if kind == "Literal":  # a column of values has as many as it has, however many rows a group has
        return not (isinstance(content, dict) and {"Series", "Range"} & set(content))
    if kind == "function" and not isinstance(content, bytes):
        return (next(iter(content)) if isinstance(content, dict) else content) not in _OF_SEVERAL_GROUPS
    return kind != "AnonymousFunction" or _is_called_for_each_group(content["function"])


def _is_called_for_each_group(function: Any) -> bool:
    """Whether a Python function gets the rows of one group, or one value, at a time, and says which type it gives.

    Polars says which type, and two flags: rows stand for themselves; one value is given.
    """
    try:
        said, _ = said_and_pickle(function, "a Polars plan")
        dtype, *flags = msgspec.msgpack.decode(said)
        called = callback_in(function, "a Polars plan").function
    except Exception:  # it is written in another way; pickles of others may raise anything
        return False
    if len(flags) < 2 or any(type(each) is not bool for each in flags[-2:]) or dtype is None:
        return False
    return not flags[-2] or is_called_for_each_value(called)
