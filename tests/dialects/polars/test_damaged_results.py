"""Kept results that are damaged: no query sees their bytes, and nothing made from them stays."""

import os

import polars as pl
import pyarrow as pa
import pytest

import nectar
from nectar.session import current

ROWS = 200_000
RIGHT = sum(range(ROWS)) * 3


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.parquet"
    numbers = pl.DataFrame({"b": range(ROWS), **{f"n{number}": range(ROWS) for number in range(12)}})
    numbers.write_parquet(path)
    return path


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def base(source):
    return pl.scan_parquet(source).with_columns((pl.col("b") * 3).alias("c")).sort("c", descending=True)


def asked(home, query):
    """The answer of a query in a session of its own, and what was read of parts of results."""
    with nectar.reuse(home=home, overhead="unlimited", reserve=0):
        found = query.collect()
        current().settle()
        current().catalog.store.settle()
    return found


def kept(home, query, name="team/base"):
    """The query has run, and its result is kept, whether that pays or not."""
    with nectar.reuse(home=home, overhead="unlimited", reserve=0):
        nectar.save(query, name)
        current().settle()
        current().catalog.store.settle()


def tables(home):
    return sorted(home.glob("results/data/*/*/table-00000.arrow"), key=lambda path: path.stat().st_size)


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 0x40
    path.write_bytes(content)


def place_of(path, column, row):
    """Where a number of a column lies in a file."""
    mapped = pa.py_buffer(path.read_bytes())
    found = pa.ipc.open_file(mapped).read_all()[column].chunk(0)
    return found.buffers()[1].address - mapped.address + 8 * row


def test_a_query_on_a_damaged_column_is_computed_anew(source, home):
    kept(home, base(source))
    (table,) = tables(home)
    flip(table, place_of(table, "c", ROWS // 2))
    assert asked(home, base(source).select(pl.col("c").sum())).item() == RIGHT
    assert not table.exists(), "what is damaged is evicted"
    assert asked(home, base(source))["c"].sum() == RIGHT
    assert asked(home, base(source).select(pl.col("c").sum())).item() == RIGHT


def test_damage_of_other_columns_is_found_beside_the_work(source, home):
    kept(home, base(source))
    (table,) = tables(home)
    flip(table, place_of(table, "n11", ROWS // 2))
    assert asked(home, base(source).select(pl.col("c").sum())).item() == RIGHT
    assert not table.exists()


def test_what_was_made_from_a_result_goes_with_it(source, home):
    kept(home, base(source))
    (table,) = tables(home)
    kept(home, base(source).filter(pl.col("b") % 2 == 0), "team/half")
    (half,) = set(tables(home)) - {table}
    flip(table, place_of(table, "c", ROWS // 2))
    assert asked(home, base(source))["c"].sum() == RIGHT
    assert not table.exists()
    assert not half.exists()


@pytest.mark.parametrize("how", ["link", "pipe", "folder"])
def test_a_named_result_is_made_again_where_something_else_has_taken_the_place_of_a_part(home, source, tmp_path, how):
    kept(home, base(source))
    (path,) = tables(home)
    path.rename(tmp_path / "away")
    {"link": lambda: path.symlink_to(tmp_path / "away"), "pipe": lambda: os.mkfifo(path), "folder": path.mkdir}[how]()
    with nectar.reuse(home=home, overhead="unlimited", reserve=0):
        for _ in range(2):
            assert nectar.open("team/base").to_polars()["c"].sum() == RIGHT
    assert (tmp_path / "away").is_file()
    assert os.path.lexists(path)
