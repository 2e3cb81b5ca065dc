"""The same value has the same digest in every process, under every hash seed, in every folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("polars")
pytest.importorskip("pyarrow")
pytest.importorskip("pandas")

PROGRAM = """
import collections, datetime, decimal, fractions, functools, json, operator, random, re, typing, uuid, warnings
import zoneinfo
import numpy as np, pandas as pd, polars as pl, pyarrow as pa, pyarrow.compute as pc
from tests.keys.values.value_digests import digest
warnings.simplefilter("ignore")
WORDS = ["red", "green", "blue", "cyan", "pink"]
for word in {"extra", *WORDS}:  # categories get their numbers in another order under another seed
    pl.Series([word], dtype=pl.Categorical)
frame = pl.DataFrame({"a": [1, 2, None], "b": ["x", None, "y"], "c": [[1], None, []]})
pandas_frame = pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": pd.Categorical(["u", "v"])})
values = [
    set(WORDS), frozenset(WORDS), {frozenset(WORDS), frozenset(WORDS[:2])}, dict.fromkeys(WORDS),
    {w: {w} for w in WORDS},
    datetime.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Paris")), decimal.Decimal("1.50"), uuid.UUID(int=5),
    fractions.Fraction(1, 3), re.compile("a+", re.I), functools.partial(int, base=2), slice(1, None), int | str,
    typing.Optional[int], operator.attrgetter("a.b"), operator.methodcaller("f", 1, k=2), random.Random(3),
    collections.OrderedDict(a=1), collections.Counter("abca"), ValueError("x", {"s"}), range(5), object(),
    np.arange(12).reshape(3, 4)[:, ::2], np.array(WORDS), np.array([set(WORDS), None], object), np.float32(1.5),
    np.zeros(2, [("a", "i1"), ("b", "f8")]), np.ma.array([1, 2], mask=[0, 1]), np.random.default_rng(7), np.add,
    pandas_frame, pandas_frame["c"], pandas_frame.index, pd.Timestamp("2020", tz="UTC"), pd.offsets.MonthEnd(2),
    pd.MultiIndex.from_product([[1, 2], WORDS]), pd.array([1, None]), pd.period_range("2020", periods=2, freq="M"),
    pa.table({"a": [1, None], "b": WORDS[:2]}), pa.array(WORDS).dictionary_encode(), pc.field("a") > 1, pa.scalar(5),
    pa.schema([pa.field("a", pa.int8(), metadata={"k": "v", "l": "w"})]),
    frame, frame["b"], pl.Series(WORDS, dtype=pl.Categorical), pl.Series(WORDS, dtype=pl.Enum(WORDS)), pl.Enum(WORDS),
    pl.col("a") + float("nan"), pl.col("b").is_in(WORDS), pl.col("a").map_elements(lambda value: value * 2),
    pl.col("a").map_batches(lambda values: values.is_in(frozenset(WORDS))), frame.lazy().cache(),
    pl.fold(0, lambda x, y: x + y, ["a"]), pl.selectors.numeric(),
]
print(json.dumps([digest(value).hex() for value in values]))
"""


def run(folder: Path, seed: str) -> list[str]:
    here = Path(__file__).resolve().parents[3]
    program = folder / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{here / 'src'}{os.pathsep}{here}"}
    done = subprocess.run(
        [sys.executable, str(program)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def test_digests_are_the_same_in_two_processes(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    first, second = run(tmp_path / "one", "1"), run(tmp_path / "two", "2")
    assert [index for index, (a, b) in enumerate(zip(first, second, strict=True)) if a != b] == []
    assert len(set(first)) == len(first)
