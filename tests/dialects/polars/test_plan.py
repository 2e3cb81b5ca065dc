"""Plans: every step and everything it refers to is found; what is written back is the same query."""

from __future__ import annotations

import polars as pl
import pytest

from nectar.dialects.polars.content import content_of
from nectar.dialects.polars.plan import Plan, Step
from nectar.dialects.polars.stored import StoredFrame
from nectar.errors import UserError

TABLE = pl.DataFrame({"a": [3, 1, 2, 2], "b": ["x", "y", "z", "x"], "c": [1.0, None, 2.5, 4.0]})


def _frames() -> dict[str, pl.LazyFrame]:
    lf = TABLE.lazy()
    resolved = lf.select("a", "b")
    resolved.collect_schema()
    return {
        "filter": lf.filter(pl.col("a") > 1),
        "two uses of one frame": pl.concat([lf.select("a"), lf.select("a")]),
        "steps in place": pl.concat([lf.filter(pl.col("a") > 1).head(1), lf.tail(2), lf.select(pl.all().reverse())]),
        "horizontal": pl.concat([lf, lf.select(d="a")], how="horizontal"),
        "diagonal": pl.concat([lf, lf.select(d="a")], how="diagonal"),
        "align": pl.concat([lf.select("b", "a"), lf.select("b", "c")], how="align").sort("b", "a", "c"),
        "join": lf.join(lf.group_by("b").agg(pl.len()), on="b", maintain_order="left_right"),
        "gather": lf.gather([2, 0]),
        "pivot": lf.pivot("b", on_columns=["x"], index="a", values="c", aggregate_function="max").sort("a"),
        "resolved before": resolved.filter(pl.col("a") > 1),
        "update": lf.update(lf.select("a", c=pl.lit(9.0)).head(1), on="a"),
        "merge": lf.sort("a").merge_sorted(lf.sort("a"), "a", maintain_order=True),
        "match": lf.match_to_schema(TABLE.schema),
        "cache": lf.cache().select("a"),
        "unpivot": lf.unpivot(index="b", on=["a"]),
        "function": lf.map_batches(lambda frame: frame.head(1)),
    }  # fmt: skip


@pytest.mark.parametrize("name", _frames())
def test_a_plan_written_back_gives_the_same(name: str) -> None:
    frame = _frames()[name]
    plan = Plan.of(frame)
    assert plan.frame(plan.root).collect().equals(frame.collect())


@pytest.mark.parametrize("name", sorted(set(_frames()) - {"resolved before"}))
def test_a_source_can_be_replaced(name: str) -> None:
    plan = Plan.of(_frames()[name])
    stored = StoredFrame.of(TABLE)
    frames = [number for number, step in enumerate(plan.steps) if step.kind == "DataFrameScan" and _is_table(step)]
    assert frames
    try:
        found = plan.frame(plan.root, dict.fromkeys(frames, stored.lazy())).collect()
    finally:
        stored.close()
    assert found.equals(_frames()[name].collect())


def _is_table(step: Step) -> bool:
    return set(step.body["schema"]["fields"]) == set(TABLE.columns)


def test_what_a_gather_takes_is_one_of_its_inputs() -> None:
    plan = Plan.of(TABLE.lazy().gather([2, 0]))
    assert len(plan.steps[-1].inputs) == 2


def test_a_plan_that_refers_to_others_in_an_unknown_way_is_refused() -> None:
    with pytest.raises(UserError, match="query text"):
        Plan.of(TABLE.lazy().sql("select a from self"))


def test_pivots_for_different_columns_differ() -> None:
    found = [
        content_of(Plan.of(TABLE.lazy().pivot("b", on_columns=columns, index="a", values="c")).steps[-1]).canonical
        for columns in (["x", "y"], ["x", "z"], ["x", "y"])
    ]
    assert found[0] == found[2] != found[1]


def test_a_plan_of_thousands_of_steps_is_read() -> None:
    frame = TABLE.lazy()
    for _ in range(2000):
        frame = frame.with_columns(pl.col("a") + 1)
    assert len(Plan.of(frame).steps) == 2001


def test_functions_of_a_step_are_told_whole_or_not_at_all(monkeypatch):
    plan = Plan.of(TABLE.lazy().select(pl.col("a").map_batches(lambda column: column)))
    step = plan.root

    def interrupted(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("nectar.dialects.polars.plan.mapped", interrupted)
        with pytest.raises(KeyboardInterrupt):
            plan.callbacks_of(step)
    assert len(plan.callbacks_of(step)) == 1
    assert plan.callbacks_of(step) is plan.callbacks_of(step)
