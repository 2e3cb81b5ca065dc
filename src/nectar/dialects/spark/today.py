"""Relations whose rows may depend on today's date: somewhere in them a text may become a timestamp.

Engines take a text that holds a time of day only ("10:30") for that time of today; the same plan over the same files
gives something else tomorrow. In: steps, and the columns of what they read. Out: for each step whether the day belongs
into its key. Law: a step that may make a timestamp of a text, by a cast, a function, or because a text and a timestamp
meet in a comparison, a union, a join, has the day in its key; where types are not known, they may be any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any, Final

import pyarrow as pa

from nectar.dialects.spark.constants import columns_in_pieces
from nectar.dialects.spark.function_types import (
    APART,
    BY_PATTERN,
    PARSES,
    PLAIN,
    SAME,
    TAKES_TIMES,
    TEXTUAL,
    TIMELY,
)
from nectar.dialects.spark.relations import Step
from nectar.dialects.spark.sql.today import columns_made
from nectar.dialects.spark.sql.today import is_dated as is_text_dated
from nectar.dialects.spark.text import pieces_of
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
    of_arrow,
    of_parquet,
    of_schema,
    of_text,
    of_type,
    of_words,
)

_PASSING: Final = frozenset({
    "filter", "sort", "limit", "offset", "tail", "hint", "repartition", "repartition_by_expression", "drop_na",
    "deduplicate", "subquery_alias", "fill_na", "replace",
})  # fmt: skip
_JOINS: Final = frozenset({"join", "lateral_join", "as_of_join"})
_WRITTEN: Final = frozenset({"csv", "json", "text"})  # formats in which everything is written as text

_INPUTS: Final = {
    "set_op": 2, "join": 2, "as_of_join": 2, "lateral_join": 2, "unpivot": 1, "transpose": 1, "to_schema": 1,
    "drop": 1, "to_df": 1, "with_columns": 1, "with_columns_renamed": 1,
}  # fmt: skip
_WITHOUT_EXPRESSIONS: Final = frozenset({"Relation", "RelationCommon", "ExpressionCommon", "DataType", "Literal"})
_MOMENTS: Final = ("timestamp", "calendar", "year_month", "day_time")  # what literals of moments are called

Find = Callable[[], Columns]


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
        judge = _Judge(inputs)
        if any(judge.is_dated(each) for each in _expressions_in(message)):
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
            return any(_meet((looked_up(name, [left]), looked_up(name, [right]))) for name in message.using_columns)
        if step.kind == "as_of_join":
            judge = _Judge(inputs)
            return _meet((judge.kind(message.left_as_of), judge.kind(message.right_as_of)))
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
    judge = _Judge(inputs)
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


class _Judge:
    """Looks at expressions over columns."""

    def __init__(self, inputs: Sequence[Find]) -> None:
        self._inputs = inputs

    def is_dated(self, expression: Any) -> bool:
        """Whether a text may become a timestamp in an expression."""
        kind = expression.WhichOneof("expr_type")
        if kind in ("literal", "unresolved_attribute", None):
            return False
        content: Any = getattr(expression, kind)
        if kind == "cast" and self._is_cast_dated(content):
            return True
        if kind in ("unresolved_function", "call_function") and self._is_call_dated(content):
            return True
        if kind == "expression_string" and self._is_text_dated(content.expression):
            return True
        if kind == "subquery_expression" and content.in_subquery_values:
            return any(self.kind(each) for each in content.in_subquery_values)  # what it is compared with is not known
        if kind == "unresolved_extract_value":  # the key of a map may be a timestamp
            return self.is_dated(content.child) or _meet((self.kind(content.child), self.kind(content.extraction)))
        return any(map(self.is_dated, _expressions_in(content)))

    def _is_cast_dated(self, cast: Any) -> bool:
        return bool(_target_of(cast) & TIME and self.kind(cast.expr) & TEXT)

    def _is_call_dated(self, call: Any) -> bool:
        name, arguments = call.function_name.lower(), list(call.arguments)
        if name in PARSES:  # the type is one of the arguments
            return self._may_parse_times(arguments[1:])
        if name in TAKES_TIMES:
            if name in BY_PATTERN and len(arguments) > 1:
                return False
            return any(self.kind(each) & TEXT for each in arguments)
        if name in APART or sum(_is_open(each) for each in arguments) < 2:
            return False
        return _meet(map(self.kind, arguments))

    def _may_parse_times(self, others: Sequence[Any]) -> bool:
        literals = [each.literal.string for each in others if each.WhichOneof("expr_type") == "literal"]
        return not literals or len(literals) < len(others) or bool(joined_kinds(map(of_words, literals)) & TIME)

    def _is_text_dated(self, text: str) -> bool:
        """Whether an expression that is written as text may: its words are not put together, but all that it names."""
        pieces = pieces_of(text)
        return pieces is None or any(map(self._are_pieces_dated, _conditions(pieces)))

    def _are_pieces_dated(self, pieces: list[tuple[str, str]]) -> bool:
        words = [piece.strip("`").lower() for kind, piece in pieces if kind in ("word", "quoted")]
        kinds = [looked_up(name, self._relations()) for name in columns_in_pieces(pieces)]
        kinds += [of_text(piece[1:-1]) for kind, piece in pieces if kind == "string"]
        makes = any(of_words(word) & TIME or word in TAKES_TIMES for word in words)
        return (makes and bool(joined_kinds(kinds) & TEXT)) or _meet(kinds)

    def _relations(self) -> list[Columns]:
        return [each() for each in self._inputs]

    def kind(self, expression: Any) -> int:
        """What the value of an expression may be."""
        which = expression.WhichOneof("expr_type")
        content: Any = getattr(expression, which) if which else None
        if which == "literal":
            return _of_literal(content)
        if which == "unresolved_attribute":
            return looked_up(content.unparsed_identifier, self._relations())
        if which == "alias":
            return self.kind(content.expr)
        if which == "cast":
            return _target_of(content)
        if which in ("unresolved_function", "call_function"):
            return self._of_call(content.function_name.lower(), content.arguments)
        if which == "window":
            return self.kind(content.window_function)
        if which in ("sort_order", "unresolved_extract_value"):
            return self.kind(content.child)
        if which == "common_inline_user_defined_function":
            return of_type(content.python_udf.output_type)
        return EITHER

    def _of_call(self, name: str, arguments: Iterable[Any]) -> int:
        if name in PLAIN:
            return NEITHER
        if name in TEXTUAL or name in TIMELY:
            return TEXT if name in TEXTUAL else TIME
        if name in ("+", "-"):  # with an interval, of a text too; between two dates lies an interval
            return joined_kinds(map(self.kind, arguments)) | (TIME if name == "-" else NEITHER)
        if name in SAME:
            return joined_kinds(map(self.kind, arguments))
        return EITHER


def _target_of(cast: Any) -> int:
    return of_words(cast.type_str) if cast.WhichOneof("cast_to_type") == "type_str" else of_type(cast.type)


def _of_literal(literal: Any) -> int:
    which = literal.WhichOneof("literal_type")
    if which == "string":
        return of_text(literal.string)
    if which in ("array", "map", "struct", "specialized_array", "null"):
        texts = joined_kinds(of_text(each) for each in _texts_in(literal))
        return texts | (of_type(literal) & TIME) | (TIME if _has_times(literal) else NEITHER)
    return TIME if str(which).startswith(_MOMENTS) else NEITHER


def _texts_in(message: Any) -> Iterable[str]:
    for descriptor, value in message.ListFields():
        for each in value if descriptor.is_repeated else (value,):
            if isinstance(each, str):
                yield each
            elif descriptor.message_type is not None:
                yield from _texts_in(each)


def _has_times(message: Any) -> bool:
    return any(
        descriptor.name.startswith(_MOMENTS)
        or (descriptor.message_type is not None and any(map(_has_times, value if descriptor.is_repeated else (value,))))
        for descriptor, value in message.ListFields()
    )


def _conditions(pieces: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """The parts of a text between AND and OR that are in no brackets; the whole, if these may mean something else."""
    words = {piece.lower() for kind, piece in pieces if kind == "word"}
    if words & {"between", "case"}:
        return [pieces]
    found: list[list[tuple[str, str]]] = [[]]
    depth = 0
    for kind, piece in pieces:
        depth += (piece in ("(", "[")) - (piece in (")", "]"))
        if depth == 0 and kind == "word" and piece.lower() in ("and", "or"):
            found.append([])
        else:
            found[-1].append((kind, piece))
    return found


def _is_open(expression: Any) -> bool:
    """Whether it is more than a literal that can be nothing but what it is."""
    return expression.WhichOneof("expr_type") != "literal" or _of_literal(expression.literal) != NEITHER


def _meet(kinds: Iterable[int]) -> bool:
    """Whether a text may be brought to the type of a timestamp beside it."""
    found = list(kinds)
    return any(
        one & TEXT and another & TIME
        for at, one in enumerate(found)
        for beside, another in enumerate(found)
        if at != beside
    )


def _meet_in_columns(left: Columns, right: Columns) -> bool:
    if not _meet((left.all, right.all)):
        return False
    one, another = left.ordered, right.ordered
    if one is None or another is None or len(one) != len(another):
        return True
    return any(map(_meet, zip(one, another, strict=True)))


def _expressions_in(message: Any) -> Iterable[Any]:
    """The expressions of a message that are within no other, and in no relation."""
    for descriptor, value in message.ListFields():
        role = _role_of(descriptor)
        if role == "nothing":
            continue
        for each in value if descriptor.is_repeated else (value,):
            if role == "expression":
                yield each
            else:
                yield from _expressions_in(each)


@cache
def _role_of(descriptor: Any) -> str:
    """What a field of a message holds: an expression, messages that may hold expressions, or nothing of the kind."""
    kind = descriptor.message_type
    if kind is None or kind.GetOptions().map_entry or kind.name in _WITHOUT_EXPRESSIONS:
        return "nothing"
    return "expression" if kind.full_name == "spark.connect.Expression" else "more"


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


def parses_times(read: Any) -> bool:
    """Whether texts of files may become timestamps while they are read."""
    source = read.data_source
    if source.format.lower() not in _WRITTEN:
        return False
    if source.HasField("schema") and source.schema:
        return bool(of_words(source.schema) & TIME)
    return _infers(source)


def columns_of_read(read: Any, files: Iterable[tuple[str, bytes]]) -> Columns:
    """The columns of a read, as far as they are written somewhere. files: paths, with what is in each."""
    source = read.data_source
    if source.HasField("schema") and source.schema:
        return of_schema(source.schema)
    if source.format.lower() in _WRITTEN:
        return Columns(rest=EITHER if _infers(source) else TEXT)
    if source.format.lower() == "parquet":
        return of_parquet(list(files))
    return Columns()


def _infers(source: Any) -> bool:
    options = {name.lower(): value.lower() for name, value in source.options.items()}
    return options.get("inferschema") == "true"
