"""Joins whose two sides grow: the join of what was there before is known, and the rest is joined; answers are equal."""

import os
import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import nectar
from nectar import session
from nectar.dialects.polars import growth as growth_module
from nectar.dialects.polars.incremental import rectangles


class Table:
    """A folder to which files come, and from which they go. Keys are drawn from everywhere, or go on and on."""

    def __init__(self, folder, seed=0, goes_on=False):
        self.folder, self.next, self.draw, self.goes_on = folder, 0, random.Random(f"{folder.name}{seed}"), goes_on
        folder.mkdir()

    def come(self, count=15):
        path, begin = self.folder / f"{self.next:03}.parquet", 10 * self.next if self.goes_on else 0
        keys = [begin + self.draw.randrange(10) for _ in range(count)]
        values = {
            self.folder.name: [self.draw.randrange(100) for _ in keys],
            "g": [self.draw.choice("xy") for _ in keys],
        }
        pl.DataFrame({"k": keys, **values}).write_parquet(path)
        os.utime(path, (1_000_000_000 + self.draw.randrange(10**6), 1_000_000_000))
        self.next += 1

    def go(self):
        sorted(self.folder.iterdir())[0].unlink()

    def rewrite(self):
        self.next -= 1
        self.come()

    def scan(self):
        return pl.scan_parquet(f"{self.folder}/*.parquet")


def checked(query, order=False):
    answer = query().collect()
    session.current().settle()
    with nectar.reuse(off=True):
        plain = query().collect()
    assert_frame_equal(answer, plain, check_row_order=order)


@pytest.fixture(autouse=True)
def _session(enabled):
    """Nectar is on."""


@pytest.fixture
def joined(monkeypatch):
    """For each join of two streams that was extended, how many files of both sides were joined; None: as a whole."""
    found, read = [], []

    def extend(*args):
        read.clear()
        done = before(*args)
        found.append(None if done is None else list(read))
        return done

    def extents(self, one, other):
        chosen = extents_before(self, one, other)
        if chosen is not None:
            read.append((len(chosen[0]), len(chosen[1])))
        return chosen

    before, extents_before = growth_module.extend_rectangle, rectangles.Rectangle.extents
    monkeypatch.setattr(growth_module, "extend_rectangle", extend)
    monkeypatch.setattr(rectangles.Rectangle, "extents", extents)
    return lambda: [found.pop(0) for _ in range(len(found))]


@pytest.fixture
def tables(tmp_path):
    found = [Table(tmp_path / name) for name in ("a", "b")]
    for each in (*found, *found):
        each.come()
    return found


def join(tables):
    a, b = tables
    return (
        a.scan()
        .filter(pl.col("a") > 10)
        .join(b.scan().select("k", "b"), on="k")
        .with_columns(c=pl.col("a") - pl.col("b"))
    )


QUERIES = {
    "rows": lambda tables: join(tables).filter(pl.col("c") > 0),
    "sorted": lambda tables: join(tables).sort("c", "a", "k", "g"),
    "distinct": lambda tables: join(tables).select("g", "k").unique(),
    "states": lambda tables: join(tables).group_by("g").agg(pl.col("c").sum(), pl.len()),
    "state of everything": lambda tables: join(tables).select(pl.col("c").max(), pl.len()),
}  # fmt: skip


@pytest.mark.parametrize("name", QUERIES)
def test_both_sides_grow(tables, name, joined):
    a, b = tables
    query = lambda: QUERIES[name](tables)
    checked(query)
    a.come()
    checked(query)
    first = joined()
    assert first == ([[(3, 2)]] if "state" in name else [[(1, 2)]]), "states are made when the pattern shows"
    b.come()
    checked(query)
    a.come()
    b.come()
    checked(query)
    b.rewrite()
    checked(query)
    assert joined() == [[(3, 1)], [(1, 4), (3, 1)], [(1, 4), (3, 1)]], "a file that became another is joined anew"


def test_files_that_cannot_meet_are_not_read(tmp_path, joined):
    tables = [Table(tmp_path / name, goes_on=True) for name in ("a", "b")]
    query = lambda: join(tables).select(pl.col("c").sum(), pl.len())
    for each in (*tables, *tables):
        each.come()
    # Files that cannot be cut together, because one of them has keys of everywhere.
    wide = pl.DataFrame({"k": [0, 45], "a": [50, 60], "g": ["x", "y"]})
    wide.write_parquet(tables[0].folder / "00-.parquet")
    checked(query)
    for _ in range(3):
        for each in tables:
            each.come()
        checked(query)
    made = joined()
    assert len(made) == 3
    assert made[1:] == [[(1, 1), (1, 1)]] * 2, "new files meet those of the same keys, and the one of all keys"


@pytest.mark.parametrize("how", ["left", "full", "semi", "anti"])
def test_other_joins_are_not_rectangles(tables, how, joined):
    a, b = tables
    for _ in range(3):
        checked(lambda: a.scan().join(b.scan().select("k", "b"), on="k", how=how))
        a.come()
        b.come()
    assert joined() == []


def test_orders_that_are_promised_are_kept(tables, joined):
    a, b = tables
    for _ in range(3):
        query = lambda: a.scan().join(b.scan().select("k", "b"), on="k", maintain_order="left_right")
        checked(query, order=True)
        a.come()
        b.come()
    assert joined() == []


def test_a_window_beside_a_table_that_stays(tables, joined):
    a, _ = tables
    query = lambda: join(tables).group_by("g").agg(pl.col("c").sum())
    for _ in range(5):
        checked(query)
        a.come()
        a.go()


def test_keys_without_a_value(tmp_path):
    tables = [Table(tmp_path / name) for name in ("a", "b")]
    for at in range(5):
        for each in tables:
            each.come()
            path = each.folder / f"null{at}.parquet"
            pl.read_parquet(each.folder / "000.parquet").with_columns(k=pl.lit(None, pl.Int64)).write_parquet(path)
        checked(lambda: join(tables))
        checked(lambda: join(tables).group_by("g").agg(pl.len()))


@settings(deadline=None, max_examples=settings().max_examples // 2)  # each takes a while
@given(history=st.lists(st.tuples(st.sampled_from(["come", "come", "go", "rewrite", "run", "run", "evict"]),
                                  st.integers(0, 1)), min_size=3, max_size=10),
       name=st.sampled_from(sorted(QUERIES)), seed=st.integers(0, 10**6), goes_on=st.booleans())  # fmt: skip
def test_any_history(tmp_path_factory, history, name, seed, goes_on):
    folder = tmp_path_factory.mktemp("history")
    tables = [Table(folder / each, seed, goes_on) for each in ("a", "b")]
    for each in (*tables, *tables):
        each.come()
    with nectar.reuse(home=folder / "home"):
        for event, at in [*history, ("run", 0)]:
            if event == "run":
                checked(lambda: QUERIES[name](tables))
            elif event == "evict":
                catalog = session.current().catalog
                keys = [entry.key for entry in catalog.index.entries()]
                catalog.index.evict(keys[at::2], catalog.clock.now() + 10**6)
            elif event == "come" or len(list(tables[at].folder.iterdir())) > 1:
                getattr(tables[at], event)()
