"""The pieces of the benchmark of fingerprints work; how long anything takes is not looked at."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from benchmarks.peers import PEERS, load

import nectar
from benchmarks import fingerprint, real_code

ROOT = Path(fingerprint.__file__).resolve().parent


def test_every_function_of_the_mix_has_a_fingerprint_of_its_own():
    names = {name: str(nectar.fingerprint(function)) for name, function in fingerprint.functions().items()}
    assert len(names) >= 30
    assert len(set(names.values())) == len(names)


def test_chain_and_fan_reach_fifty_functions():
    tree = ast.parse((ROOT / "programs" / "fifty.py").read_text())
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert sum(name.startswith("step_") for name in defined) == sum(name.startswith("leaf_") for name in defined) == 50
    assert {fingerprint.CHAIN, fingerprint.FAN} <= fingerprint.functions().keys()


@pytest.mark.parametrize("peer", PEERS)
def test_peers_name_a_function(peer):
    call = load(peer)
    if call is None:
        pytest.skip(f"{peer} is not installed")
    function = fingerprint.functions()["clean"]
    assert call(function) == call(function)


def test_a_call_that_fails_has_no_time():
    assert fingerprint.timed(lambda value: 1 / value, 0, 3) is None
    assert fingerprint.timed(lambda value: value, 0, 3) >= 0


def test_spread_is_median_ninth_decile_and_maximum():
    middle, high, highest = fingerprint.spread([float(number) for number in range(1, 12)])
    assert (middle, highest) == (6.0, 11.0)
    assert middle < high <= highest


def test_figures_have_plain_names():
    run = {"nectar warm": {"a": 1.0, fingerprint.CHAIN: 3.0}, "dask": {"a": None, fingerprint.CHAIN: 2.0}}
    found = {"toolz": [real_code.Finding("toolz.x", real_code.FUNCTION, real_code.REFUSED, ("clock: f",), 0.1, 0.1)]}
    figures = fingerprint.figures_of([run, run], {"dask": "no"}, found)
    assert figures["warm_median_us"] == 2.0
    assert figures["warm_chain50_us"] == 3.0
    assert figures["dask_failed"] == 1
    assert figures["dask_sees_changed_helper"] == "no"
    assert figures["toolz_functions_share_refused"] == 1.0
    assert all(name.isidentifier() for name in figures)


def test_reasons_are_grouped_by_kind():
    findings = [
        real_code.Finding("a", real_code.FUNCTION, real_code.REFUSED, ("clock: f reads", "clock: g reads"), 0.0, 0.0),
        real_code.Finding("b", real_code.FUNCTION, real_code.UNENCODABLE, ("cannot: x",), 0.0, 0.0),
        real_code.Finding("c", real_code.FUNCTION, real_code.ACCEPTED, (), 0.0, 0.0),
    ]
    assert real_code.grouped(findings) == {"clock": 1, "unencodable": 1}
    assert real_code.share_refused(findings) == pytest.approx(2 / 3)
