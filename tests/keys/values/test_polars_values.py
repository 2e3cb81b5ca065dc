"""Polars' values: content, types and functions decide; chunks, flags, categories' numbers and pickles do not."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.keys.values.value_digests import digest, still, walked

from nectar.errors import UnencodableError
from nectar.keys.values.messagepack import pieces

pytestmark = pytest.mark.filterwarnings("ignore")

F = pl.DataFrame({"a": [1, 2, None], "b": ["x", None, "yz"]})
RATE = [3]


def lists(*values: Any, kind: Any = pl.Int64) -> pl.Series:
    return pl.Series("a", list(values), dtype=pl.List(kind))


DIFFERENT: list[tuple[Any, Any]] = [
    (F, F.rename({"a": "c"})),
    (F, F.select("b", "a")),
    (F, F.head(2)),
    (F, F.fill_null(0)),
    (F, F.cast({"a": pl.Int32})),
    (F, F.lazy()),
    (F["a"], F["a"].alias("z")),
    (F["a"], F.select("a")),
    (pl.Series(["a", "bc"]), pl.Series(["ab", "c"])),
    (pl.Series(["", None]), pl.Series([None, ""])),
    (pl.Series([b"a"]), pl.Series(["a"])),
    (pl.Series([0.0]), pl.Series([-0.0])),
    (pl.Series([float("nan")]), pl.Series([None], dtype=pl.Float64)),
    (lists([1], [2]), lists([1, 2], [])),
    (lists([1], None), lists([1], [])),
    (lists([None]), lists([])),
    (lists([1]), lists([1], kind=pl.Int8)),
    (pl.Series([{"a": None}]), pl.Series([None], dtype=pl.Struct({"a": pl.Null}))),
    (pl.Series([{"a": 1}]), pl.Series([{"b": 1}])),
    (pl.Series([[1, 2]], dtype=pl.Array(pl.Int8, 2)), pl.Series([[1, 2]], dtype=pl.List(pl.Int8))),
    (pl.Series(["a"], dtype=pl.Categorical), pl.Series(["b"], dtype=pl.Categorical)),
    (pl.Series(["a"], dtype=pl.Categorical), pl.Series(["a"])),
    (pl.Series(["a"], dtype=pl.Enum(["a", "b"])), pl.Series(["a"], dtype=pl.Enum(["b", "a"]))),
    (pl.Series([decimal.Decimal("1.5")]), pl.Series([decimal.Decimal("1.50")])),
    (pl.Series([2**100], dtype=pl.Int128), pl.Series([2**100 + 1], dtype=pl.Int128)),
    (pl.Series([1], dtype=pl.Datetime("us")), pl.Series([1], dtype=pl.Datetime("ns"))),
    (pl.Series([1], dtype=pl.Datetime("us")), pl.Series([1], dtype=pl.Datetime("us", "UTC"))),
    (pl.Series([None, None]), pl.Series([None])),
    (pl.Series([1, "a"], dtype=pl.Object), pl.Series([1, "b"], dtype=pl.Object)),
    (pl.Datetime("us"), pl.Datetime("ms")),
    (pl.Datetime("us"), pl.Datetime("us", "UTC")),
    (pl.List(pl.Int8), pl.List(pl.Int16)),
    (pl.Struct({"a": pl.Int8}), pl.Struct({"b": pl.Int8})),
    (pl.Enum(["a"]), pl.Enum(["b"])),
    (pl.Decimal(5, 2), pl.Decimal(5, 3)),
    (pl.Schema({"a": pl.Int8}), pl.Schema({"a": pl.Int16})),
    (pl.col("a"), pl.col("b")),
    (pl.col("a") + 1, pl.col("a") + 2),
    (pl.col("a") + 1, pl.col("a") - 1),
    (pl.col("a") > float("nan"), pl.col("a") > float("inf")),
    (pl.col("a") > float("inf"), pl.col("a") > float("-inf")),
    (pl.lit(0.0), pl.lit(-0.0)),
    (pl.lit(2**100), pl.lit(2**100 + 1)),
    (pl.lit("a"), pl.col("a")),
    (pl.lit(b"a"), pl.lit("a")),
    (pl.col("a").is_in([1, 2]), pl.col("a").is_in([1, 3])),
    (pl.lit(pl.Series([1, 2])), pl.lit(pl.Series([1, 3]))),
    (pl.col("a").shuffle(seed=1), pl.col("a").shuffle(seed=2)),
    (pl.col("a").map_elements(lambda v: v + 1), pl.col("a").map_elements(lambda v: v + 2)),
    (pl.col("a").map_elements(lambda v: v + 1), pl.col("a").map_elements(lambda v: v + 1, skip_nulls=False)),
    (pl.col("a").map_elements(lambda v: v + 1), pl.col("a").map_batches(lambda v: v + 1)),
    (pl.col("a").map_elements(lambda v: v + 1, pl.Int8), pl.col("a").map_elements(lambda v: v + 1, pl.Int64)),
    (pl.col("a").map_batches(lambda v: v + 1, pl.Int8), pl.col("a").map_batches(lambda v: v + 1)),
    (pl.map_groups(["a"], len, pl.Int8), pl.map_groups(["a"], len, pl.Int64)),
    (pl.col("a").map_batches(lambda v: v + 1), pl.col("a").map_batches(lambda v: v + 1, returns_scalar=True)),
    (pl.col("a").map_batches(lambda v: v + 1), pl.col("a").map_batches(lambda v: v + 2)),
    (pl.col("a").rolling_map(lambda v: v.sum(), 2), pl.col("a").rolling_map(lambda v: v.max(), 2)),
    (pl.col("a").name.map(str.upper), pl.col("a").name.map(str.lower)),
    (pl.struct("a").name.map_fields(str.upper), pl.struct("a").name.map_fields(str.lower)),
    (pl.fold(0, lambda x, y: x + y, ["a"]), pl.fold(0, lambda x, y: x - y, ["a"])),
    (pl.reduce(lambda x, y: x + y, ["a"]), pl.reduce(lambda x, y: x - y, ["a"])),
    (pl.selectors.numeric(), pl.selectors.string()),
    (pl.when(pl.col("a") > 1).then(2), pl.when(pl.col("a") > 1).then(3)),
    (F.lazy().filter(pl.col("a") > 1), F.lazy().filter(pl.col("a") > 2)),
    (F.lazy(), F.head(1).lazy()),
    (F.lazy().map_batches(lambda f: f.head(1)), F.lazy().map_batches(lambda f: f.head(2))),
    (
        F.lazy().group_by("a").map_groups(lambda f: f.head(1), None),
        F.lazy().group_by("a").map_groups(lambda f: f.head(2), None),
    ),
]


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_values_that_programs_can_tell_apart_differ(a: Any, b: Any) -> None:
    assert digest(a) != digest(b)


KINDS: list[pl.Series] = [
    pl.Series("a", [1, None, 3]),
    pl.Series("a", [1.5, None, 3.0], dtype=pl.Float32),
    pl.Series("a", ["x", None, "a longer string, not inlined"]),
    pl.Series("a", [b"x", None, b""]),
    pl.Series("a", [True, None, False]),
    pl.Series("a", [[1], None, [2, None]]),
    pl.Series("a", [[], None, [[1], []]], dtype=pl.List(pl.List(pl.Int8))),
    pl.Series("a", [[1, 2], None, [3, None]], dtype=pl.Array(pl.Int8, 2)),
    pl.Series("a", [{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}]),
    pl.Series("a", ["x", None, "y"], dtype=pl.Categorical),
    pl.Series("a", ["x", None, "y"], dtype=pl.Enum(["y", "x"])),
    pl.Series("a", [decimal.Decimal("1.5"), None, decimal.Decimal("2.5")]),
    pl.Series("a", [datetime.datetime(2020, 1, 1), None, datetime.datetime(2021, 1, 1)]),
    pl.Series("a", [datetime.date(2020, 1, 1), None, datetime.date(2021, 1, 1)]),
    pl.Series("a", [datetime.timedelta(1), None, datetime.timedelta(2)]),
    pl.Series("a", [datetime.time(1), None, datetime.time(2)]),
    pl.Series("a", [2**100, None, 5], dtype=pl.Int128),
    pl.Series("a", [None, None, None]),
]


@pytest.mark.parametrize("series", KINDS, ids=lambda series: str(series.dtype))
def test_slices_and_chunks_do_not_matter(series: pl.Series) -> None:
    thrice = pl.concat([series, series, series], rechunk=False)
    assert digest(thrice.slice(3, 3)) == digest(series)
    assert digest(pl.concat([series.head(1), series.tail(2)], rechunk=False)) == digest(series)
    assert digest(thrice.slice(2, 3)) != digest(series) or series.null_count() == 3
    assert digest(series.to_frame().lazy()) == digest(thrice.slice(3, 3).to_frame().lazy())


def remember() -> pl.LazyFrame:
    made = F.lazy().filter(pl.col("a") > 1)
    made.collect_schema()
    return made


AGREEING: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
    (lambda: pl.Series([1, 2, 3]), lambda: pl.Series([1, 2, 3]).set_sorted()),
    (lambda: pl.col("a").is_in([1, 2]), lambda: pl.col("a").is_in(pl.Series([1, 2, 3]).head(2).to_list())),
    (lambda: F.lazy().cache(), lambda: F.lazy().cache()),
    (
        lambda: F.lazy().filter(pl.col("a") > 1),
        lambda: pl.concat([F.head(1), F.tail(2)]).lazy().filter(pl.col("a") > 1),
    ),
    (lambda: remember().select("a"), lambda: remember().select("a")),
    (lambda: pl.List(pl.Int64), lambda: pl.List(pl.Int64())),
    (lambda: pl.col("a").map_elements(adder(1)), lambda: pl.col("a").map_elements(adder_below(1))),
]


def adder(n: int) -> Callable[[int], int]:
    return lambda value: value + n


def adder_below(n: int) -> Callable[[int], int]:
    # the same code at another line: its pickle differs

    return lambda value: value + n


@pytest.mark.parametrize(("a", "b"), AGREEING)
def test_how_a_value_came_about_does_not_matter(a: Callable[[], Any], b: Callable[[], Any]) -> None:
    assert digest(a()) == digest(b())


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: pl.scan_parquet("nowhere.parquet"), "file"),
        (lambda: pl.scan_csv("nowhere.csv", schema={"a": pl.Int8}).select("a"), "file"),
        (lambda: pl.col("a").shuffle(), "random"),
        (lambda: pl.col("a").sample(3), "random"),
        (lambda: pl.col("a").list.sample(3), "random"),
        (lambda: pl.col("a").rank("random"), "random"),
        (lambda: F.lazy().select(pl.col("a").shuffle()), "random"),
    ],
)
def test_hidden_inputs_are_refused_with_their_kind(make: Callable[[], Any], kind: str) -> None:
    _, walk = walked(make())
    assert [refusal.kind for refusal in walk.refusals] == [kind]


def test_seeded_and_ranked_expressions_are_not_refused() -> None:
    for expression in (pl.col("a").shuffle(seed=1), pl.col("a").rank(), pl.col("a").rank("random", seed=3)):
        assert not walked(expression)[1].refusals


@pytest.mark.parametrize(
    "make",
    [
        lambda: F.lazy().sql("select * from self"),
        lambda: F.lazy().pipe_with_schema(lambda frame, schema: frame),
        lambda: pl.Config(),
    ],
)
def test_what_could_hide_anything_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(UnencodableError):
        digest(make())


def test_bytes_that_look_like_a_function_are_never_loaded() -> None:
    attack = b"\x01\x0b\x07\x80\x04cposix\nsystem\n(S'false'\ntR."
    assert digest(pl.lit(attack)) != digest(pl.lit(attack + b"."))
    assert digest(pl.lit(b"PLPYFN" + attack)) != digest(pl.lit(attack))


def test_a_function_inside_an_expression_is_watched() -> None:
    expression = pl.col("a").map_elements(lambda value: value + RATE[0])
    before, walk = walked(expression)
    assert still(walk)
    RATE[0] = 4
    try:
        assert not still(walk)
        assert digest(expression) != before
    finally:
        RATE[0] = 3


def test_long_chains_are_read_without_recursion() -> None:
    expression = pl.col("a")
    for _ in range(300):
        expression = expression + 1
    assert digest(expression) == digest(expression)
    nested = b"\x91" * 200_000 + b"\xc0"
    assert sum(1 for _ in pieces(nested)) == 200_001


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x92\x01", b"\xa5ab", b"\x01\x01", b"\x81\x90\x01", b"\xc5\x00"])
def test_malformed_messagepack_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"MessagePack|map"):
        list(pieces(data))


def test_pieces_lie_end_to_end_and_know_their_keys() -> None:
    data = b"\x82\xa1a\x81\xa1b\x93\x01\x02\xc0\xa1c\xd9\x02hi"
    found = list(pieces(data))
    assert b"".join(data[piece.begin : piece.end] for piece in found) == data
    assert [(piece.kind, piece.keys) for piece in found if piece.kind != "key"] == [
        ("map", ()), ("map", ("a",)), ("array", ("a", "b")), ("int", ("a", "b")), ("int", ("a", "b")),
        ("nil", ("a", "b")), ("str", ("c",)),
    ]  # fmt: skip


def test_memory_shared_with_numpy_is_watched() -> None:
    numbers = np.arange(5.0)
    series = pl.from_arrow(pa.array(numbers))
    assert isinstance(series, pl.Series)
    for value in (series, series.to_frame().lazy(), pl.lit(series)):
        before, walk = walked(value)
        assert still(walk)
        numbers[2] += 1
        assert still(walk) == (digest(value) == before)


@pytest.mark.parametrize("function", [lambda value: 1, lambda value: value + 1])
def test_the_type_that_was_given_is_resolved_by_use_and_stays_what_it_was(function: Callable[[Any], Any]) -> None:
    expression = pl.col("a").map_elements(function, return_dtype=pl.Int64)
    before = digest(expression)
    pl.DataFrame({"a": [1, 2]}).select(expression)
    assert digest(expression) == before


def test_the_type_of_the_first_use_counts_where_none_was_given() -> None:
    """Polars refuses other types from then on: the expression gives something else than one that was not used."""
    numbers, texts = (pl.col("a").map_batches(_as_it_is) for _ in range(2))
    unused = digest(numbers)
    assert digest(texts) == unused
    pl.DataFrame({"a": [1]}).select(numbers)
    pl.DataFrame({"a": ["x"]}).select(texts)
    with pytest.raises(pl.exceptions.SchemaError):
        pl.DataFrame({"a": ["x"]}).select(numbers)
    assert len({unused, digest(numbers), digest(texts)}) == 3


def _as_it_is(values: pl.Series) -> pl.Series:
    return values
