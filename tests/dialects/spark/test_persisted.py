"""cache() and persist(): the first query keeps what somebody wants to be kept, and others find it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from pyspark.sql import functions as F
from tests.dialects.spark import engines
from tests.dialects.spark.conftest import write_day
from tests.dialects.spark.random_programs import answer

import nectar
from nectar.dialects.spark import persisted, reusing

pytestmark = pytest.mark.small


@pytest.fixture(autouse=True)
def nothing_is_asked_for():
    persisted._programs.clear()


def copies(_):
    nectar.session.current().settle()
    return [entry for entry in nectar.session.current().catalog.index.entries() if entry.kind == "parquet"]


def pages(spark, log):
    return spark.read.parquet(str(log)).groupBy("page").agg(F.sum("seconds").alias("total"))


def test_what_is_cached_is_kept_by_the_first_query(spark, log, enabled, home):
    frame = pages(spark, log).cache()
    assert frame.filter("total > 1").count() == 3
    assert len(copies(enabled)) == 1
    query = frame.select(F.max("total").alias("most"))
    found = answer(query)
    assert len(nectar.last_run().reused) == 1
    nectar.disable()
    assert found == answer(query)


def test_what_is_cached_is_read_when_it_is_asked_for_as_a_whole(spark, log, enabled):
    frame = pages(spark, log).cache()
    frame.count()
    found = sorted(frame.collect())
    assert nectar.last_run().parts[-1].outcome == "reused"
    assert len(nectar.last_run().parts) == 1
    enabled.settle()
    assert enabled.catalog.index.leases() == []
    assert [entry.kind for entry in enabled.catalog.index.entries()].count("parquet") == 1
    nectar.disable()
    assert found == sorted(frame.collect())


def test_another_session_finds_what_is_cached_without_asking(spark, log, enabled, new_session, monkeypatch):
    monkeypatch.setattr(reusing, "LEAST_PLANS", 0)
    pages(spark, log).persist().filter("total > 1").count()
    persisted._programs.clear()
    pages(new_session(), log).filter("total > 2").count()
    assert len(nectar.last_run().reused) == 1


def test_rows_of_a_file_are_kept_if_somebody_says_so(spark, tmp_path, enabled, home):
    (tmp_path / "rows.csv").write_text("a,b\n1,x\n2,y\n")
    frame = spark.read.csv(str(tmp_path / "rows.csv"), header=True, inferSchema=True)
    frame.filter("a > 1").count()
    assert copies(enabled) == []
    frame.cache()
    frame.filter("a > 0").count()
    assert len(copies(enabled)) == 1
    query = frame.groupBy("b").agg(F.sum("a").alias("a"))
    found = answer(query)
    assert len(nectar.last_run().reused) == 1
    nectar.disable()
    assert found == answer(query)


def test_the_word_is_taken_back(spark, log, enabled):
    frame = pages(spark, log).cache()
    frame.unpersist()
    frame.filter("total > 1").count()
    assert copies(enabled) == []


@engines.only_sail  # what Spark has cached stays as it is
def test_new_files_need_no_new_word(spark, log, enabled):
    frame = pages(spark, log).cache()
    frame.filter("total > 1").count()
    write_day(log, 3)
    frame.filter("total > 1").count()
    assert nectar.last_run().reused == []
    assert len(copies(enabled)) == 2
    assert frame.select(F.sum("total")).collect()[0][0] == sum(sum(range(day, 120 + day)) for day in (1, 2, 3))


def test_what_cannot_be_kept_runs_as_it_is(spark, log, enabled):
    ordered = pages(spark, log).orderBy("page").cache()
    assert [row.page for row in ordered.filter("total > 1").collect()] == ["a", "b", "c"]
    random = pages(spark, log).withColumn("r", F.rand()).cache()
    random.filter("total > 1").count()
    assert copies(enabled) == []


def test_caching_is_what_it_is_where_nectar_is_off(spark, log, enabled):
    nectar.disable()
    frame = pages(spark, log).cache()
    assert frame.count() == 3
    assert persisted._programs == {}


PROGRAM = """
import sys
import nectar
nectar.enable(reserve=0)
{session}
frame = spark.read.parquet(sys.argv[1]).groupBy("page").agg(F.sum("seconds").alias("total")).cache()
print(frame.filter("total > " + sys.argv[2]).count(), len(nectar.last_run().reused))
"""


def test_another_process_finds_what_is_cached(tmp_path, log, home, address):
    (tmp_path / "program.py").write_text(PROGRAM.format(session=engines.session_at(address)))
    environment = {**os.environ, "PYTHONPATH": str(Path(nectar.__file__).parents[1]), "NECTAR_HOME": str(home)}
    found = []
    for least in ("0", "4900"):
        command = [sys.executable, "program.py", str(log), least]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.split())
    assert found == [["3", "0"], ["1", "1"]]
