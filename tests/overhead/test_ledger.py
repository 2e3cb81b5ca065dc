"""Computations that run beside each other share the time that passes."""

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nectar.overhead.ledger import SharedTime


class Timer:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def test_one_computation_has_all_of_its_time():
    timer = Timer()
    with SharedTime(timer).share() as share:
        timer.now += 3
    assert (share.seconds, share.wall) == (3, 3)
    assert share.of(3.5) == 3.5


def test_eight_that_run_at_once_have_an_eighth_each():
    timer = Timer()
    clock = SharedTime(timer)
    shares = [clock.share().__enter__() for _ in range(8)]
    timer.now += 4
    for share in shares:
        share.__exit__(None, None, None)
    assert [share.seconds for share in shares] == [0.5] * 8
    assert {share.wall for share in shares} == {4}
    assert shares[0].of(8) == 1
    assert not clock.running


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20)), max_size=40))
def test_together_they_are_the_time_in_which_any_of_them_ran(events):
    """events: which of five computations begins or ends, after so many seconds."""
    timer = Timer()
    clock = SharedTime(timer)
    running, ended, busy = {}, [], 0
    for which, seconds in [*events, *((which, 1) for which in range(5))]:
        timer.now += seconds
        busy += seconds if running else 0
        if which in running:
            running[which].__exit__(None, None, None)
            ended.append(running.pop(which))
        elif (which, seconds) in events:
            running[which] = clock.share().__enter__()
    assert sum(share.seconds for share in ended) + sum(
        min(clock.passed - share._begun[0], timer.now - share._begun[1]) for share in running.values()
    ) == pytest.approx(busy)


def test_what_is_part_of_another_takes_nothing_from_it():
    timer = Timer()
    clock = SharedTime(timer)
    with clock.share() as outer:
        timer.now += 1
        with clock.share(within=True) as inner:
            timer.now += 2
    assert (outer.seconds, inner.seconds) == (3, 2)


def test_who_never_ends_is_counted_no_more():
    timer = Timer()
    clock = SharedTime(timer)
    clock.share().__enter__()
    gc.collect()
    with clock.share() as share:
        timer.now += 2
    assert share.seconds == 2
