"""What is done around a fork: in order, all of it, and by whichever thread forks."""

import os
import re
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest

from nectar import forks
from nectar.forks import Stage

SOURCE = Path(forks.__file__).parent
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")


@pytest.fixture
def hooks(monkeypatch):
    """Nothing is registered."""
    for name in ("_before", "_in_parent", "_in_child"):
        monkeypatch.setattr(forks, name, [])


def forked(check):
    """The exit code of a child that does nothing but a check."""
    child = os.fork()
    if child == 0:
        code = 9
        try:
            code = 0 if check() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_what_is_done_before_is_done_by_stages_and_afterwards_as_registered(hooks):
    done = []
    for stage in (Stage.WAIT, Stage.PREPARE, Stage.STOP):
        forks.before(stage)(lambda stage=stage: done.append(stage))
    for number in range(2):
        forks.in_parent(lambda number=number: done.append(("parent", number)))
        forks.in_child(lambda number=number: done.append(("child", number)))
    before = [Stage.PREPARE, Stage.STOP, Stage.WAIT]
    assert forked(lambda: done == [*before, ("child", 0), ("child", 1)]) == 0
    assert done == [*before, ("parent", 0), ("parent", 1)]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_fails_keeps_nothing_else_from_being_done(hooks):
    done = []
    for register in (forks.before(Stage.STOP), forks.in_parent, forks.in_child):
        register(lambda: 1 // 0)
        register(lambda: done.append(1))
    assert forked(lambda: len(done) == 2) == 0
    assert len(done) == 2


def test_other_threads_can_load_modules_while_they_are_waited_for():
    """The hook of `logging` takes its lock, which each module takes that has a logger. So it has to come after ours."""
    program = """
import nectar.forks
import logging, os, threading
def free():
    with logging._lock:
        done.append(1)
def look():
    thread = threading.Thread(target=free)
    thread.start()
    thread.join(60)
done = []
nectar.forks.before(nectar.forks.Stage.WAIT)(look)
if os.fork() == 0:
    os._exit(0)
os._exit(7 if done else 1)
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    assert subprocess.run(command, check=False, timeout=90).returncode == 7


@pytest.mark.parametrize(
    "module", ["nectar.recursion", "nectar.recipes.once", "nectar.datasets.access", "nectar.threads"]
)
def test_no_child_finds_a_lock_held_by_a_thread_of_its_parent(module):
    """As far as the lock belongs to a module; those of sessions are made anew with them."""
    held, over = threading.Event(), threading.Event()
    loaded = import_module(module)
    name = "_loading" if module == "nectar.threads" else "_lock"

    def hold():
        with getattr(loaded, name):
            held.set()
            over.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    try:
        assert forked(lambda: getattr(loaded, name).acquire(timeout=1)) == 0
    finally:
        over.set()
        thread.join()


def test_each_lock_of_a_module_is_renewed_in_children():
    """It is a name that a function may give another meaning, and one does so in children."""
    of_a_module = re.compile(r"^(_\w+)(: \w+)? = (threading\.)?R?Lock\(\)", re.MULTILINE)
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for lock, kind, *_ in of_a_module.findall(text):
            assert not kind, f"{path}: {lock} cannot be renewed"
            assert re.search(rf"@in_child\ndef \w+\(.*\n(    .*\n)*?    global (\w+, )*{lock}\b", text), (
                f"{path}: {lock}"
            )
