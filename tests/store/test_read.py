import errno

import msgspec
import pyarrow as pa
import pytest
from tests.store.making import folder_of, forgetful, put_object, put_table

from nectar.errors import StoreFailure, UserError
from nectar.store.problem import Damaged, Gone
from nectar.store.read import Result
from nectar.store.store import Store

TABLE = pa.table({"a": list(range(200)), "b": [float(n) for n in range(200)]})


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(bytes(data))


@pytest.fixture
def entry(local):
    return put_table(local, TABLE, part_rows=100)


def test_result_knows_rows_schema_and_paths(local, entry):
    result = local.open(entry)
    assert result.rows == 200
    assert [(column.name, column.type) for column in result.schema] == [("a", "int64"), ("b", "double")]
    assert len(result.paths) == 2
    assert all(path.startswith(str(local.root)) for path in result.paths)


def test_flip_of_any_byte_of_a_part_is_found(local, entry):
    part = folder_of(local, entry) / "table-00001.arrow"
    good = part.read_bytes()
    for position in [*range(0, len(good), 97), 0, len(good) - 1]:
        part.write_bytes(good)
        flip(part, position)
        [problem, *_] = local.examine(entry, thorough=True)
        assert problem.part == part.name
        heard = []
        other = forgetful(local, on_damage=lambda entry, problem: heard.append(problem))
        assert isinstance(other.open(entry, verify="before"), Damaged)
        assert heard[0].part == part.name


def test_flip_of_any_byte_of_the_manifest_is_found_at_every_opening(local, entry):
    manifest = folder_of(local, entry) / "manifest.json"
    good = manifest.read_bytes()
    for position in range(0, len(good), 13):
        manifest.write_bytes(good)
        flip(manifest, position)
        assert isinstance(local.open(entry), Damaged)


@pytest.mark.parametrize("name", ["table-00000.arrow", "table-00001.arrow", "manifest.json"])
@pytest.mark.parametrize(
    "change", [lambda data: data[:-1], lambda data: data + b"x", lambda data: b"", lambda data: data[:8]]
)
def test_truncated_or_longer_file_is_found_at_every_opening(local, entry, name, change):
    path = folder_of(local, entry) / name
    path.write_bytes(change(path.read_bytes()))
    opened = local.open(entry)
    assert isinstance(opened, Damaged)
    assert opened.part == name
    assert local.examine(entry, thorough=False)


def test_missing_part_is_found_at_every_opening(local, entry):
    (folder_of(local, entry) / "table-00001.arrow").unlink()
    assert local.open(entry) == Damaged("the part is missing", "table-00001.arrow")


def test_missing_manifest_is_gone(local, entry):
    (folder_of(local, entry) / "manifest.json").unlink()
    assert isinstance(local.open(entry), Gone)
    [problem] = local.examine(entry, thorough=False)
    assert problem.what == "missing"


def test_swapped_parts_are_found(local, entry):
    first, second = (folder_of(local, entry) / f"table-0000{n}.arrow" for n in (0, 1))
    a, b = first.read_bytes(), second.read_bytes()
    first.write_bytes(b)
    second.write_bytes(a)
    assert len(local.examine(entry, thorough=True)) == 2
    assert isinstance(forgetful(local).open(entry, verify="before"), Damaged)


def test_manifest_of_another_result_is_not_taken(local, entry):
    other = put_table(local, pa.table({"z": [1]}))
    assert isinstance(local.open(msgspec.structs.replace(entry, location=other.location)), Damaged)


def test_damaged_ends_are_found_at_every_opening(local, entry):
    part = folder_of(local, entry) / "table-00000.arrow"
    flip(part, 0)
    assert isinstance(local.open(entry), Damaged)
    flip(part, 0)
    flip(part, -8)
    assert isinstance(local.open(entry), Damaged)


def test_damage_behind_a_url_is_found_at_every_opening():
    fsspec = pytest.importorskip("fsspec")
    from tests.store.making import fresh_url

    store = Store(fresh_url())
    entry = put_object(store, list(range(100)))
    system, root = fsspec.core.url_to_fs(store.root)
    path = f"{root}/data/{entry.location}/object.pickle"
    data = bytearray(system.cat_file(path))
    data[50] ^= 1
    system.pipe_file(path, bytes(data))
    assert isinstance(store.open(entry), Damaged)


@pytest.mark.parametrize("position", [5, 60, 200, -5])
def test_damaged_inline_result_is_found(local, position):
    from tests.store.making import entry_of

    with local.stage_inline() as staging:
        staging.write_object(list(range(300)))
        entry = entry_of(staging.publish())
    data = bytearray(entry.inline)
    data[position] ^= 0xFF
    opened = local.open(msgspec.structs.replace(entry, inline=bytes(data)))
    assert isinstance(opened, Damaged)


def failing_at(name, code):
    def reach(step):
        if step == name:
            raise OSError(code, "injected")

    return reach


@pytest.mark.parametrize("step", ["read manifest", "open part"])
def test_device_that_fails_is_damage_and_missing_rights_are_not(local, entry, step):
    assert isinstance(Store(local.root, reach=failing_at(step, errno.EIO)).open(entry), Damaged)
    with pytest.raises(StoreFailure) as caught:
        Store(local.root, reach=failing_at(step, errno.EACCES)).open(entry)
    assert caught.value.errno == errno.EACCES


def test_what_is_no_table_says_so(local, entry):
    with pytest.raises(UserError, match="no object"):
        local.open(entry).to_object()
    with pytest.raises(UserError, match="no table"):
        local.open(put_object(local, 1)).to_polars()


def test_table_outlives_its_result(local, entry):
    with local.open(entry) as result:
        table = result.to_arrow()
    local.delete(entry.location)
    assert table.equals(TABLE)


def test_read_only_store_is_readable(local, entry):
    def no_writing(step):
        assert step.startswith(("read", "open", "map", "list", "ask")), step

    assert isinstance(Store(local.root, reach=no_writing).open(entry, verify="before"), Result)


def test_opening_a_store_creates_nothing(tmp_path):
    store = Store(tmp_path / "none")
    assert list(store.locations()) == []
    assert store.free_space() > 0
    assert not (tmp_path / "none").exists()
