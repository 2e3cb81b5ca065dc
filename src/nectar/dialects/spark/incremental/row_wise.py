"""Which expressions give for a row what depends on that row alone.

An allow-list: functions of the engine that are known, without those that look at several rows; functions of Python
that are called for each row, or for batches that the engine cuts as it likes.
"""

from __future__ import annotations

import re
from typing import Any, Final

from nectar.dialects.spark.function_names import KNOWN, SINCE_4_3
from nectar.dialects.spark.messages import children_of
from nectar.dialects.spark.text import calls_in

AGGREGATES: Final = frozenset({
    "any_value", "approx_count_distinct", "approx_percentile", "array_agg", "avg", "bit_and", "bit_or", "bit_xor",
    "bitmap_and_agg", "bitmap_construct_agg", "bitmap_or_agg", "bool_and", "bool_or", "collect_list", "collect_set",
    "corr", "count", "count_if", "count_min_sketch", "covar_pop", "covar_samp", "every", "first", "first_value",
    "grouping", "grouping_id", "histogram_numeric", "hll_sketch_agg", "hll_union_agg", "kurtosis", "last",
    "last_value", "listagg", "max", "max_by", "mean", "median", "min", "min_by", "mode", "percentile",
    "percentile_approx", "product", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope",
    "regr_sxx", "regr_sxy", "regr_syy", "schema_of_variant_agg", "skewness", "some", "std", "stddev", "stddev_pop",
    "stddev_samp", "string_agg", "sum", "theta_intersection_agg", "theta_sketch_agg", "theta_union_agg", "try_avg",
    "try_sum", "tuple_intersection_agg_double", "tuple_intersection_agg_integer", "tuple_sketch_agg_double",
    "tuple_sketch_agg_integer", "tuple_union_agg_double", "tuple_union_agg_integer", "var_pop", "var_samp",
    "variance",
})  # fmt: skip
_OF_WINDOWS: Final = frozenset({
    "cume_dist", "dense_rank", "lag", "lead", "nth_value", "ntile", "percent_rank", "rank", "row_number",
    "session_window", "window", "window_time",
})  # fmt: skip
ROW_WISE: Final = KNOWN - SINCE_4_3 - AGGREGATES - _OF_WINDOWS  # of new ones it is not known
# udf, with and without Arrow; pandas_udf and arrow_udf from column to column.
_EVALUATED_ROW_BY_ROW: Final = frozenset({100, 101, 200, 250})
_OVER: Final = re.compile(r"\bover\b", re.IGNORECASE)


def why_not_row_wise(message: Any) -> str:
    """Why something that holds expressions looks at several rows at once, or may; empty if it does not."""
    pending = [message]
    while pending:
        each = pending.pop()
        name = each.DESCRIPTOR.full_name
        if name == "spark.connect.Relation":
            continue
        reason = _why_not(each) if name == "spark.connect.Expression" else ""
        if reason:
            return reason
        pending.extend(children_of(each))
    return ""


def _why_not(expression: Any) -> str:
    kind = expression.WhichOneof("expr_type")
    if kind == "window":
        return "a window looks at several rows at once"
    if kind == "subquery_expression":
        return "it asks a query within it"
    if kind in ("unresolved_function", "call_function"):
        return _why_not_called(getattr(expression, kind).function_name)
    if kind == "expression_string":
        return _why_not_written(expression.expression_string.expression)
    if kind == "common_inline_user_defined_function":
        function = expression.common_inline_user_defined_function
        if function.python_udf.eval_type not in _EVALUATED_ROW_BY_ROW:
            return f"the function {function.function_name} is handed several rows at once"
    return ""


def _why_not_called(name: str) -> str:
    return "" if name.lower() in ROW_WISE else f"{name}() looks at several rows at once"


def _why_not_written(text: str) -> str:
    called = calls_in(text)
    if isinstance(called, str):
        return called
    if _OVER.search(text):
        return "a window looks at several rows at once"
    return next(filter(None, map(_why_not_called, sorted(called.called))), "")
