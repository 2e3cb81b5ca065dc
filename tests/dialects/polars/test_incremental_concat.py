"""Streams behind each other, rows that become several, numbers of rows: answers are those of plain Polars."""

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


class Days:
    """A folder to which days come, and from which they go."""

    def __init__(self, folder, seed=0):
        self.folder, self.next, self.draw = folder, 0, random.Random(f"{folder.name}{seed}")
        folder.mkdir()

    def come(self, count=20):
        pick = lambda *values: [self.draw.choice(values) for _ in range(count)]
        path = self.folder / f"{self.next:03}.parquet"
        frame = pl.DataFrame(
            {"k": pick("a", "b", None), "v": pick(1, 2, 3, None), "w": pick(10, 20, 30), "l": pick([1], [2, 3], [])}
        )
        frame.write_parquet(path)
        os.utime(path, (1_000_000_000 + self.draw.randrange(10**6), 1_000_000_000))
        self.next += 1

    def go(self):
        sorted(self.folder.iterdir())[0].unlink()

    def rewrite(self):
        self.next -= 1
        self.come()

    def scan(self):
        return pl.scan_parquet(f"{self.folder}/*.parquet")


def checked(query, order=True):
    answer = query().collect()
    session.current().settle()
    with nectar.reuse(off=True):
        plain = query().collect()
    assert_frame_equal(answer, plain, check_row_order=order)


@pytest.fixture(autouse=True)
def _session(enabled):
    """Nectar is on."""


@pytest.fixture
def made(monkeypatch):
    """For each node that could be made from parts: of how many files states were computed; entries rows came from."""
    found = []

    def advance(parts, *args):
        done = before(parts, *args)
        if parts.are_states:
            found.append([piece.end - piece.start for piece in done.new])
        elif done is not None:
            found.append(len(done.used))
        return done

    before = growth_module.advance
    monkeypatch.setattr(growth_module, "advance", advance)
    return lambda: [found.pop(0) for _ in range(len(found))]


@pytest.fixture
def streams(tmp_path):
    return [Days(tmp_path / name) for name in ("left", "middle", "right")]


def concatenated(streams):
    return pl.concat([each.scan().filter(pl.col("w") > 10 * at) for at, each in enumerate(streams)])


def test_aggregates_of_streams_behind_each_other(streams, made):
    query = lambda: concatenated(streams).with_columns(x=pl.col("v") * 2).group_by("k").agg(pl.col("x").sum(), pl.len())
    for each in streams:
        each.come()
    checked(query, order=False)
    for each in (*streams, streams[1]):
        each.come()
        checked(query, order=False)
    assert made() == [[2, 1, 1], [1], [1], [1]], "each stream has states of its own"


def test_rows_of_streams_behind_each_other(streams, made):
    query = lambda: concatenated(streams).select("k", "w")
    for each in streams:
        each.come()
    for _ in range(3):
        checked(query)
        streams[-1].come()
    assert made() == [1, 1]
    checked(query)
    streams[0].come()
    made()
    checked(query)
    assert made() == [], "rows came before rows that are known"


def test_first_and_last_of_streams_behind_each_other(streams):
    query = lambda: (
        concatenated(streams).group_by("k", maintain_order=True).agg(pl.col("v").first(), pl.col("w").last())
    )
    for each in streams:
        each.come()
    for each in (*streams, *reversed(streams)):
        checked(query)
        each.come()


def test_a_stream_behind_itself(streams, made):
    days = streams[0]
    query = lambda: (
        pl.concat([days.scan(), days.scan().with_columns(pl.col("v") + 1)]).group_by("k").agg(pl.col("v").sum())
    )
    for _ in range(4):
        days.come()
        checked(query, order=False)
    assert made() == [[2, 2], [1, 1], [1, 1]], "it grows in both places"


def test_columns_and_types_that_differ(streams):
    left, right = streams[:2]
    query = lambda: pl.concat(
        [left.scan().select("k", "v"), right.scan().select("k", x=pl.col("v").cast(pl.Float64))], how="diagonal_relaxed"
    ).group_by("k").agg(pl.col("v").sum(), pl.col("x").max(), pl.len())  # fmt: skip
    left.come()
    for each in (right, left, right, left):
        each.come()
        checked(query, order=False)


def test_streams_behind_each_other_joined(streams, tmp_path, made):
    pl.DataFrame({"k": ["a", "b"], "n": [1, 2]}).write_parquet(tmp_path / "names.parquet")
    names = pl.scan_parquet(tmp_path / "names.parquet")
    query = lambda: concatenated(streams).join(names, on="k").group_by("n").agg(pl.col("v").sum())
    for each in (*streams, *streams):
        each.come()
        if all(any(stream.folder.iterdir()) for stream in streams):
            checked(query, order=False)
    assert made() == [[2, 1, 1], [1], [1]]


def test_a_stream_behind_a_frame_in_memory_is_computed_as_a_whole(streams, made):
    frame = pl.LazyFrame({"k": ["a"], "w": [7]})
    for _ in range(3):
        streams[0].come()
        checked(
            lambda: pl.concat([streams[0].scan().select("k", "w"), frame]).group_by("k").agg(pl.col("w").sum()), False
        )
    assert made() == []


def test_one_branch_of_many_files_beside_one_of_one(streams, made):
    """The same file names in two folders, and one stream that never grows."""
    left, right = streams[:2]
    right.come()
    for _ in range(4):
        left.come()
        checked(lambda: pl.concat([left.scan(), right.scan()]).group_by("k").agg(pl.col("w").sum()), order=False)
    assert made() == [[2, 1], [1], [1]]


def test_unpivot_below_aggregates(streams, made):
    days = streams[0]
    long = lambda: days.scan().unpivot(["v", "w"], index="k")
    for _ in range(4):
        days.come()
        checked(lambda: long().group_by("k", "variable").agg(pl.col("value").sum(), pl.len()), order=False)
    assert made() == [[2], [1], [1]]
    for query in (
        lambda: long(),
        lambda: long().group_by("k").agg(pl.col("value").first()),
        lambda: long().group_by("variable", maintain_order=True).agg(pl.col("value").sum()),
        lambda: long().head(5),
    ):
        for _ in range(2):
            days.come()
            query().collect()
            session.current().settle()
    assert [each for each in made() if each] == [], "the order of its rows is nobody's promise"


def test_explode(streams, made):
    days = streams[0]
    for _ in range(4):
        days.come()
        checked(lambda: days.scan().explode("l", empty_as_null=True).filter(pl.col("l") != 2))
        checked(lambda: days.scan().explode("l", empty_as_null=True).group_by("l").agg(pl.col("w").sum()), order=False)
    assert made() == [1, [2], 1, [1], 1, [1]]


@pytest.mark.parametrize("offset", [0, 7])
def test_numbers_of_rows(streams, offset, made):
    days = streams[0]
    for _ in range(4):
        days.come()
        checked(lambda: days.scan().filter(pl.col("w") > 10).with_row_index("n", offset))
    assert made() == [1, 1, 1]
    checked(lambda: days.scan().filter(pl.col("w") > 10).with_row_index("n", offset).filter(pl.col("n") % 2 == 0))
    days.come()
    checked(lambda: days.scan().filter(pl.col("w") > 10).with_row_index("n", offset).filter(pl.col("n") % 2 == 0))


EVENTS = ["come", "come", "go", "rewrite", "run", "run", "evict"]


def evict(every_other):
    """Half of what is kept is gone."""
    catalog = session.current().catalog
    keys = [entry.key for entry in catalog.index.entries()]
    catalog.index.evict(keys[every_other::2], catalog.clock.now() + 10**6)


@settings(deadline=None, max_examples=settings().max_examples // 2)  # each takes a while
@given(history=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 2)), min_size=3, max_size=10),
       rows=st.booleans(), seed=st.integers(0, 10**6))  # fmt: skip
def test_any_history(tmp_path_factory, history, rows, seed):
    folder = tmp_path_factory.mktemp("history")
    streams = [Days(folder / name, seed) for name in ("a", "b", "c")]
    for each in streams:
        each.come()
    counted = lambda: (
        concatenated(streams).group_by("k", maintain_order=True).agg(pl.col("v").sum(), pl.col("w").last())
    )
    query = (lambda: concatenated(streams).select("k", "v").with_row_index()) if rows else counted
    with nectar.reuse(home=folder / "home"):
        for event, at in [*history, ("run", 0)]:
            if event == "run":
                checked(query)
            elif event == "evict":
                evict(at % 2)
            elif event == "come" or len(list(streams[at].folder.iterdir())) > 1:
                getattr(streams[at], event)()
