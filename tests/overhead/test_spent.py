import itertools
import threading
import time

from nectar.keys.api import fingerprint
from nectar.overhead import spent
from nectar.overhead.spent import NOTHING, Spent, helped, worked


def clocks(monkeypatch, wall, thread):
    """Each question moves both clocks on by so much."""
    monkeypatch.setattr(spent, "perf_counter", itertools.count(0.0, wall).__next__)
    monkeypatch.setattr(spent, "thread_time", itertools.count(0.0, thread).__next__)


def test_waiting_is_told_from_working(monkeypatch):
    clocks(monkeypatch, 10.0, 0.25)
    assert Spent.since(Spent.now()) == (10.0, 0.25)


def test_work_of_other_threads_for_this_one_counts(monkeypatch):
    clocks(monkeypatch, 10.0, 0.25)
    before = worked()
    with helped():
        pass
    assert worked() - before == 10.0 + 0.25 * 2  # 9.75 in other threads, three questions of 0.25


def test_nobody_works_longer_than_the_clock_says(monkeypatch):
    clocks(monkeypatch, 1.0, 8.0)
    assert Spent.since(Spent.now()) == (1.0, 1.0)


def test_work_of_other_threads_for_themselves_does_not_count():
    over = threading.Event()

    def work():
        while not over.is_set():
            pass

    thread = threading.Thread(target=work)
    begun, by_process = Spent.now(), time.process_time()
    thread.start()
    while time.process_time() - by_process < 0.05:
        time.sleep(0.001)
    over.set()
    thread.join()
    assert Spent.since(begun).work < time.process_time() - by_process


def test_hashing_a_large_value_counts_as_work_whoever_does_it():
    data = bytes(64 << 20)
    begun = Spent.now()
    fingerprint(data)
    assert Spent.since(begun).work > 0.001


def test_parts_are_added_and_taken_away():
    assert Spent(2.0, 1.0).and_also(Spent(1.0, 0.5)) == (3.0, 1.5)
    assert Spent(2.0, 1.0).without(Spent(0.5, 2.0)) == (1.5, 0.0)
    assert NOTHING == (0.0, 0.0)
