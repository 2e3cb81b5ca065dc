"""NumPy's values: content decides, memory does not."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.keys.values.value_digests import digest, still, walked

from nectar.errors import UnencodableError
from nectar.keys.values.bulk import content, content_of_chunks

A = np.arange(24, dtype="f8").reshape(2, 3, 4)


def read_only(array: Any) -> Any:
    array = array.copy()
    array.flags.writeable = False
    return array


def padded(garbage: int) -> Any:
    made = np.zeros(3, dtype=np.dtype([("a", "i1"), ("b", "f8")], align=True))
    made.view(np.uint8)[:] = garbage
    made["a"], made["b"] = 1, 2
    return made


def extended(garbage: int) -> Any:
    made = np.zeros(2, np.longdouble)
    made.view(np.uint8)[:] = garbage
    made[:] = 1.5
    if np.finfo(np.longdouble).nmant == 63:
        made.view(np.uint8).reshape(2, -1)[:, 10:] = garbage
    return made


def used(state: Any) -> Any:
    state.random()
    return state


DIFFERENT: list[tuple[Any, Any]] = [
    (A, A.copy(order="F")),  # ravel(order="K") and nditer show it
    (A, A.reshape(3, 2, 4)),
    (A, A.astype("f4")),
    (A, A.astype(">f8")),
    (A, A + 0j),
    (A, read_only(A)),
    (A, A.tolist()),
    (A, np.asmatrix(A[0])),
    (A[0], A[0].T),
    (np.array([0.0]), np.array([-0.0])),
    (np.array([1]), np.array([True])),
    (np.array([], "i4"), np.array([], "i8")),
    (np.zeros((0, 2)), np.zeros((2, 0))),
    (np.array(1), np.array([1])),
    (np.array(1), np.int64(1)),
    (np.int64(1), np.int32(1)),
    (np.int64(1), 1),
    (np.float64(1), 1.0),
    (np.datetime64("2020-01-01"), np.datetime64("2020-01-01T00")),
    (np.datetime64("NaT"), np.timedelta64("NaT")),
    (np.array(["2020"], "M8[D]"), np.array(["2020"], "M8[s]")),
    (np.array(["a"]), np.array([b"a"])),
    (np.array(["a"]), np.array(["a"], "U2")),
    (np.array([1, "a"], object), np.array([1, "b"], object)),
    (np.array([1, None], object), np.array([True, None], object)),
    (np.array(["a", "b"], np.dtypes.StringDType()), np.array(["a", "c"], np.dtypes.StringDType())),
    (np.array(["a"], np.dtypes.StringDType()), np.array(["a"], np.dtypes.StringDType(coerce=False))),
    (np.zeros(2, [("a", "i4"), ("b", "i4")]), np.zeros(2, [("b", "i4"), ("a", "i4")])),
    (np.zeros(2, [("a", "i4"), ("b", "f4")]), np.zeros(2, [("a", "f4"), ("b", "i4")])),
    (np.zeros(2, [("a", "i4", 2)]), np.zeros(2, [("a", "i4", (1, 2))])),
    (np.zeros(2, [("a", "i4")]), np.zeros(2, [("a", "i4")]).view(np.recarray)),
    (np.zeros(2, [("a", "O"), ("b", "i4")]), np.zeros(2, [("a", "O"), ("b", "i8")])),
    (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[1, 0])),
    (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 3], mask=[0, 1])),
    (np.ma.array([1, 2]), np.ma.array([1, 2], fill_value=7)),
    (np.ma.array([1, 2]), np.array([1, 2])),
    (np.ma.array([1, 2]), np.ma.array([1, 2], hard_mask=True)),
    (np.dtype("f4"), np.dtype("f8")),
    (np.dtype("<f4"), np.dtype(">f4")),
    (np.dtype("f4"), np.dtype("f4", metadata={"a": 1})),
    (np.dtype("f4", metadata={"a": 2}), np.dtype("f4", metadata={"a": 1})),
    (np.dtype([("a", "i1"), ("b", "f8")]), np.dtype([("a", "i1"), ("b", "f8")], align=True)),
    (np.dtype([("a", "i4")]), np.dtype([(("title", "a"), "i4")])),
    (np.random.default_rng(1), np.random.default_rng(2)),
    (np.random.default_rng(1), used(np.random.default_rng(1))),
    (np.random.default_rng(1), np.random.Generator(np.random.PCG64DXSM(1))),
    (np.random.RandomState(1), np.random.RandomState(2)),
    (np.random.RandomState(1), used(np.random.RandomState(1))),
    (np.random.SeedSequence(1), np.random.SeedSequence(1, spawn_key=(1,))),
    (np.add, np.subtract),
    (np.frompyfunc(lambda a: a + 1, 1, 1), np.frompyfunc(lambda a: a + 2, 1, 1)),
    (np.vectorize(lambda a: a + 1), np.vectorize(lambda a: a + 2)),
    (np.vectorize(abs), np.vectorize(abs, otypes="f")),
    (np.sum, np.prod),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_values_that_programs_can_tell_apart_differ(a: Any, b: Any) -> None:
    assert digest(a) != digest(b)


def applied(function: Any, argument: Any) -> Any:
    function(argument)
    return function


AGREEING: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
    (lambda: A, lambda: np.repeat(A, 2, axis=1)[:, ::2]),
    (lambda: A.T, lambda: np.asfortranarray(A.T)),
    (lambda: A[:, ::-1], lambda: A[:, ::-1].copy()),
    (lambda: np.array(17.0), lambda: A[1, 1, 1:2].reshape(())),
    (lambda: np.broadcast_to(np.arange(3), (4, 3)), lambda: read_only(np.array([[0, 1, 2]] * 4))),
    (lambda: padded(0), lambda: padded(255)),
    (lambda: extended(0), lambda: extended(255)),
    (lambda: np.arange(3)[1:], lambda: np.array([1, 2])),
    (lambda: np.array([1, "a"], object), lambda: np.array([0, 1, "a"], object)[1:]),
    (lambda: np.vectorize(abs), lambda: applied(np.vectorize(abs), [1])),
    (lambda: np.random.default_rng(3), lambda: np.random.Generator(np.random.PCG64(3))),
]


@pytest.mark.parametrize(("a", "b"), AGREEING)
def test_memory_does_not_matter(a: Callable[[], Any], b: Callable[[], Any]) -> None:
    assert digest(a()) == digest(b())


def test_a_looked_at_fill_value_does_not_matter() -> None:
    array = np.ma.array([1, 2])
    before = digest(array)
    assert array.fill_value is not None
    assert digest(array) == before


def test_memory_maps_count_by_content(tmp_path: Any) -> None:
    for name in ("a", "b"):
        np.arange(5.0).tofile(tmp_path / name)
    first, second = (np.memmap(tmp_path / name, "f8", "r+") for name in ("a", "b"))
    assert digest(first) == digest(second)
    second[2] = 9
    assert digest(first) != digest(second)


def test_object_arrays_can_hold_themselves() -> None:
    array = np.array([None, 1], object)
    array[0] = array
    assert digest(array) == digest(array)


@pytest.mark.parametrize("value", [np.nditer(A), A.flat, np.broadcast(A, A)])
def test_iterators_are_refused(value: Any) -> None:
    with pytest.raises(UnencodableError):
        digest(value)


@pytest.mark.parametrize(
    ("value", "change"),
    [
        (np.zeros(3), lambda value: value.fill(1)),
        (np.zeros(300_000), lambda value: value.__setitem__(77_777, 1)),
        (np.zeros((300, 400))[:, ::3], lambda value: value.__setitem__((7, 7), 1)),
        (np.zeros(4), lambda value: setattr(value, "shape", (2, 2))),
        (np.zeros(4), lambda value: setattr(value.flags, "writeable", False)),
        (np.array([1, None], object), lambda value: value.__setitem__(0, 2)),
        (np.random.default_rng(1), lambda value: value.random()),
        (np.ma.array([1, 2]), lambda value: value.__setitem__(0, np.ma.masked)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_recheck_notices_changes(value: Any, change: Callable[[Any], Any]) -> None:
    before, walk = walked(value)
    assert still(walk)
    change(value)
    assert not still(walk)
    assert digest(value) != before


def test_chunks_hash_like_the_whole() -> None:
    data = bytes(range(256)) * 10_000
    assert content(data) == content_of_chunks([data[:1000], data[1000:]])
    assert content(data) == content(memoryview(data))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_large_arrays_can_be_hashed_after_a_fork() -> None:
    array = np.zeros(1 << 20)
    before = digest(array)
    child = os.fork()
    if child == 0:
        os._exit(0 if digest(array) == before else 1)
    for _ in range(600):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.05)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child did not finish")
    assert os.waitstatus_to_exitcode(status) == 0
