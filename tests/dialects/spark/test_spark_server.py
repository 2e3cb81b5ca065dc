"""Spark itself, behind an address: where it differs from Sail, and what it remembers."""

import os
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from pyspark.sql.types import LongType
from tests.dialects.spark import engines
from tests.dialects.spark.conftest import write_day

import nectar
from nectar.dialects.spark import fresh, looking, sending

pytestmark = engines.only_spark
SOURCE = str(Path(nectar.__file__).parents[1])


def seconds(spark, log):
    return spark.read.parquet(str(log)).agg(F.sum("seconds").alias("s"), F.count("*").alias("n"))


# what Spark remembers


def test_a_file_appended_between_two_runs_of_a_session_is_read(spark, log, outcome):
    made = seconds(spark, log)
    (first,), what, _ = outcome(made.collect)
    assert (first.n, what) == (240, "computed")
    write_day(log, 3)
    (after,), what, _ = outcome(made.collect)
    assert (after.n, what) == (360, "computed")
    (log / "day-3.parquet").unlink()
    assert outcome(made.collect)[:2] == ([first], "reused")


def test_a_file_rewritten_between_two_runs_is_read(spark, log, outcome):
    made = seconds(spark, log)
    (first,), _, _ = outcome(made.collect)
    write_day(log, 1, times=2)
    (after,), what, _ = outcome(made.collect)
    assert what == "computed"
    assert after.s > first.s


def test_a_frame_that_another_session_has_cached_is_not_taken_for_the_files(spark, log, outcome, new_session):
    nectar.disable()
    other = new_session()
    cached = other.read.parquet(str(log)).cache()
    assert cached.count() == 240
    nectar.enable(home=log.parent / "home", reserve=0)
    write_day(log, 3)
    assert spark.read.parquet(str(log)).count() == 360
    assert nectar.last_run().parts[-1].outcome == "computed"
    cached.unpersist()


def test_without_the_option_answers_would_be_old_ones(spark, tmp_path, outcome, monkeypatch):
    """If this fails, Spark has changed: the option may no longer be needed."""
    monkeypatch.setattr(sending, "refreshed", lambda relation, states: relation)
    monkeypatch.setattr(looking, "grow", lambda *_: None)
    seen = []
    for attempt in range(4):  # it may have forgotten a plan, or more
        folder = tmp_path / str(attempt)
        folder.mkdir()
        write_day(folder, 2 * attempt)
        made = seconds(spark, folder)
        outcome(made.collect)
        write_day(folder, 2 * attempt + 1)
        (after,), what, _ = outcome(made.collect)
        assert what == "computed"
        seen.append(after.n)
    assert 120 in seen


def test_the_option_shows_in_nothing_that_a_program_sees(spark, log, outcome, new_session):
    frames = [
        spark.read.option("header", "true").csv(str(log.parent / "t.csv")),
        spark.read.json(str(log.parent / "t.json")),
    ]
    (log.parent / "t.csv").write_text("a,b\n1,x\n")
    (log.parent / "t.json").write_text('{"a": 1}\n')
    under = [(each.columns, each.collect()) for each in frames]
    nectar.disable()
    assert [(each.columns, each.collect()) for each in frames] == under


# large things


def test_compressed_plans_are_read(spark, log, outcome):
    pytest.importorskip("zstandard")
    spark.client._plan_compression_threshold, spark.client._plan_compression_algorithm = 0, "ZSTD"
    long = spark.read.parquet(str(log)).filter(F.col("page").isin([f"page {number}" for number in range(300)] + ["a"]))
    first, what, why = outcome(long.count)
    assert (first, what) == (80, "computed"), why
    assert outcome(long.count)[:2] == (80, "reused")
    write_day(log, 3)
    assert outcome(long.count)[:2] == (120, "computed")


def test_large_local_rows_count_by_content(spark, outcome):
    def large(last):
        return spark.createDataFrame([(number, "x" * 100) for number in range(50_000)] + [(0, last)], ["n", "t"])

    def longest(frame):
        return outcome(frame.agg(F.max("t").alias("t"), F.count("*").alias("n")).collect)

    first, what, why = longest(large("y"))
    assert (first[0].t, what) == ("y", "computed"), why
    assert longest(large("y"))[:2] == (first, "reused")
    rows, what, _ = longest(large("z"))
    assert (rows[0].t, what) == ("z", "computed")


# functions


def test_functions_of_a_module_are_refused_those_sent_along_are_not(spark, outcome):
    from tests.dialects.spark import engines

    _, what, why = outcome(spark.range(2).select(F.udf(lambda n: f"{n}{engines.ENGINE}", "string")("id")).collect)
    assert what == "uncacheable"
    assert "imports tests.dialects.spark.engines from files of its own" in why
    made = spark.range(2).select(F.udf(lambda n: n + 41, "long")("id"))
    first, what, why = outcome(made.collect)
    assert what == "computed", why
    assert outcome(made.collect)[:2] == (first, "reused")


def test_packages_of_the_server_count(spark, outcome, monkeypatch):
    from nectar.dialects.spark import workers

    made = spark.range(2).select(F.udf(lambda n: n + 43, "long")("id"))
    outcome(made.collect)
    assert outcome(made.collect)[1] == "reused"
    monkeypatch.setattr(workers, "digest_of_environment", lambda told: b"another")
    assert outcome(made.collect)[1] == "computed"
    assert outcome(spark.range(2).collect)[1] == "computed"


def test_other_sessions_of_a_server_need_not_ask_it_again_for_a_while(new_session, enabled, outcome, monkeypatch):
    from nectar.dialects.spark import elsewhere, workers

    asked = []
    ask = workers.environment_of
    monkeypatch.setattr(workers, "environment_of", lambda connection: asked.append(1) or ask(connection))
    double = F.udf(lambda n: 2 * n, LongType())
    run = lambda: outcome(new_session().range(2).select(double("id")).collect)[1]
    assert [run(), run(), run()] == ["computed", "reused", "reused"]
    assert len(asked) == 1
    monkeypatch.setattr(elsewhere, "_TRUSTED", -1)
    assert run() == "reused"
    assert len(asked) == 2


def test_a_session_with_other_settings_asks_by_itself(new_session, enabled, outcome, monkeypatch):
    from nectar.dialects.spark import workers

    told = iter(["one", "two"])
    monkeypatch.setattr(workers, "environment_of", lambda connection: next(told))
    double = F.udf(lambda n: 3 * n, LongType())
    assert outcome(new_session().range(2).select(double("id")).collect)[1] == "computed"
    other = new_session()
    other.conf.set("spark.sql.execution.pyspark.binaryAsBytes", "true")
    assert outcome(other.range(2).select(double("id")).collect)[1] == "computed"
    assert list(told) == []


def test_functions_may_import_files_that_were_sent(spark, outcome, tmp_path):
    double = F.udf(lambda n: 5 * n, "long")
    rows = spark.createDataFrame([(n,) for n in range(3)], "id long")
    assert outcome(rows.select(double("id")).collect)[1] == "computed"
    assert outcome(rows.select(double("id")).collect)[1] == "reused"
    (tmp_path / "colorsys.py").write_text("")
    spark.addArtifacts(str(tmp_path / "colorsys.py"), pyfile=True)
    _, what, why = outcome(rows.select(double("id")).collect)
    assert what == "uncacheable"
    assert "files were sent" in why
    assert outcome(rows.collect)[1] == "computed"
    assert outcome(rows.collect)[1] == "reused"


def test_also_those_of_the_session_that_a_session_was_cloned_from(spark, outcome, tmp_path):
    (tmp_path / "colorsys.py").write_text("")
    spark.addArtifacts(str(tmp_path / "colorsys.py"), pyfile=True)
    clone = spark.cloneSession()
    assert "files were sent" in outcome(clone.range(3).select(F.udf(lambda n: 7 * n, "long")("id")).collect)[2]


# words that Spark takes for something else


@pytest.mark.parametrize(
    "made",
    [
        lambda s: s.range(1).select(F.lit("now").cast("timestamp")),
        lambda s: s.range(1).select(F.to_timestamp(F.lit(" NOW "))),
        lambda s: s.range(1).select(F.concat(F.lit("no"), F.lit("w")).cast("timestamp")),
        lambda s: s.range(1).select(F.to_date(F.lower(F.lit("TODAY_")))),
        lambda s: s.range(1).withColumn("w", F.lit("no")).select(F.concat("w", F.lit("w")).cast("timestamp")),
        lambda s: s.range(1).selectExpr("cast(concat('no', 'w') as timestamp)"),
        lambda s: s.range(1).selectExpr("timestamp'now'"),
        lambda s: s.range(1).withColumn("w", F.reverse(F.lit("won"))).select(F.col("w").cast("timestamp")),
    ],
)  # fmt: skip
def test_words_for_the_time_of_the_run_are_refused(spark, enabled, made):
    with suppress(Exception):  # some of them are no moments after all
        made(spark).collect()
    assert nectar.last_run().parts[-1].outcome == "uncacheable"


def test_casts_of_columns_are_reused(spark, outcome):
    made = spark.createDataFrame([("2020-01-01",), ("2021-02-03",)], ["t"]).select(
        F.col("t").cast("date").alias("d"),
        F.to_timestamp("t").alias("s"),
        F.concat("t", F.lit(" 10:00:00")).cast("timestamp"),
    )
    first, what, why = outcome(made.collect)
    assert what == "computed", why
    assert outcome(made.collect)[:2] == (first, "reused")


def test_a_column_that_is_a_variable_is_refused(spark, outcome):
    made = spark.range(1).select(F.col("mine"))
    spark.sql("DECLARE VARIABLE mine INT DEFAULT 1").collect()
    first, what, why = outcome(made.collect)
    assert (first[0].mine, what) == (1, "uncacheable"), why
    spark.sql("SET VAR mine = 2").collect()
    assert outcome(made.collect)[0][0].mine == 2


def test_code_of_the_server_is_refused(spark, outcome):
    made = spark.range(1).select(F.reflect(F.lit("java.util.UUID"), F.lit("randomUUID")))
    assert outcome(made.collect)[1] == "uncacheable"
    assert outcome(spark.range(1).selectExpr("java_method('java.util.UUID', 'randomUUID')").collect)[1] == "uncacheable"


@pytest.mark.parametrize("name", ["input_file_name", "input_file_block_start", "spark_partition_id"])
def test_what_depends_on_how_files_are_cut_is_refused(spark, log, outcome, name):
    assert outcome(spark.read.parquet(str(log)).select(getattr(F, name)()).collect)[1] == "uncacheable"


def test_metadata_of_files_is_refused(spark, log, outcome):
    made = spark.read.parquet(str(log)).select("_metadata.file_path")
    assert outcome(made.collect)[1] == "uncacheable"


# files


def test_partitions_are_part_of_the_answer(spark, log, outcome):
    folder = log.parent / "parts"
    for value in ("1", "2"):
        (folder / f"k={value}").mkdir(parents=True)
        write_day(folder / f"k={value}", 1)
    made = spark.read.parquet(str(folder)).groupBy("k").count().orderBy("k")
    first, what, _ = outcome(made.collect)
    assert ([row.k for row in first], what) == ([1, 2], "computed")
    assert outcome(made.collect)[:2] == (first, "reused")
    (folder / "k=2").rename(folder / "k=x")  # now the column is a string
    after, what, _ = outcome(made.collect)
    assert ([row.k for row in after], what) == (["1", "x"], "computed")


def test_hidden_files_change_no_answer(spark, log, outcome):
    made = seconds(spark, log)
    first, _, _ = outcome(made.collect)
    write_day(log, 3)
    (log / "day-3.parquet").rename(log / "_day-3.parquet")
    assert outcome(made.collect)[0] == first
    assert outcome(made.collect)[:2] == (first, "reused")


def test_a_path_of_the_servers_own_folder_is_refused(spark, log, outcome, monkeypatch):
    monkeypatch.chdir(log.parent)
    with pytest.raises(Exception, match="PATH_NOT_FOUND"):
        spark.read.parquet(log.name).count()
    assert "not absolute" in nectar.last_run().parts[-1].reason


# what the server sees


def test_the_server_of_these_tests_is_a_neighbour(spark, engine):
    from nectar.dialects.spark import neighbours, sight
    from nectar.dialects.spark.connections import connection_of

    if not Path("/proc/net/tcp").exists():
        pytest.skip("the system does not tell")
    assert neighbours.is_neighbour(engine.address.removeprefix("sc://"))
    assert sight.is_at_home(connection_of(spark.client))


def test_files_are_shown_to_be_the_same(spark, log, outcome, monkeypatch):
    from nectar.dialects.spark import sight

    monkeypatch.setattr(sight, "is_neighbour", lambda endpoint: False)
    (log / "_hidden").write_text("x")
    (log / "k=a b").mkdir()
    write_day(log / "k=a b", 3)
    made = spark.read.parquet(str(log / "k=a b")).agg(F.count("*"))
    first, what, why = outcome(made.collect)
    assert (first[0][0], what) == (120, "computed"), why
    assert outcome(made.collect)[:2] == (first, "reused")
    assert outcome(spark.read.parquet(str(log / "day-1.parquet")).count)[:2] == (120, "computed")
    monkeypatch.setattr(sight, "_there", lambda connection, root: {})
    assert outcome(made.collect)[1] == "reused"
    write_day(log / "k=a b", 4)
    _, what, why = outcome(made.collect)
    assert what == "uncacheable"
    assert "sees another" in why


def test_a_server_that_saw_other_files_meanwhile_keeps_nothing(spark, log, outcome, monkeypatch):
    from nectar.dialects.spark import sight

    monkeypatch.setattr(sight, "is_neighbour", lambda endpoint: False)
    seen = []
    plain = sight._there

    def changing(connection, root):
        seen.append(root)
        return plain(connection, root) if len(seen) == 1 else {}

    monkeypatch.setattr(sight, "_there", changing)
    for _ in range(2):
        assert outcome(spark.read.parquet(str(log)).count)[:2] == (240, "computed")
    assert "sees another" in nectar.last_run().parts[-1].keeping


# sessions


def test_a_clone_knows_what_the_session_was_taught(spark, log, outcome):
    assert outcome(spark.range(7).count)[1] == "computed"
    spark.udf.register("upper", lambda text: "mine")
    clone = spark.cloneSession()
    try:
        asked = lambda session: session.createDataFrame([("a",)], ["t"]).select(F.upper("t").alias("u")).collect
        assert outcome(asked(spark))[1] == "computed"
        assert outcome(asked(clone))[1] == "reused"
        clone.udf.register("upper", lambda text: "another")
        assert outcome(asked(clone))[1] == "computed"
    finally:
        clone.client.close()


def test_a_clone_under_a_given_name_may_be_shared(spark, outcome):
    import uuid

    assert spark.range(2).count() == 2  # the server has to know the session
    clone = spark.cloneSession(str(uuid.uuid4()))
    try:
        assert "any name" in outcome(clone.range(7).count)[2]
    finally:
        clone.client.close()


PROGRAM = """
    import sys
    from pyspark.sql import SparkSession, functions as F
    spark = SparkSession.builder.remote(sys.argv[1]).appName(sys.argv[3]).getOrCreate()
    def plus(n):
        return n + 1
    made = spark.read.parquet(sys.argv[2]).withColumn("more", F.udf(plus, "long")("seconds"))
    print(made.groupBy("page").agg(F.sum("more").alias("s")).orderBy("page").collect())
"""


def run(folder, address, log, home, name):
    folder.mkdir()
    (folder / "program.py").write_text(textwrap.dedent(PROGRAM))
    environment = {
        **os.environ, "PYTHONPATH": SOURCE, "NECTAR_HOME": str(home), "NECTAR_RESERVE": "0", "USER": name,
        "HOME": str(folder),
    }  # fmt: skip
    command = [sys.executable, "-m", "nectar.cli", "run", "program.py", address, str(log), name]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)


@engines.not_spark_4_2
def test_another_process_user_and_folder_find_the_result(tmp_path, address, log, home):
    first = run(tmp_path / "alice", address, log, home, "alice")
    assert "0 of 1 query from cache" in first.stderr
    again = run(tmp_path / "bobbie", address, log, home, "bobbie")
    assert again.stdout == first.stdout != ""
    assert "1 of 1 query from cache" in again.stderr


def test_the_option_is_the_one_that_is_sent(spark, log, outcome, monkeypatch):
    sent = []
    plain = sending.refreshed

    def noticing(relation, states):
        made = plain(relation, states)
        sent.append(made)
        return made

    monkeypatch.setattr(sending, "refreshed", noticing)
    outcome(spark.read.parquet(str(log)).collect)
    assert len(sent) == 1
    assert fresh.OPTION in sent[0].read.data_source.options


# frames that a session has cached


def test_a_cached_frame_is_the_one_that_queries_find(spark, log, outcome):
    frame = spark.read.parquet(str(log)).cache()
    assert outcome(frame.count)[:2] == (240, "computed")
    assert frame.is_cached
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert outcome(frame.count)[:2] == (240, "computed")
    assert outcome(frame.filter("seconds > 3").count)[1] == "computed"
    frame.unpersist()
    assert not frame.is_cached


def test_a_cached_frame_stays_as_it_was_when_its_files_change(spark, log, outcome, new_session):
    frame = spark.read.parquet(str(log)).cache()
    assert outcome(frame.count)[:2] == (240, "computed")
    write_day(log, 3)
    rows, what, why = outcome(frame.count)
    assert (rows, what) == (240, "uncacheable")
    assert "cached a frame" in why
    frame.write.parquet(str(log.parent / "written"))
    assert outcome(spark.read.parquet(str(log.parent / "written")).count)[0] == 240
    assert outcome(new_session().read.parquet(str(log)).count)[:2] == (360, "computed")
    frame.unpersist()
    assert outcome(spark.read.parquet(str(log)).count)[:2] == (360, "reused")


def test_a_cached_frame_is_the_same_without_nectar(new_session, log):
    """As the test above has it: this is what Spark does by itself."""
    spark = new_session()
    frame = spark.read.parquet(str(log)).cache()
    assert frame.count() == 240
    write_day(log, 3)
    assert frame.count() == 240
    frame.write.parquet(str(log.parent / "written"))
    assert spark.read.parquet(str(log.parent / "written")).count() == 240
    frame.unpersist()
