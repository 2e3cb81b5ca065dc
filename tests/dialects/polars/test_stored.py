"""Results of the store as sources: in a process without pyarrow, no more is read of them than is needed.

Every program compares its answer with that of plain Polars.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from nectar.dialects.polars.stored import StoredFrame

PROGRAM = """
import itertools, json, os, sys
from pathlib import Path
import polars as pl
from polars.testing import assert_frame_equal
import nectar
from nectar.store.formats import arrow

read, whole = [], arrow._read_by_polars
def reading(polars, part, only):
    read.append(None if only is None else list(only))
    if os.environ.get("DELETE"):
        for file in Path(os.environ["NECTAR_HOME"]).rglob("table-*"):
            file.unlink()
    if os.environ.get("BREAK"):
        raise OSError("the device is gone")
    return whole(polars, part, only)
arrow._read_by_polars = reading

clicks = pl.scan_parquet(Path(sys.argv[1]) / "*.parquet")
known = clicks.group_by("page").agg(pl.col("seconds").sum(), pl.len(), latest=pl.col("day").max())
known = known.with_columns(text=pl.lit("x" * 100_000))
twice = pl.LazyFrame({"x": [1, 2]})
queries = {
    "one column": known.select(pl.col("seconds").max()),
    "filtered by another": known.filter(pl.col("latest") > 1).select("len").sort("len"),
    "only counted": known.select(pl.len()),
    "none": known.join(twice, how="cross").select("x").sort("x"),
    "none of some": known.filter(pl.col("latest") > 1).join(twice, how="cross").select("x").sort("x"),
    "all": known.with_columns(more=pl.col("len") + 1, text=pl.col("text").str.len_chars()).sort("page"),
    "twice": known.select("page", "len").join(known.select("page", "seconds"), on="page").sort("page"),
}
def run(query, engine):
    how = os.environ.get("HOW", "collect")
    if how == "sink_parquet":
        query.sink_parquet("sunk.parquet", engine=engine)
        return pl.read_parquet("sunk.parquet")
    if how == "collect_batches":
        return pl.concat(query.collect_batches(engine=engine))
    if how == "background":
        return query.collect(engine=engine, background=True).fetch_blocking()
    return query.collect(engine=engine)

if sys.argv[2] == "keep":
    nectar.enable()
    known.collect()
else:
    told = {}
    for name, engine in itertools.product(queries, sys.argv[2:]):
        nectar.enable(read_only=True)  # so that nothing loads pyarrow, which would map all of the result at once
        read.clear()
        found = run(queries[name], engine)
        told[f"{name}, {engine}"] = [len(nectar.last_run().reused), *read]
        nectar.disable()
        assert_frame_equal(found, queries[name].collect())
    assert "pyarrow" not in sys.modules
    print(json.dumps(told))
"""


def _run(tmp_path, *arguments, **variables):
    surroundings = {**os.environ, "NECTAR_HOME": str(tmp_path / "home"), **variables}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "clicks"), *arguments]
    done = subprocess.run(
        command, env=surroundings, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout else None


@pytest.fixture
def kept(tmp_path, log):
    """A process has kept the aggregate."""
    _run(tmp_path, "keep")
    return tmp_path


def test_only_the_columns_that_are_needed_are_read(kept):
    told = _run(kept, "in-memory", "streaming")
    for engine in ("in-memory", "streaming"):
        assert told[f"one column, {engine}"] == [1, ["seconds"]]
        assert told[f"filtered by another, {engine}"] == [1, ["len", "latest"]]
        assert told[f"only counted, {engine}"][0] == 1
        assert told[f"all, {engine}"] == [1, ["page", "seconds", "len", "latest", "text"]]
        assert told[f"twice, {engine}"][0] == 1
        assert told[f"none, {engine}"][0] == told[f"none of some, {engine}"][0] == 1


def test_one_thread_is_enough(kept):
    """The plan waits for what it reads in the very thread that runs it."""
    assert _run(kept, "streaming", POLARS_MAX_THREADS="1")["twice, streaming"][0] == 1


def test_what_cannot_be_read_any_more_is_computed_again(kept):
    assert _run(kept, "in-memory", BREAK="1")["one column, in-memory"][1:] == [["seconds"]]


@pytest.mark.parametrize("how", ["sink_parquet", "collect_batches", "background"])
def test_also_where_nobody_could_run_it_again(kept, how):
    assert _run(kept, "in-memory", BREAK="1", HOW=how)["one column, in-memory"]


def test_the_files_may_be_deleted_once_they_are_open(kept):
    assert list((kept / "home").rglob("table-*"))
    assert _run(kept, "in-memory", DELETE="1")["one column, in-memory"] == [1, ["seconds"]]
    assert not list((kept / "home").rglob("table-*"))


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("rows", [0, 3, 250_000])
def test_rows_are_counted_where_no_column_is_needed(rows, engine):
    frame = pl.DataFrame({"a": pl.int_range(rows, eager=True)})
    twice = pl.LazyFrame({"x": [1, 2]})
    stored = StoredFrame.of(frame)
    for some in (
        lambda lf: lf,
        lambda lf: lf.filter(pl.col("a") > 1),
        lambda lf: lf.head(2),
        lambda lf: lf.slice(1, 5),
    ):
        found = some(stored.lazy()).join(twice, how="cross").select("x").collect(engine=engine)
        assert_frame_equal(found, some(frame.lazy()).join(twice, how="cross").select("x").collect(engine=engine))
    stored.close()
