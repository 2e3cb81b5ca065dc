"""How each kind of step behaves: what it has to do with the order of rows, and whether its result is one to keep.

Data, and a few questions about expressions. What is not listed counts as the worst: its order is undetermined, it
depends on the order of its input, and it may give something else each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any, Final

from nectar.dialects.polars.plan import Step
from nectar.keys.values.polars_plans import EXPRESSIONS
from nectar.program.tree import POSITIONAL, ROW_WISE, Order

_WORST: Final = Order(scrambles=True, sensitive=True, arbitrary=True)
_SCRAMBLED: Final = Order(scrambles=True)

# Parts of expressions that add nothing of their own: a row's value comes from that row alone, or from a set of rows.
_NEUTRAL: Final = frozenset(
    {"Alias", "Column", "Selector", "Literal", "DataTypeFunction", "BinaryExpr", "Cast", "Ternary", "KeepName", "Len",
     "Field", "RenameAlias", "Function", "Agg", "Over", "Eval", "StructEval", "Element", "Filter"}
)  # fmt: skip
# Parts whose value depends on the order of rows, and on nothing else.
_ORDERED: Final = frozenset({"Sort", "Gather", "Explode", "Slice", "Rolling", "AnonymousFunction"})
_EXACT_AGGREGATES: Final = frozenset({"Min", "Max", "Count", "NUnique", "Median", "Quantile"})
_INEXACT_AGGREGATES: Final = frozenset({"Sum", "Mean", "Std", "Var"})  # of floats, which are added as they come
_ORDERED_AGGREGATES: Final = frozenset({"First", "FirstNonNull", "Last", "LastNonNull", "Item", "Implode"})
_NEUTRAL_FUNCTIONS: Final = frozenset(
    {"ArrayExpr", "BinaryExpr", "Categorical", "Extension", "ListExpr", "MapExpr", "StringExpr", "StructExpr",
     "TemporalExpr", "Bitwise", "Boolean", "Business", "Abs", "Negate", "NullCount", "Pow", "Hash", "Mm3Hash",
     "Trigonometry", "Atan2", "Sign", "FillNull", "Quantile", "Clip", "AsStruct", "ApproxNUnique",
     "Coalesce", "Log", "Log1p", "Exp", "Erf", "Erfc", "Round", "Sql", "RoundSF",
     "Truncate", "Floor", "Ceil", "UpperBound", "LowerBound", "Cut", "ToPhysical", "FoldHorizontal",
     "ReduceHorizontal", "CumFoldHorizontal", "CumReduceHorizontal", "MaxHorizontal", "MinHorizontal",
     "SumHorizontal", "MeanHorizontal", "Replace", "ReplaceStrict", "Reinterpret", "RowEncode", "RowDecode", "Hist"}
)  # fmt: skip
_INEXACT_FUNCTIONS: Final = frozenset({"Product", "Skew", "Kurtosis", "Correlation", "Entropy"})
_ORDERED_FUNCTIONS: Final = frozenset(
    {"ArgWhere", "IndexOf", "SearchSorted", "Range", "FillNullWithStrategy", "RollingExpr", "RollingExprBy", "Append",
     "ShiftAndFill", "Shift", "DropNans", "DropNulls", "Reshape", "RepeatBy", "ArgUnique", "ArgMin", "ArgMax", "Rank",
     "Repeat", "CumCount", "CumSum", "CumProd", "CumMin", "CumMax", "Reverse", "Diff", "PctChange", "Interpolate",
     "InterpolateBy", "PeakMin", "PeakMax", "RLE", "RLEID", "Random", "SetSortedFlag", "EwmMean", "EwmMeanBy",
     "EwmSum", "EwmSumBy", "EwmStd", "EwmVar", "GatherEvery", "ExtendConstant", "ConcatExpr", "QCut", "Bin"}
)  # fmt: skip
_OF_POSITION: Final = frozenset({"ConcatVertical", "IsFirstDistinct", "IsLastDistinct", "IsSorted", "Sample"})
_ROW_WISE_FUNCTIONS: Final = frozenset({"Explode", "Rename", "Unnest", "FillNan", "Hint"})
_POSITIONAL_FUNCTIONS: Final = frozenset({"RowIndex", "OpaquePython"})


def order_of(step: Step) -> Order:
    """What a step has to do with the order of rows."""
    known = _ORDERS.get(step.kind)
    return _WORST if known is None else known(step) if callable(known) else known


def is_breaker(step: Step) -> bool:
    """Whether a step's result is a good one to keep: small beside its input, and made before anything above begins."""
    return step.kind == "GroupBy" and not step.body["options"].get("slice")


def group_names(step: Step) -> set[str] | None:
    """Names of the columns a group-by groups by; None if only running tells."""
    names = [_plain_name(key) for key in step.body["keys"]]
    return None if None in names else set(names)  # type: ignore[arg-type]


def columns_named(expression: Any) -> set[str] | None:
    """Columns an expression reads; None if only running tells, as with selectors."""
    found: set[str] = set()
    pending = [expression]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if "Selector" in value:
                return None
            name = value.get("Column")
            if isinstance(name, str):
                found.add(name)
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return found


def _plain_name(key: Any) -> str | None:
    if isinstance(key, dict) and isinstance(key.get("Column"), str):
        return str(key["Column"])
    if isinstance(key, dict) and "Alias" in key:
        return str(key["Alias"][1])
    return None


def depends_on(expressions: Iterable[Any]) -> tuple[bool, bool]:
    """What the values of expressions depend on besides their input: the order of rows; and which run it is."""
    ordered = arbitrary = False
    pending = [(expression, False) for expression in expressions]
    while pending:
        current, aggregated = pending.pop()
        kind, content = _kind(current)
        found = _own_dependence(kind, content, aggregated)
        ordered, arbitrary = ordered or found[0], arbitrary or found[1]
        inside = aggregated or kind in ("Agg", "Eval")
        pending.extend((inner, inside) for inner in _inner(kind, content))
    return ordered, arbitrary


def _own_dependence(kind: str, content: Any, aggregated: bool) -> tuple[bool, bool]:
    """The same of one part of an expression, whatever stands inside it. aggregated: one value is made of its rows."""
    if kind == "Agg":
        name, _ = _kind(content)
        return _found(name, _EXACT_AGGREGATES, _ORDERED_AGGREGATES, _INEXACT_AGGREGATES)
    if kind == "Function":
        name, options = _kind(content["function"])
        if _kind(options)[0] in _OF_POSITION or (name == "Unique" and options is True):
            return True, False
        return _found(name, _NEUTRAL_FUNCTIONS, _ORDERED_FUNCTIONS, _INEXACT_FUNCTIONS)
    if kind == "Filter":  # beside another column, which of its rows it stands with depends on the order
        return not aggregated, False
    if kind == "Eval":
        return "Cumulative" in str(content.get("variant")), False
    if kind == "Over":
        return bool(content.get("order_by")) or content.get("mapping") != "GroupsToRows", False
    return _found(kind, _NEUTRAL, _ORDERED, frozenset())


def _found(name: str, neutral: Set[str], ordered: Set[str], inexact: Set[str]) -> tuple[bool, bool]:
    if name in neutral:
        return False, False
    return (True, name not in ordered) if name not in inexact else (False, True)


def _inner(kind: str, content: Any) -> list[Any]:
    """The expressions inside one."""
    if kind in ("Column", "Literal", "Selector", "Len", "Field", "DataTypeFunction", "Element"):
        return []
    if kind == "Alias":
        return [content[0]]
    if kind == "Agg":
        inner = _kind(content)[1]
        return [inner["input"]] if isinstance(inner, dict) and "input" in inner else [_first(inner)]
    if kind == "KeepName":
        return [content]
    if kind == "Function":
        return list(content["input"])
    if isinstance(content, list):
        return [each for each in content if _is_expression(each)]
    found = []
    for value in content.values() if isinstance(content, dict) else ():
        found += [each for each in (value if isinstance(value, list) else [value]) if _is_expression(each)]
    return found


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value


def _is_expression(value: Any) -> bool:
    return _kind(value)[0] in EXPRESSIONS


def _kind(value: Any) -> tuple[str, Any]:
    if isinstance(value, dict) and value:
        return next(iter(value.items()))
    return str(value), None


def _row_wise(*expressions: Any) -> Order:
    ordered, arbitrary = depends_on(expressions)
    return Order(scrambles=arbitrary, sensitive=ordered, arbitrary=arbitrary)


def _select(step: Step) -> Order:
    return _row_wise(*step.body.get("expr", step.body.get("exprs", [])))


def _filter(step: Step) -> Order:
    return _row_wise(step.body["predicate"])


def _group_by(step: Step) -> Order:
    options = step.body["options"]
    ordered, arbitrary = depends_on((*step.body["aggs"], *step.body["keys"], *step.body["predicates"]))
    plain = step.body["apply"] is None and not options.get("dynamic") and not options.get("rolling")
    kept = bool(step.body["maintain_order"])
    return Order(
        scrambles=not kept, carries=kept, sensitive=ordered or not plain, arbitrary=arbitrary or bool(options["slice"])
    )


def _join(step: Step) -> Order:
    arguments = step.body["options"]["args"]
    if not isinstance(arguments["how"], str):  # as-of joins take the nearest row
        return Order(scrambles=True, sensitive=True)
    condition = step.body["condition"].get("Equi", {})
    ordered, arbitrary = depends_on((*condition.get("left_on", ()), *condition.get("right_on", ())))
    # Whatever order was asked for: a slice above is moved into the join, and takes any of its rows.
    return Order(scrambles=True, sensitive=ordered, arbitrary=arbitrary or bool(arguments["slice"]))


def _distinct(step: Step) -> Order:
    options = step.body["options"]
    strategy = options["keep_strategy"]
    whole = options["subset"] is None or strategy == "None"
    return Order(
        scrambles=not options["maintain_order"],
        sensitive=not whole and strategy != "Any",
        arbitrary=not whole and strategy == "Any",
    )


def _sort(step: Step) -> Order:
    options = step.body["sort_options"]
    ordered, arbitrary = depends_on(step.body["by_column"])
    cut = bool(step.body["slice"] or options["limit"])
    stable = options["maintain_order"]
    return Order(scrambles=not stable, sensitive=ordered or cut, arbitrary=arbitrary or (cut and not stable))


def _map(step: Step) -> Order:
    name, content = _kind(step.body["function"])
    if name == "Stats":
        return Order(carries=False, arbitrary=_kind(content)[0] not in _EXACT_AGGREGATES)
    if name == "Unpivot":  # the streaming engine gives the columns of one batch, then those of the next
        return _SCRAMBLED
    return ROW_WISE if name in _ROW_WISE_FUNCTIONS else POSITIONAL if name in _POSITIONAL_FUNCTIONS else _WORST


def _pivot(step: Step) -> Order:
    _, arbitrary = depends_on((step.body["agg"],))
    return Order(scrambles=not step.body["maintain_order"], sensitive=True, arbitrary=arbitrary)


def _union(step: Step) -> Order:
    return ROW_WISE if step.body["args"]["maintain_order"] else _SCRAMBLED


def _merge(step: Step) -> Order:
    return ROW_WISE if step.body["maintain_order"] else _SCRAMBLED


_ORDERS: Final[dict[str, Any]] = {
    "Scan": ROW_WISE,
    "DataFrameScan": ROW_WISE,
    "Cache": ROW_WISE,
    "Union": _union,
    "MatchToSchema": ROW_WISE,
    "HConcat": POSITIONAL,
    "Slice": POSITIONAL,
    "Gather": POSITIONAL,
    "Pivot": _pivot,
    "MergeSorted": _merge,
    "Filter": _filter,
    "Select": _select,
    "HStack": _select,
    "GroupBy": _group_by,
    "Join": _join,
    "Distinct": _distinct,
    "Sort": _sort,
    "MapFunction": _map,
}
