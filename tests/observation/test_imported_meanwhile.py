"""Libraries that a computation imports: what it draws from their generators and sets in them counts all the same."""

import os
import subprocess
import sys

import pytest
from tests.recipes.projects import write_distribution

PROGRAM = """
import sys
import nectar
import nt_library

@nectar.memo
def compute(x):
    return nt_library.go(x)

assert {library!r} not in sys.modules
compute(3)
assert nectar.session.current().settle(30)
print(nectar.last_run().parts[-1].keeping or nectar.last_run().details())
"""
DRAWS = "draws from, or seeds, "
CASES = {
    "numpy": ("numpy", "return numpy.arange(x).tolist()", "kept"),
    "a draw of numpy": ("numpy", "return numpy.random.rand(x).tolist()", DRAWS),
    "a byte of numpy": ("numpy", "return numpy.random.bytes(1)", DRAWS),
    "a seed of numpy": ("numpy", "numpy.random.seed(x); return x", DRAWS),
    "how numpy prints": ("numpy", "numpy.set_printoptions(precision=x); return x", "how numpy treats errors or prints"),
    "csv": ("csv", "return list(csv.reader(['a,b']))", "kept"),
    "a dialect": ("csv", "csv.register_dialect('nt', delimiter=';'); return x", "dialects of CSV"),
    "an option": ("pandas", "pandas.set_option('display.precision', 9); return x", "options of pandas"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_imported_while_it_runs_is_looked_at(name, tmp_path):
    library, body, expected = CASES[name]
    pytest.importorskip(library)
    site = tmp_path / "site-packages"
    site.mkdir()
    text = f"def go(x):\n    import {library}\n    {body}\n"
    write_distribution(site, "nt_library", "1.0", {"nt_library.py": text})
    path = os.pathsep.join([str(site), *sys.path])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM.format(library=library)], capture_output=True, text=True,
        env={**os.environ, "NECTAR_HOME": str(tmp_path / "home"), "PYTHONPATH": path},
    )  # fmt: skip
    assert expected in done.stdout, done.stdout + done.stderr
    assert ("not kept" in done.stdout) is (expected != "kept"), done.stdout
