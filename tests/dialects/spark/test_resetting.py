"""Settings are asked for once, and again whenever the program may have changed them."""

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from pyspark.sql.connect.proto import base_pb2, commands_pb2
from pyspark.sql.connect.session import SparkSession
from tests.dialects.spark import engines

import nectar
from nectar.dialects.spark.connections import Connection
from nectar.dialects.spark.resetting import _LEAVING_COMMANDS, plan_may_reset

ZONE = "spark.sql.session.timeZone"
SET = "SET TIME ZONE 'Asia/Tokyo'"


@pytest.fixture
def asked(monkeypatch):
    """How often servers were asked for settings."""
    found = []

    def configured(self, operation):
        found.append(operation)
        return before(self, operation)

    before = Connection._configured
    monkeypatch.setattr(Connection, "_configured", configured)
    return found


def _seconds(spark):
    times = spark.createDataFrame([("2020-01-01 00:00:00",)], ["t"])
    return times.select(F.to_timestamp("t").cast("long").alias("seconds"))


@engines.only_sail
def test_a_hit_asks_the_server_nothing(spark, outcome, asked):
    outcome(_seconds(spark).collect)
    del asked[:]
    assert outcome(_seconds(spark).collect)[1] == "reused"
    assert asked == []


CHANGES = {
    "conf.set": lambda spark: spark.conf.set(ZONE, "Asia/Tokyo"),
    "SET": lambda spark: spark.sql(SET).collect(),
    "SET after a comment": lambda spark: spark.sql(f"/* select */ {SET}").collect(),
    "SET without anybody looking": lambda spark: spark.sql(f"  {SET}"),
    "builder": lambda spark: SparkSession.Builder().config(ZONE, "Asia/Tokyo")._apply_options(spark),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_way_to_change_them_is_noticed(spark, outcome, change):
    if "SET" in change and engines.ENGINE != "spark":
        pytest.skip("Sail does not change settings of Spark by texts: make test-spark")
    first = outcome(_seconds(spark).collect)
    assert outcome(_seconds(spark).collect)[1] == "reused"
    CHANGES[change](spark)
    second = outcome(_seconds(spark).collect)
    assert spark.conf.get(ZONE) == "Asia/Tokyo"
    assert second[1] != "reused"
    assert first[0] != second[0]
    spark.conf.unset(ZONE)
    third = outcome(_seconds(spark).collect)
    assert (third[0] == first[0]) == (spark.conf.get(ZONE) != "Asia/Tokyo")


def test_also_while_nectar_is_off(spark, outcome, home):
    outcome(_seconds(spark).collect)
    assert outcome(_seconds(spark).collect)[1] == "reused"
    nectar.disable()
    spark.conf.set(ZONE, "Asia/Tokyo")
    nectar.enable(home=home, reserve=0)
    assert outcome(_seconds(spark).collect)[1] == "computed"


TEXTS = {
    "SELECT 1": False, "  (select 1) union select 2": False, "with a as (select 1) select * from a": False,
    "CREATE TEMP VIEW a AS SELECT 1": False, "SET a=b": True, "reset": True, "BEGIN SET a=b; END": True,
    "-- select\nSET a=b": True, "EXECUTE IMMEDIATE 'SET a=b'": True, "": True, "USE other": True, "selection": True,
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_texts_that_may_change_them(text):
    plans = [base_pb2.Plan(), base_pb2.Plan(), base_pb2.Plan(), base_pb2.Plan()]
    plans[0].root.sql.query = text
    plans[1].command.sql_command.sql = text
    plans[2].command.sql_command.input.sql.query = text
    plans[3].root.with_relations.root.sql.query = text
    assert [plan_may_reset(plan) for plan in plans] == [TEXTS[text]] * 4


def test_commands_that_are_not_known_may_change_them():
    plan = base_pb2.Plan()
    plan.command.extension.SetInParent()
    assert plan_may_reset(plan)
    kinds = {field.name for field in commands_pb2.Command.DESCRIPTOR.oneofs_by_name["command_type"].fields}
    assert kinds >= _LEAVING_COMMANDS
