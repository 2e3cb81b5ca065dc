"""What people declare about functions overrides refusals, and nothing else."""

import functools
import os
import pickle
import time

import pytest

import nectar
from nectar.errors import UncacheableError, UserError


def test_pure_lets_a_function_pass():
    def stamp(n):
        return n, time.time()

    with pytest.raises(UncacheableError):
        nectar.fingerprint(stamp)
    assert nectar.pure(stamp) is stamp
    assert nectar.fingerprint(stamp)


def test_pure_helper_does_not_excuse_the_caller():
    def quiet():
        return time.time()

    def loud():
        return time.monotonic()

    def f():
        return quiet(), loud()

    nectar.pure(quiet)
    with pytest.raises(UncacheableError) as caught:
        nectar.fingerprint(f)
    assert ["monotonic" in refusal.reason for refusal in caught.value.refusals] == [True]


def test_what_is_reached_by_another_way_too_is_not_excused():
    def clock():
        return time.time()

    def vouched():
        return clock()

    def f():
        return vouched(), clock()

    def g():
        return vouched()

    nectar.pure(vouched)
    assert nectar.fingerprint(g)
    with pytest.raises(UncacheableError):
        nectar.fingerprint(f)


def test_a_pure_function_still_counts():
    def make(k):
        def reads(path):
            return open(path).read() * k

        return nectar.pure(reads)

    assert nectar.fingerprint(make(1)) != nectar.fingerprint(make(2))


def test_dependencies_count():
    def make(version):
        def reads(n):
            return open("settings").read(), n

        return nectar.depends_on(reads, version)

    assert nectar.fingerprint(make(1)) == nectar.fingerprint(make(1))
    assert nectar.fingerprint(make(1)) != nectar.fingerprint(make(2))


def test_a_declaration_counts_after_a_refusal_and_adds_up():
    def f(n):
        return open("x").read()

    with pytest.raises(UncacheableError):
        nectar.fingerprint(f)
    one = nectar.fingerprint(nectar.depends_on(f, "a"))
    two = nectar.fingerprint(nectar.depends_on(f, "b"))
    assert one != two


def test_order_of_evaluation_matters_where_somebody_vouches_for_rebinding():
    space = {"K": 0, "nectar": nectar}
    exec(
        """
def bump():
    global K
    K += 1

def before():
    k = K
    bump()
    return k

def after():
    bump()
    return K
""",
        space,
    )
    for name in ("bump", "before", "after"):
        nectar.pure(space[name])
    assert nectar.fingerprint(space["before"]) != nectar.fingerprint(space["after"])


def copied(function):
    """As an engine gets it: a function of a script is pickled by value."""
    import cloudpickle

    module, function.__module__ = function.__module__, "__main__"
    try:
        copy = pickle.loads(cloudpickle.dumps(function))
    finally:
        function.__module__ = module
    assert copy is not function
    return copy


def test_a_copy_is_declared_as_the_function_is():
    def plain(x):
        return x + 1

    def clock(x):
        return x + time.time()

    nectar.pure(clock)
    assert nectar.fingerprint(copied(clock)) == nectar.fingerprint(clock)
    before = nectar.fingerprint(copied(plain))
    nectar.depends_on(plain, "one")
    one = nectar.fingerprint(copied(plain))
    assert one == nectar.fingerprint(plain) != before
    nectar.depends_on(plain, "two")
    assert nectar.fingerprint(copied(plain)) == nectar.fingerprint(plain) != one


def test_a_wrapper_does_not_inherit_a_declaration():
    @nectar.pure
    def inner(x):
        return x

    @functools.wraps(inner)
    def wrapper(x):
        return inner(x) + time.time()

    with pytest.raises(UncacheableError, match=r"time\.time"):
        nectar.fingerprint(wrapper)
    with pytest.raises(UncacheableError, match=r"time\.time"):
        nectar.fingerprint(copied(wrapper))


class Caller:
    def __call__(self, x):
        return x

    def method(self, x):
        return x


@pytest.mark.parametrize(
    "odd",
    [Caller(), Caller, len, os.path.join, functools.partial(len)],
    ids=["object", "class", "builtin", "library", "partial"],
)
def test_dependencies_that_nobody_would_look_at_are_refused(odd):
    with pytest.raises(UserError, match="functions and methods of your own"):
        nectar.depends_on(odd, "one")


@pytest.mark.parametrize("name", ["__call__", "method"])
def test_dependencies_of_methods_count(name, monkeypatch):
    def make(version):
        class Own:
            def __call__(self, x):
                return x

            def method(self, x):
                return x

        nectar.depends_on(getattr(Own, name), version)
        return nectar.fingerprint(getattr(Own(), name))

    assert make("one") != make("two")
    assert make("one") == make("one")
