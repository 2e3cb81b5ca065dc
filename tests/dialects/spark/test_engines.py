"""Where engines differ, as the guide has it: each row of its table is a program that is run on the engine at hand."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines
from tests.dialects.spark.conftest import write_day

import nectar
from nectar.dialects.spark import tables

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "spark.md"
REUSED, PLAIN, ABSENT = "reused", "runs as it is", "not there"


def kept_in_orc(spark, log):
    if not (log.parent / "orc").exists():
        spark.range(5).write.orc(str(log.parent / "orc"))
    return spark.read.orc(str(log.parent / "orc"))


def large(spark, log):
    return spark.createDataFrame([(number, "x" * 100) for number in range(50_000)], ["n", "t"]).agg(F.max("n"))


def relative(spark, log):
    import os

    os.chdir(log.parent)  # put back by the fixture
    return spark.read.parquet(log.name)


def of_a_module(spark, log):
    return spark.range(3).select(F.udf(lambda n: f"{n} {engines.ENGINE}", "string")("id"))


def viewed(spark, log):
    spark.read.parquet(str(log)).createOrReplaceTempView("clicks")
    return spark.table("clicks")


def tabled(spark, log):
    spark.sql("drop table if exists clicks_here")
    spark.sql(f"create table clicks_here using parquet location '{log}'")
    return spark.table("clicks_here")


def saved(spark, log):
    spark.read.parquet(str(log)).write.mode("ignore").saveAsTable("clicks_there")
    return spark.table("clicks_there")


def partitioned(spark, log):
    path = log.parent / "by_day"
    if not path.exists():
        spark.read.parquet(str(log)).write.partitionBy("day").parquet(str(path))
    spark.sql("drop table if exists clicks_by_day")
    spark.sql(f"create table clicks_by_day using parquet location '{path}'")
    return spark.table("clicks_by_day")


def of_tables(spark, log):
    class Twice:
        def eval(self, n: int):
            yield (n,)
            yield (n * 2,)

    return F.udtf(Twice, returnType="n: int")(F.lit(21))


def registered(spark, log):
    spark.udf.register("more", lambda n: n + 1, "long")
    return spark.range(3).select(F.call_function("more", "id"))


def with_variable(spark, log):
    spark.sql("DECLARE OR REPLACE VARIABLE mine INT DEFAULT 1").collect()
    return spark.range(3).select(F.col("mine"))


def observed(spark, log):
    return spark.range(3).observe("seen", F.count(F.lit(1)).alias("n"))


def cloned(spark, log):
    assert spark.range(2).count() == 2  # the server has to know the session
    return spark.cloneSession().range(3)


ROWS = {
    "Parquet, CSV, JSON, text": (lambda s, log: s.read.parquet(str(log)), REUSED, REUSED),
    "ORC": (kept_in_orc, ABSENT, REUSED),
    "large frames made from local rows": (large, REUSED, REUSED),
    "paths that are not absolute": (relative, REUSED, PLAIN),
    "Python functions of the program's main file": (
        lambda s, log: s.range(3).select(F.udf(lambda n: n + 1, "long")("id")), REUSED, REUSED,
    ),
    "Python functions of other modules of the program": (of_a_module, REUSED, PLAIN),
    "text put together from constants": (
        lambda s, log: s.range(3).select(F.concat(F.lit("a"), F.lit("b")).alias("t")), REUSED, PLAIN,
    ),
    "`spark.sql`": (lambda s, log: s.sql("select page from {f}", f=s.read.parquet(str(log))), REUSED, REUSED),
    "temporary views": (viewed, REUSED, REUSED),
    "files by their path in a text": (
        lambda s, log: s.sql(f"select count(*) as n from parquet.`{log}`"), REUSED, REUSED,
    ),
    "tables at a path of yours": (tabled, REUSED, REUSED),
    "tables without a path of yours": (saved, PLAIN, REUSED),
    "tables with partitions": (partitioned, REUSED, PLAIN),
    "table functions of Python": (of_tables, REUSED, REUSED),
    "registered functions": (registered, REUSED, REUSED),
    "session variables": (with_variable, ABSENT, PLAIN),
    "`reflect`": (
        lambda s, log: s.range(3).select(F.reflect(F.lit("java.lang.Math"), F.lit("abs"), F.lit(1))), ABSENT, PLAIN,
    ),
    "`input_file_name`": (lambda s, log: s.read.parquet(str(log)).select(F.input_file_name()), ABSENT, PLAIN),
    "`checkpoint`": (lambda s, log: s.range(3).localCheckpoint(), ABSENT, PLAIN),
    "`observe`": (observed, ABSENT, PLAIN),
    "cloned sessions": (cloned, ABSENT, REUSED),
}  # fmt: skip


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    # Spark is asked in a session that begins long after everything was made, as those of later programs do.
    monkeypatch.setattr(tables, "_GUARD", -3600.0)


@pytest.mark.parametrize("name", ROWS)
def test_what_works_on_this_engine(spark, log, outcome, name):
    program, on_sail, on_spark = ROWS[name]
    expected = on_sail if engines.ENGINE == "sail" else on_spark
    if expected == ABSENT:
        with pytest.raises(Exception):
            program(spark, log).collect()
        return
    if expected == PLAIN:
        for _ in range(2):
            with suppress(Exception):  # a path of the server's own may not be there
                program(spark, log).collect()
            assert nectar.last_run().parts[-1].outcome == "uncacheable"
        return
    first, _, _ = outcome(lambda: sorted(map(repr, program(spark, log).collect())))
    again, what, why = outcome(lambda: sorted(map(repr, program(spark, log).collect())))
    assert (again, what) == (first, "reused"), why


def test_files_that_come_within_a_session_are_seen(spark, log, outcome):
    made = spark.read.parquet(str(log))
    assert outcome(made.count)[0] == 240
    write_day(log, 3)
    assert outcome(made.count)[:2] == (360, "computed")


def test_the_guide_has_these_rows():
    table = re.findall(r"^\| (.*?) \| (reused|runs as it is|not there) \| (.*?) \|$", GUIDE.read_text("utf-8"), re.M)
    assert table == [(name, on_sail, on_spark) for name, (_, on_sail, on_spark) in ROWS.items()]
