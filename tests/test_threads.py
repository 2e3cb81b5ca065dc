import threading

import pytest
from tests.catalog.making import entry, manual_clock, opened

from nectar.catalog.housekeeping import Housekeeper
from nectar.catalog.keeper import Keeper
from nectar.store.verify import Verifier
from nectar.threads import each, future_of, started


@pytest.fixture
def no_more_threads(monkeypatch):
    """As at the end of a process, or where a system allows no more."""

    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)


@pytest.fixture
def failing_after(monkeypatch):
    """Only so many threads can be started."""

    def limit(count):
        start, left = threading.Thread.start, [count]

        def limited(self):
            if not left[0]:
                raise RuntimeError("can't start new thread")
            left[0] -= 1
            start(self)

        monkeypatch.setattr(threading.Thread, "start", limited)

    return limit


def test_a_thread_that_the_end_does_not_wait_for():
    names = []
    thread = started(lambda: names.append(threading.current_thread().name), "nectar-test")
    thread.join()
    assert names == ["nectar-test"]
    assert thread.daemon


def test_the_outcome_of_work_in_a_thread():
    assert future_of(threading.get_ident, "nectar-test").result() != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        future_of(lambda: 1 // 0, "nectar-test").result()


def test_who_stops_waiting_does_not_stop_the_work():
    gate = threading.Event()
    future = future_of(gate.wait, "nectar-test")
    assert not future.cancel()
    gate.set()
    assert future.result()


@pytest.mark.parametrize("count", [0, 1, 2, 50])
@pytest.mark.parametrize("threads", [0, 1, 7])
def test_each_item_is_taken_once_however_many_threads_there_are(failing_after, count, threads):
    failing_after(threads)
    taken = []
    assert each(lambda item: (taken.append(item), item * 2)[1], range(count), 8, "nectar-test") == list(
        range(0, 2 * count, 2)
    )
    assert sorted(taken) == list(range(count))


def test_threads_help_each_other():
    together = threading.Barrier(3)
    assert len(set(each(lambda _: (together.wait(60), threading.get_ident())[1], range(3), 3, "nectar-test"))) == 3


@pytest.mark.parametrize("threads", [0, 3])
def test_a_failure_is_raised_and_the_rest_is_left_undone(failing_after, threads):
    failing_after(threads)
    taken = []

    def take(item):
        taken.append(item)
        raise KeyError(item)

    with pytest.raises(KeyError):
        each(take, range(1000), 4, "nectar-test")
    assert len(taken) <= 1 + threads


def test_without_threads_nothing_hangs_and_work_is_done_at_once(no_more_threads):
    assert started(print, "nectar-test") is None
    assert future_of(print, "nectar-test") is None
    keeper, done = Keeper(), []
    keeper.submit(lambda: done.append(1))
    assert done == [1]
    assert keeper.wait(60)
    keeper.drain()
    assert keeper.close(60)


def test_without_threads_nothing_is_verified_beside_the_work(no_more_threads, monkeypatch):
    verifier = Verifier(print)
    assert not verifier.submit(entry())
    assert verifier.drain(60)
    monkeypatch.undo()
    seen = []
    verifier = Verifier(seen.append)
    assert verifier.submit(entry())
    assert verifier.drain(60)
    assert seen == [entry()]
    verifier.close()


def test_housekeeping_without_threads_is_left_to_others(no_more_threads, tmp_path):
    catalog = opened(tmp_path)
    housekeeper = Housekeeper(catalog.collector, manual_clock())
    assert not housekeeper.poke()
    housekeeper.close()
    catalog.close()
