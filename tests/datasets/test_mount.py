"""Names as files of the system, where FUSE can be used."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fsspec
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.datasets.conftest import TABLE

import nectar
from nectar.datasets import access, filesystem
from nectar.datasets.filesystem import NectarFileSystem
from nectar.datasets.mount import MountedNames


def why_not() -> str:
    """Why nothing can be mounted here; empty if it can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse cannot be used here"
    done = subprocess.run([sys.executable, "-c", "import mfusepy"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"mfusepy cannot be loaded: {done.stderr.strip().splitlines()[-1]}"


NOT_HERE = why_not()


# without FUSE: what FUSE would be told


@pytest.fixture
def names(named):
    return MountedNames(NectarFileSystem())


def test_files_and_folders(names):
    assert names.readdir("/", 0) == [".", "..", "team"]
    assert set(names.readdir("/team", 0)) == {".", "..", "clicks.parquet", "clicks.arrow", "deep"}
    assert names.getattr("/team")["st_mode"] == 0o040555
    file = names.getattr("/team/clicks.parquet")
    assert (file["st_mode"], file["st_nlink"]) == (0o100444, 1)
    number = names.open("/team/clicks.parquet", os.O_RDONLY)
    content = names.read("", 1 << 30, 0, number)
    assert len(content) == file["st_size"]
    assert names.read("", 4, 2, number) == content[2:6]
    names.release("", number)
    assert names._open == {}


@pytest.mark.parametrize(("path", "number"), [("/nothing", 2), ("/team/x.parquet", 2), ("/team/clicks@9.arrow", 2)])
def test_errors_are_numbers(names, path, number):
    with pytest.raises(OSError) as caught:
        names.getattr(path)
    assert caught.value.errno == number


def test_opening_a_deleted_result_makes_it_again(names, enabled):
    enabled.catalog.discard(list(enabled.catalog.index.entries()))
    number = names.open("/team/clicks.arrow", os.O_RDONLY)
    assert_frame_equal(pl.read_ipc(names.read("", 1 << 30, 0, number)), TABLE)
    names.release("", number)


def test_a_stat_runs_nothing(names, enabled, monkeypatch):
    for suffix in ("arrow", "parquet"):
        assert names.getattr(f"/team/clicks.{suffix}")["st_size"] > 0
    filesystem._held._files.clear()
    enabled.catalog.discard(list(enabled.catalog.index.entries()))
    with monkeypatch.context() as patched:
        patched.setattr(access, "made_again", lambda *_: pytest.fail("nobody has opened it"))
        for path in ("/team/clicks.arrow", "/team/clicks.parquet", "/team/clicks@1.arrow", "/team/deep/pages.parquet"):
            assert names.getattr(path)["st_size"] == 0
        assert "clicks.arrow" in names.readdir("/team", 0)
    number = names.open("/team/clicks.arrow", os.O_RDONLY)
    assert names.getattr("/team/clicks.arrow")["st_size"] == len(names.read("", 1 << 30, 0, number)) > 0
    names.release("", number)


def test_a_result_that_cannot_be_made_again_is_told_in_the_log(names, enabled, tmp_path, caplog):
    enabled.catalog.discard(list(enabled.catalog.index.entries()))
    (tmp_path / "clicks.parquet").unlink()
    with pytest.raises(OSError) as caught:
        names.open("/team/clicks.parquet", os.O_RDONLY)
    assert caught.value.errno == errno.ENOENT
    assert "clicks.parquet is gone" in caplog.text
    assert "run the query" in caplog.text


# with FUSE


@pytest.fixture
def mounted(named, home, tmp_path):
    """A folder with the names, served by a process of its own."""
    if NOT_HERE:
        pytest.skip(NOT_HERE)
    folder = tmp_path / "mounted"
    folder.mkdir()
    code = "from nectar.cli import main; main()"
    command = [sys.executable, "-c", code, "mount", str(folder), "--home", str(home)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not os.path.ismount(folder):
        if process.poll() is not None:
            pytest.fail(process.stderr.read())
        time.sleep(0.05)
    yield folder
    process.send_signal(signal.SIGINT)
    process.wait(30)
    assert not os.path.ismount(folder)


def test_others_read_mounted_names(mounted):
    assert sorted(os.listdir(mounted / "team")) == ["clicks.arrow", "clicks.parquet", "deep"]
    assert_frame_equal(pl.read_parquet(mounted / "team" / "clicks.parquet"), TABLE)
    assert_frame_equal(pl.read_ipc(mounted / "team" / "clicks.arrow"), TABLE)
    with fsspec.open(str(mounted / "team" / "clicks.parquet")) as file:
        assert len(file.read()) == (mounted / "team" / "clicks.parquet").stat().st_size
    done = subprocess.run(["ls", "-R", str(mounted)], capture_output=True, text=True, check=True)
    assert "pages.parquet" in done.stdout


def test_a_mounted_folder_is_read_only(mounted):
    with pytest.raises(OSError, match="Read-only"):
        (mounted / "team" / "new.parquet").write_bytes(b"")
    with pytest.raises(OSError, match="Read-only"):
        (mounted / "team" / "clicks.parquet").unlink()
    with pytest.raises(FileNotFoundError):
        (mounted / "team" / "nothing.parquet").stat()


def test_a_new_name_shows_in_a_mounted_folder(mounted, tmp_path):
    nectar.save(pl.scan_parquet(Path(tmp_path) / "clicks.parquet").select(pl.len()), "later")
    assert pl.read_parquet(mounted / "later.parquet").item() == 1200


def test_opening_a_deleted_result_in_a_mounted_folder_makes_it_again(mounted, named):
    """One that was not read since it was mounted: what was read may still be in the memory of the mount."""
    named.settle()
    assert named.catalog.discard(list(named.catalog.index.entries())) == 2
    assert_frame_equal(pl.read_ipc(mounted / "team" / "clicks.arrow"), TABLE)
    assert len(list(named.catalog.index.entries())) == 1
