"""A key is made of everything, or not at all, however little time there is."""

import asyncio
import itertools
import warnings
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nectar
from nectar.dialects.python.memo import Memoized
from nectar.errors import NectarWarning, TooLargeError
from nectar.keys import patience as patience_module
from nectar.keys.api import fingerprint
from nectar.keys.patience import patience
from nectar.keys.values import bulk
from nectar.overhead.steering import Steering

MANY = {number: str(number) for number in range(200_000)}


def look_up(number):
    return MANY[number]


def test_without_a_limit_nothing_is_cut_short():
    assert fingerprint(look_up) == fingerprint(look_up)


def test_what_takes_too_long_has_no_key_and_later_the_same_as_ever():
    with pytest.raises(TooLargeError, match=r"200,000 values holds so much|holds so much"), patience(0.0):
        fingerprint(look_up)
    again = fingerprint(look_up)
    MANY[-1] = "another"
    try:
        assert fingerprint(look_up) != again
    finally:
        del MANY[-1]
    assert fingerprint(look_up) == again


def test_an_inner_block_has_no_more_time_than_the_outer_one():
    with pytest.raises(TooLargeError), patience(0.0), patience(1000.0):
        fingerprint(lambda: MANY)


def test_small_values_have_keys_though_there_is_no_time():
    with patience(0.0):
        small = fingerprint([1, 2, "three"])
    assert small == fingerprint([1, 2, "three"])


VALUES = st.recursive(
    st.one_of(st.integers(), st.text(max_size=300), st.binary(max_size=3000), st.floats(allow_nan=False)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=40), st.dictionaries(st.text(max_size=5), inner, max_size=20),
        st.frozensets(st.integers(), max_size=40), st.tuples(inner, inner),
    ),
    max_leaves=60,
)  # fmt: skip


@given(VALUES, st.integers(0, 30))
def test_wherever_a_walk_is_stopped_it_gives_the_same_key_or_none(value, steps):
    """The time is over after so many questions for it."""
    expected = fingerprint(value)
    asked = iter(range(steps))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("nectar.keys.walk.FLUSH_AT", 64)  # it asks more often
        patched.setattr(patience_module, "perf_counter", lambda: 0.0 if next(asked, None) is not None else 10.0)
        processor = itertools.count(0.0, 10.0)
        patched.setattr(patience_module, "worked", lambda: next(processor))
        patched.setattr(patience_module, "_MANY", 3)
        try:
            with patience(5.0):
                found = fingerprint(value)
        except TooLargeError:
            return
    assert found == expected


def test_the_time_of_others_does_not_count(monkeypatch):
    """The clock says that it is over, since other processes had the machine."""
    wall = itertools.count(0.0, 100.0)
    monkeypatch.setattr(patience_module, "perf_counter", lambda: next(wall))
    with patience(60.0):
        fingerprint(look_up)
    processor = itertools.count(0.0, 100.0)
    monkeypatch.setattr(patience_module, "worked", lambda: next(processor))
    with pytest.raises(TooLargeError), patience(60.0):
        fingerprint(look_up)


def test_what_a_value_of_the_application_does_with_errors_makes_no_difference():
    """Somebody on the way takes every Exception for something that can be left out."""

    class Forgiving:
        def __init__(self):
            self.held = list(MANY.items())

        def __getstate__(self):
            try:
                fingerprint(self.held)
            except Exception:
                return {}
            return {"held": self.held}

    with pytest.raises(TooLargeError), patience(0.0):
        fingerprint(Forgiving())


def test_many_small_containers_are_stopped_too():
    """None of them is large, and each is hashed by itself."""
    rows = [list(range(number, number + 50)) for number in range(9_000)]
    with pytest.raises(TooLargeError), patience(0.0):
        fingerprint(rows)


def test_what_would_take_too_long_is_not_begun(monkeypatch):
    """The clock stands still: only what is expected can stop a walk."""
    monkeypatch.setattr(patience_module, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(patience_module, "worked", lambda: 0.0)
    rows = [{"x": number} for number in range(100_000)]
    with patience(0.05):
        fingerprint(list(range(100_000)))  # in one go
    with patience(0.5):
        fingerprint(rows)
    with pytest.raises(TooLargeError), patience(0.05):
        fingerprint(rows)


# calls


@pytest.fixture
def strict(enabled):
    """Nectar has no time left for anything."""
    enabled.steering = Steering(0.0, 0.0, None, program="", age=0.0)
    return enabled


def test_a_call_with_too_much_is_left_alone_and_that_is_said_once(strict):
    seen = []

    @nectar.memo
    def total(rows):
        seen.append(len(rows))
        return sum(row["x"] for row in rows)

    rows = [{"x": number} for number in range(300_000)]
    with pytest.warns(NectarWarning, match="holds so much that looking at it takes longer than it may"):
        assert total(rows) == sum(range(300_000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [total(rows) for _ in range(3)] == [sum(range(300_000))] * 3
    assert len(seen) == 4


def test_a_call_whose_arguments_hold_too_much_is_not_tried_again(strict, monkeypatch):
    begun, begin = [], Memoized.begin

    def counted(self, *arguments):
        begun.append(self.label)
        return begin(self, *arguments)

    monkeypatch.setattr(Memoized, "begin", counted)
    groups = [[{"x": number} for number in range(9_000)] for _ in range(20)]  # each is small enough to be begun
    total = nectar.memo(lambda groups: sum(map(len, groups)))
    with pytest.warns(NectarWarning, match="holds so much"):
        assert [total(groups) for _ in range(4)] == [180_000] * 4
    assert len(begun) == 1


def test_what_held_too_much_is_looked_at_again_when_the_function_becomes_slow(strict):
    steering = strict.steering
    site = steering.sites.named("f")
    steering.called(site, 0.001, 0.05, False, gave_up=True)
    assert not steering.looks_at_call(site)
    steering.call_ran_alone(site, 10.0)
    assert steering.looks_at_call(site)
    assert steering.patience_of_call(site) > 0.5


def test_calls_are_looked_at_again_when_the_function_becomes_slow(strict):
    steering = strict.steering
    site = steering.sites.named("f")
    for _ in range(3):
        assert steering.looks_at_call(site)
        steering.called(site, 0.001, 0.04, False)
    assert not steering.looks_at_call(site)
    steering.call_ran_alone(site, 1.0)
    assert steering.looks_at_call(site)


def test_a_call_that_takes_much_longer_to_look_for_than_to_compute_is_not_kept_and_not_tried_again(strict):
    steering = strict.steering
    site = steering.sites.named("f")
    assert steering.why_not_keep_call(0.03, 0.2) == "computing it took 30 ms, looking for it 200 ms"
    assert steering.why_not_keep_call(0.001, 0.04) == "", "the first look takes longer than others"
    assert steering.why_not_keep_call(0.3, 0.2) == ""
    steering.called(site, 0.03, 0.2, False)
    assert not steering.looks_at_call(site)
    steering.call_ran_alone(site, 10.0)
    assert steering.looks_at_call(site), "it has become slow"


def test_a_large_array_is_not_begun_where_it_would_take_too_long(strict, monkeypatch):
    hashed = []
    monkeypatch.setattr(bulk, "threads_for", lambda size, _: hashed.append(size) or 1)
    monkeypatch.setattr(Steering, "patience_of_call", lambda self, site: 0.02)  # it grows with the age of the process
    total = nectar.memo(lambda data: len(data))
    with pytest.warns(NectarWarning, match=r"a value of 200 MB holds so much"):
        assert total(array("d", bytes(200_000_000))) == 25_000_000
    assert max(hashed, default=0) < 200_000_000


def test_the_first_call_of_a_function_may_take_a_share_of_what_the_program_took_so_far():
    steering = Steering(0.0, 0.0, None, lambda: 100.0, program="", age=2.0)
    site = steering.sites.named("f")
    assert steering.patience_of_call(site) == 0.5
    steering.called(site, 0.1, 0.01, False)
    assert steering.patience_of_call(site) == 0.025, "from now on it is known how long it takes"
    long = Steering(0.0, 0.0, None, lambda: 1e6, program="", age=7200.0)
    assert long.patience_of_call(long.sites.named("f")) == 1.0


def test_a_function_that_is_left_alone_recurses_as_deep_as_ever(strict, monkeypatch):
    @nectar.memo
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)

    class Tree:
        @nectar.memo
        def depth(self, n):
            return 0 if n == 0 else 1 + self.depth(n - 1)

    monkeypatch.setattr(Steering, "looks_at_call", lambda self, site: False)
    assert depth(400) == 400  # from Python 3.12 on, objects that are called get no deeper than 500
    assert Tree().depth(400) == 400
    assert strict.totals.alone + strict.totals.waived == 802


def test_a_catalog_that_cannot_be_opened_is_no_matter_for_the_call(strict, monkeypatch):
    def fail(*_, **__):
        raise PermissionError("no")

    monkeypatch.setattr("nectar.catalog.embedded.open_catalog", fail)
    strict._catalog = None

    @nectar.memo
    def three():
        return 3

    assert three() == 3


def test_coroutine_functions_are_left_alone_too(strict, monkeypatch):
    @nectar.memo
    async def double(n):
        return 2 * n

    monkeypatch.setattr(Steering, "looks_at_call", lambda self, site: False)
    assert asyncio.run(double(3)) == 6
    assert strict.totals.alone + strict.totals.waived == 1


def test_what_only_serves_to_say_what_changed_is_given_up_after_a_while(enabled, monkeypatch):
    from nectar.dialects.python import memo

    monkeypatch.setattr(memo, "_TRACING", 0.0)
    looked_up = Memoized(look_up)
    assert looked_up(1) == "1"
    enabled.settle()
    assert looked_up.check_call_in_cache(1)
    assert not list(enabled.catalog.index.versions(looked_up.label))


def test_a_look_at_what_a_call_has_changed_takes_no_longer_than_the_look_before(enabled, monkeypatch):
    from nectar.dialects.python import computing

    limits = []
    monkeypatch.setattr(computing, "patience", lambda seconds: limits.append(seconds) or patience(seconds))
    enabled.steering.is_free = False
    monkeypatch.setattr(enabled.steering, "patience_of_call", lambda site: 5.0)
    monkeypatch.setattr(enabled.steering, "looks_at_call", lambda site: True)
    Memoized(lambda number: number)(1)
    assert limits == [5.0, 5.0]
