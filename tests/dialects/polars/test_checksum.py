"""Frames with one exact checksum are the same; the others say what a difference may come from."""

import math
import subprocess
import sys

import polars as pl
import pytest

from nectar.dialects.polars.checksum import checksum_of
from nectar.recipes.difference import difference

FRAME = pl.DataFrame(
    {"a": [1, 2, 3, 4], "b": ["x", None, "z", "x"], "c": [0.1, 0.2, None, 1e10], "d": [[1.5], [], None, [2.0]]}
)


def told(then, now, ordered=True, comparable=True):
    return difference(checksum_of(then), checksum_of(now), ordered=ordered, comparable=comparable)


def test_the_same_rows_have_the_same_checksum_however_they_lie_in_memory():
    pieces = pl.concat([FRAME.head(2), FRAME.tail(2)], rechunk=False)
    assert checksum_of(pieces) == checksum_of(FRAME)
    assert told(FRAME, FRAME.clone()) == ""


@pytest.mark.parametrize(
    "changed",
    [
        FRAME.with_columns(a=pl.lit(1)),
        FRAME.with_columns(pl.col("a").cast(pl.Int32)),
        FRAME.rename({"a": "e"}),
        FRAME.with_columns(b=pl.col("b").fill_null("")),
        FRAME.with_columns(b=pl.col("b").reverse()),
        FRAME.with_columns(d=pl.col("d").reverse()),
        FRAME.with_columns(c=pl.col("c").fill_null(0.0) + 1),
        FRAME.select("b", "a", "c", "d"),
    ],
)
def test_other_values_are_told_whatever_the_order_may_be(changed):
    assert told(FRAME, changed, ordered=False) == "its values differ"


def test_another_order_is_told_only_where_one_was_promised():
    other = FRAME.sort("a", descending=True)
    assert told(FRAME, other, ordered=False) == ""
    assert "in another order" in told(FRAME, other, ordered=True)


def test_the_number_of_rows_is_told():
    assert told(FRAME, FRAME.head(3), ordered=False) == "it has 3 rows where it had 4"


def test_last_bits_of_floats_are_told_as_such():
    frame = FRAME.drop("d")
    near = frame.with_columns(c=pl.col("c") * (1 + 2e-16))
    assert not near.equals(frame)
    assert told(frame, near, ordered=False) == "it differs in the last bits of floats"
    assert told(frame, frame.with_columns(c=pl.col("c") * 1.0001), ordered=False) == "its values differ"


def test_a_float_that_moved_to_another_row_is_no_last_bit():
    frame = pl.DataFrame({"a": [1, 2], "c": [math.nan, 1.0]})
    assert told(frame, frame.with_columns(pl.col("c").reverse()), ordered=False) == "its values differ"


def test_checksums_of_two_versions_of_the_engine_only_tell_what_is_exactly_the_same():
    assert told(FRAME, FRAME, comparable=False) == ""
    assert "may differ" in told(FRAME, FRAME.reverse(), ordered=False, comparable=False)


def test_numbers_of_categories_do_not_show():
    first = pl.DataFrame({"a": pl.Series(["x", "y"], dtype=pl.Categorical)})
    program = (
        "import polars as pl\n"
        "from nectar.dialects.polars.checksum import checksum_of\n"
        "keep = pl.Series(['other', 'y', 'x'], dtype=pl.Categorical)\n"
        "print(checksum_of(pl.DataFrame({'a': pl.Series(['x', 'y'], dtype=pl.Categorical)})))"
    )
    elsewhere = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert elsewhere.strip() == str(checksum_of(first))


def test_empty_frames_have_checksums():
    assert told(FRAME.clear(), FRAME.clear()) == ""
    assert told(pl.DataFrame(), pl.DataFrame()) == ""
    assert told(FRAME.clear(), FRAME.clear().rename({"a": "e"})) == "its values differ"
