"""States: columns made of the rows of one part, and how those of several parts become one.

Law: a merged state is the state of all the rows together, whatever the cuts; the order of parts is the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import polars as pl
from msgspec import Struct, field

from nectar.keys.values.polars_functions import Functions

# Part of the key of kept states: to be raised whenever the columns of a state, or what is in them, change.
LAYOUT: Final = 2
_PREFIX: Final = "__nectar_state_"


class Merge(Struct, frozen=True):
    """How states are merged: what is done with the column of them. Merges of one name do the same."""

    name: str
    of: Callable[[pl.Expr], pl.Expr]


def by(method: str, **options: Any) -> Merge:
    """States merge by an aggregate of their own column."""
    return Merge(f"{method} {options}" if options else method, lambda state: getattr(state, method)(**options))


def lists(name: str, kept: Callable[[pl.Expr], pl.Expr]) -> Merge:
    """States are lists: one after the other, of which something is kept. A list without values adds none."""
    return Merge(name, lambda state: kept(state.explode(empty_as_null=False)).implode())


class States(Struct):
    """The states of all aggregates of a group-by or a selection; equal ones are shared.

    schema: of the rows. whole: all rows are one group, which a part may have no row of. made: what each state is made
    with. merged: how states are merged. sums: names of states that are sums, whose last bits depend on how a stream is
    cut if they are floats. by_user: one is merged by a function of the user. single: the states of each row by itself,
    computed row by row; None where nobody knows how. functions: Python functions in expressions that were serialised.
    """

    schema: pl.Schema = field(default_factory=pl.Schema)
    whole: bool = False
    made: list[pl.Expr] = field(default_factory=list)
    merged: list[pl.Expr] = field(default_factory=list)
    sums: set[str] = field(default_factory=set)
    by_user: bool = False
    single: list[pl.Expr | None] = field(default_factory=list)
    functions: Functions = field(default_factory=Functions)
    _names: dict[tuple[bytes, str], str] = field(default_factory=dict)

    def of(
        self, made: pl.Expr, merge: Merge, *, is_sum: bool = False, single: pl.Expr | None = None, known: bytes = b""
    ) -> pl.Expr:
        """The state made by an expression, as a column of the merged states. single: the same of one row.

        known: the same for the same state; if left out, the expression tells.
        """
        same = (known or self.functions.serialised(made._pyexpr.serialize_binary), merge.name)
        name = self._names.get(same)
        if name is None:
            name = self._names[same] = f"{_PREFIX}{len(self._names)}"
            self.made.append(made.alias(name))
            self.merged.append(merge.of(pl.col(name)).alias(name))
            self.single.append(None if single is None else single.alias(name))
            self.sums |= {name} if is_sum else set()
        return pl.col(name)

    def type_of(self, aggregate: pl.Expr) -> pl.DataType | None:
        """The type of what an aggregate gives; None if Polars cannot tell."""
        frame = pl.LazyFrame(schema=self.schema)
        column = aggregate.alias(_PREFIX)
        try:
            asked = frame.select(column) if self.whole else frame.group_by(pl.lit(0).alias("")).agg(column)
            return asked.collect_schema()[_PREFIX]
        except pl.exceptions.PolarsError:
            return None

    def depend_on_cuts(self, types: pl.Schema) -> bool:
        """Whether the last bits of a result may depend on how a stream is cut. types: of the columns of states."""
        return self.by_user or any(types[name].is_float() for name in self.sums)
