"""Full disks, missing rights, foreign files, an index from the future: a clear error, nothing lost, and work goes on.

Each step that can fail does fail once, and afterwards the store is as it was before or as it should be after.
"""

import errno
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.catalog.making import bytes_of_entries, bytes_on_disk, key, manual_clock, opened, read, value

from nectar.catalog.check import check
from nectar.catalog.embedded import INDEX
from nectar.catalog.index.schema import VERSION
from nectar.catalog.service import Kept, NotKept
from nectar.errors import CatalogFailure, StoreFailure


class Failing:
    """Raises an error at the n-th step that fits; counts those that fit."""

    def __init__(self, fits, error, at=0):
        self.fits, self.error, self.at = fits, error, at
        self.seen = []

    def __call__(self, step):
        if self.fits(step):
            self.seen.append(step)
            if len(self.seen) == self.at or self.at < 0:
                raise self.error()


def no_space():
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def sqlite_full():
    return sqlite3.OperationalError("database or disk is full")


def writes_a_file(step):
    return step.split()[0] in ("make", "create", "write", "fsync", "rename")


def prepared(home, clock):
    catalog = opened(home, clock)
    for number in range(3):
        assert isinstance(catalog.keep(key(number), key(0), value(number)), Kept)
    catalog.close()
    return home


def nothing_is_lost(home, clock, kept=()):
    """What was there is there; nothing is left over."""
    catalog = opened(home, clock, verify="before")
    for number in (0, 1, 2, *kept):
        assert read(catalog, number) == value(number)
    assert {finding.what for finding in check(catalog, repair=True, thorough=True, grace=0.0)} <= {
        "orphaned files",
        "unfinished deletion",
    }
    assert check(catalog, thorough=True, grace=0.0) == []
    assert bytes_on_disk(catalog) == bytes_of_entries(catalog)
    assert catalog.usage().pending == 0
    catalog.close()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS, errno.EDQUOT])
def test_no_file_can_be_written(tmp_path, code):
    clock = manual_clock()
    home = prepared(tmp_path / "home", clock)
    failing = Failing(writes_a_file, lambda: OSError(code, os.strerror(code)), at=-1)
    catalog = opened(home, clock, failing)
    done = catalog.keep(key(9), key(0), value(9))
    assert isinstance(done, NotKept)
    assert os.strerror(code) in done.reason
    assert ";" in done.reason, "it says what to do"
    assert isinstance(catalog.keep(key(10), key(0), value(10, 100)), Kept), "small ones need no file"
    assert read(catalog, 1) == value(1)
    catalog.close()
    nothing_is_lost(home, clock)


@pytest.mark.parametrize("small", [False, True])
def test_space_runs_out_at_every_step_of_keeping(tmp_path, small):
    clock = manual_clock()
    home = prepared(tmp_path / "home", clock)
    size = 100 if small else 2000
    for fits, error in ((writes_a_file, no_space), (lambda step: step.startswith("sql"), sqlite_full)):
        dry = Failing(fits, error)
        catalog = opened(shutil.copytree(home, tmp_path / "dry"), clock, dry)
        catalog.keep(key(9), key(0), value(9, size))
        catalog.close()
        shutil.rmtree(tmp_path / "dry")
        for at in range(1, len(dry.seen) + 1):
            copy = shutil.copytree(home, tmp_path / "copy")
            catalog = opened(copy, clock, Failing(fits, error, at))
            done = catalog.keep(key(9), key(0), value(9, size))
            assert isinstance(done, NotKept), dry.seen[at - 1]
            assert "pace" in done.reason or "full" in done.reason
            again = catalog.keep(key(9), key(0), value(9, size))
            assert isinstance(again, Kept), f"after {dry.seen[at - 1]}: {again}"
            assert read(catalog, 9) == value(9, size)
            catalog.close()
            clock_after = manual_clock()
            clock_after.move(4000.0)
            catalog = opened(copy, clock_after)
            catalog.collector.sweep(grace=0.0)
            catalog.close()
            nothing_is_lost(copy, clock_after)
            shutil.rmtree(copy)


def test_space_runs_out_at_every_step_of_evicting(tmp_path):
    clock = manual_clock()
    home = prepared(tmp_path / "home", clock)
    for fits, error in ((writes_a_file, no_space), (lambda step: step.startswith("sql"), sqlite_full)):
        dry = Failing(fits, error)
        catalog = opened(shutil.copytree(home, tmp_path / "dry"), clock, dry)
        catalog.collector.evict(catalog.collector.plan(everything=True))
        catalog.close()
        shutil.rmtree(tmp_path / "dry")
        for at in range(1, len(dry.seen) + 1):
            copy = shutil.copytree(home, tmp_path / "copy")
            catalog = opened(copy, clock, Failing(fits, error, at))
            with suppress(CatalogFailure):
                catalog.collector.evict(catalog.collector.plan(everything=True))
            catalog.collector.evict(catalog.collector.plan(everything=True))
            catalog.collector.delete_doomed()
            assert bytes_on_disk(catalog) == 0, f"after {dry.seen[at - 1]}"
            assert check(catalog, grace=0.0) == []
            catalog.close()
            shutil.rmtree(copy)


def test_one_file_that_cannot_be_deleted_does_not_keep_the_others(tmp_path):
    clock = manual_clock()
    home = prepared(tmp_path / "home", clock)
    failing = Failing(lambda step: step == "remove part", lambda: OSError(errno.EIO, "Input/output error"), at=1)
    catalog = opened(home, clock, failing)
    with pytest.raises(StoreFailure, match="device failed"):
        catalog.collector.evict(catalog.collector.plan(everything=True))
    assert len(catalog.index.doomed()) == 1
    catalog.collector.enforce()
    assert catalog.index.doomed() == []
    assert bytes_on_disk(catalog) == 0
    catalog.close()


def test_looking_up_goes_on_when_uses_cannot_be_written_down(tmp_path, caplog):
    caplog.set_level(logging.INFO)  # of what may pass people are told once, by the health of the catalog
    clock = manual_clock()
    home = prepared(tmp_path / "home", clock)
    catalog = opened(home, clock, Failing(lambda step: step.startswith("sql begin"), sqlite_full, at=-1))
    clock.move(100.0)
    assert read(catalog, 1) == value(1)
    catalog.close()
    assert "could not be written down" in caplog.text


@pytest.fixture
def disk(tmp_path):
    """Makes a device of a size."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("needs the right to mount")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = []

    def make(size):
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("mounting is not allowed here")
        mounted.append(place)
        return place

    yield make
    for place in mounted:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_disk_that_is_really_full(disk):
    small_disk = disk("4m")
    catalog = opened(small_disk / "home")
    outcomes = [catalog.keep(key(number), key(0), value(number, 150_000)) for number in range(40)]
    kept = [number for number, done in enumerate(outcomes) if isinstance(done, Kept)]
    assert 10 < len(kept) < 40
    reasons = {done.reason for done in outcomes if isinstance(done, NotKept)}
    assert reasons
    assert all("No space left" in reason or "disk is full" in reason for reason in reasons)
    filler = small_disk / "filler"
    with open(filler, "wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    assert os.statvfs(small_disk).f_bavail == 0
    for number in range(100, 110):
        assert isinstance(catalog.keep(key(number), key(0), value(number, 9000)), NotKept)
    for number in kept:
        assert read(catalog, number) == value(number, 150_000)
    catalog.close()

    catalog = opened(small_disk / "home", budget=1_000_000)
    for number in kept:
        assert read(catalog, number) == value(number, 150_000)
    catalog.collector.enforce()  # with not a byte to spare
    assert catalog.usage().total <= 1_000_000
    filler.unlink()
    assert isinstance(catalog.keep(key(200), key(0), value(200)), Kept)
    check(catalog, repair=True, grace=0.0)
    assert check(catalog, thorough=True, grace=0.0) == []
    catalog.close()


def test_the_reserve_of_the_disk_is_kept(disk):
    place, reserve = disk("32m"), 16_000_000

    def free():
        return os.statvfs(place).f_bavail * os.statvfs(place).f_frsize

    catalog = opened(place / "home", reserve=reserve)
    for number in range(200):
        done = catalog.keep(key(number), key(0), value(number, 150_000))
        assert isinstance(done, Kept), done
        assert free() > reserve - 150_000
    assert read(catalog, 199) == value(199, 150_000)
    assert 20 < catalog.usage().entries < 120
    with open(place / "filler", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, free() - 2_000_000)
    done = catalog.keep(key(400), key(0), value(400, 150_000))
    assert isinstance(done, NotKept)
    assert "reserve of the disk" in done.reason
    catalog.close()


def test_foreign_files_are_never_touched(tmp_path):
    clock = manual_clock()
    home = prepared(tmp_path / "home", clock)
    results = home / "results"
    known = opened(home, clock)
    inside = Path(known.store.root) / "data" / known.index.lookup([key(1)])[key(1)].location / "notes.txt"
    known.close()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    foreign = [
        inside, results / "README", results / "data" / "a.csv", results / "data" / "ab" / "b.csv",
        results / "staging" / "c",
        results / "trash" / "d" / "e", results / "data" / "ab" / ("ab" * 32 + "-" + "0" * 16) / "f.parquet",
        elsewhere / "object.pickle", elsewhere / "manifest.json", home / "mine.txt",
    ]  # fmt: skip
    for path in foreign:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    link = results / "data" / "ab" / ("ab" * 32 + "-" + "1" * 16)
    link.symlink_to(elsewhere)
    catalog = opened(home, clock)
    clock.move(10**6)
    catalog.collector.sweep(grace=0.0)
    catalog.collector.evict(catalog.collector.plan(everything=True))
    check(catalog, repair=True, thorough=True, grace=0.0)
    left = check(catalog, thorough=True, grace=0.0)
    assert {finding.what for finding in left} == {"foreign file"}
    assert not any(finding.mended for finding in left)
    assert list(catalog.index.entries()) == []
    assert [path.read_text() for path in foreign] == ["mine"] * len(foreign)
    assert link.is_symlink()
    ours = [path for path in results.rglob("object.*") if path not in foreign and not path.is_relative_to(link)]
    assert ours == []
    catalog.close()


def test_an_index_from_the_future(tmp_path):
    home = prepared(tmp_path / "home", manual_clock())
    connection = sqlite3.connect(home / INDEX)
    connection.execute(f"PRAGMA user_version={VERSION + 1}")
    connection.commit()
    connection.close()
    before = {
        path: path.read_bytes()
        for path in home.rglob("*")
        if path.is_file() and path.suffix not in (".db-shm", ".db-wal")
    }
    for read_only in (False, True):
        with pytest.raises(CatalogFailure, match="newer version of Nectar.*upgrade"):
            opened(home, read_only=read_only)
    assert {path: path.read_bytes() for path in before} == before
    connection = sqlite3.connect(home / INDEX)
    connection.execute(f"PRAGMA user_version={VERSION}")
    connection.commit()
    connection.close()
    nothing_is_lost(home, manual_clock())


def test_a_home_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CatalogFailure, match="NECTAR_HOME"):
        opened(tmp_path / "file" / "home")


def test_an_unreadable_store_is_no_reason_to_forget_its_results(tmp_path):
    clock = manual_clock()
    home = prepared(tmp_path / "home", clock)
    denied = Failing(
        lambda step: step.startswith(("read", "open")),
        lambda: PermissionError(errno.EACCES, "Permission denied"),
        at=-1,
    )
    catalog = opened(home, clock, denied)
    known = catalog.lookup([key(1)], [key(0)])[0].entry
    with pytest.raises(StoreFailure, match="rights"):
        catalog.open(known)
    assert catalog.index.lookup([key(1)])
    catalog.close()
    nothing_is_lost(home, clock)


def test_an_index_that_was_deleted_leaves_nothing_behind(tmp_path):
    clock = manual_clock()
    home = prepared(tmp_path / "home", clock)
    for path in home.glob(f"{INDEX}*"):
        path.unlink()
    catalog = opened(home, clock)
    assert read(catalog, 1) is None
    assert isinstance(catalog.keep(key(1), key(0), value(1)), Kept)
    assert {finding.what for finding in check(catalog, repair=True, grace=0.0)} == {"orphaned files"}
    assert read(catalog, 1) == value(1)
    assert bytes_on_disk(catalog) == bytes_of_entries(catalog)
    catalog.close()


def test_a_store_that_was_deleted_is_computed_anew(tmp_path):
    clock = manual_clock()
    home = prepared(tmp_path / "home", clock)
    shutil.rmtree(home / "results")
    catalog = opened(home, clock)
    found = check(catalog, repair=True)
    assert [finding.what for finding in found].count("missing result") == 3
    assert check(catalog, grace=0.0) == []
    assert isinstance(catalog.keep(key(1), key(0), value(1)), Kept)
    assert read(catalog, 1) == value(1)
    catalog.close()


def test_damage_that_happens_while_the_index_cannot_be_written(tmp_path):
    clock = manual_clock()
    home = prepared(tmp_path / "home", clock)
    catalog = opened(home, clock, Failing(lambda step: step.startswith("sql begin lose"), sqlite_full, at=-1))
    known = catalog.index.lookup([key(1)])[key(1)]
    shutil.rmtree(home / "results" / "data" / known.location)
    assert not hasattr(catalog.open(known), "to_object"), "the caller computes it anew"
    catalog.close()
