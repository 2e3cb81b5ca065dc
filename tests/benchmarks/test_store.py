"""The pieces of the benchmark of the store work at small sizes; how long anything takes is not looked at."""

from __future__ import annotations

import json

import pytest
from benchmarks.stores import PLACES, catalog_in, is_installed

from benchmarks import store

TINY = store.Sizes(entries=(200, 500), runs=2, table=20_000, result=50_000, objects=20)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(store, "LOOKUPS", 20)
    monkeypatch.setattr(store, "INSERTS", 5)
    monkeypatch.setattr(store, "EVICTED", 5)


def test_everything_is_measured_and_told(few, tmp_path, capsys):
    store.print_report(store.measure(TINY, tmp_path))
    *lines, last = capsys.readouterr().out.splitlines()
    figures = json.loads(last)
    assert all(name.isidentifier() for name in figures)
    for name in (
        "lookups_per_s_at_200", "inserts_per_s_at_500", "lookups_fastest_over_slowest", "batch_of_20_median_ms",
        "batch_of_20_p90_ms", "eviction_plan_s", "open_large_first_row_ms", "commit_small_ms", "commit_1mb_ms",
        "commit_large_ms", "index_bytes_per_entry", "bytes_beside_data_large", "nectar_put_table_ms", "load_before",
    ):  # fmt: skip
        assert figures[name] >= 0, name
    assert any("nectar" in line for line in lines)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", PLACES)
def test_places_give_back_what_they_were_given(place, tmp_path):
    if not is_installed(place):
        pytest.skip(f"{place} is not installed")
    table = store.table_of(10_000)
    found = store._put_and_get(place, tmp_path, table, {"a": {"x": 1}, "b": [2]}, ["b", "a"])
    assert set(found) == {"put_table", "get_table", "put_objects", "get_objects"}


def test_filled_entries_are_like_others(tmp_path):
    catalog = catalog_in(tmp_path)
    store.fill(catalog, 0, 50, now=1e9)
    assert catalog.usage().entries == 50
    assert catalog.index.recount() is False
    assert len(catalog.inquire([store.key_of("program 0")])[store.key_of("program 0")]) == 3
    catalog.close()


def test_report_has_the_median_and_its_neighbours():
    report = store.Report()
    report.add("a_ms", "something", [0.001, 0.003, 0.002], "ms", "under 5", 1e3)
    assert report.figures == {"a_ms": 2.0, "a_ms_lowest": 1.0, "a_ms_highest": 3.0}
    assert report.lines == [("something", "2 ms (1 to 3)", "under 5")]
