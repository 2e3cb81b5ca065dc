"""Whether a path leads where it led before a moment."""

import os
import time

import pytest

from nectar.clock import SystemClock
from nectar.store.inputs.local import LocalInputs
from nectar.store.inputs.paths import leads_there_since


@pytest.fixture
def place(tmp_path):
    """Two folders with a file of the same name, and links to the first, in a folder that nobody else changes."""
    tmp_path = tmp_path / "inner" / "place"
    for name in ("one", "two"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "file").write_text(name)
    (tmp_path / "relative").symlink_to("one")
    (tmp_path / "absolute").symlink_to(tmp_path / "one")
    (tmp_path / "chain").symlink_to("relative")
    (tmp_path / "up").symlink_to("two/../one")
    time.sleep(0.05)  # the system's clock of files may be some milliseconds behind
    return tmp_path


def leads(path, moment, is_local=lambda path, device: True):
    return leads_there_since(str(path), moment, is_local)


def test_what_nobody_touched_leads_where_it_led(place):
    moment = time.time_ns()
    assert leads(place / "one/inner/file", moment)
    time.sleep(0.05)
    (place / "beside").write_text("a file beside others makes no difference")
    assert leads(place / "one/inner/file", moment)
    (place / "one" / "beside").write_text("now one may have been put there with it")
    assert not leads(place / "one/inner/file", moment)


@pytest.mark.parametrize("puts_time_back", [False, True])
def test_another_folder_in_its_place_is_seen(place, puts_time_back):
    before = os.stat(place)
    moment = time.time_ns()
    time.sleep(0.05)
    (place / "one").rename(place / "old")
    (place / "two").rename(place / "one")
    if puts_time_back:
        os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (place / "one/inner/file").read_text() == "two"
    assert not leads(place / "one/inner/file", moment)


@pytest.mark.parametrize("path", ["relative", "absolute", "chain", "up", "one/../one"])
def test_links_and_ways_up_are_never_certain(place, path):
    assert (place / path / "inner/file").read_text() == "one"
    assert not leads(f"{place}/{path}/inner/file", time.time_ns())


def test_what_has_another_clock_is_never_certain(place):
    assert not leads(place / "one/inner/file", time.time_ns(), lambda path, device: not path.endswith("inner"))


def test_another_file_in_its_place_is_seen_by_its_own_time(place):
    moment = time.time_ns()
    time.sleep(0.05)
    os.replace(place / "two" / "inner" / "file", place / "one" / "inner" / "file")
    assert not leads(place / "one/inner/file", moment)


def test_a_path_that_leads_nowhere(place):
    with pytest.raises(OSError):
        leads(place / "nowhere", time.time_ns())


# files


class Kind:
    """All file systems are of one kind."""

    def __init__(self, kind):
        self._kind = kind

    def kind(self, path, device, now):
        return self._kind


@pytest.mark.parametrize(("kind", "later", "older"), [
    ("ext4", 400, True), ("ext4", 100, False), ("tmpfs", 400, False), ("nfs", 400, False), ("", 400, False),
])  # fmt: skip
def test_a_file_is_older_if_nothing_can_be_left_of_it_that_was_not_written(place, kind, later, older):
    """Not where what was written through a memory map may not have reached the disk, or the clock is another's."""
    inputs = LocalInputs(SystemClock(), "host", (), 2.0, Kind(kind))
    assert inputs.is_older(str(place / "one/inner/file"), time.time() + later) is older


def test_a_relative_path_is_never_older(place, monkeypatch):
    monkeypatch.chdir(place)
    inputs = LocalInputs(SystemClock(), "host", (), 2.0, Kind("ext4"))
    assert not inputs.is_older("one/inner/file", time.time() + 400)
