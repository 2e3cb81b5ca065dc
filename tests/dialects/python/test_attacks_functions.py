"""Functions, files and services as arguments of memoised functions."""

import functools
import io
import math
import operator

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.dialects.python.attacks import Shape, area, attack, refused

import nectar

pytestmark = [pytest.mark.usefixtures("enabled"), pytest.mark.filterwarnings("ignore::nectar.NectarWarning")]


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
