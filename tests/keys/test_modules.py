"""Tables about modules: several threads ask at once, modules arrive meanwhile, processes are forked."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest

from nectar.keys.modules import Follower, is_arriving

SECONDS = 20.0  # until a test gives up


class Slow:
    """An action that has begun, and ends when it is told to."""

    def __init__(self) -> None:
        self.begun, self.may_end, self.runs = threading.Event(), threading.Event(), 0
        self.complete = True

    def __call__(self) -> bool:
        self.runs += 1
        self.begun.set()
        assert self.may_end.wait(SECONDS)
        return self.complete


@pytest.mark.parametrize("ask", [Follower.follow, Follower.look_again])
def test_nobody_goes_on_before_the_action_has_ended(ask):
    action = Slow()
    follower = Follower(action)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(follower.follow)
        assert action.begun.wait(SECONDS)
        second = pool.submit(ask, follower)
        with pytest.raises(TimeoutError):
            second.result(0.2)
        action.may_end.set()
        first.result(SECONDS)
        second.result(SECONDS)
    assert action.runs == (1 if ask is Follower.follow else 2)


def test_it_runs_again_for_new_modules_only(monkeypatch):
    action = Slow()
    action.may_end.set()
    follower = Follower(action)
    follower.follow()
    follower.follow()
    assert action.runs == 1
    monkeypatch.setitem(sys.modules, "a_module_that_is_new", ModuleType("a_module_that_is_new"))
    follower.follow()
    assert action.runs == 2


def test_it_runs_again_if_it_could_not_take_everything_in():
    action = Slow()
    action.may_end.set()
    action.complete = False
    follower = Follower(action)
    follower.follow()
    follower.follow()
    assert action.runs == 2


def test_it_runs_again_if_it_failed():
    outcomes = iter([OSError("once"), None])

    def action() -> bool:
        error = next(outcomes)
        if error is not None:
            raise error
        return True

    follower = Follower(action)
    with pytest.raises(OSError, match="once"):
        follower.follow()
    follower.follow()
    assert next(outcomes, "no more") == "no more"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_that_is_forked_meanwhile_begins_again():
    program = """
import os, signal, threading
from nectar.keys.modules import Follower
begun, parent = threading.Event(), os.getpid()
def action():
    if os.getpid() == parent:
        begun.set()
        threading.Event().wait()  # for ever, with the lock
    return True
follower = Follower(action)
threading.Thread(target=follower.follow, daemon=True).start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(10)
    follower.follow()
    os._exit(7)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=False, timeout=60).returncode == 7


def test_a_module_is_arriving_while_its_code_runs(tmp_path, monkeypatch):
    (tmp_path / "that_asks.py").write_text(
        "import sys\nfrom nectar.keys.modules import is_arriving\nhere = is_arriving(sys.modules[__name__])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import that_asks

    assert that_asks.here
    assert not is_arriving(that_asks)
    del sys.modules["that_asks"]


# A process in which many threads make its first fingerprints, while one of them takes long with a module.
TOGETHER = """
import threading, time
from concurrent.futures import ThreadPoolExecutor
from nectar.keys.outcome import outcome_of
from nectar.keys.purity import tables
plain = tables._take_in
def slowly(name, module):
    time.sleep(0.5 if name == "time" else 0)
    plain(name, module)
tables._take_in = slowly
def made():
    scope = {"__name__": "__main__", "time": time}
    exec("def impure(): return time.time()", scope)
    return scope["impure"]
barrier = threading.Barrier(8)
def ask(function):
    barrier.wait()
    return any("time.time" in str(each) for each in outcome_of(function).refusals)
with ThreadPoolExecutor(8) as pool:
    print(list(pool.map(ask, [made() for _ in range(8)])))
"""


def test_first_fingerprints_of_many_threads_see_whole_tables():
    done = subprocess.run([sys.executable, "-c", TOGETHER], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == str([True] * 8)
