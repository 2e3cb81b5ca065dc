"""Results are reused: in the same process, in another one, by another user; and only while they are right."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from unittest.mock import ANY

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType
from tests.dialects.spark import engines
from tests.dialects.spark.conftest import write_day

import nectar

OFFSET = 1
SOURCE = str(Path(nectar.__file__).parents[1])


def pages(spark, log):
    return spark.read.parquet(str(log)).groupBy("page").agg(F.sum("seconds").alias("seconds")).orderBy("page")


ACTIONS = {
    "collect": lambda df: df.collect(),
    "toPandas": lambda df: df.toPandas().to_dict(),
    "toArrow": lambda df: df.toArrow(),
    "toLocalIterator": lambda df: list(df.toLocalIterator()),
    "count": lambda df: df.count(),
    "first": lambda df: df.first(),
    "head": lambda df: df.head(2),
    "take": lambda df: df.take(2),
    "tail": lambda df: df.tail(1),
}


@pytest.mark.small
@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_gives_the_same_from_the_store(spark, log, outcome, name):
    nectar.disable()
    plain = ACTIONS[name](pages(spark, log))
    nectar.enable(home=log.parent / "home", reserve=0)
    first = ACTIONS[name](pages(spark, log))
    assert nectar.last_run().parts[-1].outcome == "computed"
    nectar.session.current().settle()
    again = ACTIONS[name](pages(spark, log))
    assert nectar.last_run().parts[-1].outcome == "reused"
    assert plain == first == again


@pytest.mark.small
def test_show_prints_the_same(spark, log, outcome, capsys):
    pages(spark, log).show()
    first = capsys.readouterr().out
    outcome(lambda: None)
    _, what, _ = outcome(pages(spark, log).show)
    assert what == "reused"
    assert capsys.readouterr().out == first != ""


@pytest.mark.small
def test_schemas_come_back_as_they_were(spark, outcome):
    schema = StructType([StructField("n", LongType(), False), StructField("m", LongType())])
    local = spark.createDataFrame([(1, None)], schema)
    made = local.select("n", "m", F.col("n").alias("n"), F.lit(float("nan")).alias("x"), F.array("n").alias("l"))
    first, _, _ = outcome(made.toArrow)
    again, what, _ = outcome(made.toArrow)
    assert what == "reused"
    assert again.schema.equals(first.schema, check_metadata=True)
    assert str(again) == str(first)


@pytest.mark.small
def test_an_empty_result_comes_back_empty(spark, outcome):
    made = spark.range(5).filter(F.col("id") > 9)
    assert outcome(made.collect)[:2] == ([], "computed")
    assert outcome(made.collect)[:2] == ([], "reused")
    assert outcome(made.toArrow)[0].num_rows == 0


def test_a_result_of_several_batches_comes_back_whole(spark, outcome):
    made = spark.range(200_000, numPartitions=4).withColumn("x", F.col("id") * 2)
    first, _, kept = outcome(made.toArrow)
    again, what, _ = outcome(made.toArrow)
    assert what == "reused", kept
    assert sorted(again["id"].to_pylist()) == sorted(first["id"].to_pylist()) == list(range(200_000))


def test_a_result_without_columns_is_not_kept(spark, outcome):
    for _ in range(2):
        assert outcome(lambda: len(spark.range(2).select().collect())) == (2, "computed", ANY)


def test_known_operations_are_not_released_at_the_server(spark, log, outcome):
    from nectar.dialects.spark.interceptor import Interceptor

    outcome(pages(spark, log).collect)
    outcome(pages(spark, log).collect)
    (interceptor,) = [each for each in _interceptors(spark) if isinstance(each, Interceptor)]
    for future in list(spark.client._release_futures):
        future.result()
    assert interceptor.looker._answered == set()
    assert interceptor.looker._recorded == {}


def _interceptors(spark):
    return [spark.client._channel._interceptor]


@pytest.mark.small
def test_a_query_that_fails_says_the_same(spark, outcome, home):
    made = spark.range(5).select("nothing")
    with pytest.raises(Exception, match="nothing") as under_nectar:
        made.collect()
    nectar.disable()
    with pytest.raises(Exception, match="nothing") as plain:
        made.collect()
    assert type(under_nectar.value) is type(plain.value)
    assert str(under_nectar.value) == str(plain.value)


# what must not be reused


@pytest.mark.small
def test_changed_files_are_read_again(spark, log, outcome):
    first, _, _ = outcome(pages(spark, log).collect)
    write_day(log, 1, times=3)
    changed, what, _ = outcome(pages(spark, log).collect)
    assert what == "computed"
    assert changed != first


@pytest.mark.small
def test_an_appended_file_is_read(spark, log, outcome):
    first, _, _ = outcome(pages(spark, log).count)
    write_day(log, 3)
    rows, what, _ = outcome(spark.read.parquet(str(log)).count)
    assert (rows, what) == (360, "computed")


@pytest.mark.small
def test_a_file_changed_while_it_is_read_is_not_kept(spark, log, outcome):
    def slow(batches):
        write_day(log, 1, times=9)
        yield from batches

    nectar.pure(slow)
    made = spark.read.parquet(str(log)).mapInPandas(slow, "page string, seconds long, day long")
    assert outcome(made.count)[1] == "computed"
    kept = nectar.last_run().parts[-1].keeping
    assert kept.startswith("not kept")
    assert "rewritten" in kept


def test_a_file_that_comes_while_it_is_read_is_noticed(spark, log, outcome):
    def adding(batches):
        write_day(log, 7)
        yield from batches

    nectar.pure(adding)
    outcome(spark.read.parquet(str(log)).mapInPandas(adding, "page string, seconds long, day long").count)
    assert "came or went" in nectar.last_run().parts[-1].keeping


def test_a_function_that_changes_while_it_runs_is_noticed(spark, outcome, monkeypatch):
    made = spark.range(2).select(F.udf(lambda n: n + OFFSET, "long")("id").alias("n"))
    from nectar.dialects.spark import keyed

    monkeypatch.setattr(keyed, "is_still", lambda function: False)
    outcome(made.collect)
    assert "a function changed" in nectar.last_run().parts[-1].keeping


def test_whether_a_function_is_still_the_same_is_seen(spark, outcome, monkeypatch):
    from nectar.dialects.spark import functions

    made = F.udf(lambda n: n + OFFSET, "long")
    outcome(spark.range(2).select(made("id")).collect)
    pickled = list(functions._remembered.values())[-1]
    assert functions.is_still(pickled)
    monkeypatch.setattr(sys.modules[__name__], "OFFSET", 5)
    assert not functions.is_still(pickled)


@pytest.mark.small
def test_settings_of_the_session_count(spark, outcome):
    made = spark.createDataFrame([("2020-01-01 00:00:00",)], ["t"]).select(F.hour(F.to_timestamp("t")).alias("h"))
    outcome(made.collect)
    assert outcome(made.collect)[1] == "reused"
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert outcome(made.collect)[1] == "computed"
    spark.conf.set("spark.sql.ansi.enabled", "false")
    assert outcome(made.collect)[1] == "computed"


def test_the_name_of_a_program_does_not_count(spark, outcome, new_session):
    outcome(spark.range(3).collect)
    other = new_session()
    other.conf.set("spark.app.name", "another")
    assert outcome(other.range(3).collect)[1] == "reused"


def test_a_session_made_before_nectar_was_enabled_runs_as_it_is(new_session, enabled, home):
    nectar.disable()
    old = new_session()
    nectar.enable(home=home, reserve=0)
    before = nectar.last_run()
    assert old.range(3).count() == 3
    assert nectar.last_run() is before


@pytest.mark.small
def test_nothing_is_noticed_while_nectar_is_off(spark, outcome):
    outcome(spark.range(3).collect)
    nectar.disable()
    before = nectar.last_run()
    assert len(spark.range(3).collect()) == 3
    assert nectar.last_run() is before


# other processes

PROGRAM = """
    import sys
    import nectar
    nectar.enable(reserve=0)
    from pysail.spark import SparkConnectServer
    server = SparkConnectServer()
    server.start(background=True)
    from pyspark.sql import SparkSession, functions as F
    import steps
    spark = SparkSession.builder.remote("sc://%s:%d" % server.listening_address).appName(sys.argv[2]).getOrCreate()
    clicks = spark.read.parquet(sys.argv[1])
    _ = [F.transform("page", lambda x: x) for _ in range(int(sys.argv[3]))]
    local = spark.createDataFrame([("a", 1), ("b", 2)], ["page", "weight"])
    made = clicks.join(local, "page").withColumn("more", F.udf(steps.more, "long")("seconds"))
    made = made.withColumn("l", F.transform(F.array("weight"), lambda x: x + 1)).filter("more > 3")
    print(sorted(map(tuple, made.select("page", "more", "weight", F.col("l")[0]).collect()))[:3])
    print(nectar.last_run().parts[-1].outcome, nectar.last_run().parts[-1].reason)
"""
STEPS = "import deeper\ndef more(n):\n    return deeper.add(n)\n"
DEEPER = "def add(n):\n    return n + 1\n"


def run(folder, log, home, name="p", hashseed="0", variables="0", deeper=DEEPER):
    folder.mkdir(exist_ok=True)
    (folder / "program.py").write_text(textwrap.dedent(PROGRAM))
    (folder / "steps.py").write_text(STEPS)
    (folder / "deeper.py").write_text(deeper)
    environment = {
        **os.environ, "PYTHONPATH": SOURCE, "NECTAR_HOME": str(home), "PYTHONHASHSEED": hashseed, "USER": name,
        "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "program.py", str(log), name, variables], cwd=folder, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows, what = done.stdout.strip().splitlines()
    return rows, what.strip()


@engines.only_sail  # Spark has its own, in test_spark_server.py
def test_another_process_user_and_folder_find_the_result(tmp_path, log, home):
    first, what = run(tmp_path / "alice", log, home, "alice")
    assert what.startswith("computed")
    assert run(tmp_path / "alice", log, home, "alice", "1") == (first, "reused")
    assert run(tmp_path / "bobbie", log, home, "bobbie", "2", variables="5") == (first, "reused")


@engines.only_sail  # Spark has its own, in test_spark_server.py
def test_a_function_edited_two_modules_deep_is_run_again(tmp_path, log, home):
    first, _ = run(tmp_path / "alice", log, home)
    edited, what = run(tmp_path / "alice", log, home, deeper=DEEPER.replace("+ 1", "+ 2"))
    assert what.startswith("computed")
    assert edited != first
    assert run(tmp_path / "alice", log, home, deeper="# noted\n" + DEEPER) == (first, "reused")


@pytest.mark.small
@engines.only_sail  # Spark has its own, in test_spark_server.py
def test_nectar_run_takes_an_unchanged_program(tmp_path, log, home):
    program = textwrap.dedent(PROGRAM)
    plain = "\n".join(line for line in program.splitlines() if "nectar" not in line)
    (tmp_path / "plain.py").write_text(plain)
    (tmp_path / "steps.py").write_text(STEPS)
    (tmp_path / "deeper.py").write_text(DEEPER)
    environment = {**os.environ, "PYTHONPATH": SOURCE, "NECTAR_HOME": str(home), "NECTAR_RESERVE": "0"}
    command = [sys.executable, "-m", "nectar.cli", "run", "plain.py", str(log), "x", "0"]
    runs = [
        subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout != ""
    assert "0 of 1 query from cache" in runs[0].stderr
    assert "1 of 1 query from cache" in runs[1].stderr
