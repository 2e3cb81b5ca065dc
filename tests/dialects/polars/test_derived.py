"""Programs over named results against the same programs over the frame itself, and attempts to mix them up."""

import io

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import nectar
from nectar import session
from nectar.dialects.polars import derived
from nectar.dialects.polars.derived import reader_of
from nectar.dialects.polars.plan import Plan

FRAME = pl.DataFrame(
    {
        "page": ["a", "b", None, "c"] * 30,
        "seconds": [*range(119), None],
        "share": [0.5, -0.0, float("nan"), None] * 30,
        "words": [["x"], [], None, ["y", "z"]] * 30,
    }
)
PROGRAMS = {
    "all": lambda lf: lf,
    "columns": lambda lf: lf.select("seconds", "page"),
    "filter": lambda lf: lf.filter(pl.col("seconds") > 50),
    "head of filter": lambda lf: lf.filter(pl.col("seconds") % 2 == 1).head(3),
    "filter of head": lambda lf: lf.head(10).filter(pl.col("seconds") % 2 == 1),
    "tail": lambda lf: lf.tail(7),
    "slice": lambda lf: lf.slice(5, 9).select("page"),
    "function in a filter": lambda lf: lf.filter(pl.col("page").map_elements(lambda page: page == "a", pl.Boolean)),
    "null and nan": lambda lf: lf.filter(pl.col("share").is_nan() | pl.col("page").is_null()),
    "groups": lambda lf: lf.group_by("page", maintain_order=True).agg(pl.col("seconds").sum(), pl.len()),
    "sort": lambda lf: lf.sort("seconds", descending=True, nulls_last=True).head(4),
    "index": lambda lf: lf.with_row_index().filter(pl.col("index") > 100),
    "explode": lambda lf: lf.select("words").explode("words"),
    "itself": lambda lf: lf.join(lf.group_by("page").agg(pl.col("seconds").max()), on=["page", "seconds"]).sort("page"),
    "twice": lambda lf: pl.concat([lf.head(2), lf.tail(2)]),
    "with others": lambda lf: lf.join(pl.LazyFrame({"page": ["a"], "title": ["A"]}), on="page", maintain_order="left"),
    "no columns": lambda lf: lf.select(pl.len()),
}


@pytest.fixture
def saved(enabled, tmp_path):
    FRAME.write_parquet(tmp_path / "frame.parquet")
    return nectar.save(pl.scan_parquet(tmp_path / "frame.parquet").select(pl.all()), "a")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_cold_warm_and_off_it_is_the_program_over_the_frame(enabled, saved, name, engine):
    program = PROGRAMS[name]
    nectar.disable()
    expected = program(FRAME.lazy()).collect(engine=engine)
    assert_frame_equal(program(nectar.scan("a")).collect(engine=engine), expected)
    nectar.enable(home=enabled.settings.home, reserve=0)
    for _ in range(3):
        found = program(nectar.scan("a")).collect(engine=engine)
        assert_frame_equal(found, expected)
        session.current().settle()


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_names_are_never_taken_for_each_other(enabled, saved, tmp_path, name):
    program = PROGRAMS[name]
    other = FRAME.with_columns(pl.col("seconds") + 1, pl.lit("d").alias("page"))
    other.write_parquet(tmp_path / "other.parquet")
    nectar.save(pl.scan_parquet(tmp_path / "other.parquet").select(pl.all()), "b")
    for _ in range(2):
        for source, frame in (("a", FRAME), ("b", other)):
            assert_frame_equal(program(nectar.scan(source)).collect(), program(frame.lazy()).collect())
            enabled.settle()


def test_it_can_be_written_down(enabled, saved):
    lf = nectar.scan("a").filter(pl.col("page") == "a")
    again = pl.LazyFrame.deserialize(io.BytesIO(lf.serialize()))
    lf.collect()
    enabled.settle()
    assert_frame_equal(again.collect(), FRAME.filter(pl.col("page") == "a"))
    assert [part.outcome for part in nectar.last_run().parts] == ["reused"]


def test_it_is_explained_by_its_name(enabled, saved):
    text = str(nectar.explain(nectar.scan("a").filter(pl.col("seconds") > 3)))
    assert "result a@1: reused" in text
    for least in (3, 4):
        nectar.scan("a").filter(pl.col("seconds") > least).collect()
    assert "> (4)" in nectar.last_run().why


@pytest.mark.parametrize("change", [{"is_pure": False}, {"validate_schema": True}, {"explain_name": "x"}])
def test_a_source_with_other_options_is_not_ours(enabled, saved, change):
    reader = reader_of(Plan.of(nectar.scan("a")).steps[0])
    options = {"is_pure": True, **change}
    lf = pl.LazyFrame._scan_python_function(schema=FRAME.schema, scan_fn=reader, **options)
    assert reader_of(Plan.of(lf).steps[0]) is None
    assert_frame_equal(lf.select("page").collect(), FRAME.select("page"))
    assert [part.outcome for part in nectar.last_run().parts] == ["uncacheable"]


class Pretender:
    """Looks like a reader of results in its pickled form."""

    key, program, label = b"k" * 32, b"p" * 32, "nectar.dialects.polars.derived"

    def __call__(self, *_):
        return iter([pl.DataFrame({"page": ["x"]})]), False


def test_a_function_that_mentions_our_module_is_not_ours(enabled, saved):
    pretender = Pretender()
    pretender.label = derived.__name__
    lf = pl.LazyFrame._scan_python_function(schema={"page": pl.String}, scan_fn=pretender, is_pure=True)
    assert reader_of(Plan.of(lf).steps[0]) is None
    assert lf.collect()["page"].to_list() == ["x"]


def test_a_result_of_a_catalog_elsewhere(enabled, saved, tmp_path):
    lf = nectar.scan("a").select(pl.col("seconds").sum())
    with nectar.reuse(home=tmp_path / "another", reserve=0) as report:
        assert lf.collect().item() == FRAME["seconds"].sum()
        assert lf.collect().item() == FRAME["seconds"].sum()
    assert [part.outcome for part in report.parts] == ["computed", "reused"]
