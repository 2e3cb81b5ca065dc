"""The commands for names and lineage as a person meets them."""

import getpass
import json
import os
import socket
import subprocess
import sys

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.cli.test_store import failed, good, told

import nectar
from nectar import session


def clean(page: str) -> str:
    """Takes the spaces away."""
    return page.strip()


def other(page: str) -> str:
    return page.upper()


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def graph(home, tmp_path, monkeypatch):
    """clicks.csv -clean-> team/pages -> team/top; more.csv -other-> team/other. The true graph of what follows."""
    monkeypatch.setattr(session, "_chosen", None)
    monkeypatch.setattr(session, "_disabled", False)
    pl.DataFrame({"page": ["a ", "b", "a"], "n": [1, 2, 3]}).write_csv(tmp_path / "clicks.csv")
    pl.DataFrame({"page": ["x"], "n": [1]}).write_csv(tmp_path / "more.csv")
    nectar.enable(home=home, reserve=0)
    pages = pl.scan_csv(tmp_path / "clicks.csv").with_columns(
        pl.col("page").map_elements(clean, return_dtype=pl.String)
    )
    nectar.save(pages.group_by("page").agg(pl.col("n").sum()).sort("page"), "team/pages", note="the first")
    nectar.save(nectar.scan("team/pages").filter(pl.col("n") > 2), "team/top")
    more = pl.scan_csv(tmp_path / "more.csv").with_columns(pl.col("page").map_elements(other, return_dtype=pl.String))
    nectar.save(more, "team/other")
    nectar.disable()
    return home


def names_in(record):
    return {f"{each['name']}@{each['version']}" for each in record["names"]}


# lineage


def test_what_a_result_came_from(graph, tmp_path):
    record = told(graph, "lineage", "team/top")
    assert record["direction"] == "upstream"
    assert names_in(record) == {"team/top@1", "team/pages@1"}
    assert [each["url"] for each in record["files"]] == [str(tmp_path / "clicks.csv")]
    (function,) = record["functions"]
    assert function["name"].endswith(".clean")
    assert function["text"].startswith("def clean(page: str) -> str:\n")
    assert len(record["results"]) == 2
    assert record["made_from"] == [{"result": record["start"][0], "source": told(graph, "show", "team/pages")["key"]}]
    assert all("polars" in each["environment"] for each in record["results"])
    assert len(record["people"]) == 1


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("clicks.csv", {"team/pages@1", "team/top@1"}),
        ("test_names.clean", {"team/pages@1", "team/top@1"}),
        ("clean", {"team/pages@1", "team/top@1"}),
        ("tests/cli/test_names.py:clean", {"team/pages@1", "team/top@1"}),
        ("other", {"team/other@1"}),
        ("more.csv", {"team/other@1"}),
    ],
)
def test_what_must_be_done_again(graph, what, names):
    record = told(graph, "lineage", what)
    assert record["direction"] == "downstream"
    assert names_in(record) == names


def test_what_depends_on_a_name(graph):
    assert names_in(told(graph, "lineage", "team/pages", "--downstream")) == {"team/pages@1", "team/top@1"}
    assert names_in(told(graph, "lineage", "team/pages@1")) == {"team/pages@1"}
    assert names_in(told(graph, "lineage", "team/top", "--downstream")) == {"team/top@1"}


def test_lineage_outlives_the_data(graph):
    good(graph, "gc", "--all", "--apply")
    assert names_in(told(graph, "lineage", "clean")) == {"team/pages@1", "team/top@1"}
    key = told(graph, "lineage", "team/top")["start"][0]
    assert told(graph, "lineage", key[:10])["start"] == [key]


def test_lineage_in_words(graph):
    text = good(graph, "lineage", "team/top", "--sources")
    assert text.startswith("team/top: made from 1 other result\n")
    assert "team/pages@1 since" in text
    assert "the first" in text
    assert '    def clean(page: str) -> str:\n        """Takes the spaces away."""\n' in text
    assert "test_names.py:" in text
    assert "def clean" not in good(graph, "lineage", "team/top")
    assert good(graph, "lineage", "clean").startswith("clean: 1 result, and 1 other result made from there\n")


def test_lineage_in_other_forms(graph, tmp_path):
    dot = good(graph, "lineage", "team/top", "--format", "dot")
    assert dot.startswith("digraph lineage {")
    assert dot.count(" -> ") == 3, "file and function lead to the first result, and it to the second"
    svg = good(graph, "lineage", "team/top", "--format", "svg")
    assert svg.count("<rect") == 4
    import xml.etree.ElementTree as xml

    assert xml.fromstring(svg).tag.endswith("svg")
    events = json.loads(good(graph, "lineage", "team/top", "--format", "openlineage"))
    assert [each["eventType"] for each in events] == ["COMPLETE"] * 2
    assert {"namespace": "file", "name": str(tmp_path / "clicks.csv")} in events[0]["inputs"]
    assert events[0]["outputs"][0] in events[1]["inputs"]


def test_lineage_of_nothing(graph, tmp_path):
    assert "'nothing'" in failed(graph, "lineage", "nothing")
    assert "there is no catalog" in failed(tmp_path / "empty", "lineage", "x")
    assert "no version 7" in failed(graph, "lineage", "team/top@7")


def signed(page: str) -> str:
    api_token = "hunter2"
    return f"{page}{len(api_token)}"


def test_no_credentials_are_on_record(graph, tmp_path):
    with nectar.reuse(home=graph, reserve=0):
        pages = pl.scan_csv(tmp_path / "more.csv").with_columns(
            pl.col("page").map_elements(signed, return_dtype=pl.String)
        )
        nectar.save(pages, "signed")
    (function,) = told(graph, "lineage", "signed")["functions"]
    assert "api_token = '...'" in function["text"]
    assert "hunter2" not in json.dumps(told(graph, "lineage", "signed"))


# names


def test_names_are_listed_with_their_notes(graph):
    text = good(graph, "ls", "--names")
    assert "team/pages" in text
    assert "the first" in text
    assert {each["name"]: each["note"] for each in told(graph, "ls", "--names")["names"]} == {
        "team/other": "", "team/pages": "the first", "team/top": "",
    }  # fmt: skip


def test_listing_tells_who_and_when_it_goes(graph):
    entries = told(graph, "ls")["entries"]
    assert {each["producer"] for each in entries} == {f"{getpass.getuser()}@{socket.gethostname()}"}
    # Their functions are of this module, which pytest compiled in its own way: its text does not tell what ran.
    assert all(each["eviction"].startswith("stays: it cannot be rebuilt") for each in entries)
    assert not any(each["rebuildable"] for each in entries)
    assert "TO GO" in good(graph, "ls")
    good(graph, "pin", "team/pages")
    assert " pinned " in good(graph, "ls")


def test_history_of_a_name(graph):
    good(graph, "rm", "team/top", "--note", "it was wrong")
    assert "removed" in failed(graph, "show", "team/top")
    record = told(graph, "show", "team/top@1")
    assert [(each["version"], each["note"]) for each in record["history"]] == [(2, "it was wrong"), (1, "")]
    assert "it was wrong" in good(graph, "show", "team/top@1")
    assert "there is no name" in failed(graph, "rm", "team/top")
    assert told(graph, "rm", "team/other") == {"name": "team/other", "removed": True}
    assert [each["name"] for each in told(graph, "ls", "--names")["names"]] == ["team/pages"]


def test_a_name_wins_over_the_beginning_of_a_key(graph):
    key = told(graph, "show", "team/pages")["key"]
    from nectar.catalog.embedded import open_catalog
    from nectar.settings import load_settings

    catalog = open_catalog(load_settings({"home": graph}))
    other_key = bytes.fromhex(told(graph, "show", "team/other")["key"])
    catalog.bind(key[:4], other_key)
    catalog.close()
    assert told(graph, "show", key[:4])["key"] == other_key.hex()


def test_what_nobody_uses(graph):
    record = told(graph, "stats")
    assert [each["days"] for each in record["unused"]] == [7, 30, 90, 250]
    assert {each["entries"] for each in record["unused"]} == {0}
    assert (record["would_go"], record["would_free"]) == (0, 0)
    assert "nothing for a week" in good(graph, "stats")


# exports


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "ndjson"])
def test_export(graph, tmp_path, suffix):
    path = tmp_path / f"out.{suffix}"
    path.write_text("something else")
    record = told(graph, "export", "team/pages", str(path))
    assert record["size"] == path.stat().st_size
    readers = {"parquet": pl.read_parquet, "arrow": pl.read_ipc, "csv": pl.read_csv, "ndjson": pl.read_ndjson}
    assert_frame_equal(readers[suffix](path), pl.DataFrame({"page": ["a", "b"], "n": [4, 2]}))
    assert sorted(each.name for each in tmp_path.iterdir() if each.name.startswith(".")) == []


def test_exports_that_cannot_be(graph, tmp_path):
    assert "which format" in failed(graph, "export", "team/pages", "out.xlsx")
    assert "cannot be written" in failed(graph, "export", "team/pages", "no/such/folder/out.csv")
    good(graph, "gc", "--all", "--apply")
    assert "run the query" in failed(graph, "export", "team/pages", "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_a_pointer_file_is_scanned(graph, tmp_path):
    assert ".nectar.json" in failed(graph, "export", "--pointer", "team/pages", "x.json")
    good(graph, "export", "--pointer", "team/pages", "pages.nectar.json")
    content = json.loads((tmp_path / "pages.nectar.json").read_text())
    assert (content["name"], content["version"], content["rows"]) == ("team/pages", 1, 2)
    assert [each["name"] for each in content["schema"]] == ["page", "n"]
    assert names_in(told(graph, "lineage", "pages.nectar.json")) == {"team/pages@1"}
    good(graph, "rm", "team/pages")
    code = (
        "import nectar; print(nectar.scan('pages.nectar.json').collect()['n'].sum(), nectar.open('pages.nectar.json'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "NECTAR_HOME": str(graph)},
    )  # fmt: skip
    assert done.stdout.startswith("6 Dataset("), done.stderr


@pytest.mark.parametrize("content", ["", "{}", '{"nectar": 1, "key": "zz"}', '{"nectar": 1, "key": "ab"}', "[]"])
def test_what_is_no_pointer_file(graph, tmp_path, monkeypatch, content):
    monkeypatch.setenv("NECTAR_HOME", str(graph))
    (tmp_path / "x.nectar.json").write_text(content)
    with pytest.raises(nectar.UserError, match=r"x\.nectar\.json"):
        nectar.open("x.nectar.json")
    (tmp_path / "x.nectar.json").write_text(json.dumps({"nectar": 99, "key": "00" * 32}))
    with pytest.raises(nectar.UserError, match="newer"):
        nectar.open("x.nectar.json")


def test_a_mount_that_cannot_be(graph, tmp_path):
    done = failed(graph, "mount", str(tmp_path / "no such folder"))
    assert "no folder" in done or "mfusepy" in done or "libfuse" in done
