"""Attempts to get the answer to another question: from what a server remembers, what names mean, what settings do."""

import datetime
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet
import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines
from tests.dialects.spark.conftest import write_day

import nectar
from nectar.dialects.spark import reusing


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Parts are kept however little they took."""
    monkeypatch.setattr(reusing, "LEAST_PLANS", 0)
    reusing._cheap.clear()
    reusing._failed.clear()


def plainly(home, action):
    nectar.disable()
    try:
        return action()
    finally:
        nectar.enable(home=home, reserve=0)


def always_right(outcome, home, action):
    """What an action gives, which is the same without Nectar; and what became of it."""
    given, what, _ = outcome(action)
    assert given == plainly(home, action)
    return given, what


# what servers remember


@engines.only_spark
@pytest.mark.parametrize("written_by", ["the session", "another session"])
def test_a_cached_frame_that_a_write_has_filled_anew(spark, log, outcome, new_session, written_by):
    """Spark fills cached frames of a folder again when it writes to it; then the folder is as it was before."""
    frame = spark.read.parquet(str(log)).cache()
    outcome(frame.filter("seconds > 0").count)
    before = set(log.iterdir())
    writer = spark if written_by == "the session" else new_session()
    writer.range(50).selectExpr("'a' as page", "id as seconds", "3L as day").write.mode("append").parquet(str(log))
    outcome(frame.count)
    for path in set(log.iterdir()) - before:
        path.unlink()
    outcome(frame.count)
    outcome(frame.filter("seconds > 1").count)
    other = new_session().read.parquet(str(log))
    assert outcome(other.count)[0] == 240
    assert outcome(other.filter("seconds > 1").count)[0] == 239


@engines.only_spark
def test_a_frame_that_is_cached_before_its_files_change_and_filled_after(spark, log, outcome, new_session):
    frame = spark.read.parquet(str(log)).cache()  # nothing is read yet
    write_day(log, 3)
    outcome(frame.count)
    (log / "day-3.parquet").unlink()
    outcome(frame.count)
    assert outcome(new_session().read.parquet(str(log)).count)[0] == 240


@engines.only_spark
def test_a_server_that_is_told_to_look_again(spark, log, outcome, new_session):
    frame = spark.read.parquet(str(log)).cache()
    outcome(frame.count)
    write_day(log, 3)
    new_session().catalog.refreshByPath(str(log))
    (log / "day-3.parquet").unlink()
    for action in (frame.count, frame.groupBy("day").count().collect):
        with suppress(Exception):  # it may miss the file that is gone
            outcome(action)
    assert outcome(new_session().read.parquet(str(log)).count)[0] == 240


def test_a_link_that_leads_elsewhere(spark, tmp_path, outcome):
    for day, name in ((1, "one"), (2, "two")):
        (tmp_path / name).mkdir()
        write_day(tmp_path / name, day)
    link = tmp_path / "link"
    frame = spark.read.parquet(str(link))
    for name, most in (("one", 120), ("two", 121), ("one", 120)):
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / name)
        assert outcome(lambda: frame.agg(F.max("seconds").alias("m")).collect()[0].m)[0] == most


def test_a_file_of_the_same_size_and_time(spark, tmp_path, outcome):
    import os

    path = tmp_path / "rows.csv"
    frame = spark.read.schema("n int").csv(str(path))
    for text in ("1\n2\n", "3\n4\n"):
        path.write_text(text)
        os.utime(path, (1_700_000_000,) * 2)
        assert outcome(lambda: [row.n for row in frame.orderBy("n").collect()])[0] == [int(n) for n in text.split()]


# names


@engines.only_spark
def test_a_view_that_a_clone_makes_anew(spark, outcome):
    spark.range(3).createOrReplaceTempView("v")
    count = lambda session: session.sql("select count(*) as n from v").collect()[0].n
    assert outcome(lambda: count(spark))[:2] == (3, "computed")
    clone = spark.cloneSession()
    try:
        assert outcome(lambda: count(clone))[:2] == (3, "reused")
        clone.range(5).createOrReplaceTempView("v")
        assert outcome(lambda: count(clone))[:2] == (5, "computed")
        assert outcome(lambda: count(spark))[:2] == (3, "reused")
    finally:
        clone.client.close()


@engines.only_spark
def test_two_sessions_with_two_databases(spark, new_session, outcome, tmp_path):
    sessions = {"one": spark, "two": new_session()}
    try:
        for number, (name, session) in enumerate(sessions.items(), 1):
            session.sql(f"create database {name}_of_two")
            session.sql(f"use {name}_of_two")
            session.range(number).write.option("path", str(tmp_path / name)).saveAsTable("t")
        for _ in range(2):
            assert outcome(lambda: sessions["one"].table("t").count())[:2] == (1, "uncacheable")
            assert outcome(lambda: sessions["two"].sql("select * from t").count())[:2] == (2, "uncacheable")
    finally:
        for name in sessions:
            spark.sql(f"drop database {name}_of_two cascade")


def test_a_view_over_a_view_that_is_made_anew(spark, outcome, home):
    spark.range(3).createOrReplaceTempView("v")
    spark.table("v").createOrReplaceTempView("by_frame")
    spark.sql("create or replace temp view by_text as select * from v")
    spark.table("by_text").createOrReplaceTempView("over_text")
    spark.sql("create or replace temp view text_over_frame as select * from by_frame")
    names = ("by_frame", "by_text", "over_text", "text_over_frame")
    counts = lambda: [spark.table(name).count() for name in names]
    assert always_right(outcome, home, counts)[0] == [3] * 4
    spark.range(7).createOrReplaceTempView("v")
    always_right(outcome, home, counts)
    spark.range(3).createOrReplaceTempView("v")
    assert always_right(outcome, home, counts)[0] == [3] * 4


def test_a_function_that_is_registered_anew_below_a_view(spark, outcome, home):
    frame = spark.createDataFrame([(1,), (2,)], ["n"])
    frame.createOrReplaceTempView("numbers")
    total = lambda: [spark.sql(f"select sum(m) as s from {name}").collect()[0].s for name in ("by_frame", "by_text")]
    for more in (1, 10, 1):
        spark.udf.register("more", lambda n, more=more: n + more, "long")
        if more == 1:
            frame.selectExpr("more(n) as m").createOrReplaceTempView("by_frame")
            spark.sql("create or replace temp view by_text as select more(n) as m from numbers")
        always_right(outcome, home, total)


# settings


def test_the_zone_of_the_session(spark, tmp_path, outcome, home):
    noon = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
    pa.parquet.write_table(pa.table({"t": pa.array([noon], pa.timestamp("us", tz="UTC"))}), tmp_path / "t.parquet")
    spark.read.parquet(str(tmp_path / "t.parquet")).distinct().createOrReplaceTempView("times")
    shown = lambda: [
        spark.sql("select hour(t) as h, cast(t as string) as t from times").collect(),
        spark.table("times").select(F.hour("t"), F.date_format("t", "HH")).collect(),
    ]
    for zone in ("UTC", "Asia/Tokyo", "UTC", "America/New_York"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        always_right(outcome, home, shown)


@engines.only_spark
def test_whether_errors_are_nulls(spark, outcome, home):
    spark.createDataFrame([("x",)], ["t"]).createOrReplaceTempView("texts")
    asked = lambda: spark.sql("select cast(t as int) as n from texts").collect()
    spark.conf.set("spark.sql.ansi.enabled", "false")
    assert outcome(asked)[:2] == ([(None,)], "computed")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        asked()


@engines.only_spark
def test_whether_capitals_count(spark, tmp_path, outcome, home):
    pa.parquet.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "t.parquet")
    asked = lambda: sorted(spark.read.parquet(str(tmp_path / "t.parquet")).select("A").collect())
    assert outcome(asked)[0] == [(1,)]
    spark.conf.set("spark.sql.caseSensitive", "true")
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        asked()
    made = spark.range(1).select(F.lit(1).alias("x"), F.lit(2).alias("X")).distinct().cache()
    outcome(made.filter("x > 0").collect)
    assert always_right(outcome, home, lambda: made.select("X", "x").collect())[0] == [(2, 1)]


@engines.only_spark
def test_words_that_are_filled_with_spaces(spark, log, outcome, home):
    spark.read.parquet(str(log)).createOrReplaceTempView("clicks")
    padded = spark.sql("select cast(page as char(5)) as c, count(*) as n from clicks group by 1").cache()
    outcome(padded.filter("n > 0").collect)
    lengths = lambda: sorted(padded.select(F.length("c"), F.concat("c", F.lit("|"))).collect())
    always_right(outcome, home, lengths)
    spark.conf.set("spark.sql.legacy.charVarcharAsString", "true")
    always_right(outcome, home, lengths)


@engines.only_spark
@pytest.mark.parametrize(
    ("name", "value"),
    [("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MILLIS"), ("spark.sql.files.ignoreCorruptFiles", "true")],
)
def test_settings_by_which_files_lose_something(spark, enabled, outcome, home, name, value):
    spark.conf.set(name, value)
    moment = datetime.datetime(2024, 1, 1, 12, 30, 15, 123456)
    times = spark.createDataFrame([(moment,), (moment,)], "t timestamp").distinct().cache()
    for text in ("t > '2000-01-01'", "t > '2001-01-01'"):
        rows, _, _ = outcome(times.filter(text).collect)
        assert [row.t.microsecond for row in rows] == [123456]
        assert nectar.last_run().reused == []
    assert all(entry.kind != "parquet" for entry in enabled.catalog.index.entries())


@engines.only_spark
def test_strings_with_an_order_of_their_own(spark, outcome, home):
    """A copy of them that has lost it would tell them apart by capitals."""
    frame = spark.createDataFrame([("a", 1), ("A", 2), ("b", 3)], ["k", "n"])
    made = frame.select(F.collate("k", "UTF8_LCASE").alias("k"), "n").distinct()
    outcome(made.collect)
    made.cache()
    outcome(made.filter("n > 0").collect)
    counts = lambda: sorted(row["count"] for row in made.groupBy("k").count().collect())
    assert always_right(outcome, home, counts)[0] == [1, 2]


# names of columns


HIDDEN = {
    "by the name of its relation": lambda frame: frame.alias("c").select("c._metadata.file_modification_time"),
    "with a star": lambda frame: frame.select("_metadata.*"),
    "in capitals": lambda frame: frame.select(frame["_METADATA.file_modification_time"]),
    "in a structure": lambda frame: frame.alias("c").select(F.struct("c._metadata")),
    "as a table of pairs": lambda frame: frame.crosstab("_metadata.file_modification_time", "page"),
    "among frequent items": lambda frame: frame.freqItems(["_metadata.file_modification_time"]),
    "the clock as a table of pairs": lambda frame: frame.crosstab("current_timestamp", "page"),
    "the clock among frequent items": lambda frame: frame.freqItems(["current_timestamp"]),
    "a variable in an expression": lambda frame: frame.select(F.expr("'${spark.app.name}'").alias("n")),
    "a variable in a condition": lambda frame: frame.filter("page = '${spark.app.name}'"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_is_no_column_is_refused_by_every_name(spark, log, enabled, name):
    for _ in range(2):
        with suppress(Exception):  # not every engine has it
            HIDDEN[name](spark.read.parquet(str(log))).collect()
        assert nectar.last_run().parts[-1].outcome == "uncacheable"


def test_a_view_that_a_text_hides(spark, outcome, home):
    for count in (1, 2):
        spark.range(count).createOrReplaceTempView("hidden")
        text = "with x as (table hidden) select count(*) as n from x"
        assert outcome(lambda: spark.sql(text).collect()[0].n)[0] == count


# parts


@engines.only_spark
def test_values_at_the_edges_come_back(spark, outcome, home):
    frame = spark.createDataFrame(
        [(datetime.date(1, 1, 1), datetime.datetime(1582, 10, 4, 1), 0.0), (datetime.date(9999, 12, 31), None, -0.0),
         (None, datetime.datetime(1900, 1, 1, 0, 0, 0, 1), float("nan"))], "d date, t timestamp, x double",
    ).distinct().cache()  # fmt: skip
    outcome(frame.filter("x >= 0").collect)
    shown = lambda: sorted(
        map(
            repr,
            frame.select(
                F.col("d").cast("string"), F.col("t").cast("string"), F.hex(F.col("x").cast("string"))
            ).collect(),
        )
    )
    always_right(outcome, home, shown)
    assert nectar.last_run() is not None


@engines.only_spark
def test_columns_that_are_never_null_stay_so(spark, log, enabled, outcome, home):
    frame = spark.read.parquet(str(log)).groupBy("page").agg(F.count("*").alias("n"), F.collect_list("day").alias("l"))
    flat = frame.select("page", "n").cache()
    outcome(flat.filter("n > 0").collect)
    above = flat.withColumn("twice", F.col("n") * 2)
    rows, _, _ = outcome(lambda: sorted(above.collect()))
    assert len(nectar.last_run().reused) == 1
    assert above.toArrow().schema == plainly(home, lambda: above.toArrow().schema)
    assert rows == plainly(home, lambda: sorted(above.collect()))
    nested = frame.cache()
    outcome(nested.filter("n > 0").collect)
    schema = lambda: nested.filter("n > 1").toArrow().schema
    assert outcome(schema)[0] == plainly(home, schema)
