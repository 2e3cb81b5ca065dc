import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.store.making import put_object, put_table

from nectar.store.estimate import estimate

N = 50_000


@pytest.mark.parametrize(
    "table", [pa.table({"a": np.arange(N)}), pl.DataFrame({"a": np.arange(N)}), pd.DataFrame({"a": np.arange(N)})]
)
def test_estimate_of_a_table_is_near(local, table):
    assert 0.8 < estimate(table) / put_table(local, table).size < 1.2


@pytest.mark.parametrize("value", [np.zeros(N), b"x" * N, {"a": [np.zeros(N)] * 1}, [b"x" * 100] * 1, "x" * N])
def test_estimate_of_an_object_is_near(local, value):
    assert 0.2 < estimate(value) / put_object(local, value).size < 5


@pytest.mark.parametrize("value", [None, 1, int, object(), [], {}, np.ndarray, pl.DataFrame])
def test_anything_has_an_estimate(value):
    assert estimate(value) >= 0


def test_value_that_contains_itself_has_an_estimate():
    value = []
    value.append(value)
    assert estimate(value) > 0
