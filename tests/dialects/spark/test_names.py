"""Results of Spark programs with names: saved, read back, deleted, traced, explained."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType
from tests.dialects.spark import engines
from tests.dialects.spark.conftest import write_day
from tests.dialects.spark.test_reuse import SOURCE

import nectar
from nectar.dialects.spark import saving
from nectar.errors import DeletedError, NotSavedError, UnknownNameError
from nectar.report.watchers import watchers

pytestmark = engines.only_sail
OFFSET = 1


def shifted(seconds):
    return seconds + OFFSET


def pages(spark, log):
    return spark.read.parquet(str(log)).groupBy("page").agg(F.sum("seconds").alias("seconds")).orderBy("page")


def evict_everything(enabled):
    enabled.settle()
    entries = list(enabled.catalog.index.entries())
    assert enabled.catalog.discard(entries) == len(entries)


# saving


@pytest.mark.small
def test_a_saved_result_is_there_at_once_and_comes_back_in_every_form(spark, enabled, log):
    df = pages(spark, log)
    saved = nectar.save(df, "team/pages", note="first")
    assert (saved.name, saved.version, saved.note) == ("team/pages", 1, "first")
    assert saved.kept
    assert nectar.open("team/pages").to_arrow().to_pylist() == df.toArrow().to_pylist()
    back = nectar.scan("team/pages", spark)
    assert back.schema == df.schema
    assert back.collect() == df.collect()
    assert back.filter("seconds > 0").count() == 3


def test_schemas_come_back_as_they_were(spark, log):
    df = spark.read.parquet(str(log)).groupBy("page").agg(
        F.count("*").alias("n"), F.collect_set("day").alias("days"), F.max(F.struct("seconds", "page")).alias("most"),
        F.max(F.timestamp_seconds("seconds")).alias("t"), F.sum(F.col("seconds").cast("decimal(12,2)")).alias("d"),
    )  # fmt: skip
    nectar.save(df, "a")
    back = nectar.scan("a", spark)
    assert back.schema == df.schema
    assert sorted(map(repr, back.collect())) == sorted(map(repr, df.collect()))


@pytest.mark.small
def test_a_small_and_quick_result_is_kept_because_somebody_asked(spark, enabled, log, monkeypatch):
    monkeypatch.setattr(enabled.catalog, "worth_keeping", lambda *_: "never worth it")
    pages(spark, log).collect()
    enabled.settle()
    assert len(list(enabled.catalog.index.entries())) == 0
    assert nectar.save(pages(spark, log), "a").kept


@pytest.mark.small
def test_saving_what_is_known_computes_nothing(spark, enabled, log):
    pages(spark, log).collect()
    enabled.settle()
    nectar.save(pages(spark, log), "a")
    assert [part.outcome for part in nectar.last_run().parts] == ["reused"]
    assert nectar.save(pages(spark, log), "a").version == 1
    assert nectar.save(pages(spark, log), "b").key == nectar.open("a").key


def test_a_name_moves_when_its_files_change(spark, log):
    first = nectar.save(pages(spark, log), "a")
    before = first.to_arrow().to_pylist()
    write_day(log, 3)
    second = nectar.save(pages(spark, log), "a", note="day 3")
    assert (second.version, second.key != first.key) == (2, True)
    assert nectar.open("a@1").to_arrow().to_pylist() == before
    assert nectar.open("a").to_arrow().to_pylist() == pages(spark, log).toArrow().to_pylist()


@pytest.mark.small
def test_what_cannot_be_kept_gets_no_name(spark, enabled, log):
    with pytest.raises(NotSavedError, match="'a'.*rand"):
        nectar.save(pages(spark, log).withColumn("r", F.rand()), "a")
    with pytest.raises(NotSavedError, match="frame in memory"):
        nectar.save(spark.createDataFrame([(1,)], "n long"), "a")
    with pytest.raises(UnknownNameError):
        nectar.save(pages(spark, log), "no/./name")
    nectar.disable()
    with pytest.raises(NotSavedError, match="off"):
        nectar.save(pages(spark, log), "a")
    nectar.enable(home=log.parent / "home", reserve=0)
    with pytest.raises(UnknownNameError):
        nectar.open("a")


def test_a_session_from_before_saves_nothing(new_session, enabled, log):
    nectar.disable()
    before = new_session()
    nectar.enable(home=log.parent / "home", reserve=0)
    with pytest.raises(NotSavedError, match="before Nectar was switched on"):
        nectar.save(pages(before, log), "a")


@pytest.mark.small
def test_errors_of_the_query_are_its_own(spark, enabled, log):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException):
        nectar.save(pages(spark, log).select("nothing"), "a")
    assert enabled.catalog.index.names() == []


def test_a_result_that_lies_in_the_files_of_the_engine_is_saved_as_one_that_all_can_read(spark, enabled, log):
    df = spark.read.parquet(str(log)).groupBy("page").agg(F.sum("seconds").alias("seconds"))
    df.cache()
    df.select("seconds").collect()
    enabled.settle()
    kinds = {entry.kind for entry in enabled.catalog.index.entries()}
    assert "parquet" in kinds
    saved = nectar.save(df, "a")
    (entry,) = enabled.catalog.index.lookup([saved.key]).values()
    assert entry.kind == "arrow"
    assert sorted(nectar.open("a").to_arrow().to_pylist(), key=repr) == sorted(df.toArrow().to_pylist(), key=repr)


def test_a_name_whose_result_lies_in_the_files_of_the_engine_has_its_columns(spark, enabled, log):
    df = spark.read.parquet(str(log)).groupBy("page").agg(F.sum("seconds").alias("seconds"))
    nectar.save(df, "a")
    before = sorted(df.toArrow().to_pylist(), key=repr)
    evict_everything(enabled)
    df.cache()
    df.select("seconds").collect()
    enabled.settle()
    assert [entry.kind for entry in enabled.catalog.index.lookup([nectar.open("a").key]).values()] == ["parquet"]
    assert sorted(nectar.open("a").to_arrow().to_pylist(), key=repr) == before
    assert sorted(nectar.scan("a", spark).toArrow().to_pylist(), key=repr) == before


# deleted


def test_a_deleted_name_comes_back_when_it_is_read(spark, enabled, log):
    nectar.save(pages(spark, log), "a")
    before = nectar.open("a").to_arrow().to_pylist()
    evict_everything(enabled)
    assert not nectar.open("a").kept
    assert nectar.scan("a", spark).toArrow().to_pylist() == before
    assert nectar.open("a").kept


def test_a_deleted_name_whose_files_have_changed_says_so(spark, enabled, log):
    nectar.save(pages(spark, log), "a")
    evict_everything(enabled)
    write_day(log, 1, times=5)
    with pytest.raises(DeletedError, match=r"day-1.parquet was (changed|rewritten)"):
        nectar.open("a").to_arrow()


# where it came from


def test_lineage_shows_files_functions_engine_and_place(spark, log):
    df = pages(spark, log).withColumn("seconds", F.udf(shifted, LongType())("seconds"))
    lineage = nectar.save(df, "a").lineage()
    assert sorted(os.path.basename(file.url) for file in lineage.files) == ["day-1.parquet", "day-2.parquet"]
    assert [(each.name.rpartition(".")[2], each.text.splitlines()[0]) for each in lineage.functions] == [
        ("shifted", "def shifted(seconds):")
    ]
    made = nectar.open("a").made
    assert made.environment.startswith("sail 0.7")
    assert made.site.startswith("test_names.py:")
    assert "day-1.parquet" in str(lineage)


def test_what_is_made_from_a_name_is_traced_to_it(spark, enabled, log):
    nectar.save(pages(spark, log), "pages")
    top = nectar.save(nectar.scan("pages", spark).filter("seconds > 0").select("page"), "top")
    assert {name.name for name in top.lineage().names} == {"top", "pages"}
    assert len(top.lineage().files) == 2  # those of pages
    evict_everything(enabled)
    assert nectar.open("top").to_arrow().num_rows == 3  # by its rows, which are in its recipe


# explaining


@pytest.mark.small
def test_a_frame_is_explained_without_running(spark, enabled, log):
    df = pages(spark, log)
    told = str(nectar.explain(df))
    assert told.startswith("nothing of it is known: no result is known under its key\nsort: computed\n")
    assert f"    read parquet {log}: computed" in told
    assert nectar.last_run().parts == [] or nectar.last_run().parts[-1].name != "explained"
    df.collect()
    enabled.settle()
    assert str(nectar.explain(df)).startswith("all of it is known: about ")
    assert "not cached (" in str(nectar.explain(df.withColumn("r", F.rand())))


@pytest.mark.small
def test_watchers_see_every_query(spark, enabled, log):
    seen = []
    watchers.append(seen.append)
    try:
        pages(spark, log).collect()
        enabled.settle()
        pages(spark, log).collect()
        pages(spark, log).withColumn("r", F.rand()).collect()
    finally:
        watchers.clear()
    assert [each.parts[0].becomes for each in seen] == ["computed", "reused", "not cached"]


@pytest.mark.parametrize("command", [["run", "--explain"], ["explain"], ["explain", "--json"]])
def test_a_program_is_explained_from_the_command_line(tmp_path, log, command):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            f"""
            from pyspark.sql import SparkSession, functions as F
            spark = SparkSession.builder.getOrCreate()
            print(spark.read.parquet({str(log)!r}).groupBy("page").agg(F.sum("seconds")).count())
            """
        )
    )
    environment = {**os.environ, "NECTAR_HOME": str(tmp_path / "home"), "NECTAR_RESERVE": "0", "PYTHONPATH": SOURCE}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "nectar.cli", *command, program], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == "3\n"
    told = done.stderr
    if "--json" in command:
        (line,) = [line for line in told.splitlines() if line.startswith("{")]
        assert json.loads(line)["parts"][0]["becomes"] == "reused"
    else:
        assert "all of it is known: about" in told
    assert "nectar: 1 of 1 query from cache" in told


def test_lineage_of_a_function_leads_to_what_it_made(spark, enabled, log):
    df = pages(spark, log).withColumn("page", F.udf(lambda page: page.upper(), StringType())("page"))
    saved = nectar.save(df, "a")
    graph = enabled.catalog.index.trace_results([saved.key], "upstream")
    assert len(graph.functions) == 1
    assert len(graph.files) == 2


# of other engines


def test_a_table_of_another_engine_becomes_a_frame(spark, enabled):
    import pyarrow as pa

    table = pa.table(
        {
            "l": pa.array(["a", None, "b"], pa.large_string()),
            "c": pa.array(["a", None, "a"]).dictionary_encode(),
            "n": [1, 2, 3],
        }
    )
    enabled.catalog.keep(b"k" * 32, b"p" * 32, table, table=True)
    enabled.catalog.bind("other", b"k" * 32)
    assert [tuple(row) for row in nectar.scan("other", spark).orderBy("n").collect()] == [
        ("a", "a", 1),
        (None, None, 2),
        ("b", "a", 3),
    ]
    views = pa.table({"v": pa.array(["a"]).cast(pa.string_view())})  # as Polars writes them
    assert saving._plain(views).schema.types == [pa.string()]
    odd = pa.table({"n": pa.array([1], pa.uint64())})
    enabled.catalog.keep(b"x" * 32, b"p" * 32, odd, table=True)
    enabled.catalog.bind("odd", b"x" * 32)
    with pytest.raises(nectar.UserError, match="odd has columns that this Spark does not take"):
        nectar.scan("odd", spark)
