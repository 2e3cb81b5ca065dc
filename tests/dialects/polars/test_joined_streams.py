"""Streams that are joined: cut together where their values allow it, otherwise one of them, otherwise not at all."""

import os

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import nectar
from nectar import session
from nectar.dialects.polars.incremental import parts as parts_module


class Shop:
    """Orders and their lines, which arrive in batches."""

    def __init__(self, folder):
        self.folder, self.batches = folder, 0
        for name in ("orders", "lines"):
            (folder / name).mkdir(parents=True)

    def come(self, first=None, nulls=False, lines=True):
        """A batch of ten orders from number `first` on, and their lines."""
        self.batches += 1
        first = self.batches * 10 if first is None else first
        numbers = list(range(first, first + 10))
        orders = {"o": numbers, "day": [number % 3 for number in numbers], "who": [number % 7 for number in numbers]}
        self.write("orders", self.batches, pl.DataFrame(orders))
        if lines:
            of = [number for number in numbers for _ in range(number % 4)]
            of = [None if nulls and at % 5 == 0 else number for at, number in enumerate(of)]
            table = {"l": of, "price": [(at * 37 + first) % 100 for at in range(len(of))]}
            self.write("lines", self.batches, pl.DataFrame(table, schema={"l": pl.Int64, "price": pl.Int64}))

    def write(self, name, batch, frame):
        path = self.folder / name / f"{batch:03}.parquet"
        frame.write_parquet(path)
        os.utime(path, (1_000_000_000 + batch, 1_000_000_000 + batch))

    def go(self):
        for name in ("orders", "lines"):
            sorted((self.folder / name).iterdir())[0].unlink()

    @property
    def orders(self):
        return pl.scan_parquet(f"{self.folder}/orders/*.parquet")

    @property
    def lines(self):
        return pl.scan_parquet(f"{self.folder}/lines/*.parquet")


@pytest.fixture
def shop(tmp_path, enabled):
    return Shop(tmp_path / "shop")


@pytest.fixture
def read(monkeypatch):
    """How many files were read alone, to fill gaps, since last asked."""
    found = []
    before = parts_module.segment

    def segment(plan, scan, files, **options):
        found.append(len(files))
        return before(plan, scan, files, **options)

    monkeypatch.setattr(parts_module, "segment", segment)
    return lambda: [found.pop(0) for _ in range(len(found))]


def checked(query):
    """The answer is that of plain Polars; whether it was made from parts that were known."""
    answer = query().collect()
    reused = any(part.outcome == "reused" for part in nectar.last_run().parts)
    session.current().settle()
    with nectar.reuse(off=True):
        plain = query().collect()
    assert_frame_equal(answer, plain, check_row_order=False, rel_tol=1e-9)
    return reused


REVENUE = {
    "inner": lambda shop: shop.orders.join(shop.lines, left_on="o", right_on="l").group_by("day"),
    "inner, the other way": lambda shop: shop.lines.join(shop.orders, left_on="l", right_on="o").group_by("day"),
    "left": lambda shop: shop.orders.join(shop.lines, left_on="o", right_on="l", how="left").group_by("day"),
    "right": lambda shop: shop.lines.join(shop.orders, left_on="l", right_on="o", how="right").group_by("day"),
    "full": lambda shop: shop.orders.join(shop.lines, left_on="o", right_on="l", how="full").group_by("day"),
    "filtered, renamed": lambda shop: shop.orders.filter(pl.col("who") > 1).select("day", number="o").join(
        shop.lines.with_columns(price=pl.col("price") * 2), left_on="number", right_on="l").group_by("day"),
}  # fmt: skip


@pytest.mark.parametrize("name", REVENUE)
def test_both_sides_grow(shop, name, read):
    query = lambda: REVENUE[name](shop).agg(pl.col("price").sum(), pl.len())
    reused = []
    for _ in range(4):
        shop.come()
        reused.append(checked(query))
    assert reused == [False, False, True, True]
    assert read()[-2:] == [1, 1], "the new files, and no other"


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_orders_with_or_without_lines(shop, how, read):
    query = lambda: shop.orders.join(shop.lines, left_on="o", right_on="l", how=how).group_by("day").agg(pl.len())
    for _ in range(4):
        shop.come()
        reused = checked(query)
    assert reused
    assert read()[-2:] == [1, 1]


def test_groups_that_are_whole_in_a_part_need_no_states(shop):
    query = lambda: (
        shop.orders.join(shop.lines, left_on="o", right_on="l")
        .group_by("o", "day").agg(pl.col("price").median(), pl.col("price").n_unique().alias("different"))
        .filter(pl.col("different") > 1).sort("price", "o", descending=True).head(5)
    )  # fmt: skip
    reused = []
    for _ in range(5):
        shop.come()
        reused.append(checked(query))
    assert all(reused[-2:])


def test_the_same_stream_in_several_places(shop):
    def query():
        several = shop.lines.group_by("l").agg(pl.len().alias("count")).filter(pl.col("count") > 1)
        paid = shop.lines.filter(pl.col("price") > 20).join(several, on="l", how="semi")
        return paid.join(shop.orders, left_on="l", right_on="o").group_by("who").agg(pl.col("price").sum())

    reused = []
    for _ in range(4):
        shop.come()
        reused.append(checked(query))
    assert reused[-1]


def test_an_order_that_gets_lines_later(shop):
    """The new lines belong to an old order: the batches are one part, and nothing of before can be used."""
    query = lambda: REVENUE["inner"](shop).agg(pl.col("price").sum(), pl.len())
    for _ in range(3):
        shop.come()
        checked(query)
    shop.come(first=25)
    assert not checked(query)
    shop.come(first=100)
    checked(query)


def test_lines_without_an_order_number(shop):
    query = lambda: REVENUE["full"](shop).agg(pl.col("price").sum(), pl.len())
    for _ in range(4):
        shop.come(nulls=True)
        checked(query)
    checked(lambda: shop.lines.group_by("l").agg(pl.col("price").median()))
    shop.come(nulls=True)
    checked(lambda: shop.lines.group_by("l").agg(pl.col("price").median()))


def test_a_batch_without_lines(shop):
    query = lambda: REVENUE["left"](shop).agg(pl.col("price").sum(), pl.len())
    for batch in range(5):
        shop.come(lines=batch != 2)
        checked(query)


def test_nulls_that_are_equal_are_not_cut(shop):
    query = lambda: (
        shop.lines.join(shop.lines.select("l", other="price"), on="l", nulls_equal=True)
        .group_by("price").agg(pl.len(), pl.col("other").sum())
    )  # fmt: skip
    for _ in range(4):
        shop.come(nulls=True)
        checked(query)


def test_columns_of_the_same_name_on_both_sides(shop):
    """After the first join `o` is a column of one side, `o_right` of the other: neither may be taken for the other."""
    query = lambda: (
        shop.orders.join(shop.orders.select("who", o=pl.col("o") % 10), on="who")
        .join(shop.lines, left_on="o_right", right_on="l").group_by("day").agg(pl.len(), pl.col("price").sum())
    )  # fmt: skip
    for _ in range(4):
        shop.come()
        checked(query)


ORDERS = {"left": ["o"], "right": ["first"], "left_right": ["o", "first"], "right_left": ["o", "first"]}


@pytest.mark.parametrize("order", ORDERS)
def test_order_that_was_asked_for(shop, order):
    """Rows of the other side that belong to one row stand in any order, unless that was asked for too."""
    shop.come()
    others = pl.read_parquet(f"{shop.folder}/orders/001.parquet").select("who", first="o")
    others.write_parquet(shop.folder / "others.parquet")
    query = lambda: shop.orders.join(
        pl.scan_parquet(shop.folder / "others.parquet"), on="who", maintain_order=order
    ).select(ORDERS[order])  # fmt: skip
    for _ in range(3):
        answer = query().collect()
        session.current().settle()
        with nectar.reuse(off=True):
            assert_frame_equal(answer, query().collect(), check_row_order=True)
        shop.come()


TOTALS = {
    "sum": pl.col("price").sum(), "first": pl.col("price").first(), "last": pl.col("price").last(), "len": pl.len(),
    "mean": pl.col("price").mean(), "min": pl.col("price").min(), "ratio": pl.col("price").sum() / pl.len(),
    "any": (pl.col("price") > 90).any(), "nulls": pl.col("l").null_count(),
}  # fmt: skip


@pytest.mark.parametrize("name", TOTALS)
def test_aggregates_of_everything(shop, name):
    """Also where the filter leaves nothing of some parts, or of all."""
    reused = []
    for _ in range(4):
        shop.come()
        for least in (0, 97, 1000):
            reused.append(checked(lambda least=least: shop.lines.filter(pl.col("price") >= least).select(TOTALS[name])))
    assert all(reused[-3:])


def test_rows_beside_aggregates_are_no_aggregates(shop):
    for _ in range(4):
        shop.come()
        checked(lambda: shop.lines.select("price", pl.col("price").sum().alias("all")))
        checked(lambda: shop.lines.select(pl.col("price").sum(), pl.lit(1).alias("one")))


@settings(deadline=None, max_examples=settings().max_examples // 2)  # each takes a while
@given(
    history=st.lists(st.sampled_from(["come", "come", "late", "bare", "go", "run"]), min_size=3, max_size=8),
    names=st.lists(st.sampled_from(sorted(REVENUE)), min_size=1, max_size=2, unique=True),
)
def test_any_history(tmp_path_factory, history, names):
    folder = tmp_path_factory.mktemp("history")
    shop = Shop(folder / "shop")
    shop.come()
    actions = {"come": shop.come, "late": lambda: shop.come(first=15), "bare": lambda: shop.come(lines=False)}
    with nectar.reuse(home=folder / "home"):
        for event in [*history, "run"]:
            if event == "run":
                for name in names:
                    checked(lambda name=name: REVENUE[name](shop).agg(pl.col("price").sum(), pl.len()))
            elif event != "go":
                actions[event]()
            elif min(len(list((shop.folder / name).iterdir())) for name in ("orders", "lines")) > 1:
                shop.go()
