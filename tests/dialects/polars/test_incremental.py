"""Group-bys over growing streams: states of parts are merged, and the answer is that of plain Polars."""

import os
import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import nectar
from nectar import session
from nectar.dialects.polars import growth as growth_module
from nectar.dialects.polars.incremental import advance as advance_module
from nectar.dialects.polars.incremental.groups import StateParts

AGGREGATES = {
    "sum": pl.col("v").sum(), "len": pl.len(), "count": pl.col("v").count().alias("c"), "min": pl.col("v").min(),
    "max of floats": pl.col("f").max(), "mean": pl.col("v").mean(), "mean of floats": pl.col("f").mean(),
    "sum of floats": pl.col("f").sum(), "sum of booleans": pl.col("b").sum(), "any": pl.col("b").any(),
    "all": pl.col("b").all(), "null_count": pl.col("v").null_count(), "first": pl.col("s").first(),
    "last": pl.col("v").last(), "ratio": (pl.col("v").sum() / pl.len()).alias("r"),
    "filtered": pl.col("v").filter(pl.col("b")).sum(), "mean of filtered": pl.col("v").filter(pl.col("b")).mean(),
    "finished": pl.col("v").sum().cast(pl.Float32).round(1),
    "chosen": pl.when(pl.col("v").sum() > 300).then(pl.len()).otherwise(0).alias("w"),
    "of an expression": (pl.col("v") * 2 + 1).max().alias("e"), "max of texts": pl.col("s").max(),
    "max of days": pl.col("d").max(), "decimals": pl.col("m").sum(), "small": pl.col("u").sum(),
    "std": pl.col("v").std(), "n_unique": pl.col("v").n_unique(), "list": pl.col("v"),
    "filtered first": pl.col("v").filter(pl.col("b")).first(), "var": pl.col("f").var(ddof=2),
}  # fmt: skip
SEVERAL = {"all columns": pl.all().max(), "two columns": pl.col("v", "f").mean().name.suffix("_mean")}
NOT_MERGED = {
    "median": pl.col("v").median(), "sorted first": pl.col("v").sort().first(),
    "distinct": pl.col("v").unique().sum(), "product of floats": pl.col("f").product(),
}  # fmt: skip


def rows(seed, count=40):
    draw = random.Random(seed)
    pick = lambda *values: [draw.choice(values) for _ in range(count)]
    return pl.DataFrame(
        {
            "k": pick("a", "b", "c", None), "j": pick(1, 2), "v": pick(None, 1, 2, 250, -7), "s": pick("x", "y", None),
            "f": pick(None, 1.5, float("nan"), -2.25, 1e6), "b": pick(True, False, None), "u": pick(1, 255, None),
            "d": pl.Series(pick(1, 100, None)).cast(pl.Int32).cast(pl.Date),
            "m": pl.Series(pick(1, 2, None)).cast(pl.Decimal(10, 2)),
        },
        schema_overrides={"v": pl.Int16, "u": pl.UInt8},
    )  # fmt: skip


class Days:
    """A folder to which days come, and from which they go."""

    def __init__(self, folder, form="parquet"):
        self.folder, self.form, self.next, self.seed = folder, form, 0, 0
        folder.mkdir()

    def come(self, count=40):
        self.seed += 1
        path = self.folder / f"{self.next:03}.{self.form}"
        getattr(rows(self.seed, count), f"write_{self.form}")(path)
        os.utime(path, (1_000_000_000 + self.seed, 1_000_000_000 + self.seed))
        self.next += 1

    def go(self):
        sorted(self.folder.iterdir())[0].unlink()

    def rewrite(self):
        self.next -= 1
        self.come()

    def scan(self):
        return getattr(pl, f"scan_{self.form}")(f"{self.folder}/*.{self.form}")


def checked(query, order=False):
    """The answer under Nectar, which is that of plain Polars; and how many rows were read to get it."""
    nectar_answer = query().collect()
    session.current().settle()
    with nectar.reuse(off=True):
        plain = query().collect()
    assert_frame_equal(nectar_answer, plain, check_row_order=order, rel_tol=1e-9, abs_tol=1e-9)


@pytest.fixture(autouse=True)
def _session(enabled):
    """Nectar is on."""


@pytest.fixture
def states(monkeypatch):
    """For each group-by that was made from states, how many files those computed anew were of."""
    found = []

    def advance(parts, *args):
        done = before(parts, *args)
        if parts.are_states:
            found.append([piece.end - piece.start for piece in done.new])
        return done

    before = growth_module.advance
    monkeypatch.setattr(growth_module, "advance", advance)
    return lambda: [found.pop(0) for _ in range(len(found))]


@pytest.mark.parametrize("name", AGGREGATES | SEVERAL)
def test_every_aggregate_of_a_growing_stream(tmp_path, name, states):
    days = Days(tmp_path / "days")
    aggregate = (AGGREGATES | SEVERAL)[name]
    query = lambda: days.scan().filter(pl.col("j") < 3).group_by("k", "j").agg(aggregate)
    for _ in range(4):
        days.come()
        checked(query)
    assert states() == [[2], [1], [1]], "first as a whole; the second run shows the pattern; then each day alone"


@pytest.mark.parametrize("name", NOT_MERGED)
def test_other_aggregates_are_computed_as_a_whole(tmp_path, name, states):
    days = Days(tmp_path / "days")
    for _ in range(3):
        days.come()
        checked(lambda: days.scan().group_by("j").agg(NOT_MERGED[name]))
    assert states() == []


@pytest.mark.parametrize("form", ["parquet", "csv", "ndjson", "ipc"])
def test_every_format(tmp_path, form):
    days = Days(tmp_path / "days", form)
    for _ in range(4):
        days.come()
        checked(lambda: days.scan().group_by("k").agg(pl.col("v").sum(), pl.col("f").mean(), pl.len()))


def test_order_is_kept_where_it_is_promised(tmp_path):
    days = Days(tmp_path / "days")
    for _ in range(4):
        days.come()
        checked(lambda: days.scan().group_by("k", "s", maintain_order=True).agg(pl.col("v").sum()), order=True)


def test_a_window_that_moves(tmp_path, states):
    days = Days(tmp_path / "days")
    for _ in range(5):
        days.come()
    for _ in range(5):
        checked(lambda: days.scan().group_by("k").agg(pl.col("v").sum(), pl.len()))
        days.come()
        days.go()
    assert states() == [[5], [1, 1, 1, 1, 1], [1], [1]], "once heads are lost, each day has a state of its own"


def test_histories_branch(tmp_path, states):
    days = Days(tmp_path / "days")
    query = lambda: days.scan().group_by("k").agg(pl.col("v").sum())
    for _ in range(3):
        days.come()
        checked(query)
    days.rewrite()
    checked(query)
    assert states() == [[2], [1], [1]], "the last day became another; the days before it are known"


def test_what_was_kept_long_ago_serves_a_branch(tmp_path, states, monkeypatch):
    """Growing looks at what was kept last; where that is not enough, at everything."""
    monkeypatch.setattr(advance_module, "LATEST", 2)
    days = Days(tmp_path / "days")
    query = lambda: days.scan().group_by("k").agg(pl.col("v").sum())
    for _ in range(9):
        days.come()
        checked(query)
    for path in sorted(days.folder.iterdir())[4:]:
        path.unlink()
    days.come()
    checked(query)
    assert states() == [[2], *[[1]] * 7, [1]], "the first four days were kept many runs ago, and are known"


def test_what_stands_above_goes_on(tmp_path):
    days = Days(tmp_path / "days")
    for _ in range(4):
        days.come()
        checked(
            lambda: days.scan().with_columns(w=pl.col("v") * 2).group_by("k").agg(pl.col("w").sum(), pl.len())
            .filter(pl.col("len") > 1).sort("k").with_columns(share=pl.col("w") / pl.col("w").sum()).head(3),
            order=True,
        )  # fmt: skip


def test_exact_floats_forbids_merging_them(tmp_path, states):
    days = Days(tmp_path / "days")
    with nectar.reuse(home=tmp_path / "exact", exact_floats=True):
        for _ in range(3):
            days.come()
            checked(lambda: days.scan().group_by("k").agg(pl.col("f").sum()))
    assert states() == []


@pytest.mark.parametrize("name", ["sum", "len", "mean"])
def test_where_groups_are_many_new_rows_are_merged_with_the_state_at_once(tmp_path, monkeypatch, name):
    monkeypatch.setattr(advance_module, "MANY_GROUPS", 1)
    merged = []
    before = StateParts.extended
    monkeypatch.setattr(StateParts, "extended", lambda self, *args: merged.append(1) or before(self, *args))
    days = Days(tmp_path / "days")
    with nectar.reuse(home=tmp_path / "home"):
        for _ in range(6):
            days.come()
            checked(lambda: days.scan().group_by("k").agg(AGGREGATES[name].alias("x")))
        days.rewrite()
        checked(lambda: days.scan().group_by("k").agg(AGGREGATES[name].alias("x")))
    assert len(merged) >= 3


@pytest.mark.parametrize("name", ["n_unique", "first"])
def test_where_that_cannot_be_the_new_rows_get_a_state_of_their_own(tmp_path, monkeypatch, states, name):
    monkeypatch.setattr(advance_module, "MANY_GROUPS", 1)
    merged = []
    monkeypatch.setattr(StateParts, "extended", lambda *_: merged.append(1))
    days = Days(tmp_path / "days")
    with nectar.reuse(home=tmp_path / "home"):
        for _ in range(4):
            days.come()
            checked(lambda: days.scan().group_by("k", maintain_order=True).agg(AGGREGATES[name].alias("x")))
    assert states()
    assert merged == []


def test_rows_with_other_types_than_the_state_are_not_merged_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(advance_module, "MANY_GROUPS", 1)
    monkeypatch.setattr(StateParts, "extended", lambda *_: None)
    days = Days(tmp_path / "days")
    with nectar.reuse(home=tmp_path / "home"):
        for _ in range(4):
            days.come()
            checked(lambda: days.scan().group_by("k").agg(AGGREGATES["sum"].alias("x")))


@settings(deadline=None, max_examples=settings().max_examples // 2)  # each takes a while
@given(history=st.lists(st.sampled_from(["come", "come", "go", "rewrite", "run"]), min_size=3, max_size=9),
       some=st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, max_size=4, unique=True),
       many=st.sampled_from([1, 200_000]))  # fmt: skip
def test_any_history(tmp_path_factory, history, some, many):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(advance_module, "MANY_GROUPS", many)
        _run_any_history(tmp_path_factory, history, some)


def _run_any_history(tmp_path_factory, history, some):
    folder = tmp_path_factory.mktemp("history")
    days = Days(folder / "days")
    days.come()
    aggregates = [AGGREGATES[name].alias(f"a{at}") for at, name in enumerate(some)]
    with nectar.reuse(home=folder / "home"):
        for event in [*history, "run"]:
            if event == "run":
                checked(lambda: days.scan().group_by("k").agg(*aggregates))
            elif event == "come" or len(list(days.folder.iterdir())) > 1:
                getattr(days, event)()


@pytest.fixture
def put(monkeypatch):
    """For each row-wise part that was put together, how many entries it was made from."""
    found = []

    def advance(parts, *args):
        done = before(parts, *args)
        if not parts.are_states:
            found.append(None if done is None else len(done.used))
        return done

    before = growth_module.advance
    monkeypatch.setattr(growth_module, "advance", advance)
    return lambda: [found.pop(0) for _ in range(len(found))]


def test_rows_of_a_growing_stream(tmp_path, put):
    days = Days(tmp_path / "days")
    query = lambda: days.scan().filter(pl.col("v") > 1).with_columns(w=pl.col("v") * 2).select("k", "w", "f")
    for _ in range(4):
        days.come()
        checked(query, order=True)
    assert put() == [1, 1, 1]


def twice(value):
    return value * 2


FUNCTIONS = {
    "for each row": (pl.col("v").map_elements(twice, return_dtype=pl.Int64), True),
    "declared": (pl.col("v").map_batches(twice, return_dtype=pl.Int16, is_elementwise=True), True),
    "without a type": (pl.col("v").map_elements(twice), False),
    "of all rows": (pl.col("v").map_batches(lambda rows: rows - rows.min(), return_dtype=pl.Int16), False),
}


@pytest.mark.filterwarnings("ignore::polars.exceptions.MapWithoutReturnDtypeWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_that_functions_make(tmp_path, name, put):
    days = Days(tmp_path / "days")
    expression, by_row = FUNCTIONS[name]
    for _ in range(3):
        days.come()
        checked(lambda: days.scan().filter(pl.col("v") > 1).with_columns(w=expression), order=True)
    assert [count for count in put() if count] == ([1, 1] if by_row else [])


def test_days_cleaned_by_others_serve_a_week(tmp_path, put):
    days = Days(tmp_path / "days")
    clean = lambda scan: scan.filter(pl.col("b")).select("k", "v")
    for _ in range(5):
        days.come()
    for path in sorted(days.folder.iterdir()):
        checked(lambda: clean(pl.scan_parquet(path)), order=True)
    put()
    checked(lambda: clean(days.scan()).sort("v", "k", nulls_last=True, maintain_order=True), order=True)
    assert put() == [5]


def test_rows_that_look_at_others_are_computed_as_a_whole(tmp_path, put):
    days = Days(tmp_path / "days")
    for _ in range(3):
        days.come()
        checked(lambda: days.scan().with_columns(share=pl.col("v") / pl.col("v").sum()), order=True)
        checked(lambda: days.scan().filter(pl.col("v") > pl.col("v").mean()), order=True)
        checked(lambda: days.scan().with_columns(pl.col("v").cum_sum().alias("c")), order=True)
    assert put() == []


CLOSED = {
    "sort": lambda rows: rows.sort("v", "s", "f", maintain_order=True),
    "sort descending, nulls last": lambda rows: rows.sort("s", "v", descending=[True, False], nulls_last=True,
                                                           maintain_order=True),
    "top": lambda rows: rows.sort("v", "d", "k", "s", "f", descending=True, maintain_order=True).head(7),
    "bottom": lambda rows: rows.sort("v", "d", "k", "s", "f", maintain_order=True).tail(7),
    "head": lambda rows: rows.head(55), "tail": lambda rows: rows.tail(55),
    "unique": lambda rows: rows.select("k", "s", "b").unique(maintain_order=True),
    "unique first": lambda rows: rows.unique(subset=["k", "s"], keep="first", maintain_order=True),
    "unique last": lambda rows: rows.unique(subset=["k", "s"], keep="last", maintain_order=True),
}  # fmt: skip


@pytest.mark.parametrize("name", CLOSED)
def test_sorts_slices_and_duplicates(tmp_path, name, put):
    days = Days(tmp_path / "days")
    for _ in range(4):
        days.come()
        checked(lambda: CLOSED[name](days.scan().filter(pl.col("j") == 1)), order=True)
    assert put() == [1, 1, 1]


NOT_CLOSED = {
    "from the middle": lambda rows: rows.slice(20, 10),
    "no duplicates at all": lambda rows: rows.select("k", "v").unique(keep="none", maintain_order=True),
    "sorted by others": lambda rows: rows.sort(pl.col("v") - pl.col("v").mean(), maintain_order=True),
    "every other": lambda rows: rows.gather_every(2),
    "numbered, and some of them": lambda rows: rows.with_row_index().filter(pl.col("index") % 2 == 0),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_CLOSED)
def test_what_parts_cannot_tell(tmp_path, name, put):
    days = Days(tmp_path / "days")
    for _ in range(3):
        days.come()
        checked(lambda: NOT_CLOSED[name](days.scan()), order=True)
    assert [count for count in put() if count] == []


JOINS = ["inner", "left", "semi", "anti", "cross"]


@pytest.fixture
def names(tmp_path):
    path = tmp_path / "names.parquet"

    def write(*values):
        pl.DataFrame({"k": list(values), "n": range(len(values))}).write_parquet(path)
        return path

    return write


@pytest.mark.parametrize("how", JOINS)
def test_a_join_whose_left_side_grows(tmp_path, how, names, put, states):
    days, path = Days(tmp_path / "days"), names("a", "b", "z")
    on = {} if how == "cross" else {"on": "k"}
    rows = lambda: days.scan().filter(pl.col("v") > 1).join(pl.scan_parquet(path), how=how, **on)
    for _ in range(3):
        days.come(count=12)
        checked(rows)
        checked(lambda: rows().group_by("j").agg(pl.col("v").sum(), pl.len()))
    assert put() == [1, 1]
    assert states() == [[2], [1]]
    names("b", "q", "a")
    days.come(count=12)
    checked(rows)
    checked(lambda: rows().group_by("j").agg(pl.col("v").sum(), pl.len()))
    assert set(put()) == {None}, "the other side changed: nothing of before can be used"


@pytest.mark.parametrize("how", ["right", "full"])
def test_joins_that_look_at_all_rows_of_the_left_side(tmp_path, how, names, put, states):
    days, path = Days(tmp_path / "days"), names("a", "b", "z")
    for _ in range(3):
        days.come(count=12)
        checked(lambda: days.scan().join(pl.scan_parquet(path), how=how, on="k"))
    assert [count for count in put() if count] == []


def test_a_stream_joined_with_itself_is_computed_as_a_whole(tmp_path, put):
    days = Days(tmp_path / "days")
    for _ in range(3):
        days.come(count=12)
        checked(lambda: days.scan().select("k", "v").join(days.scan().select("k", "j"), on="k"))
    assert [count for count in put() if count] == []


ODD_ROWS = {
    "literals alone": lambda rows: rows.select(pl.lit(1).alias("one")),
    "literals beside columns": lambda rows: rows.select("v", pl.lit(1).alias("one")),
    "a literal in each row": lambda rows: rows.with_columns(one=pl.lit("x")),
    "a column of literals": lambda rows: rows.head(3).with_columns(s=pl.Series([1, 2, 3])),
    "bits of a whole column": lambda rows: rows.with_columns(bits=pl.col("u").bitwise_or()),
    "bits of each row": lambda rows: rows.with_columns(bits=pl.col("u").bitwise_count_ones()),
    "texts of a whole column": lambda rows: rows.select(pl.col("s").str.join("-")),
    "is any": lambda rows: rows.with_columns(any=pl.col("b").any()),
    "among a list": lambda rows: rows.filter(pl.col("k").is_in(["a", "c"])),
    "rows that repeat": lambda rows: rows.filter(pl.col("v").is_duplicated()),
}  # fmt: skip
ODD_AGGREGATES = {
    "sum of a literal": pl.lit(5).sum().alias("x"), "a literal": pl.lit("x").alias("x"),
    "count of a literal": pl.lit(1).count().alias("x"), "mean of a literal": pl.lit(4).mean().alias("x"),
    "a literal, filtered": pl.lit(1).filter(pl.col("b")).sum().alias("x"),
    "a chosen literal": pl.when(pl.col("b")).then(1).otherwise(0).sum().alias("x"),
    "filtered by a literal": pl.col("v").filter(pl.lit(True)).sum().alias("x"),
    "bits": pl.col("u").bitwise_xor(), "first of a literal": pl.lit(3).first().alias("x"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_ROWS)
def test_rows_that_only_look_row_wise(tmp_path, name):
    days = Days(tmp_path / "days")
    for _ in range(4):
        days.come(count=5)
        checked(lambda: ODD_ROWS[name](days.scan()), order=True)


@pytest.mark.parametrize("name", ODD_AGGREGATES)
def test_aggregates_that_only_look_mergeable(tmp_path, name):
    days = Days(tmp_path / "days")
    for _ in range(4):
        days.come(count=9)
        checked(lambda: days.scan().group_by("j").agg(ODD_AGGREGATES[name]))


def test_times_whose_format_the_first_row_tells(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for at, text in enumerate(["2026-01-05", "05/02/2026", "2026-03-01"]):
        pl.DataFrame({"t": [text, text]}).write_parquet(folder / f"{at}.parquet")
        scan = lambda: pl.scan_parquet(folder)
        checked(lambda: scan().with_columns(d=pl.col("t").str.to_date(strict=False)), order=True)
        checked(lambda: scan().select(pl.col("t").str.to_date("%Y-%m-%d", strict=False)), order=True)


OPTIONS = [
    {"n_rows": 30},
    {"row_index_name": "i"},
    {"include_file_paths": "path"},
    {"n_rows": 30, "row_index_name": "i"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_scans_that_number_or_cut_the_whole_stream(tmp_path, form, options):
    days = Days(tmp_path / "days", form)
    scan = lambda: getattr(pl, f"scan_{form}")(f"{days.folder}/*.{form}", **options)
    for _ in range(4):
        days.come(count=20)
        checked(lambda: scan().filter(pl.col("v") > 0).select(pl.exclude("f")), order=True)
        checked(lambda: scan().group_by("j").agg(pl.col("v").sum(), pl.len()))
