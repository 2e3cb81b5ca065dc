"""A server that is away for a moment: the client asks again, and what it gets is recorded as if nothing had been."""

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

import grpc
from pyspark.sql import functions as F
from tests.dialects.spark import engines

import nectar
from nectar.dialects.spark import looking, reusing, streams


class Away(grpc.RpcError):
    """What a client hears of a server that it cannot reach just now."""

    def code(self):
        return grpc.StatusCode.UNAVAILABLE

    def details(self):
        return "away for a moment"

    def trailing_metadata(self):
        return ()


@pytest.fixture
def away(monkeypatch):
    """The server is away once, when so many responses to a query have come."""

    def after(responses, what=streams.Recorded, name="_next"):
        seen, plain = [], getattr(what, name)

        def interrupted(self):
            seen.append(self)
            if len(seen) == responses + 1:
                raise Away
            return plain(self)

        monkeypatch.setattr(what, name, interrupted)

    return after


can_ask_again = engines.only_spark  # Sail does not know the rest of an answer


@can_ask_again
@pytest.mark.parametrize("responses", [0, 1])
def test_a_result_is_recorded_to_its_end(spark, log, outcome, away, responses):
    made = spark.read.parquet(str(log)).groupBy("page").agg(F.sum("seconds").alias("s")).orderBy("page")
    outcome(spark.range(2).collect)
    away(responses)
    first, what, why = outcome(made.collect)
    assert what == "computed", why
    assert len(first) == 3
    assert outcome(made.collect)[:2] == (first, "reused")


@can_ask_again
def test_what_a_plan_reads_stays_until_the_rest_has_come(spark, log, enabled, outcome, away, monkeypatch):
    monkeypatch.setattr(reusing, "LEAST_PLANS", 0)
    pages = spark.read.parquet(str(log)).groupBy("page").agg(F.sum("seconds").alias("s")).cache()
    outcome(pages.filter("s > 0").collect)
    leased, plain = [], looking.Looker.failed

    def noticing(self, *args, **more):
        plain(self, *args, **more)
        leased.append(len(enabled.catalog.index.leases()))

    monkeypatch.setattr(looking.Looker, "failed", noticing)
    away(1)
    rows, _, _ = outcome(pages.filter("s > 1").collect)
    assert len(rows) == 3
    assert len(nectar.last_run().reused) == 1
    assert leased == [1]
    assert enabled.catalog.index.leases() == []


@can_ask_again
def test_a_view_is_known_when_the_server_agrees_in_the_end(spark, outcome, away):
    outcome(spark.range(2).collect)
    away(0, streams.Attended, "__next__")
    spark.range(5).createOrReplaceTempView("five")
    for what in ("computed", "reused"):
        assert outcome(lambda: spark.sql("select sum(id) as n from five").collect()[0].n)[:2] == (10, what)


def test_a_part_that_could_not_be_written_just_then_is_tried_again(spark, log, enabled, outcome, monkeypatch):
    monkeypatch.setattr(reusing, "LEAST_PLANS", 0)
    reusing._cheap.clear()
    pages = spark.read.parquet(str(log)).groupBy("page").agg(F.sum("seconds").alias("s")).cache()
    tried, plain = [], reusing.write

    def write(*args):
        tried.append(args)
        if len(tried) == 1:
            raise Away
        return plain(*args)

    monkeypatch.setattr(reusing, "write", write)
    for number in range(3):
        assert len(outcome(pages.filter(F.col("s") > number).collect)[0]) == 3
    assert len(tried) == 2
    assert len(nectar.last_run().reused) == 1


def test_a_plan_over_parts_that_could_not_be_shown_just_then_is_tried_again(spark, log, enabled, outcome, monkeypatch):
    monkeypatch.setattr(reusing, "LEAST_PLANS", 0)
    pages = spark.read.parquet(str(log)).groupBy("page").agg(F.sum("seconds").alias("s")).cache()
    outcome(pages.filter("s > 0").collect)
    shown, plain = [], reusing.schema_by_engine

    def schema(*args):
        shown.append(args)
        if len(shown) == 1:
            raise Away
        return plain(*args)

    monkeypatch.setattr(reusing, "schema_by_engine", schema)
    query = pages.select(F.max("s").alias("s"))
    monkeypatch.setattr(
        enabled.keeper, "submit", lambda *_: None
    )  # the whole is not kept, so that it is asked for again
    reused = []
    for _ in range(2):
        query.collect()
        reused.append(len(nectar.last_run().reused))
    assert reused == [0, 1]
