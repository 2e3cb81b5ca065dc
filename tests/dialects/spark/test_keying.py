"""What keys say besides: the order of rows of texts, and of relations by name."""

import pytest

pytest.importorskip("pyspark.sql.connect.session", reason="Spark is not installed: make test-sail")
pytest.importorskip("sqlglot", reason="sqlglot is not installed: make test-sail")

from pyspark.sql.connect.proto import expressions_pb2, relations_pb2

from nectar.dialects.spark.keying import keyed_steps
from nectar.dialects.spark.relations import steps_of
from nectar.dialects.spark.scope import Scope, View

pytestmark = pytest.mark.small


def relation(**content):
    return relations_pb2.Relation(**content)


def read(path):
    return relation(read=relations_pb2.Read(data_source={"format": "parquet", "paths": [str(path)]}))


def text(query):
    return relation(sql=relations_pb2.SQL(query=query))


def named(name):
    return relation(read=relations_pb2.Read(named_table={"unparsed_identifier": name}))


def is_open(session, made, scope):
    """Whether nobody could rely on the order of its rows."""
    return keyed_steps(steps_of(made), b"frame", session.inputs, scope).root.order.scrambles


@pytest.fixture
def scope(log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    over = expressions_pb2.Expression(unresolved_attribute={"unparsed_identifier": "seconds"})
    order = expressions_pb2.Expression.SortOrder(child=over, direction=1, null_ordering=1)
    made = {
        "files": read(log),
        "by_text": text("select * from files"),
        "sorted": relation(sort=relations_pb2.Sort(input=read(log), order=[order], is_global=True)),
        "sorted_by_text": text("select * from files order by seconds"),
        "of_sorted": relation(filter=relations_pb2.Filter(input=named("sorted"), condition=over)),
        "counted": text("select page, count(*) from sorted group by page"),
    }
    scope = Scope()
    for name, each in made.items():
        scope = scope.with_view((name,), View(tuple(steps_of(each)), scope, folder=str(tmp_path)))
    return scope


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (named("files"), True),
        (named("by_text"), True),
        (named("sorted"), False),
        (named("sorted_by_text"), False),
        (named("of_sorted"), False),
        (text("select page, count(*) from files group by page"), True),
        (text("select * from files order by page"), False),
        (text("select * from sorted"), False),
        (text("select * from of_sorted"), False),
        (text("select 1"), False),
    ],
)
def test_whether_rows_have_an_order(enabled, scope, made, expected):
    assert is_open(enabled, made, scope) == expected


def test_a_text_over_frames_says_something_of_order_too(enabled, scope, log):
    alias = "_pyspark_connect_temp_view_0a"
    frame = relation(subquery_alias=relations_pb2.SubqueryAlias(input=read(log), alias=alias))
    for query, expected in ((f"select page from {alias}", True), (f"select * from {alias} order by page", False)):
        made = relations_pb2.WithRelations(root=text(query), references=[frame])
        assert is_open(enabled, relation(with_relations=made), scope) == expected
