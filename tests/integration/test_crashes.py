"""A writer, an evictor and a collector are killed at every step of every protocol, and nothing is lost or left over.

The steps come from a dry run: every file operation and every beginning and end of a transaction. For each of them a
process is killed right before it. Then the parent looks: what was reported as kept is there and right, `check` finds
nothing that its repair does not mend, and what lies on disk is what the entries say.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.catalog.making import (
    bytes_of_entries,
    bytes_on_disk,
    key,
    manual_clock,
    opened,
    read,
    value,
)
from tests.integration.dying import Steps, in_child

from nectar.catalog.check import check
from nectar.catalog.service import Kept
from nectar.store.read import Result

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork")

BUDGET = 12_000
A_WRITERS_LEASE = 3600.0


# what is done until the end comes: each reports what was kept


def keep(catalog, report, number, size, content=None, **more):
    done = catalog.keep(key(number), key(0), value(number, size) if content is None else content, **more)
    assert isinstance(done, Kept), done
    report(number)


def keeps_small(catalog, report):
    keep(catalog, report, 100, 100)


def keeps_object(catalog, report):
    keep(catalog, report, 101, 3000)


def keeps_buffers(catalog, report):
    # An object with a buffer beside it: two parts and a manifest.
    import pickle

    keep(catalog, report, 102, 3000, content=pickle.PickleBuffer(bytearray(value(102, 3000))))


def keeps_second_result(catalog, report):
    keep(catalog, report, 0, 2500, content=value(7777, 2500))


def keeps_under_pressure(catalog, report):
    keep(catalog, report, 103, 6000)


def evicts(catalog, report):
    catalog.collector.budget = type(catalog.collector.budget)(size=3000)
    catalog.collector.enforce()


def sweeps(catalog, report):
    catalog.collector.sweep(grace=0.0)


def repairs(catalog, report):
    check(catalog, repair=True, thorough=True, grace=0.0)


def leases_pins_names(catalog, report):
    known = catalog.lookup([key(0)], [key(0)])[0].entry
    leases = catalog.lease([known], 60.0)
    catalog.renew(leases, 120.0)
    catalog.pin(known.key)
    catalog.bind("team/a", known.key)
    catalog.put_recipe([b"part", b"other"])
    catalog.end(leases)
    with catalog.open(known) as result:
        assert result.to_object() == value(0)
    catalog.flush()


def loses_damaged(catalog, report):
    known = catalog.index.lookup([key(1)])[key(1)]
    (Path(catalog.store.root) / "data" / known.location / "object.pickle").write_bytes(b"wrong")
    catalog.open(known)
    keep(catalog, report, 1, 2000)


PROTOCOLS = [
    keeps_small, keeps_object, keeps_buffers, keeps_second_result, keeps_under_pressure, evicts, sweeps, repairs,
    leases_pins_names, loses_damaged,
]  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """In memory where that is possible: what a killed process has written is there without any fsync."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    place = Path(tempfile.mkdtemp(prefix="nectar-crash-", dir="/dev/shm"))
    yield place
    shutil.rmtree(place)


@pytest.fixture
def prepared(folder):
    """A store with results, orphans, things left in staging and trash, and a deletion that was not finished."""
    home = folder / "prepared"
    clock = manual_clock()
    catalog = opened(home, clock)
    for number in range(3):
        assert isinstance(catalog.keep(key(number), key(0), value(number)), Kept)
    assert isinstance(catalog.keep(key(3), key(0), value(3, 100)), Kept)
    doomed = catalog.keep(key(4), key(0), value(4)).entry
    catalog.index.evict([doomed.key], clock.now())  # and its files stay: the process ended here
    for place in ("data", "staging", "trash"):
        location = catalog.store.new_location(key(50))
        folder = home / "results" / place / (location if place == "data" else location[3:])
        folder.mkdir(parents=True)
        (folder / "object.pickle").write_bytes(b"x" * 300)
        if place == "data":
            (folder / "manifest.json").write_bytes(b"{}")
    (home / "results" / "data" / "notes.txt").write_text("mine")
    catalog.close()
    return home


def changes(statement):
    """Whether a statement does more than read."""
    return statement.split()[0] in ("INSERT", "UPDATE", "DELETE", "COMMIT")


def run(home, clock, protocol):
    def work(steps, report):
        catalog = opened(home, clock, steps, budget=BUDGET, verify="before")
        catalog.index._connection.set_trace_callback(
            lambda statement: steps(f"sql {statement}") if changes(statement) else None
        )
        protocol(catalog, report)
        catalog.close()
        report("end")

    return work


def steps_of(home, clock, protocol):
    steps = Steps()
    work = run(home, clock, protocol)
    work(steps, lambda line: None)
    return steps.seen


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.__name__)
def test_killed_at_every_step(prepared, folder, protocol):
    clock = manual_clock()
    shutil.copytree(prepared, folder / "dry")
    steps = steps_of(folder / "dry", clock, protocol)
    assert len(steps) >= 2, steps
    reached = 0
    for fatal in range(1, len(steps) + 1):
        home = folder / str(fatal)
        shutil.copytree(prepared, home)
        reported, killed = in_child(run(home, clock, protocol), fatal)
        reached += killed
        examine(home, clock, protocol, [int(line) for line in reported if line != "end"], steps[fatal - 1])
        shutil.rmtree(home)
    assert reached == len(steps), "a step of the dry run was not reached"


def examine(home, clock, protocol, kept, step):
    catalog = opened(home, clock, budget=BUDGET, verify="before")
    survivors = () if protocol in (evicts, keeps_under_pressure) else (0, 2, 3)
    for number in {*kept, *survivors}:
        assert matches(read(catalog, number), number), f"{number} is lost or wrong after a kill before {step!r}"
    for number in (0, 1, 2, 100, 101, 102, 103):  # what was not reported may be there: then it is right
        known = catalog.index.lookup([key(number)]).get(key(number))
        if known is not None:
            opened_result = catalog.open(known)
            assert isinstance(opened_result, Result) or protocol is loses_damaged, step
            if isinstance(opened_result, Result):
                assert matches(opened_result.to_object(), number), step
    assert catalog.index.get_recipe(catalog.put_recipe([b"part", b"other"])) == [b"part", b"other"]
    check(catalog, repair=True, thorough=True, grace=0.0)
    left = [finding for finding in check(catalog, thorough=True, grace=0.0) if finding.what != "foreign file"]
    assert left == [], step
    # A writer that died holds its lease until the time is over, and not longer.
    clock_after = manual_clock()
    clock_after.move(A_WRITERS_LEASE + 1)
    catalog.close()
    catalog = opened(home, clock_after, budget=BUDGET)
    check(catalog, repair=True, thorough=True, grace=0.0)
    assert catalog.index.leases() == [], step
    assert catalog.usage().pending == 0
    assert bytes_on_disk(catalog) == bytes_of_entries(catalog) + len("mine"), step
    assert not list((home / "results" / "staging").iterdir()), step
    assert not list((home / "results" / "trash").iterdir()), step
    assert (home / "results" / "data" / "notes.txt").read_text() == "mine"
    for number in kept:
        assert matches(read(catalog, number), number), step
    assert isinstance(catalog.keep(key(200), key(0), value(200)), Kept), step
    catalog.close()


def matches(found, number):
    return found is not None and bytes(found) == value(
        number, {100: 100, 101: 3000, 102: 3000, 103: 6000, 3: 100}.get(number, 2000)
    )


def test_first_use_killed_at_every_step(folder):
    clock = manual_clock()

    def protocol(catalog, report):
        keep(catalog, report, 5, 2000)

    steps = steps_of(folder / "dry", clock, protocol)
    assert "sql begin migrate" in steps
    for fatal in range(1, len(steps) + 1):
        home = folder / str(fatal)
        reported, killed = in_child(run(home, clock, protocol), fatal)
        assert killed
        catalog = opened(home, clock)
        assert matches(read(catalog, 5), 5) or "5" not in reported
        clock_after = manual_clock()
        clock_after.move(A_WRITERS_LEASE + 1)
        catalog.close()
        catalog = opened(home, clock_after)
        check(catalog, repair=True, thorough=True, grace=0.0)
        assert check(catalog, thorough=True, grace=0.0) == []
        assert bytes_on_disk(catalog) == bytes_of_entries(catalog)
        assert isinstance(catalog.keep(key(6), key(0), value(6)), Kept)
        catalog.close()


TABLE_WRITER = """
import sys
import pyarrow as pa
from tests.catalog.making import key, opened
from tests.integration.dying import Steps
from nectar.clock import ManualClock
steps = Steps(int(sys.argv[3]))
catalog = opened(sys.argv[1], ManualClock(float(sys.argv[2])), steps)
done = catalog.keep(key(0), key(0), pa.table({"a": list(range(2000)), "b": ["x"] * 2000}), table=True)
print("kept", type(done).__name__, flush=True)
catalog.lookup([key(0)], [key(0)])
catalog.close()
print(*steps.seen, sep="\\n")
"""


def test_table_killed_at_a_sample_of_steps(folder):
    pa = pytest.importorskip("pyarrow")
    clock = manual_clock()

    def write(home, fatal):
        command = [sys.executable, "-c", TABLE_WRITER, str(home), str(clock.now()), str(fatal)]
        root = Path(__file__).parents[2]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
        assert (done.returncode == 0) == (fatal == 0), done.stderr
        return done.stdout.splitlines()

    said, *steps = write(folder / "dry", 0)
    assert said == "kept Kept"
    rename, add = steps.index("rename into place") + 1, steps.index("sql commit add entry") + 1
    for fatal in (steps.index("write part") + 1, rename, rename + 1, add, add + 1):
        home = folder / str(fatal)
        reported = write(home, fatal)
        catalog = opened(home, clock, verify="before")
        known = catalog.index.lookup([key(0)]).get(key(0))
        assert (known is not None) == (fatal > add)
        assert reported == ["kept Kept"] or known is None or fatal == add + 1
        if known is not None:
            with catalog.open(known) as result:
                assert result.to_arrow() == pa.table({"a": list(range(2000)), "b": ["x"] * 2000})
        clock_after = manual_clock()
        clock_after.move(A_WRITERS_LEASE + 1)
        catalog.close()
        catalog = opened(home, clock_after)
        check(catalog, repair=True, thorough=True, grace=0.0)
        assert check(catalog, thorough=True, grace=0.0) == []
        assert bytes_on_disk(catalog) == bytes_of_entries(catalog)
        catalog.close()
