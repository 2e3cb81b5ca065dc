"""Sources found all at once are those found one by one, and stand for what the query then reads."""

from __future__ import annotations

import os

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import nectar
from nectar.dialects.polars.collecting import Look
from nectar.dialects.polars.keying import keyed
from nectar.dialects.polars.plan import Plan
from nectar.dialects.polars.resolution import sources_of
from nectar.dialects.polars.scans import refusal_of
from nectar.store.inputs.identify import Inputs


@pytest.fixture
def files(tmp_path):
    """The same names in files of all kinds, with other types."""
    numbers = pl.DataFrame({"a": [1, 2, 3], "b": [1.5, 2.5, 3.5]})
    numbers.write_parquet(tmp_path / "one.parquet")
    numbers.cast({"a": pl.Int8}).write_parquet(tmp_path / "two.parquet")
    numbers.write_csv(tmp_path / "one.csv")
    numbers.select("a", "b", c="a").write_csv(tmp_path / "wide.csv")
    numbers.write_ndjson(tmp_path / "one.ndjson")
    numbers.write_ipc(tmp_path / "one.arrow")
    numbers.cast({"a": pl.Int16}).write_ipc(tmp_path / "two.arrow")
    for part in (1, 2):
        (tmp_path / f"hive/part={part}").mkdir(parents=True)
        numbers.write_parquet(tmp_path / f"hive/part={part}/0.parquet")
    return tmp_path


def _shared(files):
    some = pl.scan_csv(files / "one.csv").filter(pl.col("a") > 1)
    return some.join(some.group_by("a").len(), on="a")


PLANS = {
    "one file": lambda f: pl.scan_parquet(f / "one.parquet").filter(pl.col("a") > 1),
    "two types": lambda f: pl.scan_parquet(f / "one.parquet").join(pl.scan_parquet(f / "two.parquet"), on="b"),
    "the other way": lambda f: pl.scan_parquet(f / "two.parquet").join(pl.scan_parquet(f / "one.parquet"), on="b"),
    "right join": lambda f: pl.scan_csv(f / "one.csv").join(pl.scan_csv(f / "wide.csv"), on="a", how="right"),
    "cross join": lambda f: pl.scan_csv(f / "one.csv").join(pl.scan_csv(f / "wide.csv"), how="cross"),
    "inequality": lambda f: pl.scan_csv(f / "one.csv").join_where(
        pl.scan_csv(f / "wide.csv"), pl.col("a") < pl.col("a_right")
    ),
    "hidden files": lambda f: pl.scan_ipc(f / "one.arrow").join(pl.scan_ipc(f / "two.arrow"), on="b"),
    "many": lambda f: pl.scan_parquet(f / "*.parquet", cast_options=pl.ScanCastOptions(integer_cast="upcast")),
    "folder": lambda f: pl.scan_parquet(f / "hive"),
    "list": lambda f: pl.scan_csv([f / "one.csv", f / "one.csv"], include_file_paths="path"),
    "no rows": lambda f: pl.concat([pl.scan_csv(f / "one.csv").head(0), pl.scan_csv(f / "one.csv")]),
    "several in one": lambda f: pl.concat([pl.scan_csv(f / "one.csv")] * 3),
    "kinds": lambda f: pl.concat(
        [
            pl.scan_ndjson(f / "one.ndjson"),
            pl.DataFrame({"a": [7], "b": [0.5]}).lazy(),
            pl.scan_csv(f / "one.csv", row_index_name="n").drop("n"),
            pl.scan_ipc(f / "one.arrow"),
        ]
    ),
    "side by side": lambda f: pl.concat(
        [pl.scan_ndjson(f / "one.ndjson"), pl.scan_csv(f / "wide.csv").select("c")], how="horizontal"
    ),
    "diagonal": lambda f: pl.concat([pl.scan_ndjson(f / "one.ndjson"), pl.scan_csv(f / "wide.csv")], how="diagonal"),
    "shared": _shared,
    "cached": lambda f: pl.concat([pl.scan_csv(f / "one.csv").cache(), pl.scan_csv(f / "one.csv").cache()]),
    "as of": lambda f: pl.scan_csv(f / "one.csv").join_asof(pl.scan_csv(f / "wide.csv"), on="a"),
    "merged": lambda f: pl.scan_csv(f / "one.csv").merge_sorted(pl.scan_csv(f / "one.csv").filter(a=2), key="a"),
}


@pytest.mark.parametrize("make", PLANS.values(), ids=PLANS)
def test_sources_are_the_same_all_at_once_and_one_by_one(files, enabled, make):
    plan = Plan.of(make(files))
    at_once, one_by_one = (sources_of(plan, enabled.inputs, whole=whole) for whole in (True, False))
    assert at_once.found == one_by_one.found
    assert {number: each for number, each in at_once.identities.items() if each} == {
        number: each for number, each in one_by_one.identities.items() if each
    }
    assert at_once.frame is not None
    assert at_once.frame.collect_schema() == make(files).collect_schema()


@pytest.mark.parametrize("make", PLANS.values(), ids=PLANS)
def test_a_resolved_plan_gives_what_the_query_gives(files, enabled, make):
    expected = make(files).collect(engine=nectar.PolarsEngine("in-memory").inner)
    for _ in range(2):
        assert_frame_equal(make(files).collect(engine="in-memory"), expected, check_row_order=False)
        assert enabled.settle(30)
    assert not nectar.last_run().computed


def test_relative_paths(files, enabled, monkeypatch):
    monkeypatch.chdir(files)
    plan = Plan.of(pl.scan_csv("one.csv").join(pl.scan_parquet("one.parquet"), on="a"))
    at_once, one_by_one = (sources_of(plan, enabled.inputs, whole=whole) for whole in (True, False))
    assert at_once.found == one_by_one.found


def test_files_are_looked_at_once_before_the_query_runs(files, enabled, monkeypatch):
    made = []
    deserialize = pl.LazyFrame.deserialize
    monkeypatch.setattr(pl.LazyFrame, "deserialize", lambda source: made.append(1) or deserialize(source))
    held = []
    monkeypatch.setattr(enabled.keeper, "submit", lambda work, *_: held.append(work))
    pl.scan_parquet(files / "one.parquet").join(pl.scan_csv(files / "wide.csv"), on="a").collect()
    assert len(made) == 1
    held[0]()
    assert len(made) > 1, "whether anything has changed is looked at anew"


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_a_file_rewritten_after_it_was_identified_is_not_kept_under_the_old_key(files, enabled, monkeypatch, kind):
    scan = {"parquet": pl.scan_parquet, "csv": pl.scan_csv, "arrow": pl.scan_ipc}[kind]
    path = files / f"one.{kind}"
    other = pl.DataFrame({"a": [10, 20, 30], "b": [1.5, 2.5, 3.5]})
    write = {"parquet": other.write_parquet, "csv": other.write_csv, "arrow": other.write_ipc}[kind]
    identify, before = Inputs.identify, path.read_bytes()
    write(files / "other")
    after = (files / "other").read_bytes()  # written here: Polars may fail over files that it writes within a query

    def identify_and_rewrite(self, urls):
        found = identify(self, urls)
        (files / "aside").write_bytes(after)
        os.utime(files / "aside", (1_000_000_000, 1_000_000_000))  # Polars may know files of one moment as one
        os.replace(files / "aside", path)
        return found

    query = lambda: scan(path).select(pl.col("a").sum())
    with monkeypatch.context() as patch:
        patch.setattr(Inputs, "identify", identify_and_rewrite)
        assert query().collect().item() == 60
        assert enabled.settle(30)
    assert query().collect().item() == 60
    path.write_bytes(before)
    assert query().collect().item() == 6


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_a_file_rewritten_before_it_is_identified(files, enabled, monkeypatch, kind):
    """Nothing that runs may remember what the file was before."""
    scan = {"parquet": pl.scan_parquet, "csv": pl.scan_csv, "arrow": pl.scan_ipc}[kind]
    path = files / f"one.{kind}"
    other = pl.DataFrame({"a": [10, 20, 30, 40, 50], "b": [1.5, 2.5, 3.5, 0.0, 0.0]})
    write = {"parquet": other.write_parquet, "csv": other.write_csv, "arrow": other.write_ipc}[kind]
    write(files / "aside")
    identify, aside = Inputs.identify, [files / "aside"]

    def rewrite_and_identify(self, urls):
        if aside:
            os.replace(aside.pop(), path)
        return identify(self, urls)

    monkeypatch.setattr(Inputs, "identify", rewrite_and_identify)
    query = lambda: scan(path).select(pl.col("a").sum())
    for _ in range(3):
        assert query().collect().item() == 150
        assert enabled.settle(30)
    assert not nectar.last_run().computed


def test_what_is_refused_is_not_resolved_as_a_copy(files, enabled):
    """Resolving may call the functions in a plan, and those of a copy would act on copies."""
    query = pl.scan_csv(files / "one.csv").pipe_with_schema(lambda frame, schema: frame)
    assert keyed(Plan.of(query), enabled.inputs).resolved is None
    assert keyed(Plan.of(pl.scan_csv(files / "one.csv")), enabled.inputs).resolved is not None


SCANS = {
    "parquet": (pl.scan_parquet, "write_parquet"), "csv": (pl.scan_csv, "write_csv"), "ipc": (pl.scan_ipc, "write_ipc"),
    "ndjson": (pl.scan_ndjson, "write_ndjson"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """Writes one more file into a folder each time."""
    where = tmp_path / "growing"
    where.mkdir()

    def come(kind, rows=3):
        number = len(list(where.iterdir()))
        getattr(pl.DataFrame({"a": [number] * rows}), SCANS[kind][1])(where / f"{number}.x")

    come.scan = lambda kind: SCANS[kind][0](f"{where}/*.x")
    return come


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("kind", SCANS)
def test_a_file_that_comes_while_a_query_runs_is_not_read_and_does_not_matter(
    folder, enabled, monkeypatch, kind, engine
):
    folder(kind)
    run = Look._run

    def run_late(self, *arguments):
        folder(kind)
        found = run(self, *arguments)
        folder(kind)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Look, "_run", run_late)
        assert folder.scan(kind).collect(engine=engine)["a"].to_list() == [0, 0, 0]
    assert enabled.settle(30)
    assert nectar.last_run().parts[0].kept
    assert folder.scan(kind).collect(engine=engine)["a"].to_list() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_file_that_comes_while_a_part_is_computed_by_itself_matters(folder, enabled, monkeypatch):
    """Parts look for their files again: what they found may be more than their key stands for."""
    kept = []
    keep = type(enabled.catalog).keep

    def keep_and_tell(self, *arguments, about="", **options):
        kept.append(about)
        return keep(self, *arguments, about=about, **options)

    monkeypatch.setattr(type(enabled.catalog), "keep", keep_and_tell)
    query = lambda least: folder.scan("parquet").group_by("a").agg(pl.len()).filter(pl.col("len") > least)
    folder("parquet")
    for least in (0, 1):
        query(least).collect()
        assert enabled.settle(30)
    run = Look._run

    def run_late(self, *arguments):
        folder("parquet")
        return run(self, *arguments)

    kept.clear()
    with monkeypatch.context() as patched:
        patched.setattr(Look, "_run", run_late)
        query(2).collect()
    assert enabled.settle(30)
    assert {about.split()[0] for about in kept} <= {"ranges", "state"}, "groups and result are not those of one file"


@pytest.mark.parametrize("make", PLANS.values(), ids=PLANS)
def test_schemas_found_without_opening_files_are_those_of_polars(files, enabled, make):
    plan = Plan.of(make(files))
    sources_of(plan, enabled.inputs, whole=True)
    for number in range(len(plan.steps)):
        assert plan.schema(number) == Plan.of(make(files)).frame(number).collect_schema()


@pytest.mark.parametrize(
    "pattern", ["*", "*.csv", "a*", "a*a.csv", ".*", "x y*.csv", "*.none", "*a*", "a?.csv", "[ab]*"]
)
def test_files_that_are_guessed_are_those_that_polars_finds(tmp_path, enabled, pattern):
    for name in ("a.csv", "aa.csv", "b.csv", ".hidden.csv", "x y.csv", "x y z.csv", "10.csv", "9.csv", "B.csv"):
        (tmp_path / name).write_text("a\n1\n")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "folder.csv/inner.csv").write_text("a\n1\n")
    plan = Plan.of(pl.scan_csv(tmp_path / pattern))
    try:
        expected = sources_of(plan, enabled.inputs, whole=False).found[0].files
    except pl.exceptions.PolarsError as failure:
        with pytest.raises(type(failure)):
            sources_of(Plan.of(pl.scan_csv(tmp_path / pattern)), enabled.inputs, whole=True)
        return
    assert sources_of(Plan.of(pl.scan_csv(tmp_path / pattern)), enabled.inputs, whole=True).found[0].files == expected


@pytest.mark.parametrize(("options", "refused"), [
    ({"aws_access_key_id": "A", "aws_secret_access_key": "B", "aws_region": "eu-west-1"}, False), ({}, False),
    ({"aws_endpoint_url": "http://elsewhere"}, True), ({"aws_virtual_hosted_style_request": "true"}, True),
])  # fmt: skip
def test_storage_options_that_say_whom_to_ask_are_refused(options, refused):
    (step,) = Plan.of(pl.scan_parquet("s3://bucket/x.parquet", storage_options=options, credential_provider=None)).steps
    assert ("where to look" in refusal_of(step)) is refused


def test_a_local_file_is_where_it_is_whatever_the_storage_options_say(files):
    (step,) = Plan.of(pl.scan_parquet(files / "one.parquet", storage_options={"aws_endpoint_url": "http://x"})).steps
    assert refusal_of(step) == ""
