"""Optimisations are part of a key: a step that is left out with some of them raises its error with others."""

import polars as pl
import pytest

import nectar
from nectar.datasets.rebuild import made_again
from nectar.dialects.polars.flags import _NAMES, flags_of, optimizations_of

NONE, EAGER = pl.QueryOptFlags.none(), pl.QueryOptFlags._eager()
WAYS = {
    "collect": lambda lf, **options: lf.collect(**options),
    "collect_all": lambda lf, **options: pl.collect_all([lf, lf.head(1)], **options),
    "background": lambda lf, **options: lf.collect(background=True, **options).fetch_blocking(),
    "collect_batches": lambda lf, **options: list(lf.collect_batches(**options)),
    "sink": lambda lf, **options: lf.sink_batches(lambda _: False, **options),
}


@pytest.fixture
def lf(tmp_path):
    """A query with a column that cannot be computed, and that nobody needs."""
    path = tmp_path / "log.csv"
    path.write_text("name,value\nx,1\ny,2\n")
    return pl.scan_csv(path).with_columns(pl.col("name").cast(pl.Int64)).select(pl.col("value").sum())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("flags", [NONE, EAGER, pl.QueryOptFlags(projection_pushdown=False)], ids=flags_of)
def test_a_step_that_is_not_left_out_raises_its_error(enabled, lf, way, flags):
    lf.collect()
    enabled.settle()
    WAYS[way](lf)
    with pytest.raises(pl.exceptions.InvalidOperationError):
        WAYS[way](lf, optimizations=flags)


def test_with_the_same_optimisations_it_is_reused(enabled, lf):
    lf = lf.select(pl.col("value") + 1)
    for flags in (pl.QueryOptFlags(slice_pushdown=False), pl.QueryOptFlags(), None):
        options = {} if flags is None else {"optimizations": flags}
        found = [lf.collect(**options).item() for _ in range(2)]
        enabled.settle()
        assert found == [4, 4]
        assert [part.outcome for part in nectar.last_run().parts] == ["reused"]
    assert len([entry for entry in enabled.catalog.index.entries() if entry.about.startswith("select")]) >= 2


def test_a_deleted_result_is_made_again_with_them(enabled, lf):
    lf.collect(optimizations=pl.QueryOptFlags(slice_pushdown=False))
    enabled.settle()
    key = bytes.fromhex(nectar.last_run().parts[-1].key)
    collector = enabled.catalog.collector
    collector.evict(collector.plan(everything=True))
    assert made_again(enabled.catalog, key).rows == 1
    assert lf.collect(optimizations=pl.QueryOptFlags(slice_pushdown=False)).item() == 3
    assert [part.outcome for part in nectar.last_run().parts] == ["reused"]
    lf.collect()
    assert [part.outcome for part in nectar.last_run().parts] == ["computed"]


@pytest.mark.parametrize("name", _NAMES)
def test_each_of_them_counts(name):
    flags = pl.QueryOptFlags()
    setattr(flags._pyoptflags, name, not getattr(flags._pyoptflags, name))
    assert flags_of(flags) not in ("", flags_of(NONE), flags_of(EAGER))
    assert flags_of(optimizations_of(flags_of(flags))) == flags_of(flags)


def test_the_usual_ones_have_no_name():
    assert flags_of(pl.QueryOptFlags()) == ""
    assert flags_of(optimizations_of("")) == ""
    assert flags_of(optimizations_of(flags_of(NONE))) == flags_of(NONE) != flags_of(EAGER)
