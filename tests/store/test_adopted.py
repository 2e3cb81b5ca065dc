"""Files that an engine writes to a place of the store."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.store.making import KEY, entry_of, folder_of, forgetful, fresh_url

from nectar.errors import StoreFailure, UserError
from nectar.store.problem import Damaged
from nectar.store.read import Result
from nectar.store.store import Store

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})


def write_as_engine(path):
    """What Spark leaves in a folder: data, and what it needs by itself."""
    folder = Path(path)
    folder.mkdir()
    (folder / "_temporary" / "0").mkdir(parents=True)
    (folder / "_temporary" / "0" / "part-9.parquet").write_bytes(b"left")
    (folder / "_SUCCESS").write_bytes(b"")
    (folder / ".part-0.parquet.crc").write_bytes(b"crc")
    pq.write_table(TABLE.slice(0, 2), folder / "part-0.parquet")
    pq.write_table(TABLE.slice(2), folder / "part-1.parquet")


def adopted(store):
    with store.stage(store.new_location(KEY)) as staging:
        write_as_engine(staging.for_engine())
        staging.adopt_tables()
        staging.write_bytes("schema", b"s")
        return entry_of(staging.publish())


@pytest.fixture
def local(tmp_path):
    return Store(tmp_path / "store")


def test_files_of_an_engine_become_a_result(local):
    entry = adopted(local)
    assert (entry.kind, entry.rows, entry.files) == ("parquet", 3, 4)
    assert sorted(os.listdir(folder_of(local, entry))) == [
        "manifest.json", "raw-schema", "table-00000.parquet", "table-00001.parquet"
    ]  # fmt: skip
    with local.open(entry, verify="before") as result:
        assert result.to_arrow().equals(TABLE)
        assert bytes(result.part("schema")) == b"s"
        assert [os.path.basename(path) for path in result.table_paths] == ["table-00000.parquet", "table-00001.parquet"]
        assert pq.read_table(result.table_paths[0]).num_rows == 2
        with pytest.raises(UserError, match="to_arrow"):
            result.tables()
    [found] = local.locations()
    assert (found.staged, found.foreign, found.size) == (False, False, entry.size)
    assert local.delete(entry.location) == entry.size
    assert list(local.locations()) == []


def test_what_an_engine_left_behind_is_ours_to_delete(local):
    location = local.new_location(KEY)
    staging = local.stage(location)
    staging.__enter__()
    write_as_engine(staging.for_engine())
    [found] = local.locations()
    assert (found.location, found.staged, found.foreign) == (location, True, False)
    assert found.size == local.size_of(location).size > 0
    assert local.delete(location) == found.size
    assert list(local.locations()) == []


def test_left_without_publish_nothing_stays(local):
    with local.stage(local.new_location(KEY)) as staging:
        write_as_engine(staging.for_engine())
    assert list(local.locations()) == []


def test_a_link_in_the_folder_of_an_engine_is_not_followed(local, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data.parquet").write_bytes(b"mine")
    with local.stage(local.new_location(KEY)) as staging:
        write_as_engine(staging.for_engine())
        (Path(staging.for_engine()) / "linked").symlink_to(precious)
        (Path(staging.for_engine()) / "x.parquet").symlink_to(precious / "data.parquet")
    assert (precious / "data.parquet").read_bytes() == b"mine"
    assert list(local.locations()) == []


@pytest.mark.parametrize("content", [None, b"no such file", b"PAR1....PAR1"])
def test_what_is_no_table_is_not_adopted(local, content):
    with local.stage(local.new_location(KEY)) as staging:
        folder = Path(staging.for_engine())
        folder.mkdir()
        if content is not None:
            (folder / "part-0.parquet").write_bytes(content)
        with pytest.raises(StoreFailure, match="engine has written"):
            staging.adopt_tables()
    assert list(local.locations()) == []


def test_files_with_different_columns_are_not_one_table(local):
    with local.stage(local.new_location(KEY)) as staging:
        write_as_engine(staging.for_engine())
        pq.write_table(pa.table({"c": [1]}), Path(staging.for_engine()) / "part-2.parquet")
        with pytest.raises(StoreFailure, match="different columns"):
            staging.adopt_tables()


def test_damage_is_found(local):
    entry = adopted(local)
    part = folder_of(local, entry) / "table-00000.parquet"
    data = bytearray(part.read_bytes())
    data[30] ^= 1
    part.write_bytes(data)
    assert isinstance(forgetful(local).open(entry, verify="before"), Damaged)
    part.write_bytes(data[:-1])
    assert isinstance(forgetful(local).open(entry), Damaged)
    part.write_bytes(data[:-1] + b"!")
    assert isinstance(forgetful(local).open(entry), Damaged)


def test_an_engine_cannot_write_elsewhere_than_to_a_folder():
    pytest.importorskip("fsspec")
    store = Store(fresh_url())
    with store.stage(store.new_location(KEY)) as staging, pytest.raises(StoreFailure, match="folder"):
        staging.for_engine()
    with store.stage_inline() as staging, pytest.raises(StoreFailure, match="folder"):
        staging.for_engine()


class Stopped(BaseException):
    pass


def test_a_crash_leaves_nothing_that_counts(tmp_path):
    """Stopped before each operation in turn: the result is whole, or it is garbage that can be deleted."""
    for stop in range(100):
        steps = []

        def reach(step, steps=steps, stop=stop):
            steps.append(step)
            if len(steps) > stop:
                raise Stopped

        root = tmp_path / str(stop)
        store = Store(root, reach=reach)
        try:
            entry = adopted(store)
        except Stopped:
            entry = None
        after = Store(root)
        if entry is not None:
            assert isinstance(after.open(entry, verify="before"), Result)
            assert stop > 10
            return
        for found in list(after.locations()):
            assert not found.foreign
            after.delete(found.location)
        assert list(after.locations()) == []
    raise AssertionError("it never ended")
