"""The benchmark of Polars programs works at small sizes; how long anything takes is not looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.polars_report import Report
from benchmarks.programs import lenses, trivial
from tests.integration import tpch

import nectar
from benchmarks import polars_overhead

ROOT = Path(polars_overhead.__file__).resolve().parents[1]
needs_tables = pytest.mark.skipif(not tpch.GENERATOR.exists(), reason="tpchgen-cli is not installed")


def run(*options: str) -> dict[str, object]:
    """In a process of its own: the benchmark turns Nectar on and off for all of its process."""
    command = [sys.executable, str(ROOT / "benchmarks" / "polars.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert all(name.isidentifier() for name in figures)
    return figures


@needs_tables
def test_overhead_is_measured_and_told(tmp_path):
    figures = run("--only=overhead", "--scale=0.01", "--rounds=1", f"--folder={tmp_path}")
    for kind in ("tpch", "trivial"):
        for name in ("plain_s", "nectar_s", "own_ms", "make_keys_ms", "identify_files_ms", "choose_and_look_up_ms"):
            assert figures[f"{kind}_{name}"] > 0, name
    assert list(tmp_path.iterdir()) == []


def test_debugging_is_measured_and_told(tmp_path):
    figures = run("--only=debugging", "--objects=20000", "--runs=1", f"--folder={tmp_path}")
    for step in lenses.STEPS:
        for peer in ("nectar", "plain_polars", "the_step_and_the_rest", "parquet_by_hand", "joblib"):
            assert figures[f"{peer}_step_{step}_works_s"] > 0
            assert figures[f"{peer}_step_{step}_changed_s"] > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.deep
def test_words_are_measured_and_told(tmp_path):
    figures = run("--only=words", "--documents-mb=2", f"--folder={tmp_path}")
    for program in ("topword", "mostdoc", "topratio"):
        for peer in ("nectar", "parquet_by_hand", "joblib"):
            assert figures[f"{peer}_{program}_ms"] > 0
    assert figures["hit_first_ms"] > 0
    assert list(tmp_path.iterdir()) == []


def test_small_queries_are_all_different_and_cacheable(tmp_path):
    sales = tmp_path / "sales.parquet"
    trivial.write_sales(sales)
    with nectar.reuse(home=tmp_path / "home") as report:
        for query in trivial.queries(sales):
            query.collect()
    assert [part.outcome for part in report.parts] == ["computed"] * 50
    assert len({part.key for part in report.parts}) == 50


@pytest.mark.parametrize("step", lenses.STEPS)
def test_a_step_that_fails_raises_what_its_function_raises(step, tmp_path):
    lenses.write_sky(tmp_path / "sky", 500)
    versions = [*["works"] * (step - 1), "fails"]
    with pytest.raises(ValueError):
        lenses.query(tmp_path / "sky", versions).collect()


def test_every_version_of_a_step_is_another_program(tmp_path):
    lenses.write_sky(tmp_path / "sky", 2_000)
    with nectar.reuse(home=tmp_path / "home") as report:
        for step in lenses.STEPS:
            lenses.query(tmp_path / "sky", ["changed" if each == step else "works" for each in lenses.STEPS]).collect()
        lenses.query(tmp_path / "sky", ["works"] * 4).collect()
    computed = [part.key for part in report.parts if part.outcome == "computed"]
    assert len(set(computed)) == 5


def test_a_stage_within_another_is_not_counted_twice():
    watch = polars_overhead.Stopwatch()
    inner = watch.wrapped("inner", lambda: sum(range(200_000)))
    watch.wrapped("outer", lambda: inner())()
    assert watch.seconds["outer"] < watch.seconds["inner"]


def test_reports_of_other_processes_come_together():
    first, second = Report(), Report()
    first.begin("one")
    first.add("a_ms", "something", [1.0, 3.0, 2.0], "ms", "5 ms")
    second.begin("two")
    second.add("b", "another", 7, "")
    second.notes.append("so it was")
    first.join(Report.read(second.written()))
    assert json.loads(first.as_json()) == {"a_ms": 2.0, "a_ms_lowest": 1.0, "a_ms_highest": 3.0, "b": 7}
    assert first.notes == ["so it was"]
