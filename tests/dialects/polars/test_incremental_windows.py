"""Windows over sorted streams: those that are complete stay as they are; answers are those of plain Polars."""

import os
import random
from datetime import date, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import nectar
from nectar import session
from nectar.dialects.polars import growth as growth_module
from nectar.dialects.polars.incremental import extension

BEGIN = datetime(2024, 1, 30)
WINDOWS = {
    "every 7": lambda rows: rows.group_by_dynamic("t", every="7i"),
    "in groups": lambda rows: rows.group_by_dynamic("t", every="7i", group_by=["k", "j"]),
    "moved": lambda rows: rows.group_by_dynamic("t", every="7i", offset="3i", include_boundaries=True),
    "moved back": lambda rows: rows.group_by_dynamic("t", every="7i", offset="-4i", label="right", group_by="k"),
    "rolling": lambda rows: rows.rolling("t", period="9i"),
    "rolling in groups": lambda rows: rows.rolling("t", period="9i", group_by="k"),
    "rolling closed": lambda rows: rows.rolling("t", period="9i", closed="both"),
    "rolling open": lambda rows: rows.rolling("t", period="9i", closed="none", group_by=["j", "k"]),
    "hours": lambda rows: rows.group_by_dynamic("h", every="5h", label="right"),
    "months": lambda rows: rows.group_by_dynamic("h", every="1mo", include_boundaries=True),
    "days": lambda rows: rows.group_by_dynamic("d", every="1w"),
    "rolling hours": lambda rows: rows.rolling("h", period="1d2h"),
    "rolling days": lambda rows: rows.rolling("d", period="3d", group_by="k"),
}  # fmt: skip
NOT_EXTENDED = {
    "overlapping": lambda rows: rows.group_by_dynamic("t", every="7i", period="10i"),
    "with holes": lambda rows: rows.group_by_dynamic("t", every="7i", period="3i"),
    "from the first row": lambda rows: rows.group_by_dynamic("t", every="7i", start_by="datapoint"),
    "closed": lambda rows: rows.group_by_dynamic("t", every="7i", closed="right"),
    "labelled by rows": lambda rows: rows.group_by_dynamic("t", every="7i", label="datapoint"),
    "looking forward": lambda rows: rows.rolling("t", period="9i", offset="0i"),
    "over what is computed": lambda rows: rows.with_columns(t=pl.col("t") // 2).rolling("t", period="9i"),
    "nanoseconds": lambda rows: rows.with_columns(n=pl.col("h").cast(pl.Datetime("ns"))).rolling("n", period="9h"),
}  # fmt: skip
AGGREGATES = [pl.len(), pl.col("v").sum().alias("s"), pl.col("v").alias("all"), pl.col("v").max().alias("x")]


class Log:
    """A folder to which files come whose rows go on in time."""

    def __init__(self, folder, seed=0):
        self.folder, self.next, self.at, self.draw = folder, 0, 0, random.Random(seed)
        folder.mkdir()

    def come(self, count=12, step=4):
        times = []
        for _ in range(count):
            self.at += self.draw.randrange(step)
            times.append(self.at)
        self.write(times)

    def write(self, times):
        count, path = len(times), self.folder / f"{self.next:03}.parquet"
        pl.DataFrame(
            {
                "t": times, "h": [BEGIN + timedelta(hours=at) for at in times], "j": self.pick(3, count),
                "d": [date(2024, 1, 30) + timedelta(days=at // 2) for at in times],
                "k": ["xyz"[at] for at in self.pick(3, count)], "v": self.pick(1000, count),
            }, schema_overrides={"t": pl.Int64}
        ).write_parquet(path)  # fmt: skip
        os.utime(path, (1_000_000_000 + self.draw.randrange(10**6), 1_000_000_000))
        self.next += 1

    def pick(self, below, count):
        return [self.draw.randrange(below) for _ in range(count)]

    def go(self):
        sorted(self.folder.iterdir())[0].unlink()

    def scan(self):
        return pl.scan_parquet(f"{self.folder}/*.parquet")


def checked(query):
    """The answer under Nectar is that of plain Polars, in its order."""
    answer = query().collect()
    session.current().settle()
    with nectar.reuse(off=True):
        plain = query().collect()
    assert_frame_equal(answer, plain)


@pytest.fixture(autouse=True)
def _session(enabled):
    """Nectar is on."""


@pytest.fixture
def extended(monkeypatch):
    """For each node that could be extended, how many entries it was made from; None if it was computed as a whole."""
    found = []

    def extend(*args):
        done = before(*args)
        found.append(None if done is None else len(done.used))
        return done

    before = growth_module.extend
    monkeypatch.setattr(growth_module, "extend", extend)
    return lambda: [found.pop(0) for _ in range(len(found))]


@pytest.fixture
def read(monkeypatch):
    """How many files were read to extend what is known."""
    found = []

    def rows(self, start, end):
        found.append(end - start)
        return before(self, start, end)

    before = extension.Reading.rows
    monkeypatch.setattr(extension.Reading, "rows", rows)
    return lambda: [found.pop(0) for _ in range(len(found))]


@pytest.mark.parametrize("name", WINDOWS)
def test_complete_windows_stay(tmp_path, name, extended, read):
    log = Log(tmp_path / "log", seed=len(name))
    for _ in range(6):
        log.come(count=40, step=60 if name == "months" else 4)
        checked(lambda: WINDOWS[name](log.scan().filter(pl.col("v") > 50)).agg(AGGREGATES))
    assert extended() == [None, 1, 1, 1, 1], "the second run shows that the stream is sorted"
    assert max(read()) == 2, "the new file, and the last one before it"


@pytest.mark.parametrize("name", NOT_EXTENDED)
def test_windows_that_may_change(tmp_path, name, extended):
    log = Log(tmp_path / "log")
    for _ in range(4):
        log.come()
        checked(lambda: NOT_EXTENDED[name](log.scan()).agg(AGGREGATES))
    assert extended() == []


@pytest.mark.parametrize("name", ["every 7", "rolling"])
def test_files_that_overlap(tmp_path, name, extended):
    log = Log(tmp_path / "log")
    for times in [[1, 5, 9, 9], [9, 9, 14], [14, 14], [14, 15, 30]]:
        log.write(times)
        checked(lambda: WINDOWS[name](log.scan()).agg(AGGREGATES))
    assert extended() == [None, 1, 1], "the last time of one file may be the first of the next"


@pytest.mark.parametrize("last", [[13, 20], [30, 25], [None, 30]])
def test_streams_that_are_not_sorted(tmp_path, last, extended):
    log = Log(tmp_path / "log")
    query = lambda: log.scan().group_by_dynamic("t", every="7i").agg(AGGREGATES)
    for times in [[1, 5, 9, 9], [9, 9, 14], [14, 15]]:
        log.write(times)
        checked(query)
    assert extended() == [None, 1]
    path = log.folder / "009.parquet"
    times = pl.Series(last, dtype=pl.Int64)
    pl.read_parquet(log.folder / "000.parquet").head(2).with_columns(t=times).write_parquet(path)
    told = []
    for off in (False, True):
        with nectar.reuse(off=off):
            try:
                told.append(query().collect().to_dict(as_series=False))
            except pl.exceptions.PolarsError as error:
                told.append(str(error))
    assert told[0] == told[1]
    assert extended() == []


def test_groups_without_a_key(tmp_path, extended):
    log = Log(tmp_path / "log")
    for _ in range(4):
        log.come()
        key = pl.when(pl.col("k") != "x").then("k").alias("k")
        checked(lambda: log.scan().with_columns(key).rolling("t", period="5i", group_by="k").agg(AGGREGATES))
    assert extended() == [None, None, None], "nulls have a place of their own among the keys"


def test_floats_that_slide_are_computed_as_a_whole(tmp_path, extended):
    log = Log(tmp_path / "log")
    for _ in range(3):
        log.come()
        checked(lambda: log.scan().rolling("t", period="5i").agg((pl.col("v") / 3).sum()))
    assert extended() == []


def test_rows_behind_a_sort_or_a_join(tmp_path, extended):
    log = Log(tmp_path / "log")
    names = pl.LazyFrame({"k": ["x", "y"], "n": [1, 2]})
    for _ in range(3):
        log.come()
        checked(lambda: log.scan().sort("t", maintain_order=True).group_by_dynamic("t", every="7i").agg(AGGREGATES))
        joined = lambda: log.scan().join(names, on="k", how="left", maintain_order="left")
        checked(lambda: joined().group_by_dynamic("t", every="7i").agg(pl.col("n").sum()))
    assert extended() == []


def same(query):
    """The answer under Nectar is that of plain Polars, or both fail."""
    with nectar.reuse(off=True):
        try:
            query().collect()
        except pl.exceptions.PolarsError:
            fails = True
        else:
            fails = False
    if not fails:
        return checked(query)
    with pytest.raises(pl.exceptions.PolarsError):
        query().collect()


EVENTS = ["come", "few", "gap", "go", "back", "run", "run", "evict"]


def evict(every_other):
    """Half of what is kept is gone."""
    catalog = session.current().catalog
    keys = [entry.key for entry in catalog.index.entries()]
    catalog.index.evict(keys[every_other::2], catalog.clock.now() + 10**6)


@settings(deadline=None, max_examples=settings().max_examples // 2)  # each takes a while
@given(history=st.lists(st.sampled_from(EVENTS), min_size=3, max_size=10),
       name=st.sampled_from(sorted(WINDOWS)), seed=st.integers(0, 10**6))  # fmt: skip
def test_any_history(tmp_path_factory, history, name, seed):
    folder = tmp_path_factory.mktemp("history")
    log = Log(folder / "log", seed)
    log.come()
    with nectar.reuse(home=folder / "home"):
        for event in [*history, "run"]:
            if event == "run":
                same(lambda: WINDOWS[name](log.scan()).agg(AGGREGATES))
            elif event == "come":
                log.come()
            elif event == "few":
                log.come(count=1)
            elif event == "evict":
                evict(log.draw.randrange(2))
            elif event == "back":  # the last file is another, which may begin before those in front of it
                log.next, log.at = log.next - 1, max(0, log.at - log.draw.randrange(30))
                log.come()
            elif event == "gap":
                log.come(count=3, step=50)
            elif len(list(log.folder.iterdir())) > 1:
                log.go()
