"""The benchmark of Spark programs works at a small size; how long anything takes is not looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pysail", reason="Sail is not installed: make test-sail")

from tests.dialects.spark import tpcds

ROOT = Path(__file__).resolve().parents[2]
missing = tpcds.why_missing()
pytestmark = pytest.mark.skipif(bool(missing), reason=missing)


def run(*options: str) -> dict[str, float]:
    command = [sys.executable, str(ROOT / "benchmarks" / "spark.py"), "--quick", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    assert all(name.isidentifier() for name in figures)
    return figures


def test_everybody_finds_what_was_computed(tmp_path):
    figures = run("--only=sharing", "--runs=1", f"--folder={tmp_path}")
    for program in ("scan", "join"):
        for where in ("same_code", "same_process", "other_process", "other_user_and_home"):
            assert figures[f"{program}_{where}_hit"] == 1
        for name in ("plain_s", "hit_ms", "hit_across_ms", "speedup", "speedup_across"):
            assert figures[f"{program}_{name}"] > 0
    assert list(tmp_path.iterdir()) == []


def test_keys_of_all_plans_are_timed(tmp_path):
    figures = run("--only=fingerprints", f"--folder={tmp_path}")
    for kind in ("tpcds", "functions"):
        for turn in ("first", "again"):
            assert 0 < figures[f"keys_{kind}_{turn}_mean_ms"] <= figures[f"keys_{kind}_{turn}_max_ms"]


def test_all_queries_are_timed(tmp_path):
    figures = run("--only=tpcds", f"--folder={tmp_path}")
    assert figures["tpcds_queries"] == figures["tpcds_warm_hits"] == 99
    assert figures["tpcds_ratio"] > 0
    assert figures["tpcds_plain_spread"] > 0
    assert figures["tpcds_first_s"] > figures["tpcds_warm_s"] > 0


def test_reading_a_known_part_is_timed(tmp_path):
    figures = run("--only=parts", "--runs=1", f"--folder={tmp_path}")
    assert figures["part_read_ms"] > 0
    assert figures["part_ratio"] > 0


def test_one_more_day_is_timed(tmp_path):
    figures = run("--only=growth", "--runs=1", f"--folder={tmp_path}")
    for kind in ("parquet", "delta"):
        for name in ("whole_s", "new_s", "ours_s", "ratio", "over_new"):
            assert figures[f"growth_{kind}_{name}"] > 0
    assert list(tmp_path.iterdir()) == []


def test_what_spark_programs_pay_is_measured(tmp_path):
    programs = ("spark_fresh", "spark_join")
    command = [sys.executable, str(ROOT / "benchmarks" / "overhead.py"), "--quick", f"--folder={tmp_path}"]
    done = subprocess.run(
        [*command, "--sail", sys.executable, "--only", *programs], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert all(figures[f"{program}_{kind}_cpu_s"] > 0 for program in programs for kind in ("plain", "first", "again"))
