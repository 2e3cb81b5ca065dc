"""A process that is killed at any step leaves a whole result or garbage that can be deleted."""

import os
import signal
import subprocess
import sys

import pyarrow as pa
import pytest
from tests.store.making import KEY, entry_of, put_table

from nectar.store.problem import Gone
from nectar.store.read import Result
from nectar.store.store import Store

CHILD = """
import os, signal, sys
import pyarrow as pa
from nectar.store.store import Store
root, location, task, fatal = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
seen = 0
def reach(step):
    global seen
    seen += 1
    print(step, flush=True)
    if seen == fatal:
        os.kill(os.getpid(), signal.SIGKILL)
store = Store(root, reach=reach)
if task == "delete":
    store.delete(location)
else:
    with store.stage(location) as staging:
        staging.write_table(pa.table({"a": list(range(100))}), part_rows=50)
        published = staging.publish()
    print("published", published.manifest.hex(), published.size, published.files, published.rows, flush=True)
"""


def run(root, location, task, fatal):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(root), location, task, str(fatal)],
        capture_output=True,
        text=True,
        check=False,
    )
    if fatal == 0:
        assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def fork_and_die(work, fatal):
    """Runs work(reach) in a fork that is killed at the given step; cheaper than a new interpreter for each step."""
    child = os.fork()
    if child == 0:
        seen = 0

        def reach(step):
            nonlocal seen
            seen += 1
            if seen == fatal:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            work(reach)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def write_raw(root, location):
    """Commits without Arrow, whose threads do not survive a fork."""

    def work(reach):
        with Store(root, reach=reach).stage(location) as staging:
            staging.write_bytes("one", b"1" * 1000)
            staging.write_object(list(range(1000)))
            staging.publish()

    return work


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_commit_killed_at_every_step(tmp_path):
    steps = []
    dry = Store(tmp_path / "dry", reach=steps.append)
    write_raw(dry.root, dry.new_location(KEY))(steps.append)
    before_rename = steps.index("rename into place")
    for fatal in range(1, len(steps) + 1):
        root = tmp_path / str(fatal)
        after = Store(root)
        location = after.new_location(KEY)
        fork_and_die(write_raw(root, location), fatal)
        found = list(after.locations())
        if fatal <= before_rename + 1:
            assert all(each.staged for each in found), steps[fatal - 1]
        else:
            assert [(each.location, each.staged) for each in found] == [(location, False)], steps[fatal - 1]
        for each in found:
            assert not each.foreign
            after.delete(each.location)
        assert list(after.locations()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_delete_killed_at_every_step(tmp_path):
    steps = []
    dry = Store(tmp_path / "dry", reach=steps.append)
    location = dry.new_location(KEY)
    write_raw(dry.root, location)(lambda step: None)
    dry.delete(location)
    for fatal in range(1, len(steps) + 1):
        root = tmp_path / str(fatal)
        after = Store(root)
        with after.stage(location) as staging:
            staging.write_object([1])
            entry = entry_of(staging.publish())
        fork_and_die(lambda reach: Store(root, reach=reach).delete(location), fatal)
        opened = after.open(entry, verify="before")
        assert isinstance(opened, (Result, Gone)), steps[fatal - 1]
        assert isinstance(opened, Result) == any(not each.staged for each in after.locations())
        after.delete(location)
        assert list(after.locations()) == []


def test_table_commit_killed_in_a_fresh_process(tmp_path):
    dry = Store(tmp_path / "dry")
    steps = run(tmp_path / "dry", dry.new_location(KEY), "write", 0)
    published = steps.pop().split()
    assert published[0] == "published"
    for fatal in sorted({1, len(steps) // 2, steps.index("rename into place") + 1, len(steps)}):
        root = tmp_path / str(fatal)
        after = Store(root)
        location = after.new_location(KEY)
        run(root, location, "write", fatal)
        for each in list(after.locations()):
            assert each.staged or each.files == int(published[3])
            after.delete(each.location)
        assert list(after.locations()) == []
        put_table(after, pa.table({"a": [1]}))
        assert sum(1 for _ in after.locations()) == 1
