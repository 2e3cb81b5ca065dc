"""Arrays and frames as arguments of memoised functions, and places outside of the call."""

import array
import copy
import decimal
import functools
import math
import threading
import types
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.dialects.python.attacks import Shape, attack

import nectar

pytestmark = [pytest.mark.usefixtures("enabled"), pytest.mark.filterwarnings("ignore::nectar.NectarWarning")]
SWITCH = 1


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
