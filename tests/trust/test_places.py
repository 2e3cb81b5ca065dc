"""Who could change what lies at a path: modes, owners, links and the sticky bit, of every folder on the way."""

import os

import pytest
from tests.trust.conftest import ALICE, MALLORY, TEAM, give_by_list

from nectar.trust import people
from nectar.trust.places import distrust

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")


def test_a_file_of_this_user_in_folders_of_this_user_is_trusted(tmp_path):
    (tmp_path / "file").write_text("")
    assert distrust(tmp_path / "file") == ""
    assert distrust("/") == ""


def test_what_is_not_there_is_trusted_only_where_it_is_to_be_made(tmp_path):
    """Whoever has put it there may have taken it away for as long as it is looked at."""
    path = tmp_path / "not" / "there"
    assert distrust(path) == f"{path} is not there any more"
    assert distrust(path, absent=True) == ""
    (tmp_path / "link").symlink_to("nowhere")
    assert distrust(tmp_path / "link") == f"{tmp_path / 'link'} is not there any more"


def test_what_was_opened_lies_there_still(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    used = path.stat()
    assert distrust(path, used=used) == ""
    (tmp_path / "new").write_text("")
    (tmp_path / "new").rename(path)
    assert distrust(path, used=used) == f"{path} was exchanged while it was looked at"


def test_a_file_of_this_user_that_others_have_linked_to_is_not_one_that_was_put_there(place):
    """Where links to files of others are allowed: what this user once wrote elsewhere would count here."""
    shared = place / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    (place / "elsewhere").write_text("")
    os.link(place / "elsewhere", shared / "file")
    assert "has another name elsewhere" in distrust(shared / "file")
    assert distrust(place / "elsewhere") == "", "where nobody else may make names"


@pytest.mark.parametrize("target", ["..", ".", "inner/..", "/"])
def test_links_that_end_with_dots_or_at_the_root_mean_a_folder(tmp_path, target):
    (tmp_path / "inner").mkdir()
    (tmp_path / "link").symlink_to(target)
    assert distrust(tmp_path / "link", used=os.stat(tmp_path / "link")) == ""


@pytest.mark.parametrize("which", ["file", "folder", "above"])
def test_nobody_else_may_write_anywhere_on_the_way(tmp_path, which):
    path = tmp_path / "above" / "folder" / "file"
    path.parent.mkdir(parents=True)
    path.write_text("")
    assert distrust(path) == ""
    found = {"file": path, "folder": path.parent, "above": path.parent.parent}[which]
    found.chmod(0o777)
    assert distrust(path) == f"everybody may write to {found}"


def test_a_sticky_folder_is_fine_on_the_way_and_not_as_the_end(place):
    shared = place / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "mine").mkdir(mode=0o755)
    assert distrust(shared / "mine") == ""
    assert distrust(shared / "not yet", absent=True) == "", "who makes it first is seen when it is there"
    assert distrust(shared) == f"everybody may write to {shared}"
    os.chown(shared / "mine", MALLORY, MALLORY)
    assert distrust(shared / "mine" / "file") == f"{shared / 'mine'} belongs to user {MALLORY}"


@pytest.mark.parametrize("which", ["file", "folder", "above"])
def test_nothing_on_the_way_belongs_to_another_user(place, of, which):
    folder = of(0, "above/folder")
    (folder / "file").write_text("")
    path = {"file": folder / "file", "folder": folder, "above": place / "above"}[which]
    os.chown(path, ALICE, ALICE)
    assert distrust(folder / "file") == f"{path} belongs to user {ALICE}"
    assert distrust(folder / "file", owner=ALICE) == "", "of a home that its owner has shared"


def test_a_group_counts_as_others_unless_it_is_named(of):
    folder = of(0, "folder", 0o775, TEAM)
    assert distrust(folder) == f"the group {TEAM} may write to {folder}"
    assert distrust(folder / "file") == f"the group {TEAM} may write to {folder}"
    assert distrust(folder, group=TEAM) == ""
    assert "may write" in distrust(folder, group=TEAM + 1)
    folder.chmod(0o777)
    assert "everybody" in distrust(folder, group=TEAM)


def test_the_private_group_of_a_user_is_harmless_and_no_other(tmp_path):
    tmp_path.chmod(0o775)
    group = tmp_path.stat().st_gid
    people.harmless.cache_clear()
    assert (distrust(tmp_path) == "") is people.harmless(group, os.geteuid())
    assert not people.harmless(TEAM, os.geteuid())
    assert people.harmless(0, os.geteuid()) or os.geteuid() != 0


@pytest.mark.parametrize("absolute", [True, False])
def test_links_are_followed_to_where_they_lead_and_both_ends_count(tmp_path, absolute):
    real = tmp_path / "real"
    (real / "inner").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(real if absolute else "../" + tmp_path.name + "/./real")
    assert distrust(link / "inner") == ""
    real.chmod(0o777)
    assert distrust(link / "inner") == f"everybody may write to {real}"
    real.chmod(0o1777)
    assert distrust(link / "inner") == ""
    assert distrust(link) == f"everybody may write to {real}"


def test_a_link_in_a_folder_that_others_write_to_is_theirs(of):
    shared = of(0, "shared", 0o1777)
    mine = of(0, "mine")
    (shared / "link").symlink_to(mine)
    assert distrust(shared / "link") == ""
    os.chown(shared / "link", MALLORY, MALLORY, follow_symlinks=False)
    assert distrust(shared / "link") == f"{shared / 'link'} belongs to user {MALLORY}"


def test_links_that_lead_in_a_circle_are_not_trusted(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "too many links" in distrust(tmp_path / "a")


def test_a_list_of_rights_on_a_private_group_is_not_harmless(tmp_path):
    give_by_list(tmp_path, "access", MALLORY)
    assert "may write" in distrust(tmp_path)


def test_a_list_of_rights_is_seen_whatever_the_group(of):
    folder = of(0, "folder", 0o2770, TEAM)
    assert distrust(folder, group=TEAM) == ""
    give_by_list(folder, "access", MALLORY)
    assert "or others in its list of rights" in distrust(folder, group=TEAM)
