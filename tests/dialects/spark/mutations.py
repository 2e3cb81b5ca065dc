"""Plans of Spark Connect that are changed in one field: made from the description of the protocol itself.

A plan is made for each kind of relation and of expression that may be reused, with all its fields set but those that
are refused if they are. Then each field of each message in it is changed in every way there is: another value, another
member, one more, one less, another order, nothing. What the protocol of a later client adds is so changed, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message
from pyspark.sql.connect.proto import expressions_pb2, relations_pb2, types_pb2

Expression, Relation = expressions_pb2.Expression, relations_pb2.Relation

# Fields that make a plan one that is not reused, whatever they are set to; and why.
REFUSED = {
    "Deduplicate.within_watermark": "streams",
    "GroupMap.initial_input": "streams",
    "GroupMap.initial_grouping_expressions": "streams, with the one before",
    "GroupMap.is_map_groups_with_state": "streams",
    "GroupMap.output_mode": "streams",
    "GroupMap.timeout_conf": "streams",
    "GroupMap.state_schema": "streams",
    "GroupMap.transform_with_state_info": "streams",
    "Read.is_streaming": "streams",
    "Read.NamedTable.options": "options of tables are not understood",
    "Read.DataSource.predicates": "of databases",
    "Read.DataSource.source_name": "of streams",
    "SQL.args": "arguments as older clients write them",
    "SQL.pos_args": "arguments as older clients write them",
    "Expression.UnresolvedAttribute.is_metadata_column": "tells where files lie",
    "Expression.UnresolvedFunction.is_user_defined_function": "functions that others registered",
    "CommonInlineUserDefinedFunction.scalar_scala_udf": "no function of Python",
    "CommonInlineUserDefinedFunction.java_udf": "no function of Python",
    "DataType.udt": "a type of the user",
}
# Fields of which all values but one make it so.
ONE_VALUE = {
    "CommonInlineUserDefinedFunction.deterministic": "functions that are declared to give something else each time",
    "Expression.UnresolvedAttribute.plan_id": "there is one relation below that it could mean",
    "Expression.UnresolvedStar.plan_id": "there is one relation below that it could mean",
    "Expression.UnresolvedRegex.plan_id": "there is one relation below that it could mean",
    "SubqueryExpression.plan_id": "there is one relation below that it could mean",
}
# Fields that are not part of keys, and why nothing is lost by that.
LEFT_OUT = {
    "Relation.common": "ids and places in the program; references by id are positions in the plan",
    "Expression.common": "places in the program",
}
LISTED = REFUSED.keys() | LEFT_OUT.keys()
# Kinds of relations and expressions have plans of their own; here one of each is enough.
_ELSEWHERE = frozenset({"spark.connect.Relation", "spark.connect.Expression"})


@dataclass(frozen=True)
class Plan:
    """A plan, and where in it the message lies whose fields are changed: names of fields, and places in lists."""

    relation: Relation
    path: tuple[tuple[str, int], ...]
    name: str

    def message(self, relation: Relation) -> Any:
        here: Any = relation
        for name, place in self.path:
            here = getattr(here, name)
            here = here[place] if place >= 0 else here
        return here


@dataclass
class Samples:
    """What fields are set to. files: a folder with files. functions: pickled functions that are known."""

    files: str
    functions: tuple[bytes, bytes]
    relations: tuple[Relation, Relation] = field(init=False)
    expressions: tuple[Expression, Expression] = field(init=False)

    def __post_init__(self) -> None:
        self.relations = numbers(3, plan=2), numbers(4, plan=3)
        self.expressions = attribute("a"), attribute("b")
        integer, text = types_pb2.DataType(integer={}), types_pb2.DataType(string={})
        self._given: dict[str, tuple[Any, ...]] = {
            "Relation": self.relations, "Expression": self.expressions, "DataType": (integer, text),
            "PythonUDF.command": self.functions, "PythonUDTF.command": self.functions,
            "SQL.query": ("select a from values (1) as t(a)", "select a from values (2) as t(a)"),
            "Expression.ExpressionString.expression": ("a + 1", "a + 2"),
            "Expression.UnresolvedFunction.function_name": ("upper", "lower"),
            "CallFunction.function_name": ("upper", "lower"),
            "Read.DataSource.format": ("parquet", "orc"), "Read.DataSource.schema": ("a int", "a long"),
            "Read.DataSource.paths": (self.files,), "Read.NamedTable.unparsed_identifier": ("v", "w"),
            "Read.DataSource.options": ({"mergeSchema": "true"}, {"mergeSchema": "false"}, {"pathGlobFilter": "true"}),
            "CommonInlineUserDefinedFunction.deterministic": (True, False),
            "CommonInlineUserDefinedTableFunction.deterministic": (True, False),
            "Expression.Literal.string": ("some", "other"),
            "PythonUDF.eval_type": (100, 200), "PythonUDTF.eval_type": (300, 301),
        }  # fmt: skip

    def of(self, descriptor: Any) -> tuple[Any, ...]:
        """Values of a field, the first of which a plan has at first; for a list or map, those of its members."""
        name = name_of(descriptor)
        kind = descriptor.message_type
        if name in self._given:
            return self._given[name]
        if kind is not None and short(kind) in self._given:
            return self._given[short(kind)]
        if is_map(descriptor):
            key, value = (self.of(kind.fields_by_name[each])[:2] for each in ("key", "value"))
            return {key[0]: value[0]}, {key[0]: value[1]}, {key[1]: value[0]}
        if kind is not None:
            return self._filled(kind), self._filled(kind, number=1)
        if descriptor.enum_type is not None:
            numbers = [each.number for each in descriptor.enum_type.values]
            return tuple(numbers[1:] + numbers[:1])
        return {1: (0.5, 0.25), 2: (0.5, 0.25), 8: (True, False), 9: ("a", "b", ""), 12: (b"a", b"b", b"")}.get(
            descriptor.type, (2, 3, 0)
        )

    def _filled(self, kind: Any, number: int = 0) -> Message:
        """A message whose fields are set; of each group the first."""
        from google.protobuf.message_factory import GetMessageClass

        made = GetMessageClass(kind)()
        for descriptor in kind.fields:
            group = descriptor.containing_oneof
            if name_of(descriptor) in REFUSED or (group is not None and group.fields[0] != descriptor):
                continue
            values = self.of(descriptor)
            put(made, descriptor, values[min(number, len(values) - 1)], twice=True)
        return made

    def plans_around(self) -> list[Plan]:
        """Plans in which the kind of a relation, or of an expression, is the field that is changed."""
        project = relations_pb2.Project(input=self.relations[0], expressions=[self.expressions[0]])
        path = (("project", -1), ("expressions", 0))
        return [Plan(self.relations[0], (), "relation"), Plan(Relation(project=project), path, "expression")]

    def plan_of_relation(self, kind: str) -> Plan:
        """A plan whose root is of a kind."""
        content = self._filled(Relation.DESCRIPTOR.fields_by_name[kind].message_type)
        return Plan(Relation(**{kind: content}), ((kind, -1),), kind)

    def plan_of_expression(self, kind: str) -> Plan:
        """A plan with an expression of a kind."""
        content = self._filled(Expression.DESCRIPTOR.fields_by_name[kind].message_type)
        project = relations_pb2.Project(input=self.relations[0], expressions=[Expression(**{kind: content})])
        path = (("project", -1), ("expressions", 0), (kind, -1))
        return Plan(Relation(project=project), path, kind)


def changes(plan: Plan, samples: Samples) -> Iterator[tuple[str, str, Relation]]:
    """All plans that differ from one in one field of its message: the field, how it differs, the plan."""
    for descriptor in plan.message(plan.relation).DESCRIPTOR.fields:
        for how, change in _ways(plan.message(plan.relation), descriptor, samples):
            changed = Relation()
            changed.CopyFrom(plan.relation)
            change(plan.message(changed))
            if changed != plan.relation:
                yield name_of(descriptor), how, changed


def inner_plans(plan: Plan, samples: Samples) -> Iterator[Plan]:
    """The same plan, with each message in its message that is no relation or expression; set first if it is not."""
    for descriptor in plan.message(plan.relation).DESCRIPTOR.fields:
        kind = descriptor.message_type
        if kind is None or is_map(descriptor) or kind.full_name in _ELSEWHERE or name_of(descriptor) in LISTED:
            continue
        made = Relation()
        made.CopyFrom(plan.relation)
        message = plan.message(made)
        if not (getattr(message, descriptor.name) if descriptor.is_repeated else message.HasField(descriptor.name)):
            put(message, descriptor, samples.of(descriptor)[0])
        place = (descriptor.name, 0 if descriptor.is_repeated else -1)
        yield Plan(made, (*plan.path, place), f"{plan.name}, {short(kind)}")


def _ways(message: Any, descriptor: Any, samples: Samples) -> Iterator[tuple[str, Any]]:
    name = descriptor.name
    for number, value in enumerate(samples.of(descriptor)):
        yield f"value {number}", lambda changed, value=value: put(changed, descriptor, value)
    yield "nothing", lambda changed: changed.ClearField(name)
    if descriptor.is_repeated and not is_map(descriptor):
        yield "one more", lambda changed: getattr(changed, name).MergeFrom(list(getattr(changed, name))[:1])
        if len(getattr(message, name)) > 1:
            yield "another order", lambda changed: put_all(changed, descriptor, list(getattr(changed, name))[::-1])


def put(message: Any, descriptor: Any, value: Any, *, twice: bool = False) -> None:
    """Sets a field; a list has this one member then, or two."""
    if is_map(descriptor):
        message.ClearField(descriptor.name)
        field = getattr(message, descriptor.name)
        for key, each in value.items():
            if isinstance(each, Message):
                field[key].CopyFrom(each)
            else:
                field[key] = each
    elif descriptor.is_repeated:
        put_all(message, descriptor, [value] * (2 if twice and name_of(descriptor) not in ONCE else 1))
    elif descriptor.message_type is not None:
        getattr(message, descriptor.name).SetInParent()
        getattr(message, descriptor.name).CopyFrom(value)
    else:
        setattr(message, descriptor.name, value)


def put_all(message: Any, descriptor: Any, values: list[Any]) -> None:
    copies = [type(each).FromString(each.SerializeToString()) if isinstance(each, Message) else each for each in values]
    message.ClearField(descriptor.name)
    getattr(message, descriptor.name).extend(copies)


ONCE = {"Read.DataSource.paths"}  # lists that have one member


def numbers(end: int, plan: int) -> Relation:
    return Relation(common={"plan_id": plan}, range={"end": end, "step": 1})


def attribute(name: str) -> Expression:
    return Expression(unresolved_attribute={"unparsed_identifier": name})


def short(kind: Any) -> str:
    return str(kind.full_name).removeprefix("spark.connect.")


def name_of(descriptor: Any) -> str:
    """A field, by its message and name."""
    return f"{short(descriptor.containing_type)}.{descriptor.name}"


def is_map(descriptor: Any) -> bool:
    return descriptor.message_type is not None and descriptor.message_type.GetOptions().map_entry
