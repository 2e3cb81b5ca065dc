"""Filters in another order have one key where that is the same filter, and where it may show they have not."""

from __future__ import annotations

import os
from datetime import date
from decimal import Decimal
from random import Random

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars import col

import nectar
from nectar.dialects.polars.keying import keyed
from nectar.dialects.polars.plan import Plan
from nectar.store.inputs.identify import Inputs

TABLE = pl.DataFrame(
    {
        "n": [1, 2, None, 4, 5, 6] * 3,
        "m": [3, None, 1, 2, 9, 6] * 3,
        "x": [1.5, float("nan"), None, -0.0, 0.0, float("inf")] * 3,
        "s": ["1", "x", None, "", "z", "3"] * 3,
        "flag": [True, None, False] * 6,
        "day": [date(2026, 1, day) for day in range(1, 19)],
        "price": [Decimal("1.10"), None, Decimal("2.20")] * 6,
        "kind": pl.Series(["a", "b", None] * 6, dtype=pl.Enum(["a", "b"])),
        "name": pl.Series(["u", "v", None] * 6, dtype=pl.Categorical),
    }
)
CONDITIONS = [
    col("n") > 1, col("n") <= 4, col("n") == col("m"), col("n") != col("m"), col("n").ne_missing(col("m")),
    col("m").eq_missing(None), col("x") > 0, col("x") == 0.0, col("x") < float("nan"), col("s") != "x", col("s") == "",
    col("s") > "1", col("n").is_null(), col("m").is_not_null(), ~(col("n") > 2), (col("n") > 4) | (col("m") > 2),
    (col("flag") == True) | col("x").is_null(), col("flag") != False, col("day") >= date(2026, 1, 5),  # noqa: E712
    col("day") < date(2026, 1, 15), col("price") > Decimal("1.5"), col("kind") == "a", col("kind") != "nothing",
    col("name") == "u", col("name") != "w", col("n") == pl.lit(None), (col("n") > 1) & (col("m") > 1) | (col("x") > 0),
    col("s") > 3, col("price") == 1.1, col("n") > "a", col("x") < 2**70, col("m") > -(2**70),
]  # fmt: skip
PAIRS = 1000 if os.environ.get("NECTAR_TEST_PROFILE") == "deep" else 80


def _key(frame: pl.LazyFrame, inputs: Inputs) -> bytes:
    return keyed(Plan.of(frame), inputs).program.nodes[-1].key


def _arranged(frame: pl.LazyFrame, conditions: list[pl.Expr], random: Random) -> pl.LazyFrame:
    """The frame with all conditions on it, in one of many ways."""
    left = random.sample(conditions, len(conditions))
    while left:
        some = [left.pop() for _ in range(random.randint(1, len(left)))]
        if random.random() < 0.5:
            frame = frame.filter(*some)
        else:
            while len(some) > 1:
                some.append(some.pop(random.randrange(len(some))) & some.pop(random.randrange(len(some))))
            frame = frame.filter(some[0])
        if random.random() < 0.2:
            left.append(random.choice(conditions))
    return frame


def _answer(frame: pl.LazyFrame, engine: str) -> tuple[object, ...]:
    try:
        found = frame.collect(engine=nectar.PolarsEngine(engine).inner)
    except pl.exceptions.PolarsError as error:
        return (type(error),)
    return found.schema, repr(found.rows())


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("filters") / "table.parquet"
    TABLE.write_parquet(path, row_group_size=4)
    return pl.scan_parquet(path)


@settings(max_examples=PAIRS, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_conditions_in_any_order_are_one_filter(enabled, table, seed):
    random = Random(seed)
    conditions = random.sample(CONDITIONS, random.randint(2, 4))
    source = table if random.random() < 0.7 else table.with_columns(total=col("n").cum_sum())
    one, other = (_arranged(source, conditions, random) for _ in range(2))
    engine = random.choice(["in-memory", "streaming"])
    assert _answer(one, engine) == _answer(other, engine)
    if isinstance(_answer(one, engine)[0], pl.Schema):
        assert _key(one, enabled.inputs) == _key(other, enabled.inputs)
        assert _key(one, enabled.inputs) != _key(one.filter(col("n") > 77), enabled.inputs)


def test_a_filter_written_in_another_order_is_known(enabled, table):
    table.filter(col("n") > 1).filter(col("m") > 1).collect()
    assert enabled.settle(30)
    for again in (
        table.filter((col("m") > 1) & (col("n") > 1)),
        table.filter(col("m") > 1, col("n") > 1),
        table.filter(col("m") > 1).filter(col("n") > 1).filter(col("m") > 1),
    ):
        again.collect()
        assert not nectar.last_run().computed


DIFFERENT = {
    "another value": (lambda t: t.filter(col("n") > 1), lambda t: t.filter(col("n") > 2)),
    "another column": (lambda t: t.filter(col("n") > 1), lambda t: t.filter(col("m") > 1)),
    "another type of value": (lambda t: t.filter(col("x") > 1), lambda t: t.filter(col("x") > 1.0)),
    "one more": (lambda t: t.filter(col("n") > 1), lambda t: t.filter(col("n") > 1, col("m") > 1)),
    "or": (lambda t: t.filter(col("n") > 1, col("m") > 1), lambda t: t.filter((col("n") > 1) | (col("m") > 1))),
    "turned round": (lambda t: t.filter(col("n") > col("m")), lambda t: t.filter(col("m") > col("n"))),
    "above a slice": (lambda t: t.head(3).filter(col("n") > 1), lambda t: t.filter(col("n") > 1).head(3)),
    "a slice between": (
        lambda t: t.filter(col("n") > 1).head(3).filter(col("m") > 1),
        lambda t: t.filter(col("m") > 1).head(3).filter(col("n") > 1),
    ),
    "a window": (
        lambda t: t.filter(col("n") > 1).filter(col("m") == col("m").max()),
        lambda t: t.filter(col("m") == col("m").max()).filter(col("n") > 1),
    ),
    "a position": (
        lambda t: t.filter(col("n") > 1).filter(col("m").is_first_distinct()),
        lambda t: t.filter(col("m").is_first_distinct()).filter(col("n") > 1),
    ),
    "a cast that may fail": (
        lambda t: t.filter(col("s") != "x").filter(col("s").cast(pl.Int64) > 1),
        lambda t: t.filter(col("s").cast(pl.Int64) > 1).filter(col("s") != "x"),
    ),
    "columns in another order": (
        lambda t: t.with_columns(a=col("n"), b=col("m")), lambda t: t.with_columns(b=col("m"), a=col("n")),
    ),
    "a filter and one by missing values": (lambda t: t.filter(col("n") > 1), lambda t: t.remove(col("n") <= 1)),
    "no filter": (lambda t: t, lambda t: t.filter(col("n") > 1)),
}  # fmt: skip


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_what_may_differ_has_another_key(enabled, table, pair):
    one, other = (make(table) for make in pair)
    assert _key(one, enabled.inputs) != _key(other, enabled.inputs)


def test_very_many_filters(enabled, table):
    frame = table
    for number in range(500):
        frame = frame.filter(col("n") > -number)
    assert frame.collect().height == 15
    assert len({node.key for node in keyed(Plan.of(frame), enabled.inputs).program.nodes}) == 501
