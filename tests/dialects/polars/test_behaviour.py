"""What steps of Polars have to do with the order of rows; what is not known counts as the worst."""

from __future__ import annotations

import polars as pl
import pytest

from nectar.dialects.polars import behaviour
from nectar.dialects.polars.behaviour import order_of
from nectar.dialects.polars.plan import Plan, Step
from nectar.keys.values.polars_plans import EXPRESSIONS, FUNCTIONS, MAP_FUNCTIONS, PLANS
from nectar.program.tree import Order

LF = pl.DataFrame({"a": [3, 1, 2], "b": ["x", "y", "x"], "c": [1.0, None, 2.5], "l": [[1], [2], []]}).lazy()
A, C = pl.col("a"), pl.col("c")

DETERMINED = [
    LF.filter(A > 1), LF.with_columns(A + 1), LF.select(A.max()), LF.select(A.filter(C > 1).max()), LF.explode("l"),
    LF.rename({"a": "z"}), LF.with_columns(A.max().over("b")), LF.sort("a", maintain_order=True), pl.concat([LF, LF]),
    LF.with_columns(pl.col("l").list.eval(pl.element() + 1)), LF.with_columns(pl.col("b").str.len_chars()),
    LF.cast({"a": pl.Int8}), LF.select(pl.len()), LF.select(A.n_unique()), LF.with_columns(C.median().over("b")),
]  # fmt: skip
BY_ORDER = [
    LF.head(1), LF.tail(1), LF.gather([0]), LF.with_row_index(), LF.select(A.shift()), LF.select(A.cum_sum()),
    LF.filter(A.is_first_distinct()), LF.select(A.first()), LF.select(A.sort()), LF.select(A.filter(A > 1)),
    LF.with_columns(A.rank("ordinal")), LF.map_batches(lambda frame: frame),
    LF.unique("a", keep="first", maintain_order=True),
    LF.with_columns(A.map_batches(lambda column: column.cum_sum())),
    LF.group_by("b", maintain_order=True).agg(A.last()),
    LF.sort("a", maintain_order=True).rolling("a", period="2i").agg(A.max()),
    LF.with_columns(A.first().over("b", order_by="c")),
    pl.concat([LF, LF.select(z="a")], how="horizontal"), LF.select(A.unique(maintain_order=True)),
    LF.select(A.implode()),
    LF.select(A.shuffle(seed=1)), LF.with_columns(A.rolling_sum(2)), LF.select(A.explode()),
    LF.with_columns(A.reverse()),
]  # fmt: skip
SCRAMBLED = [
    LF.group_by("b").agg(A.max()), LF.join(LF, on="a"), LF.join(LF, on="a", maintain_order="left_right"), LF.unique(),
    LF.sort("a"), LF.join(LF, how="cross"), pl.union([LF, LF]), LF.merge_sorted(LF, "a"), LF.unpivot(on=["a", "c"]),
    LF.unique("a", keep="none"), LF.join_where(LF, A < pl.col("a_right")),
]  # fmt: skip
ARBITRARY = [
    LF.group_by("b").agg(C.sum()), LF.select(C.sum()), LF.with_columns(C.mean().over("b")), LF.select(A.unique()),
    LF.filter(C > C.mean()), LF.unique("a", keep="any"), LF.unique("a", keep="any", maintain_order=True),
    LF.select(A.mode()), LF.select(A.value_counts()), LF.select(A.sort_by("b")), LF.select(A.top_k(1)),
    LF.group_by("b", maintain_order=True).agg(C.std()), LF.select(pl.corr("a", "c")), LF.sort(A.unique()),
    LF.with_columns(pl.col("l").list.unique()), LF.group_by("b").having(C.sum() > 1).agg(A.max()),
    LF.filter(A == A.unique().first()), LF.with_columns(pl.when(C.sum() > 1).then(1)),
]  # fmt: skip


def _order(frame: pl.LazyFrame) -> Order:
    return order_of(Plan.of(frame).steps[-1])


@pytest.mark.parametrize("frame", DETERMINED)
def test_determined(frame: pl.LazyFrame) -> None:
    found = _order(frame)
    assert (found.scrambles, found.sensitive, found.arbitrary) == (False, False, False)


@pytest.mark.parametrize("frame", BY_ORDER)
def test_determined_by_the_order_of_rows(frame: pl.LazyFrame) -> None:
    found = _order(frame)
    assert (found.scrambles, found.sensitive, found.arbitrary) == (False, True, False)


@pytest.mark.parametrize("frame", SCRAMBLED)
def test_the_order_of_the_result_is_open(frame: pl.LazyFrame) -> None:
    found = _order(frame)
    assert (found.scrambles, found.arbitrary) == (True, False)


@pytest.mark.parametrize("frame", ARBITRARY)
def test_two_runs_may_differ(frame: pl.LazyFrame) -> None:
    assert _order(frame).arbitrary


def test_what_is_not_known_is_the_worst() -> None:
    assert order_of(Step("New", {}, ())) == Order(scrambles=True, carries=True, sensitive=True, arbitrary=True)
    assert order_of(Step("MapFunction", {"function": {"New": {}}}, ())).arbitrary
    assert order_of(Step("Select", {"expr": [{"New": {"Column": "a"}}]}, ())).arbitrary
    assert order_of(Step("Select", {"expr": [{"Agg": {"New": {"Column": "a"}}}]}, ())).arbitrary
    unknown = {"Function": {"input": [{"Column": "a"}], "function": {"New": {}}}}
    assert order_of(Step("Filter", {"predicate": unknown}, ())).arbitrary


def test_every_plan_that_may_be_cached_has_a_behaviour() -> None:
    assert set(behaviour._ORDERS) == set(PLANS) | {"Scan"}


def test_the_lists_name_only_what_there_is() -> None:
    assert behaviour._NEUTRAL | behaviour._ORDERED <= EXPRESSIONS
    listed = behaviour._NEUTRAL_FUNCTIONS | behaviour._INEXACT_FUNCTIONS | behaviour._ORDERED_FUNCTIONS
    assert listed <= FUNCTIONS
    assert behaviour._ROW_WISE_FUNCTIONS | behaviour._POSITIONAL_FUNCTIONS <= MAP_FUNCTIONS
    assert not behaviour._NEUTRAL_FUNCTIONS & (behaviour._INEXACT_FUNCTIONS | behaviour._ORDERED_FUNCTIONS)
