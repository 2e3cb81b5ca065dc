"""Plans taken apart: what differs has other bytes, what is the same has the same, in any process."""

import itertools
import math

import pytest

pytest.importorskip("pyspark.sql.connect.proto", reason="Spark is not installed: make test-sail")

from pyspark.sql.connect.proto import expressions_pb2, relations_pb2

from nectar.dialects.spark.relations import steps_of
from nectar.errors import UserError

pytestmark = pytest.mark.small
Literal = expressions_pb2.Expression.Literal
_ids = itertools.count()


def relation(**content):
    made = relations_pb2.Relation(**content)
    made.common.plan_id = next(_ids)
    return made


def column(name, plan=None):
    attribute = expressions_pb2.Expression.UnresolvedAttribute(unparsed_identifier=name)
    if plan is not None:
        attribute.plan_id = plan.common.plan_id
    return expressions_pb2.Expression(unresolved_attribute=attribute)


def literal(**value):
    return expressions_pb2.Expression(literal=Literal(**value))


def numbers(end=5):
    return relation(range=relations_pb2.Range(start=0, end=end, step=1))


def project(below, *expressions):
    return relation(project=relations_pb2.Project(input=below, expressions=expressions))


def join(left, right, condition):
    return relation(join=relations_pb2.Join(left=left, right=right, join_condition=condition))


def equal(left, right):
    call = expressions_pb2.Expression.UnresolvedFunction(function_name="==", arguments=[left, right])
    return expressions_pb2.Expression(unresolved_function=call)


def contents(root):
    return [(step.kind, step.inputs, step.content) for step in steps_of(root)]


def test_inputs_come_first_and_the_root_last():
    steps = steps_of(join(numbers(1), project(numbers(2), column("id")), literal(boolean=True)))
    assert [step.kind for step in steps] == ["range", "project", "range", "join"]
    assert steps[-1].inputs == (2, 1)
    assert steps[1].inputs == (0,)


def test_plan_ids_and_call_sites_make_no_difference():
    one, other = project(numbers(), column("id")), project(numbers(), column("id"))
    other.project.expressions[0].common.origin.python_origin.call_site = "elsewhere.py:7"
    other.common.source_info = "elsewhere"
    assert one.common.plan_id != other.common.plan_id
    assert contents(one) == contents(other)


VALUES = [
    {"double": value} for value in (0.0, -0.0, 1.0, math.nan, math.inf, -math.inf)
] + [
    {"float": 1.0}, {"integer": 0}, {"integer": 1}, {"long": 1}, {"short": 1}, {"byte": 1}, {"boolean": False},
    {"boolean": True}, {"string": ""}, {"string": "1"}, {"binary": b"1"}, {"date": 1}, {"timestamp": 1},
    {"timestamp_ntz": 1}, {"day_time_interval": 1}, {"year_month_interval": 1},
    {"decimal": Literal.Decimal(value="1")}, {"decimal": Literal.Decimal(value="1", precision=3)},
    {"decimal": Literal.Decimal(value="1", precision=3, scale=0)},
    {"array": Literal.Array(elements=[Literal(integer=1), Literal(integer=2)])},
    {"array": Literal.Array(elements=[Literal(integer=12)])}, {"array": Literal.Array()},
]  # fmt: skip


def test_every_literal_is_told_from_every_other():
    seen = [contents(project(numbers(), literal(**value)))[-1] for value in VALUES]
    assert len(set(seen)) == len(VALUES)


def test_values_do_not_run_into_each_other():
    pairs = [("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc")]
    seen = [contents(project(numbers(), literal(string=a), literal(string=b)))[-1] for a, b in pairs]
    assert len(set(seen)) == len(pairs)


def test_a_reference_to_one_side_is_told_from_one_to_the_other():
    def joined(pick):
        left, right = numbers(), numbers()
        return contents(join(left, right, equal(column("id", pick(left, right)), literal(long=1))))

    to_left, to_right = joined(lambda left, right: left), joined(lambda left, right: right)
    assert to_left != to_right
    assert to_left == joined(lambda left, right: left)


def test_a_reference_to_nothing_is_refused():
    stranger = numbers()
    steps = steps_of(project(numbers(), column("id", stranger)))
    assert steps[-1].refusals == ("it refers to a relation that is no part of it",)


def test_a_reference_beside_it_tells_where():
    def correlated(first):
        one, two = numbers(1), numbers(2)
        asked = expressions_pb2.SubqueryExpression(plan_id=(one if first else two).common.plan_id, subquery_type=1)
        root = project(numbers(), expressions_pb2.Expression(subquery_expression=asked))
        return relation(with_relations=relations_pb2.WithRelations(root=root, references=[one, two]))

    assert contents(correlated(True)) != contents(correlated(False))
    assert contents(correlated(True)) == contents(correlated(True))


def test_options_are_sorted():
    def parsed(*names):
        made = relation(parse=relations_pb2.Parse(input=numbers(), format=1))
        for name in names:
            made.parse.options[name] = "1"
        return contents(made)

    assert parsed("a", "b", "c") == parsed("c", "a", "b")
    assert parsed("a", "b") != parsed("a", "c")


def lambda_plan(name, kind):
    variable = expressions_pb2.Expression.UnresolvedNamedLambdaVariable(name_parts=[name])
    body = expressions_pb2.Expression(unresolved_named_lambda_variable=variable)
    function = expressions_pb2.Expression(
        lambda_function=expressions_pb2.Expression.LambdaFunction(function=body, arguments=[variable])
    )
    call = expressions_pb2.Expression.UnresolvedFunction(function_name="transform", arguments=[column("l"), function])
    made = expressions_pb2.Expression(unresolved_function=call)
    if kind == "filter":
        return contents(relation(filter=relations_pb2.Filter(input=numbers(), condition=made)))
    if kind == "in a struct":
        inner = expressions_pb2.Expression.UnresolvedFunction(function_name="struct", arguments=[made])
        made = expressions_pb2.Expression(unresolved_function=inner)
    alias = expressions_pb2.Expression.Alias(expr=made, name=["t"])
    if kind == "new column":
        return contents(relation(with_columns=relations_pb2.WithColumns(input=numbers(), aliases=[alias])))
    if kind != "bare":
        made = expressions_pb2.Expression(alias=alias)
    if kind == "aliased within":
        outer = expressions_pb2.Expression.UnresolvedFunction(function_name="size", arguments=[made])
        made = expressions_pb2.Expression(unresolved_function=outer)
    return contents(project(numbers(), made))


@pytest.mark.parametrize("kind", ["filter", "aliased", "new column"])
def test_lambda_variables_are_renamed(kind):
    assert lambda_plan("x_0", kind) == lambda_plan("x_7", kind)


@pytest.mark.parametrize("kind", ["bare", "in a struct", "aliased within"])
def test_lambda_variables_keep_names_that_show_in_the_result(kind):
    assert lambda_plan("x_0", kind) != lambda_plan("x_7", kind)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"sql": relations_pb2.SQL(query="show tables")}, "no query"),
        ({"sql": relations_pb2.SQL(query="select 1", args={"a": {"long": 1}})}, "older clients"),
        ({"sql": relations_pb2.SQL(query="select 'a\0b'")}, "a zero"),
        ({"read": relations_pb2.Read(named_table={"unparsed_identifier": "a b"})}, "not understood"),
        ({"sample": relations_pb2.Sample(input=numbers(), upper_bound=0.5, seed=3)}, "sample"),
        ({"deduplicate": relations_pb2.Deduplicate(input=numbers(), within_watermark=True)}, "stream"),
        ({"catalog": {"current_database": {}}}, "catalog"),
        ({"group_map": relations_pb2.GroupMap(input=numbers(), is_map_groups_with_state=True)}, "stream"),
        ({}, "not known"),
    ],
)
def test_kinds_are_refused_with_a_reason(content, reason):
    assert reason in " ".join(steps_of(relation(**content))[-1].refusals)


def test_names_of_relations_are_told():
    named = relations_pb2.Read(named_table={"unparsed_identifier": "`Db`.t", "options": {"a": "b"}})
    (step,) = steps_of(relation(read=named))
    assert step.names == (("Db", "t"),)
    (step,) = steps_of(relation(sql=relations_pb2.SQL(query="select mine(a) from t, u, t")))
    assert step.names == (("t",), ("u",))
    assert step.unknown == {"mine"}


def with_frames(text, *names, numbered=(1, 2)):
    """A text that means frames by names that the client has made up."""
    references = [
        relation(subquery_alias=relations_pb2.SubqueryAlias(input=numbers(end), alias=name))
        for name, end in zip(names, numbered, strict=True)
    ]
    root = relation(sql=relations_pb2.SQL(query=text.format(*names)))
    return contents(relation(with_relations=relations_pb2.WithRelations(root=root, references=references)))


def test_names_that_the_client_makes_up_do_not_count():
    text = "select * from {0} join {1}"
    one, two, three = (f"_pyspark_connect_temp_view_{number:032x}" for number in (1, 2, 3))
    assert with_frames(text, one, two) == with_frames(text, three, one)
    assert with_frames(text, one, two) != with_frames("select * from {1} join {0}", one, two)
    assert with_frames(text, one, two) != with_frames(text, one, two, numbered=(2, 1))
    assert with_frames(text, one, two) != with_frames(text, one, "mine")
    assert with_frames("select '{0}' from {1}", one, two) != with_frames("select '{1}' from {1}", one, two)


def test_deep_chains_of_relations_are_read():
    below = numbers()
    for _ in range(400):  # CopyFrom: the client's parser takes a hundred nested messages at most
        made = relation(limit=relations_pb2.Limit(limit=1))
        made.limit.input.CopyFrom(below)
        below = made
    assert len(steps_of(below)) == 401


def test_expressions_nested_too_deeply_are_refused():
    made = column("id")
    for _ in range(1000):
        outer = expressions_pb2.Expression()
        outer.unresolved_function.function_name = "negative"
        outer.unresolved_function.arguments.add().CopyFrom(made)
        made = outer
    root = relation(project=relations_pb2.Project(input=numbers()))
    root.project.expressions.add().CopyFrom(made)
    with pytest.raises(UserError, match="too deeply"):
        steps_of(root)
