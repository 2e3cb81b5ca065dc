"""Attempts to get a wrong answer out of a memoised function: calls that look alike and are not.

The oracle is the function itself: whatever the order of calls, the memoised function gives what the plain one gives.
"""

import array
import collections
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import math
import operator
import pathlib
import re
import threading
import types
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import nectar

pytestmark = [pytest.mark.usefixtures("enabled"), pytest.mark.filterwarnings("ignore::nectar.NectarWarning")]


def shown(value):
    """A text that tells values apart, types and signs included; NaN is like itself."""
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"
    return f"{type(value).__name__} {value!r}"


def attack(function, *calls, rounds=2):
    """Every call gives what the plain function gives. calls: functions that make the arguments, new each time."""
    memoised = nectar.memo(function)
    for _ in range(rounds):
        for make in calls:
            args, kwargs = _split(make())
            expected = shown(function(*args, **kwargs))
            args, kwargs = _split(make())
            assert shown(memoised(*args, **kwargs)) == expected
    return memoised


def _split(made):
    if isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], dict) and isinstance(made[0], tuple):
        return made
    return (made if isinstance(made, tuple) else (made,)), {}


def outcome():
    return nectar.last_run().parts[-1].outcome


def refused(memoised, *args, **kwargs):
    memoised(*args, **kwargs)
    part = nectar.last_run().parts[-1]
    return part.outcome == "uncacheable" or part.keeping.startswith("not kept")


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


class Shape:
    scale = 1

    def __init__(self, size):
        self.size = size

    def area(self):
        return self.size * self.scale


def area(shape):
    return shape.area()


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


# functions as arguments


def test_functions_as_arguments():
    def double(x):
        return 2 * x

    def doubled(x):
        return 2 * x

    def add(n):
        return lambda x: x + n

    attack(
        lambda g: g(3), lambda: (double,), lambda: (add(1),), lambda: (add(2),), lambda: (add(2.0),),
        lambda: (math.sqrt,), lambda: (functools.partial(pow, 2),), lambda: (functools.partial(pow, 3),),
        lambda: (functools.partial(pow, exp=2),), lambda: (Shape(1).size.__add__,), lambda: (Shape(2).size.__add__,),
        lambda: (operator.itemgetter(0).__class__,), lambda: (int,), lambda: (float,), lambda: (str,),
    )  # fmt: skip
    attack(
        lambda g: g(), lambda: (Shape(1).area,), lambda: (Shape(2).area,), lambda: (functools.partial(area, Shape(3)),)
    )
    attack(lambda g: g.__name__, lambda: (double,), lambda: (doubled,))
    attack(lambda g: g.__qualname__, lambda: (double,), lambda: (doubled,))
    attack(lambda g: getattr(g, "__name__"), lambda: (double,), lambda: (doubled,))


def test_texts_of_functions_show_their_names():
    def one():
        return 1

    def other():
        return 1

    for look in (
        lambda g: str(g).split(" at ")[0], lambda g: repr(g).split(" at ")[0],
        lambda g: f"{g}".split(" at ")[0], lambda g: ("%s" % g).split(" at ")[0],
        lambda g: "{}".format(g).split(" at ")[0], lambda g: str([g]).split(" at ")[0],
        lambda g: ",".join(map(str, [g])).split(" at ")[0],
    ):  # fmt: skip
        attack(look, lambda: (one,), lambda: (other,))


def test_callbacks_that_look_at_names_of_what_they_get():
    def one():
        return 1

    def other():
        return 1

    attack(lambda look, at: look(at), lambda: (lambda g: g.__name__, one), lambda: (lambda g: g.__name__, other))
    attack(lambda look, at: look(at), lambda: (lambda g: g.__doc__, one), lambda: (lambda g: g.__code__.co_name, other))


COUNTER = []


def test_callbacks_with_effects_are_not_kept():
    def note(x):
        COUNTER.append(x)
        return len(COUNTER)

    @nectar.memo
    def f(g):
        return g(0)

    assert f(note) < f(note) < f(note)

    @nectar.memo
    def opens(g, path):
        return g(path)

    assert refused(opens, lambda path: open(path).read(), __file__)


def test_methods_of_arguments_that_read_files_are_hidden_inputs(tmp_path):
    path = tmp_path / "data.txt"
    readers = (
        lambda p: p.open().read(), lambda p: p.read_text(), lambda p: p.read_bytes().decode(),
        lambda p: open(p).read(), lambda p: io.FileIO(p).read().decode(), lambda p: "".join(p.read_text() for _ in "a"),
        lambda p: p.__class__.read_text(p), lambda p: [q.read_text() for q in [p]][0],
        lambda p: list(map(type(p).read_text, [p]))[0], lambda p: p.with_name(p.name).read_text(),
        lambda p: getattr(p, "read_text")(), lambda p: getattr(p, "read_" + "text")(),
        lambda p: operator.methodcaller("read_text")(p), lambda p: operator.attrgetter("read_text")(p)(),
    )  # fmt: skip
    for reader in readers:
        memoised = nectar.memo(reader)
        path.write_text("one")
        assert memoised(path) == "one"
        path.write_text("two")
        assert memoised(path) == "two"


def test_what_arguments_say_of_files_is_a_hidden_input(tmp_path):
    asks = (
        lambda p: p.exists(), lambda p: p.is_file(), lambda p: sorted(q.name for q in p.parent.iterdir()),
        lambda p: sorted(q.name for q in p.parent.glob("*")), lambda p: p.exists() and p.stat().st_size,
        lambda p: str(p.resolve()),
    )  # fmt: skip
    for number, ask in enumerate(asks):
        memoised = nectar.memo(ask)
        path = tmp_path / str(number) / "file"
        path.parent.mkdir()
        memoised(path)
        path.symlink_to(tmp_path) if number == 5 else path.write_text("xyz")
        assert memoised(path) == ask(path)


class Client:
    """As clients of services are: what its methods give comes from elsewhere."""

    def __init__(self, path):
        self.path = path

    def get(self):
        with open(self.path) as file:
            return file.read()


def test_clients_of_services_as_arguments(tmp_path):
    path = tmp_path / "answer"
    memoised = nectar.memo(lambda client: client.get())
    path.write_text("one")
    assert memoised(Client(str(path))) == "one"
    path.write_text("two")
    assert memoised(Client(str(path))) == "two"


def test_strings_that_name_files_are_hidden_inputs(tmp_path):
    path = tmp_path / "data.csv"
    for reader in (lambda p: open(p).read(), lambda p: pd.read_csv(p).a[0], lambda p: pl.read_csv(p)["a"][0],
                   lambda p: np.loadtxt(p, skiprows=1).item(), lambda p: np.fromfile(p, dtype="u1").sum(),
                   lambda p: pl.scan_csv(p).collect()["a"][0]):  # fmt: skip
        memoised = nectar.memo(reader)
        path.write_text("a\n1\n")
        assert memoised(str(path)) == reader(str(path))
        path.write_text("a\n2\n")
        assert memoised(str(path)) == reader(str(path))


def test_lazy_frames_as_arguments_read_files(tmp_path):
    path = tmp_path / "data.csv"
    memoised = nectar.memo(lambda frame: frame.collect()["a"].to_list())
    path.write_text("a\n1\n")
    assert memoised(pl.scan_csv(path)) == [1]
    path.write_text("a\n2\n")
    assert memoised(pl.scan_csv(path)) == [2]


def test_open_files_and_iterators_as_arguments(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("one")
    memoised = nectar.memo(lambda file: file.read())
    for _ in range(2):
        with path.open() as file:
            assert memoised(file) == "one"
            assert memoised(file) == ""
    stream = io.StringIO("text")
    assert memoised(stream) == "text"
    assert memoised(stream) == ""
    for make in (lambda: iter([1, 2, 3]), lambda: (n for n in (1, 2, 3)), lambda: map(abs, [1, 2, 3])):
        source = make()
        first = nectar.memo(lambda values: next(values))
        assert [first(source), first(source), first(source)] == [1, 2, 3]
        total = nectar.memo(lambda values: sum(values))
        source = make()
        assert [total(source), total(source)] == [6, 0]


def test_random_generators_as_arguments():
    import random

    for make, draw in (
        (lambda: np.random.default_rng(1), lambda g: g.random()),
        (lambda: np.random.RandomState(1), lambda g: g.rand()),
        (lambda: random.Random(1), lambda g: g.random()),
    ):
        memoised = nectar.memo(draw)
        plain, ours = make(), make()
        assert [memoised(ours) for _ in range(4)] == [draw(plain) for _ in range(4)]
        plain, ours = make(), make()
        assert [memoised(ours) for _ in range(4)] == [draw(plain) for _ in range(4)]


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


# arrays and frames as arguments


def test_arrays_that_print_alike():
    base = np.arange(6)
    alike = [
        base, base.astype("f8"), base.astype("i4"), base.astype(">i8"), base.reshape(2, 3), base.reshape(3, 2),
        np.asfortranarray(base.reshape(2, 3)), base.tolist(), np.ma.masked_array(base, [1] * 6),
        base.view("M8[s]"), base.view("m8[s]"),
    ]  # fmt: skip
    attack(lambda a: (type(a).__name__, str(getattr(a, "dtype", "")), repr(a)), *[lambda a=a: (a,) for a in alike])
    attack(
        lambda a: a.ravel(order="K").tolist(), lambda: (np.arange(6).reshape(2, 3),),
        lambda: (np.asfortranarray(np.arange(6).reshape(2, 3)),),
    )  # fmt: skip
    attack(lambda a: np.signbit(a[0]), lambda: (np.array([0.0]),), lambda: (np.array([-0.0]),))
    attack(lambda a: a.itemsize, lambda: (array.array("i", [1]),), lambda: (array.array("q", [1]),))


def test_two_views_of_one_array_are_not_two_arrays():
    def f(a, b):
        a[0] = 7
        return int(b[0])

    def views():
        base = np.zeros(3, dtype="i8")
        return base[:], base[:]

    attack(f, lambda: (np.zeros(3, dtype="i8"), np.zeros(3, dtype="i8")), views)
    attack(
        lambda a, b: np.shares_memory(a, b), lambda: (np.zeros(3, dtype="i8"), np.zeros(3, dtype="i8")), views,
    )  # fmt: skip


def test_frames_that_print_alike():
    frame = pd.DataFrame({"a": [1, 2]})
    other = frame.copy()
    other.attrs["unit"] = "m"
    named = frame.rename_axis("i")
    alike = [
        frame, other, named, frame.astype("int32"), frame.astype("Int64"), frame.set_axis([0.0, 1.0]), frame["a"],
        frame.rename(columns={"a": "b"}), frame.astype("category"), frame.astype("string"), frame.astype(str),
        frame.astype(object), pd.DataFrame({"a": [1, 2]}, index=pd.RangeIndex(2, name="i")),
    ]  # fmt: skip
    attack(
        lambda f: (type(f).__name__, f.attrs, str(f.index.name), str(f.index.dtype), str(f.dtypes), repr(f)),
        *[lambda f=f: (f,) for f in alike],
    )
    frames = [
        pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1, 2]}, schema={"a": pl.Int32}), pl.DataFrame({"b": [1, 2]}),
        pl.DataFrame({"a": ["1", "2"]}), pl.DataFrame({"a": ["1", "2"]}, schema={"a": pl.Categorical}),
        pl.DataFrame({"a": ["1", "2"]}, schema={"a": pl.Enum(["1", "2"])}),
        pl.DataFrame({"a": ["1", "2"]}, schema={"a": pl.Enum(["2", "1"])}), pl.DataFrame({"a": [1, 2]}).lazy(),
        pl.Series("a", [1, 2]), pl.DataFrame({"a": [1.0, float("nan")]}), pl.DataFrame({"a": [1.0, None]}),
    ]  # fmt: skip
    attack(
        lambda f: (str(f.collect_schema()) if isinstance(f, pl.LazyFrame) else repr(f), type(f).__name__),
        *[lambda f=f: (f,) for f in frames],
    )
    attack(
        lambda s: s.sort().to_list(),
        lambda: (pl.Series("a", ["x", "y"], dtype=pl.Enum(["x", "y"])),),
        lambda: (pl.Series("a", ["x", "y"], dtype=pl.Enum(["y", "x"])),),
    )


# places outside the call


def test_settings_of_libraries_that_change_results(monkeypatch):
    memoised = nectar.memo(lambda a, b: str(decimal.Decimal(a) / decimal.Decimal(b)))
    assert memoised(1, 3) == "0." + "3" * 28
    with decimal.localcontext() as context:
        context.prec = 5
        assert memoised(1, 3) == "0.33333"
    text = nectar.memo(lambda a: repr(a))
    values = np.array([1.23456789])
    assert text(values) == "array([1.23456789])"
    with np.printoptions(precision=2):
        assert text(values) == "array([1.23])"
    frame = pd.DataFrame({"a": range(4)})
    whole = text(frame)
    with pd.option_context("display.max_rows", 2):
        assert text(frame) == repr(frame) != whole
    table = pl.DataFrame({"a": range(4)})
    whole = text(table)
    with pl.Config(tbl_rows=2):
        assert text(table) == repr(table) != whole
    divide = nectar.memo(lambda a: (a / 0).tolist())
    with np.errstate(divide="ignore"):
        assert divide(np.ones(1)) == [math.inf]
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        divide(np.ones(1))


def test_context_variables_and_thread_locals_are_inputs():
    import contextvars

    variable = contextvars.ContextVar("variable", default=1)
    memoised = nectar.memo(lambda: variable.get())
    assert memoised() == 1
    token = variable.set(2)
    assert memoised() == 2
    variable.reset(token)
    local = threading.local()
    local.value = 1
    memoised = nectar.memo(lambda: local.value)
    assert memoised() == 1
    local.value = 2
    assert memoised() == 2


def test_warnings_filters_and_recursion_limits_do_not_break_a_call():
    memoised = nectar.memo(lambda n: n if n == 0 else deep(n - 1))

    def deep(n):
        return n if n == 0 else deep(n - 1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert memoised(10) == 0
    with pytest.raises(RecursionError):
        memoised(10**6)
    assert memoised(10) == 0


def test_an_instance_whose_class_answers_oddly():
    class Odd:
        def __eq__(self, other):
            raise RuntimeError("no comparison")

        def __hash__(self):
            return 1

        def __bool__(self):
            raise RuntimeError("neither true nor false")

        def __repr__(self):
            raise RuntimeError("no text")

        def __len__(self):
            raise RuntimeError("no length")

    memoised = nectar.memo(lambda x: type(x).__name__)
    assert [memoised(Odd()), memoised(Odd())] == ["Odd", "Odd"]

    class Proxy:
        def __init__(self, target):
            object.__setattr__(self, "target", target)

        def __getattribute__(self, name):
            return getattr(object.__getattribute__(self, "target"), name)

    attack(lambda p: p.size, lambda: (Proxy(Shape(1)),), lambda: (Proxy(Shape(2)),))
    attack(lambda p: p.area(), lambda: (Proxy(Shape(1)),), lambda: (Proxy(Shape(2)),))


def test_weak_references_and_caches_behind_an_argument():
    import weakref

    target = Shape(1)
    memoised = nectar.memo(lambda r: r().size)
    assert memoised(weakref.ref(target)) == 1
    target.size = 2
    assert memoised(weakref.ref(target)) == 2


def test_classes_as_arguments(monkeypatch):
    memoised = nectar.memo(lambda kind: kind(3).area())
    assert memoised(Shape) == 3
    monkeypatch.setattr(Shape, "scale", 2)
    assert memoised(Shape) == 6
    made = [type("Made", (), {"value": n}) for n in (1, 2)]
    attack(lambda kind: kind.value, *[lambda kind=kind: (kind,) for kind in made])
    attack(lambda kind: kind.__name__, lambda: (type("A", (), {}),), lambda: (type("B", (), {}),))


def test_what_is_registered_with_a_class_or_a_function():
    import abc

    class Root:
        pass

    class Abstract(abc.ABC):
        pass

    @functools.singledispatch
    def dispatched(x):
        return "base"

    names = nectar.memo(lambda kind: sorted(each.__name__ for each in kind.__subclasses__()))
    checked = nectar.memo(lambda x, kind: isinstance(x, kind))
    called = nectar.memo(lambda x: dispatched(x))
    before = [names(Root), checked(Root(), Abstract), called(Root())]
    sub = type("Sub", (Root,), {})
    Abstract.register(Root)
    dispatched.register(Root)(lambda x: "root")
    assert before == [[], False, "base"]
    assert [names(Root), checked(Root(), Abstract), called(Root())] == [["Sub"], True, "root"]
    del sub


def test_callables_with_state_that_changes():
    class Adder:
        def __init__(self, n):
            self.n = n

        def __call__(self, x):
            return x + self.n

        def add(self, x):
            return x + self.n

    class Base:
        def value(self):
            return 1

    class Sub(Base):
        @nectar.memo
        def value(self):
            return super().value() + 10

    adder, items = Adder(1), [1]
    memoised = [
        nectar.memo(adder), nectar.memo(adder.add),
        nectar.memo(functools.partial(lambda items, x: sum(items) + x, items)),
    ]  # fmt: skip
    assert [each(1) for each in memoised] == [2, 2, 2]
    assert Sub().value() == 11
    adder.n = 5
    items.append(4)
    Base.value = lambda self: 2
    assert [each(1) for each in memoised] == [6, 6, 6]
    assert Sub().value() == 12


def test_many_threads_many_functions_many_arguments():
    import random

    memoised = [nectar.memo(eval(f"lambda x, k={k}: (x * k, [k] * 3)")) for k in range(5)]
    wrong = []

    def run(seed):
        chance = random.Random(seed)
        for _ in range(150):
            k, x = chance.randrange(5), chance.randrange(40)
            if memoised[k](x) != (x * k, [k] * 3):
                wrong.append((k, x))

    threads = [threading.Thread(target=run, args=(seed,), daemon=True) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert wrong == []
    assert not any(thread.is_alive() for thread in threads)


def test_files_wherever_they_are_in_an_argument(tmp_path):
    one, two = nectar.File(tmp_path / "1"), nectar.File(tmp_path / "2")

    class Holder:
        def __init__(self, file):
            self.file = file

        def read(self):
            return self.file.read_text()

    read_all = nectar.memo(lambda files: sorted(file.read_text() for file in files))
    read = nectar.memo(lambda holder: holder.read())
    read_text = nectar.memo(lambda file: file.read_text())
    for text in ("a", "b", "a"):
        (tmp_path / "1").write_text(text)
        (tmp_path / "2").write_text("2")
        for _ in range(2):
            for container in ({one, two}, frozenset({one, two}), {one: 1, two: 2}, [one, two], (one, two)):
                assert read_all(container) == sorted([text, "2"])
            assert read_all([one, one]) == [text, text]
            assert read(Holder(one)) == text
            assert read_text(one) == text


def test_modules_as_arguments():
    one, two = types.ModuleType("made"), types.ModuleType("made")
    one.value, two.value = 1, 2
    attack(lambda m: m.value, lambda: (one,), lambda: (two,))
    attack(lambda m: m.sqrt(4), lambda: (math,), lambda: (np,))


def test_copies_made_of_arguments_run_their_code(monkeypatch):
    class Copied:
        def __init__(self):
            self.value = 1

        def __deepcopy__(self, memory):
            return SWITCH

    memoised = nectar.memo(lambda x: copy.deepcopy(x))
    assert memoised(Copied()) == 1
    monkeypatch.setitem(globals(), "SWITCH", 2)
    assert memoised(Copied()) == 2
