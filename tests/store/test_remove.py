import numpy as np
import pyarrow as pa
from tests.store.making import KEY, folder_of, put_object, put_table

from nectar.store.problem import Gone
from nectar.store.read import Result

TABLE = pa.table({"a": list(range(1000)), "s": ["x" * 40] * 1000})


def test_delete_frees_what_it_says_and_once_only(store):
    entry = put_table(store, TABLE)
    assert store.size_of(entry.location).size == entry.size
    assert store.delete(entry.location) == entry.size
    assert store.delete(entry.location) == 0
    assert store.size_of(entry.location) is None
    assert isinstance(store.open(entry), Gone)


def test_reader_keeps_what_is_deleted(store):
    table, array = put_table(store, TABLE, part_rows=100), put_object(store, np.arange(1000))
    opened, other = store.open(table), store.open(array)
    store.delete(table.location)
    store.delete(array.location)
    assert opened.to_arrow().equals(TABLE)
    kept = other.to_object()
    other.close()
    assert kept.sum() == 499500


def test_open_while_deleting_gives_all_or_gone(local):
    """The folder goes away between any two steps of an opening."""
    from nectar.store.store import Store

    steps = []
    entry = put_table(local, TABLE, part_rows=300)
    Store(local.root, reach=steps.append).open(entry)
    outcomes = set()
    for fatal in range(1, len(steps) + 1):
        entry = put_table(local, TABLE, part_rows=300)
        seen = []

        def reach(step):
            seen.append(step)
            if len(seen) == fatal:
                local.delete(entry.location)

        opened = Store(local.root, reach=reach).open(entry)
        assert isinstance(opened, (Result, Gone))
        if isinstance(opened, Result):
            assert opened.to_arrow().equals(TABLE)
        outcomes.add(type(opened))
    assert outcomes == {Result, Gone}


def test_staging_can_be_deleted_by_a_collector(store):
    location = store.new_location(KEY)
    staging = store.stage(location).__enter__()
    staging.write_bytes("x", b"123")
    assert store.delete(location) == 3
    assert list(store.locations()) == []


def test_foreign_files_are_shown_and_stay(local):
    entry = put_table(local, TABLE)
    folder = folder_of(local, entry)
    strangers = [folder / "notes.txt", folder.parent / "readme", folder.parent.parent / "x.csv"]
    for path in strangers:
        path.write_text("mine")
    (folder.parent.parent.parent / "staging" / "dir").mkdir()
    found = {each.location for each in local.locations() if each.foreign}
    root = folder.parent.parent.parent
    assert found == {path.relative_to(root).as_posix() for path in strangers} | {"staging/dir"}
    assert local.delete(entry.location) == entry.size
    assert all(path.read_text() == "mine" for path in strangers)
    assert isinstance(local.open(entry), Gone)
    assert all(each.foreign for each in local.locations())


def test_links_are_not_followed(local, tmp_path):
    entry = put_table(local, TABLE)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "table-00000.arrow").write_text("precious")
    link = folder_of(local, entry).parent / entry.location.partition("/")[2].replace("-", "-0")[:-1]
    link.symlink_to(elsewhere)
    local.delete(f"{link.name[:2]}/{link.name}")
    assert (elsewhere / "table-00000.arrow").read_text() == "precious"
