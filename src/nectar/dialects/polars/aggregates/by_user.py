"""Aggregates that users write: four functions that make a state, add rows to it, merge two, and finish it.

In: the functions. Out: something to be called with columns, which gives an ordinary Polars expression of one value. In
plain Polars it is computed from all rows at once; Nectar recognises it, and merges states instead. Law: both give the
same if the functions do: rows added at once, or to two states that are merged, must lead to the same finished value.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import polars as pl
from msgspec import Struct
from polars.functions import lazy as polars_lazy

from nectar.errors import UserError
from nectar.keys.values.polars_functions import callback_in

_State = TypeVar("_State")


def aggregate(
    init: Callable[[], _State],
    add: Callable[..., _State],
    merge: Callable[[_State, _State], _State],
    finish: Callable[[_State], object],
    *,
    returns: pl.DataType | type[pl.DataType] | None = None,
) -> UserAggregate:
    """An aggregate for Polars programs that is merged instead of computed again when data is added.

    init: makes a state without rows; any value that can be pickled. add: the state with more rows; it gets the state,
    and for each column a Series of at least one row. merge: one state for two, the rows of the second after those of
    the first. finish: the value. returns: its type in Polars; left out, the type of the value of no rows.

        spread = nectar.aggregate(
            init=lambda: (math.inf, -math.inf),
            add=lambda state, column: (min(state[0], column.min()), max(state[1], column.max())),
            merge=lambda one, other: (min(one[0], other[0]), max(one[1], other[1])),
            finish=lambda state: state[1] - state[0],
        )
        lf.group_by("page").agg(spread(pl.col("seconds")))
    """
    return UserAggregate(init, add, merge, finish, _type_of_nothing(init, finish) if returns is None else returns)


class UserAggregate(Struct, frozen=True):
    """An aggregate made of four functions; called with columns, it is an expression. returns: the type of its value."""

    init: Callable[[], Any]
    add: Callable[..., Any]
    merge: Callable[[Any, Any], Any]
    finish: Callable[[Any], Any]
    returns: pl.DataType | type[pl.DataType]

    def __call__(self, *columns: pl.Expr | str) -> pl.Expr:
        """The expression: one value for each group, or for all rows in a selection."""
        if not columns:
            raise UserError("an aggregate is of at least one column: call it with pl.col(...), or names of columns")
        return _one_value(list(columns), OfRows(self), self.returns)

    def after(self, columns: Sequence[pl.Series]) -> Any:
        """The state after all rows of some columns; of no rows, that without any."""
        state = self.init()
        return self.add(state, *columns) if len(columns[0]) else state

    def state_of(self, columns: Sequence[pl.Expr]) -> pl.Expr:
        """The state of a part."""
        return _one_value(list(columns), StateOfRows(self), pl.Binary)

    def merged(self, states: pl.Expr) -> pl.Expr:
        """One state for those of several parts."""
        return _one_value([states], MergedStates(self), pl.Binary)

    def finished(self, states: pl.Expr) -> pl.Expr:
        """The values of states."""
        return states.map_batches(FinishedStates(self), return_dtype=self.returns, is_elementwise=True)


class OfRows(Struct, frozen=True):
    """What Polars calls with the rows of a group."""

    of: UserAggregate

    def __call__(self, columns: Sequence[pl.Series]) -> pl.Series:
        """The value, as a column of one row."""
        return pl.Series([self.of.finish(self.of.after(columns))], dtype=self.of.returns)


class StateOfRows(Struct, frozen=True):
    """What Polars calls with the rows of a group in one part."""

    of: UserAggregate

    def __call__(self, columns: Sequence[pl.Series]) -> pl.Series:
        """The state, as a column of one row."""
        return _packed(self.of.after(columns))


class MergedStates(Struct, frozen=True):
    """What Polars calls with the states of a group, in the order of the parts."""

    of: UserAggregate

    def __call__(self, columns: Sequence[pl.Series]) -> pl.Series:
        """The state of all, as a column of one row."""
        states = [pickle.loads(state) for state in columns[0]]
        return _packed(functools.reduce(self.of.merge, states) if states else self.of.init())


class FinishedStates(Struct, frozen=True):
    """What Polars calls with the states of many groups."""

    of: UserAggregate

    def __call__(self, states: pl.Series) -> pl.Series:
        """The values."""
        return pl.Series([self.of.finish(pickle.loads(state)) for state in states], dtype=self.of.returns)


def user_aggregate(content: Any) -> UserAggregate | None:
    """The aggregate that a Python function in a plan stands for; None if it is any other function."""
    try:
        function = callback_in(content["function"], "a Polars plan").function
    except Exception:  # pickles of others may raise anything
        return None
    if isinstance(function, polars_lazy._map_batches_wrapper):
        function = function.function
    return function.of if isinstance(function, OfRows) else None


def _one_value(columns: list[Any], function: Callable[..., pl.Series], kind: Any) -> pl.Expr:
    return pl.map_groups(columns, function, return_dtype=kind, returns_scalar=True)


def _packed(state: object) -> pl.Series:
    return pl.Series([pickle.dumps(state)], dtype=pl.Binary)


def _type_of_nothing(init: Callable[[], Any], finish: Callable[[Any], Any]) -> pl.DataType:
    try:
        kind = pl.Series([finish(init())]).dtype
    except Exception as error:
        reason = f"finish(init()) raises {type(error).__name__}"
    else:
        if kind not in (pl.Null, pl.Object):
            return kind
        reason = f"finish(init()) is of the type {kind}"
    raise UserError(
        f"the type of an aggregate's value is not known, because {reason}: give it, as in returns=pl.Float64"
    )
