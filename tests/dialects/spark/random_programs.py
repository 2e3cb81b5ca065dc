"""Random programs over a folder of clicks: seeds to frames. Many begin in the same way, so that they share parts."""

import random

from pyspark.sql import Window
from pyspark.sql import functions as F

BEGINNINGS = 25


def plus(number):
    return lambda n: None if n is None else n + number


def joined(df, r):
    other = df.groupBy("page").agg(F.max("seconds").alias("most"))
    if r.random() < 0.5:
        return df.join(other, "page", r.choice(["inner", "left", "left_semi"]))
    return df.join(other, df.page == other.page).select(df.page, df.seconds, other.most)


def qualified(df, r):
    left, right = df.alias("a"), df.groupBy("page").agg(F.min("seconds").alias("seconds")).alias("b")
    found = left.join(right, F.col("a.page") == F.col("b.page")).filter(f"a.seconds > b.seconds + {r.randint(0, 9)}")
    return found.select("a.page", r.choice(["a.seconds", "b.seconds"]))


def ranked(df, r):
    window = Window.partitionBy("page").orderBy("page", "seconds")
    return df.withColumn("rank", F.rank().over(window)).filter(F.col("rank") <= r.randint(1, 40)).drop("rank")


def timed(df, r):
    """Times in the zone of a function; their hours, if there are any."""
    if "t" not in df.columns:
        return df.withColumn("t", F.timestamp_seconds(F.col("seconds") * 1000))
    return df.select("page", (F.hour("t") + r.randint(0, 3)).cast("long").alias("seconds"), "t")


STEPS = [
    lambda df, r: df.filter(F.col("seconds") > r.randrange(120)),
    lambda df, r: df.filter(f"seconds % {r.randint(2, 5)} = 0 or page = '{r.choice('abc')}'"),
    lambda df, r: df.withColumn("seconds", F.col("seconds") * r.randint(1, 3) - r.choice([0, 1])),
    lambda df, r: df.withColumn("seconds", F.udf(plus(r.randint(1, 3)), "long")("seconds")),
    lambda df, r: df.groupBy("page").agg(r.choice([F.sum, F.min, F.max, F.count])("seconds").alias("seconds")),
    lambda df, r: df.groupBy("page", "seconds").agg(F.count("*").alias("n")).withColumnRenamed("n", "times"),
    lambda df, r: df.select("page", F.when(F.col("page") == r.choice("abc"), 1).otherwise(2).alias("seconds")),
    lambda df, r: df.select("page", "seconds").distinct(),
    lambda df, r: df.select("page", "seconds").orderBy("page", "seconds").limit(r.randint(1, 9)),
    lambda df, r: df.select("page", "seconds").union(df.select("page", "seconds")),
    lambda df, r: df.select("page", "seconds").intersect(df.filter("seconds > 9").select("page", "seconds")),
    lambda df, r: df.select("page", "seconds").mapInPandas(lambda frames: frames, "page string, seconds long"),
    lambda df, r: df.fillna(r.randint(0, 3)).withColumn("flag", F.lit(True)),
    lambda df, r: df.select(F.upper("page").alias("page"), "seconds", F.struct("page").alias("s")),
    joined,
    qualified,
    ranked,
    timed,
    timed,
]


def program(spark, log, seed):
    """The frame of a seed. The zone of the session is none that times come in."""
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    made = spark.read.parquet(str(log))
    begin, rest = random.Random(seed % BEGINNINGS), random.Random(seed)
    for choice, count in ((begin, begin.randint(1, 3)), (rest, rest.randint(0, 3))):
        for _ in range(count):
            made = choice.choice(STEPS)(made, choice)
    return made.orderBy(*made.columns) if rest.random() < 0.3 else made


def answer(frame):
    """Schema and rows; rows in their order where the program says so."""
    table = frame.toArrow()
    rows = [repr(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]
    ordered = type(frame._plan).__name__ == "Sort"
    return frame.schema.json(), str(table.schema), rows if ordered else sorted(rows)
