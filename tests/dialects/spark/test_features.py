"""What users do first: programs of many feature areas, as they are written for Spark, in processes of their own.

Each runs without Nectar, under `nectar run`, and under `nectar run` again: it prints the same three times, and the last
run computes only what must be computed. The first run is on the server of the tests, the others on Sail of their own.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

from tests.dialects.spark import engines
from tests.dialects.spark.conftest import write_day

import nectar

SOURCE = str(Path(nectar.__file__).parents[1])
PROGRAMS = Path(__file__).parent / "programs"

# How many queries are known the second time, and how many are not.
SECOND_RUN = {
    "basics": (7, 0),
    "cached": (5, 0),
    "files": (2, 2),  # it reads what it has just written
    "functions": (6, 0),
    "groups": (7, 0),
    "joins": (10, 0),
    "nested": (11, 0),
    "pandas_functions": (5, 0),
    "pandas_on_spark": (0, 7),  # every such frame numbers its rows as the engine cuts them
    "queries": (8, 0),
    "sets": (10, 0),
    "statistics": (12, 0),
    "times": (8, 1),  # it asks the clock
    "windows": (6, 0),
}


@pytest.fixture
def data(tmp_path):
    """What the programs read."""
    folder = tmp_path / "data"
    (folder / "clicks").mkdir(parents=True)
    for day in (1, 2):
        write_day(folder / "clicks", day)
    (folder / "orders.csv").write_text("id,country,amount\n1,FR,10.5\n2,DE,20.0\n3,FR,7.25\n4,IT,3.0\n5,DE,1.5\n")
    (folder / "returns.json").write_text('{"id": 2, "why": "broken"}\n{"id": 9, "why": "late"}\n')
    return folder


def run(program, data, home, *, under_nectar=True, remote=None):
    """What a program prints, and how many of its queries were reused, and were not."""
    environment = {**os.environ, "PYTHONPATH": SOURCE, "NECTAR_HOME": str(home), "NECTAR_RESERVE": "0"}
    environment.pop("SPARK_REMOTE", None)
    if remote is not None:
        environment["SPARK_REMOTE"] = remote
    command = [sys.executable, *(["-m", "nectar.cli", "run"] if under_nectar else []), str(program), str(data)]
    done = subprocess.run(
        command, cwd=data.parent, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    said = re.search(r"^nectar: (\d+) of (\d+) quer(?:y|ies) from cache", done.stderr, re.M)
    assert (said is not None) == under_nectar, done.stderr
    reused, parts = map(int, said.groups()) if said else (0, 0)
    return done.stdout, (reused, parts - reused)


SMALL = ("basics", "queries")


@engines.only_sail
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.small if name in SMALL else ()) for name in SECOND_RUN]
)
def test_a_program_prints_the_same_and_is_known_the_second_time(name, data, home, address):
    program = PROGRAMS / f"{name}.py"
    plain, _ = run(program, data, home, under_nectar=False, remote=address)
    assert plain
    first, _ = run(program, data, home)
    assert first == plain
    again, counted = run(program, data, home)
    assert again == plain
    assert counted == SECOND_RUN[name]


@engines.only_spark
@pytest.mark.parametrize("name", SECOND_RUN)
def test_a_program_prints_the_same_on_spark(name, data, home, address):
    program = PROGRAMS / f"{name}.py"
    plain, _ = run(program, data, home, under_nectar=False, remote=address)
    assert plain
    for _ in range(2):
        assert run(program, data, home, remote=address)[0] == plain


def test_every_program_is_run():
    assert {path.stem for path in PROGRAMS.glob("*.py")} == set(SECOND_RUN)
    assert not any("nectar" in path.read_text(encoding="utf-8").lower() for path in PROGRAMS.glob("*.py"))
