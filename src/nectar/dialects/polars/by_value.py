"""Python functions that Polars calls for one value after the other, and never with a column."""

from __future__ import annotations

from typing import Any, Final

from polars.functions import lazy as polars_lazy

_OF_BATCHES: Final = ("polars.expr.expr", "Expr.map_batches.<locals>._wrap")
_OF_VALUES: Final = ("polars.expr.expr", "Expr.map_elements.<locals>.wrap_f")


def is_called_for_each_value(function: Any) -> bool:
    """Whether a function is the one that Polars makes of a function of values, and hands to `map_batches`."""
    if isinstance(function, polars_lazy._map_batches_wrapper):
        function = function.function
    if _name_of(function) != _OF_BATCHES:
        return False
    return any(_name_of(cell.cell_contents) == _OF_VALUES for cell in function.__closure__ or ())


def _name_of(function: Any) -> tuple[str, str]:
    return getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
