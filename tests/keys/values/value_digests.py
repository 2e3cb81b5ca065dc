"""A digest of any value, over all tables of expanders; functions and classes stand for themselves by name and code."""

from __future__ import annotations

import types

from nectar.keys.expansion import Expander, Expansion, joined
from nectar.keys.scheme import new_hasher
from nectar.keys.values import arrow_values, containers, numpy_values, pandas_values, polars_values, standard
from nectar.keys.walk import Walk

TABLE: dict[type, Expander] = {
    **containers.EXPANDERS,
    **standard.EXPANDERS,
    **numpy_values.EXPANDERS,
    **pandas_values.EXPANDERS,
    **arrow_values.EXPANDERS,
    **polars_values.EXPANDERS,
}


def _expand_class(value: type, walk: object) -> Expansion:
    return Expansion("class", joined(value.__module__, value.__qualname__), by_value=True)


def _expand_function(value: types.FunctionType, walk: object) -> Expansion:
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    named = [value.__globals__[name] for name in value.__code__.co_names if name in value.__globals__]
    constants = [constant for constant in value.__code__.co_consts if not isinstance(constant, types.CodeType)]
    names = joined(value.__code__.co_code, *value.__code__.co_names)
    return Expansion("function", names, (*constants, *cells, *named))


def _expand_builtin(value: types.BuiltinFunctionType, walk: object) -> Expansion:
    return Expansion("builtin", joined(value.__qualname__), by_value=True)


def _expand_instance(value: object, walk: object) -> Expansion:
    names = sorted(vars(value))
    return Expansion("instance", joined(*names), (type(value), *(vars(value)[name] for name in names)))


def expander_for(kind: type) -> Expander:
    if kind in TABLE:
        return TABLE[kind]
    if issubclass(kind, type):
        return _expand_class
    return {types.FunctionType: _expand_function, types.BuiltinFunctionType: _expand_builtin}.get(kind, _expand_instance)


def walked(value: object) -> tuple[bytes, Walk]:
    walk = Walk(expander_for, new_hasher())
    return walk.run(value, "value"), walk


def digest(value: object) -> bytes:
    return walked(value)[0]


def still(walk: Walk) -> bool:
    return all(recheck() for recheck in walk.rechecks)
