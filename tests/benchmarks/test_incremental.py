"""The benchmark of growing streams works at small sizes; how long anything takes is not looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.programs import clicks
from tests.integration import tpch

from benchmarks import incremental

ROOT = Path(incremental.__file__).resolve().parents[1]


def run(*options: str) -> dict[str, object]:
    """In a process of its own, as everybody runs it."""
    command = [sys.executable, str(ROOT / "benchmarks" / "incremental.py"), "--quick", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert all(name.isidentifier() for name in figures)
    return figures


def test_days_are_measured_and_told(tmp_path):
    figures = run("--only=days", f"--folder={tmp_path}")
    for name in ("query_relevance_few", "query_relevance_many", "active_users_few", "longest_clicks_many"):
        assert figures[f"{name}_nectar_s"] > 0
        assert figures[f"{name}_of_bound"] > 0
        assert figures[f"{name}_regret"] > 0
    assert figures["longest_clicks_many_state_rows"] == 3 * 20_000
    assert figures["query_relevance_few_state_rows"] >= 100
    assert list(tmp_path.iterdir()) == []


def test_windows_are_measured_and_told(tmp_path):
    figures = run("--only=window", f"--folder={tmp_path}")
    assert figures["window_states_merged_highest"] <= 9
    assert 40 < figures["window_states_kept"] < 81
    assert list(tmp_path.iterdir()) == []


def test_growth_is_measured_and_told(tmp_path):
    figures = run("--only=growth", f"--folder={tmp_path}")
    assert figures["growth_10_ms"] > 0
    assert figures["growth_10_identify_ms"] > 0
    assert list(tmp_path.iterdir()) == []


def test_batches_of_orders_are_measured_and_told(tmp_path):
    if not tpch.GENERATOR.exists():
        pytest.skip("tpchgen-cli is not installed")
    figures = run("--only=tpch", f"--folder={tmp_path}")
    assert sum(name.endswith("_ratio") for name in figures) == 19
    assert list(tmp_path.iterdir()) == []


def test_no_two_days_of_clicks_are_alike(tmp_path):
    for day in (1, 2):
        clicks.write_day(tmp_path / f"{day}", day, 1000, 50)
    days = [tmp_path / "1", tmp_path / "2"]
    assert clicks.longest_clicks(days).collect().height == 100
    assert clicks.query_relevance(days[:1]).collect().height == 50
    assert days[0].read_bytes() != days[1].read_bytes()
