"""Named results: saved, scanned, moved, deleted; and what programs over them depend on."""

import json
import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.dialects.polars.conftest import write_day

import nectar
from nectar import session
from nectar.errors import DeletedError, NotSavedError, UnknownNameError


def seconds(log):
    return pl.scan_parquet(log / "*.parquet").group_by("page").agg(pl.col("seconds").sum()).sort("page")


def evict_everything(enabled):
    enabled.settle()
    collector = enabled.catalog.collector
    collector.evict(collector.plan(everything=True))


def reused():
    return [part.name for part in nectar.last_run().parts if part.outcome == "reused"]


def computed():
    return [part.name for part in nectar.last_run().parts if part.outcome != "reused"]


# saving


@pytest.mark.parametrize("seal", ["seal", "NULL"], ids=["sealed", "of an older catalog"])
@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("odd", ["-1", str(2**62), "'x'", "x'fffefffe'", "1.5", "zeroblob(10)"])
def test_a_name_whose_columns_are_damaged_is_scanned_all_the_same(enabled, log, odd, gone, seal):
    lf = seconds(log)
    expected = lf.collect()
    nectar.save(lf, "team/top")
    if gone:
        evict_everything(enabled)
    with sqlite3.connect(enabled.catalog.index.path) as connection:
        connection.execute(f"UPDATE results SET columns = {odd}, seal = {seal}")
    connection.close()
    assert_frame_equal(nectar.scan("team/top").collect(), expected)


def test_a_saved_result_is_there_at_once(enabled, log):
    lf = seconds(log)
    saved = lf.nectar.save("team/top", note="first try")
    assert enabled.catalog.index.lookup([saved.key])
    assert (saved.name, saved.version, saved.note) == ("team/top", 1, "first try")
    assert_frame_equal(nectar.scan("team/top").collect(), lf.collect())
    assert nectar.open("team/top").versions[0].by == enabled.catalog.person


def test_a_small_and_quick_result_is_kept_because_somebody_asked(enabled, log, monkeypatch):
    monkeypatch.setattr(enabled.catalog, "worth_keeping", lambda *_: "never worth it")
    lf = seconds(log)
    lf.collect()
    assert len(list(enabled.catalog.index.entries())) == 0
    saved = nectar.save(lf, "a")
    assert saved.kept


def test_saving_what_is_known_computes_nothing(enabled, log):
    lf = seconds(log)
    lf.collect()
    enabled.settle()
    nectar.save(lf, "a")
    assert len(reused()) == 1
    assert computed() == []
    assert nectar.save(lf, "a").version == 1
    assert nectar.save(lf, "b").key == nectar.open("a").key


def test_a_name_moves_when_its_files_change(enabled, log):
    first = nectar.save(seconds(log), "a")
    write_day(log, 3)
    second = nectar.save(seconds(log), "a", note="day 3")
    assert second.version == 2
    assert second.key != first.key
    assert [(each.version, each.note) for each in second.versions] == [(2, "day 3"), (1, "")]
    assert_frame_equal(nectar.open("a@1").to_polars(), first.to_polars())
    assert nectar.open("a").key == nectar.open("a@2").key == second.key


@pytest.mark.parametrize("settings", [{"budget": 1}, {"read_only": True}], ids=["no room", "read-only"])
def test_what_cannot_be_kept_gets_no_name(enabled, home, log, settings):
    nectar.save(seconds(log), "there/before")
    with nectar.reuse(home=home, reserve=0, **settings), pytest.raises(NotSavedError, match="'a'.*(room|only be read)"):
        nectar.save(seconds(log).filter(pl.col("page") == "a"), "a")
    with pytest.raises(UnknownNameError):
        nectar.open("a")


def test_an_uncacheable_query_gets_no_name(enabled, log):
    lf = seconds(log).with_columns(pl.col("page").map_elements(lambda page: page + os.getcwd(), return_dtype=pl.String))
    with pytest.raises(NotSavedError, match="'a'.*os.getcwd"):
        lf.nectar.save("a")
    random = seconds(log).with_columns(pl.col("seconds").shuffle())
    with pytest.raises(NotSavedError, match="without a seed"):
        nectar.save(random, "a")


def test_a_frame_in_memory_is_no_computation(enabled):
    with pytest.raises(NotSavedError, match="frame in memory"):
        nectar.save(pl.LazyFrame({"a": [1]}), "a")
    with pytest.raises(NotSavedError, match="only lazy frames"):
        nectar.save(pl.DataFrame({"a": [1]}), "a")


def test_errors_of_the_query_are_its_own(enabled, log):
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        nectar.save(seconds(log).select("nothing"), "a")
    assert enabled.catalog.index.names() == []


def test_nothing_is_saved_while_nectar_is_off(enabled, log):
    nectar.disable()
    with pytest.raises(NotSavedError, match="off"):
        nectar.save(seconds(log), "a")


@pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", "a@2", "a b", ".a", "a/.b", "a.", "a\\b", "a.parquet", "x:y"])
def test_names_that_cannot_be_given(enabled, log, name):
    with pytest.raises(UnknownNameError, match="cannot be a name"):
        nectar.save(seconds(log), name)


# scanning


def test_a_program_over_a_name_is_the_program_over_its_query(enabled, log):
    """Key for key: what was computed in one way is found in the other."""
    nectar.save(seconds(log), "a")
    top = nectar.scan("a").filter(pl.col("seconds") > 10).select(pl.col("seconds").max())
    found = top.collect()
    enabled.settle()
    inline = seconds(log).filter(pl.col("seconds") > 10).select(pl.col("seconds").max())
    assert_frame_equal(inline.collect(), found)
    assert computed() == []


def test_downstream_results_are_recomputed_when_the_name_moves(enabled, log):
    nectar.save(seconds(log), "a")
    total = lambda: nectar.scan("a").select(pl.col("seconds").sum()).collect().item()
    before = total()
    enabled.settle()
    assert total() == before
    assert computed() == []
    write_day(log, 3)
    nectar.save(seconds(log), "a")
    assert total() > before
    assert len(computed()) == 1


def test_a_lazy_frame_stays_with_the_version_it_scanned(enabled, log):
    nectar.save(seconds(log), "a")
    lf = nectar.scan("a")
    before = lf.collect()
    write_day(log, 3)
    nectar.save(seconds(log), "a")
    assert_frame_equal(lf.collect(), before)
    assert not nectar.scan("a").collect().equals(before)


def test_downstream_results_are_known_after_eviction_and_making_it_again(enabled, log):
    nectar.save(seconds(log), "a")
    place = nectar.open("a").paths, enabled.catalog.index.lookup([nectar.open("a").key])
    down = nectar.scan("a").select(pl.col("seconds").sum())
    down.collect()
    enabled.settle()
    key = nectar.open("a").key
    enabled.catalog.discard(enabled.catalog.index.lookup([key]).values())
    assert not nectar.open("a").kept
    down.collect()
    assert computed() == [], "what is above it is known, so nobody needs it"
    assert nectar.scan("a").select(pl.col("seconds").min()).collect().item() > 0
    assert nectar.open("a").kept, "whoever needs it makes it again"
    assert seconds(log).nectar.save("b").key == key
    assert place != (nectar.open("a").paths, enabled.catalog.index.lookup([key]))


def test_opening_a_deleted_result_makes_it_again(enabled, log):
    before = nectar.save(seconds(log), "a").to_polars()
    for read in (nectar.open("a").to_polars, lambda: pl.from_arrow(nectar.open("a").to_arrow())):
        evict_everything(enabled)
        assert not nectar.open("a").kept
        assert_frame_equal(read(), before)


@pytest.mark.parametrize(
    ("harm", "told"),
    [(lambda day: day.unlink(), "is gone"), (lambda day: day.write_bytes(b"x"), "was changed")],
    ids=["removed", "changed"],
)
def test_opening_what_cannot_be_made_again_says_why_and_what_to_run(enabled, log, harm, told):
    nectar.save(seconds(log), "a")
    evict_everything(enabled)
    day = sorted(log.glob("*.parquet"))[0]
    harm(day)
    for read in (nectar.open("a").to_polars, nectar.open("a").to_arrow, lambda: nectar.open("a").paths):
        why = rf"(?s)a@1 .*{day.name} {told}.*test_names.py:\d+ again, which .*@"
        with pytest.raises(DeletedError, match=why) as caught:
            read()
        assert "1 of 2 files are what they were" in str(caught.value)


def test_names_do_not_protect(enabled, log):
    nectar.save(seconds(log), "a")
    evict_everything(enabled)
    assert list(enabled.catalog.index.entries()) == []
    assert nectar.open("a").versions


def test_it_works_with_nectar_off(enabled, log):
    expected = seconds(log).collect()
    nectar.save(seconds(log), "a")
    lf = nectar.scan("a").filter(pl.col("page") != "b").select("seconds", "page")
    nectar.disable()
    assert_frame_equal(lf.collect(), expected.filter(pl.col("page") != "b").select("seconds", "page"))
    assert_frame_equal(nectar.scan("a").collect(engine="streaming"), expected)
    assert_frame_equal(nectar.open("a").to_polars(), expected)


def test_a_scan_alone_is_not_kept_twice(enabled, log):
    nectar.save(seconds(log), "a")
    count = enabled.catalog.usage().entries
    nectar.scan("a").collect()
    enabled.settle()
    assert len(reused()) == 1
    assert enabled.catalog.usage().entries == count


def test_uses_of_a_name_are_counted(enabled, log):
    key = nectar.save(seconds(log), "a").key
    for _ in range(3):
        nectar.scan("a").select(pl.len()).collect(engine="in-memory")
    nectar.open("a").to_polars()
    enabled.catalog.flush()
    assert enabled.catalog.index.lookup([key])[key].hits >= 2


def test_joined_with_itself_it_is_one_making_of_it(enabled, log):
    """The parts of such a program must not be answered from two makings, whose rows may have another order."""
    nectar.save(pl.scan_parquet(log / "*.parquet").group_by("page", "day").agg(pl.len()), "a")
    scan = nectar.scan("a")
    heads = scan.head(2)
    heads.collect()
    enabled.settle()
    both = pl.concat([heads, scan.slice(2)]).unique()
    assert both.collect().height == 6
    assert [part for part in nectar.last_run().parts if part.outcome == "reused" and "slice" in part.name] == []


def test_with_files_and_functions_beside_it(enabled, log):
    nectar.save(seconds(log), "a")
    pages = pl.DataFrame({"page": ["a", "b"], "title": ["A", "B"]})
    pages.write_parquet(log.parent / "pages.parquet")

    def shout(title: str) -> str:
        return title.upper() + "!"

    joined = (
        nectar.scan("a")
        .join(pl.scan_parquet(log.parent / "pages.parquet"), on="page")
        .with_columns(pl.col("title").map_elements(shout, return_dtype=pl.String))
        .sort("page")
    )
    first = joined.collect()
    assert first["title"].to_list() == ["A!", "B!"]
    enabled.settle()
    assert_frame_equal(joined.collect(), first)
    assert computed() == []
    pages.with_columns(pl.lit("c").alias("title")).write_parquet(log.parent / "pages.parquet")
    assert joined.collect()["title"].to_list() == ["C!", "C!"]


def test_a_growing_stream_below_a_name(enabled, log):
    for day in range(3, 7):
        write_day(log, day)
        nectar.save(seconds(log), "a")
        found = nectar.scan("a").select(pl.col("seconds").sum()).collect()
        assert found.item() == sum(sum(range(each, 120 + each)) for each in range(1, day + 1))
    assert [each.version for each in nectar.open("a").versions] == [4, 3, 2, 1]


@pytest.mark.parametrize(
    "dtype", [pl.Categorical, pl.Enum(["a", "b", "c"]), pl.Int128, pl.Decimal(20, 2), pl.Duration("ms"), pl.Binary]
)
def test_types_are_those_of_the_query(enabled, log, dtype):
    source = "page" if dtype in (pl.Categorical, pl.Binary) or isinstance(dtype, pl.Enum) else "seconds"
    lf = pl.scan_parquet(log / "*.parquet").select(
        pl.col(source).cast(dtype).alias("x"), pl.int_ranges(0, 2).alias("y")
    )
    expected = lf.collect()
    lf.nectar.save("a")
    assert nectar.scan("a").collect_schema() == expected.schema
    assert_frame_equal(nectar.scan("a").collect(), expected)
    nectar.disable()
    assert_frame_equal(nectar.scan("a").collect(), expected)


def test_python_sources_of_others_are_no_results(enabled):
    from polars.io.plugins import register_io_source

    times = []

    def source(with_columns, predicate, n_rows, batch_size):
        times.append(1)
        yield pl.DataFrame({"a": [len(times)]})

    lf = register_io_source(source, schema={"a": pl.Int64})
    assert [lf.select(pl.col("a") + 1).collect().item() for _ in range(2)] == [2, 3]
    assert "Python source" in nectar.last_run().why


def test_a_forged_source_is_not_believed(enabled, log):
    from nectar.dialects.polars import derived

    nectar.save(seconds(log), "a")

    class Lookalike(derived.ResultReader):
        def __call__(self, *_):
            return iter([pl.DataFrame({"page": ["x"], "seconds": [-1]})]), False

    real = nectar.scan("a")
    schema = real.collect_schema()
    globals()["Lookalike"] = Lookalike
    Lookalike.__qualname__ = "Lookalike"
    forged = derived.scan_of(Lookalike(nectar.open("a").key, b"p" * 32, "a", "", ""), schema)
    assert forged.collect()["page"].to_list() == ["x"]
    assert real.collect()["page"].to_list() == ["a", "b", "c"]


# versions


def test_versions_by_number_and_moment(enabled, log):
    catalog = enabled.catalog
    now = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()
    for at, number in enumerate((1, 2)):
        catalog.index.bind("a", bytes([number]) * 32, "me", now + at * 86400)
    for text, number in {
        "a": 2, "a@1": 1, "a@2": 2, "a@2026-11-01": 1, "a@2026-11-02": 2, "a@2026-11-01T12:00": 1,
        "a@2026-11-02T11:59:59Z": 1, "a@2026-11-02T12:00": 2, "a@2026-11-02T13:00+02:00": 1, "a@2099-01-01": 2,
    }.items():  # fmt: skip
        assert nectar.open(text).key == bytes([number]) * 32, text
    for text, complaint in {
        "a@3": "the latest is 2", "a@0": "no version 0", "a@2026-10-31": "younger", "a@": "neither", "a@x": "neither",
        "a@2026-13-01": "neither", "a@1@2": "neither", "b": "there is no name", "a/b": "there is no name",
    }.items():  # fmt: skip
        with pytest.raises(UnknownNameError, match=complaint):
            nectar.open(text)


def test_a_removed_name(enabled, log):
    key = nectar.save(seconds(log), "a").key
    enabled.catalog.unbind("a", "it was wrong")
    with pytest.raises(UnknownNameError, match=r"removed.*it was wrong.*a@1"):
        nectar.scan("a")
    assert nectar.open("a@1").key == key
    assert nectar.save(seconds(log), "a").version == 3


def test_no_catalog_is_made_by_asking(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "_chosen", None)
    monkeypatch.setattr(session, "_disabled", True)
    monkeypatch.setenv("NECTAR_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(nectar.NectarError, match="no catalog"):
        nectar.open("a")
    assert not (tmp_path / "nowhere").exists()


# processes

FIRST = """
import sys, polars as pl, nectar
from helper_of_a_test import clean
nectar.enable(reserve=0)
clicks = pl.scan_parquet("clicks/*.parquet")
clean_clicks = clicks.with_columns(pl.col("page").map_elements(clean, return_dtype=pl.String))
print(clean_clicks.group_by("page").agg(pl.len()).sort("page").nectar.save("team/pages", note="from a script").version)
"""
SECOND = """
import json, polars as pl, nectar
nectar.enable(reserve=0)
lf = nectar.scan("team/pages").select(pl.col("len").sum())
print(json.dumps([lf.collect().item(), len(nectar.last_run().computed)]))
"""


def run(folder, code):
    (folder / "script.py").write_text(code, encoding="utf-8")
    environment = {**os.environ, "NECTAR_HOME": str(folder / "home")}
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


AGAIN = """
import polars as pl, nectar
nectar.enable(reserve=0)
print(nectar.scan("team/pages").collect()["len"].sum(), nectar.scan("team/pages").collect()["len"].sum())
nectar.save(nectar.scan("team/pages"), "team/other")
print(nectar.open("team/other").key == nectar.open("team/pages").key)
"""
LET_GO = """
import nectar
nectar.enable(reserve=0)
collector = nectar.session.current().catalog.collector
collector.evict(collector.plan(everything=True))
print(len(list(nectar.session.current().catalog.index.entries())))
"""


def test_a_scan_of_a_deleted_result_makes_it_again_and_is_no_way_to_make_it(tmp_path, log):
    (tmp_path / "helper_of_a_test.py").write_text("def clean(page):\n    return page.upper()\n", encoding="utf-8")
    run(tmp_path, FIRST)
    for _ in range(2):  # a second time: the result was not written down as a scan of itself
        assert run(tmp_path, LET_GO).split() == ["0"]
        assert run(tmp_path, AGAIN).split() == ["240", "240", "True"]


def test_in_fresh_processes(tmp_path, log):
    (tmp_path / "helper_of_a_test.py").write_text("def clean(page):\n    return page.upper()\n", encoding="utf-8")
    assert run(tmp_path, FIRST).split() == ["1"]
    (tmp_path / "helper_of_a_test.py").unlink()
    for count in (1, 0):
        assert json.loads(run(tmp_path, SECOND)) == [240, count]


def test_many_threads_save_and_read_at_once(enabled, log):
    from concurrent.futures import ThreadPoolExecutor

    def work(number):
        nectar.save(seconds(log), f"same/{number % 4}")
        return nectar.scan(f"same/{number % 4}").select(pl.col("seconds").sum()).collect().item()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(work, range(24)))) == 1
    assert {name.version for name in enabled.catalog.index.names("same/")} == {1}
    assert len({name.key for name in enabled.catalog.index.names("same/")}) == 1


def test_a_program_that_goes_to_another_folder(tmp_path, log, monkeypatch):
    code = """
import os, polars as pl, nectar
nectar.enable(home="home", reserve=0)
pl.scan_parquet("clicks/*.parquet").select(pl.len()).nectar.save("a")
lf = nectar.scan("a")
os.makedirs("elsewhere"); os.chdir("elsewhere")
print(lf.collect().item())
nectar.disable()
print(lf.collect().item())
"""
    assert run(tmp_path, code).split() == ["240", "240"]


def test_every_version_keeps_the_functions_it_was_made_with(tmp_path, log, monkeypatch):
    helper = tmp_path / "helper_of_a_test.py"
    for text in ("page.upper()", "page.casefold()"):  # of another length: Python would take the old one for it
        helper.write_text(f"def clean(page):\n    return {text}\n", encoding="utf-8")
        run(tmp_path, FIRST)
    helper.unlink()
    monkeypatch.setenv("NECTAR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(session, "_chosen", None)
    monkeypatch.setattr(session, "_disabled", True)
    texts = {
        version.version: nectar.open(f"team/pages@{version.version}").lineage().functions[0].text
        for version in nectar.open("team/pages").versions
    }
    assert texts == {
        1: "def clean(page):\n    return page.upper()\n",
        2: "def clean(page):\n    return page.casefold()\n",
    }
