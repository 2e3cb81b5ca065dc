"""Queries written as SQL text: which relations they name, which functions they call, and why they are not reused.

In: a text. Out: a QueryText. Two look at it: the text is cut into words, which shows every function and every name that
may stand for one, whatever the parser makes of them; sqlglot tells which names are relations. Law: a construct that is
not listed is refused, and nothing but spaces and comments is lost of the text, since engines name columns after it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import Any, Final

from nectar.dialects.spark.function_names import KNOWN, why_refused_call, why_refused_column, why_refused_string
from nectar.dialects.spark.sql.words import Name, Piece, canonical, pieces_of
from nectar.forks import in_child

_BEGIN: Final = frozenset({"select", "with", "values", "("})
# Words that stand before brackets without being called. Functions may be registered under these names too, so they
# count among the calls.
_BEFORE_BRACKETS: Final = frozenset({
    "all", "and", "any", "as", "between", "by", "case", "cast", "char", "character", "cube", "dec", "decimal",
    "distinct", "div", "else", "except", "exists", "for", "from", "group", "having", "if", "ilike", "in", "intersect",
    "is", "join", "lateral", "like", "limit", "minus", "not", "numeric", "offset", "on", "or", "over", "pivot",
    "qualify", "rlike", "rollup", "select", "sets", "some", "then", "try_cast", "union", "using", "values", "varchar",
    "when", "where",
})  # fmt: skip
_CASTS: Final = frozenset({
    "bigint", "binary", "boolean", "date", "double", "float", "int", "smallint", "string", "timestamp", "tinyint",
})  # fmt: skip
_TYPED: Final = frozenset({"date", "timestamp", "timestamp_ltz", "timestamp_ntz", "interval", "x"})
_REFUSED_WORDS: Final = {
    "tablesample": "which rows a sample takes depends on how the engine cuts its input",
    "identifier": "a name that is computed is not followed",
    "immediate": "a text that is computed is not followed",
    "table": "TABLE in the SQL text reads a relation that is not followed",
    "match_recognize": "patterns of rows are not understood",
}
_NODES: Final = frozenset({
    "Alias", "Aliases", "All", "Any", "AtTimeZone", "Between", "Boolean", "Bracket", "CTE", "Cluster", "Collate",
    "Column", "ColumnDef", "Cube", "DataType", "DataTypeParam", "Distinct", "Distribute", "Except", "Fetch", "Filter",
    "From", "Group", "GroupingSets", "Having", "HexString", "Hint", "Identifier", "IgnoreNulls", "In", "Intersect",
    "Interval", "Join", "JoinHint", "Kwarg", "Lambda", "Lateral", "Limit", "Literal", "Null", "Offset", "Order",
    "Ordered", "Parameter", "Pivot", "PivotAlias", "Placeholder", "PropertyEQ", "Qualify", "RespectNulls", "Rollup",
    "Select", "Slice", "Sort", "Star", "Subquery", "Table", "TableAlias", "Tuple", "Union", "Values", "Var", "Where",
    "Window", "WindowSpec", "With", "WithinGroup",
})  # fmt: skip
_SORTING: Final = frozenset(
    {"order", "sort", "cluster", "values", "lateral", "explode", "posexplode", "inline", "stack"}
)
_LONGEST: Final = 200_000  # characters; a parser should not take longer than the query
_DEEPEST: Final = 200  # brackets: the parser recurses, and compiled it would end the process
_OF_TABLES: Final = frozenset({"this", "alias", "db", "catalog", "laterals", "joins", "pivots"})


@dataclass(frozen=True, slots=True)
class QueryText:
    """A query. text: canonical. names: relations that it names, as they are written. calls: words before brackets.

    unknown: of the calls, those that are no functions of the engine. sorts: it may say in which order rows come.
    refusals: why its result is not reused.
    """

    text: str
    names: tuple[Name, ...] = ()
    calls: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    refusals: tuple[str, ...] = ()
    sorts: bool = True


@dataclass(frozen=True, slots=True)
class _Structure:
    """What the parser finds. headed: names that are given to relations together with names of columns."""

    names: tuple[Name, ...]
    headed: Counter[str]


class _Reader:
    """Reads texts ahead in a thread. lock: so that who asks while a text is being read waits for it."""

    def __init__(self) -> None:
        self.renew()
        in_child(self.renew)

    def renew(self) -> None:
        """A process that was forked has no threads, and nobody will open what one of them has locked."""
        self.lock = threading.Lock()
        self.pool = ThreadPoolExecutor(1, "nectar-sql")


_reader: Final = _Reader()


def query_text(text: str) -> QueryText:
    """What a query reads and calls."""
    with _reader.lock:
        return _read(text)


def is_query(text: str) -> bool:
    """Whether a text begins as a query does."""
    return text.lstrip("( \t\r\n").lower().startswith(("select", "with", "values"))


def read_ahead(text: str) -> None:
    """The text is read while the caller does something else: it will ask soon.

    Not in a thread of its own: whoever starts one waits until it runs, and it would run before the caller goes on.
    """
    with suppress(RuntimeError):  # the process ends
        _reader.pool.submit(query_text, text)


@lru_cache(maxsize=512)
def _read(text: str) -> QueryText:
    pieces = pieces_of(text)
    if isinstance(pieces, str):
        return QueryText(text, refusals=(pieces,))
    if not pieces or pieces[0].word not in _BEGIN:
        return QueryText(text, refusals=("it is SQL that is no query",))
    if len(text) > _LONGEST or _depth(pieces) > _DEEPEST:
        return QueryText(text, refusals=("the SQL text is too long, or nested too deeply",))
    refusals = tuple(dict.fromkeys(filter(None, _refusals(pieces))))
    if refusals:
        return QueryText(canonical(pieces), refusals=refusals)
    structure = _structure_of(text)
    if isinstance(structure, str):
        return QueryText(canonical(pieces), refusals=(structure,))
    called = Counter(piece.name for piece, following in _pairs(pieces) if piece.name and following.text == "(")
    others = {piece.name for piece, following in _pairs(pieces) if following.text == "(" and _is_unknown(piece)}
    # A name before brackets may be that of a relation with its columns; otherwise it is a function.
    unknown = frozenset(name for name in others if called[name] > structure.headed[name])
    return QueryText(canonical(pieces), structure.names, frozenset(called), unknown, sorts=_sorts(pieces))


_NOTHING: Final = Piece("end", "", 0, False)


def _pairs(pieces: Sequence[Piece]) -> Iterator[tuple[Piece, Piece]]:
    return zip(pieces, (*pieces[1:], _NOTHING), strict=True)


def _depth(pieces: Sequence[Piece]) -> int:
    changes = ((piece.text == "(") - (piece.text == ")") for piece in pieces)
    return max(accumulate(changes), default=0)


def _sorts(pieces: Sequence[Piece]) -> bool:
    """Whether rows may come in an order that the text says; windows have orders of their own."""
    within = 0  # brackets of a window that are open
    for piece, before in zip(pieces, (_NOTHING, *pieces[:-1]), strict=True):
        if piece.text == "(" and (within or before.word == "over"):
            within += 1
        elif piece.text == ")" and within:
            within -= 1
        elif not within and piece.word in _SORTING:
            return True
    return False


def _is_unknown(piece: Piece) -> bool:
    if piece.kind == "word" and (piece.name in _BEFORE_BRACKETS or piece.name in _CASTS):
        return False
    return bool(piece.name) and piece.name not in KNOWN


# words


def _refusals(pieces: Sequence[Piece]) -> Iterator[str]:
    for at, (piece, following) in enumerate(_pairs(pieces)):
        before = pieces[at - 1] if at else _NOTHING
        if piece.kind == "string":
            yield from _of_string(pieces, at, following)
        elif piece.name:
            after = pieces[at + 2].text if at + 2 < len(pieces) else ""
            yield _of_name(piece, before, following, after)
        elif piece.text == ";" and following is not _NOTHING:
            yield "it is more than one statement"
        elif piece.text == "|" and following.text == ">":
            yield "the SQL text is a pipe, which is not understood"
        elif piece.kind == "number" and following.text == "(":
            yield f"{piece.text}( in the SQL text is not understood"


def _of_string(pieces: Sequence[Piece], at: int, following: Piece) -> Iterator[str]:
    if following.text == "(":  # with some settings double quotes are around names
        yield f"{pieces[at].text}( in the SQL text is not understood"
    whole = ""
    for piece in pieces[at:]:  # strings that follow each other are one
        if piece.kind != "string":
            break
        whole += piece.text[1:-1]
        yield why_refused_string(whole)
    if pieces[at].text.startswith('"'):
        yield why_refused_column(pieces[at].text[1:-1])


def _of_name(piece: Piece, before: Piece, following: Piece, after: str) -> str:
    name = piece.name
    if piece.kind == "word" and name in _REFUSED_WORDS:
        return _REFUSED_WORDS[name]
    if following.kind == "string" and not following.spaced and name not in _TYPED | _BEFORE_BRACKETS:
        return f"{piece.text}{following.text[:1]}... in the SQL text is not understood"
    if following.text == "(":
        if before.text == ".":
            return f"{piece.text}() is a function of a database, which is not followed"
        if piece.kind == "word" and name in _BEFORE_BRACKETS:
            return ""
        return why_refused_call(name, 0 if after == ")" else 1)
    if before.text == "." and name != "_metadata":  # a column of a relation, which is no function
        return ""
    return why_refused_column(name)


# relations


@lru_cache(maxsize=128)
def parsed(text: str) -> tuple[list[Any], Any] | str:
    """The trees of the statements of a text, and the kinds of their nodes; or why there are none.

    They are remembered, and nobody's to change.
    """
    try:
        import sqlglot  # takes a while, and most programs have no SQL
        from sqlglot import expressions as nodes
    except ImportError:
        return "SQL text is read with sqlglot, which is not installed"
    try:
        return [tree for tree in sqlglot.parse(text, read="spark") if tree is not None], nodes
    except Exception:  # not only errors of its own: whatever it does not understand, it is not asked to
        return "the SQL text is not understood"


def _structure_of(text: str) -> _Structure | str:
    found = parsed(text)
    if isinstance(found, str):
        return found
    trees, nodes = found
    if len(trees) != 1 or not isinstance(trees[0], (nodes.Query, nodes.Values)):
        return "it is SQL that is no query"
    return _read_structure(trees[0], nodes)


def _read_structure(tree: Any, nodes: Any) -> _Structure | str:
    names: dict[Name, None] = {}
    headed: Counter[str] = Counter()
    for node in tree.walk():
        reason = _why_refused(node, nodes)
        if reason:
            return reason
        if isinstance(node, nodes.TableAlias) and node.args.get("columns"):
            headed[node.name.lower()] += 1
        elif isinstance(node, nodes.Table):
            name = tuple(part.name for part in node.parts)
            defined = None if len(name) > 1 else _defined_within(node, name[0], nodes)
            if defined is not None and defined != name[0]:
                return f"the SQL text names {defined} as {name[0]}: whether capitals count, engines differ"
            if defined is None:
                names[name] = None
    return _Structure(tuple(names), headed)


def _why_refused(node: Any, nodes: Any) -> str:
    kind = type(node).__name__
    if kind not in _NODES and not isinstance(node, (nodes.Func, nodes.Binary, nodes.Unary, nodes.Predicate)):
        return f"the SQL text has {kind}, which is not understood"
    if not isinstance(node, nodes.Table):
        return ""
    more = sorted(name for name, value in node.args.items() if value and name not in _OF_TABLES)
    if more:
        return f"the SQL text reads a table with {more[0]}, which is not understood"
    if not all(isinstance(part, nodes.Identifier) and part.name for part in node.parts):
        return "the SQL text has a table-valued function, which is not understood"
    return ""


def _defined_within(table: Any, name: str, nodes: Any) -> str | None:
    """The common table expression that a name may mean where it stands, as it is spelled; None if it is none."""
    node = table
    while node.parent is not None:
        inner, node = node, node.parent
        if isinstance(node, nodes.With):
            every = node.expressions
            seen = every if node.args.get("recursive") else list(takewhile(lambda one: one is not inner, every))  # noqa: B023
        else:
            defined = node.args.get("with_") or node.args.get("with")
            seen = [] if defined is None or defined is inner else defined.expressions
        found = [str(one.alias) for one in seen if one.alias.lower() == name.lower()]
        if found:
            return name if found == [name] else next(each for each in found if each != name)
    return None
