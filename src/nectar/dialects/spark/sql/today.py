"""Queries written as SQL text in which a text may become a timestamp, and so one of today.

In: a query, and the columns of what it reads. Out: whether the day belongs into its key. Nothing is resolved: a name
stands for every column of that name, whether it is read or made in the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from nectar.dialects.spark.sql.queries import parsed, query_text
from nectar.dialects.spark.texts_and_times import (
    EITHER,
    NEITHER,
    TEXT,
    TIME,
    Columns,
    joined_kinds,
    looked_up,
    meet,
    of_text,
    of_words,
)

_PLAIN: Final = frozenset({
    "Count", "Sum", "Avg", "Stddev", "StddevSamp", "StddevPop", "Variance", "VariancePop", "Abs", "Round", "Ceil",
    "Floor", "Length", "Year", "Month", "Day", "DayOfMonth", "RowNumber", "Rank", "DenseRank", "TsOrDsToDate",
    "ApproxDistinct", "Boolean", "Mul", "Div", "IntDiv", "Mod", "Not", "Null", "Grouping", "Exists",
})  # fmt: skip
_SAME: Final = frozenset({
    "Max", "Min", "Coalesce", "Case", "If", "Greatest", "Least", "Nullif", "Paren", "Alias", "First", "Last",
    "FirstValue", "LastValue", "Lag", "Lead", "Add", "Sub", "Neg", "AnyValue", "Distinct", "Ordered",
})  # fmt: skip
_TEXTUAL: Final = frozenset({"Upper", "Lower", "Substring", "Trim", "DPipe", "ConcatWs", "Initcap"})
_APART: Final = frozenset({"And", "Or", "Not", "Struct", "Count", "ConcatWs", "Exists", "DPipe", "Concat"})


def is_dated(text: str, takes_times: frozenset[str], relations: Sequence[Columns]) -> bool:
    """Whether a text may become a timestamp in a query. takes_times: functions that make them."""
    everything = joined_kinds(each.all for each in relations) if relations else NEITHER
    read = query_text(text)
    found = "it is refused" if read.refusals else parsed(text)
    if isinstance(found, str):
        return True
    trees, nodes = found
    query = _Query(trees, nodes, relations)
    if read.calls & takes_times and (everything & TEXT or query.has_times_of_day):
        return True
    return any(map(query.is_node_dated, query.every))


def columns_made(text: str, relations: Sequence[Columns]) -> Columns:
    """The columns that a query gives, as far as it is one that selects them from what it reads."""
    found = "it is refused" if query_text(text).refusals else parsed(text)
    if isinstance(found, str):
        return Columns()
    trees, nodes = found
    return _Query(trees, nodes, relations).columns(trees[0]) if trees else Columns()


class _Query:
    def __init__(self, trees: Iterable[Any], nodes: Any, relations: Sequence[Columns]) -> None:
        self._nodes, self._relations = nodes, relations
        self.every = [node for tree in trees if tree is not None for node in tree.walk()]
        self._made: dict[str, list[Any]] = {}
        for node in self.every:
            if isinstance(node, nodes.Alias):
                self._made.setdefault(node.alias.lower(), []).append(node.this)
        # Columns of a relation that get their names by position are those of nobody.
        self._headed = {
            column.name.lower()
            for node in self.every if isinstance(node, (nodes.TableAlias, nodes.Pivot))
            for column in node.args.get("columns") or []
        }  # fmt: skip
        self._pivots = any(isinstance(node, nodes.Pivot) for node in self.every)
        self._open: set[str] = set()

    @property
    def has_times_of_day(self) -> bool:
        return any(
            isinstance(node, self._nodes.Literal) and node.is_string and of_text(node.name) for node in self.every
        )

    def columns(self, tree: Any) -> Columns:
        """The columns of a statement; those that a star stands for may be any that is read, or made in the query."""
        if not isinstance(tree, self._nodes.Select):
            return Columns()
        named: dict[str, int] = {}
        rest = NEITHER
        for each in tree.selects:
            if each.is_star:
                names = {name for relation in self._relations for name in relation.named} | self._made.keys()
                named |= {name: self._named(name) for name in names}
                rest |= EITHER if self._headed or self._pivots else joined_kinds(each.rest for each in self._relations)
            else:
                named[each.alias_or_name] = self._kind(each)
        return Columns(named, rest)

    def is_node_dated(self, node: Any) -> bool:
        """Whether what one node does itself makes a timestamp of a text."""
        nodes = self._nodes
        if isinstance(node, nodes.Cast):  # and what is derived from it
            return bool(_target_of(node) & TIME and self._kind(node.this) & TEXT)
        if isinstance(node, nodes.SetOperation):
            return self._is_union_dated(node)
        if isinstance(node, nodes.Join):
            return any(self._named(each.name) == EITHER for each in node.args.get("using") or [])
        if isinstance(node, nodes.Case):
            branches = [each.args.get("true") for each in node.args.get("ifs") or []]
            tests = [node.this, *(each.this for each in node.args.get("ifs") or [])] if node.this else []
            return meet(map(self._kind, _given([*branches, node.args.get("default")]))) or meet(
                map(self._kind, _given(tests))
            )
        is_call = isinstance(node, (nodes.Binary, nodes.Func, nodes.Predicate))
        if not is_call or type(node).__name__ in _APART or isinstance(node, nodes.If):
            return False
        return meet(map(self._kind, _children(node, nodes)))

    def _is_union_dated(self, node: Any) -> bool:
        sides = [each.unnest() if hasattr(each, "unnest") else each for each in (node.left, node.right)]
        lists = [list(each.selects) for each in sides]
        if len(lists[0]) != len(lists[1]) or any(each.is_star for side in lists for each in side):
            orders = {each.ordered for each in self._relations}
            if len(orders) == 1 and None not in orders:  # all are alike
                return any(kind == EITHER for order in orders for kind in order or ())
            return joined_kinds(each.all for each in self._relations) == EITHER
        return any(meet(map(self._kind, pair)) for pair in zip(*lists, strict=True))

    def _of_column(self, node: Any) -> int:
        """A column; or a field of one, whose name stands where else that of a relation does."""
        before = [each.lowered.get(part.name.lower()) for part in node.parts[:-1] for each in self._relations]
        return self._named(node.name) | joined_kinds(kind for kind in before if kind is not None)

    def _named(self, name: str) -> int:
        name = name.lower()
        if name in self._open or name in self._headed:
            return EITHER
        made = self._made.get(name, [])
        is_read = not made or any(name in each.lowered or each.rest for each in self._relations)
        self._open.add(name)
        try:
            found = joined_kinds(map(self._kind, made))
        finally:
            self._open.discard(name)
        return found | (looked_up(name, self._relations) if is_read else NEITHER)

    def _kind(self, node: Any) -> int:
        nodes, name = self._nodes, type(node).__name__
        if isinstance(node, nodes.Literal):
            return of_text(node.name) if node.is_string else NEITHER
        if isinstance(node, nodes.Column):
            return EITHER if isinstance(node.this, nodes.Star) else self._of_column(node)
        if isinstance(node, nodes.Cast):
            return _target_of(node)
        if isinstance(node, nodes.Interval):
            return TIME
        if isinstance(node, nodes.Window):
            return self._kind(node.this)
        if isinstance(node, nodes.Case):
            branches = [each.args.get("true") for each in node.args.get("ifs") or []]
            return joined_kinds(map(self._kind, _given([*branches, node.args.get("default")])))
        if isinstance(node, (nodes.Predicate, nodes.Connector)) or name in _PLAIN:
            return NEITHER
        if name in _TEXTUAL:
            return TEXT
        if name in _SAME:  # between two dates lies an interval
            between = TIME if isinstance(node, nodes.Sub) else NEITHER
            return joined_kinds(map(self._kind, _children(node, nodes))) | between
        if isinstance(node, (nodes.Subquery, nodes.Select)):
            selects = node.unnest().selects if isinstance(node, nodes.Subquery) else node.selects
            return self._kind(selects[0]) if len(selects) == 1 else EITHER
        return EITHER


def _target_of(cast: Any) -> int:
    kind = cast.args.get("to")
    return EITHER if kind is None else of_words(kind if isinstance(kind, str) else kind.sql("spark"))


def _given(nodes: Iterable[Any]) -> list[Any]:
    return [node for node in nodes if node is not None]


def _children(node: Any, nodes: Any) -> list[Any]:
    return [each for each in node.iter_expressions() if isinstance(each, nodes.Expression)]
