"""Functions that Polars calls when it resolves a plan: called as often as without Nectar."""

from __future__ import annotations

import subprocess
import sys

import polars as pl
import pytest

import nectar
from nectar.dialects.polars.callbacks import may_call_python

MAKE = {
    "of a frame": lambda lf, note: lf.pipe_with_schema(lambda lf, schema: (note(), lf)[1]),
    "below": lambda lf, note: lf.pipe_with_schema(lambda lf, schema: (note(), lf)[1]).group_by("i").len().sort("i"),
    "of a column": lambda lf, note: lf.select(pl.col("i").pipe_with_dtype(lambda column, dtype: (note(), column)[1])),
    "beside a large frame": lambda lf, note: pl.concat(
        [pl.DataFrame({"i": range(300_000)}).lazy(), lf.pipe_with_schema(lambda lf, schema: (note(), lf)[1])]
    ),
}
RUN = {
    "collect": lambda lf: lf.collect().rows(),
    "collect_all": lambda lf: [frame.rows() for frame in pl.collect_all([lf])],
    "collect_batches": lambda lf: [row for batch in lf.collect_batches() for row in batch.rows()],
}


@pytest.fixture
def path(tmp_path):
    pl.DataFrame({"i": [1, 2, 3]}).write_parquet(tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


@pytest.mark.parametrize("run", RUN)
@pytest.mark.parametrize("make", MAKE)
def test_they_are_called_as_often_as_without_nectar(path, enabled, make, run):
    def story():
        calls = []
        lf = MAKE[make](pl.scan_parquet(path), lambda: calls.append(1))
        return [RUN[run](lf) for _ in range(2)], len(calls)

    with nectar.reuse(off=True):
        plain = story()
    assert story() == plain


def test_other_queries_are_reused_beside_them(path, enabled):
    holding = pl.scan_parquet(path).pipe_with_schema(lambda lf, schema: lf)
    query = lambda: pl.scan_parquet(path).select(pl.col("i") + 1)
    assert may_call_python(holding.select("i"))
    assert not may_call_python(query())
    query().collect()
    assert enabled.settle(30)
    query().collect()
    assert not nectar.last_run().computed


def test_nothing_is_written_down_where_there_are_none():
    code = """
import polars as pl
from nectar.dialects.polars import callbacks
callbacks.Functions = None
frame = pl.LazyFrame({"i": [1]})
assert not callbacks.may_call_python(frame)
holding = [frame.pipe_with_schema(lambda lf, schema: lf).select("i")]
assert callbacks.may_call_python(frame)
holding.clear()
assert not callbacks.may_call_python(frame)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
