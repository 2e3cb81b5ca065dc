"""A session with a store of its own for each test, and a small log to work on."""

import polars as pl
import pytest


@pytest.fixture
def log(tmp_path):
    """A folder with two days of clicks."""
    folder = tmp_path / "clicks"
    folder.mkdir()
    for day in (1, 2):
        write_day(folder, day)
    return folder


def write_day(folder, day):
    frame = pl.DataFrame({"page": ["a", "b", "c"] * 40, "seconds": range(day, 120 + day), "day": [day] * 120})
    frame.write_parquet(folder / f"day-{day}.parquet")
