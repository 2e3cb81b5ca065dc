"""Programs that name no server: Sail is started for them where Spark is not installed, and only there."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from tests.dialects.spark import engines

import nectar

pytestmark = engines.only_sail
SOURCE = str(Path(nectar.__file__).parents[1])
CLASSIC = textwrap.dedent("""
    from pyspark.sql import SparkSession, functions as F
    spark = SparkSession.builder.appName("classic")%s.getOrCreate()
    print(spark.range(10).withColumn("k", F.col("id") %% 2).groupBy("k").count().orderBy("k").collect())
    again = SparkSession.builder.getOrCreate()
    print(again is spark, SparkSession.getActiveSession() is spark, spark.conf.get("spark.app.name"))
""")
TELLING = """
from nectar.dialects.spark import default
print(len(default._servers))
"""


def run(tmp_path, text, *options, under=True, code=0, **environment):
    (tmp_path / "program.py").write_text(text)
    everything = {
        **os.environ, "PYTHONPATH": SOURCE, "NECTAR_HOME": str(tmp_path / "home"), "NECTAR_RESERVE": "0", **environment
    }  # fmt: skip
    command = [sys.executable, *(["-m", "nectar.cli", "run", *options] if under else []), "program.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=everything, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize(
    "master", ["", '.master("local")', '.master("local[*]")', '.config("spark.master", "local[4]")']
)
def test_a_classic_program_runs_and_is_reused(tmp_path, master):
    first = run(tmp_path, CLASSIC % master)
    assert first.stdout == "[Row(k=0, count=5), Row(k=1, count=5)]\nTrue True classic\n"
    again = run(tmp_path, CLASSIC % master)
    assert again.stdout == first.stdout
    assert "1 of 1 query from cache" in again.stderr


def test_without_nectar_it_fails_as_ever(tmp_path):
    assert "CONNECT_URL_NOT_SET" in run(tmp_path, CLASSIC % "", under=False, code=1).stderr


@pytest.mark.parametrize("off", ["--no-cache", "NECTAR_OFF"])
def test_without_caching_it_runs_on_the_same_engine(tmp_path, off):
    run(tmp_path, CLASSIC % "")
    options = [off] if off.startswith("-") else []
    done = run(tmp_path, CLASSIC % "", *options, **({} if options else {off: "1"}))
    assert done.stdout.startswith("[Row(k=0, count=5), Row(k=1, count=5)]\n")
    assert "nectar: off: nothing was reused or kept" in done.stderr


def test_nectar_enable_does_the_same(tmp_path):
    program = "import nectar\nnectar.enable()\n" + CLASSIC % "" + TELLING
    assert run(tmp_path, program, under=False).stdout.endswith("classic\n1\n")


def test_once_it_is_disabled_it_fails_again(tmp_path):
    program = "import nectar\nnectar.enable()\nimport pyspark.sql\nnectar.disable()\n" + CLASSIC % ""
    assert "CONNECT_URL_NOT_SET" in run(tmp_path, program, under=False, code=1).stderr


def test_a_cluster_is_not_replaced(tmp_path):
    assert "CONNECT_URL_NOT_SET" in run(tmp_path, CLASSIC % '.master("spark://h:7077")', code=1).stderr


def test_the_server_that_the_environment_names_wins(tmp_path, address):
    done = run(tmp_path, CLASSIC % "" + TELLING, SPARK_REMOTE=address)
    assert done.stdout.endswith("classic\n0\n")


def test_the_server_that_the_program_names_wins(tmp_path, address):
    done = run(tmp_path, CLASSIC % f'.remote("{address}")' + TELLING)
    assert done.stdout.endswith("classic\n0\n")


def test_sessions_may_be_made_and_stopped_again(tmp_path):
    program = """
        from pyspark.sql import SparkSession
        for number in range(3):
            spark = SparkSession.builder.create() if number == 1 else SparkSession.builder.getOrCreate()
            print(spark.range(number + 1).count())
            spark.stop()
    """
    assert run(tmp_path, textwrap.dedent(program) + TELLING).stdout == "1\n2\n3\n1\n"


def test_a_server_that_cannot_start_leaves_the_program_as_it_is(tmp_path):
    program = """
        import pysail.spark
        def broken(*_, **__):
            raise RuntimeError("no port is free")
        pysail.spark.SparkConnectServer.__init__ = broken
    """
    done = run(tmp_path, textwrap.dedent(program) + CLASSIC % "", code=1)
    assert "CONNECT_URL_NOT_SET" in done.stderr
    assert "Sail cannot be started" in done.stderr


def test_without_sail_it_fails_as_ever(tmp_path):
    program = "import sys\nsys.modules['pysail'] = None\n" + CLASSIC % ""
    assert "CONNECT_URL_NOT_SET" in run(tmp_path, program, code=1).stderr
