"""Aggregates that users write: ordinary expressions in plain Polars, merged states under Nectar."""

import math
import os
import subprocess
import sys
import time
from random import Random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from polars.testing import assert_frame_equal
from tests.dialects.polars.aggregate_programs import Way

import nectar
from nectar import session
from nectar.dialects.polars.aggregates import apart
from nectar.dialects.polars.aggregates.by_user import user_aggregate

HIGHEST = 100


def wider(one, other):
    return (min(one[0], other[0]), max(one[1], other[1]))


def capped(column):
    return (column.clip(0, HIGHEST).min(), column.clip(0, HIGHEST).max())


spread = nectar.aggregate(
    init=lambda: (math.inf, -math.inf),
    add=lambda state, column: wider(state, capped(column)),
    merge=wider,
    finish=lambda state: state[1] - state[0] if state[0] <= state[1] else None,
    returns=pl.Float64,
)
weighted = nectar.aggregate(
    init=lambda: {"weights": 0, "total": 0},
    add=lambda state, value, weight: {
        "weights": state["weights"] + int(weight.sum()), "total": state["total"] + int((value * weight).sum()),
    },
    merge=lambda one, other: {name: one[name] + other[name] for name in one},
    finish=lambda state: state["total"] / max(state["weights"], 1),
)  # fmt: skip
words = nectar.aggregate(  # depends on the order of rows
    init=list, add=lambda state, column: [*state, *column], merge=lambda one, other: one + other, finish="-".join,
)  # fmt: skip
distinct = nectar.aggregate(set, lambda s, column: s | set(column), lambda one, other: one | other, len)


def frame_of(seed, count=20):
    draw = Random(seed)
    pick = lambda *values: [draw.choice(values) for _ in range(count)]
    return pl.DataFrame({"k": pick(1, 2, 3), "a": pick(1, 50, 70, 2000), "w": pick(1, 2), "s": pick("x", "y", "z")})


ALL = [
    spread("a"), weighted(pl.col("a"), "w").alias("mean"), words("s"), distinct(pl.col("s") + "!").alias("n"),
    (weighted("a", "w") / pl.len()).alias("ratio"), distinct(pl.col("s").filter(pl.col("a") > 60)).alias("some"),
]  # fmt: skip


@given(st.integers(0, 10**6), st.lists(st.integers(0, 20), max_size=3), st.booleans(), st.booleans())
def test_merged_states_give_what_all_rows_at_once_give(seed, cuts, whole, streaming):
    way = Way("streaming" if streaming else "in-memory", whole)
    frame = frame_of(seed)
    assert_frame_equal(way.in_parts(frame, sorted(cuts), ALL), way.at_once(frame, ALL), check_exact=True)


def test_in_plain_polars_it_is_an_expression_of_one_value():
    frame = pl.DataFrame({"k": [1, 1, 2], "a": [10, 300, 7], "w": [1, 3, 1], "s": ["p", "q", "r"]})
    with nectar.reuse(off=True):
        found = frame.group_by("k", maintain_order=True).agg(spread("a"), weighted("a", "w").alias("m"), words("s"))
        assert found.rows() == [(1, 90.0, 227.5, "p-q"), (2, 0.0, 7.0, "r")]
        assert frame.lazy().select(distinct("s"), spread("a")).collect().rows() == [(3, 93.0)]
        assert frame.clear().select(weighted("a", "w"), words("s")).rows() == [(0.0, "")]
        assert frame.select("k", words("s").over("k")).rows() == [(1, "p-q"), (1, "p-q"), (2, "r")]


def test_types_are_those_of_no_rows_or_those_given():
    assert (weighted.returns, words.returns, distinct.returns) == (pl.Float64, pl.String, pl.Int64)
    for finish in (lambda state: None, lambda state: state / 0, lambda state: object()):
        with pytest.raises(nectar.UserError, match="returns=pl.Float64"):
            nectar.aggregate(int, lambda state, column: state, lambda one, other: one, finish)
    with pytest.raises(nectar.UserError, match="at least one column"):
        spread()


class Days:
    """A folder to which days come; and how many rows were added to states since last asked."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.count, self._added = folder, 0, []
        folder.mkdir()

        def counting(content):
            known = user_aggregate(content)
            if known is None:
                return None
            add = lambda state, *columns: (self._added.append(len(columns[0])), known.add(state, *columns))[1]
            return replace(known, add=add)

        monkeypatch.setattr(apart, "user_aggregate", counting)

    def come(self, count=20):
        self.count += 1
        path = self.folder / f"{self.count:03}.parquet"
        frame_of(self.count, count).write_parquet(path)
        os.utime(path, (1_000_000_000 + self.count, 1_000_000_000 + self.count))

    def checked(self, *aggregates):
        """How many rows were added to states to get the answer, which is that of plain Polars."""
        query = pl.scan_parquet(f"{self.folder}/*.parquet").group_by("k").agg(*aggregates)
        self._added.clear()
        found = query.collect()
        added = sum(self._added)
        session.current().settle()
        with nectar.reuse(off=True):
            assert_frame_equal(found, query.collect(), check_row_order=False, check_exact=True)
        return added


@pytest.fixture
def days(tmp_path, monkeypatch, enabled):
    return Days(tmp_path / "days", monkeypatch)


@pytest.mark.parametrize("aggregate", [spread("a"), weighted("a", "w"), words("s"), distinct("s")], ids=str)
def test_only_new_rows_are_added(days, aggregate):
    added = []
    for _ in range(4):
        days.come()
        added.append(days.checked(aggregate))
    assert added == [0, 40, 20, 20], "first plainly; the second run makes a state of all; then each day alone"


def test_a_change_in_what_a_function_reaches_makes_other_states(days, monkeypatch):
    for _ in range(3):
        days.come()
        days.checked(spread("a"))
    monkeypatch.setitem(globals(), "HIGHEST", 60)
    days.come()
    assert days.checked(spread("a")) in (0, 80), "nothing of what was computed with the other constant"
    days.come()
    days.checked(spread("a"))


def counting_from(step):
    """Aggregates that differ in how they merge only."""
    return nectar.aggregate(int, lambda s, column: s + len(column), lambda one, other: one + other + step, lambda s: s)


def test_states_of_one_merge_are_not_those_of_another(days):
    for _ in range(3):
        days.come()
        days.checked(counting_from(0)("a"))
    days.come()
    query = pl.scan_parquet(f"{days.folder}/*.parquet").group_by("k").agg(counting_from(0)("a"))
    assert query.collect()["a"].sum() == 80
    other = pl.scan_parquet(f"{days.folder}/*.parquet").group_by("k").agg(counting_from(5)("a"))
    assert other.collect()["a"].sum() == 80, "its first run adds all rows at once, and merges nothing"


def test_functions_that_look_elsewhere_are_not_reused(days):
    since = nectar.aggregate(
        float, lambda state, column: time.time(), lambda one, other: max(one, other), lambda state: state > 0
    )
    for _ in range(3):
        days.come()
        assert days.checked(since("a")) == 0
    assert not nectar.last_run().reused


def test_errors_of_functions_are_those_of_plain_polars(days):
    def refuse(one, other):
        raise ValueError("never merged")

    whole = nectar.aggregate(int, lambda state, column: state + len(column), refuse, lambda state: state)
    for _ in range(4):
        days.come()
        days.checked(whole("a"))

    def fail(state, column):
        raise ValueError("no such column")

    failing = nectar.aggregate(int, fail, lambda one, other: one, lambda state: state)
    for _ in range(3):
        with pytest.raises(ValueError, match="no such column"):
            days.checked(failing("a"))
        days.come()


def test_states_that_cannot_be_written_down_leave_the_answer_alone(days):
    odd = nectar.aggregate(
        lambda: iter(()),
        lambda state, column: (value for value in column),
        lambda one, other: one,
        lambda s: len(list(s)),
    )
    for _ in range(3):
        days.come()
        days.checked(odd("a"))


def test_exact_floats_are_not_entrusted_to_functions(days):
    with nectar.reuse(home=session.current().settings.home, exact_floats=True, reserve=0):
        for _ in range(4):
            days.come()
            assert days.checked(weighted("a", "w")) == 0


PROGRAM = """
import sys
import polars as pl
import nectar

total = nectar.aggregate(
    init=lambda: {"sum": 0, "seen": frozenset({"a", "b"})},
    add=lambda state, column: {**state, "sum": state["sum"] + int(column.sum())},
    merge=lambda one, other: {**one, "sum": one["sum"] + other["sum"]},
    finish=lambda state: state["sum"],
)
with nectar.reuse(home=sys.argv[2], reserve=0) as run:
    found = pl.scan_parquet(sys.argv[1] + "/*.parquet").group_by("k").agg(total("a")).collect()
    print(found["a"].sum(), len(run.reused))
"""


def test_states_are_found_by_other_processes(tmp_path):
    folder, script = tmp_path / "days", tmp_path / "script.py"
    folder.mkdir()
    script.write_text(PROGRAM)
    found = []
    for day in range(1, 5):
        path = folder / f"{day}.parquet"
        frame_of(day).write_parquet(path)
        os.utime(path, (1_000_000_000 + day, 1_000_000_000 + day))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": str(day)}
        command = [sys.executable, "-W", "ignore", str(script), str(folder), str(tmp_path / "home")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append(tuple(done.stdout.split()))
    totals = [sum(frame_of(day)["a"].sum() for day in range(1, last + 1)) for last in range(1, 5)]
    assert [int(total) for total, _ in found] == totals
    assert [int(reused) for _, reused in found] == [0, 0, 1, 1]
