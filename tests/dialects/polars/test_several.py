"""Queries that run together agree with each other; and queries that print, print."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import nectar
from nectar.dialects.polars import collecting
from nectar.dialects.polars.stored import StoredFrame
from nectar.rewrite.consistency import answerable


@pytest.fixture
def many(tmp_path):
    """A file whose groups come in another order each time."""
    pl.DataFrame({"key": [number % 5000 for number in range(20_000)], "x": range(20_000)}).write_parquet(
        tmp_path / "many.parquet"
    )
    return pl.scan_parquet(tmp_path / "many.parquet")


def _kept(enabled, *queries):
    for query in queries:
        query.collect()
    assert enabled.settle(30)


def _outcomes():
    return [part.outcome for part in nectar.last_run().parts]


def test_one_that_is_known_agrees_with_one_that_is_computed(enabled, many):
    some = many.group_by("key").agg(pl.col("x").max()).head(10)
    _kept(enabled, some)
    first, second = pl.collect_all([some, some.with_columns(y=pl.col("x") + 1)])
    assert _outcomes() == ["reused", "computed"]
    assert_frame_equal(first, second.drop("y"))
    assert_frame_equal(first, some.collect())


def test_one_that_is_known_agrees_with_one_that_cannot_be_kept(enabled, many):
    some = many.group_by("key").agg(pl.col("x").max()).head(10)
    _kept(enabled, some)
    first, second = pl.collect_all([some, some.select(pl.col("key").shuffle())])
    assert _outcomes() == ["reused", "uncacheable"]
    assert first["key"].sort().to_list() == second["key"].sort().to_list()


@pytest.mark.parametrize("how", ["memory", "effect"])
def test_one_that_is_known_agrees_with_one_that_runs_as_it_is(enabled, many, how):
    some = many.group_by("key").agg(pl.col("x").max()).head(10)
    _kept(enabled, some)
    large, seen = pl.DataFrame({"key": range(100_000)}).lazy(), []
    other = some.join(large, on="key") if how == "memory" else some.map_batches(lambda frame: seen.append(1) or frame)
    first, second = pl.collect_all([some, other])
    assert "reused" not in _outcomes()
    assert first["key"].sort().to_list() == second["key"].sort().to_list()


@pytest.mark.parametrize("instead", [lambda self: None, lambda self: pl.scan_csv("nowhere")])
def test_what_fails_with_known_parts_runs_as_it_is(enabled, many, monkeypatch, instead):
    some = many.group_by("key").agg(pl.col("x").max()).head(10)
    _kept(enabled, some)
    monkeypatch.setattr(StoredFrame, "lazy", instead)
    first, second = pl.collect_all([some, some.with_columns(y=pl.col("x") + 1)])
    assert _outcomes() == ["computed", "computed"]
    assert_frame_equal(first.sort("key"), second.drop("y").sort("key"))


def test_errors_of_several_are_those_of_polars(enabled, many):
    some = many.filter(pl.col("key") < 10)
    _kept(enabled, some)
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="nope"):
        pl.collect_all([some, some.select("nope")])


def test_two_that_are_known_from_two_runs_agree(enabled, many):
    some = many.group_by("key").agg(pl.col("x").max()).head(10)
    more = some.with_columns(y=pl.col("x") + 1)
    _kept(enabled, more, some)
    first, second = pl.collect_all([some, more])
    assert_frame_equal(first.sort("key"), second.drop("y").sort("key"))


def test_a_query_that_stands_there_twice_is_reused(enabled, many):
    some = many.group_by("key").agg(pl.col("x").max()).head(10)
    _kept(enabled, some)
    first, second = pl.collect_all([some, some])
    assert _outcomes() == ["reused", "reused"]
    assert_frame_equal(first, second)


def test_queries_whose_shared_part_is_determined_are_reused(enabled, many):
    some = many.filter(pl.col("key") < 10)
    _kept(enabled, some)
    first, second = pl.collect_all([some, some.head(3)])
    assert _outcomes() == ["reused", "computed"]
    assert_frame_equal(first.head(3), second)


def test_groups_whose_order_nobody_notices_are_reused(enabled, many):
    groups = many.group_by("key").agg(pl.col("x").max())
    _kept(enabled, groups)
    first, second = pl.collect_all([groups, groups.filter(pl.col("key") < 10)])
    assert _outcomes() == ["reused", "computed"]
    assert_frame_equal(first.filter(pl.col("key") < 10), second)


def test_queries_that_share_nothing_undetermined_are_reused_beside_others(enabled, many):
    some = many.group_by("key").agg(pl.col("x").max()).head(10)
    _kept(enabled, some)
    pl.collect_all([some, many.group_by("key").agg(pl.col("x").min()).head(10)])
    assert _outcomes() == ["reused", "computed"]


def test_a_query_that_cannot_be_read_is_no_obstacle(enabled, many, monkeypatch):
    some = many.filter(pl.col("key") < 10)
    _kept(enabled, some)
    frame = pl.DataFrame({"x": range(100_000)})  # too large to be written down
    first, second = pl.collect_all([some, frame.lazy().select(pl.col("x").sum())])
    assert sorted(_outcomes()) == ["reused", "uncacheable"]
    assert first.height == 40
    assert second.item() == frame["x"].sum()


def test_nothing_is_shared_by_what_is_refused(enabled, many):
    """Refused parts have keys that mean nothing."""
    first, second = many.select(pl.col("x").sample(5)), many.select(pl.col("key").shuffle())
    programs = [collecting.prepared(enabled, each).keyed.program for each in (first, second)]
    assert programs[0].nodes[-1].refusal
    assert answerable(programs) == [True, True]


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_inspect_prints_each_time_and_what_is_below_is_reused(enabled, many, capfd, engine):
    groups = many.group_by("key").agg(pl.col("x").max()).sort("key")
    _kept(enabled, groups)
    query = groups.inspect("passing: {}").filter(pl.col("key") < 3)
    plain = query.collect(engine=nectar.PolarsEngine(engine).inner)
    printed = capfd.readouterr().out
    assert "passing" in printed
    for _ in range(2):
        assert_frame_equal(query.collect(engine=engine), plain)
        assert "reused" in _outcomes()
        assert "computed" not in _outcomes()
        assert capfd.readouterr().out == printed
        assert enabled.settle(30)
    assert "prints" in nectar.last_run().why


@pytest.mark.parametrize("engine", ["auto", "in-memory", "streaming"])
@pytest.mark.parametrize("where", ["file", "memory"])
def test_what_several_have_in_common_runs_once(enabled, many, engine, where):
    """Whether or not it can be kept: two runs of it would differ."""
    source = many if where == "file" else many.collect().lazy()
    for at in range(5):
        some = source.group_by("key").agg(pl.col("x").max() + at).head(10)
        first, second = pl.collect_all([some, some.with_columns(y=pl.col("x") + 1)], engine=engine)
        assert_frame_equal(first.sort("key"), second.drop("y").sort("key"))


def test_frames_stay_as_they_were(enabled, many):
    """One that is resolved on the way shares nothing with others, and threads that use it wait for each other."""
    query = many.group_by("key").agg(pl.col("x").max())
    before = query.serialize()
    query.collect()
    nectar.explain(query)
    pl.collect_all([query, query.head(3)])
    assert enabled.settle(30)
    assert query.serialize() == before
