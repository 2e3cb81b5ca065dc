"""The benchmark of what Nectar costs works at small sizes; how long anything takes is not looked at."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.tpch import GENERATOR

ROOT = Path(__file__).resolve().parents[2]
needs_generator = pytest.mark.skipif(not GENERATOR.exists(), reason="tpchgen-cli is not installed")


@pytest.mark.parametrize(
    "programs",
    [
        ["fresh", "many_sites", "tiny"],
        ["large_dict", "series_literal", "is_in"],
        ["memo_dicts", "filters"],
        pytest.param(["tpch"], marks=needs_generator),
    ],
)
def test_it_is_measured_and_told(tmp_path, programs):
    command = [sys.executable, str(ROOT / "benchmarks" / "overhead.py"), "--quick", f"--folder={tmp_path}", "--only"]
    done = subprocess.run([*command, *programs], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert all(figures[f"{program}_{kind}_s"] > 0 for program in programs for kind in ("plain", "first", "again"))
    assert list(tmp_path.iterdir()) == []


def test_without_sail_spark_programs_are_left_out_and_that_is_said(tmp_path):
    command = [sys.executable, str(ROOT / "benchmarks" / "overhead.py"), "--quick", f"--folder={tmp_path}"]
    command += ["--sail", str(tmp_path / "nowhere"), "--only", "fresh", "spark_join"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0].startswith("Left out: Spark programs, since ")
    assert "make bench-overhead" in said[0]
    assert "spark_join_plain_s" not in json.loads(said[-1])
