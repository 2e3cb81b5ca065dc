"""Whether a server sees the same files: servers that see others, or did once, are found out."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql.connect.proto", reason="Spark is not installed: make test-sail")

import pyarrow as pa
from pyspark.sql.connect.proto import relations_pb2

from nectar.dialects.spark import sight
from nectar.dialects.spark.connections import Connection, Unreachable
from nectar.dialects.spark.reads import source_of
from nectar.errors import EnvironmentFailure

pytestmark = pytest.mark.small


class Server(Connection):
    """A server that sees, under each path, what another path has here; None: nothing."""

    def __init__(self, seen=lambda path: path, endpoint="127.0.0.1:15002"):
        self.seen, self.at, self.asked, self._remembered = seen, endpoint, [], {"at home": False}

    @property
    def endpoint(self):
        return self.at

    def rows(self, relation):
        kind = relation.WhichOneof("rel_type")
        source = (relation.read if kind == "read" else relation.project.input.read).data_source
        self.asked.append(source.format)
        (path,) = source.paths
        place = self.seen(path)
        if place is None or not Path(place).exists():
            raise EnvironmentFailure("there is no such path")
        if source.format == "text":
            return pa.table({"value": Path(place).read_text().splitlines()})
        return self._listed(Path(path), Path(place))

    def _listed(self, root, place):
        found = [each for each in place.rglob("*") if each.is_file()] if place.is_dir() else [place]
        found = [each for each in found if each.stat().st_size and not each.name.startswith((".", "_"))]
        rows = [(f"file:{root / each.relative_to(place)}".removesuffix("/."), each.stat()) for each in found]
        return pa.table(
            {
                "path": [path for path, _ in rows],
                "length": [status.st_size for _, status in rows],
                "modificationTime": pa.array(
                    [status.st_mtime_ns // 1000 for _, status in rows], pa.timestamp("us", "UTC")
                ),
            }
        )


def read(path):
    source = relations_pb2.Read.DataSource(format="parquet", paths=[str(path)])
    return source_of(relations_pb2.Read(data_source=source))


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    (folder / "k=1").mkdir(parents=True)
    for name in ("a.parquet", "k=1/b.parquet", "_hidden", ".crc"):
        (folder / name).write_text(name)
    (folder / "empty.parquet").write_text("")
    return folder


@pytest.fixture
def store(tmp_path):
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def test_a_server_that_sees_the_same_is_asked_once(data, store):
    server = Server()
    for _ in range(3):
        assert sight.why_unseen(server, read(data), store) == ""
        assert sight.why_unseen(server, read(data / "a.parquet"), store) == ""
    assert server.asked == ["text", "text", "binaryFile", "binaryFile"]


def test_each_state_of_the_files_is_compared(data, store):
    server = Server()
    assert sight.why_unseen(server, read(data), store) == ""
    (data / "c.parquet").write_text("more")
    assert sight.why_unseen(server, read(data), store) == ""
    assert server.asked.count("binaryFile") == 2


def test_nothing_is_left_behind(data, store, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(sight.tempfile, "tempdir", str(tmp_path / "temporary"))  # of this test alone
    server = Server()
    assert sight.why_unseen(server, read(data), store) == ""
    assert server.asked.count("text") == 2  # a file in either folder was written and asked for
    assert sorted(store.iterdir()) == sorted((tmp_path / "temporary").iterdir()) == []
    assert sorted(path.name for path in data.iterdir()) == [".crc", "_hidden", "a.parquet", "empty.parquet", "k=1"]


def replica(data, tmp_path):
    """A server on which the folder is a copy, made once."""
    copy = tmp_path / "copy"
    shutil.copytree(data, copy)
    return Server(lambda path: str(copy) + path.removeprefix(str(data)) if path.startswith(str(data)) else path)


def test_a_copy_that_falls_behind_is_noticed(data, store, tmp_path):
    server = replica(data, tmp_path)
    (data / "c.parquet").write_text("more")
    assert "sees another" in sight.why_unseen(server, read(data), store)


@pytest.mark.parametrize("change", ["another size", "another time", "one more", "one less"])
def test_other_files_under_the_same_names_are_noticed(data, store, tmp_path, change):
    server = replica(data, tmp_path)
    there = tmp_path / "copy"
    if change == "another size":
        (there / "k=1" / "b.parquet").write_text("something else")
    elif change == "another time":
        import os

        os.utime(there / "a.parquet", (1, 1))
    elif change == "one more":
        (there / "z.parquet").write_text("z")
    else:
        (there / "a.parquet").unlink()
    assert "sees another" in sight.why_unseen(server, read(data), store)


def test_one_file_that_is_another_is_noticed(data, store, tmp_path):
    server = replica(data, tmp_path)
    (tmp_path / "copy" / "_hidden").write_text("other")
    (tmp_path / "copy" / "a.parquet").write_text("other")
    assert "sees another" in sight.why_unseen(server, read(data / "a.parquet"), store)
    assert sight.why_unseen(server, read(data / "_hidden"), store) != ""


def test_a_server_that_shares_no_folder_is_refused(data, store):
    reason = sight.why_unseen(Server(lambda path: None), read(data), store)
    assert "does not see the files of this machine" in reason
    assert str(store) in reason


def test_a_server_that_has_other_temporary_files_is_refused(data, store, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("another content")
    server = Server(lambda path: path if path.startswith(str(data)) else str(other))
    assert "does not see the files of this machine" in sight.why_unseen(server, read(data), store)


def test_a_server_without_the_folder_of_the_data_is_refused(data, store):
    server = Server(lambda path: None if path.startswith(str(data)) else path)
    assert "cannot be told" in sight.why_unseen(server, read(data), store)


def test_a_server_elsewhere_must_share_the_device_of_the_data(data, store, monkeypatch):
    server = Server(endpoint="spark.example.org:15002")
    assert sight.why_unseen(server, read(data), store) == ""
    monkeypatch.setattr(sight, "_on_one_device", lambda path, folder: False)
    assert "another device" in sight.why_unseen(server, read(data), store)
    assert sight.why_unseen(Server(), read(data), store) == ""


def test_a_relative_path_is_one_of_the_server(data, store, monkeypatch):
    monkeypatch.chdir(data.parent)
    assert "not absolute" in sight.why_unseen(Server(), read("data"), store)


def test_files_that_vanish_are_no_mistake(data, store):
    source = read(data)
    (data / "a.parquet").unlink()
    assert "cannot be told" in sight.why_unseen(Server(), source, store)


def test_whether_the_store_is_seen(data, store):
    assert sight.sees(Server(), store)
    assert not sight.sees(Server(lambda path: None if path.startswith(str(store)) else path), store)
    assert not sight.sees(Server(), store / "not there")


def test_after_a_run_the_files_are_compared_once_more(data, store, tmp_path):
    server = replica(data, tmp_path)
    assert sight.why_unseen(server, read(data), store) == ""
    assert sight.why_another_now(server, read(data)) == ""
    (tmp_path / "copy" / "later.parquet").write_text("only there")
    assert sight.why_unseen(server, read(data), store) == ""  # this state was compared before
    assert "sees another" in sight.why_another_now(server, read(data))


def test_a_neighbour_is_asked_for_nothing(data, store):
    server = Server(lambda path: None)
    server._remembered["at home"] = True
    assert sight.why_unseen(server, read(data), store) == ""
    assert sight.why_another_now(server, read(data)) == ""
    assert sight.sees(server, store)
    assert server.asked == []


@pytest.mark.parametrize(
    ("neighbour", "master", "files", "expected"),
    [
        (True, "local[2]", ["file://{}"], True),
        (True, "local[2]", ["file:{}"], True),
        (False, "local[2]", ["file://{}"], False),
        (True, "yarn", ["file://{}"], False),
        (True, "local[2]", ["hdfs://name{}"], False),
        (True, "local[2]", ["{}"], False),
        (True, "local[2]", [], False),
    ],
)
def test_what_makes_a_server_at_home(monkeypatch, neighbour, master, files, expected):
    monkeypatch.setattr(sight, "is_neighbour", lambda endpoint: neighbour)
    server = Server()
    del server._remembered["at home"]
    server.settings = lambda *names: {"spark.master": master}
    server.files = lambda relation: [each.format(relation.read.data_source.paths[0]) for each in files]
    assert sight.is_at_home(server) is expected


def test_a_server_that_is_away_for_a_moment_is_asked_again(data, store):
    """Nothing is learned of it meanwhile."""
    server, away = Server(), [True]
    plain = server.rows

    def rows(relation):
        if away:
            raise Unreachable("the server is away")
        return plain(relation)

    server.rows = rows
    source = read(data)
    assert "does not see" in sight.why_unseen(server, source, store)
    away.clear()
    assert sight.why_unseen(server, source, store) == ""


def test_a_neighbour_that_is_away_for_a_moment_is_asked_again(monkeypatch):
    server, away = Server(), [True]
    server._remembered.clear()

    def settings(*names):
        if away:
            raise Unreachable("the server is away")
        return {"spark.master": "local[2]"}

    server.settings = settings
    server.files = lambda relation: [f"file:{relation.read.data_source.paths[0]}"]
    monkeypatch.setattr(sight, "is_neighbour", lambda endpoint: True)
    assert not sight.is_at_home(server)
    away.clear()
    assert sight.is_at_home(server)
