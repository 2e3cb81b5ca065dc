"""Files of a store that others can still change: they are read into memory, and verified there at each opening."""

import mmap
import os

import pyarrow as pa
import pytest
from tests.store.making import folder_of, put_object, put_table
from tests.trust.conftest import MALLORY, TEAM

from nectar.catalog.embedded import open_catalog
from nectar.errors import UntrustedError
from nectar.settings import Settings
from nectar.store.problem import Damaged
from nectar.store.read import Result
from nectar.store.store import Store
from nectar.store.verify import Verified
from nectar.trust.files import Access

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")

VALUE = list(range(5000))
OPEN_UNTIL = 100.0  # results of these tests were made before


def foreign(path):
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(path, MALLORY, MALLORY)


CHANGED = {
    "of another user": foreign,
    "writable by all": lambda path: path.chmod(0o606),
    "linked elsewhere": lambda path: os.link(path, path.parent.parent / "elsewhere"),
}
KINDS = pytest.mark.parametrize("how", CHANGED)
VERIFY = pytest.mark.parametrize("verify", ["before", "length"])


def always_at_rest():
    return 2**62


def kept(tmp_path, **options):
    """A store with an object in it, and a map of its file that somebody holds."""
    store = Store(tmp_path / "s", verified=Verified(tmp_path / "marks", wall=always_at_rest), **options)
    entry = put_object(store, VALUE)
    path = folder_of(store, entry) / "object.pickle"
    with path.open("r+b") as file:
        held = mmap.mmap(file.fileno(), 0)
    held[0] = held[0]  # from now on no write moves a time stamp
    return store, entry, path, held


@KINDS
@VERIFY
def test_what_is_handed_out_is_what_was_verified_and_verified_anew(tmp_path, how, verify):
    store, entry, path, held = kept(tmp_path)
    CHANGED[how](path)
    with store.open(entry, verify=verify) as result:
        held[200] ^= 1
        assert result.to_object() == VALUE, "others may write now: what is unpickled was read before"
        assert result.paths == ()
    assert isinstance(store.open(entry, verify=verify), Damaged)


@VERIFY
def test_what_was_made_before_a_store_was_closed_is_verified_at_each_opening(tmp_path, verify):
    store, entry, _, held = kept(tmp_path, open_until=OPEN_UNTIL)
    for _ in range(2):
        with store.open(entry, verify=verify) as result:
            assert result.to_object() == VALUE
    held[200] ^= 1
    assert isinstance(store.open(entry, verify=verify), Damaged)


def test_what_was_made_since_is_mapped(tmp_path):
    store, entry, _, held = kept(tmp_path)
    held.close()
    for open_until, copied in ((entry.created, False), (entry.created + 1, True)):
        with Store(store.root, open_until=open_until).open(entry) as result:
            assert (result.paths == ()) is copied


def test_tables_are_read_from_memory_too_also_column_by_column(tmp_path):
    table = pa.table({"a": list(range(100)), "b": list(range(100))})
    store = Store(tmp_path / "s", open_until=OPEN_UNTIL)
    entry = put_table(store, table)
    with store.open(entry, verify="length", in_part=True) as result:
        (path,) = folder_of(store, entry).glob("*.arrow")
        path.write_bytes(b"\0" * path.stat().st_size)
        assert result.to_arrow() == table
        assert result.table_paths == ()


def test_files_of_members_of_a_group_are_mapped(tmp_path):
    store, entry, path, held = kept(tmp_path, access=Access(os.getegid(), writing=True))
    held.close()
    path.chmod(0o660)
    if os.geteuid() == 0:
        os.chown(path, MALLORY, os.getegid())
    with store.open(entry) as result:
        assert len(result.paths) == 1
    if os.geteuid() == 0:
        os.chown(path, MALLORY, TEAM)
        with store.open(entry) as result:
            assert result.paths == (), "another group may write to it"


# homes and stores that were open


@pytest.mark.parametrize("where", ["home", "store"])
def test_a_home_or_store_that_others_could_write_to_is_doubted_once_it_is_closed(tmp_path, where):
    """A store elsewhere is closed by hand: nothing but the home remembers that it was refused."""
    home, store = tmp_path / "home", tmp_path / "store"
    settings = Settings(home=home, store=str(store) if where == "store" else "", reserve=0, inline=0)
    catalog = open_catalog(settings)
    catalog.keep(b"k" * 32, b"p" * 32, VALUE, seconds=9.0)
    catalog.close()
    (home if where == "home" else store).chmod(0o777)
    if where == "store":
        with pytest.raises(UntrustedError):
            open_catalog(settings)
        store.chmod(0o700)
    paths = []
    for _ in range(2):
        catalog = open_catalog(settings)
        (old,) = catalog.index.lookup([b"k" * 32]).values()
        with catalog.open(old) as result:
            assert result.to_object() == VALUE
            paths.append(result.paths)
        catalog.keep(b"l" * 32, b"p" * 32, VALUE, seconds=9.0)
        (new,) = catalog.index.lookup([b"l" * 32]).values()
        with catalog.open(new) as result:
            assert isinstance(result, Result)
            paths.append(len(result.paths))
        catalog.close()
    assert paths == [(), 1, (), 1]


def test_a_store_of_somebody_else_says_nothing_of_this_home(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can give folders away")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.chown(elsewhere, MALLORY, MALLORY)
    with pytest.raises(UntrustedError):
        open_catalog(Settings(home=tmp_path / "home", store=str(elsewhere)))
    assert not (tmp_path / "home" / "was-open").exists()
