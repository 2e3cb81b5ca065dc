"""What memoised functions are called with, or use, is changed between calls and within them."""

import datetime
import threading

import numpy as np
import pandas as pd
import pytest
from tests.dialects.python.attacks import Shape, refused, shown

import nectar

pytestmark = [pytest.mark.usefixtures("enabled"), pytest.mark.filterwarnings("ignore::nectar.NectarWarning")]


# arguments and captured values that change


def test_functions_that_change_an_argument_are_never_kept():
    def pops(items):
        return items.pop()

    def fills(table, key):
        table[key] = 1
        return len(table)

    def writes(values):
        values[0] = 9
        return float(values.sum())

    def sets(shape):
        shape.size += 1
        return shape.size

    def adds(items):
        items += [1]
        return len(items)

    for function, make in (
        (pops, lambda: ([1, 2, 3],)), (fills, lambda: ({}, "a")), (writes, lambda: (np.zeros(3),)),
        (sets, lambda: (Shape(1),)), (adds, lambda: ([],)), (lambda v: v.sort(), lambda: (np.array([2, 1]),)),
        (lambda f: f.insert(0, "z", 1), lambda: (pd.DataFrame({"a": [1]}),)),
        (lambda v: np.add(v, 1, out=v), lambda: (np.zeros(2),)),
    ):  # fmt: skip
        memoised = nectar.memo(function)
        for _ in range(2):
            plain, ours = make(), make()
            function(*plain)
            assert refused(memoised, *ours)
            assert shown(ours[0].__dict__ if isinstance(ours[0], Shape) else ours[0]) == shown(
                plain[0].__dict__ if isinstance(plain[0], Shape) else plain[0]
            )


def test_an_argument_changed_between_calls():
    memoised = nectar.memo(lambda items: sum(items))
    items = [1, 2]
    assert memoised(items) == 3
    items.append(3)
    assert memoised(items) == 6
    values = np.arange(3)
    assert memoised(values) == 3
    values[0] = 10
    assert memoised(values) == 13
    view = values[::2]
    assert memoised(view) == 12
    values[2] = 0
    assert memoised(view) == 10


NUMBERS = [1, 2]
SWITCH = 1


def test_captured_values_changed_between_calls(monkeypatch):
    memoised = nectar.memo(lambda: sum(NUMBERS))
    assert memoised() == 3
    NUMBERS[0] = 10
    assert memoised() == 12
    NUMBERS[0] = 1
    assert memoised() == 3
    reads = nectar.memo(lambda: SWITCH)
    assert reads() == 1
    monkeypatch.setitem(globals(), "SWITCH", 2)
    assert reads() == 2
    count = 1
    cell = nectar.memo(lambda: count)
    assert cell() == 1
    count = 2
    assert cell() == 2


def test_mutable_defaults():
    def collects(x, into=[]):
        into.append(x)
        return list(into)

    memoised = nectar.memo(collects)
    assert [memoised(1), memoised(1), memoised(2)] == [[1], [1, 1], [1, 1, 2]]

    def reads(x, options={"a": 1}):
        return x + options["a"]

    memoised = nectar.memo(reads)
    assert memoised(1) == 2
    reads.__defaults__[0]["a"] = 5
    assert memoised(1) == 6
    reads.__defaults__ = ({"a": 7},)
    assert memoised(1) == 8
    reads.__defaults__ = (8,)
    with pytest.raises(TypeError):
        memoised(1)


def test_defaults_and_code_replaced_in_place():
    def f(x, y=1):
        return x + y

    def g(x, y=1):
        return x * y

    memoised = nectar.memo(f)
    assert memoised(5) == 6
    f.__defaults__ = (2,)
    assert memoised(5) == 7
    assert memoised(5, 1) == 6
    f.__kwdefaults__, f.__code__ = None, g.__code__
    assert memoised(5) == 10

    def h(x, *, y=1):
        return x + y

    memoised = nectar.memo(h)
    assert memoised(5) == 6
    h.__kwdefaults__ = {"y": 2}
    assert memoised(5) == 7
    h.__kwdefaults__["y"] = 3
    assert memoised(5) == 8


def test_parameters_renamed_in_place():
    def plain(x, y):
        return x - y

    memoised = nectar.memo(plain)
    assert [memoised(5, 1), memoised(x=5, y=1), memoised(1, 5)] == [4, 4, -4]
    plain.__code__ = (lambda y, x: x - y).__code__
    assert [memoised(x=5, y=1), memoised(5, 1), memoised(1, 5)] == [4, -4, 4]
    plain.__code__ = (lambda y, x, z: (y, x, z)).__code__
    assert memoised(5, 1, 2) == (5, 1, 2)


FLAG = ["before"]


def test_a_captured_value_changed_by_another_thread_during_the_call():
    started, changed = threading.Event(), threading.Event()
    gate = nectar.pure(lambda: (started.set(), changed.wait(10))[1])

    @nectar.memo
    def f():
        before = FLAG[0]
        gate()
        return before, FLAG[0]

    def change():
        started.wait(10)
        FLAG[0] = "after"
        changed.set()

    thread = threading.Thread(target=change)
    thread.start()
    assert f() == ("before", "after")
    thread.join()
    assert nectar.last_run().parts[0].keeping.startswith("not kept")
    assert f() == ("after", "after")
    FLAG[0] = "before"
    assert f() == ("before", "before")


def test_time_and_chance_and_the_process_are_refused():
    import os
    import random
    import time
    import uuid

    for function in (
        lambda: time.time_ns(), lambda: random.random(), lambda: uuid.uuid4(),
        lambda: os.getcwd(), lambda: datetime.datetime.now(), lambda: np.random.rand(), lambda: id(object()),
        lambda: np.random.default_rng().random(), lambda: pd.Timestamp.now(), lambda: threading.get_ident(),
        lambda: os.getpid(), lambda: hash("text"),
    ):  # fmt: skip
        memoised = nectar.memo(function)
        assert refused(memoised)
        assert refused(memoised)


def test_the_environment_counts(monkeypatch):
    import os

    for function in (
        lambda: os.environ["ATTACK"], lambda: os.environ.get("ATTACK"), lambda: os.getenv("ATTACK"),
        lambda: dict(os.environ)["ATTACK"], lambda: os.path.expandvars("$ATTACK"),
    ):  # fmt: skip
        memoised = nectar.memo(function)
        for value in ("1", "2", "1"):
            monkeypatch.setenv("ATTACK", value)
            assert memoised() == value
