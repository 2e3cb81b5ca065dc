"""Files whose bytes change while their times stand still: mapped ones, and those that somebody still writes to."""

import mmap
import os
import sys

import pytest

from nectar.clock import ManualClock
from nectar.store.inputs import local
from nectar.store.inputs.identify import Inputs, RememberedHere
from nectar.store.inputs.writers import may_be_written

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who may write to a file")


class Disk:
    def __init__(self, kind="ext4"):
        self._kind = kind

    def kind(self, path, device, now):
        return self._kind


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "table.csv"
    file.write_bytes(b"a\n111\n222\n")
    if not leases(file):
        pytest.skip("there are no leases on this file system")
    return file


def leases(file):
    with file.open("r+b"):
        return may_be_written(str(file))


def later(file, seconds, kind="ext4", remembered=None):
    """Inputs as they are so many seconds after the last change of a file."""
    status = os.stat(file)
    clock = ManualClock(max(status.st_mtime, status.st_ctime) + seconds)
    return Inputs(remembered or RememberedHere(), clock, mounts=Disk(kind))


def test_a_mapped_file_that_changes_again_is_another_one(table):
    remembered = RememberedHere()
    with table.open("r+b") as file, mmap.mmap(file.fileno(), 0) as pages:
        file.close()  # the map keeps it open for writing
        pages[2:5] = b"333"
        (first,) = later(table, 10, remembered=remembered).identify([table])
        times = os.stat(table)
        pages[2:5] = b"555"
        if (times.st_mtime_ns, times.st_ctime_ns) != (os.stat(table).st_mtime_ns, os.stat(table).st_ctime_ns):
            pytest.skip("the page was written to the disk in between")
        (second,) = later(table, 10, remembered=remembered).identify([table])
        pages.flush()
    (third,) = later(table, 20, remembered=remembered).identify([table])
    assert set(first.names).isdisjoint(second.names)
    assert set(first.names).isdisjoint(third.names)


def test_a_file_that_somebody_may_still_write_to_is_known_by_its_content(table):
    with table.open("r+b"):
        assert later(table, 10).identify([table])[0].origin is None
    assert later(table, 10).identify([table])[0].origin is not None


def test_a_change_of_a_mapped_file_while_a_result_is_made_is_seen(table):
    with table.open("r+b") as file, mmap.mmap(file.fileno(), 0) as pages:
        pages[2:5] = b"333"
        inputs = later(table, 10)
        before = inputs.identify([table])
        pages[2:5] = b"555"
        assert inputs.changed(before)


def test_readers_do_not_count(table):
    with table.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        assert not may_be_written(str(table))


@pytest.mark.parametrize(
    ("kind", "seconds", "asked"), [("ext4", 10, 1), ("ext4", 600, 0), ("tmpfs", 600, 1), ("nfs", 10, 0)]
)
def test_only_files_that_may_have_changed_unseen_are_asked_about(table, monkeypatch, kind, seconds, asked):
    calls = []
    monkeypatch.setattr(local, "may_be_written", lambda path: calls.append(path) or False)
    later(table, seconds, kind).identify([table])
    assert len(calls) == asked


def test_a_file_that_cannot_be_asked_about_is_taken_as_it_seems(tmp_path, monkeypatch):
    assert not may_be_written(str(tmp_path / "missing"))
    assert not may_be_written("/proc/version")


def test_asking_leaves_the_file_free(table):
    for _ in range(3):
        assert not may_be_written(str(table))
        with table.open("r+b") as file:
            file.write(b"b")
