"""However a process ends: its results are kept if it came to an end of its own, and the store is whole in any case.

Each program runs in a fresh process, which computes and ends at once. Python 3.12 and newer start no threads at the end
of a process, from which moment on depends on the version, and executors take no work there on any. So most programs run
as on the strictest: no thread can be started after the main one has ended.
"""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import polars as pl
import pytest
from tests.catalog.making import opened

from nectar.catalog.check import check

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and signals")
SOURCE = Path(__file__).parents[2] / "src"

WITHOUT_THREADS = """
import threading
def _refuse(self):
    raise RuntimeError("can't create new thread at interpreter shutdown")
threading._register_atexit(lambda: setattr(threading.Thread, "start", _refuse))
"""

MEMO = """
import asyncio, atexit, os, signal, sys, threading
last = []
atexit.register(lambda: [each() for each in last])  # runs after everything that Nectar does at the end
import nectar

def told():
    print(nectar.last_run().parts[-1].outcome, flush=True)

def after_the_main_thread(work):
    def wait():
        threading.main_thread().join()
        work()
    threading.Thread(target=wait).start()

@nectar.memo
def squares(n):
    return [i * i for i in range(n)]

@nectar.memo
async def squares_later(n):
    await asyncio.sleep(0)
    return [i * i for i in range(n)]

def work():
    assert squares(4) == [0, 1, 4, 9]
    told()

def work_async():
    assert asyncio.run(squares_later(4)) == [0, 1, 4, 9]
    told()
"""

POLARS = """
import nectar.store.inputs.identify as identify
identify._PATIENCE = identify._PATIENCE_PER_FILE = -1.0  # files are looked at in threads
import polars as pl
nectar.enable()

def doubled(x):
    return 2 * x

def frame():
    return pl.scan_parquet("data/*.parquet").with_columns(pl.col("a").map_elements(doubled, return_dtype=pl.Int64))

def query():
    assert frame().collect()["a"].sum() == 60
    told()

def query_async():
    async def main():
        return await frame().collect_async()
    assert asyncio.run(main())["a"].sum() == 60
    told()

def save():
    nectar.save(frame(), "saved")
    told()
"""

# What a program does last, and the exit code it ends with.
ENDS = {
    "its last line": ("work()", 0),
    "sys.exit": ("work(); sys.exit(3)", 3),
    "an exception": ("work(); raise ValueError", 1),
    "an interrupt": ("work(); os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT),
    "a handler": ("atexit.register(work)", 0),
    "a handler, after work": ("squares(3); atexit.register(work)", 0),
    "a thread that goes on": ("after_the_main_thread(work)", 0),
    "a thread that goes on, after work": ("squares(3); after_the_main_thread(work)", 0),
    "a thread nobody waits for": ("t = threading.Thread(target=work, daemon=True); t.start(); t.join()", 0),
    "an event loop in a handler": ("atexit.register(work_async)", 0),
    "an event loop in a thread that goes on": ("after_the_main_thread(work_async)", 0),
    "a child that was forked": ("sys.exit(work()) if os.fork() == 0 else os.wait()", 0),
}
ENDS_OF_QUERIES = {
    "a query": ("query()", 0),
    "a query, sys.exit": ("query(); sys.exit(3)", 3),
    "a query in a handler": ("atexit.register(query)", 0),
    "a query in a thread that goes on": ("after_the_main_thread(query)", 0),
    "a query in an event loop in a thread that goes on": ("after_the_main_thread(query_async)", 0),
    "a name": ("save()", 0),
    "a name in a handler": ("atexit.register(save)", 0),
}
GOES_ON = """
def work_for_ever():
    for n in range(10, 1_000_000):
        squares(n % 1000)
        n == 10 and (told(), begun.set())

begun = threading.Event()
threading.Thread(target=work_for_ever, daemon=True).start()
begun.wait()
"""
CASES = {name: (MEMO, *end) for name, end in ENDS.items()} | {
    name: (MEMO + POLARS, *end) for name, end in ENDS_OF_QUERIES.items()
}


class Place:
    """A folder with a catalog and data, where programs run."""

    def __init__(self, folder):
        self.folder, self.home = folder, folder / "home"
        (folder / "data").mkdir()
        for number in range(3):
            pl.DataFrame({"a": [number, 9]}).write_parquet(folder / "data" / f"{number}.parquet")

    def run(self, text):
        """Exit code, output and errors of a program."""
        (self.folder / "program.py").write_text(textwrap.dedent(text))
        settings = {"NECTAR_HOME": str(self.home), "NECTAR_RESERVE": "0", "PYTHONPATH": str(SOURCE)}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "program.py"], cwd=self.folder, env=os.environ | settings,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        return done.returncode, done.stdout.split(), done.stderr

    def kept(self):
        """How many results are kept, in a store that is found to be whole."""
        catalog = opened(self.home)
        try:
            assert check(catalog, thorough=True) == []
            return sum(1 for _ in catalog.index.entries())
        finally:
            catalog.close()


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def run_to_its_end(place, name, before):
    program, last, code = CASES[name]
    ended, told, errors = place.run(before + program + last)
    assert (ended, told) == (code, ["computed"]), errors
    assert "nectar" not in errors, errors
    return errors


@pytest.mark.parametrize("name", CASES)
def test_results_are_kept_though_no_thread_can_be_started_at_the_end(place, name):
    errors = run_to_its_end(place, name, WITHOUT_THREADS)
    assert place.kept() == 1 + ("after work" in name), errors


@pytest.mark.parametrize("name", ["its last line", "a handler", "a thread that goes on", "a query in a handler"])
def test_the_next_process_finds_them(place, name):
    program, last, code = CASES[name]
    run_to_its_end(place, name, "")
    assert place.run(program + last)[:2] == (code, ["reused"])
    assert place.kept() == 1


@pytest.mark.parametrize("begin", ["", "squares(3)"])
def test_what_runs_after_everything_is_written_runs_as_without_nectar(place, begin):
    code, told, errors = place.run(
        MEMO + POLARS + begin + "\nlast.extend([lambda: squares(4), lambda: frame().collect()])"
    )
    assert (code, told, errors) == (0, [], "")
    assert place.kept() == (1 if begin else 0)


@pytest.mark.parametrize("last", ["work(); os._exit(0)", "work(); os.kill(os.getpid(), signal.SIGTERM)", GOES_ON])
def test_a_process_that_is_cut_off_leaves_a_store_that_is_whole(place, last):
    _, told, errors = place.run(WITHOUT_THREADS + MEMO + last)
    assert told[0] == "computed", errors
    assert "Error" not in errors, errors
    place.kept()  # what was written whole; its last result may be lost
