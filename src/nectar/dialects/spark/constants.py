"""Text that a plan puts together from constants alone, which Spark may take for a moment.

Spark computes constant expressions before it runs a plan, and where a date is wanted takes the words now, today,
tomorrow and yesterday for a moment, also if they have just been put together: `concat('no', 'w')` becomes the time of
the run. In: the root relation of a plan. Out: why it is not reused. Literals are looked at elsewhere; here, calls
whose arguments are all constant, or may be, and which may give text. Columns are constant if any column of that name
in the plan is, or in the definition of a view that it reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from nectar.dialects.spark.function_names import REFUSED
from nectar.dialects.spark.messages import messages_in, named
from nectar.dialects.spark.sql.columns import columns_in
from nectar.dialects.spark.sql.words import pieces_of as pieces_of_query
from nectar.dialects.spark.text import pieces_of

# Calls that give no text, or one of the texts they are given.
_TEXTLESS: Final = frozenset({
    "%", "&", "*", "+", "-", "/", "<", "<=", "<=>", "==", ">", ">=", "^", "abs", "acos", "add_months", "and",
    "any_value", "approx_count_distinct", "array", "array_contains", "array_size", "asin", "atan", "atan2", "avg",
    "between", "bit_and", "bit_count", "bit_or", "bit_xor", "bool_and", "bool_or", "bround", "cardinality", "cbrt",
    "ceil", "ceiling", "coalesce", "collect_list", "collect_set", "contains", "corr", "cos", "count", "count_if",
    "crc32", "cume_dist", "date_add", "date_diff", "date_sub", "date_trunc", "dateadd", "datediff", "day", "dayofmonth",
    "dayofweek", "dayofyear", "decimal", "degrees", "dense_rank", "e", "endswith", "equal_null", "every", "exists",
    "exp", "explode", "explode_outer", "factorial", "first", "first_value", "floor", "greatest", "grouping",
    "grouping_id", "hash", "hour", "if", "ifnull", "in", "instr", "is", "isnan", "isnotnull", "isnull", "kurtosis",
    "lag", "last", "last_day", "last_value", "lead", "least", "length", "like", "ln", "locate", "log", "log10", "log1p",
    "log2", "make_date", "make_dt_interval", "make_interval", "make_time", "make_timestamp", "make_timestamp_ltz",
    "make_timestamp_ntz", "make_ym_interval", "map", "max", "max_by", "mean", "median", "min", "min_by", "minute",
    "mod", "month", "months_between", "named_struct", "nanvl", "negative", "next_day", "not", "nth_value", "ntile",
    "nullif", "nvl", "nvl2", "or", "over", "percent_rank", "percentile", "percentile_approx", "pi", "pmod",
    "posexplode", "positive", "pow", "power", "quarter", "radians", "rank", "regexp_like", "rint", "rlike", "round",
    "row_number", "second", "sequence", "session_window", "shiftleft", "shiftright", "sign", "signum", "sin", "size",
    "skewness", "some", "sort_array", "sqrt", "stack", "startswith", "std", "stddev", "stddev_pop", "stddev_samp",
    "struct", "sum", "tan", "timestampadd", "timestampdiff", "to_date", "to_timestamp", "trunc", "try_add",
    "try_divide", "try_sum", "unix_date", "unix_seconds", "unix_timestamp", "var_pop", "var_samp", "variance",
    "weekday", "weekofyear", "when", "width_bucket", "window", "xxhash64", "year", "|", "~",
})  # fmt: skip
_RENAMING: Final = ("ToDF", "WithColumnsRenamed", "Unpivot", "Transpose")
_MORE_THAN_COLUMNS: Final = (
    "Expression.UnresolvedStar", "Expression.UnresolvedRegex", "CommonInlineUserDefinedFunction", "Expression.Window",
)  # fmt: skip
# Words of SQL that are no columns.
_WORDS: Final = frozenset({
    "all", "and", "any", "array", "as", "asc", "at", "between", "bigint", "binary", "boolean", "both", "by", "byte",
    "case", "char", "collate", "cross", "cube", "current", "date", "day", "dec", "decimal", "desc", "distinct", "div",
    "double", "else", "end", "escape", "except", "exists", "false", "filter", "first", "float", "following", "for",
    "from", "full", "group", "having", "hour", "if", "ignore", "ilike", "in", "inner", "int", "integer", "intersect",
    "interval", "is", "join", "last", "lateral", "leading", "left", "like", "limit", "long", "map", "minus", "minute",
    "month", "not", "null", "nulls", "numeric", "offset", "on", "or", "order", "outer", "over", "partition",
    "preceding", "range", "real", "respect", "right", "rlike", "rollup", "row", "rows", "second", "select", "semi",
    "sets", "short", "smallint", "some", "string", "struct", "then", "time", "timestamp", "timestamp_ltz",
    "timestamp_ntz", "tinyint", "to", "trailing", "true", "try_cast", "unbounded", "union", "using", "values",
    "varchar", "week", "when", "where", "window", "with", "within", "year", "zone",
})  # fmt: skip
# Of these, the ones that may be calls, and give text.
_TEXTS: Final = frozenset({"left", "right", "try_cast", "char", "string", "varchar"})


@dataclass(frozen=True, slots=True)
class _Constants:
    """Names of columns that may be constant; any name, if columns get other names somewhere."""

    names: frozenset[str]
    renamed: bool

    def hold(self, attributes: Iterable[str]) -> bool:
        """Whether all of these columns may be constant."""
        return all((self.renamed and bool(self.names)) or name in self.names for name in attributes)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a plan says of its columns, for those who read it by a name. made: names, and what columns they are made of.

    nameless: some are constant, and called what the engine calls them. renamed: columns get other names somewhere.
    doubt: why it is not reused itself.
    """

    made: tuple[tuple[str, frozenset[str]], ...] = ()
    nameless: bool = False
    renamed: bool = False
    doubt: str = field(default="", compare=False)


def facts_of(root: Any, beside: Iterable[Facts] = ()) -> Facts:
    """What a definition says of its columns. beside: the same of what it reads by name."""
    own = _facts_in(list(messages_in(root)))
    return Facts(own.made, own.nameless, own.renamed, why_refused_constants(root, beside))


def why_refused_constants(root: Any, beside: Iterable[Facts] = ()) -> str:
    """Why a plan is not reused on an engine that computes constants first; empty if it may be.

    beside: what the definitions of the views that it reads say of their columns.
    """
    known = list(beside)
    doubtful = next((each.doubt for each in known if each.doubt), "")
    if doubtful:
        return doubtful
    messages = list(messages_in(root))
    constants = _constants_of([_facts_in(messages), *known])
    for message in messages:
        if named(message, "Expression") and _may_be_text(message, constants):
            return "it puts a text together from constants, which Spark may take for the time of the run"
        if named(message, "Expression.ExpressionString", "SQL") and _is_doubtful(message, constants):
            return "a text may put a word together from constants, which Spark may take for the time of the run"
    return ""


def _pieces_in(message: Any) -> list[tuple[str, str]] | None:
    """The pieces of an expression or of a query that is written as text; None if it is not read."""
    if not named(message, "SQL"):
        return pieces_of(message.expression)
    pieces = pieces_of_query(message.query)
    return None if isinstance(pieces, str) else [(piece.kind, piece.text) for piece in pieces]


def _may_be_text(expression: Any, constants: _Constants) -> bool:
    kind = expression.WhichOneof("expr_type")
    if kind in ("unresolved_function", "call_function"):
        name = getattr(expression, kind).function_name.lower()
        plain = name in _TEXTLESS or name in REFUSED  # those are told elsewhere
    elif kind == "cast":
        plain = not _is_text_type(expression.cast) or _is_number(expression.cast.expr)
    else:
        return False
    return not plain and _is_constant(expression, constants)


def _is_text_type(cast: Any) -> bool:
    if cast.HasField("type_str"):
        return "char" in cast.type_str.lower() or "string" in cast.type_str.lower()
    return cast.type.WhichOneof("kind") in ("string", "char", "var_char")


def _is_number(expression: Any) -> bool:
    return expression.literal.WhichOneof("literal_type") in ("integer", "long", "double", "short", "byte", "boolean")


def _is_constant(expression: Any, constants: _Constants) -> bool:
    attributes = _attributes_in(expression)
    return attributes is not None and constants.hold(attributes)


def _facts_in(messages: list[Any]) -> Facts:
    made: list[tuple[str, frozenset[str]]] = []
    nameless = any(_has_nameless(message) for message in messages)
    renamed = any(named(message, *_RENAMING) for message in messages)
    for message in messages:
        if named(message, "Expression.Alias"):
            attributes = _attributes_in(message.expr)
            if attributes is not None:
                made += [(name.lower(), attributes) for name in message.name]
        elif named(message, "Expression.ExpressionString"):
            # An alias in an expression is taken to be made of all columns in it.
            pieces = pieces_of(message.expression) or []
            aliases = _aliases_in(pieces)
            made += [(name, columns_in_pieces(pieces) - aliases) for name in aliases]
        elif named(message, "SQL"):
            columns = columns_in(message.query)
            made += () if columns is None else columns.made
            nameless = nameless or columns is None or columns.nameless
            renamed = renamed or columns is None or columns.renamed
    return Facts(tuple(made), nameless, renamed)


def _constants_of(facts: list[Facts]) -> _Constants:
    """Columns that are constant because they are named so, or made of such columns alone."""
    made = [each for one in facts for each in one.made]
    nameless = any(one.nameless for one in facts)
    renamed = nameless or any(one.renamed for one in facts)
    names = frozenset({""} if nameless else ())
    while True:
        known = _Constants(names, renamed)
        more = frozenset(name for name, attributes in made if known.hold(attributes))
        if more <= names:
            return known
        names |= more


def _has_nameless(message: Any) -> bool:
    """Whether a relation has constant columns that are called what the engine calls them."""
    columns = message.expressions if named(message, "Project") else ()
    columns = message.grouping_expressions if named(message, "Aggregate") else columns
    return any(each.WhichOneof("expr_type") != "alias" and _attributes_in(each) == frozenset() for each in columns)


def _attributes_in(expression: Any) -> frozenset[str] | None:
    """The columns that an expression is made of, by their last names; None if it is made of more than columns."""
    found: set[str] = set()
    for message in messages_in(expression):
        if named(message, "Expression.UnresolvedAttribute"):
            found.add(message.unparsed_identifier.rpartition(".")[2].strip("`").lower())
        elif named(message, "Expression.ExpressionString"):
            found |= columns_in_pieces(pieces_of(message.expression) or [])
        elif named(message, *_MORE_THAN_COLUMNS):
            return None
    return frozenset(found)


# text


def columns_in_pieces(pieces: list[tuple[str, str]]) -> frozenset[str]:
    """The columns that an expression names which is written as text, in small letters."""
    return frozenset(
        piece.strip("`").lower()
        for at, (kind, piece) in enumerate(pieces)
        if kind == "quoted" or (kind == "word" and piece.lower() not in _WORDS and not _is_no_column(pieces, at))
    ) - _variables_in(pieces)


def _is_no_column(pieces: list[tuple[str, str]], at: int) -> bool:
    """Whether a word is a function, says what kind of string follows, or counts what stands before it."""
    kinds = [pieces[each][0] if 0 <= each < len(pieces) else "" for each in (at - 1, at + 1)]
    return _is_before_bracket(pieces, at) or kinds[0] in ("string", "number") or kinds[1] == "string"


def _variables_in(pieces: list[tuple[str, str]]) -> frozenset[str]:
    """Variables of functions within a text, as in `x -> x + 1`, which stand for what the function is handed."""
    found: set[str] = set()
    for at, (_, piece) in enumerate(pieces):
        if piece == "->" and at:
            start = at - 1
            while start and pieces[at - 1][1] == ")" and pieces[start][1] != "(":
                start -= 1
            found.update(name.strip("`").lower() for _, name in pieces[start:at])
    return frozenset(found)


def _aliases_in(pieces: list[tuple[str, str]]) -> frozenset[str]:
    """Names that a text may give: words after `as`, and those right behind a value."""
    return frozenset(
        piece.strip("`").lower()
        for (kind_before, before), (kind, piece) in pairwise(pieces)
        if kind in ("word", "quoted")
        and piece.lower() not in _WORDS
        and (before.lower() == "as" or before == ")" or kind_before in ("string", "number"))
    )


def _is_before_bracket(pieces: list[tuple[str, str]], at: int) -> bool:
    return at + 1 < len(pieces) and pieces[at + 1][1] == "("


def _is_doubtful(message: Any, constants: _Constants) -> bool:
    """Whether a call in a text may give a text made of constants alone. Not parsed: brackets are matched."""
    pieces = _pieces_in(message)
    if pieces is None:
        return True
    if any(one == another == ("sign", "|") for one, another in pairwise(pieces)) and _joins(message, pieces, constants):
        return True
    for at, (kind, piece) in enumerate(pieces):
        name = piece.strip("`").lower()
        if kind not in ("word", "quoted") or not _is_before_bracket(pieces, at) or name in _TEXTLESS:
            continue
        inside = _inside(pieces, at + 1)
        if name in ("cast", "try_cast") and not {"string", "varchar", "char"} & {each.lower() for _, each in inside}:
            continue
        if kind == "word" and name in _WORDS and name not in _TEXTS:
            continue
        if constants.hold(columns_in_pieces(inside)):
            return True
    return False


def _joins(message: Any, pieces: list[tuple[str, str]], constants: _Constants) -> bool:
    """Whether signs in a text may put another one together from constants alone."""
    if not named(message, "SQL"):
        return constants.hold(columns_in_pieces(pieces))
    columns = columns_in(message.query)
    return columns is None or any(map(constants.hold, columns.joined))


def _inside(pieces: list[tuple[str, str]], opening: int) -> list[tuple[str, str]]:
    depth, found = 0, []
    for kind, piece in pieces[opening:]:
        depth += (piece == "(") - (piece == ")")
        found.append((kind, piece))
        if depth == 0:
            break
    return found
