"""Attempts to get a wrong answer out of streams that grow: each once was one. Order and errors are answers too."""

import datetime
import os

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import nectar
from nectar import session

BERLIN = "Europe/Berlin"


@pytest.fixture(autouse=True)
def _session(enabled):
    """Nectar is on."""


class Files:
    """A stream of Parquet files that come one by one."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()

    def come(self, frame):
        path = self.folder / f"{len(list(self.folder.iterdir())):03}.parquet"
        frame.write_parquet(path)
        os.utime(path, (1_000_000_000, 1_000_000_000))

    @property
    def paths(self):
        return sorted(self.folder.iterdir())

    def scan(self, **options):
        return pl.scan_parquet(self.paths, **options)


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path / "files")


@pytest.fixture
def others(tmp_path):
    return Files(tmp_path / "others")


def answered(query):
    try:
        return query().collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        return error


def checked(query, ordered=True):
    """The answer is that of plain Polars, or the error; whether something was reused."""
    answer = answered(query)
    reused = any(part.outcome == "reused" for part in nectar.last_run().parts)
    session.current().settle()
    with nectar.reuse(off=True):
        plain = answered(query)
    if isinstance(answer, Exception) or isinstance(plain, Exception):
        assert (type(answer), str(answer)) == (type(plain), str(plain))
    else:
        assert_frame_equal(answer, plain, check_row_order=ordered)
    return reused


def grown(files, frames, query, ordered=True):
    """The query after each file; for each time whether something was reused."""
    found = []
    for frame in frames:
        files.come(frame)
        found.append(checked(lambda: query(files.scan()), ordered))
    return found


# scans that are no concatenation of their files


@pytest.mark.parametrize("options", [{"n_rows": 5}, {"row_index_name": "at"}], ids=["limited", "numbered"])
def test_results_of_single_files_are_not_put_together_where_the_scan_counts_rows(files, options):
    for at in range(3):
        files.come(pl.DataFrame({"v": range(10 * at, 10 * at + 10)}))
    for run in ([0], [1], [2], [0, 1], [0, 1, 2], [2, 0]):
        paths = [files.paths[at] for at in run]
        checked(lambda paths=paths: pl.scan_parquet(paths, **options).filter(pl.col("v") >= 0))


# joins in order


@pytest.mark.parametrize(
    ("how", "order", "reused"),
    [
        ("full", "left_right", False), ("full", "right_left", False), ("left", "right_left", False),
        ("right", "left_right", False), ("left", "left_right", True), ("right", "right_left", True),
        ("inner", "left_right", True), ("inner", "right_left", True),
    ],
)  # fmt: skip
def test_streams_that_are_cut_together_keep_the_order_of_a_join(files, others, how, order, reused):
    found = []
    for at in range(4):
        files.come(pl.DataFrame({"k": range(10 * at, 10 * at + 6), "a": at}))
        others.come(pl.DataFrame({"k": range(10 * at + 3, 10 * at + 9), "b": at}))
        query = lambda: files.scan().join(others.scan(), on="k", how=how, maintain_order=order)
        found.append(checked(query))
    assert found[-1] == reused


# clocks that are set back


def night(*minutes):
    """Times in Berlin, by minutes from two o'clock on, in the night in which two to three comes twice."""
    begin = datetime.datetime(2024, 10, 27, tzinfo=datetime.UTC)
    times = [begin + datetime.timedelta(minutes=each) for each in minutes]
    return pl.DataFrame({"t": pl.Series(times).dt.convert_time_zone(BERLIN), "v": range(len(times))})


NIGHT = (night(-500), night(50, 90), night(50, 55, 130), night(500))  # at 50 it is 2:50, at 90 it is 2:30


@pytest.mark.parametrize("aggregate", ["sum", "median"])
def test_groups_by_times_of_an_hour_that_comes_twice(files, aggregate):
    query = lambda rows: rows.group_by("t").agg(getattr(pl.col("v"), aggregate)())
    assert grown(files, NIGHT, query, ordered=False)[-1]


def test_joins_by_times_of_an_hour_that_comes_twice(files, others):
    for frame in NIGHT:
        files.come(frame)
        others.come(frame.rename({"v": "w"}))
        checked(lambda: files.scan().join(others.scan(), on="t"), ordered=False)
        checked(lambda: files.scan().join(others.scan(), on="t").group_by("w").agg(pl.col("v").sum()), ordered=False)


# files that need not be read, but would have failed


LEFT = [pl.DataFrame({"k": [at, at + 4], "s": ["1", "2"]}) for at in range(3)]
RIGHT = [pl.DataFrame({"k": [at, at + 4], "b": [1, 2]}) for at in range(4)]
FAR_AWAY = {
    "another type": pl.DataFrame({"k": [100, 200], "s": [1, 2]}),
    "a missing column": pl.DataFrame({"k": [100, 200]}),
    "a value that is no number": pl.DataFrame({"k": [100, 200], "s": ["bad", "2"]}),
    "nothing wrong": pl.DataFrame({"k": [100, 200], "s": ["3", "2"]}),
}
SIDES = {
    "as it is": lambda rows: rows,
    "cast": lambda rows: rows.with_columns(pl.col("s").cast(pl.Int64)),
    "cast in a filter": lambda rows: rows.filter(pl.col("s").cast(pl.Int64) > 0),
}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("wrong", FAR_AWAY)
@pytest.mark.parametrize("swapped", [False, True], ids=["left", "right"])
def test_a_file_that_joins_nothing_fails_as_it_would(files, others, side, wrong, swapped):
    def query():
        sides = [SIDES[side](files.scan()), others.scan()]
        one, other = reversed(sides) if swapped else sides
        return one.join(other, on="k").group_by("b").agg(pl.col("s").max(), pl.len())

    for left, right in zip([*LEFT, FAR_AWAY[wrong]], RIGHT, strict=True):
        files.come(left)
        others.come(right)
        checked(query, ordered=False)


# groups and windows


def test_a_function_that_is_handed_several_groups_sees_all_of_them(files):
    frames = [pl.DataFrame({"k": [2 * at, 2 * at, 2 * at + 1], "v": [1, 2, 3]}) for at in range(4)]
    running = pl.col("v").map_batches(lambda column: column.cum_sum(), return_dtype=pl.Int64, is_elementwise=True)
    assert grown(files, frames, lambda rows: rows.group_by("k", maintain_order=True).agg(running)) == [False] * 4


@pytest.mark.parametrize("every", ["1mo", "1q"])
@pytest.mark.parametrize("offset", ["50d", "-3d", "12h"])
@pytest.mark.parametrize("by", [None, "g"])
def test_windows_of_months_that_are_moved_begin_where_the_first_row_says(files, every, offset, by):
    day = datetime.datetime(2024, 1, 1)
    frames = [
        pl.DataFrame(
            {"t": [day + datetime.timedelta(days=40 * at + 11 * each) for each in range(4)], "g": ["x", "y"] * 2}
        )
        for at in range(6)
    ]
    windows = lambda rows: rows.group_by_dynamic("t", every=every, offset=offset, group_by=by, include_boundaries=True)
    grown(files, frames, lambda rows: windows(rows).agg(pl.len()))


# expressions


IN_A_COLUMN = {
    "a column": lambda rows: rows.with_columns(x=pl.col("v").is_in(pl.col("w"))),
    "a filter": lambda rows: rows.filter(~pl.col("v").is_in(pl.col("w"))),
    "an aggregate": lambda rows: rows.select(pl.col("v").is_in(pl.col("w")).sum()),
    "a key": lambda rows: rows.group_by(pl.col("v").is_in(pl.col("w")), maintain_order=True).agg(pl.len()),
}


@pytest.mark.filterwarnings("ignore")  # of Polars: a column that is no list is looked for in with all its rows
@pytest.mark.parametrize("name", IN_A_COLUMN)
def test_values_that_are_looked_for_in_a_column(files, name):
    frames = [pl.DataFrame({"v": [at, at + 1], "w": [at + 1, 5]}) for at in range(4)]
    grown(files, frames, IN_A_COLUMN[name])


def test_values_that_are_looked_for_among_given_ones_are_put_together(files):
    frames = [pl.DataFrame({"v": [at, at + 1]}) for at in range(4)]
    assert grown(files, frames, lambda rows: rows.with_columns(x=pl.col("v").is_in([1, 2])))[-1]


UNASKED = {
    "a cast": lambda: (pl.col("v") * 1000).cast(pl.Int8).sum(),
    "a function": lambda: pl.col("v").map_elements(lambda value: value // 0, return_dtype=pl.Int64).sum(),
    "reading a time": lambda: pl.col("v").cast(pl.String).str.to_datetime("%Y").max(),
}


@pytest.mark.parametrize("name", UNASKED)
def test_a_part_that_fails_by_a_column_nobody_asks_for_is_left_out(files, name):
    frames = [pl.DataFrame({"k": [at, at + 1], "v": [1, 2]}) for at in range(5)]
    query = lambda rows: rows.group_by("k").agg(pl.len(), UNASKED[name]()).select("k", "len")
    grown(files, frames, query, ordered=False)


@pytest.mark.parametrize("engine", ["streaming", "in-memory"])
@pytest.mark.parametrize("kind", [pl.Datetime("us"), pl.Date, pl.Categorical, pl.String])
def test_what_has_no_sum_fails_as_it_would(files, kind, engine):
    values = pl.Series([1, 2, None]).cast(pl.String if kind in (pl.Categorical, pl.String) else pl.Int32).cast(kind)
    beside = pl.col("k").filter(pl.col("k") > 1).mean()
    for at in range(4):
        files.come(pl.DataFrame({"k": [1, 2, at], "t": values}))
        query = lambda: files.scan().group_by("k").agg(beside.alias("m"), pl.col("t").sum())
        with pl.Config(engine_affinity=engine):
            checked(query, ordered=False)


# functions of groups that say nothing of a column they add


ABOVE = {
    "with_columns": lambda rows: rows.with_columns(x=pl.col("v") + 1),
    "select": lambda rows: rows.select(pl.all()),
    "nothing": lambda rows: rows,
}


def test_columns_that_a_function_of_groups_adds_unsaid(files):
    added = lambda group: group.head(1).with_columns(more=1)
    for at in range(5):
        files.come(pl.DataFrame({"k": [1, 2], "v": [at, at]}))
        for above in ABOVE.values():
            checked(lambda above=above: above(files.scan().group_by("k").map_groups(added, None)), ordered=False)


# files of lines


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_mark_of_the_encoding_among_lines_without_a_header(tmp_path, at):
    path = tmp_path / "log.csv"
    for number in range(5):
        with open(path, "ab") as file:
            file.write((b"\xef\xbb\xbf" if number == at else b"") + b"%d,2\n" % number)
        checked(lambda: pl.scan_csv(path, has_header=False, new_columns=["a", "b"], infer_schema=False).tail(3))
