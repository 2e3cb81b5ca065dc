"""The benchmark of what Nectar costs works at small sizes; how long anything takes is not looked at."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "programs", [["fresh", "many_sites", "tiny"], ["large_dict", "series_literal", "is_in"], ["memo_dicts", "filters"]]
)
def test_it_is_measured_and_told(tmp_path, programs):
    command = [sys.executable, str(ROOT / "benchmarks" / "overhead.py"), "--quick", f"--folder={tmp_path}", "--only"]
    done = subprocess.run([*command, *programs], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert all(figures[f"{program}_{kind}_s"] > 0 for program in programs for kind in ("plain", "first", "again"))
    assert list(tmp_path.iterdir()) == []
