"""Asking what may never answer: answers and errors come through, nobody waits for what is stuck."""

import os
import threading
import time

import pytest

from nectar.waiting import answering
from nectar.waiting.answering import UnansweredError, ask, ask_later, is_unhurried, patience_here, step, unhurried

LONG = 60.0


@pytest.fixture(autouse=True)
def _quiet_machine(monkeypatch):
    """However many processes want to run here, a step takes as long as it takes."""
    monkeypatch.setattr(answering, "crowding", lambda: 1.0)


@pytest.fixture
def gate():
    gate = threading.Event()
    yield gate
    gate.set()


def test_the_answer_and_the_error_come_through():
    assert ask(lambda: 7, LONG) == 7
    with pytest.raises(KeyError):
        ask(lambda: {}["nothing"], LONG)


def test_another_thread_does_it_and_does_the_next_piece_too():
    first = ask(threading.get_ident, LONG)
    assert first != threading.get_ident()
    assert ask(threading.get_ident, LONG) == first


def test_nobody_waits_for_what_is_stuck(gate):
    with pytest.raises(UnansweredError) as caught:
        ask(gate.wait, 0.01)
    assert caught.value.seconds >= 0.01
    assert ask(lambda: 1, LONG) == 1, "others are answered meanwhile"


def test_a_late_answer_is_heard_of(gate):
    heard = threading.Event()
    found = []
    with pytest.raises(UnansweredError):
        ask(lambda: gate.wait() and "late", 0.01, lambda *given: (found.append(given), heard.set()))
    assert found == []
    gate.set()
    assert heard.wait(LONG)
    assert found == [("late", None)]


def test_whoever_hears_of_a_late_answer_may_raise_anything(gate, monkeypatch):
    monkeypatch.setattr(answering, "_idle", [])

    def heard(*_):
        raise SystemExit

    with pytest.raises(UnansweredError):
        ask(lambda: gate.wait() and threading.get_ident(), 0.01, heard)
    gate.set()
    begun = time.monotonic()
    while not answering._idle and time.monotonic() < begun + LONG:
        time.sleep(0.001)
    assert answering._idle, "its thread answers others"


class Interrupting:
    """Stands for the lock by which an answer is waited for: an interrupt comes while it is, or a moment afterwards."""

    def __init__(self, lock, afterwards):
        self._lock, self._afterwards = lock, afterwards
        self.release = lock.release

    def acquire(self, timeout):
        if self._afterwards:
            assert self._lock.acquire(timeout=timeout)
        raise KeyboardInterrupt


@pytest.mark.parametrize("afterwards", [False, True], ids=["before the answer", "after it"])
def test_an_answer_that_an_interrupt_kept_from_the_caller_is_late(gate, monkeypatch, afterwards):
    heard, found, put = threading.Event(), [], answering._put

    def interrupted(question):
        question.done = Interrupting(question.done, afterwards)
        monkeypatch.setattr(answering, "_put", put)
        return put(question)

    monkeypatch.setattr(answering, "_put", interrupted)
    if afterwards:
        gate.set()
    with pytest.raises(KeyboardInterrupt):
        ask(lambda: gate.wait() and "granted", LONG, lambda *given: (found.append(given), heard.set()))
    gate.set()
    assert heard.wait(LONG)
    assert found == [("granted", None)]
    assert answering._stuck == []
    assert ask(lambda: 1, LONG) == 1


def test_work_that_goes_on_step_by_step_is_waited_for():
    def steps():
        for _ in range(20):
            time.sleep(0.06)
            step()
        return "done"

    assert ask(steps, 1.0) == "done", "it takes longer than that, and no step does"


def test_on_a_machine_with_too_much_to_do_a_step_may_take_longer(gate, monkeypatch):
    looks = []

    def crowding():
        looks.append(1)
        if len(looks) == 5:
            gate.set()
        return 1000.0

    monkeypatch.setattr(answering, "crowding", crowding)
    assert ask(gate.wait, 0.01)
    assert len(looks) >= 5


def test_threads_that_work_beside_the_program_do_it_themselves():
    assert not is_unhurried()
    with unhurried() as _:
        assert is_unhurried()
        assert ask(threading.get_ident, 0.0) == threading.get_ident()
        assert patience_here(30.0) == 1.0
    assert not is_unhurried()
    assert patience_here(30.0) == 30.0
    assert ask(lambda: patience_here(30.0), LONG) == LONG


def test_what_asks_while_it_answers_is_not_abandoned_halfway():
    assert ask(lambda: ask(threading.get_ident, 0.0) == threading.get_ident(), LONG)


def test_a_probe_is_waited_for_by_nobody(gate):
    heard = threading.Event()
    assert ask_later(gate.wait, lambda *_: heard.set())
    assert not heard.is_set()
    gate.set()
    assert heard.wait(LONG)


def test_where_no_thread_can_be_had_the_work_is_done_here_unless_something_is_stuck(monkeypatch, gate):
    monkeypatch.setattr(answering, "_idle", [])
    monkeypatch.setattr(answering, "started", lambda *_: None)
    monkeypatch.setattr(answering, "_stuck", [])
    assert ask(threading.get_ident, LONG) == threading.get_ident()
    assert not ask_later(lambda: 1, lambda *_: None)
    monkeypatch.setattr(answering, "_stuck", [object()])
    with pytest.raises(UnansweredError):
        ask(lambda: pytest.fail("it may never answer"), LONG)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_forked_child_asks_threads_of_its_own():
    assert ask(lambda: 1, LONG) == 1
    child = os.fork()
    if child == 0:
        os._exit(0 if ask(lambda: 5, LONG) == 5 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_how_crowded_it_is_has_bounds(monkeypatch, tmp_path):
    monkeypatch.undo()
    path = tmp_path / "loadavg"
    monkeypatch.setattr(answering, "_LOAD", str(path))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert answering.crowding() == 1.0, "there is no telling"
    for running, expected in ((1, 1.0), (6, 3.0), (500, 10.0)):
        path.write_text(f"0.5 0.5 0.5 {running}/700 1234\n")
        assert answering.crowding() == expected
    path.write_text("something else")
    assert answering.crowding() == 1.0


def test_an_answer_that_comes_at_the_last_moment_is_the_callers_alone(monkeypatch, gate):
    """Whoever hears of a late answer closes it, which the caller may be using."""
    late = []

    def the_answer_comes():
        before = len(answering._idle)
        gate.set()
        while len(answering._idle) == before:
            time.sleep(0.001)
        return 1.0

    monkeypatch.setattr(answering, "crowding", the_answer_comes)
    assert ask(lambda: gate.wait() and "in time", 0.01, lambda *given: late.append(given)) == "in time"
    assert late == answering._stuck == []
