"""Logs of Delta tables that are odd, damaged or hostile: the answer is that of plain Sail, and nothing is damaged."""

import json
import os
import shutil

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import functions as F
from tests.dialects.spark import engines
from tests.dialects.spark.incremental.delta_tables import Table, goes_on, grown, pages

from nectar.clock import SystemClock
from nectar.dialects.spark.incremental import delta
from nectar.dialects.spark.incremental.delta import Version, version_of
from nectar.dialects.spark.reads import read_of, source_of
from nectar.store.inputs.identify import Inputs, RememberedHere

pytestmark = [engines.only_sail, pytest.mark.small]


@pytest.fixture
def table(plain, tmp_path):
    return Table(plain, str(tmp_path / "clicks"))


def deleted_row(table, lines, add):
    add["deletionVector"] = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}


def unknown_feature(table, lines, add):
    features = {"readerFeatures": ["typeWidening"], "writerFeatures": ["typeWidening"]}
    lines.append({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}})


def unknown_word(table, lines, add):
    lines.append({"rows": {}})


def nested_word(table, lines, add):
    lines.append({"commitInfo": json.loads("[" * 900 + "]" * 900)})


def gap(table, lines, add):
    os.unlink(table.commit(1))


def file_elsewhere(table, lines, add):
    add["path"] = f"file://{table.path}/{add['path']}"


def file_of_another_size(table, lines, add):
    add["size"] += 1


def file_that_is_not_there(table, lines, add):
    add["path"] = f"more-{add['path']}"


def file_of_no_url(table, lines, add):
    add["path"] = f"%FF{add['path']}"


def file_that_was_never_there(table, lines, add):
    lines.append({"remove": {"path": "other.parquet", "dataChange": True, "deletionTimestamp": 5}})


def file_named_twice(table, lines, add):
    lines.append({"remove": {"path": add["path"], "dataChange": True, "deletionTimestamp": 5}})


def name_with_a_colon(table, lines, add):
    os.rename(f"{table.path}/{add['path']}", f"{table.path}/a:b.parquet")
    add["path"] = "a:b.parquet"


DAMAGES = [
    deleted_row, unknown_feature, unknown_word, nested_word, gap, file_elsewhere, file_of_another_size,
    file_that_is_not_there, file_of_no_url, file_that_was_never_there, file_named_twice, name_with_a_colon,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_not_understood_is_read_as_a_whole(compared, table, damage):
    grown(compared, table, pages(table))
    lines = table.lines(table.last())
    damage(table, lines, next(line["add"] for line in lines if "add" in line))
    table.put(table.last(), lines)
    assert compared(pages(table)) is None


def test_a_version_that_is_not_damaged_is_not_read_as_a_whole(compared, table):
    """Otherwise the test above would show nothing."""
    grown(compared, table, pages(table))
    table.put(table.last(), [*table.lines(table.last()), {"txn": {"appId": "a", "version": 1}}])
    assert compared(pages(table)) is not None


# what is not believed, whatever an engine makes of it


def told(path, *lines):
    """What is made of a table with one file and a log that says this."""
    (path / "_delta_log").mkdir(parents=True)
    (path / "a.parquet").write_bytes(b"rows")
    (path / "_delta_log" / ".more.crc").write_bytes(b"rows")
    head = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "1", "schemaString": "{}", "partitionColumns": [], "configuration": {}}},
    ]
    commit = path / "_delta_log" / f"{0:020}.json"
    commit.write_text("\n".join(json.dumps(line) for line in [*head, *lines]))
    return version_at(path)


def version_at(path):
    read = read_of("delta", str(path))
    source = source_of(read)
    return version_of(read, source, Inputs(RememberedHere(), SystemClock()).identify(source.files))


def added(path="a.parquet", size=4, **more):
    return {
        "add": {"path": path, "size": size, "partitionValues": {}, "modificationTime": 1, "dataChange": True, **more}
    }


def test_a_log_that_is_believed(tmp_path):
    found = told(tmp_path / "t", {"commitInfo": {}}, added(stats="{}", tags={"x": "y"}))
    assert isinstance(found, Version)
    assert list(found.added) == [str(tmp_path / "t" / "a.parquet")]


NOT_BELIEVED = {
    "says rows": [{"rows": {}}],
    "says sidecar": [{"sidecar": {"path": "x"}}],
    "is not what the log says": [added(size=5)],
    "b.parquet is not there": [added("b.parquet")],
    "_delta_log/.more.crc is no plain path": [added("_delta_log/.more.crc")],
    "./a.parquet is no plain path": [added("./a.parquet")],
    "../t/a.parquet is no plain path": [added("../t/a.parquet")],
    "/a.parquet is no plain path": [added("/a.parquet")],
    "file:a.parquet is no plain path": [added("file:a.parquet")],
    "can't decode": [added("%FFa.parquet")],
    "is named twice": [added(), added()],
    "is named twice ": [added(), added("%61.parquet")],
    "marked as deleted": [added(deletionVector={"storageType": "i"})],
    "features that are not known here: 4": [{"protocol": {"minReaderVersion": 4}}, added()],
    "variantType": [{"protocol": {"minReaderVersion": 3, "readerFeatures": ["variantType"]}}, added()],
    "was not there": [{"remove": {"path": "a.parquet"}}],
    "size": [{"add": {"path": "a.parquet"}}],
    "unpack": [{**added(), "txn": {}}],
}


@pytest.mark.parametrize("reason", NOT_BELIEVED)
def test_a_log_that_is_not_believed(tmp_path, reason):
    found = told(tmp_path / "t", *NOT_BELIEVED[reason])
    assert isinstance(found, str)
    assert reason.strip() in found


@pytest.mark.parametrize("what", [added("b.parquet"), {"remove": {"path": "a.parquet"}}])
def test_a_version_that_came_after_the_files_were_looked_at(tmp_path, what):
    """What is new was not seen, and is not counted; what is gone is in no part."""
    assert isinstance(told(tmp_path / "t", added()), Version)
    read = read_of("delta", str(tmp_path / "t"))
    source = source_of(read)
    identities = Inputs(RememberedHere(), SystemClock()).identify(source.files)
    (tmp_path / "t" / "b.parquet").write_bytes(b"rows")
    (tmp_path / "t" / "_delta_log" / f"{1:020}.json").write_text(json.dumps(what))
    found = version_of(read, source, identities)
    if "add" in what:
        assert "b.parquet is not there" in found
    else:
        assert found.extents(0) == []
    assert not source.is_same_now()  # so that nothing is kept of it


def test_a_folder_for_temporary_files_in_which_no_table_would_be_found(tmp_path, monkeypatch):
    monkeypatch.setattr(delta.tempfile, "tempdir", str(tmp_path / "a b"))
    assert "temporary files" in told(tmp_path / "t", added())


@pytest.mark.parametrize(
    "name", [f"{1:020}.checkpoint.parquet", f"{0:020}.{1:020}.compacted.json", "_sidecars", f"{1:020}.crc", "notes.txt"]
)
def test_a_log_with_more_files(tmp_path, name):
    assert isinstance(told(tmp_path / "t", added()), Version)
    (tmp_path / "t" / "_delta_log" / name).write_bytes(b"")
    assert isinstance(version_at(tmp_path / "t"), str)


# how files are spelled


@pytest.mark.parametrize("spelled", ["page=a%20b", "page=a b", "page=%61 b"])
def test_a_file_that_is_removed_in_another_spelling(compared, table, spelled):
    """Sail writes what it removes as it spells it, and not as it was added by others."""
    table.append(by=["page"])
    add = next(add for add in table.adds(0) if add["partitionValues"]["page"] == "a")
    os.makedirs(f"{table.path}/page=a b")
    shutil.copy(f"{table.path}/{add['path']}", f"{table.path}/page=a b/p.parquet")
    table.more({"add": {**add, "path": f"{spelled}/p.parquet", "partitionValues": {"page": "a b"}}})
    compared(pages(table))
    table.append()
    compared(pages(table))
    table.say("delete from {t} where page = 'a b' and id = 4")
    compared(pages(table))


def test_a_path_from_the_root(compared, table):
    table.append()
    (add,) = table.adds(0)
    shutil.copy(f"{table.path}/{add['path']}", f"{table.path}/a.parquet")
    table.more({"add": {**add, "path": "a.parquet"}})
    compared(pages(table))
    table.append()
    compared(pages(table))
    table.more({"add": {**add, "path": f"{table.path}/a.parquet"}})
    compared(pages(table))


@pytest.mark.parametrize("name", ["_delta_log/00000000000000000000.json", "_delta_log/more.parquet"])
def test_a_log_is_not_written_to(compared, table, name):
    made = lambda spark: table.read(spark).filter("n > 3")
    for version in range(4):
        table.append()
        if version:
            compared(made)
    (add,) = table.adds(0)
    if name.endswith("parquet"):
        shutil.copy(f"{table.path}/{add['path']}", f"{table.path}/{name}")
    with open(table.commit(0), "rb") as file:
        before = file.read()
    table.more({"add": {**add, "path": name, "size": os.path.getsize(f"{table.path}/{name}")}})
    compared(made)
    with open(table.commit(0), "rb") as file:
        assert file.read() == before


@pytest.mark.parametrize("name", ["a b", "é", "a#b", "a~b", "a}b"])
def test_a_table_that_is_not_where_its_path_says(compared, plain, tmp_path, name):
    """Sail keeps it in a folder of an encoded name, beside the one that the program has made."""
    (tmp_path / name).mkdir()
    table = Table(plain, str(tmp_path / name))
    for _ in range(3):
        table.append()
        compared(pages(table))


# how far a log goes


def test_a_checkpoint_without_its_commit(compared, table):
    for _ in range(9):
        table.append()
    compared(pages(table))
    table.append()
    table.append()  # which is version 10, and Sail sums up what there is
    last = table.lines(10)
    os.unlink(table.commit(10))
    compared(pages(table))
    table.put(10, last)
    compared(pages(table))
    table.append()
    compared(pages(table))


@pytest.mark.parametrize("goes", ["further", "otherwise"])
def test_commits_that_are_summed_up(compared, table, goes):
    for version in range(6):
        table.append()
        if version in (2, 3):
            compared(pages(table))
    said = [line for version in (4, 5) for line in table.lines(version) if "add" in line]
    with open(f"{table.path}/_delta_log/{4:020}.{5:020}.compacted.json", "w") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in (said if goes == "further" else said[:1]))
    if goes == "further":
        os.unlink(table.commit(4))
        os.unlink(table.commit(5))
    compared(pages(table))


def test_a_checkpoint_that_removes_what_it_adds(compared, table):
    for version in range(12):
        table.append()
        if version in (6, 7, 8):
            compared(pages(table))
    path = f"{table.path}/_delta_log/{10:020}.checkpoint.parquet"
    told = pyarrow.parquet.read_table(path)
    rows = told.to_pylist()
    first = next(row["add"]["path"] for row in rows if row["add"])
    nothing = dict.fromkeys(field.name for field in told.schema.field("remove").type)
    remove = {**nothing, "path": first, "dataChange": True, "deletionTimestamp": 9_999_999_999_999}
    pyarrow.parquet.write_table(pa.Table.from_pylist([*rows, {"remove": remove}], schema=told.schema), path)
    compared(pages(table))


def test_a_checkpoint_over_files_that_were_removed(compared, table):
    """It names them, so that they can be deleted some day; that is nothing unusual."""
    table.append()
    table.say("delete from {t} where id = 7")
    for _ in range(10):
        table.append()
    compared(pages(table))
    goes_on(compared, table, pages(table))


# statistics


def with_statistics(table, version, change):
    lines = table.lines(version)
    for line in lines:
        if "add" in line:
            line["add"]["stats"] = json.dumps(change(json.loads(line["add"]["stats"])))
    table.put(version, lines)


def test_other_statistics_are_another_table(compared, table):
    """An engine may answer from what the log says of a file, so that two logs over the same files are two tables."""
    grown(compared, table, pages(table))
    with_statistics(table, table.last(), lambda stats: {**stats, "numRecords": 3})
    compared(lambda spark: table.read(spark).agg(F.count("*")))
    compared(pages(table))


@pytest.mark.parametrize("made", [lambda: F.avg("n"), lambda: F.var_pop("n")])
def test_statistics_that_are_wrong(compared, table, made):
    """What is put together is put together from rows."""
    for version in range(4):
        table.append()
        with_statistics(table, version, lambda stats: {**stats, "numRecords": 77})
        compared(lambda spark: table.read(spark).agg(made().alias("a")))


def test_statistics_of_some_files_only(compared, table):
    """Engines answer from them only if all files have some."""
    made = lambda spark: table.read(spark).agg(F.max("n"), F.count("*"))
    for version in range(4):
        table.append()
        most = {} if version == 1 else {"n": 55}
        with_statistics(table, version, lambda stats, most=most: {**stats, "maxValues": most, "minValues": {}})
        if version:
            compared(made)
