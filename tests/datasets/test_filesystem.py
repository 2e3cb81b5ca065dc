"""nectar:// as others read it."""

import io
import os
import tomllib
from importlib import import_module
from pathlib import Path

import fsspec
import polars as pl
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.parquet
import pytest
from polars.testing import assert_frame_equal
from tests.datasets.conftest import TABLE

import nectar
from nectar.datasets import filesystem
from nectar.datasets.filesystem import NectarFileSystem
from nectar.datasets.pointer import pointer_to
from nectar.errors import DeletedError, UnknownNameError

PAGES = pl.DataFrame({"page": ["a", "b", "c"], "len": [400] * 3}, schema_overrides={"len": pl.UInt32})


@pytest.fixture(autouse=True)
def _registered():
    fsspec.register_implementation("nectar", NectarFileSystem, clobber=True)


@pytest.fixture
def fs(named):
    return NectarFileSystem()


def test_an_installer_registers_it():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, name = project["entry-points"]["fsspec.specs"]["nectar"].rpartition(".")
    assert getattr(import_module(module), name) is NectarFileSystem
    assert NectarFileSystem.protocol == "nectar"


def test_listing(fs):
    assert fs.ls("", detail=False) == ["team"]
    assert fs.ls("nectar://team", detail=False) == ["team/clicks.arrow", "team/clicks.parquet", "team/deep"]
    assert fs.ls("team/deep/", detail=False) == ["team/deep/pages.arrow", "team/deep/pages.parquet"]
    assert [each["type"] for each in fs.ls("team")] == ["file", "file", "directory"]
    assert fs.find("") == sorted(fs.glob("team/**/*.parquet") + fs.glob("nectar://team/**/*.arrow"))
    assert fs.glob("team/*.parquet") == ["team/clicks.parquet"]
    assert fs.isdir("team")
    assert fs.isfile("team/clicks.parquet")
    assert not fs.exists("team/nothing.parquet")
    assert not fs.exists("nothing")
    with pytest.raises(FileNotFoundError, match="no such name"):
        fs.ls("nothing")


def test_listing_makes_no_file(fs, monkeypatch):
    monkeypatch.setattr(filesystem, "encoded", lambda *_: pytest.fail("nobody asked for it"))
    assert {each["size"] for each in fs.ls("team")} == {None, 0}


@pytest.mark.parametrize(
    "path", ["team/clicks.parquet", "team/clicks.arrow", "team/deep/pages.arrow", "team/clicks@1.arrow"]
)
def test_sizes_are_right(fs, path):
    assert fs.info(path)["size"] == len(fs.cat_file(path)) == fs.size(path) > 0
    assert fs.cat_file(path, start=2, end=9) == fs.cat_file(path)[2:9]


def test_the_arrow_file_is_the_one_of_the_store(fs):
    (path,) = nectar.open("team/clicks").paths
    assert fs.cat_file("team/clicks.arrow") == Path(path).read_bytes()
    assert_frame_equal(pl.read_ipc(io.BytesIO(fs.cat_file("team/deep/pages.arrow"))), PAGES)


def test_several_files_are_put_together(fs, enabled):
    key = nectar.open("team/clicks").key
    location = enabled.catalog.store.new_location(key)
    (entry,) = enabled.catalog.index.lookup([key]).values()
    enabled.catalog.discard([entry])
    with enabled.catalog.store.stage(location) as staging:
        staging.write_table(TABLE, part_rows=500)
        published = staging.publish()
    from msgspec.structs import replace

    again = replace(entry, location=location, manifest=published.manifest, size=published.size, files=published.files)
    enabled.catalog.index.add(again, "", 0.0, 1.0)
    assert len(nectar.open("team/clicks").paths) > 1
    assert_frame_equal(pl.read_ipc(io.BytesIO(fs.cat_file("team/clicks.arrow"))), TABLE)
    assert_frame_equal(pl.read_parquet(io.BytesIO(fs.cat_file("team/clicks.parquet"))), TABLE)


def test_a_file_is_made_once(fs, monkeypatch):
    times = []
    encoded = filesystem.encoded
    monkeypatch.setattr(filesystem, "encoded", lambda *given: times.append(given) or encoded(*given))
    for _ in range(3):
        fs.cat_file("team/clicks.parquet")
        fs.info("team/clicks.parquet")
        NectarFileSystem().cat_file("team/clicks.parquet")
    assert len(times) == 1


def test_what_is_held_in_memory_is_bounded():
    held = filesystem._Held(100)
    for number in range(10):
        held.put((bytes([number]), ".parquet"), b"x" * 40)
    assert len(held._files) == 2
    held.put((b"large", ".parquet"), b"x" * 500)
    assert list(held._files) == [(b"large", ".parquet")]


def test_a_name_that_moves_is_another_file(fs, tmp_path):
    before = fs.ukey("team/deep/pages.parquet")
    assert pl.read_parquet(io.BytesIO(fs.cat_file("team/deep/pages.parquet"))).height == 3
    nectar.save(pl.scan_parquet(tmp_path / "clicks.parquet").select("page").unique().head(2), "team/deep/pages")
    assert fs.ukey("team/deep/pages.parquet") != before
    assert pl.read_parquet(io.BytesIO(fs.cat_file("team/deep/pages.parquet"))).height == 2
    assert pl.read_parquet(io.BytesIO(fs.cat_file("team/deep/pages@1.parquet"))).height == 3


def test_nothing_is_written(fs):
    with pytest.raises(PermissionError, match="compute it"):
        fs.open("team/new.parquet", "wb")
    with pytest.raises(PermissionError):
        TABLE.to_pandas().to_parquet("nectar://team/new.parquet")
    with pytest.raises(NotImplementedError):
        fs.rm("team/clicks.parquet")


@pytest.mark.parametrize("path", ["team/clicks.parquet", "team/clicks.arrow", "team/deep/pages.arrow"])
def test_a_deleted_result_is_listed_and_made_again_when_it_is_read(fs, enabled, path):
    before = fs.cat_file(path)
    filesystem._held._files.clear()
    enabled.catalog.discard(list(enabled.catalog.index.entries()))
    assert path in fs.find("")
    assert list(enabled.catalog.index.entries()) == [], "listing makes nothing"
    with fs.open(path) as file:
        again = file.read()
    # Arrow files of the same rows differ by who writes them: Polars, or pyarrow where it is loaded.
    assert again == before or pl.read_ipc(again).equals(pl.read_ipc(before))


def test_what_cannot_be_made_again_says_why(fs, enabled, tmp_path):
    enabled.catalog.discard(list(enabled.catalog.index.entries()))
    (tmp_path / "clicks.parquet").unlink()
    assert "team/clicks.parquet" in fs.ls("team", detail=False)
    with pytest.raises(DeletedError, match=r"(?s)clicks.parquet is gone.*run the query"):
        fs.open("team/clicks.parquet")


def test_an_empty_store_is_an_empty_folder(tmp_path):
    assert NectarFileSystem(home=str(tmp_path / "nothing")).ls("") == []
    assert not (tmp_path / "nothing").exists()


def test_pandas_reads_it(named):
    pandas = pytest.importorskip("pandas")
    found = pandas.read_parquet("nectar://team/clicks.parquet")
    assert found["seconds"].sum() == TABLE["seconds"].sum()
    assert pandas.read_feather("nectar://team/deep/pages.arrow")["page"].tolist() == ["a", "b", "c"]


def test_duckdb_reads_it(named):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register_filesystem(NectarFileSystem())
        total = connection.execute("SELECT SUM(seconds), COUNT(*) FROM 'nectar://team/clicks.parquet'").fetchone()
        assert total == (TABLE["seconds"].sum(), 1200)
        files = connection.execute("SELECT COUNT(*) FROM read_parquet('nectar://team/*.parquet')").fetchone()
        assert files == (1200,)


def test_pyarrow_reads_it(named):
    fs = NectarFileSystem()
    assert_frame_equal(pl.from_arrow(pyarrow.parquet.read_table("team/clicks.parquet", filesystem=fs)), TABLE)
    for suffix in ("parquet", "arrow"):
        dataset = pyarrow.dataset.dataset(f"team/clicks.{suffix}", format=suffix, filesystem=fs)
        assert dataset.count_rows() == 1200
    folder = pyarrow.dataset.dataset("team/deep", format="parquet", filesystem=fs, exclude_invalid_files=True)
    assert folder.count_rows() == 3


def test_polars_reads_it(named):
    with fsspec.open("nectar://team/clicks.parquet") as file:
        assert_frame_equal(pl.read_parquet(file), TABLE)


def test_home_as_an_option(named, home):
    nectar.disable()
    with fsspec.open("nectar://team/deep/pages.parquet", home=str(home)) as file:
        assert_frame_equal(pl.read_parquet(file), PAGES)


@pytest.mark.parametrize(
    "path",
    ["../x.nectar.json", "x.nectar.json", "{folder}/x.nectar.json", "..", "../../etc/passwd", "team/../team/clicks",
     "team/./clicks", "team//clicks", "team/clicks@1@2", "team/\x1b[2Jclicks"],
)  # fmt: skip
@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
def test_no_path_leads_out_of_the_names(fs, tmp_path, monkeypatch, path, suffix):
    """A pointer file is a file of the program's own; a path below nectar:// never reads one."""
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    made = nectar.open("team/clicks").made
    for place in (tmp_path, tmp_path / "folder"):
        (place / "x.nectar.json").write_bytes(pointer_to(made, None, []))
    assert nectar.open("x.nectar.json").key == made.key
    path = path.format(folder=tmp_path) + suffix
    assert not fs.exists(path)
    for action in (fs.info, fs.glance, fs.cat_file, fs.ls):
        with pytest.raises(FileNotFoundError):
            action(path)


@pytest.mark.parametrize("kind", ["endless", "pipe", "too long", "deep", "deep below", "a name that is none"])
def test_strange_pointer_files_are_refused(named, tmp_path, kind):
    path = tmp_path / "x.nectar.json"
    content = pointer_to(nectar.open("team/clicks").made, None, [])
    if kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "too long":
        path.write_bytes(content + b" " * (17 << 20))
    elif kind == "deep":
        path.write_bytes(b"[" * 1_000_000)
    elif kind == "deep below":
        path.write_bytes(b'{"a":' * 50_000 + b"1" + b"}" * 50_000)
    else:
        path.write_bytes(content.replace(b'"name": ""', b'"name": "../\\u001b[2J"'))
        assert b"001b" in path.read_bytes()
    with pytest.raises(UnknownNameError):
        nectar.open(str(path))
