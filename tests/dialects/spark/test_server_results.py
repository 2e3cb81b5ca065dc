"""Results of Spark servers: rebuilt at the server that the environment names, and valid for a while."""

import secrets
import time

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

import msgspec
from pyspark.sql import functions as F
from tests.dialects.spark import engines
from tests.dialects.spark.test_rebuild import SparkProject, rows
from tests.recipes.projects import reasons_of

import nectar
from nectar.clock import ManualClock

pytestmark = engines.only_spark
HOUR = 3600.0


@pytest.fixture
def project(tmp_path, address, monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", address)
    made = SparkProject(tmp_path)
    made.environment["SPARK_REMOTE"] = address
    made.environment["SPARK_CONNECT_MODE_ENABLED"] = "1"
    return made


PROGRAMS = {
    "group": """show(spark.read.parquet(DATA).groupBy("g").agg(F.sum("a").alias("s"), F.avg("a").alias("m")))""",
    "function": """show(spark.read.parquet(DATA).select(F.udf(lambda x: x + 1, LongType())("a").alias("b")))""",
    "settings": """
spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
show(spark.read.parquet(DATA).select(F.hour(F.timestamp_seconds("a")).alias("h"), "a"))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_was_deleted_comes_back_from_the_server(project, name):
    project.file()
    project.main(f"DATA = {str(project.data)!r}\n{PROGRAMS[name]}")
    (values,) = project.run()
    key, before = project.evict_one()
    assert project.recipe(key).recipe.environment.engine == "Spark"
    project.lose_sources()
    project.file("later.parquet", start=1000)
    done, after = project.rebuild(key)
    assert done.made
    assert not done.difference
    assert after.schema.equals(before.schema, check_metadata=True)
    assert rows(after) == rows(before)
    assert sorted(map(list, zip(*after.to_pydict().values()))) == values


def test_a_server_of_another_version_is_told(project):
    project.file()
    project.main(f"show(spark.read.parquet({str(project.data)!r}).groupBy('g').agg(F.sum('a')))")
    project.run()
    key, _ = project.evict_one()

    def older(recipe):
        return msgspec.structs.replace(
            recipe, environment=msgspec.structs.replace(recipe.environment, engine_version="3.1")
        )

    project.change_recipe(key, older)
    (reason,) = reasons_of(project, key)
    assert reason.startswith("it was made by Spark 3.1, and this is Spark 4.")


# tables


@pytest.fixture
def table(spark, project):
    """A table that was there before the program began."""
    project.file()
    name = f"t_{secrets.token_hex(6)}"
    spark.sql(f"create table {name} using parquet location '{project.data}'")
    time.sleep(3.1)
    yield name
    spark.sql(f"drop table if exists {name}")


def test_a_result_of_a_table_comes_back(project, table):
    project.main(f"show(spark.sql('select g, sum(a) as s from {table} group by g'))")
    (values,) = project.run()
    key, before = project.evict_one()
    project.lose_sources()
    time.sleep(3.1)
    done, after = project.rebuild(key)
    assert (done.made, bool(done.difference)) == (True, False)
    assert rows(after) == rows(before)
    assert sorted(map(list, zip(*after.to_pydict().values()))) == values


@pytest.mark.parametrize("change", ["files", "definition", "nothing left"])
def test_a_table_that_is_another_one_now_is_told(spark, project, table, change):
    project.main(f"show(spark.sql('select g, sum(a) as s from {table} group by g'))")
    project.run()
    key, _ = project.evict_one()
    if change == "files":
        project.file("later.parquet", start=1000)
    else:
        spark.sql(f"drop table {table}")
    if change == "definition":
        spark.sql(f"create table {table} (a int, g int) using parquet location '{project.data}'")
    time.sleep(3.1)
    assert reasons_of(project, key)


# a database


@pytest.fixture
def clock(enabled):
    clock = ManualClock(1_800_000_000.0 // HOUR * HOUR + HOUR / 2)
    enabled.clock = clock
    return clock


@pytest.fixture
def orders(spark, tmp_path):
    options = {
        "url": f"jdbc:derby:{tmp_path}/shop;create=true", "dbtable": "orders", "user": "me", "password": "canary",
        "driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
    }  # fmt: skip

    def write(times):
        made = spark.createDataFrame([(1 * times,), (2 * times,)], "amount long")
        made.write.format("jdbc").options(**options).mode("overwrite").save()

    write(1)
    return lambda: spark.read.format("jdbc").options(**options).load(), write


def total(df):
    return df.agg(F.sum("amount").alias("s"))


def test_a_database_is_read_again_when_its_time_is_over(orders, clock, outcome, home):
    frame, write = orders
    assert outcome(total(frame()).collect)[1] == "uncacheable"
    asked = lambda: total(nectar.valid_for(frame(), "1h")).collect()[0].s
    assert outcome(asked)[:2] == (3, "computed")
    write(10)
    assert outcome(asked)[:2] == (3, "reused")
    clock.move(HOUR)
    assert outcome(asked)[:2] == (30, "computed")
    assert outcome(asked)[:2] == (30, "reused")
    assert all(b"canary" not in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_beside_files_the_database_gets_no_options_of_ours(orders, clock, outcome, spark, log):
    frame, _ = orders

    def asked():
        clicks = spark.read.parquet(str(log)).agg(F.count("*").alias("n"))
        return clicks.crossJoin(total(nectar.valid_for(frame(), "1h"))).collect()[0].s

    assert outcome(asked)[:2] == (3, "computed")
    assert outcome(asked)[:2] == (3, "reused")


def test_what_a_session_has_cached_is_not_taken_for_new(orders, clock, outcome):
    frame, write = orders
    valid = nectar.valid_for(frame(), "1h")
    valid.cache()
    assert valid.count() == 2
    write(10)
    value, what, why = outcome(lambda: total(valid).collect()[0].s)
    assert (value, what) == (3, "uncacheable")
    assert "the server has cached a part of it" in why
    valid.unpersist()
    assert outcome(lambda: total(valid).collect()[0].s)[:2] == (30, "computed")


@pytest.mark.parametrize("declared", [False, True])
def test_what_another_session_has_cached_is_not_taken_for_new(orders, clock, outcome, new_session, declared):
    frame, write = orders
    cached = _in(new_session(), frame(), declared)
    cached.cache()
    assert cached.count() == 2
    write(10)
    value, what, _ = outcome(lambda: total(nectar.valid_for(frame(), "1h")).collect()[0].s)
    assert what == "uncacheable" or value == 30


def _in(session, frame, declared):
    source = frame._plan.to_proto(frame.sparkSession.client).root.read.data_source
    same = session.read.format("jdbc").options(**dict(source.options)).load()
    return nectar.valid_for(same, "1h") if declared else same


def test_a_view_of_the_session_is_no_table_whatever_was_forgotten(spark, clock, outcome):
    spark.range(3).createOrReplaceTempView("forgotten")
    spark.sql("set spark.sql.shuffle.partitions = 3")
    spark.client._nectar.looker._taught._change(lambda scope: type(scope)())  # as after a statement that nobody knows
    _, what, why = outcome(lambda: nectar.valid_for(spark.table("forgotten"), "1h").count())
    assert what == "uncacheable"
    assert "is a view of the session" in why


def test_a_table_of_the_catalog_is_valid_for_a_while(spark, clock, outcome):
    spark.range(3).write.mode("overwrite").saveAsTable("numbers_of_a_test")
    try:
        asked = lambda: nectar.valid_for(spark.table("numbers_of_a_test"), "1h").count()
        assert outcome(lambda: spark.table("numbers_of_a_test").count())[1] == "uncacheable"
        assert outcome(asked)[:2] == (3, "computed")
        assert outcome(asked)[:2] == (3, "reused")
        spark.range(5).write.mode("overwrite").saveAsTable("numbers_of_a_test")
        clock.move(HOUR)
        assert outcome(asked)[:2] == (5, "computed")
    finally:
        spark.sql("drop table numbers_of_a_test")
