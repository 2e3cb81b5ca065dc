"""Golden vectors of scheme 1: the same fingerprints everywhere, for ever. A difference is a new scheme."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nectar.keys.scheme import SCHEME

HERE = Path(__file__).parent
VECTORS = HERE / "vectors.json"
FEATURE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def run(code, cwd, seed="0", flags=()):
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(map(str, (HERE, *sys.path)))}
    done = subprocess.run(
        [sys.executable, *flags, *code],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


IMPORTED = ["-c", "import json, program; print(json.dumps(program.fingerprints()))"]
IN_CELLS = [
    "-c",
    f"""
import json, linecache, types, sys
source = open({str(HERE / "program.py")!r}).read().split('if __name__ == "__main__"')[0]
module = types.ModuleType("__main__"); sys.modules["__main__"] = module
for number, cell in enumerate(source.split("\\n\\n\\n")):
    exec(compile("\\n" * number + cell, f"<ipython-input-{{number}}>", "exec"), vars(module))
print(json.dumps(module.fingerprints()))
""",
]


@pytest.fixture(scope="module")
def here():
    return run(IMPORTED, HERE)


def test_vectors_are_those_of_the_scheme(here):
    known = json.loads(VECTORS.read_text()).get(f"scheme {SCHEME}, Python {FEATURE}")
    if known is None:
        pytest.skip(f"no vectors for Python {FEATURE} yet; write them with python tests/golden/write_vectors.py")
    assert here == known


def test_all_differ(here):
    assert len(set(here.values())) == len(here)


@pytest.mark.parametrize(
    ("code", "seed", "flags", "elsewhere"),
    [
        pytest.param(IMPORTED, "1", (), False, id="another hash seed"),
        pytest.param(IMPORTED, "2", (), True, id="another folder"),
        pytest.param([str(HERE / "program.py")], "3", (), True, id="as __main__"),
        pytest.param(IN_CELLS, "4", (), True, id="in notebook cells"),
        pytest.param(IMPORTED, "5", ("-O",), False, id="with -O"),
        pytest.param(IMPORTED, "6", ("-OO",), False, id="with -OO"),
    ],
)
def test_circumstances_do_not_matter(here, code, seed, flags, elsewhere, tmp_path):
    assert run(code, tmp_path if elsewhere else HERE, seed, flags) == here
