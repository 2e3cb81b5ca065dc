"""Which files a read may see, and what it does with them."""

import pytest

pytest.importorskip("pyspark.sql.connect.proto", reason="Spark is not installed: make test-sail")

from pyspark.sql.connect.proto import relations_pb2

from nectar.dialects.spark.reads import source_of
from nectar.errors import InputFailure, UserError


def read(*paths, format="parquet", options=None, **more):
    source = relations_pb2.Read.DataSource(format=format, paths=[str(path) for path in paths], options=options, **more)
    return relations_pb2.Read(data_source=source)


@pytest.fixture
def folder(tmp_path):
    for name in ("a.parquet", "sub/b.parquet", ".hidden", "_c.parquet", "x=1/d.parquet"):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path / "data"


def test_everything_below_a_folder_counts(folder):
    names = source_of(read(folder)).listings[0].names
    assert names == (".hidden", "_c.parquet", "a.parquet", "sub/b.parquet", "x=1/d.parquet")


@pytest.mark.parametrize("form", ["{}", "file://{}", "file:{}"])
def test_a_path_may_be_written_in_several_ways(folder, form):
    assert source_of(read(form.format(folder))).files == source_of(read(folder)).files


def test_relative_paths_are_those_of_this_process(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert source_of(read("data")).files == source_of(read(folder)).files


def test_a_pattern_stands_for_all_files_below_its_folder(folder):
    one, other = source_of(read(f"{folder}/*.parquet")), source_of(read(f"{folder}/a*"))
    assert one.files == other.files == source_of(read(folder)).files
    assert len({one.layout, other.layout, source_of(read(folder)).layout}) == 3


def test_the_name_of_the_folder_counts_only_where_it_may_be_a_partition(tmp_path):
    for name in ("one", "two", "x=1", "x=2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f.parquet").write_bytes(b"1")
    layouts = [source_of(read(tmp_path / name)).layout for name in ("one", "two", "x=1", "x=2")]
    assert layouts[0] == layouts[1]
    assert len(set(layouts)) == 3


def test_files_that_come_or_go_are_noticed(folder):
    source = source_of(read(folder))
    assert source.is_same_now()
    (folder / "new.parquet").write_bytes(b"")
    assert not source.is_same_now()


def test_format_schema_and_options_count(folder):
    made = [
        read(folder), read(folder, format="csv"), read(folder, schema="a int"), read(folder, schema="a long"),
        read(folder, format="csv", options={"header": "true"}), read(folder, format="csv", options={"sep": "true"}),
        read(folder, format="csv", options={"header": "true", "sep": "true"}),
    ]  # fmt: skip
    assert len({source_of(each).content for each in made}) == len(made)
    assert source_of(read(folder, format="CSV", options={"HEADER": "true"})).content == source_of(made[4]).content


def test_the_path_may_be_an_option(folder):
    assert source_of(read(options={"path": str(folder)})).files == source_of(read(folder)).files


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (read("s3://bucket/x"), "plain path"),
        (read("file://host/x"), "another machine"),
        (read("a%20b"), "plain path"),
        (read(), "no files"),
        (read("x", format="jdbc"), "not from files"),
        (read("x", format="iceberg"), "not from files"),
        (read("x", format="delta", options={"timestampAsOf": "2020-01-01"}), "timestampasof"),
        (read("x", format=""), "by default"),
        (read("x", options={"modifiedBefore": "2020"}), "modifiedbefore"),
        (read("x", options={"header": "1", "HEADER": "2"}), "capital letters"),
        (read("x", predicates=["a > 1"]), "more than files"),
        (relations_pb2.Read(named_table={"unparsed_identifier": "v"}), "no files"),
        (relations_pb2.Read(data_source={"format": "parquet"}, is_streaming=True), "stream"),
    ],
)
def test_refusals(message, reason):
    with pytest.raises(UserError, match=reason):
        source_of(message)


def test_what_is_not_there_is_a_failure_and_not_an_empty_input(tmp_path):
    with pytest.raises(InputFailure):
        source_of(read(tmp_path / "nothing"))


def test_a_folder_within_itself_is_a_failure(folder):
    (folder / "sub" / "again").symlink_to(folder)
    with pytest.raises(InputFailure, match="leads back"):
        source_of(read(folder))
