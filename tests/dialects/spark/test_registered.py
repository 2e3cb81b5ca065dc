"""Functions that are registered count by what they compute, under whatever name."""

import os
import sys
import time

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines

import nectar

pytestmark = pytest.mark.small
FACTOR = 2


def letters(spark):
    return spark.createDataFrame([("a",)], ["t"])


CALLS = {
    "call_function": lambda spark: letters(spark).select(F.call_function("mine", "t").alias("u")),
    "call_udf": lambda spark: letters(spark).select(F.call_udf("MINE", "t").alias("u")),
    "expression": lambda spark: letters(spark).selectExpr("mine(t) as u"),
    "sql": lambda spark: spark.sql("select `Mine`(t) as u from values ('a') as letters(t)"),
}


def computed(outcome, spark, call):
    return outcome(lambda: CALLS[call](spark).collect()[0].u)


@pytest.mark.parametrize("call", CALLS)
def test_a_registered_function_counts_by_what_it_computes(spark, outcome, new_session, call):
    spark.udf.register("mine", lambda text: text + "1")
    assert computed(outcome, spark, call)[:2] == ("a1", "computed")
    assert computed(outcome, spark, call)[:2] == ("a1", "reused")
    spark.udf.register("mine", lambda text: text + "2")
    assert computed(outcome, spark, call)[:2] == ("a2", "computed")
    other = new_session()
    other.udf.register("mine", lambda text: text + "1")
    assert computed(outcome, other, call)[:2] == ("a1", "reused")
    assert computed(outcome, spark, call)[:2] == ("a2", "reused")


def test_the_type_of_its_result_counts(spark, outcome):
    spark.udf.register("mine", lambda text: 1, "long")
    assert computed(outcome, spark, "sql")[0] == 1
    spark.udf.register("mine", lambda text: 1, "string")
    found = computed(outcome, spark, "sql")
    assert found[1] == "computed"
    assert found[0] == "1"


@engines.only_sail  # Spark's own come first
def test_a_function_in_place_of_one_of_the_engine(spark, outcome):
    made = letters(spark).select(F.upper("t").alias("u"))
    assert outcome(lambda: made.collect()[0].u)[:2] == ("A", "computed")
    spark.udf.register("upper", lambda text: "mine")
    assert outcome(lambda: made.collect()[0].u)[:2] == ("mine", "computed")
    assert outcome(lambda: made.collect()[0].u)[:2] == ("mine", "reused")
    assert outcome(lambda: letters(spark).filter("upper(t) = 'mine'").count())[:2] == (1, "computed")
    assert outcome(lambda: spark.sql("select upper('a') as u").collect()[0].u)[:2] == ("mine", "computed")


@engines.only_sail
def test_a_function_in_place_of_one_that_the_engine_uses_unasked(spark, outcome, home):
    action = lambda: spark.sql("select 'a' || 'b' as u").collect()[0].u
    assert outcome(action)[:2] == ("ab", "computed")
    spark.udf.register("concat", lambda *parts: "mine")
    under, what, _ = outcome(action)
    assert what == "computed"
    nectar.disable()
    assert action() == under


def test_functions_that_are_not_their_arguments_are_refused(spark, outcome):
    spark.udf.register("mine", lambda text: str(time.time()))
    _, what, why = computed(outcome, spark, "sql")
    assert what == "uncacheable"
    assert "clock" in why


def test_a_nondeterministic_function_is_refused(spark, outcome):
    spark.udf.register("mine", F.udf(lambda text: text).asNondeterministic())
    _, what, why = computed(outcome, spark, "sql")
    assert what == "uncacheable"
    assert "nondeterministic" in why


def test_a_function_that_changed_since_is_refused(spark, outcome, monkeypatch):
    spark.udf.register("mine", lambda text: text * FACTOR)
    assert computed(outcome, spark, "sql")[:2] == ("aa", "computed")
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3)
    _, what, why = computed(outcome, spark, "sql")
    assert what == "uncacheable"
    assert "changed" in why


def test_what_a_function_finds_in_the_environment_counts_when_it_is_called(spark, outcome, monkeypatch):
    monkeypatch.setenv("TIMES", "2")
    spark.udf.register("mine", lambda text: text * int(os.environ["TIMES"]))
    if engines.ENGINE == "sail":
        assert computed(outcome, spark, "sql")[:2] == ("aa", "computed")
        monkeypatch.setenv("TIMES", "3")
        assert computed(outcome, spark, "sql")[:2] == ("aaa", "uncacheable")


def test_a_function_is_known_only_after_the_server_has_taken_it(spark, outcome):
    from nectar.dialects.spark.taught import Taught

    taught = Taught(shared=False)
    from pyspark.sql.connect.proto import base_pb2

    plan = base_pb2.Plan()
    plan.command.register_function.function_name = "mine"
    lesson = taught.notice(plan, None)
    assert taught.scope.functions["mine"].refusal
    taught.rejected(lesson)
    assert "mine" not in taught.scope.functions


def test_the_order_of_names_and_views(spark, outcome):
    """A view that calls a function means the function of then."""
    spark.udf.register("mine", lambda text: text + "1")
    spark.sql("create or replace temp view v as select mine(t) as u from values ('a') as letters(t)")
    action = lambda: spark.table("v").collect()[0].u
    assert outcome(action)[:2] == ("a1", "computed")
    assert outcome(action)[:2] == ("a1", "reused")
    spark.udf.register("mine", lambda text: text + "2")
    under = outcome(action)[0]
    nectar.disable()
    assert action() == under
