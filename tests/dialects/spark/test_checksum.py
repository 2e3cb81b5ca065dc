"""Checksums tell results apart, and do not tell orders of rows apart where nobody promised one."""

import datetime
import decimal
import math

import pytest

pytest.importorskip("tests.dialects.spark.at_hand", exc_type=ImportError)

import pyarrow as pa

from nectar.dialects.spark.checksum import checksum_of, rows_only
from nectar.recipes.difference import difference

VALUES = {
    "bool": ([True, False, None], pa.bool_()),
    "int": ([1, 2, None], pa.int64()),
    "small": ([1, -2, None], pa.int8()),
    "float": ([1.5, math.inf, None], pa.float64()),
    "text": (["a", "", None], pa.string()),
    "large text": (["a", "", None], pa.large_string()),
    "bytes": ([b"a", b"", None], pa.binary()),
    "date": ([datetime.date(2020, 1, 1), datetime.date(1, 1, 1), None], pa.date32()),
    "time": ([datetime.datetime(2020, 1, 1), datetime.datetime(1, 1, 1), None], pa.timestamp("us", "UTC")),
    "decimal": ([decimal.Decimal("1.50"), decimal.Decimal("-2.00"), None], pa.decimal128(38, 2)),
    "list": ([[1, None], [], None], pa.list_(pa.int64())),
    "struct": ([{"x": 1, "y": "a"}, {"x": None, "y": "b"}, None], pa.struct([("x", pa.int64()), ("y", pa.string())])),
    "map": ([[("k", 1.5)], [], None], pa.map_(pa.string(), pa.float64())),
    "nothing": ([None, None, None], pa.null()),
}
TYPES = [name for name in VALUES if name != "nothing"]


def table(name, order=(0, 1, 2), **others):
    values, kind = VALUES[name]
    n = [[10, 20, 30][at] for at in order]
    return pa.table({"n": n, "v": pa.array([values[at] for at in order], kind), **others})


@pytest.mark.parametrize("name", VALUES)
def test_the_order_of_rows_shows_in_one_number_only(name):
    one, other = checksum_of(table(name)), checksum_of(table(name, (2, 0, 1)))
    assert one.exact != other.exact
    assert (one.unordered, one.others) == (other.unordered, other.others)
    assert difference(one, other, ordered=False, comparable=True) == ""
    assert "in another order" in difference(one, other, ordered=True, comparable=True)


@pytest.mark.parametrize("name", TYPES)
def test_a_value_that_moved_to_another_row_is_found(name):
    values, kind = VALUES[name]
    moved = pa.table({"n": [10, 20, 30], "v": pa.array([values[1], values[0], values[2]], kind)})
    assert difference(checksum_of(table(name)), checksum_of(moved), ordered=False, comparable=True) != ""


@pytest.mark.parametrize("name", TYPES)
def test_a_null_is_no_value(name):
    values, kind = VALUES[name]
    for at in (0, 1):
        nulled = pa.table(
            {"n": [10, 20, 30], "v": pa.array([None if each == at else values[each] for each in range(3)], kind)}
        )
        assert difference(checksum_of(table(name)), checksum_of(nulled), ordered=False, comparable=True) != ""


def test_how_rows_are_cut_does_not_matter():
    whole = table("text")
    cut = pa.concat_tables([whole.slice(0, 1), whole.slice(1)])
    assert checksum_of(whole) == checksum_of(cut)
    assert checksum_of(whole.slice(1)) == checksum_of(pa.table(whole.slice(1).to_pydict(), schema=whole.schema))


def test_rows_that_are_there_twice_count_twice():
    one, other = pa.table({"n": [1, 1, 2]}), pa.table({"n": [1, 2, 2]})
    assert difference(checksum_of(one), checksum_of(other), ordered=False, comparable=True) == "its values differ"


def test_columns_that_changed_places_are_found():
    one, other = pa.table({"a": [1], "b": [2]}), pa.table({"a": [2], "b": [1]})
    assert checksum_of(one).unordered != checksum_of(other).unordered
    assert checksum_of(pa.table({"b": [1], "a": [2]})).unordered != checksum_of(one).unordered


def test_last_bits_of_floats_are_told_as_such():
    one = pa.table({"k": ["a", "b"], "x": [0.1 + 0.2, 1.0]})
    other = pa.table({"k": ["b", "a"], "x": [1.0, 0.3]})
    said = difference(checksum_of(one), checksum_of(other), ordered=False, comparable=True)
    assert said == "it differs in the last bits of floats"
    far = pa.table({"k": ["b", "a"], "x": [1.0, 0.31]})
    assert difference(checksum_of(one), checksum_of(far), ordered=False, comparable=True) == "its values differ"


def test_no_rows_and_counted_rows():
    empty = table("text").slice(0, 0)
    assert difference(checksum_of(empty), checksum_of(empty), ordered=True, comparable=True) == ""
    assert "it has 4 rows where it had 3" in difference(rows_only(3), rows_only(4), ordered=False, comparable=True)
    assert difference(rows_only(3), rows_only(3), ordered=True, comparable=True) == ""
