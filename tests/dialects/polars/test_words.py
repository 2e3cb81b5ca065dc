"""Steps of a plan in words."""

import polars as pl
import pytest

from nectar.dialects.polars.plan import Plan
from nectar.dialects.polars.words import detail_of, phrases_of

FRAME = pl.LazyFrame({"a": [1], "b": [2.0]})


def last(lf):
    return Plan.of(lf).steps[-1]


@pytest.mark.parametrize(
    ("lf", "detail"),
    [
        (FRAME.filter(pl.col("a") > 3), '(col("a")) > (3)'),
        (FRAME.select("a", pl.col("b").sum()), 'col("a"), col("b").sum()'),
        (FRAME.head(3), "rows from 0, at most 3"),
        (FRAME.join(FRAME, on="a"), 'col("a"), col("a")'),
        (FRAME.select(pl.col("a").map_batches(abs)), 'col("a").map(a Python function)'),
        (FRAME, ""),
    ],
)
def test_details_show_the_expressions(lf, detail):
    assert detail_of(last(lf)) == detail


def test_phrases_have_the_options_too():
    assert "descending = [True]" in phrases_of(last(FRAME.sort("a", descending=True)))
    assert "how = Left" in phrases_of(last(FRAME.join(FRAME, on="a", how="left")))


def test_wide_steps_are_cut_short():
    wide = FRAME.with_columns(*[pl.lit(at).alias(f"c{at}") for at in range(1000)])
    assert len(phrases_of(last(wide))) <= 60
    assert len(detail_of(last(wide))) <= 160


def test_nothing_of_a_source_is_told(tmp_path):
    lf = pl.scan_csv(tmp_path / "x.csv", storage_options={"token": "canary"})
    assert phrases_of(last(lf)) == ()
    assert detail_of(last(lf)) == ""
