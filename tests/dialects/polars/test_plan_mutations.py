"""Nothing of a plan is left out of its key: each field of plans of every kind is changed in turn, and the key with it.

What may stay out is listed with a reason. A kind of step, expression or function that is allowed and occurs in none of
these plans fails the test, so that nothing can be allowed without being tried here.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from tests.dialects.polars.plan_mutations import INPUTS, Mutation, mutations
from tests.dialects.polars.test_content import (
    FRAMES,
    LF,
    MORE_EXPRESSIONS,
    MORE_FRAMES,
    NO_EXPRESSIONS,
    REFUSED_EXPRESSIONS,
    TABLE,
    _expression,
    _more,
    _public,
    _same,
)
from tests.dialects.polars.test_content import INPUTS as FILES

from nectar.dialects.polars import keying
from nectar.dialects.polars.keying import keyed
from nectar.dialects.polars.plan import HEADER, Plan
from nectar.dialects.polars.resolution import Sources
from nectar.dialects.polars.scans import LEFT_OUT, Source, frame_source, refusal_of, scan_source
from nectar.errors import UnencodableError
from nectar.keys.features import Features
from nectar.keys.values.bulk import Parts
from nectar.keys.values.polars_plans import EXPRESSIONS, FUNCTIONS, MAP_FUNCTIONS, PLANS, Callback, add_plan

pytestmark = pytest.mark.filterwarnings("ignore")
SHARE = 1 if os.environ.get("NECTAR_TEST_PROFILE") == "deep" else 6  # of the mutations every so many is tried
A, B, L = pl.col("a"), pl.col("b"), pl.col("l")

# Fields that are in no key, and why; of those of scans, `scans.LEFT_OUT` tells.
WITHOUT_EFFECT = {
    ("Cache", "id"): "random; steps with the same one are the same step",
}

EXPRESSIONS_MORE: list[pl.Expr] = [
    A.name.keep(), pl.dtype_of("a").matches(pl.selectors.numeric()), pl.concat([A, A]), A.shift(1, fill_value=0),
    pl.max_horizontal("a", "c"), pl.min_horizontal("a", "c"), pl.mean_horizontal("a", "c"), pl.col("l").map.keys(),
    pl.cum_fold(0, lambda one, other: one + other, ["a"]), pl.cum_reduce(lambda one, other: one + other, ["a"]),
    pl.sql_expr("a // 2"), A.ext.storage(), A._mm3_hash(), pl.functions._row_encode([A]),
    pl.functions._row_encode([A])._row_decode(["a"], [pl.Int64]), A.map_batches(_same, pl.self_dtype()),
    A.map_elements(_more, pl.Int8, skip_nulls=False), A.map_batches(_same, pl.List(pl.Int8), returns_scalar=True),
    pl.lit(Decimal("1.50")), A.cast(pl.Enum(["x", "y"]), strict=False), pl.lit(pl.Series([3, 1]).set_sorted()),
    A.rolling_mean(2, weights=[0.5, 0.5], min_samples=1), B.str.to_date("%Y", strict=False),
    A.sample(2, with_replacement=True, shuffle=True, seed=7), A.over("b", order_by="a", mapping_strategy="explode"),
]  # fmt: skip
FRAMES_MORE: list[pl.LazyFrame] = [
    LF.join(LF, left_on=["a", B], right_on=["a", "b"], how="full", suffix="_x", nulls_equal=True, coalesce=True),
    LF.sort("a").join_asof(LF.sort("a"), on="a", by="b", tolerance=2, strategy="nearest", allow_exact_matches=False),
    LF.filter(A > 1, pl.col("c") < 2.0, pl.col("g").is_not_null() | ~(B == "x")), LF.filter((A > 1) & (B != "y")),
    LF.group_by(B, maintain_order=True).agg(A.sum().alias("z"), pl.col("c").mean()),
    LF.group_by_dynamic("t", every="1h", period="2h", offset="30m", closed="both", group_by="b").agg("a"),
    LF.group_by_dynamic("t", every="1h", label="right", start_by="datapoint").agg("a"),
    LF.rolling("t", period="2h", offset="-1h", closed="both", group_by="b").agg(A.max()),
    LF.unique(["a"], keep="last", maintain_order=True), LF.sort("a", "c", descending=[True, False], nulls_last=True),
    LF.map_batches(_same, schema=TABLE.schema, validate_output_schema=False, streamable=True, predicate_pushdown=False),
    LF.select("a", "c").match_to_schema({"a": pl.Int64, "c": pl.Float64}, missing_columns="insert"),
    pl.concat([LF.select("a"), LF.select(a=A + 1)], rechunk=True), LF.with_row_index("n", offset=3), LF.slice(1),
    LF.unpivot(["c"], index="a", variable_name="v", value_name="w"), LF.rename({"a": "z"}, strict=False),
]  # fmt: skip


def plans() -> Iterator[pl.LazyFrame]:
    """Plans that hold every kind of step, expression and function that is allowed."""
    yield from (make() for make in {**FRAMES, **MORE_FRAMES}.values())
    names = sorted(_public(pl.Expr) - NO_EXPRESSIONS - set(REFUSED_EXPRESSIONS))
    yield from (LF.select(_expression(name)) for name in names)
    yield from (LF.select(each) for each in [*MORE_EXPRESSIONS, *EXPRESSIONS_MORE])
    yield from FRAMES_MORE


def scans(folder: Path) -> Iterator[pl.LazyFrame]:
    """Scans of every format, with options other than the usual."""
    frame = TABLE.select("a", "b", "c")
    frame.write_parquet(folder / "x.parquet")
    frame.write_ipc(folder / "x.arrow")
    frame.write_csv(folder / "x.csv")
    frame.write_ndjson(folder / "x.ndjson")
    numbered: dict[str, Any] = {"row_index_name": "i", "row_index_offset": 2, "n_rows": 3}
    yield pl.scan_parquet(folder / "x.parquet")
    yield pl.scan_parquet(
        folder / "*.parquet", schema=frame.schema, hive_schema={"day": pl.Date}, include_file_paths="p",
        low_memory=True,
        cast_options=pl.ScanCastOptions(integer_cast="upcast"), missing_columns="insert",
        extra_columns="ignore", **numbered,
    )  # fmt: skip
    yield pl.scan_ipc(folder / "x.arrow")
    yield pl.scan_ipc(folder / "x.arrow", include_file_paths="p", hive_schema={"day": pl.Int8}, **numbered)
    yield pl.scan_csv(folder / "x.csv")
    yield pl.scan_csv(
        folder / "x.csv", comment_prefix="#", null_values={"a": "-"}, schema_overrides={"a": pl.Int8}, quote_char="'",
        new_columns=["x", "y", "z"], decimal_comma=True, separator=";", try_parse_dates=True, encoding="utf8-lossy",
        truncate_ragged_lines=True, skip_rows=1, skip_rows_after_header=1, include_file_paths="p", **numbered,
    )  # fmt: skip
    yield pl.scan_csv(
        folder / "x.csv", schema=frame.schema, comment_prefix="//", null_values=["-", "?"], has_header=False
    )
    yield pl.scan_ndjson(folder / "x.ndjson")
    yield pl.scan_ndjson(
        folder / "x.ndjson", schema_overrides={"a": pl.Int8}, ignore_errors=True, batch_size=7, **numbered
    )


def key(data: bytes) -> bytes | None:
    """The key of a plan; None if it is refused, or means nothing."""
    try:
        root = keyed(Plan(data), FILES).program.nodes[-1]
    except Exception:  # neither Polars nor Nectar makes anything of it
        return None
    return None if root.refusal else root.key


@pytest.fixture
def as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are made from what is written alone: plans that Polars would not take have keys as well."""

    def sources(plan: Plan, inputs: object, *, whole: bool) -> Sources:
        found = {}
        for number, step in enumerate(plan.steps):
            if step.kind == "DataFrameScan":
                found[number] = frame_source(plan, step)
            elif step.kind == "Scan" and (reason := refusal_of(step)):
                found[number] = Source(b"", (), (reason,))
            elif step.kind == "Scan":
                found[number] = scan_source(step, ("/day=1/x",), {"a": pl.Int64()})
        return Sources(found, {})

    monkeypatch.setattr(keying, "sources_of", sources)
    monkeypatch.setattr(keying, "are_numbered", lambda *_: False)


def _may_stay(field: tuple[str, ...]) -> bool:
    options = ("options", *field[4:5]) if field[:2] == ("Scan", "scan_type") else field[1:3]
    scan = field[0] == "Scan" and (options in LEFT_OUT or field[1:2] in LEFT_OUT)
    return scan or any(field[: len(each)] == each for each in WITHOUT_EFFECT)


def _chosen(mutation: Mutation, plan: int, at: int, share: int) -> bool:
    return (zlib.crc32(repr((plan, mutation.path)).encode()) + at) % share == 0


def _unchanged(data: bytes, number: int) -> tuple[list[tuple[str, ...]], int, int]:
    """Fields whose change does not change the key; and how many changes were tried, and had a key."""
    before = key(data)
    assert before is not None
    kept, tried, keys = [], 0, 0
    for at, mutation in enumerate(mutations(data)):
        if _chosen(mutation, number, at, SHARE):
            after = key(mutation.data)
            tried, keys = tried + 1, keys + (after is not None)
            if after == before:
                kept.append(mutation.field)
    return kept, tried, keys


def test_every_field_of_a_plan_is_in_its_key(as_written: None) -> None:
    found = [_unchanged(frame.serialize(), number) for number, frame in enumerate(plans())]
    assert {field for kept, _, _ in found for field in kept if not _may_stay(field)} == set()
    tried, keys = sum(each[1] for each in found), sum(each[2] for each in found)
    assert tried > 30_000 / SHARE
    assert keys > tried * 0.6, "a change that is refused proves nothing"


def test_every_field_of_a_scan_is_in_its_key(as_written: None, tmp_path: Path) -> None:
    found = [_unchanged(frame.serialize(), number) for number, frame in enumerate(scans(tmp_path))]
    assert {field for kept, _, _ in found for field in kept if not _may_stay(field)} == set()
    assert sum(each[2] for each in found) > 1000 / SHARE


class _Walk:
    observed = Features()

    def refuse(self, refusal: object) -> None:
        raise UnencodableError("a plan", "", str(refusal))


def captured(data: bytes) -> object:
    """What a plan that a function captured adds to the fingerprint of that function; None if it is refused."""
    parts = Parts(pl.LazyFrame)
    try:
        add_plan(parts, data, _Walk(), lambda *_: Callback(_same))  # type: ignore[arg-type]
    except (UnencodableError, ValueError):
        return None
    return parts.expansion("plan").payload


def test_every_field_of_a_captured_plan_is_in_the_fingerprint() -> None:
    kept, tried, different = set(), 0, 0
    for number, frame in enumerate(plans()):
        data = frame.serialize()
        before = captured(data)
        for at, mutation in enumerate(mutations(data) if before is not None else ()):
            if mutation.path[0] != "frame" and _chosen(mutation, number, at, 20 * SHARE):  # data counts by content
                after = captured(mutation.data)
                tried, different = tried + 1, different + (after not in (before, None))
                if after == before and not _may_stay(mutation.field):
                    kept.add(mutation.field)
    assert kept == set()
    assert different > tried * 0.6


def test_each_input_of_a_step_has_its_place(as_written: None) -> None:
    for make in (
        lambda one, other: one.join(other, on="a", how="left"), lambda one, other: pl.concat([one, other]),
        lambda one, other: one.merge_sorted(other, "a"), lambda one, other: one.join_asof(other, on="a"),
        lambda one, other: pl.concat([one, other.select(z="a")], how="horizontal"),
        lambda one, other: one.select("a").gather(other.select(pl.col("a"))),
    ):  # fmt: skip
        one, other = LF.filter(A > 1).select("a"), LF.filter(A > 2).select("a")
        keys = {key(make(*pair).serialize()) for pair in [(one, other), (other, one), (one, one), (other, other)]}
        assert len(keys - {None}) == 4


# completeness


class _Kinds:
    """The kinds that occur in plans."""

    def __init__(self) -> None:
        self.steps: set[str] = set()
        self.on_frames: set[str] = set()
        self.expressions: set[str] = set()
        self.functions: set[str] = set()

    def add(self, data: bytes) -> None:
        for slot in msgspec.msgpack.decode(data[HEADER:])["dsl_plans"][1:]:
            self._add_step(slot["value"])

    def _add_step(self, step: Any) -> None:
        if step.keys() == {"idx", "version"}:
            return
        ((kind, content),) = step.items()
        self.steps.add(kind)
        if kind == "MapFunction":
            self.on_frames.add(_name(content["function"]))
        for name, value in content.items():
            if name in INPUTS:
                for each in value if isinstance(value, list) else [value]:
                    self._add_step(each)
            else:
                self._add_expressions(value)

    def _add_expressions(self, value: Any) -> None:
        if isinstance(value, dict):
            self.expressions |= value.keys() & EXPRESSIONS
            called = value.get("Function")
            if isinstance(called, dict) and "function" in called:
                self.functions.add(_name(called["function"]))
            for inner in value.values():
                self._add_expressions(inner)
        elif isinstance(value, list):
            for inner in value:
                self._add_expressions(inner)
        elif isinstance(value, str) and value in EXPRESSIONS:
            self.expressions.add(value)


def _name(function: Any) -> str:
    return str(next(iter(function)) if isinstance(function, dict) else function)


def test_every_kind_that_is_allowed_occurs() -> None:
    found = _Kinds()
    for frame in plans():
        found.add(frame.serialize())
    assert PLANS - found.steps == set()
    assert MAP_FUNCTIONS - found.on_frames == set()
    assert EXPRESSIONS - found.expressions == set()
    assert FUNCTIONS - found.functions == set()
