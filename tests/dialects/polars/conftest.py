"""A session with a store of its own for each test, and a small log to work on."""

import polars as pl
import pytest

import nectar
from nectar import session


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def enabled(home, monkeypatch):
    """Nectar is on, with an empty store."""
    monkeypatch.setenv("NECTAR_HOME", str(home))
    monkeypatch.setattr(session, "_chosen", None)
    monkeypatch.setattr(session, "_disabled", False)
    nectar.enable(home=home, reserve=0)
    yield session.current()
    nectar.disable()


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
