"""Files and folders: their modes whatever the umask; nothing through a link, nothing that blocks or has no end."""

import os
import stat
import subprocess
import sys

import pytest
from tests.trust.conftest import TEAM

from nectar.trust import files
from nectar.trust.files import PRIVATE, Access

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no modes here")


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077, 0o277])
def test_what_is_made_is_private_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        os.close(files.create(tmp_path / "new"))
        os.close(files.append(tmp_path / "log"))
        files.replace(tmp_path / "note", b"x")
        files.make_folder(tmp_path / "folder")
    finally:
        os.umask(before)
    assert {path.name: mode(path) for path in tmp_path.iterdir()} == {
        "new": 0o600, "log": 0o600, "note": 0o600, "folder": 0o700,
    }  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files to any group")
@pytest.mark.parametrize(("writing", "of_files", "of_folders"), [(True, 0o660, 0o2770), (False, 0o640, 0o2750)])
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_what_is_made_for_a_group_is_for_that_group_alone(tmp_path, writing, of_files, of_folders, umask):
    access = Access(TEAM, writing)
    before = os.umask(umask)
    try:
        os.close(files.create(tmp_path / "new", access))
        files.make_folder(tmp_path / "folder", access)
    finally:
        os.umask(before)
    assert [mode(tmp_path / name) for name in ("new", "folder")] == [of_files, of_folders]
    assert {path.stat().st_gid for path in tmp_path.iterdir()} == {TEAM}


@pytest.mark.parametrize("exists", [True, False])
def test_no_link_is_followed(tmp_path, exists):
    target, link = tmp_path / "target", tmp_path / "link"
    if exists:
        target.write_text("precious")
    link.symlink_to(target)
    with pytest.raises(FileExistsError):
        files.create(link)
    for action in (files.append, files.read, files.opened):
        with pytest.raises(OSError, match=r"[Ll]ink|No such file"):
            action(link)
    with pytest.raises(NotADirectoryError):
        files.make_folder(link)
    files.replace(link, b"new")
    assert link.read_bytes() == b"new"
    assert not link.is_symlink()
    assert (target.read_text() == "precious") if exists else not target.exists()


def test_a_link_is_followed_where_that_is_meant(tmp_path):
    (tmp_path / "target").write_text("x")
    (tmp_path / "link").symlink_to("target")
    assert files.read_known(tmp_path / "link")[0] == b"x"


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_plain_file_is_refused_at_once(tmp_path, kind):
    path = {"pipe": tmp_path / "pipe", "folder": tmp_path, "device": "/dev/zero"}[kind]
    if kind == "pipe":
        os.mkfifo(path)
    for action in (files.read, files.append):
        with pytest.raises(OSError):
            action(path)


def test_no_more_is_read_than_may_be(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 100)
    assert files.read(tmp_path / "file", 100) == b"x" * 100
    with pytest.raises(OSError, match="larger"):
        files.read(tmp_path / "file", 99)


def test_a_replacement_that_fails_leaves_nothing(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        files.replace(tmp_path / "folder", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_an_appended_line_goes_to_the_end(tmp_path):
    for line in (b"a\n", b"b\n"):
        fd = files.append(tmp_path / "log", PRIVATE)
        os.write(fd, line)
        os.close(fd)
    assert files.read(tmp_path / "log") == b"a\nb\n"


def test_no_descriptor_reaches_other_programs(tmp_path):
    fd = files.create(tmp_path / "new")
    done = subprocess.run([sys.executable, "-c", f"import os; os.fstat({fd})"], capture_output=True, check=False)
    os.close(fd)
    assert done.returncode == 1
