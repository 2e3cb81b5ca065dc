"""`@nectar.memo` as people use it: on functions, methods, coroutines; as joblib's; what it says and what it refuses."""

import asyncio
import copy
import functools
import inspect
import logging
import pickle
import re
import threading
import time
import typing
import warnings
from pathlib import Path

import cloudpickle
import pytest

import nectar
from nectar import session
from nectar.clock import ManualClock
from nectar.keys.outcome import outcome_of
from nectar.session import Session

pytestmark = pytest.mark.usefixtures("enabled")


def outcome():
    return nectar.last_run().parts[-1].outcome


def reason():
    return nectar.last_run().parts[-1].reason


@nectar.memo
def square(n: int, power: int = 2) -> int:
    """The square."""
    print("computing", n)
    return n**power


@pytest.fixture
def computed(capsys):
    return lambda: len(capsys.readouterr().out.splitlines())


# what it looks like


def test_it_looks_like_the_function():
    assert square.__name__ == "square"
    assert square.__doc__ == "The square."
    assert square.__module__ == __name__
    assert inspect.signature(square) == inspect.signature(square.func)
    assert typing.get_type_hints(square) == {"n": int, "power": int, "return": int}
    assert square.__wrapped__ is square.func
    assert callable(square)
    assert "square" in repr(square)


def test_with_and_without_parentheses():
    def f(x):
        return x

    for made in (nectar.memo(f), nectar.memo()(f), nectar.memo(version=None)(f), nectar.memo(f, ttl="1d")):
        assert made(1) == 1
        assert made.func is f


def test_what_cannot_be_memoised_says_so():
    with pytest.raises(nectar.UserError, match="cannot be called"):
        nectar.memo(3)
    with pytest.raises(nectar.UserError, match="staticmethod"):
        nectar.memo(staticmethod(len))
    with pytest.raises(nectar.UserError, match="no parameter y"):
        nectar.memo(lambda x: x, ignore=["y"])
    with pytest.raises(nectar.UserError):
        nectar.memo(lambda x: x, ttl="soon")


def test_other_callables():
    class Adder:
        def __init__(self, n):
            self.n = n

        def __call__(self, x):
            return x + self.n

    one = nectar.memo(Adder(1))
    assert [one(1), one(1), nectar.memo(Adder(2))(1)] == [2, 2, 3]
    assert nectar.memo(functools.partial(pow, 2))(3) == 8
    assert nectar.memo(functools.partial(pow, 3))(3) == 27
    assert nectar.memo(len)("abc") == 3
    assert nectar.memo(max)(1, 2, key=abs) == 2
    assert nectar.memo(Adder(5).__call__)(1) == 6


def test_memoised_twice_and_decorated_beside():
    def doubling(function):
        @functools.wraps(function)
        def inner(*args):
            return 2 * function(*args)

        return inner

    @nectar.memo
    @doubling
    def above(x):
        return x

    @doubling
    @nectar.memo
    def below(x):
        return x

    twice = nectar.memo(nectar.memo(lambda x: x + 5))
    for _ in range(2):
        assert [above(1), below(1), twice(1)] == [2, 2, 6]

    @nectar.memo
    @functools.lru_cache
    def cached(x):
        return x + 7

    assert [cached(1), cached(1)] == [8, 8]


# options


def test_ignored_parameters(computed):
    @nectar.memo(ignore=["verbose", "log"])
    def f(x, verbose=False, *, log=None):
        print("computing")
        return x

    assert [f(1), f(1, True), f(1, verbose=2, log=[]), f(x=1, log=object())] == [1] * 4
    assert computed() == 1
    assert f(2, True) == 2
    assert computed() == 1
    one = nectar.memo(lambda x, y: x, ignore="y")
    assert [one(1, 2), one(1, 3)] == [1, 1]
    assert outcome() == "reused"


def test_ignoring_more_is_another_program():
    def f(x, y=1):
        return x + y

    assert nectar.memo(f, ignore=["y"])(1, 5) == 6
    assert nectar.memo(f)(1) == 2
    assert nectar.memo(f)(1, 5) == 6
    assert nectar.memo(f, ignore=["x"])(1, 5) == 6
    assert nectar.memo(f, ignore=["x"])(3, 5) == 6, "what was asked for"
    assert nectar.memo(f)(3, 5) == 8


def test_versions():
    def f(x):
        return x

    for version in (None, 1, "1", 1.0, (1,), True):
        nectar.memo(f, version=version)(1)
        assert outcome() == "computed", version
    nectar.memo(f, version=(1,))(1)
    assert outcome() == "reused"


def clocked(monkeypatch, home):
    clock = ManualClock(1e9)
    ours = Session(session._settings({"home": home / "clock", "reserve": 0}), clock)
    monkeypatch.setattr(session, "_chosen", ours)
    return ours, clock


def test_time_to_live(monkeypatch, home, computed):
    ours, clock = clocked(monkeypatch, home)

    @nectar.memo(ttl="1h")
    def f(x):
        print("computing")
        return [x]

    assert f(1) == [1]
    ours.settle()
    clock.move(3598.0)
    assert f(1) == [1]
    assert outcome() == "reused"
    assert computed() == 1
    clock.move(3.0)
    assert f(1) == [1]
    assert (outcome(), computed()) == ("computed", 1)
    assert "older" in reason()
    ours.settle()
    clock.move(3599.0)
    assert f(1) == [1]
    assert outcome() == "reused", "the new one took its place"
    clock.move(2.0)
    assert f.check_call_in_cache(1) is False
    ours.close()


@pytest.fixture
def gate():
    """Keeps the writer of results waiting, until it is set."""
    gate = threading.Event()
    yield gate
    gate.set()


def test_a_time_to_live_counts_while_a_result_waits_to_be_written(monkeypatch, home, computed, gate):
    ours, clock = clocked(monkeypatch, home)
    ours.keeper.submit(lambda: gate.wait(10))

    @nectar.memo(ttl="1h")
    def f(x):
        print("computing")
        return [x]

    assert [f(1), f(1)] == [[1], [1]]
    assert computed() == 1
    clock.move(3601.0)
    assert f(1) == [1]
    assert computed() == 1, "it was computed longer ago than it may be used"
    gate.set()
    ours.settle()
    ours.close()


def test_a_time_to_live_begins_when_the_result_was_computed(monkeypatch, home, gate):
    """However late it was written."""
    ours, clock = clocked(monkeypatch, home)
    ours.keeper.submit(lambda: gate.wait(10))

    @nectar.memo(ttl="1h")
    def f(x):
        return [x]

    f(1)
    clock.move(1800.0)
    gate.set()
    ours.settle()
    clock.move(1801.0)
    f(1)
    assert outcome() == "computed"
    ours.close()


def test_a_time_to_live_is_no_part_of_the_key_of_another(monkeypatch, home):
    ours, clock = clocked(monkeypatch, home)

    def f(x):
        return x

    nectar.memo(f, ttl="1h")(1)
    ours.settle()
    nectar.memo(f, ttl="2h")(1)
    ours.settle()
    clock.move(5400.0)
    nectar.memo(f, ttl="2h")(1)
    assert outcome() == "reused"
    nectar.memo(f, ttl="1h")(1)
    assert outcome() == "computed"
    ours.close()


def test_verbose_says_what_becomes_of_each_call(capsys):
    @nectar.memo(verbose=True)
    def f(x):
        return x

    f(1)
    f(1)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert "computed" in told[0]
    assert "reused" in told[1]
    assert all(line.startswith("nectar: ") for line in told)


# forced to run


def test_call_runs_it_now_and_replaces_what_is_known(tmp_path):
    path = str(tmp_path / "content")

    @nectar.pure
    def hidden():
        return Path(path).read_text()

    @nectar.memo
    def f():
        return hidden()

    Path(path).write_text("one")
    assert f() == "one"
    session.current().settle()
    Path(path).write_text("two")
    assert f() == "one", "somebody vouched for it"
    assert f.call() == "two"
    assert "anew" in reason()
    assert f() == "two"
    session.current().settle()
    assert f() == "two"
    assert outcome() == "reused"


def test_call_replaces_what_is_not_yet_written(tmp_path, gate):
    path = str(tmp_path / "content")
    session.current().keeper.submit(lambda: gate.wait(10))

    @nectar.pure
    def hidden():
        return Path(path).read_text()

    @nectar.memo
    def f():
        return hidden()

    Path(path).write_text("one")
    assert f() == "one"
    Path(path).write_text("two")
    assert f.call() == "two"
    assert f() == "two"
    gate.set()
    session.current().settle()
    assert f() == "two"


def test_refresh_for_a_block(home, computed):
    assert square(3) == 9
    with nectar.reuse(home=home, reserve=0, refresh=True) as report:
        assert square(3) == 9
    assert [part.outcome for part in report.parts] == ["computed"]
    assert computed() == 2
    assert square(3) == 9
    assert computed() == 0


# errors


def test_errors_are_the_callers_and_are_not_kept(computed):
    @nectar.memo
    def fails(x):
        print("computing")
        raise ValueError("bad", x)

    for _ in range(3):
        with pytest.raises(ValueError, match="bad") as caught:
            fails(1)
        assert caught.value.args == ("bad", 1)
        assert outcome() == "failed"
    assert computed() == 3
    assert fails.check_call_in_cache(1) is False


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_any_error_gets_through(error):
    @nectar.memo
    def fails():
        raise error("stop")

    for _ in range(2):
        with pytest.raises(error):
            fails()


# methods


class Model:
    rate = 2

    def __init__(self, bias):
        self.bias = bias

    @nectar.memo
    def predict(self, x):
        """Predicts."""
        print("computing")
        return x * self.rate + self.bias

    @classmethod
    @nectar.memo
    def made(cls, x):
        print("computing")
        return cls.rate * x

    @staticmethod
    @nectar.memo
    def free(x):
        print("computing")
        return x + 1

    @property
    @nectar.memo
    def size(self):
        print("computing")
        return self.bias * 100


class Sub(Model):
    rate = 3


def test_methods(computed):
    model = Model(1)
    assert [model.predict(2), Model(1).predict(x=2), Model.predict(model, 2)] == [5, 5, 5]
    assert computed() == 1
    model.bias = 10
    assert model.predict(2) == 14
    model.bias = 1
    assert model.predict(2) == 5
    assert computed() == 1
    assert Sub(1).predict(2) == 7
    assert [Model.made(2), Sub.made(2), Model(0).made(2)] == [4, 6, 4]
    assert [Model.free(1), Model(5).free(1), Sub.free(1)] == [2, 2, 2]
    assert [Model(1).size, Model(2).size, Model(1).size] == [100, 200, 100]
    computed()
    assert model.predict.__doc__ == "Predicts."
    assert model.predict.check_call_in_cache(2) is True
    assert model.predict.check_call_in_cache(3) is False
    assert model.predict.call_and_shelve(2).get() == 5
    assert model.predict.call(2) == 5
    assert "predict" in repr(model.predict)


def test_a_class_changed_between_calls(monkeypatch):
    assert Model(1).predict(2) == 5
    monkeypatch.setattr(Model, "rate", 7)
    assert Model(1).predict(2) == 15
    monkeypatch.setattr(Model, "predict", nectar.memo(lambda self, x: -x))
    assert Model(1).predict(2) == -2


def test_a_method_that_changes_its_instance_is_never_kept():
    class Counter:
        def __init__(self):
            self.count = 0

        @nectar.memo
        def step(self):
            self.count += 1
            return self.count

    counter = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [counter.step(), counter.step(), counter.step()] == [1, 2, 3]
        assert [Counter().step(), Counter().step()] == [1, 1]


# coroutines and generators


def test_coroutines(computed):
    @nectar.memo
    async def f(x):
        print("computing")
        await asyncio.sleep(0)
        return [x]

    assert inspect.iscoroutinefunction(f) or asyncio.iscoroutinefunction(f)

    async def main():
        return [await f(1), await f(1), await f(2)]

    assert asyncio.run(main()) == [[1], [1], [2]]
    assert computed() == 2
    assert [asyncio.run(f(1)), asyncio.run(f(2))] == [[1], [2]]
    assert computed() == 0
    assert f.check_call_in_cache(1) is True

    class Async:
        @nectar.memo
        async def get(self, x):
            return x

    assert asyncio.run(Async().get(3)) == 3


def test_generators_are_refused_with_one_warning():
    @nectar.memo
    def numbers(n):
        yield from range(n)

    @nectar.memo
    async def later(n):
        for each in range(n):
            yield each

    with pytest.warns(nectar.NectarWarning, match="generator"):
        assert list(numbers(3)) == [0, 1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(numbers(3)) == [0, 1, 2]
    assert outcome() == "uncacheable"

    async def collect():
        return [each async for each in later(2)]

    with pytest.warns(nectar.NectarWarning, match="generator"):
        assert asyncio.run(collect()) == [0, 1]


# refusals


def test_an_uncacheable_function_runs_with_one_warning_that_names_reason_and_place(tmp_path, caplog):
    path = tmp_path / "x"
    path.write_text("content")

    @nectar.memo
    def reads():
        return open(path).read()

    with pytest.warns(nectar.NectarWarning) as caught:
        assert [reads(), reads(), reads()] == ["content"] * 3
    (warning,) = [each for each in caught if each.category is nectar.NectarWarning]
    assert "open" in str(warning.message)
    assert re.search(rf"{Path(__file__).name}:\d+", str(warning.message))
    assert Path(warning.filename) == Path(__file__), "it points at the call"
    assert outcome() == "uncacheable"
    assert "open" in reason()


def test_warnings_as_errors_do_not_break_a_program(caplog):
    import time

    @nectar.memo
    def now():
        return time.time() > 0

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with caplog.at_level(logging.WARNING, "nectar"):
            assert [now(), now()] == [True, True]
    assert len([record for record in caplog.records if "computed each time" in record.message]) == 1


def test_an_argument_that_cannot_be_encoded_runs():
    @nectar.memo
    def f(lock):
        return type(lock).__name__

    class Odd:
        def __reduce_ex__(self, protocol):
            raise RuntimeError("no")

    class OddToAsk:
        def __getattr__(self, name):
            raise RuntimeError("no attribute either")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for odd in (threading.Thread(), Odd(), OddToAsk()):
            assert [f(odd), f(odd)] == [type(odd).__name__] * 2


# why


def test_why_it_was_computed(tmp_path):
    session.current()

    @nectar.memo
    def f(x, y=1):
        return x + y

    f(1)
    session.current().settle()
    first = nectar.last_run()
    assert "first time" in first.why
    f(2)
    assert "arguments are new" in nectar.last_run().why
    assert "x=1" in nectar.last_run().why
    assert nectar.last_run().why.startswith(f.label)
    f(2)
    assert nectar.last_run().why == ""
    assert "known" in f.explain(2)
    assert "arguments are new" in f.explain(5, y=2)
    assert outcome() == "reused", "explaining runs nothing"


def test_why_names_a_file_whose_content_is_new(tmp_path):
    path = tmp_path / "data"
    path.write_text("one")

    @nectar.memo
    def f(file):
        return file.read_text()

    f(nectar.File(path))
    session.current().settle()
    path.write_text("two")
    assert "content" in f.explain(nectar.File(path))
    assert f(nectar.File(path)) == "two"
    assert "content" in reason()
    assert "file" in reason()


def test_why_names_the_helper_that_changed_with_file_and_line(program):
    helper = "\n\ndef helper(x):\n    return x + 1\n"
    program.write(
        helpers=helper,
        script="""
import sys
import helpers
import nectar

@nectar.memo
def f(x):
    return helpers.helper(x)

if "explain" in sys.argv:
    print(f.explain(1))
else:
    f(1)
    print(nectar.last_run().why)
""",
    )
    assert "first time" in program.output("script")
    assert "known" in program.output("script", "explain")
    program.write(helpers=helper.replace("+ 1", "+ 2"))
    for told in (program.output("script", "explain"), program.output("script")):
        assert "its code changed" in told
        assert "helper" in told
        assert re.search(r"helpers\.py:[34]\b", told)
    assert program.output("script").strip() == ""


# as joblib's


def test_check_call_in_cache(computed):
    assert square.check_call_in_cache(5) is False
    square(5)
    assert square.check_call_in_cache(5) is True
    assert square.check_call_in_cache(n=5, power=2) is True
    assert square.check_call_in_cache(5, 3) is False
    assert square.check_call_in_cache() is False
    assert computed() == 1


def test_call_and_shelve(computed):
    shelved = square.call_and_shelve(6)
    assert computed() == 1
    assert shelved.get() == 36
    assert computed() == 0
    assert pickle.loads(pickle.dumps(shelved)).get() == 36
    assert computed() == 0
    shelved.clear()
    assert square.check_call_in_cache(6) is False
    assert shelved.get() == 36
    assert computed() == 1
    assert "square" in repr(shelved)


def test_clear(computed):
    for n in (1, 2):
        square(n)
    other = nectar.memo(lambda x: x)
    other(1)
    computed()
    assert square.clear() == 2
    assert square.check_call_in_cache(1) is False
    assert other.check_call_in_cache(1) is True
    assert square(1) == 1
    assert computed() == 1
    assert square.clear(warn=False) == 1


def test_func_is_the_function(computed):
    assert [square.func(7), square.func(7)] == [49, 49]
    assert computed() == 2


# pickles and copies


def test_pickled_by_name_and_by_value():
    assert pickle.loads(pickle.dumps(square)) is square
    assert copy.copy(square) is copy.deepcopy(square) is square

    def local(x):
        return x + 1

    memoised = nectar.memo(local, ignore=[], version=3, ttl="1h")
    sent = cloudpickle.loads(cloudpickle.dumps(memoised))
    assert sent is not memoised
    assert [memoised(1), sent(1)] == [2, 2]
    assert outcome() == "reused"
    assert (sent.version, sent.ttl) == (3, 3600.0)


def test_bound_methods_are_pickled_and_copied():
    bound = Model(2).predict
    assert copy.copy(bound)(1) == bound(1) == 4
    assert pickle.loads(pickle.dumps(bound))(1) == 4
    assert cloudpickle.loads(cloudpickle.dumps(bound))(1) == 4


def test_a_memoised_function_as_an_argument_or_captured(monkeypatch):
    outer = nectar.memo(lambda g, x: g(x))
    one, two = nectar.memo(lambda x: x + 1), nectar.memo(lambda x: x + 2)
    assert [outer(one, 1), outer(two, 1), outer(one, 1)] == [2, 3, 2]
    assert nectar.fingerprint(one) != nectar.fingerprint(two)


def test_the_first_walk_over_a_function_is_not_held_against_its_calls(home, monkeypatch):
    """It takes long once in a process: with many modules, large tables, a busy machine."""
    walked = []

    def slowly(function):
        until = time.process_time() + 0.2
        while time.process_time() < until:
            pass
        walked.append(outcome_of(function))

    monkeypatch.setattr("nectar.dialects.python.memo.outcome_of", slowly)
    with nectar.reuse(home=home, reserve=0, overhead=0.02) as report:
        for _ in range(3):  # as many show what a look costs
            triple(7)
    assert len(walked) == 1
    assert [part.outcome for part in report.parts] == ["computed", "reused", "reused"]


@nectar.memo
def triple(n):
    return 3 * n
