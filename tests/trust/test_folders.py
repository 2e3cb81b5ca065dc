"""Folders are made with those above them: private, and nowhere but where their path leads to for sure."""

import os
import stat

import pytest
from tests.trust.conftest import ALICE, MALLORY, TEAM, nectar

from nectar.trust import folders
from nectar.trust.folders import make_folders

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners here")


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077, 0o777])
@pytest.mark.parametrize("by_descriptor", [True, False])
def test_all_that_is_made_on_the_way_is_private(tmp_path, monkeypatch, umask, by_descriptor):
    monkeypatch.setattr(folders, "_BY_DESCRIPTOR", by_descriptor)
    before = os.umask(umask)
    try:
        assert make_folders(tmp_path / "a" / "b" / "c") == ""
        assert make_folders(tmp_path / "a" / "b" / "c") == ""
    finally:
        os.umask(before)
    assert {mode(tmp_path / each) for each in ("a", "a/b", "a/b/c")} == {0o700}


def test_links_of_this_user_lead_on(tmp_path):
    (tmp_path / "far" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("far/inner/..")
    (tmp_path / "again").symlink_to(tmp_path / "link")
    assert make_folders(tmp_path / "again" / "x" / "y") == ""
    assert (tmp_path / "far" / "x" / "y").is_dir()


def test_nothing_is_made_where_there_is_something_else(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    (tmp_path / "circle").symlink_to("circle")
    for name in ("file", "nowhere", "circle"):
        with pytest.raises(OSError, match=".*"):
            make_folders(tmp_path / name / "x")
    assert not (tmp_path / "missing").exists()


def test_nothing_is_made_where_others_may_write(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    assert "everybody may write to" in make_folders(tmp_path / "open" / "x")
    (tmp_path / "link").symlink_to("open")
    assert "everybody may write to" in make_folders(tmp_path / "link" / "x")
    assert list((tmp_path / "open").iterdir()) == []


def test_a_group_that_may_write_there_is_no_reason(of):
    folder = of(0, "team", 0o2775, TEAM)
    assert "may write to" in make_folders(folder / "x")
    assert make_folders(folder / "x", TEAM) == ""


@pytest.mark.parametrize("what", ["link", "folder"])
def test_what_somebody_puts_there_while_a_folder_is_made_is_not_entered(of, place, monkeypatch, what):
    of(0, "tmp", 0o1777)
    mine, way, make = of(0, "mine", 0o700), place / "tmp" / "way", os.mkdir

    def faster(name, mode, *, dir_fd):
        if not os.path.lexists(way):
            way.symlink_to(mine) if what == "link" else make(way)
            os.lchown(way, MALLORY, MALLORY)
        return make(name, mode, dir_fd=dir_fd)

    monkeypatch.setattr(folders.os, "mkdir", faster)
    assert make_folders(way / "x" / "y") == f"{way} belongs to user {MALLORY}"
    assert list(mine.iterdir()) == []
    assert what == "link" or list(way.iterdir()) == []


def test_who_takes_away_what_is_made_holds_nobody_up(tmp_path, monkeypatch):
    made = []

    def gone(name, mode, *, dir_fd):
        made.append(name)
        raise FileExistsError

    monkeypatch.setattr(folders.os, "mkdir", gone)
    with pytest.raises(FileNotFoundError, match="again and again"):
        make_folders(tmp_path / "x")
    assert len(made) == folders._MOST_MADE


@pytest.mark.parametrize("umask", [0o000, 0o002])
def test_consent_makes_a_private_configuration_folder(of, umask):
    """In ~/.config lie settings of programs, and commands that are run when the user logs in."""
    home, work = of(ALICE, "alice"), of(ALICE, "work")
    (work / "nectar.toml").write_text(f'store = "{work}/store"\n')
    os.chown(work / "nectar.toml", ALICE, ALICE)
    done = nectar(ALICE, "trust", work, umask=umask, home=home)
    assert done.returncode == 0, done.stderr
    assert {mode(home / each) for each in (".config", ".config/nectar", ".config/nectar/trusted")} == {0o700}


def test_consent_is_not_given_where_others_decide(of):
    home, work = of(ALICE, "alice"), of(ALICE, "work")
    (work / "nectar.toml").write_text(f'store = "{work}/store"\n')
    os.chown(work / "nectar.toml", ALICE, ALICE)
    (home / ".config").mkdir()
    (home / ".config").chmod(0o777)
    done = nectar(ALICE, "trust", work, home=home)
    assert done.returncode == 1
    assert "consent cannot be remembered" in done.stderr
    assert list((home / ".config").iterdir()) == []
