"""The wheel as people install it: into an empty environment, with what it asks for and nothing else.

`make test-wheel` has the wheels ready; no index is asked. A program is run twice, each time in a fresh process, and the
second run must reuse what the first computed.
"""

import os
import subprocess
import sys
import textwrap
import venv
from pathlib import Path

import pytest

_given = os.environ.get("NECTAR_TEST_WHEELS", "")
WHEELS = Path(_given).resolve()
pytestmark = [
    pytest.mark.skipif(not _given, reason="make test-wheel runs it"),
    pytest.mark.skipif(sys.platform == "win32", reason="environments are laid out differently there"),
]

# Functions that a library for pickling has to take by value: of the script itself, a closure, a lambda.
QUERIES = """
    import nectar
    import polars as pl

    FACTOR = 3

    def scaled(x):
        return FACTOR * x

    def shifted(by):
        def shift(s):
            return s + by
        return shift

    nectar.enable()
    frame = pl.scan_csv("data.csv")
    for query in (
        frame.with_columns(pl.col("a").map_elements(scaled, return_dtype=pl.Int64)),
        frame.with_columns(pl.col("a").map_batches(shifted(5), return_dtype=pl.Int64)),
        frame.map_batches(lambda df: df.filter(pl.col("a") > 1)),
        frame.group_by("b").agg(pl.col("a").sum()).sort("b"),
    ):
        print(query.collect()["a"].sum(), nectar.last_run().parts[-1].outcome)
"""
CALLS = """
    import nectar

    @nectar.memo
    def squares(n):
        return {"squares": [i * i for i in range(n)]}

    print(sum(squares(5)["squares"]), nectar.last_run().parts[-1].outcome)
"""


class Environment:
    """An environment of its own with the wheel and some of its extras."""

    def __init__(self, folder, what):
        self.folder, self.python = folder, folder / "env" / "bin" / "python"
        # Neither settings of pip nor modules of this environment reach the other one.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON", "NECTAR_"))}
        self.environment = kept | {"PIP_CONFIG_FILE": os.devnull, "NECTAR_HOME": str(folder / "home")}
        self.environment["NECTAR_OVERHEAD"] = "unlimited"  # its queries are so quick that they would be left alone
        venv.create(folder / "env", with_pip=True)
        self.run("-m", "pip", "install", "-qq", "--no-index", "--find-links", WHEELS, what)

    def run(self, *arguments):
        """What Python prints, run with these arguments."""
        done = subprocess.run(
            [self.python, *map(str, arguments)], cwd=self.folder, env=self.environment, capture_output=True, text=True,
            timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def program(self, text):
        """What a program prints."""
        (self.folder / "program.py").write_text(textwrap.dedent(text))
        return self.run("-W", "ignore", "program.py")


def test_queries_with_functions_are_reused_with_what_the_extra_brings(tmp_path):
    environment = Environment(tmp_path, "nectar-data[polars]")
    (tmp_path / "data.csv").write_text("a,b\n1,x\n2,y\n3,x\n")
    answers = ["18", "21", "5", "6"]
    assert environment.program(QUERIES) == [f"{answer} computed" for answer in answers]
    assert environment.program(QUERIES) == [f"{answer} reused" for answer in answers]


def test_calls_are_reused_with_the_core_alone(tmp_path):
    environment = Environment(tmp_path, "nectar-data")
    assert environment.program(CALLS) == ["30 computed"]
    assert environment.program(CALLS) == ["30 reused"]
    assert environment.run("-m", "nectar.cli", "check") != []
