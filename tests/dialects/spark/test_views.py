"""Views and tables are followed to their definitions and files, for each session."""

from contextlib import suppress

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines
from tests.dialects.spark.conftest import write_day

import nectar

FACTOR = 2


def rows(spark, *numbers):
    return spark.createDataFrame([(number,) for number in numbers], ["n"])


def total(spark, name="v"):
    return spark.sql(f"select sum(n) as n from {name}").collect()[0].n


def twice(outcome, action):
    first, what, why = outcome(action)
    assert what == "computed", why
    again, what, why = outcome(action)
    assert what == "reused", why
    assert again == first
    return first


def refused(outcome, action):
    _, what, why = outcome(action)
    assert what == "uncacheable"
    return why


def define(spark, name="v", *numbers):
    rows(spark, *numbers).createOrReplaceTempView(name)


def define_by_sql(spark, name="v", *numbers):
    values = ", ".join(f"({number})" for number in numbers)
    spark.sql(f"create or replace temp view {name} as select * from values {values} as t(n)")


MAKERS = {"frame": define, "sql": define_by_sql}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_view_stands_for_its_definition(spark, outcome, new_session, make):
    make(spark, "v", 1, 2)
    assert twice(outcome, lambda: total(spark)) == 3
    make(spark, "v", 1, 2, 3)
    assert twice(outcome, lambda: total(spark)) == 6
    make(spark, "v", 1, 2)
    assert outcome(lambda: total(spark))[:2] == (3, "reused")
    other = new_session()
    make(other, "v", 1, 2)
    assert outcome(lambda: total(other))[:2] == (3, "reused")
    make(other, "v", 7)
    assert outcome(lambda: total(other))[:2] == (7, "computed")
    assert outcome(lambda: total(spark))[:2] == (3, "reused")


READS = {
    "table": lambda spark: spark.table("v"),
    "read.table": lambda spark: spark.read.table("v"),
    "backticks": lambda spark: spark.table("`v`"),
    "sql": lambda spark: spark.sql("select * from v"),
    "sql with backticks": lambda spark: spark.sql("select * from `v`"),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_every_way_to_read_a_view(spark, outcome, read):
    define(spark, "v", 1, 2)
    assert twice(outcome, lambda: sorted(read(spark).collect())) == [(1,), (2,)]
    define(spark, "v", 3)
    assert twice(outcome, lambda: sorted(read(spark).collect())) == [(3,)]


def test_capitals_are_not_guessed_about(spark, outcome, home):
    """Whether they count is for the engine to say: a name in two spellings is refused."""
    define(spark, "v", 1)
    twice(outcome, lambda: total(spark))
    define(spark, "V", 2)
    under = [outcome(lambda: total(spark, name)) for name in ("v", "V")]
    assert [what for _, what, _ in under] == ["uncacheable"] * 2
    nectar.disable()
    assert [total(spark, name) for name in ("v", "V")] == [found for found, _, _ in under]


def test_odd_names(spark, outcome):
    spark.sql("create temp view `odd.name` as select 1 as n")
    assert twice(outcome, lambda: total(spark, "`odd.name`")) == 1


def test_a_view_over_a_view(spark, outcome):
    define(spark, "v", 1, 2)
    spark.table("v").filter("n > 1").createOrReplaceTempView("w")
    spark.sql("create or replace temp view x as select n + 1 as n from w")
    assert twice(outcome, lambda: total(spark, "x")) == 3
    define(spark, "v", 5, 6)
    now = outcome(lambda: total(spark, "x"))
    nectar.disable()
    assert total(spark, "x") == now[0]


@pytest.mark.parametrize("make", ["frame", "sql"])
def test_a_view_means_what_it_meant_when_it_was_made(spark, outcome, home, make):
    define(spark, "v", 1, 2)
    if make == "frame":
        spark.table("v").createOrReplaceTempView("w")
    else:
        spark.sql("create temp view w as select * from v")
    twice(outcome, lambda: total(spark, "w"))
    define(spark, "v", 10)
    under = outcome(lambda: total(spark, "w"))[0]
    nectar.disable()
    plain = total(spark, "w")
    nectar.enable(home=home, reserve=0)
    assert under == plain
    assert outcome(lambda: total(spark, "w"))[0] == plain
    if make == "frame" or engines.ENGINE == "sail":  # Spark reads a text anew
        spark.catalog.dropTempView("v")
        assert outcome(lambda: total(spark, "w"))[0] == plain


@engines.only_sail
def test_a_view_over_files_sees_them_as_they_are(spark, outcome, log):
    spark.read.parquet(str(log)).createOrReplaceTempView("v")
    first = twice(outcome, lambda: spark.table("v").count())
    write_day(log, 3)
    assert outcome(lambda: spark.table("v").count())[:2] == (first + 120, "computed")
    spark.read.parquet(str(log)).createOrReplaceTempView("v")
    assert outcome(lambda: spark.table("v").count())[0] == first + 120


@engines.only_spark
def test_a_view_over_files_has_those_it_was_made_with(spark, outcome, log, home):
    """If they change, nobody knows what Spark will show: it is neither reused nor kept until the view is made again."""
    spark.read.parquet(str(log)).createOrReplaceTempView("v")
    first = twice(outcome, lambda: spark.table("v").count())
    write_day(log, 3)
    now, what, why = outcome(lambda: spark.table("v").count())
    assert (now, what) == (first, "uncacheable")
    assert "files have changed" in why
    nectar.disable()
    assert spark.table("v").count() == now
    nectar.enable(home=home, reserve=0)
    spark.read.parquet(str(log)).createOrReplaceTempView("v")
    assert twice(outcome, lambda: spark.table("v").count()) == first + 120
    (log / "day-3.parquet").unlink()
    spark.read.parquet(str(log)).createOrReplaceTempView("v")
    assert outcome(lambda: spark.table("v").count())[:2] == (first, "reused")


@engines.only_spark
def test_a_view_of_a_frame_that_the_server_has_seen_before(spark, outcome, log):
    """Spark remembers the files of a frame that it was asked about, and would make the view of them."""
    frame = spark.read.parquet(str(log))
    assert frame.columns == ["page", "seconds", "day"]
    nectar.disable()
    assert frame.count() == 240
    nectar.enable(home=log.parent / "home", reserve=0)
    write_day(log, 3)
    frame.createOrReplaceTempView("v")
    assert twice(outcome, lambda: spark.table("v").count()) == 360


@engines.only_spark
def test_files_that_are_put_back_are_not_those_of_the_view(spark, outcome, log, tmp_path):
    """A server that was told to look again meanwhile has seen others."""
    spark.read.parquet(str(log)).createOrReplaceTempView("v")
    (log / "day-2.parquet").rename(tmp_path / "day-2.parquet")
    spark.catalog.refreshTable("v")
    (tmp_path / "day-2.parquet").rename(log / "day-2.parquet")
    outcome(lambda: spark.table("v").count())
    other = spark.newSession() if hasattr(spark, "newSession") else spark
    other.read.parquet(str(log)).createOrReplaceTempView("v")
    assert outcome(lambda: other.table("v").count())[0] == 240


@engines.only_spark
def test_a_text_is_read_anew_with_what_names_mean_then(spark, outcome, home):
    define(spark, "v", 1, 2)
    spark.udf.register("more", lambda n: n + 1, "long")
    spark.sql("create or replace temp view w as select more(n) as n from v")
    assert twice(outcome, lambda: total(spark, "w")) == 5
    spark.udf.register("more", lambda n: n + 10, "long")
    now = outcome(lambda: total(spark, "w"))
    assert now[:2] == (23, "uncacheable")
    assert "something else" in now[2]
    spark.udf.register("more", lambda n: n + 1, "long")
    assert outcome(lambda: total(spark, "w"))[:2] == (5, "reused")
    define(spark, "v", 7)
    assert outcome(lambda: total(spark, "w"))[:2] == (8, "uncacheable")


@engines.only_spark
def test_a_view_that_sql_makes_of_files_is_refused(spark, outcome, log):
    """The statement cannot say what its files hold."""
    spark.sql(f"create or replace temp view v using parquet options (path '{log}')")
    assert "cannot tell the server" in refused(outcome, lambda: spark.table("v").count())
    spark.sql(f"create or replace temp view v as select * from parquet.`{log}`")
    assert "since the session began" in refused(outcome, lambda: spark.table("v").count())


@engines.only_spark
def test_words_that_a_view_puts_together(spark, outcome):
    """Spark computes constants first, also those of a view."""
    spark.sql("create or replace temp view v as select concat('no', 'w') as w")
    assert "constants" in refused(outcome, lambda: spark.sql("select cast(w as string) as t from v").collect())
    spark.range(1).select(F.lit("no").alias("w")).createOrReplaceTempView("v")
    text = "select cast(concat(w, 'w') as timestamp) as t from v"
    with suppress(Exception):  # here it is no moment after all
        spark.sql(text).collect()
    assert "constants" in nectar.last_run().parts[-1].reason
    twice(outcome, lambda: spark.sql("select w from v").collect())
    spark.table("v").createOrReplaceTempView("u")
    assert "constants" in refused(outcome, lambda: spark.table("u").select(F.upper("w")).collect())


@engines.only_spark
def test_tables_that_a_session_has_made_are_refused_in_it(spark, outcome, log, tmp_path):
    spark.sql(f"create table t_of_all using parquet location '{log}'")
    try:
        assert "after the session began" in refused(outcome, lambda: spark.table("t_of_all").count())
        rows(spark, 7).createOrReplaceTempView("t_of_all")
        assert twice(outcome, lambda: spark.table("t_of_all").count()) == 1
        spark.catalog.dropTempView("t_of_all")
        assert "after the session began" in refused(outcome, lambda: spark.table("t_of_all").count())
    finally:
        spark.sql("drop table t_of_all")


@engines.only_sail
def test_a_view_keeps_the_schema_of_its_files(spark, outcome, log, home):
    """Files of another schema give something else through a view that is older than they are."""
    import pyarrow as pa
    import pyarrow.parquet

    spark.read.parquet(str(log)).createOrReplaceTempView("old")
    for each in log.iterdir():
        each.unlink()
    pa.parquet.write_table(pa.table({"page": ["a"], "seconds": [1], "more": [2]}), log / "day-1.parquet")
    spark.read.parquet(str(log)).createOrReplaceTempView("v")
    new = outcome(lambda: spark.sql("select * from v").toArrow().schema.names)
    spark.sql("select 1 as a").createOrReplaceTempView("v")
    through_old, what, _ = outcome(lambda: spark.sql("select * from old").toArrow().schema.names)
    nectar.disable()
    assert spark.sql("select * from old").toArrow().schema.names == through_old
    assert new[0] == ["page", "seconds", "more"]


def test_a_view_that_is_refused_refuses_its_readers(spark, outcome):
    rows(spark, 1).withColumn("n", F.rand()).createOrReplaceTempView("v")
    assert "each time" in refused(outcome, lambda: total(spark))
    spark.table("v").createOrReplaceTempView("w")
    assert "each time" in refused(outcome, lambda: total(spark, "w"))
    define(spark, "v", 1)
    twice(outcome, lambda: total(spark))


def test_a_view_of_a_function(spark, outcome, monkeypatch):
    import sys

    rows(spark, 1).select(F.udf(lambda n: n * FACTOR, "long")("n").alias("n")).createOrReplaceTempView("v")
    twice(outcome, lambda: total(spark))
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 5)
    assert "changed" in refused(outcome, lambda: total(spark))


DROPS = {
    "catalog": lambda spark: spark.catalog.dropTempView("v"),
    "sql": lambda spark: spark.sql("drop view v"),
    "sql, if it is there": lambda spark: spark.sql("DROP VIEW IF EXISTS v"),
}


@pytest.mark.parametrize("drop", DROPS.values(), ids=DROPS)
def test_a_dropped_view_is_gone(spark, outcome, drop):
    define(spark, "v", 1)
    twice(outcome, lambda: total(spark))
    drop(spark)
    with pytest.raises(Exception):
        total(spark)


def test_making_a_view_twice_fails_and_changes_nothing(spark, outcome):
    rows(spark, 1).createTempView("v")
    twice(outcome, lambda: total(spark))
    with pytest.raises(Exception):
        rows(spark, 2).createTempView("v")
    assert outcome(lambda: total(spark))[:2] == (1, "reused")


def test_a_view_made_while_nectar_is_off_is_refused(spark, outcome, home):
    define(spark, "v", 1)
    twice(outcome, lambda: total(spark))
    nectar.disable()
    define(spark, "v", 2)
    nectar.enable(home=home, reserve=0)
    assert "off" in refused(outcome, lambda: total(spark))
    define(spark, "v", 1)
    assert outcome(lambda: total(spark))[:2] == (1, "reused")


@engines.only_sail
def test_a_view_of_a_relative_path_means_the_folder_of_then(spark, outcome, log, monkeypatch, tmp_path):
    monkeypatch.chdir(log.parent)
    spark.read.parquet("clicks").createOrReplaceTempView("v")
    assert twice(outcome, lambda: spark.table("v").count()) == 240
    (tmp_path / "elsewhere" / "clicks").mkdir(parents=True)
    write_day(tmp_path / "elsewhere" / "clicks", 1)
    monkeypatch.chdir(tmp_path / "elsewhere")
    _, what, why = outcome(lambda: spark.table("v").count())
    assert what == "uncacheable"
    assert "folder" in why


def test_large_data_in_a_view_counts(spark, outcome):
    for last in (1, 2):
        rows(spark, *range(20_000), last).createOrReplaceTempView("v")
        assert outcome(lambda: total(spark))[:2] == (sum(range(20_000)) + last, "computed")
        assert outcome(lambda: total(spark))[1] == "reused"


def test_settings_when_a_view_was_made_count(spark, outcome, home):
    """Expressions of a view may have been resolved with the settings of then."""
    text = "create or replace temp view v as select hour(timestamp '2020-01-01 00:00:00') as n"
    spark.sql(text)
    twice(outcome, lambda: total(spark))
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert outcome(lambda: total(spark))[1] == "computed"
    spark.sql(text)
    now, what, _ = outcome(lambda: total(spark))
    assert what == "computed"
    nectar.disable()
    assert total(spark) == now


def test_global_views_are_refused(spark, outcome):
    rows(spark, 1).createOrReplaceGlobalTempView("g")
    assert "seen to make" in refused(outcome, lambda: total(spark, "global_temp.g"))
    spark.catalog.dropGlobalTempView("g")


def test_a_statement_that_is_not_followed_makes_names_unknown(spark, outcome):
    define(spark, "v", 1)
    twice(outcome, lambda: total(spark))
    with suppress(Exception):  # Sail does not know it
        spark.sql("alter view v as select 3 as n").collect()
    _, what, _ = outcome(lambda: total(spark))
    assert what == "uncacheable"
    twice(outcome, lambda: rows(spark, 4).collect())


# tables of a catalog that is the session's own


@engines.only_sail
def test_a_table_over_files(spark, outcome, log):
    spark.sql(f"create table t using parquet location '{log}'")
    try:
        first = twice(outcome, lambda: spark.table("t").count())
        write_day(log, 3)
        assert outcome(lambda: spark.sql("select count(*) as n from t").collect()[0].n)[0] == spark.table("t").count()
        assert first == 240
    finally:
        spark.sql("drop table t")
    with pytest.raises(Exception):
        spark.table("t").count()


@engines.only_sail
def test_a_table_made_by_the_catalog(spark, outcome, log):
    schema = spark.read.parquet(str(log)).schema
    spark.catalog.createTable("t", path=str(log), source="parquet", schema=schema)
    assert twice(outcome, lambda: spark.table("t").count()) == 240
    write_day(log, 3)
    assert outcome(lambda: spark.table("t").count())[:2] == (360, "computed")


@engines.only_sail
def test_tables_of_a_catalog_that_others_may_change_are_refused(spark, outcome, log, monkeypatch):
    from nectar.dialects.spark import query
    from nectar.dialects.spark.servers import Engine

    spark.sql(f"create table t using parquet location '{log}'")
    define(spark, "v", 1)
    monkeypatch.setattr(query, "engine_of", lambda client: Engine(("sail", "0.7.2", "SAIL_CATALOG__LIST=[...]")))
    assert "seen to make" in refused(outcome, lambda: spark.table("t").count())
    twice(outcome, lambda: total(spark))


@engines.only_sail
def test_a_view_stands_before_a_table_of_the_same_name(spark, outcome, log, tmp_path):
    spark.sql(f"create table t using parquet location '{log}'")
    rows(spark, 7).createOrReplaceTempView("t")
    assert twice(outcome, lambda: spark.table("t").count()) == 1
    rows(spark, 8).createOrReplaceTempView("u")
    with suppress(Exception):  # Sail wants another name
        spark.sql(f"create table u using parquet location '{log}'")
    assert twice(outcome, lambda: total(spark, "u")) == 8
    rows(spark, 9).createOrReplaceTempView("w")
    with suppress(Exception):
        rows(spark, 1).write.option("path", str(tmp_path / "w")).saveAsTable("w")
    assert twice(outcome, lambda: total(spark, "w")) == 9


@engines.only_sail
def test_a_table_that_was_written(spark, outcome, tmp_path):
    where = str(tmp_path / "t")
    rows(spark, 1, 2).write.option("path", where).saveAsTable("t")
    assert twice(outcome, lambda: total(spark, "t")) == 3
    rows(spark, 4).write.mode("append").insertInto("t")
    assert outcome(lambda: total(spark, "t"))[:2] == (7, "computed")
    rows(spark, 9).write.mode("overwrite").option("path", where).saveAsTable("t")
    assert twice(outcome, lambda: total(spark, "t")) == 9
    spark.sql("drop table t")
    with pytest.raises(Exception):
        total(spark, "t")


@engines.only_sail
def test_a_table_keeps_the_columns_that_were_written(spark, outcome, tmp_path, home):
    """The same files, as two tables whose columns were said to be different."""
    import shutil

    rows(spark, 1).write.option("path", str(tmp_path / "t")).saveAsTable("t")
    spark.sql(f"create table u (n bigint, m string) using parquet location '{tmp_path / 't'}'")
    spark.sql(f"create table w using parquet location '{tmp_path / 't'}'")
    under = {name: outcome(lambda: spark.table(name).collect())[0] for name in "tuw"}
    again = {name: outcome(lambda: spark.table(name).collect())[0] for name in "tuw"}
    nectar.disable()
    assert under == again == {name: spark.table(name).collect() for name in "tuw"}
    shutil.rmtree(tmp_path / "t")


@engines.only_sail
def test_a_table_of_which_nobody_said_where_it_lies_is_refused(spark, outcome, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows(spark, 1).write.saveAsTable("t")
    assert "seen to make" in refused(outcome, lambda: spark.table("t").count())
