"""How each kind of step behaves: what it has to do with the order of rows, and whether its result is one to keep.

Data, and a few questions about expressions. What is not listed counts as the worst: its order is undetermined, and it
depends on the order of its input.
"""

from __future__ import annotations

from typing import Any, Final

from nectar.dialects.polars.plan import Step
from nectar.program.tree import AGGREGATE, POSITIONAL, ROW_WISE, Order

_WORST: Final = Order(scrambles=True, sensitive=True)
_SCRAMBLED: Final = Order(scrambles=True)

# Expressions whose value in a row, or in a group, does not depend on the order of rows.
_FREE: Final = frozenset(
    {"Alias", "Column", "Selector", "Literal", "DataTypeFunction", "BinaryExpr", "Cast", "Ternary", "KeepName", "Len",
     "Field", "RenameAlias", "Filter", "Function", "Agg", "Over"}
)  # fmt: skip
_FREE_AGGREGATES: Final = frozenset(
    {"Sum", "Min", "Max", "Mean", "Count", "NUnique", "Median", "Std", "Var", "Quantile"}
)
_FREE_FUNCTIONS: Final = frozenset(
    {"StringExpr", "TemporalExpr", "Boolean", "Abs", "Negate", "Pow", "Trigonometry", "Atan2", "Sign", "FillNull",
     "NullCount", "Clip", "Coalesce", "Log", "Log1p", "Exp", "Erf", "Erfc", "Round", "RoundSF", "Truncate", "Floor",
     "Ceil", "Bitwise", "AsStruct", "StructExpr", "MaxHorizontal", "MinHorizontal", "SumHorizontal", "MeanHorizontal",
     "Replace", "ReplaceStrict", "Product", "Quantile", "Business", "Hash", "Skew", "Kurtosis", "DecimalArith",
     "TruncArith", "Correlation"}
)  # fmt: skip
_OF_POSITION: Final = frozenset({"ConcatVertical", "IsFirstDistinct", "IsLastDistinct", "IsUnique", "IsDuplicated"})
_ROW_WISE_FUNCTIONS: Final = frozenset({"Explode", "Rename", "Unnest", "FillNan", "Hint"})


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


def is_free(expression: Any) -> bool:
    """Whether an expression gives the same values in whatever order the rows come."""
    pending = [expression]
    while pending:
        current = pending.pop()
        kind, content = _kind(current)
        if kind not in _FREE:
            return False
        if kind == "Agg":
            name, content = _kind(content)
            if name not in _FREE_AGGREGATES:
                return False
        if kind == "Function":
            name, options = _kind(content["function"])
            inner = _kind(options)[0] if options is not None else ""
            if name not in _FREE_FUNCTIONS or inner in _OF_POSITION:
                return False
            pending.extend(content["input"])
            continue
        if kind == "Over" and (content.get("order_by") or content.get("mapping") != "GroupsToRows"):
            return False
        pending.extend(_inner(kind, content))
    return True


def _inner(kind: str, content: Any) -> list[Any]:
    """The expressions inside one."""
    if kind in ("Column", "Literal", "Selector", "Len", "Field", "DataTypeFunction"):
        return []
    if kind == "Alias":
        return [content[0]]
    if kind == "RenameAlias":
        return [content["expr"]]
    if kind == "KeepName":
        return [content]
    if isinstance(content, list):
        return [each for each in content if isinstance(each, dict)]
    if kind == "Over":
        return [content["function"], *content["partition_by"]]
    if isinstance(content, dict) and _looks_like_expression(content):
        return [content]
    return [each for each in content.values() if isinstance(each, dict) and _looks_like_expression(each)] + (
        ["Len"] if "Len" in content.values() else []
    )


def _looks_like_expression(value: dict[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value))[:1].isupper()


def _kind(value: Any) -> tuple[str, Any]:
    if isinstance(value, dict) and value:
        return next(iter(value.items()))
    return str(value), None


def _select(step: Step) -> Order:
    expressions = step.body.get("expr", step.body.get("exprs", []))
    return ROW_WISE if all(map(is_free, expressions)) else POSITIONAL


def _filter(step: Step) -> Order:
    return ROW_WISE if is_free(step.body["predicate"]) else POSITIONAL


def _group_by(step: Step) -> Order:
    options = step.body["options"]
    free = all(map(is_free, (*step.body["aggs"], *step.body["keys"])))
    plain = step.body["apply"] is None and not options.get("dynamic") and not options.get("rolling")
    sensitive = not (free and plain)
    if step.body["maintain_order"]:
        return Order(carries=True, sensitive=sensitive)
    return Order(scrambles=True, carries=False, sensitive=sensitive) if sensitive else AGGREGATE


def _join(step: Step) -> Order:
    arguments = step.body["options"]["args"]
    if not isinstance(arguments["how"], str):  # as-of joins take the nearest row
        return _WORST
    kept = arguments["maintain_order"] != "None" or arguments["how"] == "Cross"
    return ROW_WISE if kept else _SCRAMBLED


def _distinct(step: Step) -> Order:
    options = step.body["options"]
    whole = options["subset"] is None or options["keep_strategy"] == "None"
    return Order(scrambles=not options["maintain_order"], sensitive=not whole)


def _sort(step: Step) -> Order:
    return ROW_WISE if step.body["sort_options"]["maintain_order"] else _SCRAMBLED


def _map(step: Step) -> Order:
    name, _ = _kind(step.body["function"])
    return ROW_WISE if name in _ROW_WISE_FUNCTIONS else AGGREGATE if name == "Stats" else POSITIONAL


_ORDERS: Final[dict[str, Any]] = {
    "Scan": ROW_WISE,
    "DataFrameScan": ROW_WISE,
    "Cache": ROW_WISE,
    "Union": ROW_WISE,
    "MatchToSchema": ROW_WISE,
    "HConcat": POSITIONAL,
    "Slice": POSITIONAL,
    "Gather": POSITIONAL,
    "Pivot": POSITIONAL,
    "MergeSorted": _SCRAMBLED,
    "Filter": _filter,
    "Select": _select,
    "HStack": _select,
    "GroupBy": _group_by,
    "Join": _join,
    "Distinct": _distinct,
    "Sort": _sort,
    "MapFunction": _map,
}
