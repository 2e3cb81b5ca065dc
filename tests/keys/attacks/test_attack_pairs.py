"""Programs written by an attacker: pairs that must not share a fingerprint, and changes that must change one.

pairs.json holds pairs of programs by surface, each with a witness that shows them to differ; changes.json holds
programs with code that changes something after the first fingerprint. A refusal is as good as a difference. What is
known to fail stands in FAILING below, by reason; mending it makes the test fail until the name is taken out.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="programs run in forked children")

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "src"
PAIRS: list[dict[str, Any]] = json.loads((HERE / "pairs.json").read_text(encoding="utf-8"))
CHANGES: list[dict[str, Any]] = json.loads((HERE / "changes.json").read_text(encoding="utf-8"))
SLOW_TO_IMPORT = ("numpy", "pandas", "pyarrow")
LIBRARIES = ("numpy", "pandas", "polars", "pyarrow", "attr")

# What is known to fail: why, and which cases.
FAILING: dict[str, str] = {
    "how deep recursion may go, through methods that call each other": "recursion_of_two_methods",
}
FAILING_CHANGES: dict[str, str] = {
    "defaults of a method of a library class, replaced in place": "library_method_defaults",
}
# The versions of Python on which a known failure fails, where those are not all.
VERSIONS: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {}
KNOWN = {name: reason for reason, names in FAILING.items() for name in names.split()}
KNOWN_CHANGES = {name: reason for reason, names in FAILING_CHANGES.items() for name in names.split()}


class Workers:
    """Interpreters with different hash seeds, with and without libraries loaded, each forking a child per program."""

    def __init__(self) -> None:
        self._running: dict[tuple[int, bool], subprocess.Popen[str]] = {}

    def run(self, job: dict[str, Any], seed: int) -> dict[str, Any]:
        loaded = any(f"import {name}" in text for text in job["files"].values() for name in SLOW_TO_IMPORT)
        worker = self._running.get((seed, loaded)) or self._start(seed, loaded)
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(repr(job) + "\n")
        worker.stdin.flush()
        line = worker.stdout.readline()
        assert line, "the interpreter that runs the programs has ended"
        found: dict[str, Any] = ast.literal_eval(line)
        return found

    def _start(self, seed: int, loaded: bool) -> subprocess.Popen[str]:
        settings = dict(os.environ, PYTHONHASHSEED=str(seed), PYTHONPATH=str(SOURCE), PYTHONDONTWRITEBYTECODE="1")
        self._running[seed, loaded] = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), *(SLOW_TO_IMPORT if loaded else ())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=settings,
        )  # fmt: skip
        return self._running[seed, loaded]

    def stop(self) -> None:
        for worker in self._running.values():
            worker.communicate(timeout=60)


@pytest.fixture(scope="module")
def workers() -> Any:
    made = Workers()
    yield made
    made.stop()


def _parameters(cases: list[dict[str, Any]], known: dict[str, str]) -> list[Any]:
    return [pytest.param(case, id=case["id"], marks=_marks(case["id"], known)) for case in cases]


def _marks(name: str, known: dict[str, str]) -> list[Any]:
    first, last = VERSIONS.get(name, ((3, 11), (3, 99)))
    if name not in known or not first <= sys.version_info[:2] <= last:
        return []
    return [pytest.mark.xfail(strict=True, reason=known[name])]


def _skip_without_libraries(program: dict[str, str]) -> None:
    for library in LIBRARIES:
        if any(f"import {library}" in text for text in program.values()):
            pytest.importorskip(library)


@pytest.mark.parametrize("case", _parameters(PAIRS, KNOWN))
def test_programs_that_differ_have_different_fingerprints(case: dict[str, Any], workers: Workers) -> None:
    _skip_without_libraries(case["a"])
    one, other = (workers.run({"files": case[side], "witness": case["witness"]}, 1) for side in ("a", "b"))
    for found in (one, other):
        assert found["status"] in ("ok", "refused"), found["value"]
    assert one["seen"] != other["seen"], "the witness shows no difference"
    if one["status"] == "refused" or other["status"] == "refused":
        return
    assert one["value"] != other["value"]
    assert one["again"] == one["value"], "calling it changed its fingerprint"
    again = workers.run({"files": case["a"]}, 2)
    assert again["value"] == one["value"], "another process, another fingerprint"


@pytest.mark.parametrize("case", _parameters(CHANGES, KNOWN_CHANGES))
def test_a_change_of_behaviour_changes_the_fingerprint(case: dict[str, Any], workers: Workers) -> None:
    _skip_without_libraries(case["program"])
    found = workers.run({"files": case["program"], "after": case["after"], "witness": case["witness"]}, 1)
    assert found["status"] in ("ok", "refused"), found["value"]
    assert found["seen"] != found["seen_later"], "the witness shows no difference"
    assert found["status"] == "refused" or found["later"] != found["value"]


# Code in these may show the text of a class or function, which names its module.
SHOWING = ("enum_", "getattr_", "element", "argparse_", "dataclass_frozen", "exception_")


@pytest.mark.parametrize("mode", ["main", "cell", "string"])
def test_how_a_program_is_loaded_does_not_matter(mode: str, workers: Workers) -> None:
    moved = [
        case["id"]
        for case in PAIRS[::4]
        if len(case["a"]) == 1
        and case["surface"] not in ("data libraries", "exposure")
        and not case["id"].startswith(SHOWING)
        and not any(library in case["a"]["prog.py"] for library in LIBRARIES)
        and (imported := workers.run({"files": case["a"]}, 1))["status"] == "ok"
        and workers.run({"files": case["a"], "mode": mode}, 2)["value"] != imported["value"]
    ]
    assert moved == []
