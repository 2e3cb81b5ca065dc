"""Files that others can write to: their results are never those of the user's own files, whatever they hold."""

import os

import pytest
from tests.trust.conftest import MALLORY

from nectar.clock import SystemClock
from nectar.recipes.inputs import input_file, is_same
from nectar.store.inputs import local as inputs_local
from nectar.store.inputs.identify import Inputs, RememberedHere
from nectar.trust import places

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")

CONTENT = b"a,b\n1,2\n"


def reading(**options):
    """What knows files by what they hold."""
    return Inputs(RememberedHere(), SystemClock(), host="here", identity="content", **options)


def given_to(user):
    def give(path):
        if os.geteuid() != 0:
            pytest.skip("only root can give files away")
        os.chown(path, user, user, follow_symlinks=False)

    return give


def linked(path):
    """The file lies well, but the link to it lies where others make links."""
    real = path.parent.parent / "real"
    path.rename(real)
    other = path.parent.parent / "of everybody"
    other.mkdir()
    (other / "link").symlink_to(real)
    path.symlink_to(other / "link")
    other.chmod(0o777)


EXPOSED = {
    "file of another": given_to(MALLORY),
    "file writable": lambda path: path.chmod(0o666),
    "folder of another": lambda path: given_to(MALLORY)(path.parent),
    "folder writable": lambda path: path.parent.chmod(0o777),
    "through a folder of others": linked,
}


@pytest.fixture
def theirs(tmp_path):
    (tmp_path / "theirs").mkdir()
    path = tmp_path / "theirs" / "data.csv"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_bytes(CONTENT)
    return path


@pytest.mark.parametrize("how", EXPOSED)
def test_a_file_that_others_can_write_to_shares_no_name_with_a_copy_of_the_users_own(theirs, mine, how):
    one, own = reading().identify([theirs, mine])
    assert one.names[0] == own.names[0] == own.content, "of what nobody else can change copies are one"
    EXPOSED[how](theirs)
    one, own = reading().identify([theirs, mine])
    assert set(one.names).isdisjoint(own.names)
    assert one.content == own.content == own.names[0]
    (again,) = reading().identify([theirs])
    assert again.names == one.names, "it is known again itself"


def test_two_such_files_share_no_name_either(theirs, tmp_path):
    theirs.chmod(0o666)
    other = tmp_path / "other.csv"
    other.write_bytes(CONTENT)
    other.chmod(0o666)
    one, two = reading().identify([theirs, other])
    assert set(one.names).isdisjoint(two.names)


def test_a_file_of_the_user_in_a_sticky_folder_is_their_own(theirs, mine):
    theirs.parent.chmod(0o1777)
    one, own = reading().identify([theirs, mine])
    assert one.names[0] == own.names[0]


def in_a_sticky_folder(path):
    path.parent.chmod(0o1777)


@pytest.mark.parametrize("how", [None, in_a_sticky_folder, *EXPOSED.values()])
def test_a_folder_is_asked_about_once_for_all_its_files(theirs, monkeypatch, how):
    for number in range(20):
        theirs.with_name(str(number)).write_bytes(CONTENT)
    paths = list(theirs.parent.iterdir())
    if how is not None:
        how(theirs)
    inputs, asked = reading(), []
    first = inputs.identify(paths)
    steps = places._steps
    monkeypatch.setattr(places, "_steps", lambda path: asked.append(path) or steps(path))
    again, other = inputs.identify(paths), reading()
    assert again == first
    assert asked == [str(theirs)] * (how is linked), "only a link leads elsewhere"
    asked.clear()
    other.identify([path for path in paths if path != theirs])
    assert asked == [str(theirs.parent)]


def test_what_is_said_of_a_file_by_the_way_to_its_folder_is_what_is_said_of_it_alone(theirs):
    """In a folder where everybody may make something: a file with another name elsewhere."""
    for change in (
        lambda: None, lambda: theirs.parent.chmod(0o1777), lambda: os.link(theirs, theirs.parent.parent / "name"),
        lambda: theirs.parent.chmod(0o700), lambda: theirs.chmod(0o666), theirs.unlink, theirs.parent.rmdir,
    ):  # fmt: skip
        change()
        alone = places.distrust(theirs)
        assert bool(places.distrust_in(places.way_into(str(theirs.parent)), str(theirs))) is bool(alone)


def test_what_is_known_of_folders_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs_local, "_MOST_FOLDERS", 5)
    inputs = reading()
    for number in range(20):
        path = tmp_path / str(number) / "file"
        path.parent.mkdir()
        path.write_bytes(CONTENT)
        inputs.identify([path])
    assert 0 < len(inputs._local._folders) <= 5


def test_nothing_is_asked_of_files_that_are_known_by_their_origin(theirs, monkeypatch):
    monkeypatch.setattr(inputs_local, "way_into", lambda folder: pytest.fail("it was asked about"))
    inputs = Inputs(RememberedHere(), SystemClock(), host="here", guard=-1e9)
    assert inputs.identify([theirs])[0].content is None


def test_a_recipe_knows_such_a_file_again_and_no_other_by_it(theirs):
    before = input_file(reading().identify([theirs])[0])
    theirs.chmod(0o666)
    (now,) = reading().identify([theirs])
    assert not is_same(now, before, reading()), "it would be kept as a result of the user's own file"
    assert is_same(now, input_file(now), reading())
    assert input_file(now).names == now.names
