"""What lies in a home is judged by itself, whatever the mode of its folder is now: closing takes nothing back."""

import math
import os
import stat

import pytest
from tests.trust.conftest import ALICE, MALLORY, MARK_OF_ANOTHER, TEAM, memo

from nectar.catalog.embedded import open_catalog
from nectar.catalog.index.sqlite import SqliteIndex
from nectar.errors import CatalogFailure, UntrustedError, UserError
from nectar.settings import Settings
from nectar.trust.contents import INDEX
from nectar.trust.home import access_of, opened, share

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
CLOSED = [0o700, 0o711, 0o755]
INDEX_FILES = [INDEX, f"{INDEX}-wal", f"{INDEX}-shm", f"{INDEX}-journal"]


def filled(home):
    """A home with one result in files."""
    catalog = open_catalog(Settings(home=home, reserve=0, inline=0))
    catalog.keep(b"k" * 32, b"p" * 32, list(range(5000)), seconds=9.0)
    catalog.close()


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def refused(home, said):
    """The home is refused, by who writes, reads, or looks whether there is one."""
    for options in ({}, {"reading": True}, {"reading": True, "tighten": False}):
        with pytest.raises(UntrustedError, match=said):
            opened(home, **options)
    assert access_of(home) is None
    with pytest.raises(UntrustedError, match=said):
        open_catalog(Settings(home=home, read_only=True))


@pytest.mark.parametrize("folder", CLOSED)
@pytest.mark.parametrize("open_to", [0o666, 0o664, 0o602])
@pytest.mark.parametrize("name", INDEX_FILES)
def test_an_index_that_others_may_write_to_is_refused_in_a_closed_folder(tmp_path, name, open_to, folder):
    home = tmp_path / "home"
    filled(home)
    path = home / name
    path.touch()
    os.chown(path, -1, TEAM if os.geteuid() == 0 else -1)
    path.chmod(open_to if os.geteuid() == 0 else open_to | 0o002)
    home.chmod(folder)
    refused(home, f"{path} may not be yours: .* may write to it")
    assert mode(home) == folder, "nothing is touched"


@pytest.mark.parametrize("folder", CLOSED)
@pytest.mark.parametrize("name", [*INDEX_FILES, "programs", "holders", MARK_OF_ANOTHER])
def test_what_somebody_else_has_planted_is_refused_after_the_folder_was_closed(place, name, folder):
    home = place / "home"
    filled(home)
    path = home / name
    if not path.exists():
        path.touch()
    os.chown(path, MALLORY, MALLORY)
    home.chmod(folder)
    refused(home, f"{path} may not be yours: it belongs to")


@pytest.mark.parametrize("folder", CLOSED)
@pytest.mark.parametrize("how", ["link", "name"])
def test_an_index_that_lies_elsewhere_too_is_refused_in_a_closed_folder(tmp_path, how, folder):
    home = tmp_path / "home"
    filled(home)
    if how == "link":
        (home / INDEX).rename(tmp_path / "elsewhere.db")
        (home / INDEX).symlink_to(tmp_path / "elsewhere.db")
    else:
        os.link(home / INDEX, tmp_path / "elsewhere.db")
    home.chmod(folder)
    refused(home, "no plain file" if how == "link" else "another name elsewhere")


@pytest.mark.parametrize("reading", [True, False])
def test_an_index_that_is_a_link_to_itself_is_an_error_that_says_so(tmp_path, reading):
    home = tmp_path / "home"
    opened(home)
    (home / INDEX).symlink_to(INDEX)
    with pytest.raises(UntrustedError, match="no plain file"):
        open_catalog(Settings(home=home, read_only=reading))
    with pytest.raises(CatalogFailure):
        SqliteIndex(home / INDEX, read_only=reading)


@pytest.mark.parametrize("name", [INDEX, f"{INDEX}-wal"])
def test_mending_the_rights_of_an_index_takes_nothing_back(tmp_path, name):
    """Whoever has it open can write to it still; who is told so moves it away."""
    home = tmp_path / "home"
    filled(home)
    (home / name).touch()
    (home / name).chmod(0o666)
    refused(home, "everybody may write to it")
    (home / name).chmod(0o600)
    home.chmod(0o700)
    for _ in range(2):
        refused(home, f"{home / INDEX} may not be yours: others could write to it before")
    (home / INDEX).rename(tmp_path / "away.db")
    filled(home)
    opened(home)
    assert not (home / "index-was-open").exists(), "it was about another file"


def test_a_note_on_the_index_that_means_nothing_counts(tmp_path):
    home = tmp_path / "home"
    filled(home)
    (home / "index-was-open").write_text("?")
    refused(home, "others could write to it before")


@pytest.mark.parametrize("folder", CLOSED)
def test_marks_that_others_could_write_do_not_count_and_results_are_doubted(tmp_path, folder):
    home = tmp_path / "home"
    filled(home)
    (home / MARK_OF_ANOTHER).write_text("whatever they wanted")
    (home / MARK_OF_ANOTHER).chmod(0o666)
    home.chmod(folder)
    assert opened(home).open_until > 0.0
    assert not (home / MARK_OF_ANOTHER).exists()


@pytest.mark.parametrize("folder", CLOSED)
@pytest.mark.parametrize("name", ["results", "results/data", "results/staging", "programs"])
def test_a_folder_of_a_home_that_others_could_write_to_is_closed_and_results_are_doubted(tmp_path, name, folder):
    home = tmp_path / "home"
    filled(home)
    (home / name).mkdir(exist_ok=True)
    (home / name).chmod(0o777)
    home.chmod(folder)
    assert opened(home).open_until > 0.0
    assert mode(home / name) == 0o700


@pytest.mark.parametrize("how", ["owner", "link"])
def test_since_when_a_home_is_closed_is_for_nobody_else_to_say(place, how):
    home = place / "home"
    filled(home)
    note = home / "was-open"
    if how == "link":
        note.symlink_to("/nowhere")
    else:
        note.touch()
    os.utime(note, (0, 0), follow_symlinks=False)
    os.chown(note, MALLORY, MALLORY, follow_symlinks=False)
    assert opened(home, reading=True, tighten=False).open_until == math.inf
    assert 0.0 < opened(home).open_until < math.inf, "from now on it is known"
    assert os.lstat(note).st_uid == os.geteuid()


# shared


@pytest.mark.parametrize("writing", [True, False])
def test_an_index_that_others_than_the_group_may_write_to_is_refused_in_a_shared_home(place, writing):
    home = place / "home"
    filled(home)
    share(home, TEAM, writing=writing)
    opened(home)
    (home / INDEX).chmod(0o662 if writing else 0o660)
    refused(home, "everybody may write to it" if writing else f"the group {TEAM} may write to it")


def test_an_index_that_a_member_has_made_counts_where_members_write_and_nowhere_else(place):
    home = place / "home"
    filled(home)
    share(home, TEAM, writing=True)
    os.chown(home / INDEX, ALICE, TEAM)
    opened(home)
    os.chown(home / INDEX, MALLORY, MALLORY)
    refused(home, f"belongs to user {MALLORY}")


def test_what_somebody_else_has_planted_is_not_shared(place):
    home = place / "home"
    filled(home)
    os.chown(home / INDEX, MALLORY, MALLORY)
    with pytest.raises(UntrustedError, match=f"belongs to user {MALLORY}"):
        share(home, TEAM, writing=True)


@pytest.mark.parametrize("is_home", [True, False])
@pytest.mark.parametrize("name", ["passwords.txt", ".ssh/id_rsa", "results/mine.csv", "catalog.sqlite", "verified-x"])
def test_a_folder_with_other_things_in_it_is_shared_with_nobody(tmp_path, name, is_home):
    home = tmp_path / "home"
    if is_home:
        filled(home)
    path = home / name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text("for nobody else")
    before = {each: each.lstat() for each in (home, *home.rglob("*"))}
    with pytest.raises(UserError, match=f"cannot be shared: {home / name.partition('/')[0]}.* is in it"):
        share(home, os.getegid(), writing=True)
    assert {each: each.lstat() for each in (home, *home.rglob("*"))} == before, "nothing is touched"


def test_a_project_whose_folders_have_names_of_ours_is_shared_with_nobody(tmp_path):
    for name in ("results", "programs"):
        (tmp_path / name).mkdir()
    with pytest.raises(UserError, match="is no part of a home"):
        share(tmp_path, os.getegid(), writing=True)


def test_a_store_elsewhere_is_shared_if_nothing_else_is_in_it(place):
    store = place / "store"
    catalog = open_catalog(Settings(home=place / "home", reserve=0, inline=0, store=str(store)))
    catalog.keep(b"k" * 32, b"p" * 32, list(range(5000)), seconds=9.0)
    catalog.close()
    for _ in range(2):
        assert share(store, TEAM, writing=True, store=True).access.group == TEAM
    (store / "notes.txt").touch()
    with pytest.raises(UserError, match=r"notes.txt is in it, which is no part of a store"):
        share(store, TEAM, writing=True, store=True)


def test_a_home_with_all_that_programs_leave_in_it_is_shared_again_and_again(place):
    home = place / "home"
    assert "1 kept" in memo(0, 1, home)[0]
    for note in (MARK_OF_ANOTHER, f"shared.json.{1:032x}", "was-open"):
        (home / note).touch(mode=0o600)
    for _ in range(2):
        share(home, TEAM, writing=True)
        assert "1 of 1 call from cache" in memo(0, 1, home)[0]


def test_a_mark_of_sharing_that_others_may_write_to_does_not_count(place):
    home = place / "home"
    share(home, TEAM, writing=False)
    (home / "shared.json").chmod(0o666)
    assert opened(home).access.group is None


# a program


def test_a_catalog_that_others_could_have_written_to_is_refused_and_the_program_runs(of):
    home = of(ALICE, "alice", 0o755) / "home"
    assert "1 kept" in memo(ALICE, 1, home)[0]
    home.chmod(0o755)
    (home / INDEX).chmod(0o666)
    said, errors = memo(ALICE, 1, home)
    assert "nothing kept" in said
    assert f"{home / INDEX} may not be yours: everybody may write to it" in errors
    assert errors.count("\n") == 1
