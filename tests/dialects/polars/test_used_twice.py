"""Lazy frames that are used again after their files have changed: as plain Polars, which stays with what it found."""

from __future__ import annotations

import polars as pl
import pytest

import nectar

KINDS = {
    "parquet": (pl.scan_parquet, pl.DataFrame.write_parquet),
    "csv": (pl.scan_csv, pl.DataFrame.write_csv),
    "ndjson": (pl.scan_ndjson, pl.DataFrame.write_ndjson),
    "ipc": (pl.scan_ipc, pl.DataFrame.write_ipc),
}
DERIVED = {
    "the same": lambda lf: lf,
    "made from it": lambda lf: lf.filter(pl.col("a") > 0).select("a"),
    "with a part that is not cached": lambda lf: lf.select(pl.col("a").shuffle()).sort("a"),
    "joined with itself": lambda lf: lf.join(lf, on="a").sort("a"),
}


def _answer(run):
    try:
        return run()
    except Exception as error:
        return type(error)


def _both(tmp_path, enabled, story):
    """What a story gives without Nectar, and with it; each in a folder of its own."""
    for name in ("plain", "nectar"):
        (tmp_path / name).mkdir()
    with nectar.reuse(off=True):
        plain = story(tmp_path / "plain")
    return plain, story(tmp_path / "nectar")


@pytest.mark.parametrize("derived", DERIVED)
@pytest.mark.parametrize("kind", KINDS)
def test_files_that_are_added_are_not_seen(tmp_path, enabled, kind, derived):
    scan, write = KINDS[kind]

    def story(folder):
        write(pl.DataFrame({"a": [1]}), folder / f"1.{kind}")
        lf = scan(folder / f"*.{kind}")
        first = lf.collect().rows()
        write(pl.DataFrame({"a": [2]}), folder / f"2.{kind}")
        again = [DERIVED[derived](lf).collect().rows() for _ in range(2)]
        anew = [DERIVED[derived](scan(folder / f"*.{kind}")).collect().rows() for _ in range(2)]
        return first, again, anew

    plain, got = _both(tmp_path, enabled, story)
    assert got == plain
    assert len(got[1][0]) == 1
    assert len(got[2][0]) == 2


@pytest.mark.parametrize("way", ["collect_schema", "explain", "collect_all", "sink"])
def test_any_use_counts(tmp_path, enabled, way):
    def story(folder):
        pl.DataFrame({"a": [1]}).write_parquet(folder / "1.parquet")
        lf = pl.scan_parquet(folder / "*.parquet")
        if way == "collect_all":
            pl.collect_all([lf, lf.select(pl.col("a") + 1)])
        elif way == "sink":
            lf.sink_csv(folder / "out.csv")
        else:
            getattr(lf, way)()
        pl.DataFrame({"a": [2]}).write_parquet(folder / "2.parquet")
        together = pl.collect_all([lf, lf.select(pl.col("a") + 1)])
        lf.sink_csv(folder / "again.csv")
        return lf.collect().rows(), [frame.rows() for frame in together], (folder / "again.csv").read_text()

    plain, got = _both(tmp_path, enabled, story)
    assert got == plain


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_columns_that_are_others_by_now_are_an_error_as_without_nectar(tmp_path, enabled, kind):
    scan, write = KINDS[kind]

    def story(folder):
        write(pl.DataFrame({"a": [1]}), folder / f"c.{kind}")
        lf = scan(folder / f"c.{kind}")
        names = lf.collect_schema().names()
        write(pl.DataFrame({"x": [7], "y": [8]}), folder / f"c.{kind}")
        return names, _answer(lambda: lf.collect().columns)

    plain, got = _both(tmp_path, enabled, story)
    assert got == plain


def test_a_frame_of_other_files_says_so_and_one_of_the_same_files_is_reused(tmp_path, enabled):
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "1.parquet")
    lf = pl.scan_parquet(tmp_path / "*.parquet").select(pl.col("a") + 1)
    lf.collect()
    assert enabled.settle(30)
    lf.collect()
    assert not nectar.last_run().computed
    pl.DataFrame({"a": [2]}).write_parquet(tmp_path / "2.parquet")
    assert "make the lazy frame anew" in str(nectar.explain(lf))
    assert lf.collect().rows() == [(2,)]
