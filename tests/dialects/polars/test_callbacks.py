"""Functions that Polars calls when it resolves a plan: called as often as without Nectar."""

from __future__ import annotations

import subprocess
import sys

import polars as pl
import pytest

import nectar
from nectar.dialects.polars.callbacks import refusal_of_calls

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
    assert refusal_of_calls(holding.select("i"))
    assert not refusal_of_calls(query())
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
assert not callbacks.refusal_of_calls(frame)
holding = [frame.pipe_with_schema(lambda lf, schema: lf).select("i")]
assert callbacks.refusal_of_calls(frame)
holding.clear()
assert not callbacks.refusal_of_calls(frame)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr


OF_TABLES = """
import sys, types
import polars as pl
from polars._plr import PyLazyFrame
from polars._utils.wrap import wrap_ldf
import nectar

sys.modules["deltalake"] = types.ModuleType("deltalake")  # which is there whenever such a table is read

class Table:
    def __init__(self, path):
        self.path = path

    def schema(self):
        return pl.scan_parquet(self.path).collect_schema()

    def reader_name(self):
        return "parquet"

    def to_dataset_scan(self, **options):
        return pl.scan_parquet(self.path), "1"

table = wrap_ldf(PyLazyFrame.new_from_dataset_object(Table(sys.argv[1])))
if "plain" not in sys.argv:
    nectar.enable(home=sys.argv[2])
print(table.filter(pl.col("i") > 1).collect().rows())
"""


def test_tables_that_python_objects_tell_of_are_read_as_without_nectar(path, tmp_path):
    command = [sys.executable, "-c", OF_TABLES, str(path), str(tmp_path / "home")]
    for arguments in (["plain"], []):  # going through such a plan would never end
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == "[(2,), (3,)]\n", done.stderr
