"""What several steps use is computed once, as in plain Polars: also what holds a Python function.

A function in a plan that was written down and read again is a copy, and Polars takes no two copies to be the same.
"""

from __future__ import annotations

import random

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import nectar
from nectar.dialects.polars.query import prepared
from nectar.dialects.polars.several import together

FUNCTION = ".()"  # how Polars shows a function of a plan that it has read


def longer(seconds: pl.Series) -> pl.Series:
    return seconds * 2


def drawn(seconds: pl.Series) -> pl.Series:
    return seconds * 0 + random.randrange(1 << 40)


def _doubled(log, function=longer):
    doubled = pl.col("seconds").map_batches(function, return_dtype=pl.Int64)
    return pl.scan_parquet(log / "*.parquet").with_columns(twice=doubled)


def _per_page(frame):
    return frame.group_by("page").agg(pl.col("twice").sum())


def _joined(log, function=longer):
    frame = _doubled(log, function)
    return frame.join(_per_page(frame), on="page").sort("page", "seconds", "day")


def _stacked(log, function=longer):
    frame = _doubled(log, function)
    return pl.concat([frame, frame.reverse(), frame]).sort("page", "seconds", "day")


def _pruned(log, function=longer):
    frame = _doubled(log, function)
    return pl.concat(
        [frame.select("twice").filter(pl.col("twice") > 100), frame.select(pl.col("seconds").alias("twice"))]
    )


PROGRAMS = {"join": _joined, "concat": _stacked, "other columns": _pruned}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_part_with_a_function_is_computed_once(enabled, log, program, engine):
    plan = prepared(enabled, program(log)).remaining().explain()
    assert plan.count(FUNCTION) == 1
    with_nectar = program(log).collect(engine=engine)
    nectar.disable()
    assert_frame_equal(with_nectar, program(log).collect(engine=engine))


def test_so_is_one_that_stands_on_what_is_known(enabled, log):
    def rest(frame):
        doubled = frame.with_columns(twice=pl.col("seconds").map_batches(longer, return_dtype=pl.Int64))
        return doubled.join(doubled.select("page", more=pl.col("twice") + 1), on="page").sort("page", "twice", "more")

    known = pl.scan_parquet(log / "*.parquet").group_by("page").agg(pl.col("seconds").sum())
    known.collect()
    assert enabled.settle(30)
    query = prepared(enabled, rest(known))
    assert len(query.known) == 1
    assert query.remaining().explain().count(FUNCTION) == 1
    with_nectar = rest(known).collect()
    nectar.disable()
    assert_frame_equal(with_nectar, rest(known).collect())


def test_so_is_one_that_several_queries_have_in_common(enabled, log):
    frame = _doubled(log)
    lfs = [_per_page(frame).sort("page"), frame.select(pl.col("twice").max()), frame]
    frames = together([prepared(enabled, each) for each in lfs], lfs).frames
    assert pl.explain_all(list(frames.values())).count(FUNCTION) == 1
    with_nectar = pl.collect_all(lfs)
    nectar.disable()
    for found, expected in zip(with_nectar, pl.collect_all(lfs), strict=True):
        assert_frame_equal(found, expected)


def test_two_draws_stay_two(enabled, log):
    """Two that look the same are not the same, if each gives something else."""
    first, second = _doubled(log, drawn).select(a="twice"), _doubled(log, drawn).select(b="twice")
    for _ in range(2):
        found = pl.concat([first, second], how="horizontal").collect()
        assert found["a"].n_unique() == found["b"].n_unique() == 1
        assert found["a"][0] != found["b"][0]


def test_a_function_that_changed_is_another(enabled, log):
    factor = 2

    def scaled(seconds: pl.Series) -> pl.Series:
        return seconds * factor

    first = _doubled(log, scaled).select(a="twice")
    factor = 3
    second = _doubled(log, lambda seconds: seconds * 5).select(b="twice")
    found = pl.concat([first, second], how="horizontal").collect()
    assert_frame_equal(found.select(found["a"] * 5), found.select(a=found["b"] * 3))


def _merged(log):
    """A plan over which Polars breaks down once its equal functions, of which it sees four, are taken for one."""

    def largest():
        groups = pl.scan_parquet(log / "*.parquet").group_by("day", maintain_order=True)
        pages = groups.map_groups(lambda group: group, schema=None).sort("day", maintain_order=True)
        most = pages.group_by("page", maintain_order=True).agg(pl.col("seconds").max(), (pl.len() > 1).alias("often"))
        return most.filter("often").select("page", "seconds").sort("seconds", maintain_order=True)

    merged = [largest().merge_sorted(largest().head(3), key="seconds") for _ in range(2)]
    return pl.concat(merged, parallel=True).cache()


def test_where_polars_breaks_down_over_it_the_query_runs_as_it_was_given(enabled, log):
    expected = _merged(log).collect(engine=nectar.PolarsEngine("streaming").inner)
    for _ in range(2):
        assert_frame_equal(_merged(log).collect(engine="streaming"), expected)


class Breaks(pl.Engine):
    """An engine that breaks down over all plans but those that were given to it as they are."""

    name = "breaks"

    def __init__(self, given):
        super().__init__()
        self._given, self._inner = given, nectar.PolarsEngine("in-memory").inner
        self.broke = 0

    def _expect_given(self, frames):
        if not all(any(frame is given for given in self._given) for frame in frames):
            self.broke += 1
            raise pl.exceptions.PanicException("broken")

    def execute(self, lf, **options):
        raise AssertionError("nobody asks for it")

    def collect(self, lf, **options):
        self._expect_given([lf])
        return self._inner.collect(lf, **options)

    def collect_all(self, lfs, **options):
        self._expect_given(lfs)
        return self._inner.collect_all(lfs, **options)

    def sink_parquet(self, lf, path, **options):
        self._expect_given([lf])
        self._inner.sink_parquet(lf, path, **options)


def _collected(query, engine, path):
    return query.collect(engine=engine)


def _together(query, engine, path):
    return pl.collect_all([query, query], engine=engine)[0]


def _written(query, engine, path):
    query.sink_parquet(path, engine=engine)
    return pl.read_parquet(path)


@pytest.mark.parametrize("run", [_collected, _together, _written])
@pytest.mark.parametrize("known", [False, True])
def test_whatever_it_breaks_down_over(enabled, log, tmp_path, run, known):
    query = _joined(log)
    expected = query.collect(engine=nectar.PolarsEngine("in-memory").inner)
    if known:
        _doubled(log).collect()
        enabled.settle()
    inner = Breaks([query])
    assert_frame_equal(run(query, nectar.PolarsEngine(inner), tmp_path / "written.parquet"), expected)
    assert bool(inner.broke) == (known or run is not _written)
