"""What works and what does not, as the guide has it: each row of its table is a program that is run twice here."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from pyspark.sql.window import Window
from tests.dialects.spark import engines

pytestmark = pytest.mark.small
GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "spark.md"


def rows(spark):
    return spark.createDataFrame([(1, "a", 2.5), (2, "b", 0.5), (3, "a", 1.5)], ["n", "k", "x"])


def sums(spark):
    return rows(spark).groupBy("k", "n").agg(F.sum("x").alias("x"), F.max("x").alias("y"))


def with_function(spark):
    spark.udf.register("mine", lambda text: text)
    return rows(spark).select(F.call_function("mine", "k"), F.expr("mine(k)"))


class Twice:
    """A table function."""

    def eval(self, n: int):
        yield (n,)
        yield (n * 2,)


def with_functions(spark):
    made = F.udtf(Twice, returnType="m: long")(F.lit(21))
    return rows(spark).select(F.udf(lambda n: n + 1, "long")("n").alias("m")).union(made)


def with_view(spark):
    rows(spark).createOrReplaceTempView("v")
    return spark.table("v").union(spark.sql("select * from v"))


def with_global_view(spark):
    rows(spark).createOrReplaceGlobalTempView("v")
    return spark.table("global_temp.v")


def with_table(spark, folder):
    if not folder.exists():
        rows(spark).write.format("delta").save(str(folder))
    return spark.read.format("delta").load(str(folder))


REUSED = {
    "Delta tables": lambda s, d: with_table(s, d / "table"),
    "files: Parquet, CSV, JSON, text": lambda s, d: s.read.csv(str(d / "t.csv"), header=True, inferSchema=True),
    "frames made from local rows": lambda s, d: rows(s),
    "`select`, `filter`, `withColumn`": lambda s, d: rows(s).filter(F.col("n") > 1).withColumn("m", F.col("n") + 1),
    "`groupBy().agg()`, `pivot`": lambda s, d: rows(s).groupBy("k").pivot("n", [1, 2]).agg(F.sum("x")),
    "joins, unions": lambda s, d: rows(s).join(rows(s).select("k", F.col("x").alias("y")), "k").union(sums(s)),
    "window functions": lambda s, d: rows(s).withColumn("r", F.row_number().over(Window.partitionBy("k").orderBy("n"))),
    "`orderBy`, `limit`, `dropDuplicates`": lambda s, d: rows(s).orderBy("n").limit(2).dropDuplicates(["k"]),
    "`fillna`, `dropna`, `replace`": lambda s, d: rows(s).fillna(0).dropna().replace("a", "c"),
    "`describe`": lambda s, d: rows(s).describe("n"),
    "expressions as text": lambda s, d: rows(s).filter("n > 1 and upper(k) = 'A'").selectExpr("n * 2 as m"),
    "Python functions, table functions too": lambda s, d: with_functions(s),
    "`spark.sql`": lambda s, d: s.sql("select upper(k) from {rows} where n > :least", args={"least": 1}, rows=rows(s)),
    "temporary views": lambda s, d: with_view(s),
    "registered functions": lambda s, d: with_function(s),
}  # fmt: skip

REFUSED = {
    "global views, tables of other programs": (lambda s, d: with_global_view(s), "seen to make"),
    "table functions in a text": (lambda s, d: s.sql("select * from range(3)"), "not understood"),
    "`sample`, `sampleBy`": (lambda s, d: rows(s).sample(0.5, seed=3), "sample"),
    "`randomSplit`": (lambda s, d: rows(s).randomSplit([0.5, 0.5], seed=3)[0], "sample"),
    "functions that give something else each time": (lambda s, d: rows(s).withColumn("r", F.rand(3)), "each time"),
    "functions of the clock": (lambda s, d: rows(s).withColumn("t", F.current_timestamp()), "clock"),
    "functions of user, place or catalog": (lambda s, d: rows(s).withColumn("u", F.current_user()), "who runs"),
    "functions of how data is cut": (lambda s, d: rows(s).withColumn("i", F.monotonically_increasing_id()), "cuts"),
    "columns that share the name of such a function": (
        lambda s, d: rows(s).withColumnRenamed("k", "user").select(F.col("user")), "may be the function",
    ),
    "such functions within text": (lambda s, d: rows(s).selectExpr("n + rand() as r"), "each time"),
    "columns that a file does not have, meant as functions": (lambda s, d: rows(s).select("current_date"), "clock"),
    "other sources: JDBC, Iceberg, your own": (lambda s, d: s.read.format("iceberg").load(str(d)), "not from files"),
}  # fmt: skip


@pytest.fixture
def data(tmp_path):
    (tmp_path / "t.csv").write_text("n,k\n1,a\n2,b\n")
    return tmp_path


def counted(frame):
    """The rows, in any order; what the engine says if it cannot do it."""
    return sorted(map(repr, frame.collect()))


@pytest.mark.parametrize("name", REUSED)
def test_what_works(spark, outcome, data, name):
    if name == "Delta tables" and engines.ENGINE != "sail":
        pytest.skip("Spark reads them with libraries of theirs")
    first, what, why = outcome(lambda: counted(REUSED[name](spark, data)))
    assert what == "computed", why
    again, what, why = outcome(lambda: counted(REUSED[name](spark, data)))
    assert (again, what) == (first, "reused"), why


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not(spark, enabled, data, name):
    import nectar

    program, reason = REFUSED[name]
    for _ in range(2):
        with suppress(Exception):  # Sail lacks some of them; what becomes of them is decided before it is asked
            program(spark, data).collect()
        part = nectar.last_run().parts[-1]
        assert part.outcome == "uncacheable"
        assert reason in part.reason


def test_the_guide_has_these_rows():
    table = re.findall(r"^\| ([^|]*) \| (reused|runs as it is) \|$", GUIDE.read_text(encoding="utf-8"), re.M)
    assert table == [*((name, "reused") for name in REUSED), *((name, "runs as it is") for name in REFUSED)]


def test_a_sql_statement_that_makes_a_function_ends_reuse(spark, outcome):
    assert outcome(rows(spark).count)[1] == "computed"
    with pytest.raises(Exception):
        spark.sql("CREATE TEMPORARY FUNCTION upper AS 'some.Class'").collect()
    _, what, why = outcome(rows(spark).count)
    assert what == "uncacheable"
    assert "any name" in why


def test_a_session_that_others_may_share_is_refused(enabled, outcome, address):
    import uuid

    from pyspark.sql.connect.session import SparkSession

    shared = SparkSession.builder.remote(f"{address}/;session_id={uuid.uuid4()}").create()
    _, what, why = outcome(shared.range(3).count)
    shared.client.close()
    assert what == "uncacheable"
    assert "any name" in why


def test_a_cast_of_now_is_refused(spark, enabled):
    import nectar

    with suppress(Exception):  # Sail knows no such word
        spark.range(1).select(F.lit(" NOW ").cast("timestamp")).collect()
    assert "time of the run" in nectar.last_run().parts[-1].reason


def test_a_column_of_a_certain_frame_may_have_the_name_of_a_function(spark, outcome):
    made = rows(spark).withColumnRenamed("k", "user")
    first, _, _ = outcome(made.select(made["user"]).collect)
    assert outcome(made.select(made["user"]).collect)[:2] == (first, "reused")


def test_such_a_column_that_is_not_there_is_no_function(spark):
    made = rows(spark)
    with pytest.raises(Exception, match="current_user"):
        made.select(made["current_user"]).collect()
