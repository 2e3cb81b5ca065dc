"""Columns that are marked as sorted: Polars believes the mark, also a wrong one, and Nectar changes no answer of it."""

import datetime

import polars as pl
import pytest

import nectar
from nectar.keys.values.polars_columns import false_mark

ORDERED = {
    "ascending": ([1, 2, 2, 3], False), "descending": ([3, 2, 1], True), "nulls first": ([None, 1, 2], False),
    "nulls last": ([2, 1, None], True), "texts": (["a", "b"], False), "one": ([1], False), "none": ([], False),
    "nothing but nulls": ([None, None], False), "not a number": ([1.0, float("nan")], False),
    "times": ([datetime.time(1), datetime.time(2)], False), "equal": ([1, 1], True), "booleans": ([False, True], False),
}  # fmt: skip
WRONG = {
    "ascending": ([3, 1, 2], False), "descending": ([1, 2], True), "nulls between": ([1, None, 2], False),
    "texts": (["b", "a"], False), "two": ([2, 1], False), "not a number": ([float("nan"), 1.0], False),
    "dates": ([datetime.date(2021, 1, 1), datetime.date(2020, 1, 1)], False), "bytes": ([b"b", b"a"], False),
    "lists": ([[2], [1]], False), "structs": ([{"a": 2}, {"a": 1}], False), "booleans": ([True, False], False),
}  # fmt: skip


def marked(values, descending):
    return pl.Series("x", values).set_sorted(descending=descending)


@pytest.mark.parametrize("name", ORDERED)
def test_a_right_mark_does_not_count(name):
    values, descending = ORDERED[name]
    plain, with_mark = pl.Series("x", values), marked(values, descending)
    assert false_mark(with_mark) == ""
    assert nectar.fingerprint(lambda: plain) == nectar.fingerprint(lambda: with_mark)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_mark_counts(name):
    values, descending = WRONG[name]
    plain, with_mark = pl.Series("x", values), marked(values, descending)
    assert false_mark(plain) == ""
    assert false_mark(with_mark) == ("descending" if descending else "ascending")
    assert nectar.fingerprint(lambda: plain) != nectar.fingerprint(lambda: with_mark)
    one, other = plain.to_frame(), with_mark.to_frame()
    assert nectar.fingerprint(lambda: one) != nectar.fingerprint(lambda: other)
    one, other = one.lazy().head(1), other.lazy().head(1)
    assert nectar.fingerprint(lambda: one) != nectar.fingerprint(lambda: other)


QUERIES = {
    "marks": lambda rows: rows.with_columns(pl.col("x").set_sorted()),
    "frames": lambda rows: rows.set_sorted("x"),
    "selections": lambda rows: rows.with_columns(pl.col("x").set_sorted()).filter(pl.col("y") > 0).select("x"),
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("in_memory", [False, True])
def test_a_result_that_is_marked_wrongly_is_the_same_each_time(enabled, tmp_path, name, in_memory):
    frame = pl.DataFrame({"x": [3, 1, 2], "y": [1, 2, 3]})
    frame.write_parquet(tmp_path / "x.parquet")
    query = QUERIES[name](frame.lazy() if in_memory else pl.scan_parquet(tmp_path / "x.parquet"))

    def answers():
        marks = query.collect()["x"]
        enabled.settle()
        return marks.flags, marks.max(), query.select(pl.col("x").max()).collect().item()

    with nectar.reuse(off=True):
        plain = answers()
    assert (plain[0]["SORTED_ASC"], plain[1]) == (True, 2), "Polars believes it"
    assert [answers() for _ in range(3)] == [plain] * 3


def test_a_frame_in_memory_with_a_wrong_mark_is_another_frame(enabled):
    frame = pl.DataFrame({"x": [3, 1, 2]})
    highest = lambda lf: lf.filter(pl.col("x") > 0).select(pl.col("x").max()).collect().item()
    assert [highest(frame.lazy()), highest(frame.lazy())] == [3, 3]
    enabled.settle()
    with nectar.reuse(off=True):
        plain = highest(frame.with_columns(pl.col("x").set_sorted()).lazy())
    assert highest(frame.with_columns(pl.col("x").set_sorted()).lazy()) == plain


def test_a_memoised_function_sees_the_mark(enabled):
    @nectar.memo
    def highest(column):
        return column.max()

    assert [highest(pl.Series([3, 1, 2])), highest(pl.Series([3, 1, 2]).set_sorted())] == [3, 2]
