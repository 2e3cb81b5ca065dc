"""Queries written as SQL text are reused while everything they name means the same."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines
from tests.dialects.spark.conftest import write_day

import nectar

pytestmark = pytest.mark.small
SOURCE = str(Path(nectar.__file__).parents[1])
SUMS = "select page, sum(seconds) as seconds from clicks group by page order by page"


@pytest.fixture
def clicks(spark, log):
    spark.read.parquet(str(log)).createOrReplaceTempView("clicks")
    return spark


def twice(outcome, action):
    """What an action gives, after it has been computed and then reused."""
    first, what, why = outcome(action)
    assert what == "computed", why
    again, what, why = outcome(action)
    assert what == "reused", why
    assert again == first
    return first


@pytest.mark.parametrize(
    "text",
    [
        "select 1 as a, 'x' as b",
        SUMS,
        "with c as (select * from clicks where seconds > 3) select count(*) from c",
        "select page, rank() over (partition by page order by seconds) as r from clicks order by page, r",
        "select * from values (1, 'a'), (2, 'b') as t(n, k)",
        "SELECT * FROM clicks WHERE page = 'a' order by seconds limit 3 -- the first",
        "select max(seconds) from clicks where page in (select page from clicks where day = 1)",
        "select page from clicks union select 'd' order by page;",
    ],
)
def test_queries_are_reused(clicks, outcome, text):
    twice(outcome, lambda: clicks.sql(text).collect())


def test_what_is_done_to_a_query_is_reused(clicks, outcome):
    twice(outcome, lambda: clicks.sql(SUMS).filter("seconds > 3").withColumn("n", F.col("seconds") + 1).collect())


def test_spaces_and_comments_do_not_count(clicks, outcome):
    first, _, _ = outcome(clicks.sql(SUMS).collect)
    spaced = SUMS.replace(" from ", "\n  -- the sums\n  from ")
    assert outcome(clicks.sql(spaced).collect)[:2] == (first, "reused")


@pytest.mark.parametrize(
    "text", ["select 1+1", "select 1  +  1", "select 1 + 1 /* x */", "select ( 1 ) + 1, upper( 'a' )"]
)
def test_columns_are_named_as_without_nectar(spark, outcome, home, text):
    nectar.disable()
    plain = spark.sql(text).toArrow()
    nectar.enable(home=home, reserve=0)
    outcome(spark.sql("select 1 + 1").toArrow)  # what is known of it is the same but for spaces
    for _ in range(2):
        assert outcome(spark.sql(text).toArrow)[0].schema.equals(plain.schema, check_metadata=True)


@engines.only_sail  # what Spark does is in test_views.py
def test_files_are_looked_at_when_a_query_runs(clicks, outcome, log):
    first = twice(outcome, lambda: clicks.sql(SUMS).collect())
    write_day(log, 3)
    changed, what, _ = outcome(clicks.sql(SUMS).collect)
    assert what == "computed"
    assert changed != first
    nectar.disable()
    assert clicks.sql(SUMS).collect() == changed


def test_arguments_count(clicks, outcome):
    text = "select count(*) as n from clicks where seconds > :least"
    assert [twice(outcome, lambda: clicks.sql(text, args={"least": n}).collect())[0].n for n in (3, 50)] != [0, 0]
    text = "select count(*) as n from clicks where seconds > ? and page = ?"
    first = twice(outcome, lambda: clicks.sql(text, args=[3, "a"]).collect())
    assert outcome(clicks.sql(text, args=[3, "b"]).collect)[1] == "computed"
    assert outcome(clicks.sql(text, args=[100, "a"]).collect)[0] != first


def test_an_argument_may_not_stand_for_a_moment(spark, enabled):
    with suppress(Exception):  # Sail does not know the word
        spark.sql("select concat(:t, 'x')", args={"t": "now"}).collect()
    assert "time of the run" in nectar.last_run().parts[-1].reason


def test_frames_within_a_text(clicks, outcome):
    def sums(least):
        few = clicks.table("clicks").filter(F.col("seconds") > least)
        return clicks.sql("select page, count(*) as n from {few} group by page order by page", few=few).collect()

    assert twice(outcome, lambda: sums(3)) != twice(outcome, lambda: sums(100))


def test_frames_within_a_text_are_told_apart(spark, outcome):
    one, two = spark.range(2), spark.range(5)
    text = "select (select count(*) from {a}) as a, (select count(*) from {b}) as b"
    assert twice(outcome, lambda: spark.sql(text, a=one, b=two).collect())[0] == (2, 5)
    assert twice(outcome, lambda: spark.sql(text, a=two, b=one).collect())[0] == (5, 2)


def test_a_column_of_such_a_frame(spark, outcome):
    def program():
        made = spark.sql("select id from {a}", a=spark.range(3))
        return made.select(made["id"] + 1).collect()

    twice(outcome, program)


@engines.only_sail  # on Spark: tables/
def test_a_read_by_path(spark, outcome, log):
    text = f"select count(*) from parquet.`{log}`"
    first = twice(outcome, lambda: spark.sql(text).collect())
    write_day(log, 3)
    changed, what, _ = outcome(spark.sql(text).collect)
    assert what == "computed"
    assert changed != first


REFUSED = {
    "select rand() as r": "each time",
    "select current_timestamp() as t": "clock",
    "select current_date as d": "clock",
    "select current_user() as u": "who runs",
    "select * from range(3)": "table-valued",
    "select * from clicks tablesample (50 percent)": "sample",
    "select * from global_temp.nowhere": "seen to make",
    "select unknown_function(1)": "not known",
    "with x as (table clicks) select count(*) as n from x": "TABLE",
    "select count(*) as n from (table clicks)": "TABLE",
    "select (table clicks) as n": "TABLE",
    "select 1 as n |> as clicks |> join clicks on true |> aggregate count(*) as n": "pipe",
    "select '${spark.app.name}' as n": "variables",
    "select * from text.`/tmp/${mine}`": "variables",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(clicks, enabled, text):
    for _ in range(2):
        clicks.range(1).count()
        before = nectar.last_run()
        try:
            clicks.sql(text).collect()
        except Exception:
            if nectar.last_run() is before:  # the server knew better, before there was anything to reuse
                continue
        part = nectar.last_run().parts[-1]
        assert part.outcome == "uncacheable"
        assert REFUSED[text] in part.reason


def test_sqlglot_is_not_imported_without_a_text(home, tmp_path, address):
    program = f"""
import sys, nectar
nectar.enable(home=sys.argv[1], reserve=0)
{engines.session_at(address)}
assert spark.range(3).filter("id > 1").count() == 1
assert "nectar.dialects.spark.sql.queries" in sys.modules
assert "sqlglot" not in sys.modules
spark.sql("select 1").collect()
assert "sqlglot" in sys.modules
"""
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "program.py", str(home)]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": SOURCE}, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
