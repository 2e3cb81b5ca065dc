"""The circuit breaker: pure, so that each rule is seen by itself, with times that are told to it."""

import pytest

from nectar.waiting.breaker import EXHAUSTED, FIRST, LONGEST, PAYS, TIMES, Allowance, Breaker

EACH = 0.05


@pytest.fixture
def breaker():
    return Breaker(Allowance(EACH))


def test_while_it_is_well_the_program_waits_for_answers(breaker):
    assert breaker.state == "closed"
    assert breaker.patience(0.0) == EACH
    assert not breaker.probes(1e6)


def test_a_failure_opens_it_and_nobody_waits_any_more(breaker):
    assert breaker.fail(10.0, EACH)
    assert breaker.patience(10.0) == 0.0
    assert not breaker.fail(10.0), "others had asked before"


def test_one_probe_after_a_pause_and_no_more_until_it_is_known_what_came_of_it(breaker):
    breaker.fail(10.0)
    assert not breaker.probes(10.0 + FIRST / 2)
    assert breaker.probes(10.0 + FIRST)
    assert breaker.state == "half-open"
    assert not breaker.probes(1e6)
    assert breaker.patience(1e6) == 0.0, "the program does not wait for a probe"


def test_pauses_grow_up_to_a_minute(breaker):
    now, pauses = 0.0, []
    breaker.fail(now)
    for _ in range(12):
        step = 0.0
        while not breaker.probes(now + step):
            step += FIRST
        pauses.append(step)
        now += step
        breaker.fail(now)
    assert pauses[:4] == [FIRST, 2 * FIRST, 4 * FIRST, 8 * FIRST]
    assert pauses[-1] == LONGEST


def test_an_answer_in_time_closes_it(breaker):
    breaker.fail(0.0, EACH)
    assert breaker.probes(FIRST)
    assert breaker.succeed(FIRST)
    assert breaker.state == "closed"
    assert breaker.patience(FIRST) == EACH
    assert not breaker.succeed(FIRST), "it was closed"


def test_a_program_loses_four_moments_in_all(breaker):
    now, lost = 0.0, []
    while breaker.patience(now) and now < 3 * EXHAUSTED:
        lost.append(breaker.patience(now))
        breaker.fail(now, lost[-1])
        breaker.hurry(now)
        if not breaker.probes(now):
            break
        breaker.succeed(now)
    assert lost == pytest.approx([EACH] * TIMES)
    assert not breaker.probes(now + EXHAUSTED / 2)
    assert breaker.probes(now + EXHAUSTED)
    breaker.succeed(now + EXHAUSTED)
    assert breaker.patience(now + EXHAUSTED) == pytest.approx(EACH), "and one more, when it was well again"


def test_what_is_lost_by_one_is_lost_for_the_other_too():
    allowance = Allowance(EACH)
    reading, writing = Breaker(allowance), Breaker(allowance)
    for _ in range(TIMES):
        reading.fail(0.0, EACH)
    assert writing.patience(0.0) == 0.0


def test_what_was_lost_is_forgotten_after_a_minute_without_a_failure(breaker):
    breaker.fail(0.0, 3 * EACH)
    breaker.hurry(0.0)
    assert breaker.probes(0.0)
    breaker.succeed(0.0)
    assert breaker.patience(59.0) == pytest.approx(EACH)
    assert breaker.allowance.lost > 0.0
    assert breaker.patience(61.0) == EACH
    assert breaker.allowance.lost == 0.0


def test_a_late_answer_makes_the_probe_due(breaker):
    breaker.fail(0.0, EACH)
    assert not breaker.probes(0.01)
    breaker.hurry(0.01)
    assert breaker.probes(0.01)


def test_answers_that_take_longer_than_usual_use_up_the_same_allowance(breaker):
    assert not breaker.cost(0.0, 3 * EACH)
    assert breaker.patience(0.0) == pytest.approx(EACH)
    assert breaker.cost(1.0, EACH), "that was the last of it"
    assert breaker.state == "closed", "it answers"
    assert breaker.patience(1.0) == 0.0
    assert breaker.patience(1.0 + EXHAUSTED) == pytest.approx(EACH), "one more in a minute"
    assert breaker.cost(1.0 + EXHAUSTED, EACH)
    assert breaker.patience(2 * EXHAUSTED) == 0.0


def test_who_finds_it_well_beside_the_program_gives_it_nothing_back(breaker):
    now = 0.0
    for _ in range(100):
        lost = breaker.patience(now)
        if lost:
            breaker.fail(now, lost)
        now += 0.1
        breaker.succeed(now)  # a result was written in the background
    assert now < EXHAUSTED
    assert breaker.allowance.lost == pytest.approx(TIMES * EACH)
    assert breaker.state == "closed"
    assert breaker.patience(now) == 0.0


def test_an_answer_may_cost_a_small_part_of_what_it_can_save(breaker):
    slow = EACH / PAYS
    for _ in range(100):
        assert not breaker.cost(0.0, EACH, worth=slow)
    assert breaker.patience(0.0) == EACH
    breaker.cost(0.0, TIMES * EACH)
    assert breaker.patience(0.0, worth=slow) == EACH
    assert breaker.patience(0.0, worth=slow / 2) == 0.0


def test_one_that_may_take_fewer_moments_leaves_the_others_something():
    allowance = Allowance(EACH)
    reading, writing = Breaker(allowance), Breaker(allowance, TIMES - 1)
    for number in range(100):
        writing.cost(float(number) / 10, EACH)
    assert writing.patience(10.0) == 0.0
    assert reading.patience(10.0) == pytest.approx(EACH)
    reading.fail(10.0, EACH)
    assert allowance.lost == pytest.approx(TIMES * EACH), "and no more in all"
