"""Texts that a plan makes of constants alone: found, however they are put together."""

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from pyspark.sql.connect.proto import relations_pb2

from nectar.dialects.spark.constants import facts_of, why_refused_constants


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


# queries


IN_QUERIES = [
    "select cast(concat('no', 'w') as timestamp)",
    "select 'no' || 'w', page from clicks",
    "select page || 'x', 'no' || 'w' as t from clicks",
    "select upper(w) from (select 'no' as w) as t",
    "with c as (select 'no' as w, page from clicks) select lower(w), page from c",
    "with c(a) as (select 'no') select concat(a, 'w') from c",
    "select concat(a, 'w') from (select 'no') as t(a)",
    "select 'no' as a, concat(a, 'w') as b",
    "select v from (select w as v from (select 'no' as w)) where lower(v) = 'x'",
    "select transform(array('no'), x -> concat(x, 'w'))[0] as t from clicks",
    "select transform(array('no'), (x, i) -> concat(x, 'w'))[0] as t from clicks",
    "select cast(x'6e6f77' as string) as t, page from clicks",
    "select concat('no', left('where', 1)) as t, page from clicks",
    "select concat('no', substr(cast(interval 1 days as string), 1, 0), 'w') as t, page from clicks",
    "select concat(:word, 'w') as t, page from clicks",
    "select page from clicks where t > to_date(reverse('won'))",
    "select concat((select 'no'), 'w') as t from clicks",
]
NOT_IN_QUERIES = [
    "select page, sum(seconds) as seconds from clicks group by page order by page",
    "select * from values (1, 'a'), (2, 'b') as t(n, k)",
    "select upper(page) as page, count(*) as n from clicks group by upper(page)",
    "select 'web' as channel, page || '!' as p from clicks union all select 'store' as channel, page from clicks",
    "select substr(page, 1, 2) as p, 1 as one, null as no from clicks where d > date '2020-01-01' + interval 3 days",
    "select transform(l, x -> concat(page, x)) as t from clicks",
    "select page from clicks group by rollup (page, day) having count(*) > 1",
    "select count(*), max(upper(page)) from clicks",
]


def in_query(text, *views):
    relation = relations_pb2.Relation()
    relation.sql.query = text
    return why_refused_constants(relation, views)


@pytest.mark.parametrize("text", IN_QUERIES)
def test_queries_that_make_texts_of_constants_are_refused(text):
    assert "constants" in in_query(text)


@pytest.mark.parametrize("text", NOT_IN_QUERIES)
def test_other_queries_are_not(text):
    assert in_query(text) == ""


def test_columns_of_views_may_be_constant():
    def view(text, *others):
        relation = relations_pb2.Relation()
        relation.sql.query = text
        return facts_of(relation, others)

    plain, constant = view("select page as w from clicks"), view("select 'no' as w, page from clicks")
    assert in_query("select upper(w) as t from v", plain) == ""
    assert "constants" in in_query("select upper(w) as t from v", constant)
    assert in_query("select upper(page) as t from v", constant) == ""
    assert "constants" in in_query("select page from v", view("select upper('x') as u, page from clicks"))
    over = view("select upper(w) as t from v", constant)
    assert "constants" in in_query("select t from u", over)
