"""A home that is taken away while a program runs: what somebody else puts in its place is not read or written to."""

import os
import shutil
import threading

import pytest
from tests.trust.conftest import MALLORY

from nectar.catalog.embedded import open_catalog
from nectar.catalog.service import NotKept
from nectar.errors import CatalogUnavailableError, StoreFailure, UntrustedError
from nectar.settings import Settings
from nectar.trust.home import opened
from nectar.trust.pinned import Pinned, pinned

KEY, PROGRAM = b"k" * 32, b"p" * 32


@pytest.fixture
def home(of, place):
    """A home where everybody may make something, with one result in it."""
    of(0, "tmp", 0o1777)
    home = place / "tmp" / "home"
    with_result(home)
    return home


def with_result(home):
    catalog = open_catalog(Settings(home=home, reserve=0, inline=0))
    catalog.keep(KEY, PROGRAM, list(range(5000)), seconds=9.0)
    catalog.close()


def exchanged(home):
    """Somebody else has made a home in the place of one that was taken away."""
    home.rename(home.with_name("away"))
    shutil.copytree(home.with_name("away"), home)
    for path in (home, *home.rglob("*")):
        os.chown(path, MALLORY, MALLORY)
        path.chmod(0o777 if path.is_dir() else 0o666)


def beside_a_writer(index, ask):
    """What is read while another thread writes: by another connection."""
    found = []

    def read():
        try:
            found.append(ask())
        except Exception as error:
            found.append(error)

    with index._lock:
        reader = threading.Thread(target=read)
        reader.start()
        reader.join(60.0)
    return found[0]


def test_another_connection_is_one_to_the_same_file(home):
    catalog = open_catalog(Settings(home=home, reserve=0))
    assert KEY in beside_a_writer(catalog.index, lambda: catalog.index.lookup([KEY]))
    catalog.close()
    catalog = open_catalog(Settings(home=home, reserve=0))
    exchanged(home)
    for _ in range(2):
        refused = beside_a_writer(catalog.index, lambda: catalog.index.lookup([KEY]))
        assert isinstance(refused, CatalogUnavailableError)
        assert "was taken away" in str(refused)
    catalog.close()


def test_no_result_is_written_into_a_home_that_was_not_looked_at(home):
    catalog = open_catalog(Settings(home=home, reserve=0, inline=0))
    exchanged(home)
    assert isinstance(catalog.keep(b"l" * 32, PROGRAM, ["secret"] * 5000, seconds=9.0), NotKept)
    assert {path.stat().st_uid for path in home.rglob("*")} == {MALLORY}
    catalog.close()


def test_a_home_that_is_exchanged_before_it_is_held_open_is_refused(home):
    judged = opened(home)
    exchanged(home)
    with pytest.raises(UntrustedError, match=f"belongs to user {MALLORY}"):
        Pinned(judged)


def test_a_home_that_is_gone_or_another_is_not_the_same(tmp_path):
    folder = tmp_path / "home"
    place = pinned(opened(folder))
    place.refuse_exchanged()
    folder.rmdir()
    with pytest.raises(StoreFailure, match="was taken away"):
        place.refuse_exchanged()
    folder.mkdir(0o700)
    with pytest.raises(StoreFailure, match="was taken away"):
        place.refuse_exchanged()


def test_what_is_yet_to_be_made_is_not_held(tmp_path):
    assert pinned(opened(tmp_path / "home", reading=True)) is None
