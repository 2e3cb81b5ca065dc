"""Random programs give the same without Nectar, computed under it, and from the store."""

import random

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines

import nectar
from nectar import session

PROGRAMS = 40


def plus(number):
    return lambda n: None if n is None else n + number


STEPS = [
    lambda df, r: df.filter(F.col("seconds") > r.randrange(120)),
    lambda df, r: df.filter(f"seconds % {r.randint(2, 5)} = 0 or page = '{r.choice('abc')}'"),
    lambda df, r: df.withColumn("seconds", F.col("seconds") * r.randint(1, 3) - r.choice([0, 1])),
    lambda df, r: df.withColumn("seconds", F.udf(plus(r.randint(1, 3)), "long")("seconds")),
    lambda df, r: df.groupBy("page").agg(r.choice([F.sum, F.min, F.max, F.count])("seconds").alias("seconds")),
    lambda df, r: df.select("page", F.when(F.col("page") == r.choice("abc"), 1).otherwise(2).alias("seconds")),
    lambda df, r: df.join(df.groupBy("page").agg(F.max("seconds").alias("most")), "page", r.choice(["inner", "left"])),
    lambda df, r: df.select("page", "seconds").distinct(),
    lambda df, r: df.select("page", "seconds").orderBy("page", "seconds").limit(r.randint(1, 9)),
    lambda df, r: df.select("page", "seconds").union(df.select("page", "seconds")),
    lambda df, r: df.select("page", "seconds").mapInPandas(lambda frames: frames, "page string, seconds long"),
]


def program(spark, log, seed):
    choice = random.Random(seed)
    made = spark.read.parquet(str(log))
    for _ in range(choice.randint(1, 5)):
        made = choice.choice(STEPS)(made, choice)
    return made


def answer(frame):
    return sorted(map(repr, frame.collect())), frame.columns


@engines.not_spark_4_2
def test_random_programs(spark, log, home):
    nectar.disable()
    plain = {}
    for seed in range(PROGRAMS):
        try:
            plain[seed] = answer(program(spark, log, seed))
        except Exception as error:
            plain[seed] = type(error)
    answered = [seed for seed, found in plain.items() if not isinstance(found, type)]
    assert len(answered) >= PROGRAMS * 3 // 4
    for expected in ("computed", "reused"):
        nectar.enable(home=home, reserve=0)
        outcomes = []
        for seed in answered:
            assert answer(program(spark, log, seed)) == plain[seed], f"program {seed}, {expected}"
            outcomes.append(nectar.last_run().parts[-1].outcome)
        session.current().settle()
        assert set(outcomes) <= {expected, "reused"}
        assert outcomes.count(expected) >= len(answered) * 3 // 4
