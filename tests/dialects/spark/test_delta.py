"""Delta tables on Sail: what is computed from a version of one is reused while it is the version that is read."""

import shutil

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines

pytestmark = engines.only_sail


@pytest.fixture
def table(new_session, tmp_path):
    """A table of two versions."""
    folder = str(tmp_path / "clicks")
    append(new_session(), folder, 0, 10)
    append(new_session(), folder, 10, 30)
    return folder


def append(spark, folder, start, end):
    rows = spark.range(start, end).withColumn("page", F.col("id") % 3)
    rows.write.format("delta").mode("append").save(folder)


def pages(spark, folder, **options):
    return spark.read.format("delta").options(**options).load(folder).groupBy("page").count().orderBy("page")


def counts(frame):
    return [row["count"] for row in frame.collect()]


def test_a_version_is_known_until_there_is_another(spark, new_session, table, outcome):
    made = pages(spark, table)
    assert outcome(lambda: counts(made))[:2] == ([10, 10, 10], "computed")
    assert outcome(lambda: counts(pages(new_session(), table)))[:2] == ([10, 10, 10], "reused")
    append(spark, table, 30, 33)
    assert outcome(lambda: counts(made))[:2] == ([11, 11, 11], "computed")
    assert outcome(lambda: counts(made))[:2] == ([11, 11, 11], "reused")


def test_rows_that_are_deleted_are_gone(spark, table, outcome):
    spark.sql(f"create table clicks using delta location '{table}'")
    asked = lambda: outcome(lambda: [tuple(row) for row in spark.sql("select count(*) from clicks").collect()])[:2]
    assert asked() == ([(30,)], "computed")
    assert asked() == ([(30,)], "reused")
    spark.sql("delete from clicks where id >= 20").collect()
    rows, _ = asked()
    assert rows == [(20,)]
    assert outcome(lambda: sum(counts(pages(spark, table))))[:2] == (20, "computed")


def test_an_older_version_is_another_one(spark, table, outcome):
    assert outcome(lambda: sum(counts(pages(spark, table))))[:2] == (30, "computed")
    assert outcome(lambda: sum(counts(pages(spark, table, versionAsOf=0))))[:2] == (10, "computed")
    assert outcome(lambda: sum(counts(pages(spark, table, versionAsOf=1))))[:2] == (30, "computed")
    assert outcome(lambda: sum(counts(pages(spark, table, versionAsOf=0))))[:2] == (10, "reused")


def test_versions_by_their_time_are_not_told_by_what_is_in_files(spark, table, outcome):
    later = pages(spark, table, timestampAsOf="2100-01-01 00:00:00")
    total, what, why = outcome(lambda: sum(counts(later)))
    assert (total, what) == (30, "uncacheable")
    assert "timestampasof" in why


def test_by_its_path_in_a_text(spark, table, outcome):
    asked = lambda: outcome(lambda: spark.sql(f"select count(*) as n from delta.`{table}`").collect()[0].n)[:2]
    assert asked() == (30, "computed")
    assert asked() == (30, "reused")
    append(spark, table, 30, 40)
    assert asked() == (40, "computed")


def test_an_old_version_comes_back_as_it_was(spark, table, outcome, tmp_path):
    made = pages(spark, table)
    outcome(made.collect)
    kept = tmp_path / "kept"
    shutil.copytree(table, kept)
    append(spark, table, 30, 90)
    assert outcome(lambda: sum(counts(made)))[:2] == (90, "computed")
    shutil.rmtree(table)
    kept.rename(table)
    assert outcome(lambda: sum(counts(made)))[0] == 30


def test_without_a_log_it_is_no_table(spark, tmp_path, outcome):
    (tmp_path / "none").mkdir()
    with pytest.raises(Exception):
        outcome(spark.read.format("delta").load(str(tmp_path / "none")).collect)
