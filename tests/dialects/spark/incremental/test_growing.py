"""Files come: only they are read, and the answer is that of plain Sail."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType
from tests.dialects.spark import engines
from tests.dialects.spark.incremental.days import clicks, grown, later, pages, write

import nectar


def small(spark):
    return spark.createDataFrame([("a", 1), ("b", 2), ("b", 3), ("z", 4)], ["page", "weight"])


STATES = {
    "count": lambda df: df.groupBy("page").count(),
    "all": lambda df: df.groupBy("page").agg(
        F.count("n").alias("c"), F.sum("n").alias("s"), F.min("n").alias("least"), F.max("t").alias("last"),
        F.avg("n").alias("mean"), F.sum("x").alias("sx"), F.avg("x").alias("mx"), F.sum("d").alias("sd"),
        F.max("d").alias("md"), F.min("page").alias("p"), F.max("x").alias("largest"),
    ),
    "truth": lambda df: df.groupBy("page").agg(F.bool_and("ok"), F.bool_or("ok"), F.every("ok"), F.some("ok")),
    "bits": lambda df: df.groupBy("page").agg(F.bit_and("n"), F.bit_or("n"), F.bit_xor("n")),
    "counts": lambda df: df.groupBy("ok").agg(F.count_if(F.col("n") > 3), F.count("*"), F.count(F.lit(1))),
    "distinct values": lambda df: df.groupBy("ok").agg(*map(F.count_distinct, ("n", "page", "t", "d"))),
    "spread": lambda df: df.groupBy("page").agg(
        F.stddev("x"), F.var_pop("n"), F.variance("x"), F.stddev_pop("x"), F.var_samp("d"), F.std("n"),
    ),
    "of everything": lambda df: df.agg(F.sum("n"), F.count("page"), F.avg("x"), F.stddev("x"), F.count_distinct("n")),
    "selected": lambda df: df.select(F.sum("n").alias("s"), (F.max("x") - F.min("x")).alias("range")),
    "expressions": lambda df: df.groupBy((F.col("n") % 3).alias("k"), "page").agg(
        (F.sum("n") / F.count("*")).alias("r"), F.round(F.avg("x"), 2).alias("m"),
        F.concat("page", F.lit("!")).alias("p"), F.coalesce(F.sum("n"), F.lit(0)).cast("string").alias("text"),
    ),
    "unnamed": lambda df: df.groupBy("page").agg(F.sum("n"), F.sum(F.col("n") + 1), F.avg("n")),
    "by name": lambda df: df.groupBy("page").agg({"n": "sum", "x": "max"}),
    "by several": lambda df: df.groupBy("t", "ok", "d").count(),
    "by nothing": lambda df: df.groupBy().count(),
    "above": lambda df: df.groupBy("page").agg(F.sum("n").alias("s")).filter("s > 3").orderBy(F.desc("s")).limit(2),
    "renamed": lambda df: df.groupBy("page").agg(F.sum("n").alias("s")).withColumn("s", F.col("s") * 2).toDF("p", "q"),
    "distinct": lambda df: df.select("page", "n").distinct(),
    "distinct, counted": lambda df: df.select("page", "n").distinct().groupBy("page").count(),
    "largest": lambda df: df.select("page", "x").orderBy(F.desc("x")).limit(7),
    "after filters": lambda df: df.filter("n > 3 and ok").withColumn("m", F.col("n") * 2).groupBy("page").sum("m"),
    "exploded": lambda df: df.select("page", F.explode("l").alias("e")).groupBy("page", "e").count(),
    "by functions": lambda df: df.withColumn("m", F.udf(lambda n: f"{n}!", "string")("n")).groupBy("m").count(),
    "ranked above": lambda df: df.groupBy("page").agg(F.sum("n").alias("s")).withColumn("r", ranks("s")),
    "aggregated above": lambda df: df.groupBy("page").agg(F.sum("n").alias("s")).agg(F.sum("s"), F.max("s")),
    "names twice": lambda df: df.groupBy("page").agg(F.sum("n").alias("a"), F.max("n").alias("a")),
    "names in capitals": lambda df: df.groupBy("PAGE").agg(F.sum("N").alias("A"), F.max("n").alias("a")),
    "keys again": lambda df: df.groupBy(F.upper("page")).agg(F.upper("page").alias("u"), F.max("page"), F.count("n")),
    "small numbers": lambda df: df.select(F.col("x").cast("float").alias("f"), F.col("n").cast("short").alias("h")).agg(
        F.sum("f"), F.avg("f"), F.max("f"), F.stddev("f"), F.sum("h"), F.avg("h"), F.min("h"), F.bit_xor("h"),
    ),
    "nothing but nulls": lambda df: df.withColumn("z", F.lit(None).cast("long")).groupBy("page").agg(
        F.sum("z"), F.avg("z"), F.max("z"), F.count("z"), F.count_distinct("z"), F.stddev("z"), F.bit_or("z"),
    ),
    "decimals": lambda df: df.groupBy("page").agg(
        (F.sum("d") * 2).alias("a"), (F.sum("d") / F.count("d")).alias("b"), F.sum(F.col("d") * F.col("d")).alias("c"),
    ),
    "limits of limits": lambda df: df.select("x").orderBy("x").limit(9).orderBy(F.desc("x")).limit(3),
    "nulls last": lambda df: df.select("n", "x").orderBy(F.col("n").asc_nulls_last(), F.desc("x")).limit(6),
    "by pandas": lambda df: df.withColumn("m", doubled("x")).groupBy("page").agg(F.sum("m").alias("s")),
}  # fmt: skip
ROWS = {
    "filter": lambda df: df.filter("n > 3").select("page", "n"),
    "columns": lambda df: df.select("page", "x").withColumn("y", F.col("x") * 2).drop("x"),
    "sorted": lambda df: df.select("page", "x").orderBy("x"),
    "exploded": lambda df: df.select("n", F.explode("l").alias("e")),
    "missing": lambda df: df.select("page", "n").fillna({"n": 0}).dropna(),
    "function": lambda df: df.select(F.udf(lambda n: str(n), "string")("n").alias("text")),
    "all columns": lambda df: df.drop("l").dropna(),
    "unpivoted": lambda df: df.select("page", "n", "d").unpivot("page", ["n"], "what", "value"),
}


def ranks(column):
    return F.rank().over(Window.orderBy(column))


@F.pandas_udf(DoubleType())
def doubled(values: pd.Series) -> pd.Series:
    return values * 2


@pytest.mark.parametrize("name", STATES)
def test_states_of_new_files_are_merged(compared, folder, name):
    read = grown(compared, folder, lambda spark: STATES[name](clicks(spark, folder)))
    assert read[1:] == [["day-4.parquet"], ["day-5.parquet"]]


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_new_files_are_added(compared, folder, name):
    read = grown(compared, folder, lambda spark: ROWS[name](clicks(spark, folder)))
    assert read[1:] == [["day-4.parquet"], ["day-5.parquet"]]


@pytest.mark.parametrize("name", ["all", "distinct values", "spread", "by several", "distinct", "largest", "above"])
def test_many_rows_go_by_a_file(compared, folder, monkeypatch, name):
    from nectar.dialects.spark.incremental import tables

    monkeypatch.setattr(tables, "MOST_SENT", 0)
    read = grown(compared, folder, lambda spark: STATES[name](clicks(spark, folder)))
    assert read[1:] == [["day-4.parquet"], ["day-5.parquet"]]


def test_programs_that_take_little_are_computed_as_they_are(compared, folder, monkeypatch):
    from nectar.dialects.spark.incremental import growing

    monkeypatch.setattr(growing, "LEAST_PLANS", 6000)
    assert grown(compared, folder, lambda spark: STATES["count"](clicks(spark, folder))) == [None] * 3


def test_reports_and_records_tell_the_parts(compared, enabled, folder):
    grown(compared, folder, lambda spark: STATES["count"](clicks(spark, folder)))
    *parts, whole = nectar.last_run().parts
    assert [part.outcome for part in parts] == ["reused"]
    assert parts[0].name.startswith("state of aggregate of read parquet")
    assert parts[0].name.endswith("4 files")
    assert (whole.outcome, whole.reason) == ("computed", "put together from 1 known part and what is new")
    states = [entry for entry in enabled.catalog.index.entries() if entry.about.startswith("state of")]
    assert sorted(entry.spans[0].count for entry in states) == [1, 1, 3, 4, 5]


UNITED = {
    "states": lambda df: df.select("page", "n").union(df.filter("ok").select("page", "n")).groupBy("page").sum("n"),
    "rows": lambda df: df.select("page", "n").unionByName(df.select("n", "page")),
}


@pytest.mark.parametrize("name", UNITED)
def test_files_that_are_read_twice_are_cut_in_both_places(compared, folder, name):
    read = grown(compared, folder, lambda spark: UNITED[name](clicks(spark, folder)))
    assert read[1:] == [["day-4.parquet"] * 2, ["day-5.parquet"] * 2]


JOINS = {
    "inner": lambda df, other: df.join(other, "page"),
    "inner, the other way": lambda df, other: other.join(df, "page"),
    "left": lambda df, other: df.join(other, "page", "left"),
    "right": lambda df, other: other.join(df, "page", "right"),
    "semi": lambda df, other: df.join(other, "page", "left_semi"),
    "anti": lambda df, other: df.join(other, "page", "left_anti"),
    "broadcast": lambda df, other: df.join(F.broadcast(other), "page"),
    "by condition": lambda df, other: df.join(other, df["n"] > other["weight"]).drop(other["page"]),
    "cross": lambda df, other: df.crossJoin(other.select("weight")),
}


@pytest.mark.small
@pytest.mark.parametrize("name", JOINS)
def test_joins_with_what_does_not_grow(compared, folder, name):
    def program(spark):
        joined = JOINS[name](clicks(spark, folder), small(spark))
        return joined.groupBy("page").agg(F.count("*").alias("c"), F.sum("n").alias("s"))

    assert grown(compared, folder, program)[1:] == [["day-4.parquet"], ["day-5.parquet"]]


def test_joined_files_that_do_not_grow_are_read_each_time(compared, folder, tmp_path):
    other = tmp_path / "pages.parquet"
    pa.parquet.write_table(pa.table({"page": ["a", "b"], "title": ["A", "B"]}), other)
    later(other, -100)

    def program(spark):
        return clicks(spark, folder).join(spark.read.parquet(str(other)), "page").groupBy("title").count()

    assert grown(compared, folder, program)[1] == ["day-4.parquet", "pages.parquet"]
    pa.parquet.write_table(pa.table({"page": ["a", "b"], "title": ["A", "C"]}), other)
    later(other, 90)
    assert compared(program) == [f"day-{day}.parquet" for day in range(1, 6)] + ["pages.parquet"]


def test_a_text_over_a_frame_beside_files_that_grow(compared, folder):
    """It is sent together with the frame, and stands in a plan beside what is put together."""

    def program(spark):
        titles = spark.sql("select page, weight from {small} where weight < 9", small=small(spark))
        return pages(folder)(spark).join(titles, "page")

    assert grown(compared, folder, program)[1:] == [["day-4.parquet"], ["day-5.parquet"]]


def test_a_query_within_a_query_beside_files_that_grow(compared, folder):
    def program(spark):
        heavy = small(spark).filter(F.col("weight") > small(spark).select(F.min("weight")).scalar())
        return pages(folder)(spark).join(heavy, "page")

    assert grown(compared, folder, program)[1:] == [["day-4.parquet"], ["day-5.parquet"]]


WHOLE = {
    "a full join": lambda df, other: df.join(other, "page", "full").groupBy("page").count(),
    "a left join from the other side": lambda df, other: other.join(df, "page", "left").groupBy("page").count(),
    "first values": lambda df, other: df.groupBy("page").agg(F.count("*"), F.first("page")),
    "medians": lambda df, other: df.groupBy("page").agg(F.median("n")),
    "distinct sums": lambda df, other: df.groupBy("page").agg(F.sum_distinct("n")),
    "values by others": lambda df, other: df.groupBy("page").agg(F.max_by("n", "x")),
    "numbers of rows": lambda df, other: df.select(ranks("x").alias("r")).groupBy("r").count(),
    "rows after others": lambda df, other: df.select("x").orderBy("x").offset(3).limit(5),
    "pivots": lambda df, other: df.groupBy("ok").pivot("page", ["a", "b"]).sum("n"),
    "lists": lambda df, other: df.groupBy("ok").agg(F.sort_array(F.collect_set("page"))),
    "what is random": lambda df, other: df.withColumn("r", F.rand()).agg(F.count("r")),
    "a limit without an order": lambda df, other: df.select("page").limit(200),
    "a limit of rows in order somewhere": lambda df, other: df.select("x").sortWithinPartitions("x").limit(300),
    "a join with itself": lambda df, other: df.join(df.groupBy("page").agg(F.max("n").alias("n")), ["page", "n"]),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_what_cannot_be_merged_is_computed_as_a_whole(compared, folder, name):
    read = grown(compared, folder, lambda spark: WHOLE[name](clicks(spark, folder), small(spark)))
    if name == "a join with itself":  # the largest values of the pages are put together, the rest is not
        assert all("day-1.parquet" in files for files in read)
    else:
        assert read == [None] * 3


def test_pivots_and_rollups_are_computed_as_a_whole(compared, folder):
    assert grown(compared, folder, lambda spark: clicks(spark, folder).rollup("page").count()) == [None] * 3


# actions


ACTIONS = {
    "show": lambda df: df.show(),
    "show a few": lambda df: df.orderBy("page").show(2, truncate=False),
    "count": lambda df: df.count(),
    "collect": lambda df: sorted(map(repr, df.collect())),
    "sorted": lambda df: df.orderBy("s", "page").collect(),
    "toPandas": lambda df: df.orderBy("page").toPandas().to_dict(),
    "first": lambda df: df.orderBy("page").first(),
    "take": lambda df: df.orderBy(F.desc("page")).take(2),
    "tail": lambda df: df.orderBy("page").tail(2),
    "toLocalIterator": lambda df: sorted(map(repr, df.toLocalIterator())),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_actions(plain, enabled, spark, sent, folder, capsys, name):
    for day in range(1, 6):
        write(folder, day)
        answers = []
        for each in (spark, plain):
            answers.append((ACTIONS[name](pages(folder)(each).orderBy("page")), capsys.readouterr().out))
            enabled.settle()
        assert answers[0] == answers[1]
    assert ["day-5.parquet"] in sent
    assert sent.count(["day-1.parquet"]) == 0


def test_a_few_rows_in_order_are_shown(plain, enabled, spark, sent, folder, capsys):
    for day in range(1, 6):
        write(folder, day)
        for each in (spark, plain):
            clicks(each, folder).select("x", "page").orderBy(F.desc("x")).limit(30).show()
            enabled.settle()
        shown = capsys.readouterr().out
        assert shown[: len(shown) // 2] == shown[len(shown) // 2 :]
    assert ["day-5.parquet"] in sent


# other parts that are known


@engines.only_sail  # what Spark has cached stays as it is, also for the session without Nectar
def test_known_results_of_all_files_are_no_parts(compared, folder):
    """A result that others have kept, of a step between files and aggregates, is of all files, and not of new ones."""

    def program(spark):
        cleaned = clicks(spark, folder).filter("n > 2").select("page", "n")
        cleaned.cache()
        return cleaned.groupBy("page").agg(F.sum("n").alias("s"), F.count("*").alias("c"))

    def other(spark):
        return clicks(spark, folder).filter("n > 2").select("page", "n").distinct()

    for day in range(1, 7):
        write(folder, day)
        for each in (other, program) if day % 2 else (program, other):
            compared(each)


def test_a_side_that_is_known(compared, folder, tmp_path):
    other = tmp_path / "pages.parquet"
    pa.parquet.write_table(pa.table({"page": ["a", "b", "b"], "title": ["A", "B", "B"]}), other)
    later(other, -100)

    def program(spark):
        titles = spark.read.parquet(str(other)).distinct()
        titles.cache()
        return clicks(spark, folder).join(titles, "page").groupBy("title").count()

    grown(compared, folder, program)


# programs that are not put together


def test_a_function_that_has_the_name_of_one_of_the_engine(compared, spark, folder):
    """Sail takes it for its own, and what is sent for merging calls more functions than the program does."""
    spark.udf.register("sum", lambda n: 0, "long")
    counts = lambda spark: clicks(spark, folder).groupBy("page").count()  # noqa: E731
    assert grown(compared, folder, counts) == [None] * 3


def test_what_cannot_be_put_together_is_not_tried_for_ever(compared, folder, sent, monkeypatch):
    from nectar.dialects.spark.incremental import growing

    tried = []

    def fails(self, pieces):
        tried.append(pieces)
        raise ValueError("it cannot be merged")

    monkeypatch.setattr(growing._Work, "merged", fails)
    grown(compared, folder, pages(folder), then=range(3, 9))
    assert len(tried) == 2


def test_an_error_of_the_program_is_told_as_it_is(plain, enabled, spark, sent, folder):
    def fails(n):
        if n == 5:
            raise ValueError("five is too much")
        return n

    made = F.udf(fails, "long")
    for day in (1, 2, 3):
        write(folder, day, 3)
        clicks(spark, folder).select(made("n").alias("n")).groupBy("n").count().collect()
        enabled.settle()
    write(folder, 4, 60)
    errors = []
    for each in (spark, plain):
        with pytest.raises(Exception, match="five") as caught:
            clicks(each, folder).select(made("n").alias("n")).groupBy("n").count().collect()
        errors.append(caught.value)
    assert type(errors[0]) is type(errors[1])


def test_columns_of_a_certain_frame(compared, folder):
    def program(spark):
        df = clicks(spark, folder)
        made = df.filter(df["n"] > 2).groupBy(df["page"]).agg(F.sum(df["n"]).alias("s"))
        return made.select(made["page"], made["s"] + 1)

    assert grown(compared, folder, program)[1:] == [["day-4.parquet"], ["day-5.parquet"]]


def test_aliases_above(compared, folder):
    def program(spark):
        df = clicks(spark, folder).alias("a")
        return df.groupBy("a.page").agg(F.sum("a.n").alias("s")).select("s", "page")

    grown(compared, folder, program)


def test_a_sort_by_what_is_not_given(compared, folder):
    grown(compared, folder, lambda spark: clicks(spark, folder).select("page").orderBy("x").limit(3))


@pytest.mark.small
def test_a_part_that_was_lost_is_computed_again(compared, folder, home):
    grown(compared, folder, pages(folder))
    for path in (home / "data").rglob("*.arrow") if (home / "data").exists() else home.rglob("*.arrow"):
        path.unlink()
    write(folder, 6)
    compared(pages(folder))
    write(folder, 7)
    compared(pages(folder))


# other processes

PROGRAM = """
import sys
import nectar
nectar.enable(reserve=0)
{session}
from nectar.dialects.spark.incremental import growing
from nectar.catalog.rates import LearnedRates
from nectar.rewrite.cost import Rates
growing.LEAST_PLANS = 0  # however little it saves
growing.rates = dict.fromkeys(growing.rates, LearnedRates("nothing", Rates(0.0, 1e-6, 0.0, 0.0)))
made = spark.read.parquet(sys.argv[1]).groupBy("page").agg(F.sum("n").alias("s")).orderBy("page")
print(made.collect())
print(nectar.last_run().parts[-1].reason)
"""


def test_another_process_goes_on(folder, home, tmp_path, address):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(session=engines.session_at(address)))
    source = str(Path(nectar.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "NECTAR_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    told = []
    for day in range(1, 5):
        write(folder, day)
        done = subprocess.run(
            [sys.executable, str(program), str(folder)], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        told.append(done.stdout.strip().splitlines()[-1])
    assert told[-1] == "put together from 1 known part and what is new"
