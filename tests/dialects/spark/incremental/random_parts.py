"""Random programs over what grows, and rows for them."""

import random

import pyarrow as pa
from pyspark.sql import functions as F


def plus(number):
    return lambda n: None if n is None else n + number


ROWS = [
    lambda df, r: df.filter(F.col("n") > r.randrange(9)),
    lambda df, r: df.filter(f"n % {r.randint(2, 5)} = 0 or k = '{r.choice('abc')}'"),
    lambda df, r: df.withColumn("n", F.col("n") * r.randint(1, 3) - r.choice([0, 1])),
    lambda df, r: df.withColumn("n", F.udf(plus(r.randint(1, 3)), "long")("n")),
    lambda df, r: df.withColumn("x", F.when(F.col("n") > 3, F.col("x")).otherwise(F.lit(0.5))),
    lambda df, r: df.union(df.filter(F.col("k") == r.choice("abc"))),
    lambda df, r: df.join(_side(df), "k", r.choice(["inner", "left", "left_semi", "left_anti"])).select("k", "n", "x"),
    lambda df, r: df.withColumn("n", F.explode(F.array("n", F.lit(7)))),
    lambda df, r: df.fillna({"k": "none"}),
    lambda df, r: df.repartition(3).alias("a"),
]  # fmt: skip


def _side(df):
    return df.sparkSession.createDataFrame([("a", 1), ("b", 2), ("b", 3)], ["k", "weight"])


def _aggregates(r):
    chosen = [
        F.count("n"), F.count("*"), F.sum("n"), F.min("n"), F.max("k"), F.avg("n"), F.sum("x"), F.avg("x"),
        F.stddev("x"), F.var_pop("n"), F.count_distinct("n"), F.count_distinct("k"), F.max("x"), F.bit_xor("n"),
        F.bool_or(F.col("n") > 8), F.sum("n") / F.count("*"), F.count_if(F.col("n") > 2), F.mode("n").isNull(),
    ]  # fmt: skip
    return [each.alias(f"c{at}") for at, each in enumerate(r.sample(chosen, r.randint(1, 4)))]


ENDS = [
    lambda df, r: df,
    lambda df, r: df.select("k", "n").distinct(),
    lambda df, r: df.orderBy("n", "x", "k"),
    lambda df, r: df.select("n", "k").orderBy("n", "k").limit(r.randint(1, 9)),
    lambda df, r: df.groupBy("k").agg(*_aggregates(r)),
    lambda df, r: df.groupBy("k", (F.col("n") % 3).alias("m")).agg(*_aggregates(r)),
    lambda df, r: df.agg(*_aggregates(r)),
    lambda df, r: df.select(*_aggregates(r)),
    lambda df, r: df.groupBy("k").agg(*_aggregates(r)).filter("k is not null").withColumn("again", F.upper("k")),
    lambda df, r: df.groupBy("k").agg(F.sum("n").alias("s")).orderBy("s", "k").limit(2),
    lambda df, r: df.groupBy("k").agg(F.sum("n").alias("s")).join(_side(df), "k", "left"),
    lambda df, r: df.groupBy("k", "n").count().groupBy("k").agg(F.max("count")),
]


def program(read, seed):
    """A random program over what read gives in a session: rows with k, n and x."""

    def made(spark):
        r = random.Random(seed)
        df = read(spark)
        for _ in range(r.randint(0, 3)):
            df = r.choice(ROWS)(df, r)
        return r.choice(ENDS)(df, r)

    return made


def rows(r):
    """Rows for such programs."""
    count = r.choice([0, 1, 7, 30])
    columns = {
        "k": pa.array([r.choice(["a", "b", "c", None]) for _ in range(count)], pa.string()),
        "n": pa.array([r.choice([None, *range(12)]) for _ in range(count)], pa.int64()),
        "x": pa.array([r.choice([0.25, -1.5, 3.75, None]) for _ in range(count)], pa.float64()),
    }
    return pa.table(columns)
