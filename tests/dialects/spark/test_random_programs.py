"""Random programs give the same without Nectar, computed under it, with parts that are known, and from the store."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from tests.dialects.spark import engines
from tests.dialects.spark.random_programs import answer, program

import nectar
from nectar import session
from nectar.dialects.spark import reusing

PROGRAMS = 300
ELSEWHERE = """
import pickle, sys
import nectar
nectar.enable(reserve=0)
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession
from tests.dialects.spark.random_programs import answer, program
server = SparkConnectServer()
server.start(background=True)
spark = SparkSession.builder.remote("sc://%s:%d" % server.listening_address).getOrCreate()
found = {}
for seed in map(int, sys.argv[2:]):
    found[seed] = answer(program(spark, sys.argv[1], seed)), nectar.last_run().parts[-1].outcome
sys.stdout.buffer.write(pickle.dumps(found))
"""


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    monkeypatch.setattr(reusing, "LEAST_PLANS", 0)


def plainly(spark, log, seeds):
    """What programs answer without Nectar; those that fail are left out."""
    found = {}
    for seed in seeds:
        try:
            found[seed] = answer(program(spark, log, seed))
        except Exception:
            continue
    return found


def under_nectar(spark, log, plain, home):
    """How many were reused whole, and how many parts."""
    nectar.enable(home=home, reserve=0)
    whole = parts = 0
    for seed, expected in plain.items():
        frame = program(spark, log, seed)
        assert answer(frame) == expected, f"program {seed}"
        report = nectar.last_run()
        whole += report.parts[-1].outcome == "reused"
        parts += len(report.reused) - (report.parts[-1].outcome == "reused")
    session.current().settle()
    return whole, parts


def test_random_programs(spark, log, home, new_session, tmp_path):
    nectar.disable()
    plain = plainly(spark, log, range(PROGRAMS))
    assert len(plain) >= PROGRAMS * 3 // 4
    _, parts = under_nectar(spark, log, plain, home)
    assert parts >= PROGRAMS // 10 or engines.ENGINE != "sail"  # elsewhere only whole results are reused
    whole, _ = under_nectar(new_session(), log, plain, home)
    assert whole >= len(plain) * 3 // 4
    nectar.disable()
    if engines.ENGINE != "sail":  # test_spark_server.py has other processes
        return
    some = list(plain)[::10]
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}", "NECTAR_HOME": str(home)}
    script = tmp_path / "elsewhere.py"
    script.write_text(ELSEWHERE)
    command = [sys.executable, str(script), str(log), *map(str, some)]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    elsewhere = pickle.loads(done.stdout)
    assert {seed: each[0] for seed, each in elsewhere.items()} == {seed: plain[seed] for seed in some}
    assert [each[1] for each in elsewhere.values()].count("reused") >= len(some) // 2


@engines.only_sail
def test_programs_that_others_have_begun(spark, log, home):
    """Only beginnings are known; every program continues one of them."""
    nectar.disable()
    plain = plainly(spark, log, range(PROGRAMS, PROGRAMS + 50))
    for _ in range(3):
        under_nectar(spark, log, plain, home)
        catalog = session.current().catalog
        catalog.discard([entry for entry in catalog.index.entries() if entry.kind == "arrow"])
    _, parts = under_nectar(spark, log, plain, home)
    assert parts >= 10
