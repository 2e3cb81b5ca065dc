"""What changed between two records of queries, in words."""

import pytest

from nectar.dialects.polars.difference import changes
from nectar.dialects.polars.history import ProgramRecord, StepRecord


def step(text, own, *, detail="", phrases=(), keys=None, files=()):
    return StepRecord(text, detail, phrases, own, (keys or own,), own, files)


def record(*steps, polars="2.1.0"):
    return ProgramRecord("p", "s.py:1", 0.0, polars, steps)


SCAN = step("scan parquet x", "1", files=(("x", "11"), ("y", "12")))
FILTER = step("filter", "2", phrases=("a > 1",), detail="a > 1")
SORT = step("sort", "3")


def told(old, new):
    return [(change.at, change.what) for change in changes(old, new)]


def test_nothing_changed():
    assert told(record(SCAN, FILTER), record(SCAN, FILTER)) == []


def test_another_polars_comes_before_everything():
    assert told(record(SCAN), record(FILTER, polars="2.2.0")) == [(0, "Polars 2.1.0 became 2.2.0")]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ((SCAN, SORT), (SCAN, FILTER, SORT), [(1, "filter [a > 1] is new")]),
        ((SCAN, FILTER, SORT), (SCAN, SORT), [(1, "filter [a > 1] is gone")]),
        ((SCAN, SORT, FILTER), (SCAN, SORT), [(1, "filter [a > 1] is gone")]),
        ((SCAN, FILTER), (SCAN, step("filter", "4", phrases=("a > 2",))), [(1, "filter: was a > 1, is a > 2")]),
        (
            (SCAN, FILTER),
            (SCAN, step("filter", "4", phrases=("a > 1", "b", "c", "d"))),
            [(1, "filter: now b, c and 1 more")],
        ),
        ((SCAN, FILTER), (SCAN, step("filter", "4", phrases=("a > 1",))), [(1, "filter: what it does changed")]),
        (
            (SCAN,),
            (step("scan parquet x", "5", files=(("x", "13"), ("z", "14"))),),
            [(0, "scan parquet x: x changed; z came; y went")],
        ),
        ((SCAN,), (step("scan parquet x", "5", files=SCAN.files),), [(0, "scan parquet x: how it is read changed")]),
    ],
)
def test_a_change_names_its_step(old, new, expected):
    assert told(record(*old), record(*new)) == expected


def test_the_same_content_by_another_name_is_no_change():
    again = step("scan parquet x", "5", keys="1", files=SCAN.files)
    assert told(record(SCAN, FILTER), record(again, FILTER)) == []


def test_many_files_are_counted():
    many = step("scan", "5", files=tuple((f"f{at}", "1") for at in range(6)))
    assert told(record(step("scan", "1")), record(many)) == [(0, "scan: f0, f1, f2 and 3 more came")]


def test_the_same_steps_put_together_in_another_way():
    root = StepRecord("join", "", (), "9", ("k1",), "p1")
    other = StepRecord("join", "", (), "9", ("k2",), "p2")
    assert told(record(SCAN, SORT, root), record(SCAN, SORT, other)) == [
        (2, "its steps are put together in another way")
    ]
