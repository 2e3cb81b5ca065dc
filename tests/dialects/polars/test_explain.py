"""What is told of a query: what becomes of each part, and why the rest is not known."""

import sys

import polars as pl
import pytest
from tests.dialects.polars.conftest import write_day

import nectar
from nectar import session
from nectar.dialects.polars import history
from nectar.errors import UserError
from nectar.report.watchers import watchers

LIMIT = 60


def capped(seconds):
    return seconds.clip(0, LIMIT)


def pages(log, least=0):
    return pl.scan_parquet(f"{log}/*.parquet").filter(pl.col("seconds") > least).group_by("page").agg(pl.len())


def mapped(log):
    return pl.scan_parquet(f"{log}/*.parquet").select(
        pl.col("seconds").map_batches(capped, return_dtype=pl.Int64).sum()
    )


def settled(lf):
    """The frame, after it has been kept and gone on record."""
    frame = lf.collect()
    session.current().settle()
    return frame


def becomes(explanation):
    return [(part.text.split()[0], part.becomes) for part in explanation.parts]


def test_a_query_that_never_ran(enabled, log):
    told = nectar.explain(pages(log).sort("page"))
    assert becomes(told) == [
        ("sort", "computed"),
        ("group_by", "computed"),
        ("filter", "computed"),
        ("scan", "computed"),
    ]
    assert told.reason == "it runs for the first time"
    assert told.seconds_saved == 0
    assert str(told).splitlines()[0] == "nothing of it is known: it runs for the first time"
    assert [part.depth for part in told.parts] == [0, 1, 2, 3]


def test_nothing_is_run_and_nothing_is_counted(enabled, log):
    settled(pages(log))
    session.current().catalog.flush()
    root = session.current().catalog.index
    before = root.totals()
    for _ in range(3):
        nectar.explain(pages(log))
        nectar.explain(pages(log).sort("page"))
    session.current().catalog.flush()
    after = root.totals()
    assert (after.hits, after.lookups) == (before.hits, before.lookups)
    assert root.usage(0.0).entries == 1


def test_a_known_query(enabled, log):
    settled(pages(log))
    told = nectar.explain(pages(log))
    assert becomes(told) == [("group_by", "reused")]
    assert told.reason == ""
    assert told.seconds_saved > 0
    assert str(told).startswith("all of it is known: about ")
    assert "3 rows" in str(told)


def test_a_known_part(enabled, log):
    settled(pages(log))
    told = nectar.explain(pages(log).sort("page"))
    assert becomes(told) == [("sort", "computed"), ("group_by", "reused")]
    assert str(told).startswith("1 part of it known: about ")


def test_a_part_that_is_used_twice_is_told_once(enabled, log):
    base = pages(log, 3)
    told = nectar.explain(base.join(base.select("page"), on="page"))
    assert sum(part.note == "see above" for part in told.parts) == 1
    assert sum(part.text.startswith("scan") for part in told.parts) == 1


def test_a_step_that_cannot_be_cached_says_why(enabled, log):
    told = nectar.explain(pages(log).with_columns(pl.col("len").shuffle()))
    assert told.parts[0].becomes == "not cached"
    assert "random" in told.parts[0].note
    assert "random" in told.reason


def test_with_nectar_off(enabled, log):
    with nectar.reuse(off=True):
        assert nectar.explain(pages(log)).reason == "Nectar is off"


def test_only_lazy_frames_can_be_explained(enabled):
    with pytest.raises(UserError, match=r"df\.lazy\(\)"):
        nectar.explain(pl.DataFrame({"a": [1]}))


def test_a_query_that_is_wrong(enabled, log):
    told = nectar.explain(pages(log).select("nope"))
    assert told.parts[0].becomes == "not cached"
    assert told.reason.endswith('unable to find column "nope"; valid columns: ["page", "len"]')


def test_a_query_that_cannot_be_written_down(enabled):
    told = nectar.explain(pl.LazyFrame({"a": [object()]}, schema={"a": pl.Object}).select("a"))
    assert told.parts[0].becomes == "not cached"
    assert told.reason


def test_a_query_of_many_steps(enabled, log):
    lf = pl.scan_parquet(f"{log}/*.parquet")
    for step in range(600):
        lf = lf.with_columns(pl.lit(step).alias("step"))
    told = nectar.explain(lf)
    assert len(told.parts) == 601
    assert max(map(len, str(told).splitlines())) < 300
    lf.collect()
    assert nectar.last_run().why.endswith("it runs for the first time")
    assert session.current().catalog.index.versions(history.label()) == []


def test_the_page_for_notebooks_is_escaped(enabled, log):
    page = nectar.explain(pages(log))._repr_html_()
    assert "&gt;" in page
    assert "<pre>" in page


# why


def miss(lf):
    """Why a query had to be computed, as the report of the run says it."""
    settled(lf)
    (part,) = nectar.last_run().computed
    return part.reason


@pytest.fixture
def earlier(enabled, monkeypatch):
    """What runs in this test, before the next line that says so, was run by another process."""

    def turn():
        session.current().settle()
        monkeypatch.setattr(history, "_PROCESS", f"{history._PROCESS}+")

    return turn


def test_why_the_first_run(enabled, log):
    assert miss(pages(log)) == "it runs for the first time"


def test_why_a_changed_constant(log, earlier):
    settled(pages(log, 5))
    earlier()
    assert miss(pages(log, 6)) == 'filter: was (col("seconds")) > (5), is (col("seconds")) > (6)'


def test_why_a_new_step_and_a_step_that_is_gone(log, earlier):
    settled(pages(log, 5))
    earlier()
    assert miss(pages(log, 5).head(2)) == "slice [rows from 0, at most 2] is new"
    earlier()
    without = pl.scan_parquet(f"{log}/*.parquet").group_by("page").agg(pl.len())
    assert miss(without) == 'filter [(col("seconds")) > (5)] is gone'


def test_why_an_option(log, earlier):
    settled(pages(log).sort("page"))
    earlier()
    assert miss(pages(log).sort("page", descending=True)) == "sort: was descending = [False], is descending = [True]"


def test_why_a_changed_helper(log, earlier, monkeypatch):
    settled(mapped(log))
    earlier()
    monkeypatch.setattr(f"{__name__}.LIMIT", 61)
    reason = miss(mapped(log))
    assert "`capped` in test_explain.py" in reason
    assert "LIMIT was 60, is 61" in reason


def test_why_a_changed_file(log, earlier):
    settled(pages(log))
    earlier()
    pl.DataFrame({"page": ["a"], "seconds": [1], "day": [2]}).write_parquet(log / "day-2.parquet")
    assert miss(pages(log)) == "scan parquet *.parquet: clicks/day-2.parquet changed"


def test_why_a_new_file_and_one_that_is_gone(log, earlier):
    settled(pages(log))
    earlier()
    write_day(log, 3)
    (log / "day-1.parquet").unlink()
    assert miss(pages(log)) == "scan parquet *.parquet: clicks/day-3.parquet came; clicks/day-1.parquet went"


def test_why_a_result_that_is_gone(log, earlier):
    settled(pages(log))
    earlier()
    catalog = session.current().catalog
    assert catalog.discard(catalog.index.entries()) == 1
    assert "not kept, or has been deleted" in miss(pages(log))


def test_why_when_it_was_asked_for_anew(enabled, log, home):
    settled(pages(log))
    with nectar.reuse(home=home, refresh=True) as run:
        pages(log).collect()
    assert [part.reason for part in run.computed] == ["asked for anew"]


def test_reasons_can_be_asked_for_after_the_block(log, home, earlier):
    settled(pages(log, 5))
    earlier()
    with nectar.reuse(home=home) as run:
        pages(log, 6).collect()
    assert 'is (col("seconds")) > (6)' in run.why


def test_neighbours_in_one_run_of_a_script_are_no_earlier_versions(enabled, log, monkeypatch):
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "script.py", raising=False)
    pages(log, 5).collect()
    session.current().settle()
    pages(log, 6).collect()
    assert nectar.last_run().why == "group_by page of scan parquet *.parquet: it runs for the first time"


def test_the_same_line_run_again_is_one(enabled, log):
    for least in (5, 6):
        pages(log, least).collect()
        session.current().settle()
    assert 'is (col("seconds")) > (6)' in nectar.last_run().why


def test_another_script_is_no_earlier_version(log, earlier, monkeypatch):
    settled(pages(log, 5))
    earlier()
    monkeypatch.setattr(history, "label", lambda: "polars another")
    assert miss(pages(log, 6)) == "it runs for the first time"


def test_what_cannot_be_cached_says_so_in_the_report(enabled, log):
    pages(log).with_columns(pl.col("len").shuffle()).collect()
    (part,) = nectar.last_run().parts
    assert part.outcome == "uncacheable"
    assert "random" in part.reason


def test_no_record_is_written_on_a_hit(enabled, log, monkeypatch):
    settled(pages(log))
    written = []
    monkeypatch.setattr(history, "record_of", lambda *_: written.append(1))
    settled(pages(log))
    assert nectar.last_run().reused
    assert written == []


def test_a_record_holds_no_secret_of_a_scan(enabled, log):
    canary = "canary-secret"
    lf = pl.scan_parquet(f"{log}/*.parquet", storage_options={"aws_secret_access_key": canary}).group_by("page").len()
    settled(lf)
    index = session.current().catalog.index
    versions = index.versions(history.label())
    assert versions
    assert all(canary.encode() not in part for version in versions for part in index.get_recipe(version.trace))
    assert canary not in str(nectar.explain(lf))
    assert canary not in str(nectar.explain(lf.head(1)))


# watching


@pytest.fixture
def seen():
    found = []
    watchers.append(found.append)
    yield found
    watchers.remove(found.append)


def test_watchers_see_every_query_before_it_runs(enabled, log, seen):
    settled(pages(log))
    settled(pages(log))
    assert [becomes(told)[0] for told in seen] == [("group_by", "computed"), ("group_by", "reused")]


def test_a_watcher_that_fails_harms_nobody(enabled, log, caplog):
    def fail(_):
        raise RuntimeError("no words")

    watchers.append(fail)
    try:
        assert pages(log).collect().height == 3
    finally:
        watchers.remove(fail)
    assert "could not be explained" in caplog.text


# growing streams


def _day(folder, number):
    pl.DataFrame({"k": [number, 1, 2], "v": [1, 2, number]}).write_parquet(folder / f"{number}.parquet")


@pytest.fixture
def days(tmp_path, enabled):
    folder = tmp_path / "days"
    folder.mkdir()
    for number in range(3):
        _day(folder, number)
    return folder


def _run_and_grow(days, query, times=3):
    for number in range(3, 3 + times):
        query().collect()
        session.current().settle()
        _day(days, number)


def test_what_is_put_together_is_told(days):
    query = lambda: pl.scan_parquet(days / "*.parquet").group_by("k").agg(pl.col("v").sum()).sort("k")
    assert "put together" not in str(nectar.explain(query()))
    _run_and_grow(days, query)
    found = nectar.explain(query())
    assert [(part.text, part.becomes) for part in found.parts] == [("sort", "computed"), ("group_by k", "put together")]
    assert "5 of 6 files known" in found.parts[1].note
    assert "as a whole about" in found.parts[1].note
    assert found.reason
    assert str(found).endswith("when files are added, only what is new is computed, up to group_by k")


def test_explaining_runs_and_keeps_nothing(days):
    query = lambda: pl.scan_parquet(days / "*.parquet").group_by("k").agg(pl.col("v").sum())
    _run_and_grow(days, query)
    before = len(list(session.current().catalog.index.entries()))
    nectar.explain(query())
    session.current().settle()
    assert len(list(session.current().catalog.index.entries())) == before
    assert "5 of 6" in str(nectar.explain(query()))


GROWTH = {
    "only what is new is computed": lambda scan: scan.filter(pl.col("v") > 1).select("k"),
    "with_columns below it looks at several rows at once": lambda scan: scan.with_columns(pl.col("v").cum_sum()).sort(
        "k"
    ),
    "everything is computed again": lambda scan: scan.unique(keep="none"),
    "up to group_by k": lambda scan: scan.group_by("k").agg(pl.len()).sort("len").head(2),
}


@pytest.mark.parametrize("told", GROWTH)
def test_what_becomes_of_a_query_when_files_are_added(days, told):
    assert told in nectar.explain(GROWTH[told](pl.scan_parquet(days / "*.parquet"))).growth


def test_nothing_is_said_of_growth_where_nothing_can_be_kept(days):
    lazy = pl.scan_parquet(days / "*.parquet")
    assert nectar.explain(lazy.select(pl.col("v").sample(2))).growth == ""
    assert nectar.explain(pl.LazyFrame({"a": [1]}).select("a")).growth == ""
