"""Sessions without Spark Connect: nothing of them is reused, and the program is told how it could be."""

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql.session import SparkSession

import nectar
from nectar.dialects.spark import default
from nectar.report.totals import RunTotals

pytestmark = pytest.mark.small


@pytest.fixture
def totals(enabled, monkeypatch):
    """What this process came to; classic sessions are made without a Java machine."""
    made = RunTotals()
    monkeypatch.setattr(default, "process_totals", made)
    monkeypatch.setattr(default, "_plain_init", lambda self, *args, **kwargs: None)
    return made


def test_a_classic_session_says_how_its_queries_would_be_reused(totals, caplog):
    for _ in range(2):
        SparkSession("a context")
    assert "SPARK_CONNECT_MODE=1" in str(totals)
    assert "spark.api.mode" in str(totals)
    assert "no query" not in str(totals)
    assert len([each for each in caplog.records if "classic PySpark" in each.message]) == 1


def test_a_session_of_spark_connect_says_nothing_of_it(totals, spark):
    assert spark.range(3).count() == 3
    assert not totals.unseen


def test_what_was_reused_is_told_all_the_same(totals, spark):
    SparkSession("a context")
    spark.range(3).count()
    totals.count(nectar.last_run().parts[-1])
    assert str(totals).startswith("nectar: 0 of 1 query")


def test_without_nectar_nothing_is_said(totals):
    nectar.disable()
    SparkSession.__init__ = default._init  # as a session in another thread may still have it
    try:
        SparkSession("a context")
    finally:
        default.uninstall()
    assert not totals.unseen
