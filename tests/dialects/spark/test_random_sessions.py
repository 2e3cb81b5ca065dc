"""Random sessions, in which names change their meaning all the time, give the same with Nectar and without it."""

import random
from contextlib import suppress

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines
from tests.dialects.spark.conftest import write_day

import nectar
from nectar import session

SESSIONS, STEPS = 12, 30
NAMES = ("v", "w", "x")


def plus(number):
    return lambda n: None if n is None else n + number


def over_files(spark, log, r):
    spark.read.parquet(str(log)).filter(F.col("seconds") > r.randrange(60)).createOrReplaceTempView(r.choice(NAMES))


def over_rows(spark, log, r):
    made = spark.createDataFrame([(r.choice("abc"), r.randrange(9), 1)], ["page", "seconds", "day"])
    made.createOrReplaceTempView(r.choice(NAMES))


def over_view(spark, log, r):
    spark.table(r.choice(NAMES)).filter(f"seconds % {r.randint(1, 3)} = 0").createOrReplaceTempView(r.choice(NAMES))


def by_sql(spark, log, r):
    name, other, number = r.choice(NAMES), r.choice(NAMES), r.randrange(5)
    columns = r.choice(["page, seconds, day", f"page, seconds + {number} as seconds, day", "page, mine(seconds), day"])
    head = r.choice(["", "(page, seconds, day)"])
    spark.sql(f"create or replace temp view {name} {head} as select {columns} from {other}")


def by_join(spark, log, r):
    one, two = r.choice(NAMES), r.choice(NAMES)
    text = f"with {two} as (select * from {one} where day = 1) select page, seconds, day from {two}"
    spark.sql(f"create or replace temp view {r.choice(NAMES)} as {text}")


def as_table(spark, log, r):
    spark.sql(f"create table {r.choice(['t', *NAMES])} using parquet location '{log}'")


def drop(spark, log, r):
    spark.catalog.dropTempView(r.choice(NAMES))


def drop_by_sql(spark, log, r):
    spark.sql(f"drop {r.choice(['view', 'table'])} {r.choice(['t', *NAMES])}")


def register(spark, log, r):
    spark.udf.register(r.choice(["mine", "mine", "abs"]), plus(r.randrange(3)), r.choice(["long", "long", "string"]))


def setting(spark, log, r):
    spark.conf.set("spark.sql.session.timeZone", r.choice(["UTC", "Asia/Tokyo"]))


QUERIES = (
    "select page, sum(seconds) as n from {0} group by page",
    "select * from {0} where page = 'a' and seconds < 50",
    "select count(*) as n from {0} join {1} using (page)",
    "select mine(seconds) as n, abs(seconds) from {0}",
    "select max(seconds) from {0} union all select min(seconds) from {1}",
    "with w as (select * from {0}) select count(*) as n from w, {1} where w.day = {1}.day",
    "select count(*) as n from t",
)
CHANGES = (
    over_files, over_rows, over_view, by_sql, by_sql, by_join, as_table, drop, drop_by_sql, register, register, setting,
)  # fmt: skip


def asked(spark, text):
    """What a query gives; the kind of the error if it fails."""
    try:
        found = spark.sql(text).toArrow()
    except Exception as error:
        return type(error)
    return sorted(map(repr, found.to_pylist())), found.schema


@pytest.mark.parametrize("seed", range(SESSIONS))
def test_random_sessions(enabled, new_session, log, home, seed):
    spark = new_session()
    nectar.disable()
    plain = new_session()
    nectar.enable(home=home, reserve=0)
    r = random.Random(seed)
    reused = 0
    for _ in range(STEPS):
        if r.random() < 0.1:
            write_day(log, r.randint(1, 4), times=r.randint(1, 2))
        change, state = r.choice(CHANGES), r.getstate()
        for each in (spark, plain):
            r.setstate(state)
            with suppress(Exception):
                change(each, log, r)
        text = r.choice(QUERIES).format(r.choice(NAMES), r.choice(NAMES))
        for _ in range(2):
            before = nectar.last_run()
            assert asked(spark, text) == asked(plain, text), text
            session.current().settle()
            found = nectar.last_run()
            reused += found is not before and found.parts[-1].outcome == "reused"
    assert reused >= 2 or engines.ENGINE != "sail"  # Spark shares tables, and its views stay behind their files
