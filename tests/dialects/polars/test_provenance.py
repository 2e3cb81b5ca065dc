"""What the results of queries came from, as it is on record."""

import threading

import polars as pl
import pytest
from tests.dialects.polars.conftest import write_day

import nectar
from nectar.model.lineage import Sources

OFFSET = 3


def shift(seconds: int) -> int:
    return seconds + OFFSET


def double(seconds: int) -> int:
    return shift(seconds) * 2


def shifted(log, function=double):
    return pl.scan_parquet(log / "*.parquet").with_columns(
        pl.col("seconds").map_elements(function, return_dtype=pl.Int64)
    )


def functions(name):
    return {each.name.rpartition(".")[2] for each in nectar.open(name).lineage().functions}


def files(name):
    return {each.url.rpartition("/")[2] for each in nectar.open(name).lineage().files}


def test_functions_reached_through_others_are_on_record(enabled, log):
    nectar.save(shifted(log), "a")
    assert functions("a") == {"double", "shift"}
    texts = {each.name.rpartition(".")[2]: each.text for each in nectar.open("a").lineage().functions}
    assert texts["shift"] == "def shift(seconds: int) -> int:\n    return seconds + OFFSET\n"
    (made,) = nectar.open("a").lineage().results
    assert made.site.startswith("test_provenance.py:")
    assert made.environment.startswith(f"polars {pl.__version__}")


def test_parts_that_were_reused_belong_to_it(enabled, log):
    nectar.save(shifted(log).group_by("page").agg(pl.col("seconds").sum()), "a")
    nectar.save(shifted(log).group_by("page").agg(pl.col("seconds").sum()).sort("page"), "b")
    assert [part.outcome for part in nectar.last_run().parts] == ["reused", "computed"]
    assert functions("b") == {"double", "shift"}
    assert files("b") == {"day-1.parquet", "day-2.parquet"}
    assert len(nectar.open("b").lineage().results) == 2


def test_of_several_sources_only_those_it_read(enabled, log):
    both = shifted(log).join(pl.scan_parquet(log / "day-1.parquet").select("page").unique(), on="page")
    nectar.save(both, "both")
    nectar.save(pl.scan_parquet(log / "day-2.parquet").select("page").unique(), "second")
    assert files("both") == {"day-1.parquet", "day-2.parquet"}
    assert files("second") == {"day-2.parquet"}
    assert functions("second") == set()


def test_a_growing_stream_has_all_its_files(enabled, log):
    query = lambda: pl.scan_parquet(log / "*.parquet").group_by("page").agg(pl.col("seconds").sum())
    for day in range(3, 8):
        write_day(log, day)
        nectar.save(query(), "a")
    assert files("a") == {f"day-{day}.parquet" for day in range(1, 8)}
    assert files("a@1") == {f"day-{day}.parquet" for day in range(1, 4)}


def test_a_chain_of_names(enabled, log):
    nectar.save(shifted(log), "a")
    nectar.save(nectar.scan("a").group_by("page").agg(pl.len()), "b")
    nectar.save(nectar.scan("b").sort("page"), "c")
    assert functions("c") == {"double", "shift"}
    assert files("c") == {"day-1.parquet", "day-2.parquet"}
    down = nectar.open("a").lineage("downstream")
    assert [name.name for name in down.names] == ["a", "b", "c"]
    assert len(down.graph.made_from) == 2


def test_it_is_told_by_the_keeper_and_only_of_what_is_kept(enabled, log, monkeypatch):
    told = []
    record = enabled.catalog.index.record
    monkeypatch.setattr(
        enabled.catalog.index, "record", lambda each: told.append(threading.current_thread().name) or record(each)
    )
    shifted(log).collect()
    enabled.settle()
    assert set(told) == {"nectar-keeper"}
    count = len(told)
    monkeypatch.setattr(enabled.catalog, "worth_keeping", lambda *_: "never")
    shifted(log).filter(pl.col("page") == "a").collect()
    enabled.settle()
    assert len(told) == count


@pytest.mark.parametrize("broken", ["record", "sources"])
def test_whatever_goes_wrong_with_it_the_result_is_kept(enabled, log, monkeypatch, caplog, broken):
    def fail(*_):
        raise RuntimeError("no ink")

    if broken == "record":
        monkeypatch.setattr(enabled.catalog.index, "record", fail)
    else:
        monkeypatch.setattr("nectar.dialects.polars.provenance.sources_of", fail)
    saved = nectar.save(shifted(log), "a")
    assert saved.kept
    assert "not on record" in caplog.text
    assert nectar.scan("a").collect().height == 240, "its schema is then read from the result"


def test_calls_of_memoised_functions_are_on_record(enabled, tmp_path):
    (tmp_path / "words.txt").write_text("a b c")

    @nectar.memo
    def count(file):
        return [shift(len(word)) for word in file.read_text().split()] * 2000

    count(nectar.File(tmp_path / "words.txt"))
    enabled.settle()
    graph = enabled.catalog.index.trace_input("words.txt", "downstream")
    assert [made.about.startswith("test_provenance.") or "count" in made.about for made in graph.results.values()] == [
        True
    ]
    assert len(enabled.catalog.index.trace_function("shift", "downstream").results) == 1


def test_nothing_is_on_record_without_an_account(enabled):
    enabled.catalog.keep(b"k" * 32, b"p" * 32, [1, 2], seconds=5.0)
    assert enabled.catalog.index.made([b"k" * 32]) == {}
    enabled.catalog.keep(b"l" * 32, b"p" * 32, [1, 2], seconds=5.0, sources=Sources)
    assert enabled.catalog.index.made([b"l" * 32])[b"l" * 32].by == enabled.catalog.person


def test_a_name_with_a_line_feed_looks_like_one_file(enabled, tmp_path):
    odd = tmp_path / "a.csv\nother.csv (content 0123456789ab)"
    odd.write_text("a\n1\n")
    nectar.save(pl.scan_csv(odd), "a")
    assert [line for line in str(nectar.open("a").lineage()).splitlines() if line.strip().startswith("other")] == []
