"""Whatever is damaged in a home, no wrong value is handed out or kept, and no program ends because of it.

Hundreds of homes with one thing wrong in each are played in a few processes (`damaging.py`): one that ends early was
ended by the damage whose seed it said last.
"""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("damaging.py")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("NECTAR_")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damage")
    done = run(folder)
    assert done.returncode == 0, done.stderr
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def run(folder, *seeds):
    command = [sys.executable, "-W", "ignore", str(PROGRAM), str(folder), *map(str, seeds)]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=folder, check=False)


def played(folder, first, last):
    """What was done and what went wrong, for each seed; a process that ends early goes on behind the seed it was at."""
    found = []
    while first < last:
        done = run(folder, first, last)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        found += [line for line in lines if "wrong" in line]
        if done.returncode == 0:
            break
        reached = lines[-1]["seed"] if lines else first
        ending = (done.stderr.strip().splitlines() or [""])[-1]
        found.append({"seed": reached, "done": "?", "wrong": [f"the process ended with {done.returncode}: {ending}"]})
        first = reached + 1
    return found


def all_played(folder, seeds, processes):
    share = -(-len(seeds) // (2 * processes))
    with ThreadPoolExecutor(processes) as pool:
        ranges = [(start, min(start + share, seeds.stop)) for start in range(seeds.start, seeds.stop, share)]
        return [each for some in pool.map(lambda pair: played(folder, *pair), ranges) for each in some]


def check_all(folder, seeds, processes):
    found = all_played(folder, seeds, processes)
    assert [each for each in found if each["wrong"]] == []
    assert len(found) == len(seeds)
    kinds = {each["done"].split(",")[0].rsplit(" ", 1)[-1] for each in found}
    parts = {"table-00000.arrow", "table-00000.parquet", "object.pickle", "object.buffers", "manifest.json"}
    assert kinds >= {*parts, "catalog.db", "programs", "verified"}, "every kind of file was damaged"


def test_five_hundred_damages(folder):
    check_all(folder, range(500), 2)


@pytest.mark.deep
def test_two_thousand_damages(folder):
    check_all(folder, range(1000, 3000), 2)
