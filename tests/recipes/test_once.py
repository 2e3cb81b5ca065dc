"""One attempt for all who ask while it lasts; each gets what came of it."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from nectar.catalog.embedded import open_catalog
from nectar.catalog.service import Kept
from nectar.errors import RebuildError
from nectar.recipes import once as module
from nectar.recipes.once import Attempt, once
from nectar.settings import Settings

KEY = bytes(31) + b"k"


@pytest.fixture
def catalog(tmp_path):
    opened = open_catalog(Settings(home=tmp_path, reserve=0))
    yield opened
    opened.close()


class Counted:
    """Counts; lasts until all others wait for it."""

    def __init__(self, catalog, home, askers, result):
        self.catalog, self.home, self.askers, self.result = catalog, home, askers, result
        self.count = 0

    def ask(self, _=None):
        try:
            return once(self.catalog, Attempt(self.home, KEY, "", self.run, lambda entry: ("present", entry.key)))
        except RebuildError as error:
            return error.reasons

    def run(self):
        self.count += 1
        future = module._under_way[(str(self.home), KEY, "")]
        while len(future._condition._waiters) < self.askers - 1:
            time.sleep(0.001)
        return self.result()


def ask_all(attempt, askers):
    with ThreadPoolExecutor(askers) as pool:
        return list(pool.map(attempt.ask, range(askers)))


def test_threads_share_one_attempt(catalog, tmp_path):
    attempt = Counted(catalog, tmp_path, 20, lambda: "made")
    assert ask_all(attempt, 20) == ["made"] * 20
    assert attempt.count == 1


def test_threads_share_its_error_and_the_next_attempt_is_a_new_one(catalog, tmp_path):
    def fail():
        raise RebuildError("it", ["a reason"])

    attempt = Counted(catalog, tmp_path, 10, fail)
    assert ask_all(attempt, 10) == [("a reason",)] * 10
    assert attempt.count == 1
    assert once(catalog, Attempt(tmp_path, KEY, "", lambda: "made", lambda entry: "present")) == "made"


def test_a_result_that_came_meanwhile_is_taken(catalog, tmp_path):
    assert isinstance(catalog.keep(KEY, KEY, {"a": 1}), Kept)
    assert once(catalog, Attempt(tmp_path, KEY, "", lambda: "made", lambda entry: entry.key)) == KEY


def test_what_breaks_an_attempt_leaves_no_reservation(catalog, tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        once(catalog, Attempt(tmp_path, KEY, "", interrupt, lambda entry: "present"))
    assert once(catalog, Attempt(tmp_path, KEY, "", lambda: "made", lambda entry: "present")) == "made"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_does_not_wait_for_attempts_of_its_parent(catalog, tmp_path):
    before = dict(module._under_way)
    module._under_way[(str(tmp_path), KEY, "")] = module.Future()
    try:
        child = os.fork()
        if child == 0:
            os._exit(0 if not module._under_way else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        module._under_way.clear()
        module._under_way.update(before)


def test_an_attempt_of_another_kind_is_another_one(catalog, tmp_path):
    def fail():
        raise RebuildError("it", ["not allowed"])

    with pytest.raises(RebuildError):
        once(catalog, Attempt(tmp_path, KEY, "", fail, lambda entry: "present"))
    assert module._told(tmp_path / "rebuilds" / KEY.hex()).reasons == ("not allowed",)
    assert module._told(tmp_path / "rebuilds" / f"{KEY.hex()}-allowed") is None
