"""Aggregates as states: how each is made of the rows of a part, how states are merged, how the result is made of them.

In: the keys and the aggregates of a relation, and the types that the server knows them by. Out: an Apart, or why there
is none. Law: a merged state is the state of all the rows together, in whatever order; the result made of it is the one
that the engine gives over all rows, but for the last bits of sums of floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import types as kinds

from nectar.dialects.spark.incremental.messages import (
    DOUBLE,
    LONG,
    ONE,
    Expression,
    aggregate,
    bare,
    call,
    cast,
    column,
    named,
    number,
    over,
    project,
    with_columns,
)  # fmt: skip
from nectar.dialects.spark.incremental.row_wise import AGGREGATES, ROW_WISE, why_not_row_wise

# Part of the key of kept states: to be raised whenever the columns of a state, or what is in them, change.
LAYOUT: Final = 2
_KEY, _STATE, _BESIDE, _PROBE = "__nectar_key_", "__nectar_state_", "__nectar_beside_", "__nectar_probe_"
_FULL_DECIMAL: Final = 38  # digits; a sum has ten more than its values, unless there are no more
_INTEGERS: Final = (kinds.ByteType, kinds.ShortType, kinds.IntegerType, kinds.LongType)
_FLOATS: Final = (kinds.FloatType, kinds.DoubleType)
_ORDERED: Final = (
    *_INTEGERS, kinds.BooleanType, kinds.DateType, kinds.TimestampType, kinds.TimestampNTZType, kinds.DecimalType,
)  # fmt: skip


class NotMerged(Exception):
    """An aggregate that has no states, and why."""


@dataclass(slots=True)
class Apart:
    """The aggregates of a relation, taken apart.

    keys: what is grouped by. made, merged: the columns of states, and how they are merged. beside: columns that merging
    needs besides. finishing: the aggregates, of columns of merged states. sums: whether one of the states is a sum of
    floats, whose last bits depend on how files are cut. guards: states that must not be true anywhere.
    """

    keys: tuple[Any, ...]
    made: list[Any] = field(default_factory=list)
    merged: list[Any] = field(default_factory=list)
    beside: list[Any] = field(default_factory=list)
    finishing: list[Any] = field(default_factory=list)
    sums: bool = False
    guards: list[str] = field(default_factory=list)
    _names: dict[tuple[bytes, str], str] = field(default_factory=dict)

    @property
    def key_names(self) -> list[str]:
        """The columns of a state that are keys."""
        return [f"{_KEY}{at}" for at in range(len(self.keys))]

    def state(self, made: Any, merge: Callable[[Any], Any], how: str) -> Any:
        """The column of a state that is made like this; one that is there already is used. how: names the merge."""
        known = (bare(made), how)
        if known not in self._names:
            name = self._names[known] = f"{_STATE}{len(self._names)}"
            self.made.append(named(made, name))
            self.merged.append(named(merge(column(name)), name))
        return column(self._names[known])

    def of_group(self, value: Any) -> Any:
        """An aggregate of all states of a group, as a column beside each of them."""
        name = f"{_BESIDE}{len(self.beside)}"
        self.beside.append(named(over(value, map(column, self.key_names)), name))
        return column(name)

    def state_of(self, rows: Any) -> Any:
        """The relation that gives the state of rows."""
        keys = [named(key, name) for key, name in zip(self.keys, self.key_names, strict=True)]
        return aggregate(rows, keys, self.made)

    def merged_of(self, states: Any) -> Any:
        """The relation that gives one state of several."""
        beside = with_columns(states, self.beside) if self.beside else states
        return aggregate(beside, map(column, self.key_names), self.merged)

    def finished_of(self, state: Any) -> Any:
        """The relation that gives the aggregates, after the keys."""
        return project(state, [*map(column, self.key_names), *self.finishing])


def probe_of(rows: Any, keys: Sequence[Any], aggregates: Sequence[Any]) -> tuple[Any, list[bytes]]:
    """A relation whose schema tells the types of keys and of calls of aggregates; and which calls these are.

    Raises NotMerged if a call cannot be taken apart whatever its type.
    """
    calls: dict[bytes, Any] = {}

    def note(one: Any) -> Any:
        calls[bare(one)] = _told_by(one)
        return one

    taking = _Taking(keys, note)
    for each in aggregates:
        taking.apart(each)
    if not calls:
        raise NotMerged("it has no aggregates")
    values = [named(one, f"{_PROBE}{at}") for at, one in enumerate(calls.values())]
    named_keys = [named(key, f"{_KEY}{at}") for at, key in enumerate(keys)]
    return aggregate(rows, named_keys, values), list(calls)


def taken_apart(
    keys: Sequence[Any], aggregates: Sequence[Any], calls: Iterable[bytes], types: Sequence[kinds.DataType]
) -> Apart:
    """States of aggregates. types: of the keys, then of the calls. Raises NotMerged."""
    apart = Apart(tuple(keys))
    for kind in types[: len(keys)]:
        if not _is_key(kind):
            raise NotMerged(f"groups by {kind.simpleString()} are not merged")
    known = dict(zip(calls, types[len(keys) :], strict=True))
    taking = _Taking(keys, lambda one: _by_rule(apart, one, known))
    apart.finishing = [taking.apart(each) for each in aggregates]
    return apart


def without_name(expression: Any) -> Any:
    """An expression without the name it is given."""
    while expression.WhichOneof("expr_type") == "alias":
        expression = expression.alias.expr
    return expression


class _Taking:
    """Takes expressions apart: keys become columns of a state, calls of aggregates what is made of them."""

    def __init__(self, keys: Sequence[Any], replaced: Callable[[Any], Any]) -> None:
        self._keys = {bare(key): f"{_KEY}{at}" for at, key in enumerate(keys)}
        self._replaced = replaced

    def apart(self, given: Any) -> Any:
        """The expression over columns of states."""
        expression = without_name(given)
        name = self._keys.get(bare(expression))
        if name is not None:
            return column(name)
        kind = expression.WhichOneof("expr_type")
        if kind == "literal":
            return expression
        if kind == "cast":
            made = Expression()
            made.CopyFrom(expression)
            made.cast.expr.CopyFrom(self.apart(expression.cast.expr))
            return made
        if kind != "unresolved_function":
            raise NotMerged(f"an aggregate holds an expression of the kind {kind}")
        called = expression.unresolved_function
        if called.function_name.lower() in AGGREGATES:
            return self._call(expression)
        if called.function_name.lower() not in ROW_WISE:
            raise NotMerged(f"{called.function_name}() looks at several rows at once")
        return call(called.function_name, *map(self.apart, called.arguments))

    def _call(self, expression: Any) -> Any:
        called = expression.unresolved_function
        name = called.function_name.lower()
        if name not in _RULES:
            raise NotMerged(f"{name}() cannot be merged")
        if called.is_distinct and (name != "count" or len(called.arguments) != 1):
            raise NotMerged(f"{name}() of distinct values cannot be merged")
        why_not = next(filter(None, map(why_not_row_wise, called.arguments)), "")
        if why_not:
            raise NotMerged(why_not)
        return self._replaced(expression)


def _told_by(one: Any) -> Any:
    """What tells the type that a rule needs to know: that of the result, or that of the values that are counted."""
    called = one.unresolved_function
    return call("collect_set", *called.arguments) if called.is_distinct else one


# rules: what a call of an aggregate becomes; apart gets its states


def _by_rule(apart: Apart, one: Any, types: Mapping[bytes, kinds.DataType]) -> Any:
    called = one.unresolved_function
    rule = _distinct if called.is_distinct else _RULES[called.function_name.lower()]
    return rule(apart, one, types[bare(one)])


def _refused(one: Any, kind: kinds.DataType) -> NotMerged:
    return NotMerged(f"{one.unresolved_function.function_name}() of {kind.simpleString()} cannot be merged")


def _summed(apart: Apart, made: Any, kind: Any = None) -> Any:
    """A state that is merged by adding; sums of decimals become wider, and are made what they were."""

    def merge(state: Any) -> Any:
        return call("sum", state) if kind is None else cast(call("sum", state), kind)

    return apart.state(made, merge, "sum")


def _count(apart: Apart, one: Any, kind: kinds.DataType) -> Any:
    return _summed(apart, one)


def _sum(apart: Apart, one: Any, kind: kinds.DataType) -> Any:
    """Sums that wrap do so in any order to the same; decimals must not overflow, which a part alone would not tell."""
    if isinstance(kind, kinds.LongType):
        return _summed(apart, one)
    if isinstance(kind, kinds.DoubleType):
        apart.sums = True
        return _summed(apart, one)
    if isinstance(kind, kinds.DecimalType) and kind.precision < _FULL_DECIMAL:
        return _summed(apart, one, _decimal(kind))
    raise _refused(one, kind)


def _decimal(kind: kinds.DecimalType) -> Any:
    return type(LONG)(decimal=LONG.Decimal(precision=kind.precision, scale=kind.scale))


def _extreme(name: str) -> Callable[[Apart, Any, kinds.DataType], Any]:
    """With NaN it depends on the engine, and on the order of rows; such values are looked for."""

    def rule(apart: Apart, one: Any, kind: kinds.DataType) -> Any:
        if isinstance(kind, _FLOATS):
            (value,) = one.unresolved_function.arguments
            guard = apart.state(call("bool_or", call("isnan", value)), lambda state: call("bool_or", state), "bool_or")
            apart.guards.append(guard.unresolved_attribute.unparsed_identifier.strip("`"))
        elif not isinstance(kind, _ORDERED) and not _is_plain_string(kind):
            raise _refused(one, kind)
        return apart.state(one, lambda state: call(name, state), name)

    return rule


def _itself(name: str, *allowed: type) -> Callable[[Apart, Any, kinds.DataType], Any]:
    """Merged by the same function."""

    def rule(apart: Apart, one: Any, kind: kinds.DataType) -> Any:
        if not isinstance(kind, allowed):
            raise _refused(one, kind)
        return apart.state(one, lambda state: call(name, state), name)

    return rule


def _count_and_total(apart: Apart, value: Any) -> tuple[Any, Any]:
    apart.sums = True
    # Times one: Sail takes the sums of a value and of its cast for one column, and fails.
    return _summed(apart, call("count", value)), _summed(apart, call("sum", call("*", cast(value, DOUBLE), ONE)))


def _mean(apart: Apart, one: Any, kind: kinds.DataType) -> Any:
    """The sum as a float, as engines do it, over the number of values; nothing over nothing is null."""
    if not isinstance(kind, kinds.DoubleType):
        raise _refused(one, kind)
    (value,) = one.unresolved_function.arguments
    count, total = _count_and_total(apart, value)
    return call("/", total, call("nullif", cast(count, DOUBLE), cast(number(0), DOUBLE)))


def _variance(less: int, root: bool) -> Callable[[Apart, Any, kinds.DataType], Any]:
    """Count, sum and squared deviations from the mean; those of parts are shifted to the common mean when merged."""

    def rule(apart: Apart, one: Any, kind: kinds.DataType) -> Any:
        if not isinstance(kind, kinds.DoubleType):
            raise _refused(one, kind)
        (value,) = one.unresolved_function.arguments
        count, total = _count_and_total(apart, value)
        made = call("*", call("var_pop", cast(value, DOUBLE)), cast(call("count", value), DOUBLE))

        def merge(state: Any) -> Any:
            mean = call("/", apart.of_group(call("sum", total)), cast(apart.of_group(call("sum", count)), DOUBLE))
            values = cast(count, DOUBLE)
            away = call("-", call("/", total, values), mean)
            shift = call("when", call(">", count, number(0)), call("*", values, call("*", away, away)))
            return call("+", call("sum", state), call("sum", shift))

        deviations = apart.state(made, merge, "deviations")
        over_values = call("nullif", cast(call("-", count, number(less)), DOUBLE), cast(number(0), DOUBLE))
        found = call("/", deviations, over_values)
        return call("sqrt", found) if root else found

    return rule


def _distinct(apart: Apart, one: Any, kind: kinds.DataType) -> Any:
    """The values themselves: there are as many of them as there are, and floats may be equal in several ways."""
    element = kind.elementType if isinstance(kind, kinds.ArrayType) else kind
    if not isinstance(element, _ORDERED) and not _is_plain_string(element):
        raise _refused(one, element)
    made = call("collect_set", *one.unresolved_function.arguments)
    values = apart.state(
        made, lambda state: call("array_distinct", call("flatten", call("collect_list", state))), "distinct"
    )
    return cast(call("size", values), LONG)


def _is_plain_string(kind: kinds.DataType) -> bool:
    return type(kind) is kinds.StringType and kind == kinds.StringType()


def _is_key(kind: kinds.DataType) -> bool:
    """Whether values of a type are equal as states if they are as rows."""
    return isinstance(kind, (*_ORDERED, *_FLOATS, kinds.BinaryType)) or _is_plain_string(kind)


_BOOLEAN: Final = (kinds.BooleanType,)
_RULES: Final[dict[str, Callable[[Apart, Any, kinds.DataType], Any]]] = {
    "count": _count,
    "count_if": _count,
    "sum": _sum,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "avg": _mean,
    "mean": _mean,
    "bool_and": _itself("bool_and", *_BOOLEAN),
    "every": _itself("bool_and", *_BOOLEAN),
    "bool_or": _itself("bool_or", *_BOOLEAN),
    "some": _itself("bool_or", *_BOOLEAN),
    "bit_and": _itself("bit_and", *_INTEGERS),
    "bit_or": _itself("bit_or", *_INTEGERS),
    "bit_xor": _itself("bit_xor", *_INTEGERS),
    "var_pop": _variance(0, root=False),
    "var_samp": _variance(1, root=False),
    "variance": _variance(1, root=False),
    "stddev_pop": _variance(0, root=True),
    "stddev_samp": _variance(1, root=True),
    "stddev": _variance(1, root=True),
    "std": _variance(1, root=True),
}
