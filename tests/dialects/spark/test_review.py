"""What reading with fresh eyes has found: names with two spellings, two lessons at once, texts as numbers."""

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from pyspark.sql.connect.proto import base_pb2
from tests.dialects.spark import engines

import nectar
from nectar.dialects.spark.incremental import growing
from nectar.dialects.spark.scope import Scope, View
from nectar.dialects.spark.sql.queries import query_text
from nectar.dialects.spark.taught import Taught

pytestmark = engines.only_sail


def test_a_table_by_two_names_has_one_meaning():
    scope = Scope().with_view(("t",), View(content=b"1", is_temporary=False))
    changed = scope.with_view(("default", "t"), View(content=b"2", is_temporary=False))
    assert changed.view(("t",)) is None
    assert changed.view(("default", "t")).content == b"2"


def _plan_of_view(spark, name, frame):
    plan = base_pb2.Plan()
    plan.command.create_dataframe_view.name = name
    plan.command.create_dataframe_view.replace = True
    plan.command.create_dataframe_view.input.CopyFrom(frame._plan.to_proto(spark.client).root)
    return plan


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_lessons_about_one_name_leave_it_unknown(spark, order):
    taught = Taught(shared=False)
    lessons = [taught.notice(_plan_of_view(spark, "v", spark.range(n)), None) for n in (1, 2)]
    for at in order:
        taught.learned(lessons[at])
    assert taught.scope.view(("v",)).refusal


def test_a_lesson_that_was_overtaken_is_not_believed(spark):
    taught = Taught(shared=False)
    lesson = taught.notice(_plan_of_view(spark, "v", spark.range(1)), None)
    taught._change(lambda scope: scope.without_view(("v",)))  # another thread drops it
    taught.learned(lesson)
    assert taught.scope.view(("v",)).refusal


def test_capitals_of_common_table_expressions():
    (reason,) = query_text("with V as (select 7 as id) select id from v").refusals
    assert "capitals" in reason
    assert query_text("with v as (select 7 as id) select id from v").refusals == ()


def test_means_of_texts_that_are_no_numbers(spark, enabled, tmp_path, monkeypatch):
    """Sail may take them or not; if it does, those that are no numbers do not count."""
    monkeypatch.setattr(growing, "LEAST_PLANS", 0)
    days = ["1\nx\n", "3\ny\n", "5\n", "z\n"]
    for day, text in enumerate(days):
        (tmp_path / f"{day}.csv").write_text(text)
        under_nectar = mean_of(spark, tmp_path)
        nectar.disable()
        assert under_nectar == mean_of(spark, tmp_path)
        nectar.enable(home=tmp_path / "home", reserve=0)


def mean_of(spark, folder):
    try:
        return spark.read.csv(f"{folder}/*.csv").agg(F.avg("_c0").alias("a")).collect()[0].a
    except Exception as error:
        return type(error)


def test_answers_to_clients_that_cannot_ask_again_are_kept_too(spark, log, outcome, new_session):
    other = new_session()
    other.client.disable_reattachable_execute()
    asked = lambda: other.read.parquet(str(log)).groupBy("page").count().collect()
    assert outcome(asked)[1] == "computed"
    assert outcome(asked)[1] == "reused"


def test_functions_behind_names_are_on_record(spark, enabled, log):
    spark.udf.register("twice", lambda n: n * 2, "long")
    spark.read.parquet(str(log)).createOrReplaceTempView("log")
    spark.sql("select twice(seconds) as n from log").collect()
    enabled.settle()
    used = [name for name in enabled.catalog.index.trace_function("<lambda>", "downstream").results]
    assert used
