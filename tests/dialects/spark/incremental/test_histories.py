"""Random programs over folders to which anything happens: the answer is that of plain Sail over the files there are.

Three dozen programs by default, 500 with NECTAR_TEST_PROFILE=deep; each runs after every event of its history.
"""

import os
import random

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import functions as F

PROGRAMS = 500 if os.environ.get("NECTAR_TEST_PROFILE") == "deep" else 36
EVENTS = 6
CHUNK = 12  # programs that share a store


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


def program(folder, seed):
    def made(spark):
        r = random.Random(seed)
        df = spark.read.parquet(str(folder))
        for _ in range(r.randint(0, 3)):
            df = r.choice(ROWS)(df, r)
        return r.choice(ENDS)(df, r)

    return made


def write(folder, name, when, r):
    count = r.choice([0, 1, 7, 30])
    columns = {
        "k": pa.array([r.choice(["a", "b", "c", None]) for _ in range(count)], pa.string()),
        "n": pa.array([r.choice([None, *range(12)]) for _ in range(count)], pa.int64()),
        "x": pa.array([r.choice([0.25, -1.5, 3.75, None]) for _ in range(count)], pa.float64()),
    }
    pa.parquet.write_table(pa.table(columns), folder / name)
    os.utime(folder / name, (1_700_000_000 + when * 60,) * 2)


def event(folder, when, r):
    """Something happens to a folder; mostly a file comes."""
    files = sorted(path.name for path in folder.iterdir())
    what = r.choice(["append", "append", "append", "append", "several", "remove", "rewrite"])
    if what == "remove" and len(files) > 2:
        (folder / r.choice(files)).unlink()
    elif what == "rewrite" and files:
        write(folder, r.choice(files), when, r)
    for number in range({"append": 1, "several": 3}.get(what, 0)):
        write(folder, f"{r.randrange(10**6):06}-{when}-{number}.parquet", when, r)


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_histories(compared, tmp_path, first):
    put_together = 0
    for seed in range(first, min(first + CHUNK, PROGRAMS)):
        r = random.Random(f"history {seed}")
        folder = tmp_path / str(seed)
        folder.mkdir()
        for number in range(2):
            write(folder, f"first-{number}.parquet", number, r)
        for when in range(2, 2 + EVENTS):
            put_together += compared(program(folder, seed)) is not None
            event(folder, when, r)
    assert put_together >= 2 * CHUNK  # of 6 runs of each program; else the test would show nothing
