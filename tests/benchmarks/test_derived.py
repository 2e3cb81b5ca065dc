"""The benchmark of provenance works at small sizes; how long anything takes is not looked at."""

import json
import sys

from benchmarks import derived


def test_everything_is_asked_and_told(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["derived.py", "--results", "20", "--runs", "1"])
    derived.main()
    *lines, last = capsys.readouterr().out.splitlines()
    figures = json.loads(last)
    assert figures["results"] == 40
    assert all(name.isidentifier() for name in figures)
    assert any("downstream of a function" in line for line in lines)
