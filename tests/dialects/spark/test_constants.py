"""Texts that a plan makes of constants alone: found, however they are put together."""

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F

from nectar.dialects.spark.constants import why_refused_constants


def word(spark):
    """A frame with a column `w` that is constant, and one that is not."""
    return spark.range(3).withColumn("w", F.lit("no")).withColumn("t", F.col("id").cast("string"))


MADE = {
    "concat": lambda s: s.range(1).select(F.concat(F.lit("no"), F.lit("w")).cast("timestamp")),
    "concat by name": lambda s: s.range(1).select(F.call_function("concat", F.lit("no"), F.lit("w"))),
    "lower": lambda s: s.range(1).filter(F.lower(F.lit("NO-W")) > "a"),
    "characters": lambda s: s.range(1).select(F.concat_ws("", F.char(F.lit(110)), F.lit("ow"))),
    "a pattern of dates": lambda s: s.range(1).select(F.date_format(F.lit("2020-01-01").cast("date"), "'now'")),
    "within another call": lambda s: s.range(1).select(F.to_date(F.coalesce(F.reverse(F.lit("won")), F.col("id")))),
    "bytes that become text": lambda s: s.range(1).select(F.lit(b"now").cast("string")),
    "a constant column": lambda s: word(s).select(F.concat("w", F.lit("w"))),
    "a constant of a constant": lambda s: word(s).withColumn("v", F.col("w")).select(F.upper("v")),
    "a constant column in text": lambda s: word(s).selectExpr("concat(w, 'w')"),
    "a constant column of text": lambda s: s.range(1).selectExpr("'no' as w").select(F.upper("w")),
    "a constant column without as": lambda s: s.range(1).selectExpr("'no' w").select(F.upper("w")),
    "a constant column without a name": lambda s: s.range(1).select(F.lit("no")).select(F.upper("no")),
    "a constant column without a name in text": lambda s: s.range(1).selectExpr("'no'").select(F.upper("no")),
    "a constant that is renamed": lambda s: word(s).withColumnRenamed("w", "v").select(F.upper("v")),
    "columns that are renamed": lambda s: word(s).toDF("a", "b", "c").select(F.upper("b")),
    "capital letters": lambda s: word(s).select(F.upper("W")),
    "a qualified name": lambda s: word(s).alias("x").select(F.upper("x.w")),
    "a key of groups": lambda s: s.range(1).groupBy(F.lit("no").alias("w")).count().select(F.upper("w")),
    "text": lambda s: s.range(1).selectExpr("cast(concat('no', 'w') as date)"),
    "signs in text": lambda s: s.range(1).selectExpr("'no' || 'w' as t"),
    "signs in text with a constant": lambda s: word(s).selectExpr("w || 'w' as t"),
    "left in text": lambda s: s.range(1).selectExpr("left('nowhere', 3)"),
    "a cast in text": lambda s: s.range(1).selectExpr("cast(unhex('6e6f77') as string)"),
}  # fmt: skip
NOT_MADE = {
    "columns": lambda s: word(s).select(F.upper("t"), F.concat("t", F.lit("-01"))),
    "both": lambda s: word(s).select(F.concat("t", "w")),
    "numbers": lambda s: s.range(1).select((F.lit(1) + F.lit(2)).alias("n"), F.lit(3).cast("string").alias("t")),
    "literals": lambda s: word(s).select("w", F.lit("web").alias("v")),
    "counting": lambda s: word(s).select(F.upper("t").alias("u")).agg(F.count(F.lit(1)), F.max("u")),
    "conditions": lambda s: word(s).select(F.when(F.col("id") > 1, "a").otherwise("b").alias("c"), F.upper("t")),
    "dates": lambda s: s.range(1).select(F.to_date(F.lit("2020-01-01")).alias("d"), F.date_add("d", 3).alias("e")),
    "functions of Python": lambda s: word(s).select(F.udf(lambda t: t)(F.col("w"))),
    "text": lambda s: word(s).selectExpr("upper(t) as u", "cast(id as string) as v", "substring(t, 1, 2) as x"),
    "signs in text": lambda s: word(s).selectExpr("t || 'w' as u"),
    "a filter in text": lambda s: word(s).filter("upper(t) = 'A' and id in (1, 2)"),
}  # fmt: skip


def told(spark, frame):
    return why_refused_constants(frame._plan.to_proto(spark.client).root)


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_of_constants_is_refused(spark, name):
    assert "constants" in told(spark, MADE[name](spark))


@pytest.mark.parametrize("name", NOT_MADE)
def test_what_is_made_of_data_is_not(spark, name):
    assert told(spark, NOT_MADE[name](spark)) == ""
