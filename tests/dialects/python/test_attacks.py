"""Calls of memoised functions that look alike and are not: values, ways to pass them, objects with classes."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import pathlib
import re
import types

import numpy as np
import pandas as pd
import pytest
from tests.dialects.python.attacks import Shape, area, attack, outcome

import nectar

pytestmark = [pytest.mark.usefixtures("enabled"), pytest.mark.filterwarnings("ignore::nectar.NectarWarning")]
SWITCH = 1


# scalars


@pytest.mark.parametrize(
    "alike",
    [
        [0, 0.0, -0.0, False, 0j, decimal.Decimal(0), fractions.Fraction(0), np.float64(0), np.int64(0)],
        [1, 1.0, True, "1", b"1", decimal.Decimal(1), decimal.Decimal("1.0"), decimal.Decimal("1.00"), np.int8(1)],
        [math.nan, -math.nan, decimal.Decimal("NaN"), decimal.Decimal("sNaN"), np.float32("nan"), None, pd.NaT],
        [complex(0.0, -0.0), complex(-0.0, 0.0), complex(0, 0)],
        [(1, 2), [1, 2], {1, 2}, frozenset({1, 2}), {1: 2}, range(1, 3), b"\x01\x02", bytearray(b"\x01\x02")],
        ["", b"", (), [], {}, set(), frozenset(), None, range(0)],
        ["é", "e\u0301", "\udce9"],
        [2**63, -(2**63), 2**64, float(2**63), 2**200],
        [datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), pd.Timestamp("2020-01-01")],
        [
            datetime.datetime(2020, 1, 1, fold=0), datetime.datetime(2020, 1, 1, fold=1),
            datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
            datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(0), "X")),
        ],
        [pathlib.PurePosixPath("a/b"), pathlib.PureWindowsPath("a/b"), "a/b"],
        [[1, [2]], [[1], 2], [1, 2], [[1, 2]], [[1], [2]]],
        [re.compile("a"), re.compile("a", re.IGNORECASE), re.compile(b"a"), "a"],
        [slice(1), slice(0, 1), slice(None, 1, 1), slice(None, 1, None)],
    ],
)  # fmt: skip
def test_values_that_look_alike_are_told_apart(alike):
    attack(lambda x: (type(x).__name__, repr(x)), *[lambda x=x: (x,) for x in alike])


class Text(str):
    def upper(self):
        return "mine"


class Number(int):
    def __add__(self, other):
        return 100


class Pairs(dict):
    def __missing__(self, key):
        return "missing"


def test_subclasses_of_builtin_types_are_not_their_bases():
    attack(lambda x: x.upper(), lambda: "a", lambda: Text("a"))
    attack(lambda x: x + 1, lambda: 1, lambda: Number(1), lambda: True)
    attack(lambda x: x.get("a", 0) if type(x) is dict else x["b"], lambda: {"a": 1}, lambda: Pairs(a=1))
    attack(
        lambda x: repr(x), lambda: {"a": 1}, lambda: collections.OrderedDict(a=1), lambda: collections.Counter(a=1),
        lambda: collections.defaultdict(int, a=1), lambda: collections.defaultdict(list, a=1),
        lambda: types.MappingProxyType({"a": 1}),
    )  # fmt: skip


def test_order_counts_where_python_keeps_one():
    attack(lambda d: list(d), lambda: {"a": 1, "b": 2}, lambda: {"b": 2, "a": 1})
    attack(lambda **d: list(d), lambda: ((), {"a": 1, "b": 2}), lambda: ((), {"b": 2, "a": 1}))
    attack(lambda *a: a, lambda: (1, 2), lambda: (2, 1), lambda: ((1, 2),), lambda: ())
    attack(lambda s: sorted(s), lambda: {1, 2, 3}, lambda: {3, 2, 1}, lambda: {1, 2})


# how arguments are passed


def test_all_ways_to_pass_an_argument_are_one_call():
    @nectar.memo
    def f(a, b=2, *, c=3):
        return a, b, c

    assert f(1) == (1, 2, 3)
    for again in (lambda: f(1, 2), lambda: f(a=1), lambda: f(b=2, a=1), lambda: f(1, c=3), lambda: f(c=3, b=2, a=1)):
        assert again() == (1, 2, 3)
        assert outcome() == "reused"
    assert f(1, 3) == (1, 3, 3)
    assert f(3, 1) == (3, 1, 3)
    assert f(1, c=2, b=3) == (1, 3, 2)


def test_rest_and_spare_arguments():
    attack(
        lambda a, *rest, b=0, **spare: (a, rest, b, tuple(spare.items())),
        lambda: (1,), lambda: (1, 2), lambda: ((1,), {"b": 2}), lambda: ((1,), {"c": 2}), lambda: (1, (2,)),
        lambda: ((1, 2), {"c": 3}), lambda: ((1,), {"rest": (2,)}), lambda: ((1,), {"spare": {"c": 3}}),
    )  # fmt: skip
    attack(lambda a, /, **a_too: (a, a_too), lambda: ((1,), {"a": 2}), lambda: ((2,), {"a": 1}), lambda: (1,))


def test_keywords_with_the_names_of_our_own_parameters():
    attack(
        lambda **spare: sorted(spare.items()), lambda: ((), {"self": 1}), lambda: ((), {"args": 1, "kwargs": 2}),
        lambda: ((), {"function": 1, "session": 2}), lambda: ((), {"self": 2}),
    )  # fmt: skip
    memoised = nectar.memo(lambda self, x: (self, x))
    assert memoised(self=1, x=2) == (1, 2)
    assert memoised.check_call_in_cache(self=1, x=2)
    assert memoised.call(self=1, x=2) == (1, 2)


def test_calls_that_python_refuses_fail_as_they_would():
    @nectar.memo
    def f(a, /, b, *, c=1):
        return a, b, c

    for args, kwargs in (((), {}), ((1,), {}), ((1, 2, 3), {}), ((1, 2), {"d": 1}), ((1, 2), {"b": 2}), ((), {"a": 1})):
        with pytest.raises(TypeError) as plain:
            f.func(*args, **kwargs)
        with pytest.raises(TypeError) as ours:
            f(*args, **kwargs)
        assert str(ours.value) == str(plain.value)


_MISSING = object()


def test_sentinels_are_themselves_and_nothing_else():
    attack(lambda x=_MISSING: x is _MISSING, lambda: (), lambda: (_MISSING,), lambda: (object(),), lambda: (None,))
    mine = object()
    attack(lambda x, y=mine: (x is y, x is mine), lambda: (mine,), lambda: (object(),), lambda: (mine, object()))
    attack(lambda x, y: x is y, lambda: (mine, mine), lambda: (mine, object()), lambda: (object(), object()))


class Shade(enum.Enum):
    MISSING = 0
    OTHER = 0.0


def test_enum_members_as_sentinels():
    attack(lambda x=Shade.MISSING: x is Shade.MISSING, lambda: (), lambda: (Shade.MISSING,), lambda: (0,))


KNOWN = [1, 2]
TABLE = {"a": 1}


def test_an_argument_that_is_a_captured_object_is_not_an_equal_copy():
    attack(lambda x: x is KNOWN, lambda: (KNOWN,), lambda: ([1, 2],), lambda: (list(KNOWN),))
    attack(lambda x: x["k"] is TABLE, lambda: ({"k": TABLE},), lambda: ({"k": dict(TABLE)},))
    attack(lambda x, y: (x is y, x is KNOWN), lambda: (KNOWN, KNOWN), lambda: (KNOWN, [1, 2]), lambda: ([1, 2], KNOWN))


def test_shared_structure_counts():
    def f(x, y):
        x.append(1)
        return len(y)

    attack(f, lambda: (lambda a: (a, a))([0]), lambda: ([0], [0]))
    attack(lambda x: x[0] is x[1], lambda: ([[0]] * 2,), lambda: ([[0], [0]],))
    attack(lambda *x: x[0] is x[1], lambda: (lambda a: (a, a))([0]), lambda: ([0], [0]))

    def cyclic(depth):
        inner = outer = []
        for _ in range(depth - 1):
            outer = [outer]
        inner.append(outer)
        return (outer,)

    attack(lambda x: x[0] is x, lambda: cyclic(1), lambda: cyclic(2), lambda: cyclic(3))


# objects with classes


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


def _twin():
    @dataclasses.dataclass
    class Point:
        x: int
        y: int = 0

    Point.__module__, Point.__qualname__ = __name__, "Point"
    return Point


def test_equal_classes_are_told_apart_by_isinstance():
    twin = _twin()
    attack(lambda x: isinstance(x, Point), lambda: Point(1), lambda: twin(1))
    attack(lambda x: type(x) is Point, lambda: twin(1), lambda: Point(1))
    attack(
        lambda x, kind: isinstance(x, kind),
        lambda: (Point(1), Point),
        lambda: (Point(1), twin),
        lambda: (twin(1), twin),
    )
    attack(lambda kind: kind is Point, lambda: (Point,), lambda: (twin,))


def test_a_method_reached_through_an_argument_counts():
    memoised = nectar.memo(area)
    assert memoised(Shape(2)) == 2
    with pytest.MonkeyPatch.context() as patched:  # of its own: undoing that of the test would undo its store
        patched.setattr(Shape, "scale", 3)
        assert memoised(Shape(2)) == 6
        patched.setattr(Shape, "area", lambda self: -self.size)
        assert memoised(Shape(2)) == -2
        shape = Shape(2)
        shape.area = lambda: "own"
        assert memoised(shape) == "own"
    assert memoised(Shape(2)) == 2
    assert outcome() == "reused"


def test_globals_that_methods_of_an_argument_read(monkeypatch):
    class Reader:
        def get(self):
            return SWITCH

        @property
        def value(self):
            return SWITCH

        def __len__(self):
            return SWITCH

    for function in (lambda r: r.get(), lambda r: r.value, len):
        memoised = nectar.memo(lambda r: function(r))
        assert memoised(Reader()) == 1
        monkeypatch.setitem(globals(), "SWITCH", 2)
        assert memoised(Reader()) == 2
        monkeypatch.setitem(globals(), "SWITCH", 1)
        assert memoised(Reader()) == 1
    called = nectar.memo(lambda g: g())
    assert called(read_switch) == 1
    monkeypatch.setitem(globals(), "SWITCH", 2)
    assert called(read_switch) == 2


def read_switch():
    return SWITCH


def test_functions_that_come_and_go():
    """Their addresses are used again."""
    memoised = nectar.memo(lambda g: g(1))
    for n in range(100):
        scope = {}
        exec(f"def made(x): return x + {n} if x else CONSTANT_{n % 3}\nCONSTANT_{n % 3} = {n}", scope)
        assert memoised(scope["made"]) == 1 + n
        assert memoised(eval(f"lambda x: x * {n}")) == n
        del scope


def test_classes_that_come_and_go():
    memoised = nectar.memo(lambda r: r.get())
    for n in range(50):
        kind = type("Made", (), {"get": eval(f"lambda self: {n}")})
        assert memoised(kind()) == n


def test_a_base_class_changed_under_an_instance(monkeypatch):
    class Sub(Shape):
        pass

    memoised = nectar.memo(area)
    assert memoised(Sub(2)) == 2
    monkeypatch.setattr(Shape, "area", lambda self: "patched")
    assert memoised(Sub(2)) == "patched"
    assert memoised(Shape(2)) == "patched"


def test_what_an_instance_hides_in_slots_and_bases():
    class Slotted:
        __slots__ = ("a", "b")

    def slotted(**values):
        made = Slotted()
        for name, value in values.items():
            setattr(made, name, value)
        return (made,)

    attack(
        lambda s: (getattr(s, "a", None), getattr(s, "b", None)),
        lambda: slotted(a=1), lambda: slotted(b=1), lambda: slotted(a=1, b=None), lambda: slotted(),
    )  # fmt: skip

    class Items(list):
        pass

    def items(*given, **values):
        made = Items(given)
        made.__dict__.update(values)
        return (made,)

    attack(lambda s: (list(s), vars(s)), lambda: items(1), lambda: items(2), lambda: items(1, a=1), lambda: items())
