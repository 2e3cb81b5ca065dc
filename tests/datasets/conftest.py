"""A store with two named results, and Nectar switched on."""

import polars as pl
import pytest

import nectar
from nectar.datasets import filesystem

TABLE = pl.DataFrame({"page": ["a", "b", "c"] * 400, "seconds": range(1200), "when": [1.5, None, 2.5] * 400})


@pytest.fixture(autouse=True)
def _nothing_in_memory():
    filesystem._held._files.clear()


@pytest.fixture
def named(enabled, tmp_path):
    """team/clicks in a file of the store, team/deep/pages in the catalog itself."""
    TABLE.write_parquet(tmp_path / "clicks.parquet")
    clicks = pl.scan_parquet(tmp_path / "clicks.parquet")
    nectar.save(clicks.filter(pl.col("seconds") >= 0).select("page", "seconds", "when"), "team/clicks")
    nectar.save(clicks.group_by("page").agg(pl.len()).sort("page"), "team/deep/pages")
    return enabled
