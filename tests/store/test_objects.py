import dataclasses
import datetime
import enum
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.store.making import put_object

from nectar.errors import StoreFailure, UserError
from nectar.store.formats.objects import ALIGNMENT, laid_out


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Point:
    x: int
    y: list


class Untrusty:
    """Pickles, and fails to come back."""

    def __setstate__(self, state):
        raise RuntimeError("no way back")

    def __getstate__(self):
        return {"a": 1}


VALUES = [None, True, 3, 2**100, 1.5, "text", b"bytes", [1, [2]], (1,), {"k": {1, 2}}, frozenset([1]), Colour.RED]
VALUES += [
    Point(1, [2]),
    datetime.datetime(2020, 1, 1),
    range(3),
    int,
    len,
    ...,
    bytearray(b"abc"),
    ValueError("x").args,
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_type_and_equality_survive(store, value):
    back = store.open(put_object(store, value), verify="before").to_object()
    assert type(back) is type(value)
    assert back == value


@pytest.mark.parametrize(
    "array",
    [
        np.arange(10),
        np.zeros((0, 3)),
        np.asfortranarray(np.ones((30, 20))),
        np.arange(100)[::3],
        np.array(["a", None], object),
    ],
)
def test_arrays_survive(store, array):
    back = store.open(put_object(store, {"a": array})).to_object()["a"]
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype
    assert back.flags.f_contiguous == array.flags.f_contiguous or not array.flags.contiguous


def test_arrays_are_mapped_aligned_and_read_only(local):
    arrays = [np.arange(n, dtype="f8") for n in (1, 1000, 3, 50_000)]
    result = local.open(put_object(local, arrays))
    back = result.to_object()
    result.close()
    for array in back:
        assert not array.flags.owndata
        assert array.ctypes.data % ALIGNMENT == 0
        with pytest.raises(ValueError):
            array[0] = 1


def test_private_arrays_can_be_written_and_nobody_sees_it(store):
    entry = put_object(store, np.arange(1000))
    array = store.open(entry).to_object(writable=True)
    array += 1
    assert array[0] == 1
    assert store.open(entry).to_object()[0] == 0
    assert store.examine(entry, thorough=True) == []


def test_tables_inside_objects_survive(store):
    value = {"t": pa.table({"a": [1, 2]}), "p": pd.DataFrame({"a": [1.0, 2.0], "s": ["x", "y"]})}
    back = store.open(put_object(store, value)).to_object()
    assert back["t"].equals(value["t"])
    pd.testing.assert_frame_equal(back["p"], value["p"])


def test_many_buffers_take_one_file(local):
    assert put_object(local, [np.arange(3) for _ in range(100)]).files == 3


@pytest.mark.parametrize("value", [lambda: 1, threading.Lock(), (n for n in ())], ids=["lambda", "lock", "generator"])
def test_value_that_does_not_pickle_is_refused_by_type(store, value):
    with pytest.raises(UserError, match="cannot be kept"):
        put_object(store, value)
    assert list(store.locations()) == []


def test_value_that_does_not_come_back_is_reported(store):
    with pytest.raises(StoreFailure, match="no way back"):
        store.open(put_object(store, Untrusty())).to_object()


def test_buffers_are_laid_out_without_overlap():
    places, pieces = laid_out([memoryview(bytes(n)) for n in (1, 64, 0, 65)])
    assert places == ((0, 1), (64, 64), (128, 0), (128, 65))
    assert sum(memoryview(piece).nbytes for piece in pieces) == 128 + 65
