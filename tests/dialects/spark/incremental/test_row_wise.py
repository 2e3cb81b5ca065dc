"""Which expressions look at one row alone."""

import re
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql.connect.proto", reason="Spark is not installed: make test-sail")

from pyspark.sql import functions
from pyspark.sql.connect import functions as F
from pyspark.sql.connect.window import Window
from pyspark.sql.types import LongType

from nectar.dialects.spark.function_names import KNOWN
from nectar.dialects.spark.incremental.row_wise import AGGREGATES, ROW_WISE, why_not_row_wise

pytestmark = pytest.mark.small


def section(title):
    """The functions that the client lists under a title."""
    text = Path(functions.__file__).read_text()
    found = re.search(rf"    # {title}\n((?:    .*\n)+?)(?=    # [A-Z]|\])", text)
    assert found is not None
    return set(re.findall(r'^    "(\w+)"', found[1], re.MULTILINE))


@pytest.mark.parametrize("title", ["Aggregate Functions", "Window Functions"])
def test_what_the_client_lists_as_looking_at_several_rows_is_known_as_such(title):
    listed = section(title)
    assert len(listed) > 5
    assert listed & ROW_WISE == set()


def test_functions_of_sketches_that_aggregate_are_known_as_such():
    assert {name for name in ROW_WISE if re.search(r"_agg(_|$)", name)} == set()
    assert AGGREGATES <= KNOWN


ROW_BY_ROW = {
    "arithmetic": lambda: F.col("n") + 1,
    "a call": lambda: F.upper("page"),
    "a choice": lambda: F.when(F.col("n") > 1, F.lit("x")).otherwise(F.col("page")),
    "a cast": lambda: F.col("n").cast("string"),
    "a lambda": lambda: F.transform("l", lambda x: x + 1),
    "a text": lambda: F.expr("n + length(page)"),
    "a generator": lambda: F.explode("l"),
    "a function": lambda: F.udf(lambda n: n, LongType())("n"),
    "a column called over": lambda: F.col("over"),
}
OF_SEVERAL = {
    "an aggregate": lambda: F.sum("n"),
    "an aggregate within": lambda: F.col("n") - F.max("n"),
    "a window": lambda: F.sum("n").over(Window.partitionBy("page")),
    "a rank": lambda: F.row_number().over(Window.orderBy("n")),
    "an aggregate as text": lambda: F.expr("n / sum(n)"),
    "a window as text": lambda: F.expr("first(n) OVER (partition by page)"),
    "a window of something else": lambda: F.expr("length(page) over (partition by page)"),
    "a time window": lambda: F.window("t", "1 hour"),
    "a function by name": lambda: F.call_function("sum", F.col("n")),
    "a function nobody knows": lambda: F.call_function("mine", F.col("n")),
}


@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_row_by_row(name):
    assert why_not_row_wise(ROW_BY_ROW[name]()._expr.to_plan(None)) == ""


@pytest.mark.parametrize("name", OF_SEVERAL)
def test_of_several_rows(name):
    assert why_not_row_wise(OF_SEVERAL[name]()._expr.to_plan(None))
