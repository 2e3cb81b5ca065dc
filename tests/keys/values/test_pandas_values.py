"""pandas' values: labels, dtypes, values, names, attrs and flags decide; blocks and caches do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.keys.values.value_digests import digest, still, walked

from nectar.errors import UnencodableError
from nectar.keys.values.bulk import Parts
from nectar.keys.values.pandas_values import add_values

F = pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan], "c": ["x", None]})
DAYS = pd.date_range("2020-01-01", periods=2)


def with_attrs(**attrs: Any) -> pd.DataFrame:
    made = F.copy()
    made.attrs.update(attrs)
    return made


def nullable(below: int) -> Any:
    return pd.arrays.IntegerArray(np.array([1, below]), np.array([False, True]))


DIFFERENT: list[tuple[Any, Any]] = [
    (F, F.assign(a=[1, 3])),
    (F, F.astype({"a": "i4"})),
    (F, F[["b", "a", "c"]]),
    (F, F.rename(columns={"a": "z"})),
    (F, F.set_index("a")),
    (F, F.rename_axis("i")),
    (F, F.rename_axis("i", axis=1)),
    (F, with_attrs(a=1)),
    (with_attrs(a=2), with_attrs(a=1)),
    (F, F.set_flags(allows_duplicate_labels=False)),
    (F, F.iloc[::-1]),
    (F["a"], F["a"].rename("z")),
    (F["a"], F[["a"]]),
    (F["a"], F["a"].set_axis(pd.Index([0, 1]))),
    (pd.RangeIndex(2), pd.Index([0, 1])),
    (pd.RangeIndex(0), pd.RangeIndex(5, 5)),
    (pd.Index([1], name="a"), pd.Index([1], name="b")),
    (pd.Index(["a"], dtype=object), pd.Index(["a"], dtype="str")),
    (DAYS, pd.DatetimeIndex(DAYS, freq=None)),
    (DAYS, DAYS.tz_localize("UTC")),
    (DAYS, DAYS.as_unit("s")),
    (DAYS.tz_localize("UTC"), DAYS.tz_localize("Europe/Paris")),
    (pd.MultiIndex.from_product([[1], [2]]), pd.MultiIndex.from_product([[1], [3]])),
    (pd.MultiIndex.from_product([[1], [2]]), pd.MultiIndex.from_product([[1], [2]], names=["a", None])),
    (pd.Categorical(["a"]), pd.Categorical(["a"], ["a", "b"])),
    (pd.Categorical(["a"]), pd.Categorical(["a"], ordered=True)),
    (pd.Categorical(["a"], ["a", "b"]), pd.Categorical(["a"], ["b", "a"])),
    (pd.CategoricalDtype(["a"]), pd.CategoricalDtype()),
    (pd.array([1, 2]), pd.array([1, None])),
    (pd.array([1, 2]), pd.array([1, 2], "int64[pyarrow]")),
    (pd.array([1, 2]), np.array([1, 2])),
    (pd.array(["a"], "string[python]"), pd.array(["a"], "string[pyarrow]")),
    (pd.array(["a", None], "string[python]"), pd.array(["a", None], pd.StringDtype("python", na_value=np.nan))),
    (pd.array(["a"], "string[pyarrow]"), pd.array(["b"], "string[pyarrow]")),
    (pd.arrays.SparseArray([0, 1]), pd.arrays.SparseArray([0, 1], fill_value=1)),
    (pd.interval_range(0, 2), pd.interval_range(0, 2, closed="left")),
    (pd.period_range("2020", periods=2, freq="M"), pd.period_range("2020", periods=2, freq="D")),
    (pd.Timestamp("2020"), pd.Timestamp("2020").as_unit("ns")),
    (pd.Timestamp("2020"), pd.Timestamp("2020", tz="UTC")),
    (pd.Timestamp("2020"), pd.Timestamp("2020").to_pydatetime()),
    (pd.Timestamp(1), pd.Timestamp(2)),
    (pd.Timedelta(1), pd.Timedelta(2)),
    (pd.Period("2020", "M"), pd.Period("2020-01", "D")),
    (pd.NaT, pd.NA),
    (pd.Interval(0, 1), pd.Interval(0, 1, "left")),
    (pd.offsets.MonthEnd(1), pd.offsets.MonthEnd(2)),
    (pd.offsets.MonthEnd(1), pd.offsets.MonthBegin(1)),
    (pd.offsets.Week(weekday=1), pd.offsets.Week(weekday=2)),
    (pd.DateOffset(months=1), pd.DateOffset(days=1)),
    (pd.offsets.BusinessHour(start="09:00"), pd.offsets.BusinessHour(start="10:00")),
    (pd.offsets.CustomBusinessDay(holidays=["2020-01-01"]), pd.offsets.CustomBusinessDay(holidays=["2020-01-02"])),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_values_that_programs_can_tell_apart_differ(a: Any, b: Any) -> None:
    assert digest(a) != digest(b)


def by_parts() -> pd.DataFrame:
    made = pd.DataFrame(index=pd.RangeIndex(2))
    made["a"] = [1, 2]
    made["b"] = [0.5, np.nan]
    made["c"] = ["x", None]
    return made


def used(frame: pd.DataFrame) -> pd.DataFrame:
    assert frame["a"].sum()
    assert frame.index.get_loc(1) == 1
    assert 1 in frame.index
    assert frame.columns.get_loc("b") == 1
    return frame


AGREEING: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
    (lambda: F, lambda: F.copy()),
    (lambda: F, by_parts),
    (lambda: F.copy(), lambda: used(F.copy())),
    (lambda: F, lambda: pd.concat([F, F]).iloc[:2].set_axis(pd.RangeIndex(2))),
    (
        lambda: pd.DataFrame(np.arange(6).reshape(2, 3)),
        lambda: pd.DataFrame({0: [0, 3], 1: [1, 4], 2: [2, 5]}, columns=pd.RangeIndex(3)),
    ),
    (lambda: nullable(0), lambda: nullable(77)),
    (lambda: pd.array(["a", "b"], "string[pyarrow]"), lambda: pd.array(["z", "a", "b"], "string[pyarrow]")[1:]),
    (lambda: pd.Timestamp("2020-01-01"), lambda: pd.to_datetime("2020-01-01")),
    (lambda: pd.Index([1, 2, 3])[1:], lambda: pd.Index([2, 3])),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), AGREEING)
def test_how_a_value_came_about_does_not_matter(a: Callable[[], Any], b: Callable[[], Any]) -> None:
    assert digest(a()) == digest(b())


def test_object_columns_are_looked_into() -> None:
    inner = [1]
    frame = pd.DataFrame({"a": pd.Series([inner, None], dtype=object)})
    before, walk = walked(frame)
    assert still(walk)
    inner.append(2)
    assert not still(walk)
    assert digest(frame) != before


def test_the_recheck_notices_changes() -> None:
    frame = F.copy()
    before, walk = walked(frame)
    assert still(walk)
    frame.loc[0, "a"] = 99
    assert not still(walk)
    assert digest(frame) != before


def test_unknown_arrays_are_refused() -> None:
    with pytest.raises(UnencodableError, match="not known"):
        add_values(Parts(), object(), "column 0")
