"""The SQLite file: every older version opens, and whatever is wrong with a file is said and leaves it as it is."""

import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.catalog.making import entry, key

from nectar.catalog.index import locks
from nectar.catalog.index.rows import ENTRY
from nectar.catalog.index.schema import MIGRATIONS, VERSION
from nectar.catalog.index.sqlite import SqliteIndex
from nectar.errors import CatalogFailure, CatalogUnavailableError

NOW = 1000.0


def at_version(path, version):
    """A database as an older Nectar left it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    for statements in MIGRATIONS[:version]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version={version}")
    connection.close()


def tables(path):
    """The tables and indexes of a file, as SQLite describes them."""
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
    connection.close()
    return found


def filled(path):
    index = SqliteIndex(path)
    for number in range(50):
        index.add(entry(number), "", 0.0, NOW)
    return index


@pytest.mark.parametrize("version", range(VERSION + 1))
def test_every_older_version_is_brought_up_to_date(tmp_path, version):
    SqliteIndex(tmp_path / "new.db").close()
    path = tmp_path / "old.db"
    at_version(path, version)
    index = SqliteIndex(path)
    index.add(entry(1), "", 0.0, NOW)
    assert index.usage(NOW).entries == 1
    assert index.sound() == []
    index.close()
    assert tables(path) == tables(tmp_path / "new.db")
    again = SqliteIndex(path)
    assert key(1) in again.lookup([key(1)])
    again.close()


def test_what_lies_inline_is_not_in_the_index_of_locations(tmp_path):
    index = SqliteIndex(tmp_path / "new.db")
    for number in range(20):
        index.add(entry(number, location=""), "", 0.0, NOW)
    index.add(entry(20), "", 0.0, NOW)
    location = entry(20).location
    assert index.referred([location, ""]) == {location}
    [plan] = index._connection.execute(
        "EXPLAIN QUERY PLAN SELECT location FROM entries WHERE location IN (?) AND location <> ''", [location]
    ).fetchall()
    assert "entries_by_location" in plan[-1]
    index.close()


def test_entries_of_every_older_version_survive(tmp_path):
    for version in range(1, VERSION + 1):
        path = tmp_path / f"{version}.db"
        at_version(path, version)
        connection = sqlite3.connect(path)
        values = (key(1), key(0), "object", "aa/1", bytes(32), 7, 2, 0, 1.0, 0.0, 0.0, 3, None, 0, 1, None, None, "me")
        columns = ", ".join(ENTRY.split(", ")[: len(values)])
        connection.execute(
            f"INSERT INTO entries ({columns}, signature, protected) VALUES ({', '.join('?' * len(values))}, '', 0.0)",
            values,
        )
        connection.commit()
        connection.close()
        index = SqliteIndex(path)
        assert index.lookup([key(1)])[key(1)].size == 7
        index.close()


def test_an_empty_file_becomes_an_index(tmp_path):
    path = tmp_path / "catalog.db"
    path.touch()
    SqliteIndex(path).close()
    assert tables(path)


def test_a_migration_that_fails_leaves_the_old_version(tmp_path, monkeypatch):
    path = tmp_path / "catalog.db"
    filled(path).close()
    before = tables(path)
    broken = (*MIGRATIONS, ("CREATE TABLE more (a)", "this is no SQL"))
    monkeypatch.setattr("nectar.catalog.index.transactions.MIGRATIONS", broken)
    monkeypatch.setattr("nectar.catalog.index.transactions.VERSION", VERSION + 1)
    with pytest.raises(CatalogFailure):
        SqliteIndex(path)
    monkeypatch.undo()
    assert tables(path) == before
    index = SqliteIndex(path)
    assert index.usage(NOW).entries == 50
    index.close()


@pytest.mark.parametrize("read_only", [False, True])
def test_an_index_from_the_future_is_left_alone(tmp_path, read_only):
    path = tmp_path / "catalog.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE things_to_come (a)")
    connection.execute(f"PRAGMA user_version={VERSION + 1}")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(CatalogFailure, match=r"newer version.*upgrade Nectar.*NECTAR_HOME"):
        SqliteIndex(path, read_only=read_only)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["catalog.db"]


def test_readers_of_an_old_version_are_told_to_open_it_for_writing(tmp_path):
    path = tmp_path / "catalog.db"
    at_version(path, 0)
    with pytest.raises(CatalogFailure, match="right to write"):
        SqliteIndex(path, read_only=True)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    "content", [b"hello, this is no database " * 100, b"\x00" * 5000, b"SQLite format 3\x00" + b"\xff" * 5000]
)
def test_no_database(tmp_path, content, read_only):
    path = tmp_path / "catalog.db"
    path.write_bytes(content)
    with pytest.raises(CatalogFailure, match=str(path)):
        SqliteIndex(path, read_only=read_only)
    assert path.read_bytes() == content


def test_a_folder_in_its_place(tmp_path):
    (tmp_path / "catalog.db").mkdir()
    with pytest.raises(CatalogFailure, match="cannot be opened"):
        SqliteIndex(tmp_path / "catalog.db")


def test_a_file_in_the_place_of_its_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CatalogFailure, match="cannot be used"):
        SqliteIndex(tmp_path / "file" / "catalog.db")


def test_damage_is_found(tmp_path):
    path = tmp_path / "catalog.db"
    index = filled(path)
    for number in range(50, 500):
        index.add(entry(number), "", 0.0, NOW)
    index.close()
    content = bytearray(path.read_bytes())
    # The first pages say which tables there are; the second half is rows.
    for page in range(len(content) // 8192, len(content) // 4096):
        content[page * 4096 : page * 4096 + 200] = b"\xde" * 200
    path.write_bytes(content)
    index = SqliteIndex(path)
    with pytest.raises(CatalogFailure, match="damaged.*move the file away"):
        index.lookup([key(number) for number in range(500)])
    assert index.sound() != []
    index.close()


def test_a_truncated_file_is_found(tmp_path):
    path = tmp_path / "catalog.db"
    filled(path).close()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    def use():
        index = SqliteIndex(path)
        if not index.sound():
            list(index.entries())

    with pytest.raises(CatalogFailure):
        use()


def test_readers_write_nothing(tmp_path):
    path = tmp_path / "catalog.db"
    writer = filled(path)
    reader = SqliteIndex(path, read_only=True)
    assert reader.usage(NOW).entries == 50
    writer.evict([key(0)], NOW)
    assert reader.usage(NOW).entries == 49, "readers see what is written meanwhile"
    with pytest.raises(CatalogFailure, match="only be read"):
        reader.touch({key(1): (1, NOW)})
    assert not reader.recount(apply=False)
    reader.close()
    writer.close()


def test_readers_need_a_file(tmp_path):
    with pytest.raises(CatalogFailure, match="cannot be opened"):
        SqliteIndex(tmp_path / "catalog.db", read_only=True)
    assert os.listdir(tmp_path) == []


def test_a_copy_without_helper_files_can_be_read(tmp_path):
    path = tmp_path / "catalog.db"
    filled(path).close()
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(path, copy)
    reader = SqliteIndex(copy / "catalog.db", read_only=True)
    assert reader.usage(NOW).entries == 50
    reader.close()


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs the right to mount")
def test_a_file_on_a_device_that_can_only_be_read(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        filled(place / "catalog.db").close()
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        reader = SqliteIndex(place / "catalog.db", read_only=True)
        assert len(list(reader.entries())) == 50
        assert key(3) in reader.lookup([key(3)])
        reader.close()
        with pytest.raises(CatalogFailure, match="only be read|cannot be opened"):
            SqliteIndex(place / "catalog.db").touch({key(1): (1, NOW)})
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_an_unreadable_folder(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir(mode=0)
    if os.access(folder, os.W_OK):
        pytest.skip("rights do not bind this user")
    with pytest.raises(CatalogFailure, match="check"):
        SqliteIndex(folder / "catalog.db")


def test_locked_for_too_long(tmp_path, monkeypatch):
    path = tmp_path / "catalog.db"
    filled(path).close()
    monkeypatch.setattr(locks, "_LOCKED", 0.05)
    index = SqliteIndex(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(CatalogFailure, match="locked for too long"):
        index.touch({key(1): (1, NOW)})
    assert key(1) in index.lookup([key(1)]), "readers do not wait for writers"
    other.execute("ROLLBACK")
    index.touch({key(1): (1, NOW)})
    other.close()
    index.close()


def test_a_call_that_fails_has_not_happened(tmp_path):
    def full(step):
        if step == "sql commit evict":
            raise sqlite3.OperationalError("database or disk is full")

    index = SqliteIndex(tmp_path / "catalog.db", reach=full)
    index.add(entry(1), "", 0.0, NOW)
    with pytest.raises(CatalogFailure, match="disk is full.*NECTAR_BUDGET"):
        index.evict([key(1)], NOW)
    assert key(1) in index.lookup([key(1)])
    assert index.usage(NOW).entries == 1
    index.touch({key(1): (1, NOW)})
    index.close()


def open_first(path, ready, done):
    ready.wait()
    index = SqliteIndex(path)
    index.count_lookups({key(0): 1}, NOW)
    index.close()
    done.put(1)


def test_many_processes_open_a_new_index_at_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready, done = context.Barrier(4), context.Queue()
    processes = [context.Process(target=open_first, args=(tmp_path / "catalog.db", ready, done)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    index = SqliteIndex(tmp_path / "catalog.db")
    assert index.lookups([key(0)]) == {key(0): 4}
    index.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_opens_the_file_anew(tmp_path):
    index = filled(tmp_path / "catalog.db")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            index.touch({key(1): (1, NOW)})
            status = 0 if len(index.lookup([key(1)])) == 1 else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    index.touch({key(1): (1, NOW)})
    assert index.lookup([key(1)])[key(1)].hits == 2
    assert index.sound() == []
    index.close()


def test_closed_is_closed(tmp_path):
    index = filled(tmp_path / "catalog.db")
    index.close()
    index.close()
    for ask in (lambda: index.lookup([key(1)]), lambda: index.touch({key(1): (1, NOW)})):
        with pytest.raises(CatalogUnavailableError, match="was closed before this was done"):
            ask()  # whoever goes on beside the program is no failure of the catalog


CUT_OFF = """
import os, sys
from nectar.catalog.index.sqlite import SqliteIndex
from nectar.errors import CatalogFailure
from tests.catalog.making import entry, key
from pathlib import Path

index = SqliteIndex(Path(sys.argv[1]) / "catalog.db")
for number in range(300):
    index.add(entry(number, about="x" * 4000), "", 0.0, 0.0)
index._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
index._connection.execute("PRAGMA cache_size=2")
assert len(index.lookup([key(number) for number in range(300)])) == 300
os.truncate(index.path, 8192)
try:
    index.lookup([key(number) for number in range(300)])
except CatalogFailure:
    print("told")
"""


def test_a_file_that_is_cut_off_while_it_is_open_ends_no_process(tmp_path):
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, *sys.path])}
    command = [sys.executable, "-c", CUT_OFF, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "told"), done.stderr


# a loss of power


def test_names_and_what_was_written_before_them_are_durable_and_nothing_else_waits_for_the_disk(tmp_path):
    """SQLite syncs its log at the end of a transaction where `synchronous` is FULL (2), and not where it is NORMAL."""
    steps = []

    def reach(step):
        if step.startswith("sql commit"):
            (how,) = index._connection.execute("PRAGMA synchronous").fetchone()
            steps.append((step.removeprefix("sql commit "), how))
        elif step == "fsync folder of index":
            steps.append((step, 0))

    SqliteIndex(tmp_path / "catalog.db").close()
    index = SqliteIndex(tmp_path / "catalog.db", reach=reach)
    index.put_recipe([b"how it was made"])
    index.bind("team/urls", key(1), "somebody", NOW)
    index.touch({key(1): (1, NOW)})
    index.bind("team/urls", key(2), "somebody", NOW)
    index.unbind("team/urls", "somebody", NOW)
    index.close()
    assert steps == [
        ("put recipe", 1), ("bind name", 2), ("fsync folder of index", 0), ("fsync folder of index", 0), ("touch", 1),
        ("bind name", 2), ("unbind name", 2),
    ]  # fmt: skip
