"""Results of any type: what comes back is what was given, from memory, from the store, and in another process."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import gc
import pathlib
import threading
import uuid
import weakref
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.dialects.python.programs import OUTCOMES

import nectar
from nectar.dialects.python import pickling


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    tags: tuple = ()


class Shade(enum.Enum):
    DARK = 1
    LIGHT = "l"


class Pair(NamedTuple):
    left: int
    right: str


class Plain:
    def __init__(self, items):
        self.items = items

    def __eq__(self, other):
        return type(other) is Plain and self.items == other.items


class Names(dict):
    pass


FAR = np.arange(3000, dtype="f8")
VALUES = {
    "none": None, "flag": True, "number": 2**80, "text": "é\0", "nothing": (), "nan": float("nan"), "minus": -0.0,
    "nested": {"a": [1, (2, {3})], (1, 2): frozenset({4})}, "bytes": b"x" * 100_000, "array of bytes": bytearray(b"ab"),
    "decimal": decimal.Decimal("1.10"), "fraction": fractions.Fraction(1, 3), "date": datetime.date(2020, 2, 29),
    "moment": datetime.datetime(2020, 2, 29, 1, 2, tzinfo=datetime.UTC), "path": pathlib.PurePosixPath("a/b"),
    "uuid": uuid.UUID(int=7), "counter": collections.Counter("abca"), "deque": collections.deque([1], maxlen=2),
    "ordered": collections.OrderedDict(b=1, a=2), "range": range(1, 9, 2), "exception": ValueError("a", 1),
    "dataclass": Point(1, ("a",)), "enum": Shade.LIGHT, "namedtuple": Pair(1, "b"), "instance": Plain([1]),
    "dict of its own": Names(a=1), "class": Point, "builtin class": int, "builtin function": len,
    "array": FAR, "empty array": np.empty((0, 3), "i4"), "scalar": np.float32(1.5), "objects": np.array([1, "a", None]),
    "column by column": np.asfortranarray(np.arange(6).reshape(2, 3)), "big end first": np.arange(3, dtype=">i4"),
    "texts": np.array(["a", "bcd"]), "moments": np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
    "records": np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")]), "not one piece": np.arange(10)[::3],
    "masked": np.ma.masked_array([1.0, 2.0], [False, True]), "arrays": {"a": np.ones(2), "b": [np.zeros(3)]},
    "frame": pd.DataFrame({"a": [1, 2], "b": ["x", None]}, index=pd.Index(["p", "q"], name="i")),
    "columns of columns": pd.DataFrame(np.eye(2), columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])),
    "category": pd.DataFrame({"a": pd.Categorical(["x", "y"], ["y", "x"], ordered=True)}),
    "series": pd.Series([1, None], name="s", dtype="Int64"),
    "zone": pd.DataFrame({"t": pd.date_range("2020", periods=2, tz="Europe/Berlin")}),
    "polars": pl.DataFrame({"a": [1, None], "b": ["x", "y"]}),
    "polars empty": pl.DataFrame({"a": [], "b": []}, schema={"a": pl.Int8, "b": pl.List(pl.Date)}),
    "polars nothing": pl.DataFrame(),
    "polars types": pl.DataFrame(
        {
            "c": pl.Series(["u", "v"], dtype=pl.Categorical), "e": pl.Series(["u", None], dtype=pl.Enum(["v", "u"])),
            "d": pl.Series([decimal.Decimal("1.10"), None], dtype=pl.Decimal(10, 2)), "l": [[1, 2], []],
            "s": [{"x": 1, "y": ["a"]}, None], "t": [datetime.datetime(2020, 1, 1), None], "b": [b"a", b""],
            "du": [datetime.timedelta(1), None], "n": [None, None], "f": [float("nan"), -0.0],
            "ar": pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int16, 2)),
            "z": pl.Series([datetime.datetime(2020, 1, 1)] * 2, dtype=pl.Datetime("ms", "Asia/Tokyo")),
        }
    ),
    "polars series": pl.Series("s", [1, 2]), "expression": pl.col("a") + 1,
    "table": pa.table({"a": [1, None], "b": [["x"], []]}),
    "table with notes": pa.table({"a": [1]}).replace_schema_metadata({"k": "v"}),
    "arrow array": pa.array([1, None]), "dictionary": pa.table({"d": pa.array(["a", "b", "a"]).dictionary_encode()}),
}  # fmt: skip


def same(one, other):
    """Equal in type and content, as far as anybody can see."""
    if type(one) is not type(other):
        return False
    if isinstance(one, pl.DataFrame):
        return one.schema == other.schema and one.equals(other)
    if isinstance(one, pl.Series):
        return one.name == other.name and one.dtype == other.dtype and one.equals(other)
    if isinstance(one, pl.Expr):
        return one.meta.eq(other)
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, check_exact=True, check_flags=True)
        return one.attrs == other.attrs
    if isinstance(one, pd.Series):
        pd.testing.assert_series_equal(one, other)
        return True
    if isinstance(one, pa.Table):
        return one.schema.equals(other.schema, check_metadata=True) and one.equals(other)
    if isinstance(one, np.ma.MaskedArray):
        return repr(one) == repr(other)
    if isinstance(one, np.ndarray):
        alike = one.dtype == other.dtype and one.shape == other.shape
        alike = alike and (one.ndim < 2 or one.flags.f_contiguous == other.flags.f_contiguous)
        return alike and one.tobytes() == other.tobytes() if one.dtype != object else one.tolist() == other.tolist()
    if isinstance(one, dict) and any(isinstance(each, np.ndarray) for each in one.values()):
        return repr(one) == repr(other)
    return one == other or repr(one) == repr(other)


@nectar.memo
def given_back(value):
    return value


@pytest.mark.parametrize("inline", [4096, 0])
def test_results_come_back_as_they_were(home, inline):
    """From memory (not yet written), and by another session from the index or from files."""
    settings = {"home": home, "reserve": 0, "inline": inline}
    with nectar.reuse(**settings) as report:
        first = {name: given_back(value) for name, value in VALUES.items()}
        second = {name: given_back(value) for name, value in VALUES.items()}
    not_kept = {name: part.keeping for name, part in zip(VALUES, report.parts) if part.keeping != "kept"}
    assert {name: why for name, why in not_kept.items() if "reading its" not in why} == {}
    with nectar.reuse(**settings) as report:
        third = {name: given_back(value) for name, value in VALUES.items()}
    again = {name for name, part in zip(VALUES, report.parts) if part.outcome != "reused"}
    assert again == set(not_kept)
    for found in (first, second, third):
        assert [(name, found[name]) for name in VALUES if not same(VALUES[name], found[name])] == []


def outcome():
    return nectar.last_run().parts[-1].outcome


def keeping():
    return nectar.last_run().parts[-1].keeping


@nectar.pure
def long_enough():
    """So that a large result is worth its bytes."""
    import time

    time.sleep(0.02)


@nectar.memo
def large_array(n):
    long_enough()
    return np.arange(n, dtype="f8")


@nectar.memo
def containers(n):
    return [n, {"a": [n]}, np.full(n, n)]


def test_arrays_may_be_written_to_and_the_kept_one_does_not_change(enabled):
    for _ in range(3):
        array = large_array(10_000)
        assert array.flags.writeable
        assert array[0] == 0
        assert float(array.sum()) == 49_995_000
        array[:] = -1
        enabled.settle()
    assert outcome() == "reused"


@pytest.mark.parametrize("settle", [False, True])
def test_callers_never_share_a_mutable_result(enabled, settle):
    """Changed by its caller right after the call: before it is written, and after."""
    first = containers(3)
    if settle:
        enabled.settle()
    first[1]["a"].append("changed")
    first.append("changed")
    first[2][:] = 9
    second = containers(3)
    assert second[:2] == [3, {"a": [3]}]
    assert second[2].tolist() == [3, 3, 3]
    second[1].clear()
    second[2][:] = 8
    enabled.settle()
    third = containers(3)
    assert third[:2] == [3, {"a": [3]}]
    assert third[2].tolist() == [3, 3, 3]


def test_two_readers_of_one_file_do_not_see_each_other(enabled):
    large_array(20_000)
    enabled.settle()
    one, two = large_array(20_000), large_array(20_000)
    assert outcome() == "reused"
    one[0] = 5
    assert two[0] == 0
    assert not np.shares_memory(one, two)


@nectar.memo
def frames(kind):
    if kind == "pandas":
        frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([5, 6], name="i"))
        frame.attrs["unit"] = {"a": "m"}
        return frame
    return pl.DataFrame({"a": [1, 2]}) if kind == "polars" else pa.table({"a": [1, 2]})


def test_frames_changed_by_their_caller(enabled):
    for settle in (False, True, True):
        frame = frames("pandas")
        assert frame.attrs == {"unit": {"a": "m"}}
        assert frame.index.name == "i"
        assert frame.a.tolist() == [1, 2]
        frame.loc[5, "a"] = 100
        frame["b"] = 1
        frame.attrs["unit"]["a"] = "changed"
        frame = frames("polars")
        assert frame.to_dict(as_series=False) == {"a": [1, 2]}
        frame[0, "a"] = 100
        frame.insert_column(0, pl.Series("z", [0, 0]))
        frame.extend(frame)
        if settle:
            enabled.settle()
    assert frames("table").to_pydict() == {"a": [1, 2]}
    assert type(frames("table")) is pa.Table


def test_the_result_is_an_argument_or_a_captured_object(enabled):
    @nectar.memo
    def same_one(x):
        return x

    given = [1]
    assert same_one(given) is given, "computed: what the function gave"
    back = same_one(given)
    assert back == [1]
    back.append(2)
    given.append(3)
    assert same_one([1]) == [1]

    @nectar.memo
    def is_captured():
        return VALUES["nested"]

    is_captured()
    assert is_captured() == VALUES["nested"]


@pytest.mark.parametrize(
    "made",
    [
        lambda a: pa.table({"x": pa.array(a)}),
        lambda a: pl.DataFrame({"x": a}),
        lambda a: pl.from_numpy(a.reshape(-1, 1), schema=["x"]),
        lambda a: pa.Table.from_pandas(pd.DataFrame({"x": a}, copy=False)),
        lambda a: pd.DataFrame({"x": a}, copy=False),
        lambda a: {"x": a[::2]},
        lambda a: {"x": memoryview(a).tolist()},
    ],
)
def test_a_result_that_shares_memory_with_what_the_caller_changes(enabled, made):
    """Tables are built from arrays without a copy: what is kept must not change with the array."""
    gate = threading.Event()
    enabled.keeper.submit(lambda: gate.wait(10))

    @nectar.memo
    def f(a):
        long_enough()
        return made(a)

    try:
        given = np.arange(3000.0)
        f(given)
        given[:] = -1
    finally:
        gate.set()
    enabled.settle()
    assert list(map(float, f(np.arange(3000.0))["x"][:3])) == list(map(float, made(np.arange(3000.0))["x"][:3]))


_MISSING = object()


def test_a_sentinel_in_a_result_is_the_sentinel_or_it_is_not_kept(enabled):
    given = object()
    for function, expected in (
        (lambda x: _MISSING, _MISSING), (lambda x: [x, _MISSING][1], _MISSING), (lambda x: x, given),
        (lambda x: dataclasses.MISSING, dataclasses.MISSING), (lambda x: np.ma.masked, np.ma.masked),
        (lambda x: pd.NA, pd.NA), (lambda x: NotImplemented, NotImplemented), (lambda x: Shade.DARK, Shade.DARK),
    ):  # fmt: skip
        memoised = nectar.memo(function)
        for _ in range(3):
            assert memoised(given) is expected
            enabled.settle()


def test_results_with_functions_are_not_kept_and_say_why(enabled):
    @nectar.memo
    def gives_lambda(x):
        return [lambda: x]

    for _ in range(2):
        assert gives_lambda(3)[0]() == 3
        assert keeping().startswith("not kept: ")
        assert "lambda" in keeping() or "function" in keeping()

    @nectar.memo
    def gives_generator():
        return (n for n in range(3))

    for _ in range(2):
        assert list(gives_generator()) == [0, 1, 2]
        assert keeping().startswith("not kept: ")
        assert "generator" in keeping()


def helper(x):
    return x + 1


def test_results_with_functions_and_classes_that_the_call_reaches(enabled):
    @nectar.memo
    def gives_helper(kind):
        return [helper, kind, Point(helper(1))]

    for _ in range(2):
        found = gives_helper(Shade)
        assert found[0] is helper
        assert found[1] is Shade
        assert found[2] == Point(2)
    assert outcome() == "reused"


def test_a_result_of_a_class_made_by_the_call_is_not_kept(enabled):
    @nectar.memo
    def made_inside():
        class Local:
            pass

        return Local()

    for _ in range(2):
        assert type(made_inside()).__name__ == "Local"
        assert keeping().startswith("not kept: ")
        assert "Local" in keeping()


def test_a_result_not_worth_its_bytes_is_not_kept_and_says_why(enabled, monkeypatch):
    monkeypatch.setattr("nectar.overhead.steering._READING", 1e6)  # bytes a second: a slow disk

    @nectar.memo
    def quick(n):
        return bytes(n)

    for _ in range(2):
        assert quick(30_000_000) == bytes(30_000_000)
        assert outcome() == "computed"
        assert "reading its 30" in keeping()
        assert "would take about" in keeping()
    assert quick(100) == bytes(100)
    assert quick(100) == bytes(100)
    assert outcome() == "reused", "small ones always are"


def test_a_result_larger_than_the_budget_is_not_kept_and_says_why(home):
    with nectar.reuse(home=home, reserve=0, budget=100_000) as report:
        assert len(large_array(20_000)) == 20_000
        assert len(large_array(2_000)) == 2_000
    large, small = report.parts
    assert large.keeping.startswith("not kept: ")
    assert "budget" in large.keeping
    assert small.keeping == "kept"
    with nectar.reuse(home=home, reserve=0, budget=100_000) as report:
        large_array(20_000)
        large_array(2_000)
    assert [part.outcome for part in report.parts] == ["computed", "reused"]


def test_the_store_stays_within_its_budget(home):
    with nectar.reuse(home=home, reserve=0, budget=200_000, protect=0):
        for n in range(12):
            assert len(large_array(5_000 + n)) == 5_000 + n
    assert sum(path.stat().st_size for path in (home / "results").rglob("*") if path.is_file()) <= 200_000


def test_classes_of_scripts_and_classes_that_move_or_change(program):
    kinds = "class Thing:\n    def __init__(self, n):\n        self.n = n\n"
    script = f"""
import json, sys
import numpy as np
import nectar
from nectar.dialects.python import pickling
from kinds import Thing

class Mine:
    def __init__(self, n): self.n = n

@nectar.memo
def mine(n): return Mine(n)
@nectar.memo
def thing(n): return [Thing(n), Thing]
{OUTCOMES}
told = []
for call in mine, thing:
    value, outcome = outcomes(call, 1)
    value = value[0] if isinstance(value, list) else value
    told.append([value.n, outcome, type(value) in (Mine, Thing), type(value).__module__])
print(json.dumps(told))
"""
    program.write(kinds=kinds, script=script)
    assert program.told("script") == [[1, "mine computed", True, "__main__"], [1, "thing computed", True, "kinds"]]
    assert program.told("script") == [[1, "mine reused", True, "__main__"], [1, "thing reused", True, "kinds"]]
    program.write(renamed=script)
    assert program.told("renamed") == [[1, "mine reused", True, "__main__"], [1, "thing reused", True, "kinds"]]
    program.write(moved=kinds, script=script.replace("from kinds", "from moved"))
    (program.folder / "kinds.py").unlink()
    moved = program.told("script")
    assert moved[1] in ([1, "thing reused", True, "moved"], [1, "thing computed", True, "moved"])
    program.write(moved=kinds + "        self.new = 1\n")
    assert program.told("script") == [[1, "mine reused", True, "__main__"], [1, "thing computed", True, "moved"]]


def test_classes_are_not_held_by_what_is_known_of_them():
    class Local:
        pass

    assert not pickling.is_doubtful(Local())
    gone = weakref.ref(Local)
    del Local
    gc.collect()
    assert gone() is None
    assert all(reference() is not None for reference, _ in pickling._known.values())


class Sentinel:
    pass


NOTHING = Sentinel()
SETTINGS = {"a": 1}


@nectar.memo
def captured(n):
    return NOTHING if n else SETTINGS


@nectar.memo
def chosen(items):
    return [each for each in items if each.items]


@pytest.mark.parametrize("inline", [4096, 0])
def test_objects_that_were_there_before_come_back_as_themselves(home, inline):
    """A function that gives what it was given, or captured, gives no copy; nor does a hit."""
    for _ in range(2):
        items = [Plain([1]), Plain([]), Plain([2])]
        with nectar.reuse(home=home, reserve=0, inline=inline) as report:
            for _ in range(2):
                assert given_back(items) is items
                assert captured(1) is NOTHING
                assert captured(0) is SETTINGS
                first, third = chosen(items)
                assert first is items[0]
                assert third is items[2]
        assert len(report.reused) >= 4
    assert len(report.reused) == 8


@nectar.memo
def one_of_equals(items):
    return next(iter(items))


def test_one_of_several_equal_members_of_a_set_is_no_number(home):
    """Which of them it is, no key tells; what comes back is still one that the function could give."""
    members = {Sentinel(), Sentinel()}
    with nectar.reuse(home=home, reserve=0):
        for _ in range(2):
            assert type(one_of_equals(members)) is Sentinel
