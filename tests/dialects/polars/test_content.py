"""What may be cached: every kind of step and expression of Polars is known or refused by name, and few are refused."""

from __future__ import annotations

import datetime
import io
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import polars as pl
import polars.selectors as cs
import pytest

from nectar.clock import SystemClock
from nectar.dialects.polars.content import content_of
from nectar.dialects.polars.keying import keyed
from nectar.dialects.polars.plan import HEADER, Plan
from nectar.errors import UserError
from nectar.keys.values import polars_plans
from nectar.keys.values.polars_plans import MAP_FUNCTIONS, PLANS, REFUSED_PLANS, unknown_kinds
from nectar.store.inputs.identify import Inputs, RememberedHere

pytestmark = pytest.mark.filterwarnings("ignore")

# completeness


def _variants(value: Any) -> set[str]:
    """The kinds that Polars says it knows, when it is given a step that it does not know."""
    raw = pl.LazyFrame({"a": [1]}).serialize()
    arena = msgspec.msgpack.decode(raw[HEADER:])
    arena["dsl_plans"] = [arena["dsl_plans"][0], {"value": value, "version": 1}]
    with pytest.raises(pl.exceptions.PolarsError) as caught:
        pl.LazyFrame.deserialize(io.BytesIO(raw[:HEADER] + msgspec.msgpack.encode(arena)))
    return set(re.findall(r"`(\w+)`", str(caught.value).partition("expected one of")[2]))


def test_every_kind_of_step_is_known_or_refused_by_name() -> None:
    found = _variants({"Zzz": 1})
    assert found == PLANS | set(REFUSED_PLANS) | {"Scan"}
    assert not PLANS & set(REFUSED_PLANS)


def test_every_function_on_frames_is_known() -> None:
    step = {"MapFunction": {"input": {"idx": 1, "version": 1}, "function": {"Zzz": 1}}}
    assert _variants(step) == MAP_FUNCTIONS


def test_every_kind_of_expression_is_known_or_refused_by_name() -> None:
    assert unknown_kinds() <= set(polars_plans.REFUSED_EXPRESSIONS)


# what people write

TABLE = pl.DataFrame(
    {"a": [3, 1, 2, 2], "b": ["x", "y", "z", "x"], "c": [1.0, None, 2.5, 4.0], "d": [datetime.date(2020, 1, 1)] * 4,
     "t": [datetime.datetime(2020, 1, 1, hour) for hour in range(4)], "u": [datetime.timedelta(1)] * 4,
     "l": [[1, 2], [3], [], None], "s": [{"p": 1, "q": "a"}] * 4, "g": [True, False, True, None], "y": [b"x"] * 4}
).with_columns(
    e=pl.col("b").cast(pl.Enum(["x", "y", "z"])), k=pl.col("b").cast(pl.Categorical),
    r=pl.concat_list("a", "a").cast(pl.Array(pl.Int64, 2)),
)  # fmt: skip
LF = TABLE.lazy()
A, B, C, T, L, R, G = (pl.col(name) for name in "abctlrg")
INPUTS = Inputs(RememberedHere(), SystemClock(), host="here")

# Public methods of LazyFrame that make no step, or make another kind of thing.
NO_STEPS = set(
    "clone collect collect_async collect_batches collect_schema columns describe deserialize dtypes execute explain "
    "lazy remote schema serialize show show_graph width sink_batches sink_csv sink_delta sink_iceberg sink_ipc "
    "sink_ndjson sink_parquet from_lazyframe_resolver nectar".split()
)
FRAMES: dict[str, Callable[[], pl.LazyFrame]] = {
    "bottom_k": lambda: LF.bottom_k(2, by="a"), "cache": lambda: LF.cache(), "cast": lambda: LF.cast({"a": pl.Float64}),
    "clear": lambda: LF.clear(), "count": lambda: LF.count(), "drop": lambda: LF.drop("a"),
    "drop_nans": lambda: LF.drop_nans("c"), "drop_nulls": lambda: LF.drop_nulls(), "explode": lambda: LF.explode("l"),
    "fill_nan": lambda: LF.fill_nan(0.0), "fill_null": lambda: LF.fill_null(0), "filter": lambda: LF.filter(A > 1),
    "first": lambda: LF.first(), "gather": lambda: LF.gather([0, 1]), "gather_every": lambda: LF.gather_every(2),
    "group_by": lambda: LF.group_by("b").agg(A.sum()), "head": lambda: LF.head(1),
    "group_by_dynamic": lambda: LF.group_by_dynamic("t", every="1h").agg(A.sum()), "last": lambda: LF.last(),
    "interpolate": lambda: LF.select("a", "c").interpolate(), "join": lambda: LF.join(LF, on="a"),
    "join_asof": lambda: LF.sort("a").join_asof(LF.sort("a"), on="a"), "limit": lambda: LF.limit(2),
    "join_where": lambda: LF.join_where(LF, A < pl.col("a_right")),
    "map_batches": lambda: LF.drop("k").map_batches(_same),
    "match_to_schema": lambda: LF.match_to_schema(TABLE.schema), "max": lambda: LF.max(), "mean": lambda: LF.mean(),
    "median": lambda: LF.median(), "merge_sorted": lambda: LF.sort("a").merge_sorted(LF.sort("a"), "a"),
    "min": lambda: LF.min(), "null_count": lambda: LF.null_count(), "pipe": lambda: LF.pipe(lambda lf: lf.head()),
    "pivot": lambda: LF.pivot("b", on_columns=["x"], index="a", values="c"), "quantile": lambda: LF.quantile(0.5),
    "remove": lambda: LF.remove(A > 1), "rename": lambda: LF.rename({"a": "z"}), "reverse": lambda: LF.reverse(),
    "rolling": lambda: LF.rolling("t", period="2h").agg(A.sum()), "select": lambda: LF.select("a"),
    "select_seq": lambda: LF.select_seq("a"), "set_sorted": lambda: LF.set_sorted("t"), "shift": lambda: LF.shift(1),
    "slice": lambda: LF.slice(1, 2), "sort": lambda: LF.sort("a"), "std": lambda: LF.std(), "sum": lambda: LF.sum(),
    "tail": lambda: LF.tail(1), "top_k": lambda: LF.top_k(1, by="a"), "unique": lambda: LF.unique(),
    "unnest": lambda: LF.unnest("s"), "unpivot": lambda: LF.unpivot(index="a", on=["c"]), "var": lambda: LF.var(),
    "update": lambda: LF.update(LF, on="a"), "with_columns": lambda: LF.with_columns(z=1),
    "with_columns_seq": lambda: LF.with_columns_seq(z=1), "with_row_index": lambda: LF.with_row_index(),
}  # fmt: skip
REFUSED_FRAMES: dict[str, tuple[Callable[[], pl.LazyFrame], str]] = {
    "pipe_with_schema": (lambda: LF.pipe_with_schema(lambda lf, schema: lf), "may return any plan"),
    "sql": (lambda: LF.sql("select a from self"), "query text"),
    "inspect": (lambda: LF.inspect(), "prints what passes"),
}
MORE_FRAMES: dict[str, Callable[[], pl.LazyFrame]] = {
    "map_groups": lambda: LF.drop("k").group_by("b").map_groups(_same, schema=TABLE.drop("k").schema),
    "having": lambda: LF.group_by("b").having(pl.len() > 1).agg(A.sum()),
    "concat": lambda: pl.concat([LF, LF]), "diagonal": lambda: pl.concat([LF, LF.drop("a")], how="diagonal"),
    "horizontal": lambda: pl.concat([LF, LF.select(z="a")], how="horizontal"), "union": lambda: pl.union([LF, LF]),
    "align": lambda: pl.concat([LF.select("a", "b"), LF.select("a", "c")], how="align"),
    "rename by function": lambda: LF.rename(str.upper),
}  # fmt: skip


def _same(frame: Any) -> Any:
    return frame


def _more(value: int) -> int:
    return value + 1


# Arguments for methods of expressions that need some; those not listed take none. None: it makes no expression.
NO_EXPRESSIONS = set("deserialize arr bin cat dt ext list map meta name str struct".split())
ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    **{name: ((1,), {}) for name in "add eq eq_missing floordiv ge gt le lt mod mul ne ne_missing pow sub truediv "
       "truncdiv is_close get head tail limit index_of search_sorted and_ or_ xor rolling_min rolling_max rolling_mean "
       "rolling_sum rolling_median rolling_std rolling_var rolling_skew rolling_kurtosis rolling_rank".split()},
    **{f"rolling_{name}_by": (("t", "2h"), {}) for name in "min max mean sum median std var rank".split()},
    **{f"ewm_{name}": ((), {"com": 1}) for name in ("mean", "std", "var", "sum")},
    **{f"ewm_{name}_by": (("t",), {"half_life": "1h"}) for name in ("mean", "sum")},
    **{name: (("c",), {}) for name in ("append", "dot", "sort_by", "over", "interpolate_by", "max_by", "min_by")},
    "alias": (("z",), {}), "approx_quantile": ((0.5,), {}), "bin_intervals": (([1.0],), {"labels": ["m", "n"]}),
    "bin_quantiles": (([0.5],), {"labels": ["m", "n"]}), "bin_ranks": ((2,), {"labels": ["m", "n"]}),
    "bottom_k_by": (("c", 2), {}), "top_k_by": (("c", 2), {}), "cast": ((pl.String,), {}), "clip": ((1, 2), {}),
    "cumulative_eval": ((pl.element().sum(),), {}), "cut": (([1.0],), {}), "exclude": (("b",), {}),
    "extend_constant": ((1, 2), {}), "fill_nan": ((0.0,), {}), "fill_null": ((0,), {}), "filter": ((A > 1,), {}),
    "gather": (([0],), {}), "gather_every": ((2,), {}), "hist": (([1.0],), {}), "is_between": ((1, 2), {}),
    "is_in": (([1, 2],), {}), "log": ((2.0,), {}), "map_batches": ((_same,), {}),
    "map_elements": ((_more,), {"return_dtype": pl.Int64}), "pipe": ((lambda expr: expr + 1,), {}),
    "qcut": (([0.5],), {}), "quantile": ((0.5,), {}), "reinterpret": ((), {"signed": False}), "repeat_by": ((2,), {}),
    "replace": (({1: 2},), {}), "replace_strict": (({1: 2},), {"default": None}), "reshape": (((2, 2),), {}),
    "rolling": (("t",), {"period": "2h"}), "rolling_map": ((_same, 2), {}), "round_sig_figs": ((1,), {}),
    "rolling_quantile": ((0.5,), {"window_size": 2}), "rolling_quantile_by": (("t", "2h"), {"quantile": 0.5}),
    "sample": ((2,), {"seed": 1}), "shuffle": ((), {"seed": 1}), "shift": ((1,), {}), "slice": ((0, 1), {}),
}  # fmt: skip
OF_OTHER_COLUMNS = {
    "all": G, "any": G, "and_": G, "or_": G, "xor": G, "not_": G, "arg_true": G, "explode": L,
    "to_physical": pl.col("e"),
    "is_nan": C, "is_not_nan": C, "is_finite": C, "is_infinite": C, "fill_nan": C, "drop_nans": C, "interpolate": C,
}  # fmt: skip
REFUSED_EXPRESSIONS: dict[str, tuple[Callable[[], pl.Expr], str]] = {
    "inspect": (lambda: A.inspect(), "prints what passes"),
    "pipe_with_dtype": (lambda: A.pipe_with_dtype(lambda expr, kind: expr), "may return any expression"),
    "sample without a seed": (lambda: A.sample(2), "without a seed"),
    "shuffle without a seed": (lambda: A.shuffle(), "without a seed"),
    "random rank without a seed": (lambda: A.rank("random"), "without a seed"),
    "a type that a function finds": (
        lambda: A.map_batches(_same, pl.dtype_of(A.map_batches(_same, pl.Int8))),
        "is computed by another one",
    ),
    "sample of lists without a seed": (lambda: L.list.sample(1), "without a seed"),
}
MORE_EXPRESSIONS: list[pl.Expr] = [
    pl.when(A > 1).then(1).otherwise(0), pl.struct("a", "b"), pl.concat_list("a", "a"), pl.concat_str("b", "b"),
    pl.format("{}-{}", "a", "b"), pl.coalesce("c", 0), pl.len(), pl.int_range(pl.len()), pl.repeat(1, pl.len()),
    pl.fold(0, lambda one, other: one + other, [A, C]), pl.reduce(lambda one, other: one + other, [A, C]),
    pl.sum_horizontal("a", "c"), pl.any_horizontal("g"), pl.corr("a", "c"), pl.arctan2("a", "c"), pl.lit([1, 2]),
    pl.lit(pl.Series([1, 2, 3, 4])), pl.lit(b""), pl.lit(b"\x00ab\x80zz"), pl.lit(Decimal("1.5")), pl.lit(2**103),
    pl.lit(datetime.date(2020, 1, 1)), pl.lit(datetime.timedelta(1)), pl.lit(float("nan")), pl.lit(None), pl.first(),
    pl.date(2020, 1, A), pl.datetime(2020, 1, A), pl.duration(days=A), pl.from_epoch("a"), cs.numeric(),
    pl.col("^a|b$"),
    pl.map_batches(["a", "c"], lambda columns: columns[0]), pl.arg_where(A > 1), pl.arg_sort_by("a"), A.rank("ordinal"),
    pl.rolling_corr("a", "c", window_size=2), A.rank("random", seed=3), A.first().over("b", order_by="c"),
    B.str.contains("x"), B.str.split("x"), B.str.replace_many(["x"], ["y"]), B.str.to_integer(strict=False),
    B.str.join("-"),
    B.str.strptime(pl.Date, "%Y", strict=False), B.str.json_path_match("$.a"), B.str.extract_groups("(x)"),
    T.dt.truncate("1d"), T.dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Berlin"), T.dt.offset_by("1mo"),
    pl.col("d").dt.add_business_days(1, roll="forward"), pl.col("u").dt.total_days(), T.dt.strftime("%Y"),
    L.list.eval(pl.element() * 2), L.list.agg(pl.element().sum()), L.list.sample(1, seed=1, with_replacement=True),
    L.list.set_union(L), L.list.to_struct(fields=["m"]), R.arr.max(), R.arr.to_list(), pl.col("s").struct.field("p"),
    pl.col("s").struct.with_fields(z=pl.field("p")), pl.col("y").bin.encode("hex"), pl.col("k").cat.starts_with("x"),
    A.name.map(lambda name: name + "x"), pl.col("s").name.map_fields(lambda name: name + "x"), A.name.suffix("_z"),
]  # fmt: skip


def _refusal(frame: pl.LazyFrame) -> str:
    return keyed(Plan.of(frame), INPUTS).program.nodes[-1].refusal


def _expression(name: str) -> pl.Expr:
    arguments, options = ARGUMENTS.get(name, ((), {}))
    if name in ("and_", "or_", "xor"):
        arguments = (G,)
    made: pl.Expr = getattr(OF_OTHER_COLUMNS.get(name, A), name)(*arguments, **options)
    return made


def _public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_the_lists_cover_every_method() -> None:
    assert _public(pl.LazyFrame) - {"nectar"} == (set(FRAMES) | set(REFUSED_FRAMES) | NO_STEPS) - {"nectar"}


@pytest.mark.parametrize("name", [*FRAMES, *MORE_FRAMES])
def test_frames_that_may_be_cached(name: str) -> None:
    assert _refusal({**FRAMES, **MORE_FRAMES}[name]()) == ""


@pytest.mark.parametrize("name", REFUSED_FRAMES)
def test_frames_that_are_refused(name: str) -> None:
    make, reason = REFUSED_FRAMES[name]
    try:
        found = _refusal(make())
    except UserError as error:  # the plan as a whole
        found = str(error)
    assert reason in found


@pytest.mark.parametrize("name", sorted(_public(pl.Expr) - NO_EXPRESSIONS - set(REFUSED_EXPRESSIONS)))
def test_expressions_that_may_be_cached(name: str) -> None:
    assert _refusal(LF.select(_expression(name))) == ""


@pytest.mark.parametrize("expression", MORE_EXPRESSIONS, ids=str)
def test_more_expressions_that_may_be_cached(expression: pl.Expr) -> None:
    assert _refusal(LF.select(expression)) == ""


@pytest.mark.parametrize("name", REFUSED_EXPRESSIONS)
def test_expressions_that_are_refused(name: str) -> None:
    make, reason = REFUSED_EXPRESSIONS[name]
    assert reason in _refusal(LF.select(make()))
    assert reason in _refusal(LF.filter(A > 1).select(make()).head(1)), "nor anything above it"


# what a step is


def _canonical(frame: pl.LazyFrame) -> bytes:
    return content_of(Plan.of(frame).steps[-1]).canonical


@pytest.mark.parametrize(("one", "other"), [
    (LF.filter(C == float("nan")), LF.filter(C == float("inf"))), (LF.filter(C == 0.0), LF.filter(C == -0.0)),
    (LF.select(pl.lit(1)), LF.select(pl.lit(1.0))), (LF.select(pl.lit(1)), LF.select(pl.lit(1, pl.Int8))),
    (LF.select(pl.lit(True)), LF.select(pl.lit(1))), (LF.head(1), LF.tail(1)),
    (LF.sort("a"), LF.sort("a", descending=True)),
    (LF.select(pl.lit(b"ab")), LF.select(pl.lit("ab"))), (LF.select(A.sum()), LF.select(A.mean())),
    (LF.select(A.cast(pl.Enum(["x"]), strict=False)), LF.select(A.cast(pl.Enum(["y"]), strict=False))),
    (LF.select(pl.lit(pl.Series([1, 2]))), LF.select(pl.lit(pl.Series([1, 3])))),
    (LF.select(A.std(0)), LF.select(A.std(1))),
    (LF.map_batches(lambda frame: frame.head(1)), LF.map_batches(lambda frame: frame.head(2))),
    (LF.select(A.map_elements(_more, pl.Int64)), LF.select(A.map_elements(_more, pl.Int8))),
    (LF.select(A.map_batches(_same, pl.Int64)), LF.select(A.map_batches(_same, pl.Int8))),
    (LF.select(A.map_batches(_same, pl.Int64)), LF.select(A.map_batches(_same))),
    (LF.select(A.map_batches(_same, pl.Int64)), LF.select(A.map_batches(_same, pl.Int64, is_elementwise=True))),
    (LF.select(A.map_batches(_same, pl.Int64)), LF.select(A.map_batches(_same, pl.self_dtype()))),
    (LF.select(A.map_batches(_same, pl.Struct({"\xc0": pl.Int8}))), LF.select(A.map_batches(_same, pl.Int8))),
    (LF.select(pl.map_groups(["a"], _same, pl.Int64)), LF.select(pl.map_groups(["a"], _same, pl.Int8))),
    (LF.select(A.shuffle(seed=1)), LF.select(A.shuffle(seed=2))), (LF.select(A.is_in([1])), LF.select(A.is_in([2]))),
])  # fmt: skip
def test_different_steps_differ(one: pl.LazyFrame, other: pl.LazyFrame) -> None:
    assert _canonical(one) != _canonical(other)


@pytest.mark.parametrize("make", [
    lambda: LF.cache(), lambda: LF.map_batches(lambda frame: frame.head(1)), lambda: LF.select(A.is_in([3, 1])),
    lambda: LF.select(pl.lit(pl.Series([1, 2]))),
    lambda: LF.group_by("a").agg(C.map_batches(lambda column: column.max())),
])  # fmt: skip
def test_equal_steps_are_equal(make: Callable[[], pl.LazyFrame]) -> None:
    assert _canonical(make()) == _canonical(make())
