"""Files that a program has written are known by their content: scripts chained through files reuse downstream."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import time

import polars as pl
import pytest

import nectar
from nectar.store.inputs.identify import Inputs

FORMS = ["parquet", "ipc", "csv", "ndjson"]
PLAIN = [getattr(pl.DataFrame, f"write_{form}") for form in FORMS]
WRITE = """
import sys, polars as pl, nectar
folder, first, home = sys.argv[1:]
nectar.enable(home=home, reserve=0)
frame = pl.DataFrame({"page": ["a", "b", "a"], "seconds": [int(first), 2, 3]})
for form in ("parquet", "ipc", "csv", "ndjson"):
    getattr(frame, f"write_{form}")(f"{folder}/pages.{form}")
"""
READ = """
import sys, polars as pl, nectar
folder, home = sys.argv[1:]
with nectar.reuse(home=home, reserve=0) as report:
    for form in ("parquet", "ipc", "csv", "ndjson"):
        pages = getattr(pl, f"scan_{form}")(f"{folder}/pages.{form}")
        frame = pages.group_by("page").agg(pl.col("seconds").sum()).sort("page").collect()
        print(form, report.parts[-1].outcome, frame["seconds"].to_list())
"""
QUIET = 2.1  # seconds, after which a file that was not read before is known by its origin


def _run(script, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_files_written_again_with_the_same_rows_are_the_same_to_the_next_script(tmp_path):
    home = tmp_path / "home"

    def told(outcome, seconds):
        return [f"{form} {outcome} {seconds}" for form in FORMS]

    def written_and_read(first):
        _run(WRITE, tmp_path, first, home)
        time.sleep(QUIET)
        return _run(READ, tmp_path, home).splitlines()

    assert written_and_read(1) == told("computed", [4, 2])
    before = [(tmp_path / f"pages.{form}").stat().st_mtime_ns for form in FORMS]
    assert written_and_read(1) == told("reused", [4, 2])
    after = [(tmp_path / f"pages.{form}").stat().st_mtime_ns for form in FORMS]
    assert not set(before) & set(after)
    assert written_and_read(5) == told("computed", [8, 2])


@pytest.fixture
def learned(monkeypatch):
    """The files that were identified, in order."""
    found = []
    identify = Inputs.identify
    monkeypatch.setattr(Inputs, "identify", lambda self, urls: (found.extend(map(str, urls)), identify(self, urls))[1])
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("as_text", [False, True])
def test_what_a_frame_is_written_to_is_learned(tmp_path, enabled, learned, form, as_text):
    frame, path = pl.DataFrame({"a": [1, 2]}), tmp_path / "out"
    getattr(frame, f"write_{form}")(str(path) if as_text else path)
    assert enabled.settle(30)
    assert str(path) in learned
    assert getattr(pl, f"read_{form}")(path).equals(frame)


@pytest.mark.parametrize("form", FORMS)
def test_large_frames_are_learned_too(tmp_path, enabled, learned, form):
    path = tmp_path / "out"
    getattr(pl.DataFrame({"a": range(100_000)}), f"write_{form}")(path)
    assert enabled.settle(30)
    assert str(path) in learned


@pytest.mark.parametrize("form", FORMS)
def test_without_nectar_nothing_is_learned(tmp_path, enabled, learned, form):
    nectar.disable()
    getattr(pl.DataFrame({"a": [1, 2]}), f"write_{form}")(tmp_path / "out")
    assert not learned


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_cannot_be_written_fails_as_without_nectar(tmp_path, enabled, learned, form):
    with pytest.raises(FileNotFoundError):
        getattr(pl.DataFrame({"a": [1, 2]}), f"write_{form}")(tmp_path / "nowhere" / "out")
    assert enabled.settle(30)
    assert not learned


def test_the_methods_of_frames_are_as_before_afterwards(enabled):
    inside = [getattr(pl.DataFrame, f"write_{form}") for form in FORMS]
    assert [method.__name__ for method in inside] == [f"write_{form}" for form in FORMS]
    assert [inspect.signature(method) for method in inside] == [inspect.signature(method) for method in PLAIN]
    assert inside != PLAIN
    nectar.disable()
    assert [getattr(pl.DataFrame, f"write_{form}") for form in FORMS] == PLAIN


PATCHED = """
import sys, polars as pl, nectar
plain, more = pl.DataFrame.write_csv, sys.argv[2]
if more:
    pl.DataFrame.write_csv = lambda self, *given: plain(self, *given) + more
nectar.enable(home=sys.argv[1], reserve=0, overhead="unlimited")
frame = pl.DataFrame({"a": [1]})
text = nectar.memo(lambda frame: frame.write_csv())
print(repr(text(frame)), nectar.last_run().parts[-1].outcome)
"""


def test_what_the_program_has_put_there_before_counts(tmp_path):
    """Nectar puts a function of its own around methods that write; what it found there is the program's."""

    def told(more):
        return _run(PATCHED, tmp_path / "home", more)

    assert told("") == r"'a\n1\n' computed"
    assert told("x") == r"'a\n1\nx' computed"
    assert told("y") == r"'a\n1\ny' computed"
    assert told("") == r"'a\n1\n' reused"
    assert told("y") == r"'a\n1\ny' reused"
