"""The open corpus of function pairs, where it is at hand: what must differ differs, what must not change does not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not beside this checkout (../shared/corpus)")

# Every case of suite C that does not pass, with the reason (docs/decisions/0006-what-changes-a-fingerprint.md).
UNSTABLE_ON_PURPOSE = {
    "dict_order_irrelevant",  # the order of a dict can be seen; nobody can tell that it is not
    "adv_method_added",  # a captured instance may show all its methods to library code
    "adv_singledispatch_cache",  # its own preparation raises TypeError before any fingerprint is taken
}
# Suite B: cases that are refused; each reads or changes state outside the function, or holds what may go at any moment
# (a weak reference). One is built for Python 3.11 only.
MOST_REFUSED = 10 if sys.version_info[:2] == (3, 11) else 11


def run(script, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(CORPUS / script), "nectar.keys.corpus:fingerprint", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=540, check=False)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def results():
    return run("run_corpus.py", "--fork")


def failing(suite):
    return {case.rstrip("?") for cases in suite["failing"].values() for case in cases}


def test_nothing_that_differs_is_taken_for_the_same(results):
    assert "same" not in results["B"]["failing"]
    assert "unrepeatable" not in results["B"]["failing"]
    assert results["B"]["all"].get("refused", 0) <= MOST_REFUSED


def test_what_must_not_change_does_not(results):
    assert failing(results["C"]) <= UNSTABLE_ON_PURPOSE


def test_equal_functions_match(results):
    assert "refused" not in results["A"]["failing"]
    assert results["A"]["any_object"]["pass"] >= 26


def test_no_case_that_needs_types_is_merged_without(results):
    assert results["A"]["typed_only"].get("pass", 0) == 0


def test_impure_functions_are_refused():
    result = run("run_impure.py")
    assert result["accepted"] == ["env"]  # a variable of the environment with a constant name is an input like a global
