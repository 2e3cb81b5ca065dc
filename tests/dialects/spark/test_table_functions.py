"""Table functions of Python: they count by what they compute, as other functions do."""

import random

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines

import nectar


def made(step):
    """A table function with a constant of its own, made anew each time."""

    class Counting:
        def eval(self, n: int):
            for each in range(0, n, step):
                yield (each,)

    return F.udtf(Counting, returnType="n: int")


def rows(frame):
    return sorted(row.n for row in frame.collect())


def test_a_table_function_counts_by_what_it_computes(spark, outcome, new_session):
    assert outcome(lambda: rows(made(2)(F.lit(5))))[:2] == ([0, 2, 4], "computed")
    assert outcome(lambda: rows(made(2)(F.lit(5))))[:2] == ([0, 2, 4], "reused")
    assert outcome(lambda: rows(made(3)(F.lit(5))))[:2] == ([0, 3], "computed")
    assert outcome(lambda: rows(made(2)(F.lit(3))))[:2] == ([0, 2], "computed")
    new_session()  # functions are handed to the latest session
    assert outcome(lambda: rows(made(3)(F.lit(5))))[:2] == ([0, 3], "reused")


def test_what_is_done_to_its_rows(spark, outcome):
    frame = lambda: made(2)(F.lit(9)).filter("n > 1").groupBy((F.col("n") % 3).alias("n")).count()  # noqa: E731
    first, what, why = outcome(lambda: sorted(frame().collect()))
    assert what == "computed", why
    assert outcome(lambda: sorted(frame().collect()))[:2] == (first, "reused")


def test_a_table_function_that_is_random_is_refused(spark, outcome):
    class Lucky:
        def eval(self, n: int):
            yield (random.randrange(n),)

    function = F.udtf(Lucky, returnType="n: int")
    _, what, why = outcome(lambda: rows(function(F.lit(1000))))
    assert what == "uncacheable"
    assert "random" in why


def test_one_that_a_text_calls_is_refused(spark, outcome):
    spark.udtf.register("counting", made(2))
    _, what, why = outcome(lambda: rows(spark.sql("select * from counting(5)")))
    assert what == "uncacheable"
    assert "table" in why


@engines.only_spark  # Sail has no such arguments
def test_one_that_is_handed_a_frame_sees_how_it_is_cut(spark, log, outcome):
    class Rows:
        def __init__(self):
            self.seen = 0

        def eval(self, row):
            self.seen += 1

        def terminate(self):
            yield (self.seen,)

    pages = spark.read.parquet(str(log)).groupBy("page").agg(F.sum("seconds").alias("s")).cache()
    outcome(pages.filter("s > 1").collect)
    counted = lambda: rows(F.udtf(Rows, returnType="n: int")(pages.asTable().withSinglePartition()))  # noqa: E731
    assert outcome(counted)[:2] == ([3], "computed")
    assert nectar.last_run().reused == []
    assert outcome(counted)[:2] == ([3], "reused")
