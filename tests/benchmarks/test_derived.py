"""The benchmark of derived data works at small sizes; how long anything takes is not looked at."""

import json
import sys

import pytest
from msgspec.structs import replace

from benchmarks import derived
from nectar.catalog.index.sqlite import SqliteIndex


def test_everything_is_asked_and_told(monkeypatch, capsys):
    sizes = ["--results", "20", "--runs", "1", "--names", "60", "--readings", "2", "--days", "5"]
    monkeypatch.setattr(sys, "argv", ["derived.py", *sizes])
    derived.main()
    *lines, last = capsys.readouterr().out.splitlines()
    figures = json.loads(last)
    assert figures["results"] == 40
    assert figures["readings"] == 10
    assert figures["cost_benefit_peak_of_budget"] <= 1
    assert all(name.isidentifier() for name in figures)
    assert any("downstream of a function" in line for line in lines)
    assert sum(line.split()[:1] == ["lfu"] for line in lines) == 1


@pytest.mark.parametrize("lost", ["results", "made_from", "files", "functions", "names", "reads"])
def test_an_answer_that_is_not_the_truth_is_found_out(tmp_path, lost):
    index = SqliteIndex(tmp_path / "catalog.db")
    derived.fill(index, 11)
    index.bind("another/name", derived.key(22), "me", 1.0)
    ask, truth = derived.questions(index, 11)["upstream of the last"]
    found = ask()
    index.close()
    with pytest.raises(SystemExit, match="names are not"):
        truth.expect("it", found)  # there is a name that the truth does not know
    found = replace(found, names=tuple(each for each in found.names if each[0].name != "another/name"))
    truth.expect("it", found)
    kept = getattr(found, lost)
    less = dict(list(kept.items())[1:]) if isinstance(kept, dict) else kept[1:]
    with pytest.raises((SystemExit, KeyError)):
        truth.expect("it", replace(found, **{lost: less}))
