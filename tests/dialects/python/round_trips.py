"""Functions whose results are odd in one way each, and what can be seen of a value. Run as a program of its own.

Prints, as JSON: for each function, what is seen of its result, and what became of the call.
"""

import array
import collections
import datetime
import decimal
import enum
import io
import json
import sys
import types
import zoneinfo
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import nectar


class Shade(enum.Enum):
    DARK = 1


class Bits(enum.Flag):
    A = 1
    B = 2


class Pair(NamedTuple):
    left: int
    right: str


class Names(dict):
    def __init__(self, *args):
        super().__init__(*args)
        self.extra = "e"


class Forgetful:
    def __init__(self, weight):
        self.weight = weight

    def __getstate__(self):
        return {}

    def __setstate__(self, state):
        self.weight = None


class Degrees(float):
    def __new__(cls, fahrenheit):
        return super().__new__(cls, (fahrenheit - 32) * 5 / 9)


class Shouting(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key, f"{value}!")


class Doubled(list):
    def extend(self, items):
        super().extend([*items, *items])


class Broken(Exception):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


class Careful:
    """Its pickle leaves out what it makes again."""

    def __init__(self, n):
        self.n, self.squares = n, [n * n]

    def __reduce__(self):
        return Careful, (self.n,)


class Tagged(np.ndarray):
    pass


class Frame(pd.DataFrame):
    _metadata = ["unit"]

    @property
    def _constructor(self):
        return Frame


class Lazy(pl.DataFrame):
    pass


class Metres(pa.ExtensionType):
    def __init__(self):
        super().__init__(pa.int64(), "tests.metres")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, data):
        return cls()


def objects():
    return pl.DataFrame({"a": pl.Series([{1, 2}, None, Pair(1, "x")], dtype=pl.Object), "b": [1, 2, 3]})


def objects_in_others():
    return {"frame": objects(), "column": pl.Series("c", [print, [1]], dtype=pl.Object)}


def objects_by_function():
    return pl.DataFrame({"a": [1, 2]}).with_columns(b=pl.col("a").map_elements(lambda v: {v}, return_dtype=pl.Object))


def no_objects():
    return pl.DataFrame({"a": pl.Series([], dtype=pl.Object)})


def read_only():
    found = np.arange(5000)
    found.flags.writeable = False
    return found, found[:3]


def tagged():
    found = np.arange(3).view(Tagged)
    found.tag = "t"
    return found


def frame_of_its_own():
    found = Frame({"a": [1, 2]})
    found.unit = "m"
    return found


def frame_with_a_tag():
    found = pl.DataFrame({"a": [1]})
    found.tag = "t"
    return found


def old_frame_with_a_tag():
    found = pd.DataFrame({"a": [1]})
    object.__setattr__(found, "tag", "t")
    return found


def subclass_with_a_tag():
    found = Lazy({"a": [1]})
    found.tag = "t"
    return found


def notes():
    found = pd.DataFrame({"a": [1]}, index=pd.Index(["x"], name="i"))
    found.attrs["source"] = ["somewhere"]
    found.flags.allows_duplicate_labels = False
    return found


def many_levels():
    index = pd.MultiIndex.from_product([["a", "b"], pd.CategoricalIndex(["y", "x"], ["y", "x"])], names=["k", None])
    return pd.DataFrame({"v": range(4)}, index=index)


def metres():
    return pa.table({"a": pa.ExtensionArray.from_storage(Metres(), pa.array([1, 2]))})


def twice():
    one = [1]
    return one, one, {"again": one}


def round_and_round():
    one = []
    one.append(one)
    return one


def one_nan():
    nan = float("nan")
    return nan in [nan], [nan, nan]


def views():
    base = np.arange(6).reshape(2, 3)
    return {"c": base, "f": np.asfortranarray(base), "t": base.T, "zero": np.array(5), "one": np.float32(1.5)}


def masked():
    return np.ma.masked_array([1.0, 2.0], [False, True], fill_value=7), np.ma.masked_array([1, 2])


def masked_for_good():
    return np.ma.masked_array([1.0, 2.0], [False, True], hard_mask=True)


def error():
    return Broken(3)


MAKERS = (
    objects, objects_in_others, objects_by_function, no_objects, read_only, tagged, frame_of_its_own, frame_with_a_tag,
    old_frame_with_a_tag, subclass_with_a_tag, notes, many_levels, metres, twice, round_and_round, one_nan, views,
    masked, masked_for_good, error,
)  # fmt: skip
VALUES = {
    "forgetful": lambda: Forgetful(3),
    "degrees": lambda: Degrees(212.0),
    "shouting": lambda: Shouting({"a": "b"}),
    "doubled": lambda: Doubled([1, 2]),
    "careful": lambda: Careful(7),
    "names": lambda: Names({"b": 1, "a": 2}),
    "shades": lambda: [Shade.DARK, Bits.A | Bits.B, Shade],
    "pair": lambda: Pair(1, "b"),
    "read-only mapping": lambda: types.MappingProxyType({"a": [1]}),
    "namespace": lambda: types.SimpleNamespace(b=1, a=2),
    "sets": lambda: [{1, "a", None}, frozenset({(1, 2)}), {"b": 1, "a": 2}],
    "deque": lambda: collections.deque([1, 2], maxlen=2),
    "counted": lambda: [collections.Counter("aab"), collections.OrderedDict(b=1, a=2), collections.ChainMap({"a": 1})],
    "numbers": lambda: [True, 1, 1.0, -0.0, 2**70, 1j, decimal.Decimal("1.10"), array.array("h", [1, 2])],
    "zones": lambda: [
        datetime.datetime(2020, 3, 29, 1, tzinfo=zone)
        for zone in (zoneinfo.ZoneInfo("Europe/Berlin"), datetime.UTC, datetime.timezone(datetime.timedelta(hours=1)))
    ],
    "duplicated": lambda: pd.DataFrame([[1, "x"]], columns=["a", "a"]),
    "odd cells": lambda: pd.DataFrame({"a": [{1}, Pair(1, "x"), None, int]}),
    "category": lambda: pd.Series(pd.Categorical(["x", None], ["y", "x"], ordered=True), name="c"),
    "frequency": lambda: pd.date_range("2020", periods=3, freq="D", tz="Europe/Berlin"),
    "arrow in pandas": lambda: pd.DataFrame({"a": pd.array([1, None], dtype="int64[pyarrow]")}),
    "records": lambda: np.rec.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]),
    "cells": lambda: np.array([{1}, "a", None, [1.5]], dtype=object),
    "moments": lambda: np.array(["2020-01-01", "NaT"], dtype="M8[s]"),
    "matrix": lambda: np.matrix([[1, 2]]),
    "big ends": lambda: np.arange(3, dtype=">i4"),
    "polars types": lambda: pl.DataFrame(
        {"e": pl.Series(["u", None], dtype=pl.Enum(["v", "u"])), "l": [[{"x": 1}], []], "n": [None, None]}
    ),
    "no columns": lambda: pl.DataFrame(height=3),
    "lazy": lambda: pl.LazyFrame({"a": [1, 2]}).filter(pl.col("a") > 1),
    "schema": lambda: pl.Schema({"a": pl.List(pl.Int8)}),
    "notes of arrow": lambda: pa.table({"a": [1]}).replace_schema_metadata({"k": "v"}),
    "chunks": lambda: pa.chunked_array([[1], [2, None]]),
    "batch": lambda: pa.record_batch({"a": ["x"]}),
    "iterator": lambda: iter([1, 2]),
    "generator": lambda: (n for n in range(3)),
    "memory": lambda: memoryview(b"abc"),
    "text in memory": lambda: io.StringIO("abc"),
    "exception": lambda: ValueError("a", 1),
    "function": lambda: len,
}


def seen(value, known=None):
    """What can be seen of a value: its type, its content, and which of its parts are the same object."""
    known = {} if known is None else known
    kind = type(value).__qualname__
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, decimal.Decimal)):
        return f"{kind} {value!r}"
    if id(value) in known:
        return f"number {known[id(value)][0]}"
    known[id(value)] = (len(known), value)
    if isinstance(value, type) or callable(value):
        return f"{value.__module__}.{value.__qualname__}"
    parts = [seen(part, known) for part in parts_of(value)]
    own = [f"{name}={seen(part, known)}" for name, part in sorted(own_attributes(value).items())]
    return [kind, *parts, *own]


def own_attributes(value):
    hidden = isinstance(
        value, (pd.DataFrame, pd.Series, pd.Index, np.ma.MaskedArray, pl.DataFrame, pl.Series, pl.LazyFrame)
    )
    held = getattr(value, "__dict__", {})
    return {name: part for name, part in held.items() if not (hidden and name.startswith("_"))}


def parts_of(value):
    if isinstance(value, np.ma.MaskedArray):
        return [
            *parts_of(np.asarray(value.data)),
            np.asarray(value.mask).tolist(),
            value.mask is np.ma.nomask,
            value.fill_value.item(),
            value.hardmask,
        ]
    if isinstance(value, np.ndarray):
        order = value.flags.c_contiguous, value.flags.f_contiguous
        return [str(value.dtype), str(value.shape), order, value.flags.writeable, value.tolist()]
    if isinstance(value, pl.DataFrame):
        return [str(value.schema), value.height, *value.get_columns()]
    if isinstance(value, pl.Series):
        return [value.name, str(value.dtype), value.to_list()]
    if isinstance(value, pl.LazyFrame):
        return [value.collect()]
    if isinstance(value, pd.DataFrame):
        columns = [value.iloc[:, at] for at in range(value.shape[1])]
        return [value.index, value.columns, value.attrs, value.flags.allows_duplicate_labels, *columns]
    if isinstance(value, pd.Series):
        return [str(value.dtype), repr(value.dtype), value.name, value.index, value.tolist()]
    if isinstance(value, pd.Index):
        return [list(value.names), str(value.dtype), str(getattr(value, "freq", "")), value.tolist()]
    if isinstance(value, (pa.Table, pa.RecordBatch)):
        return [str(value.schema), str(value.schema.metadata), [str(column) for column in value.columns]]
    if isinstance(value, (dict, types.MappingProxyType, collections.ChainMap)):
        return list(value.items())
    if isinstance(value, (set, frozenset)):
        return sorted(repr(seen(part)) for part in value)
    if isinstance(value, (list, tuple, collections.deque, array.array, types.GeneratorType, type(iter([])))):
        return [*value, *([value.maxlen] if isinstance(value, collections.deque) else [])]
    if isinstance(value, BaseException):
        return [value.args]
    if isinstance(value, pa.ChunkedArray):
        return [value.to_string()]
    if isinstance(value, io.StringIO):
        return [value.getvalue(), value.tell()]
    if isinstance(value, memoryview):
        return [bytes(value)]
    return [] if hasattr(value, "__dict__") and not isinstance(value, enum.Enum) else [repr(value)]


def main():
    told = {}
    functions = {maker.__name__: maker for maker in MAKERS} | VALUES
    for name, function in functions.items():
        remembered = nectar.memo(function)
        found = seen(remembered())
        again = seen(remembered())
        last = nectar.last_run().parts
        told[name] = found, again, last[-1].outcome if last else "", last[-1].keeping if last else ""
    print(json.dumps(told))


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    sys.exit(main())
