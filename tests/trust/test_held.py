"""Files of which this process holds locks: nobody in it opens and closes one, whatever it is called."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.catalog.making import key, opened, read

from nectar.clock import SystemClock
from nectar.errors import InputFailure
from nectar.store.inputs.identify import Inputs, RememberedHere
from nectar.store.inputs.writers import may_be_written
from nectar.trust import files, held, people

LOCKED = ["catalog.db", "catalog.db-shm", "holders"]


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "home"
    catalog = opened(home)
    catalog.keep(key(1), key(0), b"1" * 100, seconds=1.0)
    assert catalog.presence.name
    yield home
    catalog.close()
    assert not held.is_held(home / "catalog.db")


def locks(home):
    """The files on which this process holds locks, as Linux tells it; elsewhere those on which it should."""
    if not os.path.exists("/proc/locks"):
        return LOCKED
    numbers = {os.stat(home / name).st_ino: name for name in os.listdir(home)}
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    mine = {numbers.get(int(line[5].split(":")[2])) for line in lines if line[4] == str(os.getpid())}
    return sorted(mine - {None})


def names_of(home, name):
    """The ways to a file of the home."""
    (home.parent / "link").symlink_to(home / name)
    (home.parent / "folder").symlink_to(home)
    os.link(home / name, home.parent / "other name")
    return [home / name, home.parent / "folder" / name, home.parent / "link", home.parent / "other name"]


@pytest.mark.parametrize("name", LOCKED)
def test_what_reads_files_of_any_kind_refuses_them(home, name):
    before = locks(home)
    assert name in before
    inputs = Inputs(RememberedHere(), SystemClock(), identity="content")
    for path in names_of(home, name):
        assert held.is_held(path)
        with pytest.raises(OSError, match="would lose its locks"):
            files.opened(path, links=True)
        with pytest.raises(InputFailure, match="a catalog that this process uses"):
            inputs.identify([path])
        with pytest.raises(InputFailure, match="a catalog that this process uses"):
            inputs._local.read_stretches(str(path), {}, False)
        assert may_be_written(str(path))
    with pytest.raises(OSError, match="would lose its locks"):
        files.read(home / name)
    assert locks(home) == before


def test_to_give_them_to_a_group_opens_none(home, monkeypatch):
    if not people.KNOWN:
        pytest.skip("files belong to nobody here")
    before = locks(home)
    for name in LOCKED:
        files.grant(home / name, 0o640, files.Access(os.getegid()))
        assert os.stat(home / name).st_mode & 0o777 == 0o640
    assert locks(home) == before


def test_other_files_are_opened(home):
    (home / "notes").write_bytes(b"x")
    (home.parent / "catalog.db").write_bytes(b"y")
    assert files.read(home / "notes") == b"x"
    assert files.read(home.parent / "catalog.db") == b"y", "it has the name alone"
    (one,) = Inputs(RememberedHere(), SystemClock(), identity="content").identify([home.parent / "catalog.db"])
    assert one.content


def test_a_catalog_that_is_closed_or_forgotten_holds_nothing(tmp_path):
    one, other = opened(tmp_path / "home"), opened(tmp_path / "home")
    one.close()
    one.close()
    assert held.is_held(tmp_path / "home" / "catalog.db")
    del other
    import gc

    gc.collect()
    assert not held.is_held(tmp_path / "home" / "catalog.db")


OTHER = """
import sys
from pathlib import Path
from tests.catalog.making import key, opened
catalog = opened(Path(sys.argv[1]))
catalog.keep(key(2), key(0), b"2" * 100, seconds=1.0)
catalog.close()
"""


def test_a_process_that_comes_and_goes_leaves_the_log_to_those_who_use_it(home):
    """What happened when the locks were lost: it took itself for the only one, and deleted the log."""
    for name in LOCKED:
        with pytest.raises(OSError, match="would lose its locks"):
            files.opened(home / name)
    paths = os.pathsep.join(path for path in sys.path if path)
    subprocess.run([sys.executable, "-c", OTHER, str(home)], check=True, env={**os.environ, "PYTHONPATH": paths})
    assert (home / "catalog.db-wal").exists()
    catalog = opened(home)
    assert [read(catalog, number) for number in (1, 2)] == [b"1" * 100, b"2" * 100]
    catalog.close()
