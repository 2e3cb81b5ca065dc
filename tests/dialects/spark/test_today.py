"""Texts with a time of day become timestamps of today: results that may hold one are those of a day."""

import datetime

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import Window
from pyspark.sql import functions as F
from tests.dialects.spark import engines

import nectar
from nectar import session
from nectar.catalog.keeper import Keeper
from nectar.clock import ManualClock
from nectar.dialects.spark import function_types
from nectar.dialects.spark.day import day_of
from nectar.dialects.spark.function_names import KNOWN, SINCE_4_3

pytestmark = pytest.mark.small
MOMENT = datetime.datetime(2024, 5, 1, 12)
BY_WHO = Window.partitionBy("who")
DAY = 24 * 60 * 60


@pytest.fixture
def clock(enabled, monkeypatch):
    """A clock that stands still, so that no day ends during a test."""
    made = ManualClock(enabled.clock.now())
    monkeypatch.setattr(enabled, "clock", made)
    return made


@pytest.fixture
def shifts(tmp_path):
    """Files of two tables, in which start is a text and since a timestamp."""
    whole = {
        "who": ["ann", "bob"], "start": ["10:30", "11:45"], "n": [1, 2], "born": [datetime.date(1990, 1, 1)] * 2,
        "since": pa.array([MOMENT] * 2, pa.timestamp("us", "UTC")),
    }  # fmt: skip
    pa.parquet.write_table(pa.table(whole), tmp_path / "shifts.parquet")
    pa.parquet.write_table(pa.table({"who": ["ann"], "at": whole["since"][:1]}), tmp_path / "calls.parquet")
    (tmp_path / "shifts.csv").write_text("who,start\nann,10:30\nbob,11:45\n")
    return tmp_path


def table(spark, folder, name="shifts"):
    return spark.read.parquet(str(folder / f"{name}.parquet"))


def written(spark, folder):
    return spark.read.csv(str(folder / "shifts.csv"), header=True)


def viewed(spark, folder, query):
    table(spark, folder).createOrReplaceTempView("shifts")
    table(spark, folder, "calls").createOrReplaceTempView("calls")
    return spark.sql(query)


DATED = {
    "a cast": lambda s, f: table(s, f).select(F.col("start").cast("timestamp")),
    "a cast of a column of CSV": lambda s, f: written(s, f).select(F.col("start").cast("timestamp")),
    "a cast that may fail": lambda s, f: table(s, f).select(F.col("start").try_cast("timestamp")),
    "a cast in a text": lambda s, f: table(s, f).selectExpr("cast(start as timestamp)"),
    "a cast with signs": lambda s, f: table(s, f).selectExpr("start::timestamp"),
    "a cast of a part": lambda s, f: table(s, f).select(F.array("start").cast("array<string>")[0].cast("timestamp")),
    "a cast of what was made": lambda s, f: table(s, f).select(F.trim("start").alias("t")).select(
        F.col("t").cast("timestamp")
    ),
    "to_timestamp": lambda s, f: table(s, f).select(F.to_timestamp("start")),
    "try_to_timestamp": lambda s, f: table(s, f).select(F.try_to_timestamp("start")),
    "from_utc_timestamp": lambda s, f: table(s, f).select(F.from_utc_timestamp("start", "UTC")),
    "a call by name": lambda s, f: table(s, f).select(F.call_function("to_timestamp", F.col("start"))),
    "a comparison": lambda s, f: table(s, f).filter(F.col("start") > F.col("since")),
    "a comparison with a constant": lambda s, f: table(s, f).filter(F.col("start") > F.lit(MOMENT)),
    "a literal": lambda s, f: table(s, f).filter(F.col("since") < "10:30"),
    "a choice": lambda s, f: table(s, f).select(F.coalesce("since", "start")),
    "a case": lambda s, f: table(s, f).select(F.when(F.col("n") > 1, F.col("since")).otherwise(F.col("start"))),
    "one of several": lambda s, f: table(s, f).filter(F.col("start").isin(MOMENT)),
    "an interval": lambda s, f: table(s, f).select(F.col("start") + F.expr("interval 1 day")),
    "what lies between two dates": lambda s, f: table(s, f).select(F.col("start") + (F.col("born") - F.col("born"))),
    "a comparison in a text": lambda s, f: table(s, f).filter("start < since"),
    "a comparison in brackets": lambda s, f: table(s, f).filter("n > 0 and (who = 'x' or start < since)"),
    "bounds in a text": lambda s, f: table(s, f).filter("since between '2020-01-01' and start"),
    "a join": lambda s, f: table(s, f).join(table(s, f, "calls"), F.col("start") < F.col("at")),
    "a join of columns of one name": lambda s, f: table(s, f).select("start").join(
        table(s, f, "calls").select(F.col("at").alias("start")), "start", "left"
    ),
    "a field": lambda s, f: table(s, f).select(F.struct("start").alias("n"), "since", F.col("n").alias("start"))
    .filter(F.col("n.start") < F.col("since")),
    "a name with a point": lambda s, f: table(s, f).select(
        F.col("start").alias("n.start"), "since", F.col("n").alias("start")
    ).filter(F.col("`n.start`") < F.col("since")),
    "a type that is not known": lambda s, f: table(s, f).select(F.max("start").alias("a"), F.max("since").alias("b"))
    .select(F.greatest(F.reverse(F.reverse("a")), "b")).limit(0),
    "SQL: a cast": lambda s, f: viewed(s, f, "select cast(start as timestamp) as t from shifts"),
    "SQL: a function": lambda s, f: viewed(s, f, "select to_timestamp(start) as t from shifts"),
    "SQL: a comparison": lambda s, f: viewed(s, f, "select who from shifts where start < since"),
    "SQL: a case": lambda s, f: viewed(s, f, "select case when n > 1 then since else start end as t from shifts"),
    "SQL: a literal": lambda s, f: viewed(s, f, "select who from shifts where since > '10:30'"),
    "SQL: of what is made in it": lambda s, f: viewed(
        s, f, "select who from (select who, upper(start) as u, since from shifts) where u < since"
    ),
    "SQL: a field of a struct": lambda s, f: viewed(
        s, f, "select n.start from (select struct(start) as n, since from shifts) where n.start < since"
    ),
    "SQL: what lies between two dates": lambda s, f: viewed(s, f, "select start + (born - born) as t from shifts"),
    "SQL: a view that does": lambda s, f: (
        viewed(s, f, "select who, cast(start as timestamp) as t from shifts").createOrReplaceTempView("times"),
        s.sql("select who from times where t is not null"),
    )[1],
}  # fmt: skip

THE_SAME_TOMORROW = {
    "a filter by a date": lambda s, f: table(s, f).filter(F.col("since") > "2024-01-01"),
    "a filter by a moment": lambda s, f: table(s, f).filter(F.col("since") > F.lit(MOMENT)),
    "a column that is made anew": lambda s, f: table(s, f).withColumn("start", F.to_timestamp("start", "HH:mm"))
    .filter(F.col("start") < F.col("since")),
    "one of two conditions in a text": lambda s, f: table(s, f).filter("since < '2024-01-01' or (who = 'x' and n > 1)"),
    "a filter in a text": lambda s, f: table(s, f).filter("since > '2024-01-01' and who = 'ann'"),
    "a pattern": lambda s, f: table(s, f).select(F.to_timestamp("start", "HH:mm")),
    "a date": lambda s, f: written(s, f).select(F.col("start").try_cast("date")),
    "a comparison of a text with a date": lambda s, f: table(s, f).filter(F.col("who") != F.col("start")),
    "parts of a timestamp": lambda s, f: table(s, f).select(F.year("since"), F.hour("since")),
    "text of a timestamp": lambda s, f: table(s, f).select(F.date_format("since", "y"), F.col("since").cast("string")),
    "a truncated timestamp": lambda s, f: table(s, f).groupBy(F.date_trunc("day", "since")).count(),
    "a timestamp of a number": lambda s, f: table(s, f).select(F.col("n").cast("timestamp")),
    "a join by texts": lambda s, f: table(s, f).join(table(s, f, "calls"), "who"),
    "a join by a condition": lambda s, f: table(s, f).alias("a").join(
        table(s, f, "calls").alias("b"), (F.col("a.who") == F.col("b.who")) & (F.col("since") <= F.col("at"))
    ),
    "a union": lambda s, f: table(s, f).union(table(s, f)),
    "a union by name": lambda s, f: table(s, f).select("who", "since").unionByName(
        table(s, f, "calls").select("who", F.col("at").alias("since"))
    ),
    "groups": lambda s, f: table(s, f).groupBy("who").agg(F.max("since").alias("last"), F.min("start"), F.sum("n")),
    "a case of texts": lambda s, f: table(s, f).select(F.when(F.col("since") > MOMENT, F.col("who")).otherwise("-")),
    "both together": lambda s, f: table(s, f).select(F.struct("who", "since"), F.max_by("who", "since").over(BY_WHO)),
    "texts of CSV": lambda s, f: written(s, f).groupBy("who").agg(F.max("start")),
    "a function of Python": lambda s, f: table(s, f).select(F.udf(lambda a, b: f"{a} {b}", "string")("start", "since")),
    "SQL: a filter": lambda s, f: viewed(s, f, "select who from shifts where since > '2024-01-01' and start = 'x'"),
    "SQL: a join": lambda s, f: viewed(
        s, f, "select s.who, count(*) as n from shifts s join calls c on s.who = c.who and since <= at group by s.who"
    ),
    "SQL: a case": lambda s, f: viewed(
        s, f, "select case when since > date '2024-01-01' then who else start end as t from shifts"
    ),
    "SQL: a view over another one": lambda s, f: (
        viewed(s, f, "select * from shifts where n > 0").createOrReplaceTempView("some"),
        s.sql("select a.who, b.n as m from some a join shifts b on a.n = b.n and a.since = b.since"),
    )[1],
    "a query over SQL": lambda s, f: viewed(s, f, "select who, start, since as t, n + 1 as m from shifts").filter(
        F.col("who") != F.col("start")
    ),
    "SQL: a union": lambda s, f: viewed(s, f, "select * from shifts union all select * from shifts"),
}  # fmt: skip


def last():
    return nectar.last_run().parts[-1]


def outcomes(frame, clock):
    """What becomes of a query: today, once more, and tomorrow."""
    found = []
    for seconds in (0, 0, DAY):
        clock.move(seconds)
        try:
            frame().collect()
        except Exception as error:  # then it is an error of the engine, each time
            found.append(type(error).__name__)
        else:
            found.append(last().outcome if last().outcome != "uncacheable" else last().reason)
        session.current().settle()
    return found


@pytest.mark.parametrize("name", DATED)
def test_a_result_that_may_depend_on_the_day_is_not_found_on_the_next(spark, clock, shifts, name):
    found = outcomes(lambda: DATED[name](spark, shifts), clock)
    assert found in (["computed", "reused", "computed"], [found[0]] * 3), found
    assert found[2] != "reused"


@pytest.mark.parametrize("name", THE_SAME_TOMORROW)
def test_a_result_that_does_not_depend_on_the_day_is_found_on_the_next(spark, clock, shifts, name):
    found = outcomes(lambda: THE_SAME_TOMORROW[name](spark, shifts), clock)
    assert found == ["computed", "reused", "reused"], last().reason


def test_engines_do_take_times_of_day_for_those_of_today(spark, shifts):
    nectar.disable()
    rows = table(spark, shifts).select(F.col("start").cast("timestamp").cast("string").alias("t")).collect()
    assert {row.t[10:] for row in rows} == {" 10:30:00", " 11:45:00"}
    assert rows[0].t[:4] == str(datetime.datetime.now().year)


@engines.only_sail
@pytest.mark.parametrize("schema", [None, "who string, start timestamp", "who string, start date"])
def test_sail_gives_no_time_of_day_in_a_file_a_date(spark, shifts, schema):
    """If it learns to, reads of such files have the day in their keys, as they have on Spark."""
    nectar.disable()
    read = {"inferSchema": True} if schema is None else {"schema": schema}
    try:
        rows = spark.read.csv(str(shifts / "shifts.csv"), header=True, **read).collect()
    except Exception:
        return
    assert {row.start for row in rows} == {"10:30", "11:45"}


def test_a_text_becomes_no_date_of_today(spark, shifts):
    nectar.disable()
    rows = table(spark, shifts).select(F.col("start").try_cast("date").alias("d")).collect()
    assert {row.d for row in rows} == {None}


def test_what_runs_until_the_next_day_is_not_kept(spark, clock, shifts, monkeypatch):
    waiting = []
    monkeypatch.setattr(Keeper, "submit", lambda _, work, *more: waiting.append(work))
    DATED["a cast"](spark, shifts).collect()
    part = last()
    clock.move(DAY)
    waiting.pop()()
    assert part.keeping == "not kept: the date changed while it ran"


def test_what_depends_on_the_day_is_not_made_again_from_its_recipe(spark, clock, shifts, enabled):
    DATED["a cast"](spark, shifts).collect()
    THE_SAME_TOMORROW["a pattern"](spark, shifts).collect()
    enabled.settle()
    with enabled.looking() as catalog:
        kept = [each.rebuildable for each in catalog.index.entries()]
    assert sorted(kept) == [False, True]


# which day it is


def at(text, zone="", *, is_remote=False):
    moment = datetime.datetime.fromisoformat(text).timestamp()
    settings = {"spark.sql.session.timeZone": zone} if zone else {}
    return day_of(lambda: moment, settings, is_remote=is_remote).text


@pytest.mark.parametrize(
    ("zone", "before", "after"),
    [
        ("", "2024-05-01T23:59+00:00", "2024-05-02T00:01+00:00"),
        ("Asia/Tokyo", "2024-05-01T14:59+00:00", "2024-05-01T15:01+00:00"),
        ("America/New_York", "2024-05-01T03:59+00:00", "2024-05-01T04:01+00:00"),
        ("+05:45", "2024-05-01T18:14+00:00", "2024-05-01T18:16+00:00"),
        ("GMT-3", "2024-05-01T02:59+00:00", "2024-05-01T03:01+00:00"),
        ("a zone of Java", "2024-05-01T07:14+00:00", "2024-05-01T07:16+00:00"),
    ],
)
def test_a_day_ends_at_midnight_of_the_session(zone, before, after):
    assert at(before, zone) != at(after, zone)


def test_a_day_is_the_same_from_morning_to_evening():
    assert at("2024-05-01T16:00+00:00", "Asia/Tokyo") == at("2024-05-01T23:00+00:00", "Asia/Tokyo")
    assert at("2024-05-01T00:01+00:00") == at("2024-05-01T23:59+00:00")


def test_the_clock_of_another_machine_may_be_minutes_ahead():
    assert at("2024-05-01T23:58+00:00")
    assert not at("2024-05-01T23:58+00:00", is_remote=True)
    assert at("2024-05-01T23:50+00:00", is_remote=True)


def test_the_lists_name_functions_of_the_engine_and_give_each_one_type():
    given = [function_types.PLAIN, function_types.SAME, function_types.TEXTUAL, function_types.TIMELY]
    assert len(frozenset().union(*given)) == sum(map(len, given))
    listed = frozenset().union(*given, function_types.TAKES_TIMES, function_types.APART)
    assert listed - KNOWN - SINCE_4_3 == {"!=", "any", "if", "timestamp"}  # words of SQL
    assert function_types.BY_PATTERN | function_types.PARSES <= function_types.TAKES_TIMES
