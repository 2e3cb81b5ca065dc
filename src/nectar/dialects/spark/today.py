"""Relations whose rows may depend on today's date: somewhere in them a text may become a timestamp.

Engines take a text that holds a time of day only ("10:30") for that time of today; the same plan over the same files
gives something else tomorrow. In: steps, and the columns of what they read. Out: for each step whether the day belongs
into its key. Law: a step that may make a timestamp of a text, by a cast, a function, or because a text and a timestamp
meet in a comparison, a union, a join, has the day in its key; where types are not known, they may be any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa

from nectar.dialects.spark.dated_expressions import Expressions, Find, expressions_in
from nectar.dialects.spark.function_types import (
    TAKES_TIMES,
)
from nectar.dialects.spark.relations import Step
from nectar.dialects.spark.sql.today import columns_made
from nectar.dialects.spark.sql.today import is_dated as is_text_dated
from nectar.dialects.spark.texts_and_times import (
    EITHER,
    NEITHER,
    TEXT,
    TIME,
    Columns,
    Kinds,
    columns_of,
    joined_kinds,
    looked_up,
    meet,
    of_arrow,
    of_schema,
    of_type,
    of_words,
)

_PASSING: Final = frozenset({
    "filter", "sort", "limit", "offset", "tail", "hint", "repartition", "repartition_by_expression", "drop_na",
    "deduplicate", "subquery_alias", "fill_na", "replace",
})  # fmt: skip
_JOINS: Final = frozenset({"join", "lateral_join", "as_of_join"})

_INPUTS: Final = {
    "set_op": 2, "join": 2, "as_of_join": 2, "lateral_join": 2, "unpivot": 1, "transpose": 1, "to_schema": 1,
    "drop": 1, "to_df": 1, "with_columns": 1, "with_columns_renamed": 1,
}  # fmt: skip


class Today:
    """What is known of the columns of steps, and which of these depend on the day.

    columns_read: of a step that reads files, or something by its name.
    """

    def __init__(self, steps: Sequence[Step], columns_read: Callable[[int], Columns]) -> None:
        self._steps, self._read = steps, columns_read
        self._found: dict[int, Columns] = {}
        self._columns: list[Find] = [partial(self._columns_of, at) for at in range(len(steps))]

    def columns(self) -> Columns:
        """The columns of the last step."""
        return self._columns[-1]()

    def is_dated(self, at: int) -> bool:
        """Whether the rows of a step that reads no files may depend on the day by what it does itself."""
        step = self._steps[at]
        if step.message is None:  # of a view that holds many rows; nobody remembers it
            return True
        message = getattr(step.message, step.kind)
        inputs = [self._columns[below] for below in step.inputs]
        judge = Expressions(inputs)
        if any(judge.is_dated(each) for each in expressions_in(message)):
            return True
        return self._is_relation_dated(at, step, message)

    def _is_relation_dated(self, at: int, step: Step, message: Any) -> bool:
        inputs = [self._columns[below] for below in step.inputs]
        if not step.sql and len(inputs) < _INPUTS.get(step.kind, 0):
            return False  # no engine runs it
        if step.sql:
            return is_text_dated(_query_in(step, message), TAKES_TIMES, self._relations_of(at))
        if step.kind == "set_op":
            return _meet_in_columns(*(each() for each in inputs[:2]))
        if step.kind in ("join", "as_of_join") and message.using_columns:
            left, right = (each() for each in inputs[:2])
            return any(meet((looked_up(name, [left]), looked_up(name, [right]))) for name in message.using_columns)
        if step.kind == "as_of_join":
            judge = Expressions(inputs)
            return meet((judge.kind(message.left_as_of), judge.kind(message.right_as_of)))
        if step.kind in ("unpivot", "transpose"):
            return inputs[0]().all == EITHER
        if step.kind == "to_schema":
            return bool(of_type(message.schema) & TIME and inputs[0]().all & TEXT)
        if step.kind == "parse":
            return not message.HasField("schema") or bool(of_type(message.schema) & TIME)
        return step.kind == "local_relation" and _casts(message)

    def _relations_of(self, at: int) -> list[Columns]:
        """What a text reads."""
        step = self._steps[at]
        return [self._columns_of(below) for below in step.inputs] + ([self._read(at)] if step.names else [])

    # columns

    def _columns_of(self, at: int) -> Columns:
        found = self._found.get(at)
        if found is None:
            found = self._found[at] = self._columns_made(at)
        return found

    def _columns_made(self, at: int) -> Columns:
        step = self._steps[at]
        if step.read is not None or (step.names and not step.sql):
            return self._read(at)
        if step.message is None or len(step.inputs) < _INPUTS.get(step.kind, 1 if step.kind in _PASSING else 0):
            return Columns()
        message = getattr(step.message, step.kind)
        inputs = [self._columns[below] for below in step.inputs]
        if step.sql:
            return columns_made(_query_in(step, message), self._relations_of(at))
        if step.kind in _PASSING:
            return inputs[0]()
        if step.kind == "drop":
            below = inputs[0]()
            return Columns(below.named, below.rest)
        if step.kind in ("project", "aggregate", "with_columns"):
            return _made(step.kind, message, inputs)
        if step.kind in _JOINS:
            return columns_beside([each() for each in inputs], ordered=not getattr(message, "using_columns", ()))
        if step.kind == "set_op":
            left, right = (each() for each in inputs[:2])
            return Columns({name: kind | right.all for name, kind in left.named.items()}, left.rest | right.all)
        return _of_kind(step, message, inputs)


def _of_kind(step: Step, message: Any, inputs: Sequence[Find]) -> Columns:
    """The columns of relations that are not made of expressions."""
    if step.kind == "range":
        return columns_of([("id", NEITHER)])
    if step.kind == "local_relation":
        return of_schema(message.schema) if message.schema else columns_of(_arrow_fields(message.data))
    if step.kind == "to_df":
        ordered = inputs[0]().ordered
        if ordered is None or len(ordered) != len(message.column_names):
            return Columns(rest=inputs[0]().all)
        return columns_of(zip(message.column_names, ordered, strict=True))
    if step.kind == "with_columns_renamed":
        below = inputs[0]()
        pairs = [(each.col_name, each.new_col_name) for each in message.renames]
        pairs += list(message.rename_columns_map.items())
        renamed = {new: looked_up(old, [below]) for old, new in pairs}
        return Columns({**below.named, **renamed}, below.rest, below.find_order)
    if step.kind in ("group_map", "co_group_map", "map_partitions"):
        return Columns(rest=of_type(message.func.python_udf.output_type))
    if step.kind in ("summary", "describe", "show_string", "html_string"):
        return Columns(rest=TEXT)
    return Columns()


def _made(kind: str, message: Any, inputs: Sequence[Find]) -> Columns:
    """The columns that expressions make, one for each, beside or instead of those below."""
    judge = Expressions(inputs)
    if kind == "with_columns":
        below = inputs[0]()
        made = {name: judge.kind(each.expr) for each in message.aliases for name in each.name}
        return Columns({**below.named, **made}, below.rest)
    if kind == "project":
        expressions = list(message.expressions)
        if not inputs:
            return columns_of((_name_of(each), judge.kind(each)) for each in expressions)
    else:
        expressions = [*message.grouping_expressions, *message.aggregate_expressions]
    fields: list[tuple[str, int]] = []
    whole = True
    rest = NEITHER
    for each in expressions:
        if each.WhichOneof("expr_type") in ("unresolved_star", "unresolved_regex"):
            below = columns_beside([every() for every in inputs])
            fields += below.named.items()
            rest, whole = rest | below.rest, False
        else:
            fields.append((_name_of(each), judge.kind(each)))
    found = columns_of(fields)
    if kind == "aggregate" and (message.HasField("pivot") or message.grouping_sets):
        return Columns(found.named, found.all)
    return Columns(found.named, rest, found.find_order) if whole else Columns(found.named, rest)


def _name_of(expression: Any) -> str:
    kind = expression.WhichOneof("expr_type")
    if kind == "alias":
        return ",".join(expression.alias.name)
    if kind == "unresolved_attribute":
        return str(expression.unresolved_attribute.unparsed_identifier).rpartition(".")[2].strip("`")
    return "\0"  # what the engine calls it; nobody finds it by that name


def columns_beside(relations: Sequence[Columns], *, ordered: bool = True) -> Columns:
    """The columns of all of these relations. ordered: one relation after the other."""
    named: dict[str, int] = {}
    for each in relations:
        for name, kind in each.named.items():
            named[name] = named.get(name, NEITHER) | kind

    def order() -> Kinds | None:
        parts = [each.ordered for each in relations]
        known = [part for part in parts if part is not None]
        return tuple(kind for part in known for kind in part) if len(known) == len(parts) else None

    rest = joined_kinds(each.rest for each in relations)
    return Columns(named, rest, order) if ordered else Columns(named, rest)


def _meet_in_columns(left: Columns, right: Columns) -> bool:
    if not meet((left.all, right.all)):
        return False
    one, another = left.ordered, right.ordered
    if one is None or another is None or len(one) != len(another):
        return True
    return any(map(meet, zip(one, another, strict=True)))


def _query_in(step: Step, message: Any) -> str:
    return str(message.query if step.kind == "sql" else message.root.sql.query)


def _arrow_fields(data: bytes) -> list[tuple[str, int]]:
    with pa.ipc.open_stream(data) as reader:
        return [(each.name, of_arrow(each.type)) for each in reader.schema]


def _casts(local: Any) -> bool:
    """Whether rows of the program are texts, and declared to be timestamps."""
    if not local.schema or not of_words(local.schema) & TIME:
        return False
    declared, sent = of_schema(local.schema).ordered, [kind for _, kind in _arrow_fields(local.data)]
    return declared is None or len(declared) != len(sent) or any(
        one & TIME and another & TEXT for one, another in zip(declared, sent, strict=True)
    )  # fmt: skip
