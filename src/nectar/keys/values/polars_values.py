"""Expanders of Polars' values: frames, series, data types, expressions, lazy frames."""

from __future__ import annotations

from typing import Any

import polars as pl
from polars import selectors
from polars.expr import whenthen

from nectar.errors import UnencodableError
from nectar.keys.expansion import Expander, Expansion, WalkContext, always
from nectar.keys.values.bulk import OWN_ATTRIBUTES, Parts
from nectar.keys.values.place import HERE, placed
from nectar.keys.values.polars_columns import (
    add_frame,
    add_numbers,
    add_series,
    add_type,
    has_categories,
    shows_numbers,
)
from nectar.keys.values.polars_functions import Functions, callback_in
from nectar.keys.values.polars_plans import Callback, add_expression, add_plan, expand_callback

OWN_ATTRIBUTES.update({pl.DataFrame: frozenset({"_df"}), pl.Series: frozenset({"_s"})})


def expand_frame(value: pl.DataFrame, walk: WalkContext) -> Expansion:
    """A frame: its columns by name, type and content."""
    parts = Parts(type(value))
    add_frame(parts, value, walk)
    if "chunks" in walk.observed:
        parts.number(*(count for column in value.get_columns() for count in column.chunk_lengths()))
    if "flags" in walk.observed:
        parts.text(*map(_shown_flags, value.get_columns()))
    parts.attributes(value)
    return parts.expansion("polars frame")


def expand_series(value: pl.Series, walk: WalkContext) -> Expansion:
    """A series: name, type and content."""
    parts = Parts(type(value))
    add_series(parts, value)
    if "chunks" in walk.observed:
        parts.number(*value.chunk_lengths())
    if "flags" in walk.observed:
        parts.text(_shown_flags(value))
    if has_categories(value.dtype) and shows_numbers(walk):
        add_numbers(parts, value.to_frame())
    parts.attributes(value)
    return parts.expansion("polars series")


def _shown_flags(series: pl.Series) -> str:
    """What Polars knows of the order of a series, which changes no answer if it is true."""
    return " ".join(sorted(name for name, holds in series.flags.items() if holds))


def expand_type(value: pl.DataType, walk: WalkContext) -> Expansion:
    """A data type with its parameters."""
    parts = Parts(type(value))
    add_type(parts, value)
    return parts.expansion("polars type")._replace(by_value=True, still=always)


def expand_field(value: pl.Field, walk: WalkContext) -> Expansion:
    """A field of a struct: name and type."""
    parts = Parts(type(value))
    parts.text(value.name)
    add_type(parts, value.dtype)
    return parts.expansion("polars field")


def expand_schema(value: pl.Schema, walk: WalkContext) -> Expansion:
    """A schema: names and types in order."""
    parts = Parts(type(value))
    parts.number(len(value))
    for name, dtype in value.items():
        parts.text(name)
        add_type(parts, dtype)
    return parts.expansion("polars schema")


def expand_expression(value: pl.Expr, walk: WalkContext) -> Expansion:
    """An expression: as Polars serialises it, with the Python functions in it as functions."""
    functions, parts = Functions(), Parts(type(value))
    live = add_expression(parts, functions.serialised(value._pyexpr.serialize_binary), walk, callback_in)
    expansion = parts.expansion("polars expression")
    # Data in it may share memory with a NumPy array: it is looked at again.
    return expansion if live else expansion._replace(by_value=True, still=always)


def expand_lazy_frame(value: pl.LazyFrame, walk: WalkContext) -> Expansion:
    """A lazy frame over data in memory: its plan as Polars serialises it, data by content, functions as such."""
    functions, parts = Functions(), Parts(type(value))
    live = add_plan(parts, functions.serialised(value._ldf.serialize_binary), walk, callback_in)
    expansion = parts.expansion("polars lazy frame")
    return expansion if live else expansion._replace(still=always)


def refuse_config(value: Any, walk: WalkContext) -> Expansion:
    """A Config object changes settings of the whole process when it is used."""
    raise UnencodableError("a polars.Config", HERE, "it stands for settings of the whole process")


def _type_classes() -> set[type]:
    return {kind for kind in vars(pl.datatypes).values() if isinstance(kind, type) and issubclass(kind, pl.DataType)}


EXPANDERS: dict[type, Expander] = placed(
    {
        pl.DataFrame: expand_frame,
        pl.Series: expand_series,
        **dict.fromkeys(_type_classes(), expand_type),
        pl.Field: expand_field,
        pl.Schema: expand_schema,
        **dict.fromkeys((pl.Expr, selectors.Selector, whenthen.Then, whenthen.ChainedThen), expand_expression),
        pl.LazyFrame: expand_lazy_frame,
        pl.Config: refuse_config,
        Callback: expand_callback,
    }
)
