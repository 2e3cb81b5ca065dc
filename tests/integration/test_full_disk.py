"""Whoever makes room needs none: rows and files go on a disk without a free byte, whatever ends the process."""

import errno
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from tests.catalog.making import (
    MEMORY,
    bytes_of_entries,
    bytes_on_disk,
    fork_and_die,
    key,
    manual_clock,
    opened,
    read,
    value,
)

from nectar.catalog.check import check
from nectar.catalog.embedded import INDEX
from nectar.catalog.index.spare import Spare
from nectar.catalog.index.sqlite import SqliteIndex
from nectar.catalog.service import Kept, NotKept
from nectar.errors import CatalogFailure
from nectar.faults import nowhere

SPARE = f"{INDEX}-spare"


def prepared(home, **settings):
    """Six results in files, three inline."""
    catalog = opened(home, manual_clock(), **settings)
    for number in range(9):
        assert isinstance(catalog.keep(key(number), key(0), value(number, 100_000 if number < 6 else 100)), Kept)
    catalog.close()


class FullDisk:
    """A disk that is full until somebody deletes something; SQLite can write nothing before."""

    def __init__(self, home, spare=True):
        self.home, self.steps = home, []
        if not spare:
            (home / SPARE).unlink()
        self.before = self.used()

    def used(self):
        files = [*(self.home / "results").rglob("*"), self.home / SPARE]
        return sum(path.stat().st_size for path in files if path.is_file())

    def __call__(self, step):
        self.steps.append(step)
        if step.startswith("sql commit") and self.used() >= self.before:
            raise sqlite3.OperationalError("database or disk is full")
        if step in ("make folder", "write spare") or step.startswith(("create", "write")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def everything_evicted(catalog):
    collector = catalog.collector
    collector.enforce()
    collector.evict(collector.plan(everything=True))
    collector.sweep()
    assert catalog.usage().entries == 0
    assert (catalog.usage().pending, catalog.usage().doomed) == (0, 0)
    assert bytes_on_disk(catalog) == 0


@pytest.mark.parametrize("spare", [True, False], ids=["with spare room", "without"])
def test_everything_is_evicted_without_a_byte(tmp_path, spare):
    prepared(tmp_path)
    catalog = opened(tmp_path, manual_clock(), FullDisk(tmp_path, spare))
    everything_evicted(catalog)
    catalog.close()


def test_files_go_before_rows_only_where_nothing_else_helps(tmp_path):
    prepared(tmp_path)
    disk = FullDisk(tmp_path)
    catalog = opened(tmp_path, manual_clock(), disk)
    everything_evicted(catalog)
    committed = [at for at, step in enumerate(disk.steps) if step == "sql commit evict"]
    removed = [at for at, step in enumerate(disk.steps) if step == "remove part"]
    assert disk.steps.index("remove spare") < min(removed)
    assert len(committed) == 2, "one that failed, one with everything"
    assert committed[1] < min(removed), "the row goes first, as ever"
    catalog.close()


def test_leased_and_pinned_results_stay_on_a_full_disk(tmp_path):
    prepared(tmp_path)
    catalog = opened(tmp_path, manual_clock())
    catalog.pin(key(0))
    lease = catalog.lease([catalog.index.lookup([key(1)])[key(1)]], 3600.0)
    full = opened(tmp_path, catalog.clock, FullDisk(tmp_path, spare=False))
    full.collector.evict(full.collector.plan(everything=True))
    assert {entry.key for entry in full.index.entries()} == {key(0), key(1)}
    assert read(full, 0) == value(0, 100_000)
    assert read(full, 1) == value(1, 100_000)
    catalog.end(lease)
    full.close()
    catalog.close()


def test_where_only_rows_could_go_and_none_can_nothing_is_lost(tmp_path):
    catalog = opened(tmp_path, manual_clock())
    for number in range(3):
        catalog.keep(key(number), key(0), value(number, 100))
    catalog.close()
    catalog = opened(tmp_path, manual_clock(), FullDisk(tmp_path, spare=False))
    with pytest.raises(CatalogFailure, match="the disk is full"):
        catalog.collector.evict(catalog.collector.plan(everything=True))
    for number in range(3):
        assert read(catalog, number) == value(number, 100)
    catalog.close()


@pytest.fixture
def folder():
    """In memory, if that can be."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("spare", [True, False], ids=["with spare room", "without"])
def test_killed_while_making_room_nothing_wrong_is_handed_out(folder, spare):
    """What is left is whole, or a miss; it is computed again without an error, and all room is found again."""
    fatal = killed = 0
    while killed == fatal:
        fatal += 1
        home = folder / str(fatal)
        catalog = opened(home, manual_clock())
        for number in range(2):
            catalog.keep(key(number), key(0), value(number, 1000))
        catalog.close()

        def work(reach):
            disk = FullDisk(home, spare)

            def both(step):
                reach(step)
                disk(step)

            everything_evicted(opened(home, manual_clock(), both))

        killed += fork_and_die(work, fatal)
        catalog = opened(home, manual_clock())
        for number in range(2):
            entry = catalog.index.lookup([key(number)]).get(key(number))
            found = catalog.open(entry) if entry is not None else None
            if hasattr(found, "to_object"):
                assert found.to_object() == value(number, 1000)
            else:
                assert catalog.index.lookup([key(number)]) == {}, "what is gone is known to be gone"
            assert isinstance(catalog.keep(key(number), key(0), value(number, 1000)), Kept)
            assert read(catalog, number) == value(number, 1000)
        catalog.collector.enforce()
        assert bytes_on_disk(catalog) == bytes_of_entries(catalog)
        assert check(catalog, thorough=True) == []
        catalog.close()
    assert killed > 10


# spare room


def test_half_of_a_spare_file_is_not_taken_for_all(tmp_path):
    SqliteIndex(tmp_path / INDEX).close()
    spare = tmp_path / SPARE
    whole = spare.stat().st_size
    spare.write_bytes(b"x")
    SqliteIndex(tmp_path / INDEX).close()
    assert spare.stat().st_size == 1, "another process may be writing it"
    os.utime(spare, (0, 0))
    SqliteIndex(tmp_path / INDEX).close()
    assert spare.stat().st_size == whole


def test_without_room_no_half_of_a_spare_file_is_left(tmp_path):
    def full(step):
        if step == "write spare":
            (tmp_path / SPARE).write_bytes(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    Spare(tmp_path / INDEX, full).hold()
    assert not (tmp_path / SPARE).exists()


def test_who_has_given_up_the_spare_room_leaves_it_to_others(tmp_path):
    spare = Spare(tmp_path / INDEX, nowhere)
    spare.hold()
    assert spare.give_up()
    spare.hold()
    assert not (tmp_path / SPARE).exists()
    Spare(tmp_path / INDEX, nowhere).hold()
    assert (tmp_path / SPARE).exists()


# a real disk


@pytest.fixture
def disk(tmp_path):
    """A device of ten megabytes."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("needs the right to mount")
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=10m", "tmpfs", place]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def fill(place):
    with open(place / "filler", "ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    assert os.statvfs(place).f_bavail == 0


def gc(home, *more):
    command = [Path(sys.executable).with_name("nectar"), "gc", "--home", home, *more]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NECTAR_RESERVE": "0"})


@pytest.mark.parametrize("spare", [True, False], ids=["with spare room", "without"])
@pytest.mark.parametrize("shared", [True, False], ids=["beside another process", "alone"])
def test_a_full_disk_is_cleaned_from_the_command_line(disk, spare, shared):
    home = disk / "home"
    prepared(home)
    if not spare:
        (home / SPARE).unlink()
    other = opened(home, manual_clock()) if shared else None
    fill(disk)
    done = gc(home, "--apply", "--all")
    assert done.returncode == 0, done.stderr
    assert "Freed 602 kB" in done.stdout
    assert os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize > 500_000
    if other is not None:
        assert read(other, 1) is None
        assert isinstance(other.keep(key(1), key(0), value(1)), Kept)
        other.close()
    catalog = opened(home, manual_clock())
    assert catalog.usage().entries == (1 if shared else 0)
    assert check(catalog, thorough=True) == []
    catalog.close()


def test_a_program_on_a_full_disk_has_its_results_and_keeps_none(disk):
    home = disk / "home"
    prepared(home)
    fill(disk)
    catalog = opened(home, manual_clock())
    for number in range(9):
        assert read(catalog, number) == value(number, 100_000 if number < 6 else 100)
    fill(disk)
    assert isinstance(catalog.keep(key(20), key(0), value(20, 300_000)), NotKept)
    catalog.close()
