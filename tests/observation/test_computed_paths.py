"""Files that code which is not Python's opens, under names that a program puts together as it runs."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import nectar
from nectar import session
from nectar.observation.texts import texts_of

pl = pytest.importorskip("polars")
etree = pytest.importorskip("lxml.etree")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who opens a file"),
    pytest.mark.filterwarnings("ignore::nectar.NectarWarning"),
]

OUT = "out"


@dataclass
class Store:
    root: str

    def text(self, name):
        return etree.parse(os.path.join(self.root, name + ".xml")).getroot().text

    def put(self, frame, name):
        frame.write_parquet(os.path.join(self.root, name))
        return frame.height


store = Store("data")


@pytest.fixture
def here(tmp_path, monkeypatch, enabled):
    """A working folder with a few documents."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for folder in ("data", "out"):
        Path(folder).mkdir()
    for path in ("a.xml", "data/a.xml"):
        Path(path).write_text("<r>1</r>")


def root_text(path):
    return etree.parse(path).getroot().text


READERS = {
    "end of a name": lambda name: root_text(f"{name}.xml"),
    "added": lambda name: root_text(name + ".xml"),
    "formatted": lambda name: root_text("%s.xml" % name),  # noqa: UP031
    "in a folder": lambda name: root_text(f"data/{name}.xml"),
    "in a folder by name": lambda name: root_text(os.path.join("data", name + ".xml")),
    "in a folder of an object": lambda name: store.text(name),
}


@pytest.mark.parametrize("reader", READERS)
def test_what_is_read_is_noticed(reader, here):
    read = nectar.memo(READERS[reader])
    assert read("a") == "1"
    session.current().settle()
    for path in ("a.xml", "data/a.xml"):
        Path(path).write_text("<r>2</r>")
    assert read("a") == "2"


WRITERS = {
    "a file in a folder": lambda n: pl.DataFrame({"a": range(n)}).write_csv(f"out/part_{n}.csv"),
    "a folder by name": lambda n: pl.DataFrame({"a": range(n)}).write_parquet(os.path.join(OUT, f"{n}.parquet")),
    "here": lambda n: pl.DataFrame({"a": range(n)}).write_ipc(f"{n}.arrow"),
    "a sink": lambda n: pl.LazyFrame({"a": range(n)}).sink_parquet(f"{n}.pq"),
    "by a name of a method": lambda n: getattr(pl.DataFrame({"a": range(n)}), "write_" + ["csv"][n - 3])("o." + "csv"),
    "a tree": lambda n: etree.ElementTree(etree.Element("r")).write(f"{n}.xml"),
    "by an object": lambda n: store.put(pl.DataFrame({"a": range(n)}), f"{n}.parquet"),
}


def files():
    return sorted(str(path) for path in Path().rglob("*") if path.is_file())


@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_written_is_written_again(writer, here):
    write = nectar.memo(WRITERS[writer])
    before = files()
    write(3)
    session.current().settle()
    made = [path for path in files() if path not in before]
    assert len(made) == 1
    os.remove(made[0])
    write(3)
    assert files() == sorted([*before, *made])


def test_frames_that_queries_write(here):
    def dump(frame):
        frame.write_csv(f"{frame['a'][0]}.o")
        return frame

    for _ in range(2):
        pl.LazyFrame({"a": [7, 8]}).map_batches(dump).collect()
        session.current().settle()
        assert os.path.exists("7.o")
        os.remove("7.o")


def test_files_that_queries_read_by_names_in_a_column(here):
    lf = pl.LazyFrame({"name": ["a"]})
    text = pl.col("name").map_elements(lambda name: root_text(name + ".xml"), return_dtype=pl.String)
    assert lf.select(text).collect().item() == "1"
    session.current().settle()
    Path("a.xml").write_text("<r>2</r>")
    assert lf.select(text).collect().item() == "2"


@pytest.mark.parametrize(
    ("held", "path_of"),
    [("data/a.xml", lambda text: text), ("./data", lambda text: text + "/a.xml")],
    ids=["file", "folder"],
)
def test_files_that_a_column_in_memory_names(held, path_of, here):
    lf = pl.LazyFrame({"path": [held]})
    text = pl.col("path").map_elements(lambda path: root_text(path_of(path)), return_dtype=pl.String)
    assert lf.select(text).collect().item() == "1"
    session.current().settle()
    Path("data/a.xml").write_text("<r>2</r>")
    assert lf.select(text).collect().item() == "2"


def test_a_query_over_texts_in_memory_is_kept(here):
    lf = pl.LazyFrame({"text": ["a", "b"], "number": [1, 2]})
    upper = pl.col("text").map_elements(lambda text: text.upper(), return_dtype=pl.String)
    for _ in range(2):
        lf.select(upper).collect()
        session.current().settle()
    assert [part.outcome for part in nectar.last_run().parts] == ["reused"], nectar.last_run().details()


def test_functions_that_open_nothing_are_kept(here):
    def name_of(number):
        return f"{number}.xml", os.path.join("data", f"{number}.csv"), f"{number / 3:.2f}"

    memo = nectar.memo(name_of)
    memo(3)
    session.current().settle()
    assert memo.check_call_in_cache(3)


@nectar.memo
def helper(number):
    return number + 1


def test_names_of_modules_and_functions_are_no_names_of_files(here):
    memo = nectar.memo(lambda number: (helper(number), __name__, "xml.etree", "a.b", f"{number:.2f}"))
    functions = [memo.__wrapped__, helper.__wrapped__]
    assert "." not in texts_of(functions)
    assert "." in texts_of([lambda number: f"{number}.csv"])
    assert "." in texts_of([lambda number: "part_{}.csv".format(number)])  # noqa: UP032
    assert "." in texts_of([lambda number: "o." + str(number)])


def test_a_query_over_files_of_the_working_folder_is_kept(here):
    pl.DataFrame({"a": [1, 2]}).write_parquet("numbers.parquet")

    def name_of(number):
        return f"{number}.xml"

    lf = pl.scan_parquet("numbers.parquet").select(pl.col("a").map_elements(name_of, return_dtype=pl.String))
    lf.collect()
    session.current().settle()
    lf.collect()
    assert [part.outcome for part in nectar.last_run().parts] == ["reused"], nectar.last_run().details()
