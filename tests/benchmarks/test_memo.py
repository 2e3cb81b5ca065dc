"""The benchmark of remembered functions works at small sizes; how long anything takes is not looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.memo_peers import PEERS, PLAIN, is_installed
from benchmarks.programs import remembered

import nectar
from benchmarks import memo

PROGRAM = Path(memo.__file__)
SMALL = [
    "--runs=2", "--hits=5", "--array-mb=4", "--calls=200", "--processes=3", "--at-once=2", "--values=2", "--walks=20",
]  # fmt: skip


def test_everything_is_measured_and_told(tmp_path):
    """In a process of its own: the benchmark turns Nectar on and off for all of its process."""
    command = [sys.executable, str(PROGRAM), *SMALL, f"--folder={tmp_path}", "--peers", "nectar", PLAIN, "joblib"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    figures = json.loads(last)
    assert all(name.isidentifier() for name in figures)
    for name in (
        "hit_small_us", "miss_small_us", "first_hit_ms", "first_hit_call_ms", "miss_result_ms", "kept_result_ms",
        "hit_result_ms", "hit_argument_ms", "miss_slow_ms", "kept_slow_ms", "calls_miss_us",
        "calls_hit_us", "processes_s",
    ):  # fmt: skip
        assert figures[f"nectar_{name}"] > 0, name
        assert figures[f"joblib_{name}"] > 0, name
    assert figures["nectar_processes_computed"] == 2
    assert not [name for name in figures if "failed" in name]
    assert any("x Nectar" in line for line in lines)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("peer", [peer for peer in PEERS if peer not in ("nectar", PLAIN)])
def test_peers_remember(peer, tmp_path, monkeypatch):
    if not is_installed(peer):
        pytest.skip(f"{peer} is not installed")
    monkeypatch.setattr(remembered, "LOG", str(tmp_path / "computations"))
    place = PEERS[peer](tmp_path / "kept")
    function = place.remember(remembered.repayment)
    assert function(1000.0, 3.5, 12) == function(1000.0, 3.5, 12)
    assert remembered.times_computed() == 1
    place.close()


def test_functions_are_fingerprinted_but_for_the_counting():
    nectar.pure(remembered._note)
    functions = [remembered.repayment, remembered.ruin, remembered.energy, remembered.tone]
    assert len({str(nectar.fingerprint(function)) for function in functions}) == 4


def test_a_peer_that_cannot_do_something_does_not_stop_the_others():
    report = memo.Report()

    def fails(*_):
        raise TypeError("no")

    memo._or_why_not(fails, "joblib", None, None, report)
    assert report.about == {"joblib_failed_in_fails": "no"}
    with pytest.raises(TypeError):
        memo._or_why_not(fails, "nectar", None, None, report)


def test_values_of_several_runs_come_together():
    report = memo.Report()
    for value in (0.001, 0.003, 0.002):
        report.add("a_ms", "something", "joblib, mapped", [value], "ms", 1e3)
    assert json.loads(report.as_json()) == {
        "joblib_mapped_a_ms": 2.0, "joblib_mapped_a_ms_lowest": 1.0, "joblib_mapped_a_ms_highest": 3.0,
    }  # fmt: skip
