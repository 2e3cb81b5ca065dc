"""Random programs over folders to which anything happens: the answer is that of plain Sail over the files there are.

Three dozen programs by default, 500 with NECTAR_TEST_PROFILE=deep; each runs after every event of its history.
"""

import os
import random

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

import pyarrow.parquet
from tests.dialects.spark.incremental.random_parts import program, rows

PROGRAMS = 500 if os.environ.get("NECTAR_TEST_PROFILE") == "deep" else 36
EVENTS = 6
CHUNK = 12  # programs that share a store


def write(folder, name, when, r):
    pyarrow.parquet.write_table(rows(r), folder / name)
    os.utime(folder / name, (1_700_000_000 + when * 60,) * 2)


def event(folder, when, r):
    """Something happens to a folder; mostly a file comes."""
    files = sorted(path.name for path in folder.iterdir())
    what = r.choice(["append", "append", "append", "append", "several", "remove", "rewrite"])
    if what == "remove" and len(files) > 2:
        (folder / r.choice(files)).unlink()
    elif what == "rewrite" and files:
        write(folder, r.choice(files), when, r)
    for number in range({"append": 1, "several": 3}.get(what, 0)):
        write(folder, f"{r.randrange(10**6):06}-{when}-{number}.parquet", when, r)


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_histories(compared, tmp_path, first):
    put_together = 0
    for seed in range(first, min(first + CHUNK, PROGRAMS)):
        r = random.Random(f"history {seed}")
        folder = tmp_path / str(seed)
        folder.mkdir()
        for number in range(2):
            write(folder, f"first-{number}.parquet", number, r)
        for when in range(2, 2 + EVENTS):
            put_together += compared(program(lambda spark: spark.read.parquet(str(folder)), seed)) is not None
            event(folder, when, r)
    assert put_together >= 2 * CHUNK  # of 6 runs of each program; else the test would show nothing
