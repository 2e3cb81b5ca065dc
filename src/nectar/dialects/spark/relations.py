"""A plan of Spark Connect taken apart into its relations, each with canonical bytes and the reasons not to reuse it.

In: the root relation of a plan (a protobuf message). Out: Steps in an order in which inputs come first; the last is the
root. Law: nothing that can change the result is left out of a step's content, and nothing is in it that differs between
two processes: fields are walked in the order of their numbers, maps are sorted, plan ids become positions in the tree,
call sites are dropped, functions stand for what they compute. What is not known is refused.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from nectar.dialects.spark import kinds
from nectar.dialects.spark.function_names import (
    KNOWN,
    METADATA,
    is_about_the_moment,
    why_refused_call,
    why_refused_column,
    why_refused_string,
)
from nectar.dialects.spark.functions import Pickled, known_as
from nectar.dialects.spark.sql.queries import query_text
from nectar.dialects.spark.sql.words import Name, name_of
from nectar.dialects.spark.text import calls_in
from nectar.dialects.spark.validity import period_of, shorter
from nectar.errors import UserError
from nectar.keys.expansion import joined, sized

_DROPPED: Final = frozenset({"spark.connect.RelationCommon", "spark.connect.ExpressionCommon"})
_STREAMING: Final = {
    "spark.connect.Deduplicate": ("within_watermark",),
    "spark.connect.GroupMap": (
        "initial_input", "is_map_groups_with_state", "output_mode", "timeout_conf", "state_schema",
        "transform_with_state_info",
    ),
}  # fmt: skip
_GIVEN: Final = "_pyspark_connect_temp_view_"  # the client names frames so that are meant in a text
# Relations whose expressions name no column, so that a lambda variable in them does not show in the result.
_NAMELESS: Final = frozenset({"filter", "sort", "join", "repartition_by_expression"})
# Relations that take strings for columns, or for whatever else a name may mean.
_NAME_COLUMNS: Final = frozenset({"cov", "corr", "approx_quantile", "freq_items", "crosstab", "describe"})
_SHOWS_PARTS: Final = frozenset({"struct", "arrays_zip"})  # name their fields after the expressions in them


@dataclass(frozen=True, slots=True)
class Step:
    """One relation. inputs: numbers of other steps. content: what it does to them, canonical.

    read: the message of a relation that reads files, whose content is added by whoever makes keys. refusals: why its
    result is not reused. calls: functions it calls by name. unknown: of these, those that the engine does not have.
    names: relations that it reads by name. sql: it is a text. sorts: the text may say in which order rows come.
    functions: Python functions in it. message: the relation itself. size: how many relations it consists of; they are
    the steps right before it, and itself. references: steps that it names by their plan ids. dotted: it may name
    columns by more than their names. layout: it may see how the engine cuts its input. breaks: what is above it could
    not be done below it. windows: it has window functions, which number ties in any order. period: for how many
    seconds somebody has declared its sources to be good.
    """

    kind: str
    inputs: tuple[int, ...]
    content: bytes
    read: Any = None
    refusals: tuple[str, ...] = ()
    calls: frozenset[str] = frozenset()
    functions: tuple[Pickled, ...] = field(default=(), compare=False)  # the content says what they compute
    unknown: frozenset[str] = frozenset()
    names: tuple[Name, ...] = ()
    sql: bool = False
    sorts: bool = False
    message: Any = field(default=None, compare=False)  # its ids are other ones in each process
    size: int = 1
    references: tuple[int, ...] = ()
    dotted: bool = False
    layout: bool = False
    breaks: bool = False
    windows: bool = False
    period: float | None = None


@dataclass(frozen=True, slots=True)
class _Reference:
    """A relation, by its plan id."""

    plan: int


@dataclass(slots=True)
class _Found:
    """A relation in preorder. pieces: its content, references still open. end: where the relations below it end."""

    kind: str
    pieces: list[bytes | _Reference] = field(default_factory=list)
    children: list[Any] = field(default_factory=list)
    below: list[int] = field(default_factory=list)
    end: int = 0
    read: Any = None
    refusals: list[str] = field(default_factory=list)
    calls: set[str] = field(default_factory=set)
    functions: list[Pickled] = field(default_factory=list)
    message: Any = None
    dotted: bool = False
    layout: bool = False
    windows: bool = False
    unknown: set[str] = field(default_factory=set)
    names: list[Name] = field(default_factory=list)
    sql: bool = False
    sorts: bool = False
    within: list[Any] = field(default_factory=list)  # relations that were read as part of this one
    period: float | None = None


def steps_of(root: Any) -> list[Step]:
    """The relations of a plan, inputs first. Raises UserError if expressions are nested too deeply to be read."""
    try:
        found, places = _preorder(root)
    except RecursionError as error:
        raise UserError("its expressions are nested too deeply") from error
    last = len(found) - 1
    return [_step(at, found, places, last) for at in range(last, -1, -1)]


def registration_of(function: Any) -> tuple[bytes, tuple[str, ...], tuple[Pickled, ...]]:
    """Canonical bytes of a function that a server is taught, why it is not reused, and the Python function in it."""
    found = _Reader(None).read_message(function)
    content = b"".join(piece for piece in found.pieces if isinstance(piece, bytes))
    return content, tuple(dict.fromkeys(found.refusals)), tuple(found.functions)


def _preorder(root: Any) -> tuple[list[_Found], dict[int, list[int]]]:
    """All relations, those above before those below; and where each plan id stands."""
    found: list[_Found] = []
    places: dict[int, list[int]] = {}
    pending: list[tuple[Any, int]] = [(root, -1)]
    while pending:
        message, above = pending.pop()
        here = len(found)
        one = _Reader(message).read()
        found.append(one)
        if above >= 0:
            found[above].below.append(here)
            one.period = found[above].period
        for each in (message, *one.within):
            one.period = shorter(one.period, period_of(each))
            if each.HasField("common") and each.common.HasField("plan_id"):
                places.setdefault(each.common.plan_id, []).append(here)
        pending.extend((child, here) for child in reversed(one.children))
    for at in range(len(found) - 1, -1, -1):
        below = found[at].below
        found[at].end = found[below[-1]].end if below else at + 1
    return found, places


def _step(at: int, found: list[_Found], places: dict[int, list[int]], last: int) -> Step:
    one = found[at]
    content: list[bytes] = []
    references: list[int] = []
    for piece in one.pieces:
        if isinstance(piece, bytes):
            content.append(piece)
            continue
        everywhere = places.get(piece.plan, [])
        references += (last - place for place in everywhere)
        inside = [place - at for place in everywhere[bisect_left(everywhere, at) :] if place < one.end]
        if not everywhere:
            one.refusals.append("it refers to a relation that is no part of it")
        # A reference to beside it, as a correlated subquery has it, tells where in the whole plan.
        where = ("below", inside) if inside else ("beside", everywhere)
        content.append(sized(joined("relation", where[0], *(str(place) for place in where[1]))))
    return Step(
        one.kind, tuple(last - place for place in one.below), b"".join(content), one.read,
        tuple(dict.fromkeys(one.refusals)), frozenset(one.calls), tuple(one.functions), frozenset(one.unknown),
        tuple(dict.fromkeys(one.names)), one.sql, one.sorts, one.message, one.end - at,
        tuple(dict.fromkeys(references)), one.dotted, one.layout,
        (one.kind in kinds.BREAKERS and not _multiplies(one)) or one.windows or bool(one.functions),
        one.windows, one.period,
    )  # fmt: skip


def _multiplies(one: _Found) -> bool:
    """Whether a join pairs everything with everything, so that its result may be larger than anybody wants to keep."""
    join = one.message.join
    return one.kind == "join" and not join.HasField("join_condition") and not join.using_columns


class _Reader:
    """Reads one relation, and hands back those it is made from."""

    def __init__(self, relation: Any) -> None:
        self._kind = None if relation is None else relation.WhichOneof("rel_type")
        self._relation = relation
        self._found = _Found(str(self._kind), message=relation, layout=self._kind in kinds.SEES_LAYOUT)
        self._variables: dict[str, int] = {}
        self._depth = 0  # of expressions around the one that is read
        self._alias: Any = None  # the one that names the column that is read
        self._special: dict[str, Callable[[Any], None]] = {
            "spark.connect.Relation": self._add_child,
            "spark.connect.Expression": self._add_expression,
            "spark.connect.Expression.Alias": self._add_alias,
            "spark.connect.PythonUDF": self._add_python,
            "spark.connect.PythonUDTF": self._add_python,
            "spark.connect.CommonInlineUserDefinedFunction": self._add_user_function,
            "spark.connect.CommonInlineUserDefinedTableFunction": self._add_user_function,
            "spark.connect.Expression.UnresolvedNamedLambdaVariable": self._add_variable,
            "spark.connect.Read": self._add_read,
            "spark.connect.SQL": self._add_sql,
            "spark.connect.WithRelations": self._add_with_relations,
            "spark.connect.SubqueryAlias": self._add_subquery_alias,
            "spark.connect.DataType.UDT": lambda _: self._refuse("it has a type of the user"),
            "google.protobuf.Any": lambda _: self._refuse("it has an extension of the protocol"),
        }

    def read(self) -> _Found:
        reason = kinds.why_refused(self._kind)
        if reason:
            self._refuse(reason)
        else:
            self._put(joined("spark", str(self._kind)))
            self._add_message(getattr(self._relation, str(self._kind)))
        return self._found

    def read_message(self, message: Any) -> _Found:
        """Reads a message that is no relation."""
        self._add_message(message)
        return self._found

    def _refuse(self, reason: str, sees_layout: bool = True) -> None:
        """The relation is not reused. sees_layout: what it does may depend on how its input is cut."""
        if reason:
            self._found.refusals.append(reason)
            self._found.layout = self._found.layout or sees_layout

    def _put(self, piece: bytes | _Reference) -> None:
        self._found.pieces.append(piece)

    # messages

    def _add_message(self, message: Any) -> None:
        name = message.DESCRIPTOR.full_name
        if name in _DROPPED:
            return
        special = self._special.get(name)
        if special is not None:
            special(message)
        else:
            self._add_fields(message)

    def _add_fields(self, message: Any, without: tuple[str, ...] = ()) -> None:
        name = message.DESCRIPTOR.full_name
        streaming = _STREAMING.get(name, ())
        self._put(b"(")
        for descriptor, value in message.ListFields():
            if descriptor.name in streaming and value:
                self._refuse("it is a stream")
            if descriptor.name in without:
                continue
            self._put(b"f" + descriptor.number.to_bytes(4, "little"))
            self._add_field(descriptor, value)
        self._put(b")")

    def _add_field(self, descriptor: Any, value: Any) -> None:
        if _is_map(descriptor):
            self._add_map(descriptor, value)
        elif not descriptor.is_repeated:
            self._add_value(descriptor, value)
        else:
            self._put(b"[" + len(value).to_bytes(8, "little"))
            for each in value:
                self._add_value(descriptor, each)

    def _add_map(self, descriptor: Any, value: Any) -> None:
        of_key, of_value = (descriptor.message_type.fields_by_name[name] for name in ("key", "value"))
        self._put(b"{" + len(value).to_bytes(8, "little"))
        for key in sorted(value):
            self._add_value(of_key, key)
            self._add_value(of_value, value[key])

    def _add_value(self, descriptor: Any, value: Any) -> None:
        if descriptor.message_type is not None:
            self._add_message(value)
        elif descriptor.name == "plan_id":
            self._put(_Reference(value))
        else:
            if isinstance(value, str):
                self._check_text(value)
            self._put(_scalar(value))

    def _check_text(self, text: str) -> None:
        """A string of a relation or of an expression, which may name a column."""
        self._found.dotted = self._found.dotted or "." in text
        if self._kind in _NAME_COLUMNS:
            self._refuse(why_refused_column(text))
        elif METADATA in text.lower() and self._depth == 0:
            self._refuse(why_refused_column(METADATA))

    # what is not taken as it stands

    def _add_child(self, message: Any) -> None:
        self._put(b"relation")
        self._found.children.append(message)

    def _add_expression(self, message: Any) -> None:
        kind = message.WhichOneof("expr_type")
        self._refuse(kinds.why_refused_expression(kind))
        if kind is None or kind not in kinds.EXPRESSIONS:
            return
        content = getattr(message, kind)
        check = getattr(self, f"_check_{kind}", None)
        if check is not None:
            check(content)
        self._put(joined("expression", kind))
        self._depth += kind != "alias"
        self._add_message(content)
        self._depth -= kind != "alias"

    def _add_alias(self, message: Any) -> None:
        """An expression with a name; where it is a whole column, nothing of the expression shows in the result."""
        around = self._alias
        self._alias = message if self._depth == 0 else around
        self._add_fields(message)
        self._alias = around

    def _check_literal(self, literal: Any) -> None:
        for text in _strings_in(literal):
            self._refuse(why_refused_string(text))

    def _check_unresolved_attribute(self, attribute: Any) -> None:
        if attribute.is_metadata_column:
            self._refuse("it has a column of metadata")
        if not attribute.HasField("plan_id"):  # a column of a certain frame is there, or is an error
            self._refuse(why_refused_column(attribute.unparsed_identifier))
        elif METADATA in attribute.unparsed_identifier.lower():
            self._refuse(why_refused_column(METADATA))

    def _check_unresolved_function(self, call: Any) -> None:
        if call.is_user_defined_function:
            self._refuse(f"{call.function_name} is a function that somebody has registered")
        self._check_call_function(call)

    def _check_call_function(self, call: Any) -> None:
        name = call.function_name.lower()
        self._found.calls.add(name)
        of_the_moment = is_about_the_moment(name)
        if name not in KNOWN and not of_the_moment:
            self._found.unknown.add(name)
        self._refuse(why_refused_call(call.function_name, len(call.arguments)), not of_the_moment)

    def _check_unresolved_star(self, star: Any) -> None:
        self._refuse(why_refused_column(star.unparsed_target))

    def _check_unresolved_regex(self, regex: Any) -> None:
        self._refuse(why_refused_column(regex.col_name))

    def _check_window(self, _: Any) -> None:
        self._found.windows = True

    def _check_expression_string(self, expression: Any) -> None:
        self._found.windows = self._found.windows or "over" in expression.expression.lower()
        read = calls_in(expression.expression)
        if isinstance(read, str):
            self._refuse(read)
        else:
            self._found.calls |= read.called
            self._found.unknown |= read.unknown

    def _add_user_function(self, message: Any) -> None:
        of_table = message.WhichOneof("function") == "python_udtf"  # unless somebody says otherwise, it is declared so
        if not message.deterministic and not of_table:
            self._refuse(f"{message.function_name} is declared to be nondeterministic")
        if message.WhichOneof("function") not in ("python_udf", "python_udtf"):
            self._refuse(f"{message.function_name} is no function of Python")
        self._add_fields(message)

    def _add_python(self, message: Any) -> None:
        known = known_as(message.command)
        if known is None:
            self._refuse("it has a Python function that was not seen when it was pickled, or changed meanwhile")
            return
        self._refuse(known.refusal)
        self._found.layout = self._found.layout or message.eval_type in kinds.ITERATING
        self._found.functions.append(known)
        self._put(joined("function", known.digest))
        self._add_fields(message, without=("command",))

    def _add_variable(self, message: Any) -> None:
        """A lambda variable; the client numbers them by process, and engines show the name where nothing else is."""
        name = ".".join(message.name_parts)
        if self._kind in _NAMELESS or (self._alias is not None and not _names_its_parts(self._alias)):
            number = self._variables.setdefault(name, len(self._variables))
            self._put(joined("variable", str(number)))
        else:
            self._put(joined("variable as named", name))

    # what is read

    def _add_read(self, message: Any) -> None:
        if message.WhichOneof("read_type") != "named_table" or message.is_streaming:
            self._found.read = message
            return
        if message.named_table.options:
            self._refuse("it reads a table with options, which are not understood")
        self._add_fields(message)
        self._add_name(name_of(message.named_table.unparsed_identifier))

    def _add_name(self, name: Name) -> None:
        if name:
            self._found.names.append(name)
        else:
            self._refuse("the name of a table or view is not understood")

    def _add_sql(self, message: Any, given: Sequence[str] = ()) -> None:
        """A query written as text. given: names that the client gave to relations beside it."""
        read = query_text(message.query)
        self._found.sql, self._found.sorts = True, read.sorts
        for reason in read.refusals:
            self._refuse(reason)
        if message.args or message.pos_args:
            self._refuse("it has arguments as older clients write them")
        text = read.text
        if "\0" in text:
            self._refuse("the SQL text has a zero in it")
        for number, name in enumerate(given):
            text = text.replace(name, f"\0{number}\0")
        self._put(joined("text", text))
        self._found.calls |= read.calls
        self._found.unknown |= read.unknown
        self._found.names += (name for name in read.names if name not in {(each,) for each in given})
        self._add_fields(message, without=("query",))

    def _add_with_relations(self, message: Any) -> None:
        """Relations that are referred to by others; a text refers to them by names, and is read together with them."""
        if message.root.WhichOneof("rel_type") != "sql":
            self._add_fields(message)
            return
        self._found.within.append(message.root)
        given = [each.subquery_alias.alias for each in message.references]
        self._put(b"sql")
        self._add_sql(message.root.sql, [name for name in given if _is_given(name)])
        self._add_fields(message, without=("root",))

    def _add_subquery_alias(self, message: Any) -> None:
        """A relation under a name; names that the client makes up say nothing."""
        if not _is_given(message.alias):
            self._add_fields(message)
            return
        self._put(joined("alias of the client"))
        self._add_fields(message, without=("alias",))


def _is_given(name: str) -> bool:
    return name.startswith(_GIVEN) and name.removeprefix(_GIVEN).isalnum()


@cache
def _is_map(descriptor: Any) -> bool:
    kind = descriptor.message_type
    return bool(kind is not None and kind.GetOptions().map_entry)


def _scalar(value: Any) -> bytes:
    """A value with its type and length; floats by their bits, so that all kinds of NaN and zero are told apart."""
    if isinstance(value, bool):
        return b"b1" if value else b"b0"
    if isinstance(value, int):
        return b"i" + sized(str(value).encode())
    if isinstance(value, float):
        return b"d" + struct.pack("<d", value)
    if isinstance(value, str):
        return b"s" + sized(value.encode("utf-8", "surrogatepass"))
    return b"y" + sized(value)


def _strings_in(message: Any) -> Iterator[str]:
    for descriptor, value in message.ListFields():
        for each in value if descriptor.is_repeated else (value,):
            if isinstance(each, str):
                yield each
            elif descriptor.message_type is not None:
                yield from _strings_in(each)


def _names_its_parts(message: Any) -> bool:
    """Whether an expression holds a call that names what it gives after the expressions it is given."""
    if message.DESCRIPTOR.full_name == "spark.connect.Expression":
        kind = message.WhichOneof("expr_type")
        if kind in ("expression_string", "call_function"):
            return True
        if kind == "unresolved_function" and message.unresolved_function.function_name.lower() in _SHOWS_PARTS:
            return True
    return any(
        _names_its_parts(each)
        for descriptor, value in message.ListFields()
        if descriptor.message_type is not None and not _is_map(descriptor)
        for each in (value if descriptor.is_repeated else (value,))
    )
