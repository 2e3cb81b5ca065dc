"""People are told what they wait for, on a terminal, once it takes long."""

import io
import subprocess
import sys

import pytest

from nectar.recipes import rebuild
from nectar.recipes.environment import environment_here
from nectar.recipes.recipe import Proof, Recipe

RECIPE = Recipe("polars", b"k", b"p", "sort of clicks", 75.0, environment_here("Polars", "1", ""), Proof(b"", b"", ()))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def wait(seconds):
    command = [sys.executable, "-c", f"import time; time.sleep({seconds})"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    rebuild._wait(process, b"order", RECIPE)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("stderr", "patience", "told"),
    [
        (Terminal, 0.0, "nectar: rebuilding sort of clicks, which took 1 min 15 s before\n"),
        (Terminal, 600.0, ""),
        (io.StringIO, 0.0, ""),
    ],
)
def test_a_line_on_a_terminal(stderr, patience, told, monkeypatch):
    written = stderr()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(rebuild, "_PATIENCE", patience)
    wait(0.2 if patience == 0 else 0)
    assert written.getvalue() == told
