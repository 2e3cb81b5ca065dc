"""Frames of Nectar do not count: a program gets as deep as without it, and sees the limit it has set."""

import sys
import threading

import pytest

from nectar import recursion
from nectar.recursion import deeper, limit_of_program, room


@pytest.fixture(autouse=True)
def same_limit_afterwards():
    limit = sys.getrecursionlimit()
    yield
    assert (sys.getrecursionlimit(), recursion._open.calls) == (limit, 0)


def nested(count, inside):
    if count == 0:
        return inside()
    with deeper():
        return nested(count - 1, inside)


def test_few_calls_leave_the_limit_alone():
    limit = sys.getrecursionlimit()
    assert nested(recursion._AT_ONCE - 1, sys.getrecursionlimit) == limit


def test_many_calls_raise_the_limit_by_what_they_take_and_the_program_sees_its_own():
    limit = sys.getrecursionlimit()
    raised, seen = nested(200, lambda: (sys.getrecursionlimit(), limit_of_program()))
    assert limit + 200 * recursion._TAKEN - raised in range(recursion._AT_ONCE * recursion._TAKEN)
    assert seen == limit


def test_an_error_lowers_the_limit_too():
    def fail():
        raise KeyError

    with pytest.raises(KeyError):
        nested(100, fail)


def test_a_limit_that_the_program_sets_in_between_is_its_own():
    limit = sys.getrecursionlimit()

    def inside():
        sys.setrecursionlimit(limit + 5000)
        nested(100, lambda: None)
        assert limit_of_program() == sys.getrecursionlimit() == limit + 5000

    try:
        nested(100, inside)
        assert sys.getrecursionlimit() == limit + 5000
    finally:
        sys.setrecursionlimit(limit)


def test_threads_raise_the_limit_beside_each_other():
    limit = sys.getrecursionlimit()
    both = threading.Barrier(2, timeout=30)
    seen = []

    def inside():
        both.wait()
        seen.append((sys.getrecursionlimit(), limit_of_program()))
        both.wait()

    threads = [threading.Thread(target=nested, args=(64, inside)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [(limit + 128 * recursion._TAKEN, limit)] * 2


def test_there_is_a_depth_beyond_which_nectar_is_left_out(monkeypatch):
    monkeypatch.setattr(recursion, "_MOST", 50)
    assert [nested(calls, recursion.is_too_deep) for calls in (0, 49, 50, 100)] == [False, False, True, True]


@pytest.mark.parametrize(("calls", "needed", "more"), [(0, False, False), (100, False, True), (0, True, True)])
def test_room_is_made_where_it_is_needed(calls, needed, more):
    def inside():
        before = sys.getrecursionlimit()
        with room(needed):
            assert (sys.getrecursionlimit() > before) is more
        assert sys.getrecursionlimit() == before

    nested(calls, inside)
