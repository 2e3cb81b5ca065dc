"""How each aggregate of rows is taken apart: its states, and how they are finished.

A rule gets the aggregate and the states to add to, and gives an expression over merged states, or an Unmerged. Types
are those of the whole: a state has the type of its aggregate, or the finishing expression gives it back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import polars as pl
from msgspec import Struct

from nectar.dialects.polars.aggregates.expressions import (
    expression_of,
    function_in_words,
    in_words,
    is_of_rows,
    kind_of,
)
from nectar.dialects.polars.aggregates.states import Merge, States, by, lists
from nectar.dialects.polars.elementwise import reads_rows


class Unmerged(Struct, frozen=True):
    """An aggregate that has no state. reason: why, by its name."""

    reason: str


Over = pl.Expr | Unmerged
_Rule = Callable[[pl.Expr, Any, Any, States], Over]  # the aggregate, what it is of, its options, the states

_DIGITS: Final = 38  # of a decimal, at most
_ALL: Final = lists("all", lambda values: values)
_DISTINCT: Final = lists("distinct", pl.Expr.unique)
_DISTINCT_IN_ORDER: Final = lists("distinct in order", lambda values: values.unique(maintain_order=True))
_ENDS: Final = {"First": lists("first", lambda values: values.head(1)), "Last": lists("last", lambda v: v.tail(1))}


def merged_aggregate(content: Any, states: States) -> Over:
    """What an aggregate (of the kind Agg) is over states."""
    kind, inner = kind_of(content)
    of, options = _input_and_options(inner)
    if kind not in _AGGREGATES:
        return Unmerged(f"{in_words(kind)} cannot be merged")
    if not is_of_rows(of):
        return Unmerged(f"{in_words(kind)} is of something that is not computed row by row")
    return _AGGREGATES[kind](expression_of({"Agg": content}), of, options, states)


def merged_function(content: Any, states: States) -> Over | None:
    """What a function that aggregates is over states; None if it is no function that aggregates rows."""
    name, options = kind_of(content["function"])
    inner, inner_options = kind_of(options)
    rule = _FUNCTIONS.get(name) or _FUNCTIONS.get(f"{name} {inner}")
    inputs = content["input"]
    if rule is None or not all(map(is_of_rows, inputs)):
        return None
    if len(inputs) > 1 and not all(map(reads_rows, inputs)):
        return Unmerged(f"{function_in_words(content['function'])} is of several columns that leave out rows")
    return rule(expression_of({"Function": content}), inputs, inner_options, states)


def merged_list(expression: Any, states: States) -> Over:
    """What rows, or some of them, are over states: a list for each group."""
    merge = _merge_of_lists(expression)
    if merge is None or states.whole:
        return Unmerged("it is not aggregated")
    return states.of(expression_of(expression).implode(), merge)


def is_list(expression: Any) -> bool:
    """Whether an expression gives each group a list that can be merged."""
    return _merge_of_lists(expression) is not None


def _merge_of_lists(expression: Any) -> Merge | None:
    """How lists of rows, of distinct ones, or of the first or last so many are merged; None if it is none of these."""
    kind, content = kind_of(expression)
    if kind == "Slice" and is_of_rows(content["input"]):
        return _merge_of_ends(content)
    if kind == "Function" and kind_of(content["function"])[0] == "Unique" and is_of_rows(content["input"][0]):
        return _DISTINCT_IN_ORDER if kind_of(content["function"])[1] else _DISTINCT
    return _ALL if is_of_rows(expression) else None


def _merge_of_ends(content: Any) -> Merge | None:
    """How lists of the first or last so many rows are merged."""
    offset, length = _number(content["offset"]), _number(content["length"])
    if offset is None or length is None or length < 0:
        return None
    if offset == 0:
        return lists(f"first {length}", lambda values: values.head(length))
    return lists(f"last {length}", lambda values: values.tail(length)) if offset == -length else None


def _number(expression: Any) -> int | None:
    """The number that a literal is."""
    kind, content = kind_of(kind_of(expression)[1])
    number = content.get("Int") if kind == "Dyn" and isinstance(content, dict) else None
    return int.from_bytes(number, "big", signed=True) if isinstance(number, bytes) else None


def _input_and_options(inner: Any) -> tuple[Any, Any]:
    if isinstance(inner, dict) and "input" in inner:
        return inner["input"], inner
    return (inner[0], inner[1]) if isinstance(inner, list) else (inner, None)


def _itself(method: str, **options: Any) -> _Rule:
    """States are the aggregate of parts, and merge by an aggregate."""
    merge = by(method, **options)
    return lambda whole, of, _options, states: states.of(whole, merge)


def _sum(whole: pl.Expr, of: Any, options: Any, states: States) -> Over:
    """Of what has no sum, such as times, engines give null, or fail, by what else stands in the plan."""
    kind = states.type_of(whole)
    if kind is None or not (kind.is_numeric() or kind == pl.Duration):
        return Unmerged(f"sum of {kind or 'an unknown type'} cannot be merged")
    merge = _decimal_sum(kind) if isinstance(kind, pl.Decimal) else by("sum")
    single = None if _is_shifted(of) else _each_row(of, lambda rows: rows.cast(kind))
    return states.of(whole, merge, is_sum=True, single=single)


def _is_shifted(of: Any) -> bool:
    """Whether something is added to what is summed. Polars adds it to the sum, which does not overflow as rows may."""
    while isinstance(of, dict) and "Alias" in of:
        of = of["Alias"][0]
    return isinstance(of, dict) and "BinaryExpr" in of and of["BinaryExpr"]["op"] in ("Plus", "Minus")


def _each_row(of: Any, made: Callable[[pl.Expr], pl.Expr]) -> pl.Expr | None:
    """A state of each row by itself; None if the aggregate leaves out rows, so that some have no state."""
    return made(expression_of(of)) if reads_rows(of) else None


def _decimal_sum(kind: pl.Decimal) -> Merge:
    """Engines notice when a sum has too many digits, but not always where they merge; here it always fails."""
    most = 0.999 * 10.0 ** (_DIGITS - kind.scale)

    def merged(state: pl.Expr) -> pl.Expr:
        return _failing_unless(state.cast(pl.Float64).sum().abs() < most, state.sum(), kind)

    return Merge(f"sum of {kind}", merged)


def _count(whole: pl.Expr, of: Any, options: Any, states: States) -> Over:
    def counted(rows: pl.Expr) -> pl.Expr:
        counts = rows.is_not_null() | pl.lit(bool(options["include_nulls"]))
        return counts.cast(pl.get_index_type())

    return states.of(whole, by("sum"), single=_each_row(of, counted))


def _extreme(method: str) -> _Rule:
    def rule(whole: pl.Expr, of: Any, options: Any, states: States) -> Over:
        merge = by(f"nan_{method}" if options["propagate_nans"] else method)
        return states.of(whole, merge, single=_each_row(of, lambda rows: rows))

    return rule


def _end(kind: str) -> _Rule:
    """The first or last row; of parts that may have none, a list with one row or none."""

    def rule(whole: pl.Expr, of: Any, options: Any, states: States) -> Over:
        if reads_rows(of) and not states.whole:
            return states.of(whole, by(kind.lower()))
        rows = expression_of(of)
        end = rows.head(1) if kind == "First" else rows.tail(1)
        return states.of(end.implode(), _ENDS[kind]).list.first()

    return rule


def _mean(whole: pl.Expr, of: Any, options: Any, states: States) -> Over:
    """The sum as a float, as Polars does it, over the number of values; nothing over nothing is null."""
    kind = _float_type("mean", whole, of, states)
    if isinstance(kind, Unmerged):
        return kind
    count, total = _count_and_total(of, states)
    return pl.when(count > 0).then(total / count).cast(kind)


def _count_and_total(of: Any, states: States) -> tuple[pl.Expr, pl.Expr]:
    rows = expression_of(of)
    counted = _each_row(of, lambda rows: rows.is_not_null().cast(pl.get_index_type()))
    summed = _each_row(of, lambda rows: rows.cast(pl.Float64))
    count = states.of(rows.count(), by("sum"), single=counted)
    return count, states.of(rows.cast(pl.Float64).sum(), by("sum"), is_sum=True, single=summed)


def _variance(root: bool) -> _Rule:
    """Count, sum and squared deviations from the mean; those of parts are shifted to the common mean when merged."""

    def rule(whole: pl.Expr, of: Any, ddof: Any, states: States) -> Over:
        kind = _float_type("std" if root else "var", whole, of, states)
        if isinstance(kind, Unmerged):
            return kind
        count, total = _count_and_total(of, states)
        rows = expression_of(of)
        deviations = states.of(rows.cast(pl.Float64).var(ddof=0) * rows.count(), _deviations(count, total), is_sum=True)
        number = count.cast(pl.Float64)
        found: pl.Expr = pl.when(number > ddof).then(deviations / (number - ddof))
        if ddof == 0:  # engines do not agree on no value (null or zero), nor on an infinite one (NaN or zero)
            found = _failing_unless((count > 1) | ((count == 1) & total.is_finite()), found, pl.Float64())
        return (found.sqrt() if root else found).cast(kind)

    return rule


def _deviations(count: pl.Expr, total: pl.Expr) -> Merge:
    def merged(state: pl.Expr) -> pl.Expr:
        mean = total.sum() / count.sum()
        shift = pl.when(count > 0).then(count * (total / count - mean).pow(2)).sum()
        # One part alone is taken as it is: nothing of it is rounded again.
        return state.sum() + pl.when((count > 0).sum() > 1).then(shift).otherwise(0.0)

    return Merge(f"deviations {count.meta.output_name()} {total.meta.output_name()}", merged)


def _failing_unless(condition: pl.Expr, value: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """A value that is not null where the condition holds; elsewhere it fails, and all is computed as a whole."""
    return pl.coalesce(value, pl.when(~condition).then(pl.lit("not known from states")).cast(kind))


def _float_type(name: str, whole: pl.Expr, of: Any, states: States) -> pl.DataType | Unmerged:
    """The type of a mean or variance; times are rounded to their unit, which parts would do once too often."""
    kind, rows = states.type_of(whole), states.type_of(expression_of(of).first())
    if kind is None or rows is None or not kind.is_float() or not (rows.is_numeric() or rows == pl.Boolean):
        return Unmerged(f"{name} of {rows or 'an unknown type'} cannot be merged")
    return kind


def _n_unique(whole: pl.Expr, of: Any, options: Any, states: States) -> Over:
    values = states.of(expression_of(of).unique().implode(), _DISTINCT)
    return values.list.len()


def _implode(whole: pl.Expr, of: Any, options: Any, states: States) -> Over:
    return states.of(whole, _ALL)


def _product(whole: pl.Expr, of: Any, options: Any, states: States) -> Over:
    """Integers wrap, in any order to the same. Floats may leave their range in a part alone, decimals are rounded."""
    kind = states.type_of(whole)
    if kind is None or not kind.is_integer():
        return Unmerged(f"product of {kind or 'an unknown type'} cannot be merged")
    return states.of(whole, by("product"))


def _bitwise(method: str) -> _Rule:
    """Of booleans that are all null, engines give null or the neutral value."""

    def rule(whole: pl.Expr, of: Any, options: Any, states: States) -> Over:
        kind = states.type_of(whole)
        if kind is None or not kind.is_integer():
            return Unmerged(f"{method} of {kind or 'an unknown type'} cannot be merged")
        return states.of(whole, by(method))

    return rule


def _truth(method: str) -> _Rule:
    def rule(whole: pl.Expr, of: Any, options: Any, states: States) -> Over:
        return states.of(whole, by(method, ignore_nulls=options["ignore_nulls"]))

    return rule


def _is_empty(whole: pl.Expr, of: Any, options: Any, states: States) -> Over:
    """Of one row that a filter leaves out, engines do not agree whether it is empty but for nulls."""
    if options["ignore_nulls"] and not reads_rows(of[0]):
        return Unmerged("is_empty with ignore_nulls cannot be merged where rows are left out")
    return states.of(whole, by("all"))


def _extreme_by(method: str) -> _Rule:
    """The value and what it was chosen by; the first of equals, as the parts are in order."""

    def rule(whole: pl.Expr, of: Any, options: Any, states: States) -> Over:
        chosen_by = expression_of(of[1])
        best = states.of(getattr(chosen_by, method)(chosen_by), Merge(method, lambda s: getattr(s, method)(s)))
        name = best.meta.output_name()
        return states.of(whole, Merge(f"{method} {name}", lambda state: getattr(state, method)(pl.col(name))))

    return rule


_AGGREGATES: Final[dict[str, _Rule]] = {
    "Sum": _sum,
    "Min": _extreme("min"),
    "Max": _extreme("max"),
    "First": _end("First"),
    "Last": _end("Last"),
    "FirstNonNull": _itself("first", ignore_nulls=True),
    "LastNonNull": _itself("last", ignore_nulls=True),
    "Count": _count,
    "Mean": _mean,
    "Var": _variance(root=False),
    "Std": _variance(root=True),
    "NUnique": _n_unique,
    "Implode": _implode,
}
_FUNCTIONS: Final[dict[str, _Rule]] = {
    "NullCount": _itself("sum"),
    "Product": _product,
    "MinBy": _extreme_by("min_by"),
    "MaxBy": _extreme_by("max_by"),
    "Boolean Any": _truth("any"),
    "Boolean All": _truth("all"),
    "Boolean HasNulls": _itself("any"),
    "Boolean IsEmpty": _is_empty,
    "Bitwise And": _bitwise("bitwise_and"),
    "Bitwise Or": _bitwise("bitwise_or"),
    "Bitwise Xor": _bitwise("bitwise_xor"),
}
