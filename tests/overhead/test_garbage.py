"""Garbage is not collected while Nectar is loaded, and the program's collector is the program's."""

import gc
import os
import threading

import pytest

from nectar.overhead import garbage
from nectar.overhead.garbage import uncollected


@pytest.fixture(autouse=True)
def _as_before():
    before = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    yield
    gc.set_threshold(*before)


def collections():
    return sum(each["collections"] for each in gc.get_stats())


def test_nothing_is_collected_within_and_all_is_as_before_afterwards():
    with uncollected():
        before = collections()
        kept = [[] for _ in range(50_000)]
        assert collections() == before
        with uncollected():
            pass
        kept += [[] for _ in range(50_000)]
        assert collections() == before
    assert gc.get_threshold() == (701, 11, 12)


def test_afterwards_it_is_as_before_though_loading_failed():
    with pytest.raises(ImportError), uncollected():
        raise ImportError
    assert gc.get_threshold() == (701, 11, 12)


def test_a_program_that_collects_when_it_likes_goes_on_so():
    gc.set_threshold(0)
    with uncollected():
        assert gc.get_threshold()[0] == 0
    assert gc.get_threshold()[0] == 0


def test_what_the_program_changes_meanwhile_stays():
    with uncollected():
        gc.set_threshold(900, 5, 5)
    assert gc.get_threshold() == (900, 5, 5)
    gc.set_threshold(701, 11, 12)
    with uncollected():
        gc.disable()
    try:
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_of_several_threads_the_last_one_restores():
    entered, leave = threading.Event(), threading.Event()

    def load():
        with uncollected():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=load)
    with uncollected():
        thread.start()
        assert entered.wait(60)
    assert gc.get_threshold()[0] == garbage._MANY
    leave.set()
    thread.join()
    assert gc.get_threshold() == (701, 11, 12)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_that_is_forked_meanwhile_has_the_collector_of_the_program():
    with uncollected():
        child = os.fork()
        if not child:
            os._exit(gc.get_threshold() != (701, 11, 12))
        _, status = os.waitpid(child, 0)
    assert status == 0


def test_what_loading_took_is_told_once():
    garbage.take_seconds()
    with uncollected():
        with uncollected():
            pass
        assert garbage.take_seconds() == 0.0
    assert garbage.take_seconds() > 0.0
    assert garbage.take_seconds() == 0.0
