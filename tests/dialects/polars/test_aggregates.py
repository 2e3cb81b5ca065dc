"""Aggregates as states: merging the states of parts gives what aggregating everything at once gives."""

import math
import os
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from random import Random

import polars as pl
import polars.selectors as cs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests.dialects.polars import aggregate_programs as programs
from tests.dialects.polars.aggregate_programs import NotMerged, Way
from tests.golden import write_aggregates as golden

from nectar.dialects.polars.aggregates import States, finished, taken_apart
from nectar.dialects.polars.aggregates.expressions import serialised

CASES = 20_000 if os.environ.get("NECTAR_TEST_PROFILE") == "deep" else 200
ENGINES = ["in-memory", "streaming"]
WAYS = [Way(engine, whole) for engine in ENGINES for whole in (False, True)]
ROUNDING = 2.0**-53

pytestmark = pytest.mark.filterwarnings("ignore")  # of Polars: random aggregates do what nobody should


def answer(compute):
    """What is computed, or the error."""
    try:
        return compute()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        return error


def expect_equal(found, expected, way, shown=""):
    """Equal in names, types, values and order, to the last bit but for deviations, and means of what floats round."""
    if not (way.ordered or way.whole):
        found, expected = found.sort("k"), expected.sort("k")
    tolerance = 1e-4 if pl.Float32 in expected.dtypes or pl.Float16 in expected.dtypes else 1e-9
    rounded = ".mean(" in shown and any(f'"{name}"' in shown for name in (*programs.WIDE, "dec"))
    inexact = ".var(" in shown or ".std(" in shown or rounded
    assert_frame_equal(found, expected, check_exact=not inexact, rel_tol=tolerance, abs_tol=tolerance)


seen: Counter[str] = Counter()


@settings(max_examples=CASES)
@given(st.integers(0, 2**48))
def merged_is_at_once(seed):
    draw = Random(seed)
    way = Way(draw.choice(ENGINES), draw.random() < 0.3, draw.random() < 0.5, draw.random() < 0.3, draw.random() < 0.4)
    frame = programs.rows(draw, draw.choice([0, 1, 3, 12, 24]))
    cuts = sorted(draw.randrange(frame.height + 1) for _ in range(draw.randrange(4)))
    kinds = [programs.aggregate, programs.aggregate, programs.several, *([] if way.whole else [programs.list_of])]
    aggregates = [draw.choice(kinds)(draw)]
    expected = answer(lambda: way.at_once(frame, aggregates))
    try:
        found = answer(lambda: way.in_parts(frame, cuts, aggregates))
    except NotMerged:
        seen["not merged"] += 1
        return
    if isinstance(found, Exception):  # then everything is computed at once
        seen["failed"] += 1
        return
    seen["merged"] += 1
    assert not isinstance(expected, Exception), f"{aggregates[0]} must fail: {expected}"
    expect_equal(found, expected, way, str(aggregates[0]))


def test_merged_states_give_what_aggregating_at_once_gives():
    seen.clear()
    merged_is_at_once()
    assert seen["merged"] > 0.9 * sum(seen.values()), seen


X = pl.col("i")
SHIFTED = {
    "plus": X + 1, "before": 1 + X, "minus": X - (-1), "named": (X + 1).alias("n"), "twice": X + 1 + 1, "column": X + X,
    "times": X * 2, "from": 1 - X, "cast": (X + 1).cast(pl.Int32), "literal": X + pl.lit(1, pl.Int16),
    "negated": -(X + 1),
}  # fmt: skip


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SHIFTED)
def test_sums_of_numbers_that_are_too_large_for_their_type(name, engine, alone):
    """Polars makes the sum of x + 1 that of x and of as many ones: it has another value where x + 1 overflows."""
    numbers = [32767, 5, -32768, 32766, 32767, None, 32767, 1]
    frame = pl.DataFrame({"k": [1, 2] * 4, "i": numbers}, schema={"k": pl.Int64, "i": pl.Int16})
    way = Way(engine, alone=alone)
    aggregates = [SHIFTED[name].sum().alias("sum"), SHIFTED[name].mean().alias("mean")]
    for some in (aggregates, aggregates[:1]):
        expect_equal(way.in_parts(frame, [1, 2, 5], some), way.at_once(frame, some), way, name)


@pytest.mark.parametrize("source", golden.AGGREGATES.split("\n")[1:-1])
def test_each_aggregate_is_taken_apart_as_the_table_says_and_gives_the_same(source):
    (line,) = [line for line in golden.FILE.read_text(encoding="utf-8").splitlines() if line.split(" | ")[0] == source]
    assert golden.line_of(source) == line
    if "| not merged" in line:
        return
    draw = Random(source)
    pick = lambda *values: [draw.choice(values) for _ in range(40)]
    frame = pl.DataFrame(
        {"k": pick(1, 2, 3), "i": pick(1, 2, 2**31 - 1, None), "f": pick(0.5, 7.25, None, math.nan),
         "b": pick(True, False, None), "s": pick("x", "y", None)},
        schema=golden.SCHEMA,
    )  # fmt: skip
    if "_by" in source:  # which of equals is chosen is not defined
        frame = frame.with_columns(f=pl.Series(draw.sample(range(40), 40), dtype=pl.Float32))
    aggregates = [golden.expression(source)]
    for engine in ENGINES:
        way = Way(engine)
        found, expected = way.in_parts(frame, [7, 8, 30], aggregates), way.at_once(frame, aggregates)
        if source == "s.unique()":  # in any order
            found, expected = (each.with_columns(pl.col("s").list.sort()) for each in (found, expected))
        expect_equal(found, expected, way, source)


def test_the_table_has_no_other_lines():
    assert len(golden.FILE.read_text(encoding="utf-8").splitlines()) == 1 + len(golden.lines())


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("seed", range(15))
def test_floats_are_within_the_bound_of_their_true_values(way, seed):
    """The bounds are those of docs/reference/aggregates.md, and hold for plain Polars too."""
    draw = Random(seed)
    count, middle, spread = draw.choice([2, 5, 60, 400]), draw.choice([0, 1, 1e9, -1e15]), draw.choice([1e-3, 1, 1e6])
    values = [draw.gauss(middle, spread) for _ in range(count)]
    frame = pl.DataFrame({"k": [1] * count, "x": values})
    cuts = sorted(draw.randrange(count + 1) for _ in range(draw.randrange(1, 9)))
    x = pl.col("x")
    aggregates = [x.sum().alias("s"), x.mean().alias("m"), x.var(ddof=0).alias("v")]
    found = way.in_parts(frame, cuts, aggregates)
    true = [Fraction(value) for value in values]
    mean, size = sum(true) / count, float(sum(map(abs, true)) / count)
    variance = sum((value - mean) ** 2 for value in true) / count
    unit, deviation = 4 * count * ROUNDING, math.sqrt(variance)
    for each in (found, way.at_once(frame, aggregates)):
        assert abs(Fraction(each["s"][0]) - sum(true)) <= unit * count * size
        assert abs(Fraction(each["m"][0]) - mean) <= unit * size
        assert (
            abs(Fraction(each["v"][0]) - variance) <= unit * (float(variance) + size * deviation) + (unit * size) ** 2
        )


def test_a_group_in_one_part_only_is_not_rounded_again():
    draw = Random(4)
    frame = pl.DataFrame({"k": [1] * 9 + [2] * 7, "x": [draw.gauss(1e6, 1) for _ in range(16)]})
    aggregates = [pl.col("x").sum(), pl.col("x").mean().alias("m")]
    way = Way()
    assert_frame_equal(way.in_parts(frame, [9], aggregates), way.at_once(frame, aggregates), check_exact=True)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_decimals_with_too_many_digits_are_left_to_the_engine(way):
    nearly_all = Decimal("9e37")
    frame = pl.DataFrame({"k": [1] * 3, "d": [nearly_all] * 3}, schema={"k": pl.Int64, "d": pl.Decimal(38, 0)})
    total = [pl.col("d").sum()]
    with pytest.raises(pl.exceptions.PolarsError):
        way.in_parts(frame, [1, 2], total)
    as_many_as_fit = frame.with_columns(d=pl.Series([nearly_all, Decimal(7), -nearly_all], dtype=pl.Decimal(38, 0)))
    assert_frame_equal(way.in_parts(as_many_as_fit, [1, 2], total), way.at_once(as_many_as_fit, total))


def test_means_of_integers_do_not_go_through_sums_that_wrap():
    frame = pl.DataFrame({"k": [1] * 4, "i": [2**63 - 1, 2**63 - 1, 2**62, 3]})
    assert Way().in_parts(frame, [2], [pl.col("i").mean()])["i"][0] == pytest.approx((2**64 + 2**62) / 4)


@pytest.mark.parametrize("kind", [pl.Date, pl.Datetime("ms"), pl.Duration("us"), pl.Time])
def test_means_of_times_are_not_merged(kind):
    apart = taken_apart(
        [serialised(pl.col("t").mean())], pl.Schema({"k": pl.Int8, "t": kind}), [serialised(pl.col("k"))]
    )
    assert isinstance(apart, str)
    assert apart.startswith("mean of ")


@pytest.mark.parametrize("values", [[None], [math.inf], [None, None]])
def test_what_engines_do_not_agree_on_is_left_to_them(values):
    frame = pl.DataFrame({"k": [1] * len(values), "x": values}, schema={"k": pl.Int64, "x": pl.Float64})
    for way in WAYS:
        with pytest.raises(pl.exceptions.PolarsError, match="not known from states"):
            way.in_parts(frame, [0], [pl.col("x").std(ddof=0)])
        assert way.in_parts(frame, [0], [pl.col("x").std(ddof=1)]).item(0, "x") is None


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("engine", ENGINES)
def test_order_of_rows_is_that_of_the_parts_however_many_they_are(engine, ordered):
    count = 120_000
    frame = pl.DataFrame({"k": [at * 7919 % 5 for at in range(count)], "at": range(count)})
    at = pl.col("at")
    aggregates = [at.first().alias("f"), at.last().alias("l"), at.alias("all"), (at // 100).unique(maintain_order=True)]
    way = Way(engine, ordered=ordered)
    expect_equal(way.in_parts(frame, [10, 50_000], aggregates), way.at_once(frame, aggregates), way)


def test_a_part_without_rows_changes_nothing():
    frame = pl.DataFrame({"k": [1, 1], "i": [None, 5], "b": [None, False]})
    aggregates = [
        pl.col("i").first().alias("f"), pl.col("i").last().alias("l"), pl.col("b").all(ignore_nulls=False),
        pl.col("i").n_unique().alias("n"), pl.col("i").implode().alias("list"), pl.col("i").is_empty().alias("e"),
    ]  # fmt: skip
    for engine in ENGINES:
        way = Way(engine, whole=True)
        expect_equal(way.in_parts(frame, [0, 0, 2, 2], aggregates), way.at_once(frame, aggregates), way)


def test_columns_that_are_grouped_by_are_not_among_all():
    schema = pl.Schema({"k": pl.Int64, "i": pl.Int32, "j": pl.Int32})
    for keys, names in {("k",): ["i", "j"], ("k", "j"): ["i"]}.items():
        apart = taken_apart([serialised(pl.all().sum())], schema, [serialised(pl.col(key)) for key in keys])
        assert [each.meta.output_name() for each in apart.finishing] == names


def test_selectors_that_do_not_go_side_by_side_are_not_guessed():
    schema = pl.Schema({"k": pl.Int64, "i": pl.Int32, "j": pl.Int32, "s": pl.String})
    key = [serialised(pl.col("k"))]
    assert isinstance(taken_apart([serialised(cs.integer().sum() - pl.all().count())], schema, key), str)
    assert isinstance(taken_apart([serialised(pl.col("gone").sum())], schema, key), str)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", programs.ANY)
def test_rows_merged_alone_give_what_states_of_them_give(name, engine):
    """Of every type: sums that change it, counts without nulls, extremes with NaN."""
    values = pl.col(name)
    for aggregate in (values.sum(), values.count(), values.len(), pl.len(), values.min(), values.max(), values.mean()):
        keys, of = [serialised(pl.col("k"))], serialised(aggregate.alias("x"))
        frame = programs.rows(Random(name), 60)
        apart = taken_apart([of], frame.schema, keys)
        if isinstance(apart, str):
            continue
        way = Way(engine, alone=True)
        expected = answer(lambda way=way, frame=frame, of=aggregate: way.at_once(frame, [of.alias("x")]))
        found = answer(lambda way=way, frame=frame, of=aggregate: way.in_parts(frame, [20], [of.alias("x")]))
        if isinstance(expected, Exception) or isinstance(found, Exception):
            assert isinstance(found, Exception)
            continue
        assert all(each is not None for each in apart.states.single)
        expect_equal(found, expected, way, f'"{name}".mean(' if "mean" in str(aggregate) else "")


def test_aggregates_that_leave_out_rows_have_no_states_of_single_rows():
    states = [pl.col("i").filter(pl.col("i") > 1).sum(), pl.col("i").drop_nulls().count(), pl.col("i").first()]
    for aggregate in states:
        apart = taken_apart(
            [serialised(aggregate)], pl.Schema({"k": pl.Int64, "i": pl.Int64}), [serialised(pl.col("k"))]
        )
        assert isinstance(apart, str) or any(each is None for each in apart.states.single), aggregate


def test_equal_states_are_shared():
    schema = pl.Schema({"k": pl.Int64, "i": pl.Int32})
    i = pl.col("i")
    aggregates = [i.mean().alias("m"), i.std().alias("d"), i.var(ddof=0).alias("v"), i.count().alias("c")]
    apart = taken_apart(list(map(serialised, aggregates)), schema, [serialised(pl.col("k"))])
    assert len(apart.states.made) == 3, "count, sum and deviations"


def test_states_tell_whether_cuts_show():
    schema = pl.Schema({"k": pl.Int64, "i": pl.Int32, "f": pl.Float64})
    frame = pl.DataFrame({"k": [1, 1, 2], "i": [1, 2, 1], "f": [0.5] * 3}, schema=schema)
    for aggregate, cuts_show in [
        (pl.col("i").sum(), False), (pl.col("f").sum(), True), (pl.col("f").max(), False), (pl.col("i").std(), True),
        (pl.col("i").n_unique(), False), (pl.col("f").n_unique(), False),
    ]:  # fmt: skip
        apart = taken_apart([serialised(aggregate)], schema, [serialised(pl.col("k"))])
        state = frame.group_by("k").agg(*apart.states.made)
        assert apart.states.depend_on_cuts(state.schema) is cuts_show


def test_formats_that_are_taken_from_the_first_row_are_not_taken_from_each_part():
    texts = pl.DataFrame({"k": [1, 1], "s": ["2026-01-05", "05/02/2026"]})
    s, way = pl.col("s"), Way()
    for read in (s.str.to_date(strict=False), s.str.to_datetime(strict=False), s.str.strptime(pl.Date, strict=False)):
        for aggregate in (read.max(), s.filter(read.is_not_null()).len(), s.max().str.to_date(strict=False), read):
            with pytest.raises(NotMerged, match="without a format"):
                way.in_parts(texts, [1], [aggregate])
        key = [serialised(read)]
        assert isinstance(taken_apart([serialised(pl.len())], texts.schema, key), str)
    aggregates = [s.str.to_date("%Y-%m-%d", strict=False).max()]
    assert_frame_equal(way.in_parts(texts, [1], aggregates), way.at_once(texts, aggregates))


def test_one_aggregate_at_a_time():
    states = States(pl.Schema({"i": pl.Int32}))
    assert finished(serialised(pl.col("i").mean().alias("m")), states).meta.output_name() == "m"
    assert finished(serialised(pl.col("i").median()), states) is None
