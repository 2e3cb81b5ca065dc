"""Which expressions give each row a value by that row alone: tables can be cut anywhere and computed in parts."""

from __future__ import annotations

from typing import Any, Final

import msgspec

_LEAVES: Final = frozenset({"Column", "Selector", "Literal"})
_FUNCTIONS: Final = frozenset(
    {"Abs", "Negate", "Pow", "Trigonometry", "Atan2", "Sign", "FillNull", "Clip", "Coalesce", "Log", "Log1p", "Exp",
     "Round", "RoundSF", "Truncate", "Floor", "Ceil", "Bitwise", "AsStruct", "MaxHorizontal", "MinHorizontal",
     "SumHorizontal", "MeanHorizontal", "Replace", "ReplaceStrict", "Business", "Hash",
     "StructExpr", "Boolean", "StringExpr", "TemporalExpr", "ListExpr", "Categorical"}
)  # fmt: skip
# Of the functions of booleans, those of one row; of the others, those that look at several.
_OF_ONE_ROW: Final = frozenset(
    {"IsNull", "IsNotNull", "IsFinite", "IsInfinite", "IsNan", "IsNotNan", "Not", "IsIn", "IsBetween", "AllHorizontal",
     "AnyHorizontal", "IsClose"}
)  # fmt: skip
_OF_BITS: Final = frozenset(  # the others, such as And, go over a whole column
    {"CountOnes", "CountZeros", "LeadingOnes", "LeadingZeros", "TrailingOnes", "TrailingZeros"}
)
_OF_SEVERAL: Final = frozenset({"ConcatVertical", "MapFieldNames", "GetCategories", "MultipleFields"})
_BY_ROW: Final = 0b1100_0000  # flags of Polars: rows are separable, and there are as many afterwards
_PYTHON: Final = b"PLPYFN\x94"  # how Polars writes a function; its type follows
_WITHOUT_TYPE: Final = b"PLPYFN\x94\xc0"
_DEEPEST: Final = 200


def is_elementwise(expression: Any, depth: int = 0) -> bool:
    """Whether an expression, as Polars serialises it, has for each row a value that depends on that row alone."""
    if not isinstance(expression, dict) or len(expression) != 1 or depth > _DEEPEST:
        return False
    ((kind, content),) = expression.items()
    if kind in _LEAVES:
        return kind != "Literal" or not _is_long(content)
    if kind == "Alias":
        return is_elementwise(content[0], depth + 1)
    if kind == "Cast":
        return is_elementwise(content["expr"], depth + 1)
    if kind == "BinaryExpr":
        return all(is_elementwise(content[side], depth + 1) for side in ("left", "right"))
    if kind == "Ternary":
        return all(is_elementwise(content[part], depth + 1) for part in ("predicate", "truthy", "falsy"))
    if kind == "Function":
        of_rows, looked_in = _arguments(content)
        return (
            _is_elementwise_function(content["function"])
            and all(is_elementwise(each, depth + 1) for each in of_rows)
            and all(set(each) == {"Literal"} for each in looked_in)
        )
    if kind == "AnonymousFunction":
        return _is_elementwise_python(content) and all(is_elementwise(each, depth + 1) for each in content["input"])
    return False


def _is_elementwise_python(content: Any) -> bool:
    """Whether a Python function is called for each row, or was declared to be elementwise; and its type is given.

    Without a type Polars looks at the first values, and those of a part may be others than those of the whole.
    """
    by_row = content["options"]["flags"] & _BY_ROW == _BY_ROW
    return by_row and content["function"].startswith(_PYTHON) and not content["function"].startswith(_WITHOUT_TYPE)


def reads_rows(expression: Any) -> bool:
    """Whether an elementwise expression reads a column: one of literals alone has one value, however many rows are."""
    if not is_elementwise(expression):
        return False
    encoded = msgspec.msgpack.encode(expression)
    return b"\xa6Column" in encoded or b"\xa8Selector" in encoded


def _is_elementwise_function(function: Any) -> bool:
    name, inner = next(iter(function.items())) if isinstance(function, dict) else (function, None)
    if name not in _FUNCTIONS:
        return False
    which, options = next(iter(inner.items())) if isinstance(inner, dict) and inner else (inner, None)
    if which == "Strptime":  # without a format, that of the first row is taken for all
        return not any(isinstance(each, dict) and each.get("format", "") is None for each in options or ())
    if name == "Boolean":
        return which in _OF_ONE_ROW
    if name == "Bitwise":
        return which in _OF_BITS
    return which not in _OF_SEVERAL


def _is_long(literal: Any) -> bool:
    """Whether a literal is a column of values, which has a length of its own."""
    return isinstance(literal, dict) and bool({"Series", "Range"} & set(literal))


def _arguments(content: Any) -> tuple[list[Any], list[Any]]:
    """Arguments of a function that are of its row, and those that values are looked for in.

    Those may be a column of lists, one for each row, or any other column, whose values are looked for in all of it:
    which of them it is, only its type tells. Literals are the same for every row.
    """
    function, inputs = content["function"], list(content["input"])
    looks = isinstance(function, dict) and isinstance(function.get("Boolean"), dict) and "IsIn" in function["Boolean"]
    return (inputs[:1], inputs[1:]) if looks else (inputs, [])
