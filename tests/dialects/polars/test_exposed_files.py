"""A file of somebody else is one thing when it is hashed and another when Polars reads it; then what it was."""

import os

import polars as pl
import pytest

import nectar
from nectar.store.inputs import local as inputs_local

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")


def total(path):
    return pl.scan_csv(path).select(pl.col("a").sum()).collect().item()


@pytest.mark.parametrize("way", ["file", "folder"])
def test_the_result_of_their_file_is_not_that_of_a_copy_of_the_users_own(tmp_path, monkeypatch, way):
    (tmp_path / "theirs").mkdir()
    mine, theirs = tmp_path / "mine.csv", tmp_path / "theirs" / "data.csv"
    good, evil = b"a\n1\n2\n", b"a\n1\n9\n"
    for path in (mine, theirs):
        path.write_bytes(good)
    (theirs if way == "file" else theirs.parent).chmod(0o777)
    hashed = inputs_local._digest

    def write(content):
        """Through a memory map: no time stamp tells."""
        status = theirs.stat()
        with theirs.open("r+b") as file:
            file.write(content)
        os.utime(theirs, ns=(status.st_atime_ns, status.st_mtime_ns))

    def flipped(fd, size, *more):
        """The file is what it was whenever it is hashed, and something else in between."""
        if not os.path.samestat(os.fstat(fd), theirs.stat()):
            return hashed(fd, size, *more)
        write(good)
        found = hashed(fd, size, *more)
        write(evil)
        return found

    monkeypatch.setattr(inputs_local, "_digest", flipped)
    monkeypatch.setattr(inputs_local, "status_at", without_change_time(inputs_local.status_at))
    monkeypatch.setattr(inputs_local, "status_of", without_change_time(inputs_local.status_of))
    nectar.enable(home=tmp_path / "home", overhead="unlimited", identity="content")
    try:
        assert total(theirs) == 10
        session = nectar.session.current()
        session.settle()
        assert total(theirs) == 10, "what they say of their own file"
        assert "1 of 1 query from cache" in str(nectar.last_run())
        assert total(mine) == 3
    finally:
        nectar.disable()


def without_change_time(plain):
    """Through a memory map a file is written to without it."""

    class Status:
        def __init__(self, status):
            self.status, self.st_ctime_ns = status, 0

        def __getattr__(self, name):
            return getattr(self.status, name)

    return lambda which: Status(plain(which))
