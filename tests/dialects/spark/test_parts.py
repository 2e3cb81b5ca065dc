"""Which relations may be replaced by a copy of their rows: each guard, and what would get past it."""

import pytest

pytest.importorskip("pyspark.sql.connect.proto", reason="Spark is not installed: make test-sail")

from pyspark.sql.connect.proto import expressions_pb2, relations_pb2
from tests.dialects.spark.test_relations import column, equal, join, literal, numbers, project, relation

from nectar.dialects.spark.parts import why_not_apart
from nectar.dialects.spark.relations import steps_of

pytestmark = pytest.mark.small
Expression = expressions_pb2.Expression


def files():
    source = relations_pb2.Read.DataSource(format="parquet", paths=["/data"])
    return relation(read=relations_pb2.Read(data_source=source))


def table():
    named = relations_pb2.Read.NamedTable(unparsed_identifier="t")
    return relation(read=relations_pb2.Read(named_table=named))


def grouped(below, *grouping):
    made = relations_pb2.Aggregate(input=below, group_type=1, grouping_expressions=grouping or [column("id")])
    return relation(aggregate=made)


def filtered(below, condition=None):
    return relation(filter=relations_pb2.Filter(input=below, condition=condition or literal(boolean=True)))


def sorted_by(below):
    order = Expression.SortOrder(child=column("id"), direction=1, null_ordering=1)
    return relation(sort=relations_pb2.Sort(input=below, order=[order], is_global=True))


def limited(below):
    return relation(limit=relations_pb2.Limit(input=below, limit=3))


def called(below, name="a"):
    return relation(subquery_alias=relations_pb2.SubqueryAlias(input=below, alias=name))


def star(target=None, plan=None):
    made = Expression.UnresolvedStar()
    if target is not None:
        made.unparsed_target = target
    if plan is not None:
        made.plan_id = plan.common.plan_id
    return Expression(unresolved_star=made)


def regex(name, plan=None):
    made = Expression.UnresolvedRegex(col_name=name)
    if plan is not None:
        made.plan_id = plan.common.plan_id
    return Expression(unresolved_regex=made)


def text(written):
    return Expression(expression_string=Expression.ExpressionString(expression=written))


def apart(root):
    """The kinds of relations that may be replaced, from below."""
    steps = steps_of(root)
    reasons = why_not_apart(steps)
    return [step.kind for step, reason in zip(steps[:-1], reasons[:-1], strict=True) if not reason]


def reasons(root):
    steps = steps_of(root)
    return dict(zip([step.kind for step in steps], why_not_apart(steps), strict=True))


def test_what_nobody_names_may_be_replaced():
    assert apart(project(filtered(grouped(files())), column("id"))) == ["read", "aggregate", "filter"]


@pytest.mark.parametrize(
    "name", [lambda plan: column("id", plan), lambda plan: star(plan=plan), lambda plan: regex("i", plan)]
)
def test_a_relation_that_is_named_from_above_stays_within_reach(name):
    inner = grouped(files())
    outer = filtered(inner)
    made = project(outer, name(inner))
    assert apart(made) == ["read", "aggregate"]  # itself, by its plan id; not the filter that it would vanish in
    assert "named outside" in reasons(made)["filter"]


def test_sides_of_a_join_may_be_named_but_not_what_is_in_them():
    left, right = grouped(files()), grouped(files())
    condition = equal(column("id", left), column("id", right))
    assert apart(join(left, right, condition)).count("aggregate") == 2
    inner = grouped(files())
    condition = equal(column("id", inner), column("id", right))
    assert apart(join(filtered(inner), right, condition)).count("filter") == 0


def test_a_column_of_a_frame_named_above_a_join():
    inner, right = grouped(files()), grouped(files())
    made = project(join(inner, right, literal(boolean=True)), column("id", inner))
    assert "join" not in apart(made)
    assert apart(made).count("aggregate") == 2


def test_a_frame_that_stands_twice_is_named_in_both():
    inner = grouped(files())
    made = project(join(filtered(inner), limited(inner), literal(boolean=True)), column("id", inner))
    assert set(apart(made)) == {"read", "aggregate"}


def correlated(asking, asked):
    subquery = expressions_pb2.SubqueryExpression(plan_id=asked.common.plan_id, subquery_type=1)
    root = project(asking, Expression(subquery_expression=subquery))
    return relation(with_relations=relations_pb2.WithRelations(root=root, references=[asked]))


def test_nothing_of_plans_with_subqueries_is_replaced_but_the_whole():
    made = correlated(grouped(files()), grouped(files()))
    assert apart(made) == []
    assert apart(project(made, column("id"))) == ["with_relations"]


def test_a_step_that_names_what_is_beside_it_is_not_cut_out():
    other = grouped(files())
    naming = filtered(grouped(files()), equal(column("id", other), literal(long=1)))
    made = join(project(naming, column("id")), other, literal(boolean=True))
    assert reasons(made)["filter"].startswith("a column of a relation")
    assert "project" not in apart(made)


def test_nothing_of_a_lateral_join_is_replaced():
    lateral = relations_pb2.LateralJoin(left=grouped(files()), right=grouped(files()), join_type=1)
    assert apart(relation(lateral_join=lateral)) == []


@pytest.mark.parametrize(
    "naming", [column("a.id"), column("`a`.`id`"), star("a.*"), text("a.id + 1"), text("max(a . id)"), regex("a.id")]
)
def test_qualifiers_that_are_used_above_are_not_lost(naming):
    assert apart(project(filtered(called(grouped(files()))), naming)) == ["read", "aggregate"]
    assert apart(project(project(filtered(called(grouped(files()))), column("id")), naming)) == ["read", "aggregate"]


def test_qualifiers_that_nobody_uses_may_be_lost():
    assert "subquery_alias" in apart(project(called(grouped(files())), column("id")))
    # used within what is replaced
    inner = project(called(grouped(files())), column("a.id"))
    assert apart(filtered(inner)) == ["read", "aggregate", "project"]


def test_names_of_tables_are_qualifiers():
    assert apart(project(grouped(filtered(table())), column("t.id"))) == []


def test_what_is_behind_a_name_may_be_sorted():
    text = relation(sql=relations_pb2.SQL(query="select * from t order by id"))
    for named in (table(), text):
        assert apart(limited(filtered(named))) == []
        assert "aggregate" in apart(filtered(grouped(named)))


def test_dots_without_qualifiers_do_no_harm():
    assert "filter" in apart(project(filtered(grouped(files())), column("struct.field")))


def test_rows_in_order_are_not_replaced():
    assert "sort" not in apart(limited(sorted_by(grouped(files()))))
    assert "limit" not in apart(filtered(limited(sorted_by(grouped(files())))))
    assert apart(filtered(project(sorted_by(files()), column("id")))) == ["read"]
    assert apart(filtered(project(numbers(), column("id")))) == []  # ranges and local rows have an order, too
    # where order ends, so does the guard
    assert "aggregate" in apart(filtered(grouped(sorted_by(files()))))


def sample(below):
    return relation(sample=relations_pb2.Sample(input=below, upper_bound=0.5, seed=3))


def by_partition(below):
    return relation(map_partitions=relations_pb2.MapPartitions(input=below))


def call(name):
    return Expression(unresolved_function=Expression.UnresolvedFunction(function_name=name))


def observed(below):
    return relation(collect_metrics=relations_pb2.CollectMetrics(input=below, name="m"))


def watermark(below):
    return relation(with_watermark=relations_pb2.WithWatermark(input=below, event_time="t", delay_threshold="1 s"))


@pytest.mark.parametrize(
    "above",
    [
        sample, by_partition, observed, watermark,
        lambda below: project(below, call("monotonically_increasing_id")),
        lambda below: project(below, call("spark_partition_id")),
        lambda below: project(below, call("input_file_name")),
        lambda below: project(below, call("rand")),
        lambda below: project(below, text("rand(3)")),
        lambda below: project(below, column("_metadata.file_path")),
        lambda below: project(below, call("somebodys_function")),
    ],
)  # fmt: skip
def test_what_sees_how_rows_are_cut_gets_them_as_they_are(above):
    assert apart(above(filtered(grouped(files())))) == []
    assert "aggregate" not in apart(filtered(above(filtered(grouped(files())))))


def test_a_hint_stays_for_what_it_is_meant_for():
    hint = relation(hint=relations_pb2.Hint(input=grouped(files()), name="broadcast"))
    made = join(hint, grouped(files()), literal(boolean=True))
    assert "hint" not in apart(made)
    assert apart(made).count("aggregate") == 2


def test_what_tells_the_moment_does_not_see_how_rows_are_cut():
    assert "aggregate" in apart(project(grouped(files()), call("current_date")))
    assert "aggregate" not in apart(project(grouped(files()), call("current_date"), call("rand")))
